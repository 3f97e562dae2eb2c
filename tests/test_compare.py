"""Comparison of variants on hand-made results: every column, every refusal, words that say no more than intervals."""

from __future__ import annotations

import json
import math
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from compared import A, B, results, rows
from jurimetrics import InputError, Results, compare, load_labels
from jurimetrics.stats.corrected import corrected_mean
from jurimetrics.stats.flips import sign_flips
from jurimetrics.stats.paired import outcome, tally, worst_case
from jurimetrics.stats.power import records_needed
from jurimetrics.variants.compare import COLUMNS
from jurimetrics.variants.families import own_families
from jurimetrics.variants.leaderboard import leaderboard
from jurimetrics.variants.words import interval


def only(found: jm.variants.compare.Comparison) -> pd.Series[Any]:  # type: ignore[name-defined]
    assert len(found.frame) == 1
    return found.frame.iloc[0]


def test_every_column_of_one_pair_by_hand() -> None:
    line = only(compare(results(rows(A=A, B=B)), detect=0.1))
    assert tuple(line.index) == COLUMNS
    assert line[["metric", "judge", "a", "b", "family"]].tolist() == ["grade", "ann", "A", "B", "primary"]
    assert line[["n", "groups", "only_a", "only_b", "coverage_a", "coverage_b"]].tolist() == [10, 10, 0, 0, 1.0, 1.0]
    assert line[["mean_a", "mean_b", "difference"]].astype(float).tolist() == pytest.approx([0.44, 0.58, 0.14])
    assert line[["wins", "ties", "losses"]].tolist() == [7, 2, 1]
    # Passing at .5: A does in records 2, 3, 5, 7, 8; B in those and in 1 and 4.
    assert line[["pass_a", "pass_b", "only_a_passes", "only_b_passes"]].astype(float).tolist() == [0.5, 0.7, 0, 2]
    # Two to none: exact p is 2 * .25 = .5, mid-p less half of the point: .5 - .25.
    assert line["mcnemar_p"] == pytest.approx(0.25)
    differences = np.subtract(B, A)
    assert line["effect_size"] == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert line["worst_low"] == line["worst_high"] == pytest.approx(0.14)
    assert line["needed"] == pytest.approx(records_needed(differences.std(ddof=1), 0.1, alpha=25 / 512))
    witness = sign_flips(differences)
    for name, values in (("low", witness.low), ("high", witness.high), ("p", witness.p)):
        assert line[name] == pytest.approx(float(values[0]))
    # A family of one is that one.
    assert line[["simultaneous_low", "simultaneous_high", "p_adjusted"]].tolist() == line[["low", "high", "p"]].tolist()
    assert line["method"] == "sign flips by group, all 512 sign patterns; family of 1 by the smallest p"
    shown = interval(line["difference"], line["low"], line["high"])
    assert line["verdict"] == f"ann scores B higher by {shown} than A"
    assert line["labelled"] == 0 and math.isnan(line["corrected"])


def test_only_records_with_both_scores_are_compared_and_the_rest_is_bounded() -> None:
    one: list[float | None] = [*A[:8], None, 0.2]
    other: list[float | None] = [*B[:9], None]
    line = only(compare(results(rows(A=one, B=other))))
    assert line[["n", "only_a", "only_b"]].tolist() == [8, 1, 1]
    assert line[["coverage_a", "coverage_b"]].tolist() == [0.9, 0.9]
    assert line["difference"] == pytest.approx(np.subtract(B[:8], A[:8]).mean())
    # B's missing score lies in 0 to 1 against .2, A's against .7.
    total = float(np.subtract(B[:8], A[:8]).sum())
    assert line["worst_low"] == pytest.approx((total - 0.2 - 0.3) / 10)
    assert line["worst_high"] == pytest.approx((total + 0.8 + 0.7) / 10)


def test_missing_scores_that_could_turn_the_verdict_are_said_with_it() -> None:
    one: list[float | None] = [0.5 + at / 100 for at in range(20)]
    other: list[float | None] = [0.54 + at / 90 for at in range(12)]
    line = only(compare(results(rows(A=one, B=[*other, *[None] * 8]))))
    assert line["low"] > 0 > line["worst_low"]
    assert line["verdict"].endswith("than A (scores missing on one side could turn this)")


