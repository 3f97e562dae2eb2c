"""A gate between two runs: what is paired, what decides, what missing scores do, and how often it errs."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from evaluations import evaluation
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.stats.margin import lower_bounds, records_to_decide, upper_bounds
from jurimetrics.stats.paired import outcome
from jurimetrics.variants.gate import Gate, gate, lines_of
from jurimetrics.variants.junit import legal
from jurimetrics.variants.matched import Matched

GRADE: dict[str, Any] = {"range": (0, 1)}
BASE = np.array([0.5, 0.6, 0.7, 0.8] * 15)


def run(scores: Any, *, metrics: dict[str, Any] | None = None, **columns: Any) -> jm.Results:
    """Recorded results of one metric `grade` of the judge ann; more columns of the frame, a scalar or one each."""
    table: dict[str, Any] = {"id": [f"q{at:03}" for at in range(len(scores))], "metric": "grade", "judge": "ann"}
    frame = pd.DataFrame({**table, "score": scores, **columns})
    declared = dict.fromkeys(dict.fromkeys(frame["metric"]), GRADE) if metrics is None else metrics
    return jm.Results.from_frame(frame, declared)


def several(by_metric: dict[str, Any], metrics: dict[str, Any]) -> jm.Results:
    frames = [
        pd.DataFrame(
            {"id": [f"q{at:03}" for at in range(len(scores))], "metric": name, "judge": "ann", "score": scores}
        )
        for name, scores in by_metric.items()
    ]
    return jm.Results.from_frame(pd.concat(frames, ignore_index=True), metrics)


def wavering(by: float, n: int = 60) -> np.ndarray[Any, Any]:
    """Differences with the mean `by` that waver by .06 around it."""
    return by + np.array([0.06, -0.06] * (n // 2))


# --- what it says ---


def test_one_line_by_hand() -> None:
    found = gate(run(BASE + wavering(-0.01)), run(BASE), margin=0.05)
    line = found.frame.iloc[0]
    assert found.outcome == line["outcome"] == "passed"
    assert (line["n"], line["groups"], line["lost"], line["gained"]) == (60, 60, 0, 0)
    assert line["mean_old"] == pytest.approx(0.65) and line["mean_new"] == pytest.approx(0.64)
    assert line["difference"] == pytest.approx(-0.01)
    # A standard error of .06 / sqrt(59) = .0078, so about .0153 on each side.
    assert line["low"] == pytest.approx(-0.0253, abs=0.002) and line["high"] == pytest.approx(0.0053, abs=0.002)
    assert math.isnan(line["needed"]) and math.isnan(found.needed)
    assert found.verdict == "passed: nothing is worse by its margin or more"


@pytest.mark.parametrize(("by", "said"), [(0.1, "passed"), (-0.05, "inconclusive"), (-0.1, "failed")])
def test_the_three_outcomes(by: float, said: str) -> None:
    assert gate(run(BASE + wavering(by)), run(BASE), margin=0.05).outcome == said


def test_lower_is_better_is_turned_and_said() -> None:
    metrics = {"grade": {"range": (0, 1), "higher_is_better": False}}
    found = gate(run(BASE + wavering(0.1), metrics=metrics), run(BASE, metrics=metrics), margin=0.05)
    line = found.frame.iloc[0]
    assert found.outcome == "failed"
    assert line["difference"] == pytest.approx(-0.1) and line["mean_new"] > line["mean_old"]
    assert "Lower is better: grade; the difference is turned, so that above 0 is better." in found.notes


def test_nothing_changed_passes_only_with_records_enough_to_have_seen_a_loss() -> None:
    few, many = run(BASE), run(np.tile(BASE, 4))
    undecided = gate(few, few, margin=0.02)
    # Of 60 records without a loss up to 1 - .025^(1/60) = 6.0 % may lose; 183 make it 2 %.
    assert undecided.outcome == "inconclusive"
    assert undecided.frame.loc[0, "low"] == pytest.approx(-(1 - 0.025 ** (1 / 60)))
    assert math.ceil(undecided.needed) == math.ceil(math.log(0.025) / math.log(0.98)) == 183
    assert "about 190 records would decide" in undecided.verdict
    assert gate(many, many, margin=0.02).outcome == "passed"


def test_a_few_lost_records_of_many_do_not_pass_as_if_nothing_were_rare() -> None:
    old = np.ones(200)
    new = old.copy()
    new[0] = 0.0
    line = gate(run(new), run(old), margin=0.02).frame.iloc[0]
    # One of 200 seen: Clopper and Pearson allow up to 2.75 %; the spread alone would have said -.015.
    assert line["low"] == pytest.approx(-0.0275, abs=1e-4)
    assert line["outcome"] == "inconclusive"
    # Were one of 200 what is lost, 400 records (two lost) would allow for 1.8 %.
    assert 200 < line["needed"] < 400
    assert "were the difference as seen" in line["why"]


def test_records_needed_are_those_of_the_paired_t_test() -> None:
    old = run(BASE)
    found = gate(run(BASE + wavering(-0.05)), old, margin=0.06)
    spread = float(wavering(0).std(ddof=1))
    # (1.96 + .84)^2 (.0605 / .06)^2 = 8 would do if nothing had changed, so what was seen decides: .01 from the margin.
    assert found.outcome == "inconclusive"
    expected = records_to_decide(wavering(-0.05), None, 1, 0.06)
    assert expected.supposing == "as seen" and found.needed == pytest.approx(expected.records)
    assert expected.records == pytest.approx((1.96 + 0.8416) ** 2 * spread**2 / 0.01**2, rel=0.02)
    short = records_to_decide(wavering(0), None, 1, 0.015)
    assert short.supposing == "no change"
    assert short.records == pytest.approx((1.96 + 0.8416) ** 2 * spread**2 / 0.015**2, rel=0.03)
    assert "were the difference as seen" in found.frame["why"].tolist()[0]


def test_a_difference_at_the_margin_needs_no_number() -> None:
    assert math.isnan(records_to_decide(wavering(-0.05), None, 1, 0.05).records)
    assert math.isnan(records_to_decide(np.zeros(60), None, 1, 0.0).records)
    found = gate(run(BASE + wavering(-0.05)), run(BASE), margin=0.05)
    assert math.isnan(found.needed) and "would hardly tell" in found.frame["why"].tolist()[0]
    assert found.verdict == "inconclusive: not decided: grade"


def test_few_groups_decide_nothing_and_say_so() -> None:
    group = np.repeat([f"d{at}" for at in range(6)], 10)
    found = gate(run(BASE - 0.4, group=group), run(BASE, group=group), margin=0.05)
    assert found.outcome == "inconclusive"
    assert found.frame["why"].tolist() == ["no interval: 6 groups, 8 are needed"]
    assert math.isnan(found.needed)


def test_groups_widen_the_interval() -> None:
    by = np.repeat(np.array([0.06, -0.06] * 6), 5)
    group = np.repeat([f"d{at:02}" for at in range(12)], 5)
    alone = gate(run(BASE + by), run(BASE), margin=0.05).frame.iloc[0]
    together = gate(run(BASE + by, group=group), run(BASE, group=group), margin=0.05).frame.iloc[0]
    assert together["groups"] == 12
    assert together["low"] < 1.5 * alone["low"]


def test_repeats_are_averaged_first() -> None:
    ids = [f"q{at:03}" for at in range(60)]
    frame = pd.DataFrame({"id": ids * 2, "metric": "grade", "judge": "ann", "repeat": [0] * 60 + [1] * 60})
    old = jm.Results.from_frame(frame.assign(score=np.tile(BASE, 2)), {"grade": GRADE})
    up = np.concatenate([BASE + 0.1, BASE - 0.1 + wavering(-0.02)])
    new = jm.Results.from_frame(frame.assign(score=up), {"grade": GRADE})
    line = gate(new, old, margin=0.05).frame.iloc[0]
    assert line["n"] == 60 and line["difference"] == pytest.approx(-0.01)


# --- missing scores ---


def test_a_run_cannot_pass_by_losing_its_bad_rows() -> None:
    new = BASE + wavering(0.0)
    lost = new.copy()
    lost[:12] = np.nan
    whole, holed = gate(run(new), run(BASE), margin=0.05), gate(run(lost), run(BASE), margin=0.05)
    assert (whole.outcome, holed.outcome) == ("passed", "inconclusive")
    line = holed.frame.iloc[0]
    assert (line["n"], line["lost"], line["coverage_old"], line["coverage_new"]) == (48, 12, 1.0, 0.8)
    # The twelve lost lie at 0 in the worst case: on average -.65 each, a fifth of all.
    assert line["low"] < -0.65 / 5 < line["difference"] < line["high"]
    assert line["why"] == "12 scores missing in the new run could turn it; without them it passes"
    allowed = gate(run(lost), run(BASE), margin=0.05, max_missing=0.2)
    assert allowed.outcome == "passed"
    assert any("taken as lost by chance" in note for note in allowed.notes)
    assert gate(run(lost), run(BASE), margin=0.05, max_missing=0.19).outcome == "inconclusive"


def test_a_loss_is_the_worst_of_a_metric_where_lower_is_better() -> None:
    metrics = {"grade": {"range": (0, 1), "higher_is_better": False}}
    lost = BASE + wavering(0.0)
    lost[:12] = np.nan
    line = gate(run(lost, metrics=metrics), run(BASE, metrics=metrics), margin=0.05).frame.iloc[0]
    # The worst is 1 here: on average 1 - .65 = .35 lost, a fifth of all.
    assert -0.35 / 5 > line["low"] > -0.35 / 5 - 0.06


def test_a_run_cannot_fail_by_losing_its_good_rows() -> None:
    new = BASE + wavering(-0.1)
    assert gate(run(new), run(BASE), margin=0.05).outcome == "failed"
    new[:20] = np.nan
    assert gate(run(new), run(BASE), margin=0.05).outcome == "inconclusive"


def test_scores_that_only_the_new_run_has_are_left_out() -> None:
    old = BASE.copy()
    old[:20] = np.nan
    found = gate(run(BASE + wavering(0.0)), run(old), margin=0.05)
    line = found.frame.iloc[0]
    assert (line["n"], line["gained"], line["lost"], line["outcome"]) == (40, 20, 0, "passed")


def test_a_new_run_without_any_score_does_not_pass() -> None:
    found = gate(run(np.full(60, np.nan)), run(BASE), margin=0.05)
    assert found.outcome == "inconclusive"
    assert found.frame[["n", "lost"]].to_numpy().tolist() == [[0, 60]]
    assert "no pairs" in str(found) and "nan" not in str(found)


# --- several lines ---

TWO = {"grade": GRADE, "style": {"range": (1, 5)}}


def test_all_metrics_must_pass_and_one_that_fails_is_enough() -> None:
    old = several({"grade": BASE, "style": BASE * 4 + 1}, TWO)
    fine = several({"grade": BASE + wavering(0), "style": BASE * 4 + 1 + 4 * wavering(0)}, TWO)
    margins = {"grade": 0.05, "style": 0.2}
    assert gate(fine, old, margin=margins).outcome == "passed"
    worse = several({"grade": BASE + wavering(0), "style": BASE * 4 + 1 + 4 * wavering(-0.1)}, TWO)
    found = gate(worse, old, margin=margins)
    assert found.outcome == "failed" and found.verdict == "failed: worse by more than its margin: style"
    assert found.frame["outcome"].tolist() == ["passed", "failed"]
    assert gate(worse, old, margin=margins, metrics=["grade"]).outcome == "passed"
    assert gate(worse, old, margin={"grade": 0.05}).frame["metric"].tolist() == ["grade"]


def test_upper_bounds_are_those_of_a_family_and_lower_bounds_are_not() -> None:
    old = several({"grade": BASE, "style": BASE * 4 + 1}, TWO)
    new = several({"grade": BASE + wavering(-0.02), "style": BASE * 4 + 1 + 4 * wavering(0)}, TWO)
    both = gate(new, old, margin=0.05).frame.iloc[0]
    alone = gate(new, old, margin=0.05, metrics=["grade"]).frame.iloc[0]
    assert both["low"] == alone["low"] and both["high"] > alone["high"]


def test_the_only_variants_are_paired_whatever_they_are_called() -> None:
    found = gate(run(BASE + wavering(0), variant="v2"), run(BASE, variant="v1"), margin=0.05)
    assert found.frame[["variant_old", "variant_new"]].to_numpy().tolist() == [["v1", "v2"]]
    assert "v2 - v1" in str(found)


def test_variants_of_one_name_are_paired_and_others_are_named() -> None:
    ids = [f"q{at:03}" for at in range(60)]

    def of(shifts: dict[str, float]) -> jm.Results:
        parts = [
            pd.DataFrame({"id": ids, "variant": name, "metric": "grade", "judge": "ann", "score": BASE + wavering(by)})
            for name, by in shifts.items()
        ]
        return jm.Results.from_frame(pd.concat(parts, ignore_index=True), {"grade": GRADE})

    old = of({"A": 0.0, "B": 0.0, "C": 0.0})
    found = gate(of({"B": -0.15, "A": 0.0, "D": 0.0}), old, margin=0.05)
    assert dict(zip(found.frame["variant_new"], found.frame["outcome"], strict=True)) == {
        "A": "inconclusive",
        "B": "failed",
    }
    told = " ".join(found.notes)
    assert "only the old run has them: the variants C" in told and "only the new run has them: the variants D" in told
    with pytest.raises(
        InputError, match=r"no variant has the same name in both runs \(old: 'A', 'B', 'C'; new: 'D', 'E'\)"
    ):
        gate(of({"D": 0.0, "E": 0.0}), old, margin=0.05)


def test_metrics_of_one_run_alone_and_those_without_old_scores_are_named() -> None:
    old = several({"grade": BASE, "style": np.full(60, np.nan)}, TWO)
    new = several({"grade": BASE + wavering(0), "style": BASE * 4 + 1}, TWO)
    found = gate(new, old, margin=0.05)
    assert found.frame["metric"].tolist() == ["grade"]
    assert "Not gated, since the old run has no score of them: style." in found.notes
    with pytest.raises(InputError, match="the old run has no score of style, so nothing can be worse"):
        gate(new, old, margin=0.05, metrics=["style"])
    assert any("style" in note for note in gate(new, run(BASE), margin=0.05).notes)


def test_the_order_of_rows_changes_nothing() -> None:
    random = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "id": [f"q{at}" for at in range(60)],
            "metric": "grade",
            "judge": "ann",
            "group": [f"d{at % 13}" for at in range(60)],
        }
    )
    old, new = frame.assign(score=BASE), frame.assign(score=(BASE + random.normal(0, 0.05, 60)).clip(0, 1))
    expected = gate(*(jm.Results.from_frame(one, {"grade": GRADE}) for one in (new, old)), margin=0.02).frame
    mixed = [one.sample(frac=1, random_state=at) for at, one in enumerate((new, old))]
    pd.testing.assert_frame_equal(
        gate(*(jm.Results.from_frame(one, {"grade": GRADE}) for one in mixed), margin=0.02).frame, expected
    )


# --- refusals ---


def test_runs_that_must_not_be_compared_are_refused_with_the_reason() -> None:
    base = run(BASE)
    with pytest.raises(InputError, match=r"gate: the runs must not be compared: .* in the old run alone"):
        gate(run(BASE[:40]), base, margin=0.05)
    with pytest.raises(InputError, match="metric grade has the range 0 to 1 in the old run and 0 to 2 in the new run"):
        gate(run(BASE, metrics={"grade": {"range": (0, 2)}}), base, margin=0.05)
    with pytest.raises(InputError, match="no judge is in both"):
        gate(run(BASE, judge="bob"), base, margin=0.05)
    told = base.settings
    told["panel"] = {"name": "ann", "rule": "median", "members": ["x"]}
    with pytest.raises(InputError, match="has the panel ann"):
        gate(jm.Results(base.folder, told), base, margin=0.05)
    told = base.settings
    told["metrics"]["grade"]["version"] = "2"
    with pytest.raises(InputError, match="metric grade is version"):
        gate(jm.Results(base.folder, told), base, margin=0.05)


def test_a_changed_retriever_is_gated_where_it_is_said_to_be_one(tmp_path: Path) -> None:
    changed: dict[int, dict[str, Any]] = {at: {"contexts": ["Passage."]} for at in range(30)}
    old, new = evaluation(tmp_path, records=40), evaluation(tmp_path, records=40, record=changed)
    with pytest.raises(InputError) as caught:
        gate(new, old, margin=0.1)
    assert str(caught.value) == (
        "gate: the runs must not be compared: 30 records have other contexts ('r00', 'r01', 'r02', ...); shared_only=True "
        "compares the 10 records that are alike; same_contexts=False (--other-contexts) takes contexts as part of what a "
        "system gave"
    )
    found = gate(new, old, margin=0.1, same_contexts=False)
    assert found.frame["n"].tolist() == [40, 40]
    said = "Contexts count as what each system gave, as its answers do: they differ between the old run and the new run in "
    assert f"{said}30 of 40 records ('r00', 'r01', 'r02', ...)." in found.notes
    asked = evaluation(tmp_path, records=40, record={**changed, 39: {"question": "Another?"}})
    with pytest.raises(InputError, match="1 record has another question"):
        gate(asked, old, margin=0.1, same_contexts=False)
    shared = gate(asked, old, margin=0.1, same_contexts=False, shared_only=True)
    assert shared.frame["n"].tolist() == [39, 39]
    assert f"{said}30 of 39 records ('r00', 'r01', 'r02', ...)." in shared.notes


def test_a_threshold_is_no_difference() -> None:
    results = run(BASE)
    found = gate(results.with_thresholds({"grade": 0.9}), results, margin=0.1)
    assert not any("threshold" in note for note in found.notes)


def test_shared_only_takes_the_records_that_are_alike() -> None:
    found = gate(run((BASE + wavering(0))[:40]), run(BASE), margin=0.05, shared_only=True)
    assert found.frame[["n", "lost"]].to_numpy().tolist() == [[40, 0]]
    assert any("Only the 40 records" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"margin": -0.1}, "margin: grade needs a number from 0, not -0.1"),
        ({"margin": math.nan}, "margin: grade needs a number from 0, not nan"),
        ({"margin": True}, "margin: grade needs a number from 0, not True"),
        ({"margin": 1.0}, "margin: 1 is no margin for grade, which lies between 0 and 1"),
        ({"margin": {"other": 0.1}}, "gate: no metric 'other' in the new run; metrics: grade"),
        ({"margin": {"other": 0.1}, "metrics": ["grade"]}, "margin: none given for grade"),
        ({"margin": 0.1, "metrics": "grade"}, "metrics: expected a list of metrics, found 'grade'"),
        ({"margin": 0.1, "level": 1.0}, "level must lie between 0 and 1, not 1.0"),
        ({"margin": 0.1, "power": 0.0}, "power must lie between 0 and 1, not 0.0"),
        ({"margin": 0.1, "max_missing": 2}, "max_missing must lie between 0 and 1, not 2"),
        ({"margin": 0.1, "judge": "bob"}, "gate: grade in the new run: none of 'bob'; judges: ann"),
    ],
)
def test_bad_options_are_one_line(options: dict[str, Any], said: str) -> None:
    results = run(BASE)
    with pytest.raises(InputError) as raised:
        gate(results, results, **options)
    assert str(raised.value) == said


def test_several_judges_leave_a_choice() -> None:
    ids = [f"q{at:03}" for at in range(60)]
    parts = [pd.DataFrame({"id": ids, "metric": "grade", "judge": name, "score": BASE}) for name in ("ann", "bob")]
    both = jm.Results.from_frame(pd.concat(parts, ignore_index=True), {"grade": GRADE})
    with pytest.raises(InputError, match=r"grade in the new run: choose one with judge=; judges: ann, bob"):
        gate(both, both, margin=0.1)
    assert gate(both, both, margin=0.1, judge="bob").frame.loc[0, "judge"] == "bob"


# --- shown ---


def three_lines() -> Gate:
    names = ["grade", "<style> & \x1b[31m\x00", "form"]
    metrics = dict.fromkeys(names, GRADE)
    old = several(dict.fromkeys(names, BASE), metrics)
    shifts = zip(names, (0.0, -0.2, -0.05), strict=True)
    return gate(several({name: BASE + wavering(by) for name, by in shifts}, metrics), old, margin=0.05)


def test_junit_holds_a_case_for_each_line_and_is_xml_whatever_the_names_are() -> None:
    text = three_lines().junit("study \ud83d\x0b<1>")
    suite = ElementTree.fromstring(text.encode("utf-8")).find("testsuite")
    assert suite is not None
    assert suite.attrib["name"] == "study \ufffd\ufffd<1>"
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "1", "skipped": "0",
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [case.attrib["name"] for case in cases] == [
        "grade by ann", "<style> & \ufffd[31m\ufffd by ann", "form by ann",
    ]  # fmt: skip
    failure, fault = cases[1].find("failure"), cases[2].find("error")
    assert cases[0].find("failure") is None and cases[0].find("error") is None
    assert failure is not None and failure.attrib["type"] == "failed"
    assert failure.attrib["message"].startswith("failed: difference -0.20 [")
    assert fault is not None and fault.attrib["type"] == "inconclusive"


@given(st.text(st.characters()))
def test_what_xml_cannot_hold_is_replaced(text: str) -> None:
    element = ElementTree.Element("a", {"b": legal(text)})
    again = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))
    assert again.attrib["b"] == legal(text)


def test_table_shows_what_decides_and_escapes_the_rest() -> None:
    found = three_lines()
    text, page = str(found), found._repr_html_()
    assert text.splitlines()[0].split() == [
        "metric", "judge", "n", "scored", "old,", "new", "old", "new", "difference", "[interval]", "margin", "outcome", "n",
        "needed",
    ]  # fmt: skip
    assert "\x1b" not in text and "\x00" not in text
    assert text.splitlines()[-1] == "failed: worse by more than its margin: <style> & \ufffd[31m\ufffd"
    assert "<style> &" not in page.removeprefix("<style>") and "&lt;style&gt; &amp;" in page
    assert repr(found).startswith("Gate(failed: worse by more than its margin")


# --- properties ---


def line_of(old: Any, new: Any, groups: Any = None, **more: Any) -> Matched:
    names = tuple(map(str, range(len(old)) if groups is None else groups))
    settings_of = {"higher_is_better": True, "limits": (0.0, 1.0), **more}
    return Matched("grade", "ann", ("", ""), names, np.asarray(old, float), np.asarray(new, float), **settings_of)


SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan])
RECORD = st.tuples(SCORES, SCORES, st.integers(0, 11))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(RECORD, min_size=1, max_size=40),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
)
def test_outcome_and_interval_never_disagree(rows: list[Any], margin: float, higher: bool, missing: float) -> None:
    old, new, groups = zip(*rows, strict=True)
    pair = line_of(old, new, groups, higher_is_better=higher)
    (line,) = lines_of([pair], [margin], 0.95, 0.8, missing, flips=99)
    said = {"pass": "passed", "fail": "failed"}.get(outcome(line["low"], line["high"], margin), "inconclusive")
    assert line["outcome"] == said
    assert math.isnan(line["low"]) == math.isnan(line["high"])
    assert math.isnan(line["low"]) == (line["groups"] < 8)
    if not math.isnan(line["low"]):
        assert line["low"] - 1e-9 <= line["difference"] <= line["high"] + 1e-9
        assert line["low"] >= -1 - 1e-9 and line["high"] <= 1 + 1e-9
    if line["outcome"] != "inconclusive":
        assert math.isnan(line["needed"])
    elif not math.isnan(line["needed"]):
        assert line["needed"] > line["n"]


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORD, min_size=8, max_size=30))
def test_a_lost_score_never_helps(rows: list[Any]) -> None:
    old, new, _ = zip(*rows, strict=True)
    new = tuple(0.5 if math.isnan(value) else value for value in new)
    holed = [math.nan if at % 5 == 0 else value for at, value in enumerate(new)]
    before, after = (lines_of([line_of(old, one)], [0.1], 0.95, 0.8, flips=99)[0] for one in (new, holed))
    # Whatever was lost, its true difference is at least the one that the lower bound took, and at most that of the upper.
    if not math.isnan(after["low"]):
        assert after["low"] - 1e-9 <= before["difference"] <= after["high"] + 1e-9
    assert {before["outcome"], after["outcome"]} != {"passed", "failed"}


# --- how often it errs ---

TRIALS = 2_000
TWO_ERRORS = 2 * math.sqrt(0.025 * 0.975 / TRIALS)
MARGIN = 0.1


def rated(random: np.random.Generator) -> tuple[np.ndarray[Any, Any], Any]:
    """Sixty records that stand alone, in steps of .05."""
    return np.round(random.normal(0, 0.3, 60) * 20) / 20, np.arange(60)


def clustered(random: np.random.Generator) -> tuple[np.ndarray[Any, Any], Any]:
    """Thirty groups of one to seven records that go together."""
    groups = np.repeat(np.arange(30), random.integers(1, 8, 30))
    return random.normal(0, 0.2, 30)[groups] + random.normal(0, 0.2, len(groups)), groups


def few_clusters(random: np.random.Generator) -> tuple[np.ndarray[Any, Any], Any]:
    """Ten groups of six."""
    groups = np.repeat(np.arange(10), 6)
    return random.normal(0, 0.2, 10)[groups] + random.normal(0, 0.2, 60), groups


def passes_and_fails(random: np.random.Generator) -> tuple[np.ndarray[Any, Any], Any]:
    """Three hundred records that pass or fail: 15 % are lost and 5 % won, of which the mean is the margin."""
    drawn = random.random(300)
    return np.where(drawn < 0.15, -1.0, np.where(drawn > 0.95, 1.0, 0.0)) + MARGIN, np.arange(300)


KINDS = [rated, clustered, few_clusters, passes_and_fails]


@pytest.mark.slow
@pytest.mark.parametrize("draw", KINDS, ids=lambda kind: kind.__name__)
def test_at_the_margin_it_passes_and_fails_as_rarely_as_promised(draw: Any) -> None:
    passed = failed = 0
    for seed in range(TRIALS):
        differences, groups = draw(np.random.default_rng(seed))
        at = differences - MARGIN
        passed += float(lower_bounds(at, groups, (2,), flips=499, seed=seed).value[0]) > -MARGIN
        failed += float(upper_bounds(at, groups, (2,), flips=499, seed=seed).value[0]) < -MARGIN
    assert passed / TRIALS <= 0.025 + TWO_ERRORS
    assert failed / TRIALS <= 0.025 + TWO_ERRORS
    # Not by deciding nothing.
    assert passed + failed > 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 200, 400, 800])
def test_rare_losses_do_not_slip_through(n: int) -> None:
    passed = 0
    for seed in range(TRIALS):
        lost = -(np.random.default_rng(seed).random(n) < 0.02).astype(float)
        passed += float(lower_bounds(lost, None, flips=499, seed=seed).value[0]) > -0.02
    assert passed / TRIALS <= 0.025 + TWO_ERRORS


def drawn_lines(random: np.random.Generator, shifts: tuple[float, ...]) -> list[Matched]:
    """Metrics over the same clustered records; the second goes against the first, the third stands for itself."""
    first, groups = clustered(random)
    third = random.normal(0, 0.2, 30)[groups] + random.normal(0, 0.2, len(groups))
    wide = {"limits": (-3.0, 3.0)}
    return [
        line_of(np.zeros(len(groups)), column + by, groups, **wide)
        for column, by in zip((first, -first, third), shifts, strict=True)
    ]


@pytest.mark.slow
def test_a_family_fails_as_rarely_as_one_and_passes_no_more_often() -> None:
    failed = passed = alone = 0
    for seed in range(TRIALS):
        lines = lines_of(drawn_lines(np.random.default_rng(seed), (-MARGIN,) * 3), [MARGIN] * 3, 0.95, 0.8, flips=499)
        said = {line["outcome"] for line in lines}
        failed += "failed" in said
        alone += sum(line["high"] < -MARGIN for line in lines)
        # One metric at its margin, the others far better: the gate passes where that one does.
        easy = drawn_lines(np.random.default_rng(seed), (-MARGIN, 1.0, 1.0))
        passed += {line["outcome"] for line in lines_of(easy, [MARGIN] * 3, 0.95, 0.8, flips=499)} == {"passed"}
    assert failed / TRIALS <= 0.025 + TWO_ERRORS
    assert 0 < passed / TRIALS <= 0.025 + TWO_ERRORS
    assert alone > 0


@pytest.mark.slow
@pytest.mark.parametrize("draw", [rated, clustered], ids=lambda kind: kind.__name__)
def test_so_many_records_as_are_said_to_be_needed_decide(draw: Any) -> None:
    differences, groups = draw(np.random.default_rng(1))
    needed = records_to_decide(differences, groups, 2, 0.04)
    assert needed.supposing == "no change" and needed.records > len(differences)
    kept = itertools.count()
    passed = failed = 0
    trials = 300
    for _ in range(trials):
        parts: list[Any] = []
        names: list[str] = []
        while len(names) < needed.records:
            more, of = draw(np.random.default_rng(1_000 + next(kept)))
            parts.append(more)
            names += [f"{len(parts)}/{name}" for name in of]
        values = np.concatenate(parts)[: math.ceil(needed.records)]
        names = names[: len(values)]
        passed += float(lower_bounds(values, names, (2,), flips=299).value[0]) > -0.04
        failed += float(upper_bounds(values - 0.08, names, (2,), flips=299).value[0]) < -0.04
    # The spread of one draw is known roughly: from .65 to .95 where .8 is said.
    assert 0.65 < passed / trials < 0.95
    assert 0.65 < failed / trials < 0.95