def test_missing_scores_weaken_only_what_is_decided() -> None:
    line = only(compare(results(rows(A=[*A[:8], None, None], B=A[::-1]))))
    assert line["only_b"] == 2 and line["worst_low"] < 0 < line["worst_high"]
    assert line["verdict"].startswith("undecided") and "missing" not in line["verdict"]


def test_a_record_that_a_variant_was_never_asked_for_does_not_lower_its_coverage() -> None:
    line = only(compare(results(rows(A=[*A, 0.4, 0.4], B=B))))
    assert line[["n", "only_a", "coverage_a", "coverage_b"]].tolist() == [10, 2, 1.0, 1.0]


def test_repeats_are_averaged_first() -> None:
    twice = [line | {"repeat": 0} for line in rows(A=A, B=B)]
    twice += [line | {"repeat": 1, "score": line["score"] + 0.1} for line in rows(A=A)]
    line = only(compare(results(twice)))
    assert line["n"] == 10
    assert line["difference"] == pytest.approx(0.14 - 0.05)
    # Records 1 and 6 pass in one of two repeats, so no whole passes: nothing for McNemar.
    assert line["pass_a"] == pytest.approx(0.6) and math.isnan(line["mcnemar_p"])


def test_groups_are_the_units_and_forbid_mcnemar() -> None:
    lines = [line | {"group": f"g{int(line['id'][1:]) // 2}"} for line in rows(A=A * 2, B=B * 2)]
    line = only(compare(results(lines)))
    assert line[["n", "groups"]].tolist() == [20, 10]
    sums = np.add.reduceat(np.subtract(B * 2, A * 2), range(0, 20, 2))
    assert line["p"] == pytest.approx(float(sign_flips(sums).p[0]))
    assert math.isnan(line["mcnemar_p"]) and math.isnan(line["only_a_passes"])


def test_few_groups_have_no_interval_and_no_verdict() -> None:
    line = only(compare(results(rows(A=A[:5], B=B[:5]))))
    assert line["verdict"] == "no verdict: no interval: 5 groups, 8 are needed"
    assert line[["low", "simultaneous_low", "p_adjusted"]].isna().all()


def test_equal_differences_have_no_interval_and_nothing_common_has_no_value() -> None:
    same = only(compare(results(rows(A=A, B=[score + 0.1 for score in A])), detect=0.05))
    assert math.isnan(same["needed"])
    assert same["difference"] == pytest.approx(0.1)
    assert same["verdict"] == "no verdict: no interval: the groups do not differ"
    none = only(compare(results(rows(A=[0.1, None], B=[None, 0.2]))))
    assert none["n"] == 0 and math.isnan(none["difference"]) and math.isnan(none["p"])
    assert none["verdict"] == "no verdict: no record has a score of both"


def test_lower_is_better_is_said_and_turns_wins() -> None:
    found = compare(results(rows(A=A, B=B), {"grade": {"range": (0, 1), "higher_is_better": False}}))
    line = only(found)
    assert line[["wins", "ties", "losses"]].tolist() == [1, 2, 7]
    assert line["difference"] == pytest.approx(0.14)
    assert line["verdict"].endswith("than A; lower is better here")
    assert leaderboard(found)["variant"].tolist() == ["A", "B"]


def test_no_word_of_better_without_labels() -> None:
    for line in compare(results(rows(A=A, B=B, C=B[::-1]))).frame["verdict"]:
        assert "better" not in line


def test_baseline_comes_first_in_every_pair() -> None:
    found = compare(results(rows(A=A, B=B, C=B)), "B")
    assert found.frame[["a", "b"]].values.tolist() == [["B", "A"], ["B", "C"]]
    assert found.frame["difference"].tolist() == pytest.approx([-0.14, 0])
    assert "scores A lower by" in found.frame.loc[0, "verdict"]


def test_family_is_pairs_times_primary_metrics_and_others_are_marked() -> None:
    lines = rows(A=A, B=B, C=B[::-1]) + rows("style", A=B, B=A, C=A)
    found = compare(results(lines), primary=["grade"])
    primary = found.frame[found.frame["family"] == "primary"]
    other = found.frame[found.frame["family"] == "exploratory"]
    assert len(primary) == len(other) == 3
    assert (primary["p_adjusted"] >= primary["p"]).all() and primary["method"].str.contains("family of 3").all()
    assert other[["simultaneous_low", "p_adjusted"]].isna().all(axis=None) and other["low"].notna().any()
    assert other["verdict"].str.startswith("exploratory: ").all()
    assert any("Exploratory, each judged alone and not adjusted: style" in note for note in found.notes)
    everything = compare(results(lines))
    assert set(everything.frame["family"]) == {"primary"}
    assert any("none was declared primary" in note for note in everything.notes)
    p = everything.frame["p_adjusted"]
    assert (p.iloc[:3].to_numpy() >= primary["p_adjusted"].to_numpy()).all()


def test_order_of_rows_and_variants_never_changes_a_number() -> None:
    lines = [line | {"group": f"g{int(line['id'][1:]) // 2}"} for line in rows(A=A * 4, B=B * 4)]
    one = only(compare(results(lines)))
    turned = only(compare(results(lines[::-1]), "A"))
    for name in ("difference", "low", "high", "p", "simultaneous_low", "effect_size", "worst_low"):
        assert turned[name] == pytest.approx(one[name], abs=1e-12), name


@pytest.mark.parametrize("seed", range(12))
def test_intervals_p_and_words_never_disagree(seed: int) -> None:
    random = np.random.default_rng(seed)
    base = random.random(30) * 0.6
    each = {
        name: [float(v) for v in np.round(np.clip(base + up + random.normal(0, 0.15, 30), 0, 1), 1)]
        for name, up in (("A", 0.0), ("B", 0.06), ("C", 0.12))
    }
    frame = compare(results(rows(**each) + rows("style", **each)), primary=["grade"], flips=999).frame
    for line in frame.to_dict("records"):
        primary = line["family"] == "primary"
        low, high = (line["simultaneous_low"], line["simultaneous_high"]) if primary else (line["low"], line["high"])
        decided = low > 0 or high < 0
        assert decided == ((line["p_adjusted"] if primary else line["p"]) <= 0.05)
        assert decided == ("undecided" not in line["verdict"])
        assert (low > 0) == ("scores " + line["b"] + " higher" in line["verdict"])
        assert (high < 0) == ("scores " + line["b"] + " lower" in line["verdict"])
        assert line["low"] <= line["difference"] <= line["high"]


# --- judges ---


def test_several_judges_need_a_choice_and_each_can_be_chosen() -> None:
    both = results(rows(A=A, B=B) + rows(judge="bob", A=B, B=A))
    with pytest.raises(InputError, match="choose a judge: ann, bob"):
        compare(both)
    assert only(compare(both, judge="bob"))["difference"] == pytest.approx(-0.14)
    with pytest.raises(InputError, match="no rows of a judge 'eve'; judges: ann, bob"):
        compare(both, judge="eve")


def test_the_panel_speaks_where_there_is_one() -> None:
    recorded = results(rows(A=A, B=B) + rows(judge="bob", A=A, B=B) + rows(judge="panel", A=A, B=B))
    settings = recorded.settings | {"panel": {"name": "panel", "members": ["ann", "bob"]}}
    line = only(compare(Results(recorded.folder, settings)))
    assert line["judge"] == "panel"
    assert line["verdict"].startswith("the panel scores B higher by 0.14 [")


def test_computed_metrics_stand_beside_any_judge() -> None:
    lines = rows(A=A, B=B) + rows(judge="bob", A=A, B=B) + rows("f1", "computed", A=A, B=B)
    found = compare(results(lines), judge="bob")
    assert found.frame["judge"].tolist() == ["bob", "computed"]
    assert found.frame["verdict"].str.startswith(("bob scores B", "f1 scores B")).all()


def test_judges_of_a_variants_own_family_are_flagged() -> None:
    records = [
        {"id": at, "variant": name, "answer": "It is 4.", "contexts": [f"It is {4 + (at % 3) * (name == 'A')}."],
         "answer_model": model}
        for at in range(9) for name, model in (("A", "vendor/lux-2-mini"), ("B", "other-1"))
    ]  # fmt: skip
    done = jm.evaluate(records, ["faithfulness"], jm.BaselineJudge(), store=None)
    settings = done.settings
    settings["judges"]["baseline"] |= {"family": "Lux", "kind": "chat"}
    found = compare(Results(done.folder, settings))
    assert only(found)["own_family"] == "baseline is of the family Lux, as A is"
    assert only(found)["verdict"].endswith("(baseline is of the family Lux, as A is)")
    assert any("may prefer its own" in note for note in found.notes)
    settings["judges"]["baseline"] |= {"family": None}
    assert any("No family is stated for baseline" in note for note in compare(Results(done.folder, settings)).notes)


def test_same_model_is_recognised_under_a_path_and_part_of_a_word_is_no_family() -> None:
    judges = {"judge": {"model": "lux-2", "family": "ion"}}
    records = pd.DataFrame({"variant": ["A", "B", "C"], "answer_model": ["vendor/LUX-2", "orion-1", None]})
    assert own_families({"judges": judges}, records) == {("judge", "A"): "judge is the model lux-2, as A is"}


def test_variants_that_differ_in_answering_are_told() -> None:
    records = [
        {"id": at, "variant": name, "answer": "I do not know." if name == "B" and at < 3 else "It is 4.",
         "contexts": ["It is 4."]}
        for at in range(10) for name in "AB"
    ]  # fmt: skip
    found = compare(jm.evaluate(records, ["faithfulness"], jm.BaselineJudge(), store=None))
    assert only(found)[["answered_a", "answered_b"]].tolist() == [1.0, 0.7]
    assert any("favours the one that answers less" in note for note in found.notes)


# --- labels ---


def labelled(share: int, shift: float = 0.1) -> tuple[Results, list[dict[str, Any]]]:
    random = np.random.default_rng(3)
    base = random.random(60) * 0.5
    scores = {
        name: [float(v) for v in base + up + random.normal(0, 0.02, 60)] for name, up in (("A", 0.05), ("B", 0.2))
    }
    people = []
    for at in range(share):
        for name in "AB":
            label = scores[name][at] - 0.05 - shift * (name == "B")
            people.append({"id": f"r{at:02}", "variant": name, "metric": "grade", "label": min(1.0, max(0.0, label))})
    return results(rows(**scores)), people  # type: ignore[arg-type]


def test_labels_correct_the_difference_and_decide_the_verdict() -> None:
    done, people = labelled(20)
    line = only(compare(done, labels=load_labels(people, selection="random")))
    table = done.scores.pivot(index="id", columns="variant", values="score")
    known = pd.DataFrame(people).pivot(index="id", columns="variant", values="label").reindex(table.index)
    judged, said = (frame["B"] - frame["A"] for frame in (table, known))
    witness = corrected_mean(judged.tolist(), said.tolist(), groups=list(table.index), bounds=(-1, 1))
    assert line["labelled"] == 20
    assert line[["corrected", "corrected_low", "corrected_high"]].tolist() == pytest.approx(
        [witness.value, witness.low, witness.high]
    )
    # The judge sees .15, people .05 of it.
    assert line["difference"] == pytest.approx(0.15, abs=0.01) and line["corrected"] == pytest.approx(0.05, abs=0.01)
    assert line["verdict"].startswith("people, as estimated from labels and judge, score B higher by 0.05")


def test_level_of_corrected_intervals_is_shared_in_a_family() -> None:
    done, people = labelled(20)
    line = only(compare(done, labels=load_labels(people, selection="random")))
    lines = done.scores.assign(metric="style")[["id", "variant", "metric", "judge", "score"]].to_dict("records")
    both = results([*done.scores[["id", "variant", "metric", "judge", "score"]].to_dict("records"), *lines])
    wide = compare(both, labels=load_labels(people, selection="random")).frame.iloc[0]
    assert wide["corrected_high"] - wide["corrected_low"] > (line["corrected_high"] - line["corrected_low"]) * 1.05


def test_labels_of_one_variant_alone_correct_nothing() -> None:
    done, people = labelled(20)
    found = compare(done, labels=load_labels([one for one in people if one["variant"] == "A"], selection="random"))
    assert only(found)["labelled"] == 0
    assert only(found)["verdict"].startswith("ann scores B higher")
    assert any("nothing is corrected" in note for note in found.notes)


def test_few_labels_give_no_verdict_instead_of_the_judges() -> None:
    done, people = labelled(5)
    line = only(compare(done, labels=load_labels(people, selection="random")))
    assert not math.isnan(line["corrected"]) and math.isnan(line["corrected_low"])
    assert line["verdict"].startswith("no verdict: ")


def test_probabilities_weigh_labels_and_must_be_one_for_a_record() -> None:
    done, people = labelled(20)
    known = [one | {"probability": 0.25 if int(one["id"][1:]) < 10 else 0.5} for one in people]
    line = only(compare(done, labels=load_labels(known, selection="probabilities")))
    assert "weighted PPI++" in line["corrected_method"]
    known[0]["probability"] = 0.9
    with pytest.raises(InputError, match="need one probability"):
        compare(done, labels=load_labels(known, selection="probabilities"))


def test_labels_chosen_in_an_unknown_or_wrong_way_are_refused() -> None:
    done, people = labelled(20)
    with pytest.raises(InputError, match="how were they chosen"):
        compare(done, labels=load_labels(people))
    with pytest.raises(InputError, match="chosen by their own value"):
        compare(done, labels=load_labels(people, selection="by_label"))
    with pytest.raises(InputError, match="outside 0 to 1"):
        compare(done, labels=load_labels([people[0] | {"label": 4}, *people[1:]], selection="random"))
    with pytest.raises(InputError, match="no column 'variant'"):
        compare(done, labels=pd.DataFrame({"id": ["1"]}))


# --- refusals ---


def test_what_cannot_be_compared_is_refused_in_one_line() -> None:
    done = results(rows(A=A, B=B))
    for options, said in (
        ({"baseline": "Z"}, "no variant 'Z'; variants: 'A', 'B'"),
        ({"primary": ["style"]}, "no metric 'style'; metrics: grade"),
        ({"primary": "grade"}, "expected a list"),
        ({"metrics": ["style"]}, "no metric 'style'"),
        ({"detect": {"style": 0.1}}, "no metric 'style'"),
        ({"detect": 0}, "other than 0"),
        ({"level": 95}, "level must lie between 0 and 1"),
    ):
        with pytest.raises(InputError, match=said):
            compare(done, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two variants are needed, found 1"):
        compare(results(rows(A=A)))
    apart = [line | {"group": line["variant"]} for line in rows(A=A, B=B)]
    with pytest.raises(InputError, match="'r00' has two groups, 'A' and 'B'"):
        compare(results(apart))


# --- shown ---


def test_html_is_escaped_and_text_has_no_controls() -> None:
    lines = rows(**{"<b>A</b>": A, "B\x1b[31m": B})
    found = compare(results(lines))
    page = found._repr_html_()
    assert "<b>A" not in page and "&lt;b&gt;A" in page and "\x1b" not in page
    assert "\x1b" not in str(found) and "wins/ties/losses" in str(found)
    assert repr(found) == "Comparison(1 metric, 1 pair of variants, 1 of 1 line decided)"


def test_unnamed_variant_is_called_so() -> None:
    lines = [line | {"variant": line["variant"].strip("A")} for line in rows(A=A, B=B)]
    assert "(no name)" in only(compare(results(lines)))["verdict"]


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((-0.001, -0.02, 0.018), "0.00 [-0.02, 0.02]"),
        ((0.06, 0.003, 0.12), "0.060 [0.003, 0.120]"),
        ((5e-9, 1e-9, 9e-9), "5e-09 [1e-09, 9e-09]"),
    ],
)
def test_intervals_in_words(numbers: tuple[float, float, float], shown: str) -> None:
    assert interval(*numbers) == shown


# --- parts ---


def test_a_comparison_survives_a_round_trip_through_files(tmp_path: Any) -> None:
    done = results(rows(A=A, B=B))
    done.save(tmp_path / "kept")
    pd.testing.assert_frame_equal(compare(Results.load(tmp_path / "kept")).frame, compare(done).frame)
    assert json.loads(compare(done).frame.to_json(orient="records"))[0]["n"] == 10


def test_gate_passes_only_above_the_margin() -> None:
    assert outcome(-0.02, 0.1, 0.02) == "inconclusive"
    assert outcome(math.nan, math.nan, 0.02) == "inconclusive"
    assert outcome(-0.2, -0.021, 0.02) == "fail"
    with pytest.raises(InputError):
        outcome(0, 1, -0.1)


def test_bad_pairs_are_refused() -> None:
    with pytest.raises(InputError, match="same length"):
        tally([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="outside 0 to 1"):
        worst_case([2.0], [1.0], (0, 1))
    assert all(math.isnan(end) for end in worst_case([math.nan], [math.nan], (0, 1)))
