"""Results: the summary and its notes, thresholds, failures, disagreements, saving, recorded scores."""

from __future__ import annotations

import dataclasses
import gc
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.frames import RowWriter, ScoreRow, UseRow
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.records import Record
from jurimetrics.results import Results
from test_frames import call

HIGH = {"range": [0, 1], "higher_is_better": True, "threshold": 0.5, "asks_claims": False}
LOW = {**HIGH, "higher_is_better": False}
CLAIMS = {**HIGH, "asks_claims": True}


def row(identity: str = "1", value: float | None = 0.5, **changes: Any) -> ScoreRow:
    made = ScoreRow(identity, "", "m", "j", 0, identity, value, "ok" if value is not None else "undefined", "because")
    return dataclasses.replace(made, **changes)


def results(folder: Path, *rows: Any, metrics: Any = None, **settings: Any) -> Results:
    writer = RowWriter(folder)
    scores = [one for one in rows if isinstance(one, ScoreRow)]
    records = {(one.id, one.variant): one for one in rows if isinstance(one, Record)}
    for one in scores:
        records.setdefault((one.id, one.variant), Record(one.id, answer="an answer", variant=one.variant))
        writer.score(one)
    for record in records.values():
        writer.record(record)
    for one in rows:
        if isinstance(one, UseRow):
            writer.use(one)
        elif not isinstance(one, ScoreRow | Record):
            writer.call(one)
    writer.close({"metrics": metrics or {"m": HIGH}, "judges": {"j": {"kind": "chat"}}, **settings})
    return Results.load(folder)


def line(found: Results, at: int = 0) -> Any:
    return found.summary().iloc[at]


# -- the summary


def test_s01_unmeasured_is_neither_pass_nor_fail(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row("1", 0.8), row("2", None), row("3", 0.9))
    one = line(found)
    assert one["mean"] == pytest.approx(0.85)
    assert (one["n"], one["asked"], one["ok"], one["undefined"]) == (2, 3, 2, 1)
    assert one["missing"] == pytest.approx(1 / 3)
    assert one["pass_rate"] == 1.0
    assert found.scores["passed"].tolist() == [True, pd.NA, True]
    assert found.scores["passed"].dtype == "boolean"


def test_s01_the_same_from_a_recorded_frame() -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "metric": "m", "judge": "j", "score": [0.8, None, 0.9]})
    one = line(Results.from_frame(frame, {"m": {"range": (0, 1), "threshold": 0.5}}))
    assert (one["mean"], one["n"], one["undefined"], one["pass_rate"]) == (pytest.approx(0.85), 2, 1, 1.0)


@pytest.mark.parametrize(
    ("declared", "value", "passed"),
    [
        (HIGH, 0.5, True),
        (LOW, 0.5, True),
        (HIGH, 0.49, False),
        (LOW, 0.51, False),
        (LOW, 0.2, True),
        (HIGH, 0.94, True),
    ],
)
def test_s11_equality_passes_in_either_direction(tmp_path: Path, declared: Any, value: float, passed: bool) -> None:
    found = results(tmp_path / "out", row("1", value), metrics={"m": declared})
    assert found.scores["passed"].tolist() == [passed]
    assert line(found)["pass_rate"] == float(passed)
    assert line(found)["higher_is_better"] == declared["higher_is_better"]


def test_s11_a_threshold_outside_the_range_is_refused(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row())
    with pytest.raises(InputError, match="m: threshold 3 is outside the range 0 to 1"):
        found.with_thresholds({"m": 3})
    with pytest.raises(InputError, match="no metric 'x'; there are: m"):
        found.with_thresholds({"x": 0.5})
    for wrong in (True, "0.5", math.nan):
        with pytest.raises(InputError):
            found.with_thresholds({"m": wrong})  # type: ignore[dict-item]


def test_thresholds_apply_afterwards_and_change_nothing_else(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row("1", 0.4), row("2", 0.6))
    strict, none = found.with_thresholds({"m": 0.9}), found.with_thresholds({"m": None})
    assert strict.scores["passed"].tolist() == [False, False]
    assert strict.settings["metrics"]["m"]["threshold"] == 0.9
    assert none.scores["passed"].isna().all() and math.isnan(line(none)["pass_rate"])
    assert found.scores["passed"].tolist() == [False, True]
    assert line(found)["threshold"] == 0.5


def test_d09_a_variant_without_a_scored_row_has_no_value(tmp_path: Path) -> None:
    failed = row("2", None, variant="b", status="failed", error="timeout: no answer within 60 s")
    found = results(tmp_path / "out", row("1", variant="a"), failed, variants=["a", "b"])
    table = found.summary()
    assert table["n"].tolist() == [1, 0]
    assert math.isnan(table.loc[1, "mean"]) and math.isnan(table.loc[1, "pass_rate"])  # type: ignore[arg-type]
    assert table.loc[1, "method"] == "no scored rows"
    assert table.loc[1, "missing"] == 1.0


def test_d09_unused_categories_and_no_rows_at_all_are_no_fault(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["1", "2"], "metric": "m", "judge": "j", "score": [0.1, 0.2]})
    frame["group"] = pd.Categorical(["x", "x"], categories=["x", "empty"])
    assert line(Results.from_frame(frame))["n"] == 2
    empty = results(tmp_path / "out")
    assert len(empty.summary()) == 0 and len(empty.scores) == 0 and len(empty.failures()) == 0
    assert "mean" in empty.summary().columns
    assert str(empty.totals()).startswith("cost $0,")


def test_every_row_asked_for_is_counted_once(tmp_path: Path) -> None:
    rows = [
        row("1"),
        row("2", None),
        row("3", None, status="not_applicable"),
        row("4", None, status="failed", error="crash: x"),
    ]
    one = line(results(tmp_path / "out", *rows))
    assert one["asked"] == one["ok"] + one["undefined"] + one["not_applicable"] + one["failed"] == 4


def test_interval_is_clustered_by_group_and_within_the_range(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    values = random.random(40).round(3)
    rows = [row(str(at), float(value), group=str(at // 4)) for at, value in enumerate(values)]
    one = line(results(tmp_path / "out", *rows))
    sums = (values - values.mean()).reshape(10, 4).sum(axis=1)
    error = math.sqrt(float((sums**2).sum()) * 10 / 9) / 40
    assert one["method"] == "mean; cluster-robust t over 10 groups"
    assert one["high"] - one["mean"] == pytest.approx(2.262157 * error, rel=1e-6)


def test_repeats_are_averaged_first_and_their_spread_is_shown(tmp_path: Path) -> None:
    rows = [row("1", value, repeat=at) for at, value in enumerate([0.2, 0.4, 0.6])]
    rows += [row("2", 0.9, repeat=at) for at in range(3)] + [row("3", 0.1)]
    one = line(results(tmp_path / "out", *rows))
    assert one["mean"] == pytest.approx((0.4 + 0.9 + 0.1) / 3)
    assert (one["n"], one["ok"]) == (3, 7)
    # Variances .04 and 0 of the two records that were asked several times; 2 of 3 pairs of the first differ in passing.
    assert one["within_sd"] == pytest.approx(math.sqrt(0.02))
    assert one["flip_rate"] == pytest.approx(1 / 3)
    assert one["pass_rate"] == pytest.approx((1 / 3 + 1 + 0) / 3)


def test_no_repeats_no_spread(tmp_path: Path) -> None:
    assert math.isnan(line(results(tmp_path / "out", row("1"), row("2")))["within_sd"])


def test_answered_share_and_the_note_where_variants_differ(tmp_path: Path) -> None:
    rows: list[Any] = [row(str(at), variant="a") for at in range(10)]
    rows += [
        row(str(at), None if at < 3 else 0.9, variant="b", flags=("no_claims",) if at < 3 else ()) for at in range(10)
    ]
    rows.append(Record("9", answer=None, variant="b"))
    found = results(tmp_path / "out", *rows, metrics={"m": CLAIMS}, variants=["a", "b"])
    # Variant b: 9 rows with an answer, 3 of them without claims.
    assert found.summary()["answered"].tolist() == [1.0, pytest.approx(6 / 9)]
    assert any(
        "m: the variants differ in how often they answer (a 100.0%, b 66.7%; judge j)" in note for note in found.notes()
    )
    assert found.summary().attrs["notes"] == found.notes()


def test_answered_share_is_not_there_where_claims_are_not_asked(tmp_path: Path) -> None:
    assert math.isnan(line(results(tmp_path / "out", row("1", flags=("no_claims",))))["answered"])


def test_a_blank_answer_is_an_answer_that_holds_no_claims(tmp_path: Path) -> None:
    found = results(
        tmp_path / "out", Record("1", answer=" "), row("1", None, flags=("no_claims",)), metrics={"m": CLAIMS}
    )
    assert line(found)["answered"] == 0.0


def test_panel_stands_first_and_judges_by_name(tmp_path: Path) -> None:
    rows = [row(judge=name) for name in ("b", "a")] + [row(judge="panel", panel=True, disagreement=0.25)]
    table = results(tmp_path / "out", *rows).summary()
    assert table["judge"].tolist() == ["panel", "a", "b"]
    assert table.loc[0, "disagreement"] == 0.25


# -- money


def test_k04_a_second_run_spends_nothing_and_shows_what_it_saved(tmp_path: Path) -> None:
    use = UseRow("a", "1", "", "m", "j", 0)
    first = results(tmp_path / "first", row(), call(), use).totals()
    second = results(tmp_path / "second", row(), call(from_store=True, cost_usd=0.0, saved_usd=0.01), use)
    assert (second.totals().cost_usd, second.totals().saved_usd) == (0.0, first.cost_usd)
    assert (second.totals().calls, second.totals().cached_calls, second.totals().prompt_tokens) == (0, 1, 0)
    assert (line(second)["cost_usd"], line(second)["calls"], line(second)["cached"]) == (0.0, 0, 1)


def test_k05_totals_say_at_least_where_a_price_is_unknown(tmp_path: Path) -> None:
    rows = [row("1"), row("2"), call("a"), call("b", cost_usd=None), UseRow("a", "1", "", "m", "j", 0),
            UseRow("b", "2", "", "m", "j", 0)]  # fmt: skip
    found = results(tmp_path / "out", *rows)
    totals = found.totals()
    assert (totals.cost_usd, totals.at_least_usd, totals.unpriced_calls) == (None, 0.01, 1)
    assert str(totals).startswith("cost at least $0.01 (1 call without a known price)")
    assert math.isnan(line(found)["cost_usd"]) and line(found)["at_least_cost"] == 0.01
    assert "Costs are at least what is shown: 1 call without a known price." in found.notes()


def test_k09_unknown_tokens_are_not_zero(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row(), call(completion_tokens=None), UseRow("a", "1", "", "m", "j", 0))
    assert found.totals().completion_tokens is None and found.totals().at_least_tokens == 100
    assert math.isnan(line(found)["tokens"])


def test_a_shared_call_counts_in_each_line_and_once_in_the_totals(tmp_path: Path) -> None:
    rows = [
        row(metric="m"),
        row(metric="k"),
        call(),
        UseRow("a", "1", "", "m", "j", 0),
        UseRow("a", "1", "", "k", "j", 0),
    ]
    found = results(tmp_path / "out", *rows, metrics={"m": HIGH, "k": HIGH})
    assert found.summary()["calls"].tolist() == [1, 1]
    assert found.summary()["cost_usd"].tolist() == [0.005, 0.005]
    assert (found.totals().calls, found.totals().cost_usd) == (1, 0.01)


# -- failures and disagreements


def test_failures_are_listed_by_kind_most_frequent_first(tmp_path: Path) -> None:
    def failed(identity: str, error: str) -> ScoreRow:
        return row(identity, None, status="failed", error=error)

    rows = [
        row("0"),
        failed("3", "unparsed: no JSON: at all"),
        failed("2", "timeout: 60 s"),
        failed("1", "timeout: 61 s"),
    ]
    found = results(tmp_path / "out", *rows)
    listed = found.failures()
    assert listed[["id", "kind", "message", "of_kind"]].to_numpy().tolist() == [
        ["1", "timeout", "61 s", 2], ["2", "timeout", "60 s", 2], ["3", "unparsed", "no JSON: at all", 1],
    ]  # fmt: skip
    assert found.notes()[0] == "3 rows failed (timeout 2, unparsed 1); failures() lists them."
    assert found.totals().failed_rows == 3


def test_disagreements_put_what_each_judge_said_side_by_side(tmp_path: Path) -> None:
    rows = []
    for identity, spread, other in (("1", 0.1, 0.5), ("2", 0.9, None), ("3", 0.4, 0.9)):
        rows.append(row(identity, 0.5, judge="panel", panel=True, disagreement=spread))
        rows.append(row(identity, 0.4, judge="a", reason=f"a of {identity}"))
        error = {} if other is not None else {"status": "failed", "error": "refused: no"}
        rows.append(row(identity, other, judge="b", reason=f"b of {identity}", **error))
    listed = results(tmp_path / "out", *rows).disagreements()
    assert listed["id"].tolist() == ["2", "3", "1"]
    assert listed["disagreement"].tolist() == [0.9, 0.4, 0.1]
    assert listed["score:b"].tolist()[1:] == [0.9, 0.5] and math.isnan(listed["score:b"].tolist()[0])
    assert listed["reason:b"].tolist() == ["refused: no", "b of 3", "b of 1"]
    assert listed["reason:a"].tolist() == ["a of 2", "a of 3", "a of 1"]


def test_a_judge_that_computes_stands_beside_every_repeat(tmp_path: Path) -> None:
    rows = [row("1", 0.5, judge="panel", panel=True, disagreement=0.1, repeat=at) for at in (0, 1)]
    rows += [row("1", 0.5 + at / 10, judge="a", repeat=at) for at in (0, 1)] + [row("1", 0.3, judge="baseline")]
    listed = results(tmp_path / "out", *rows).disagreements()
    assert listed["score:baseline"].tolist() == [0.3, 0.3]
    assert listed["score:a"].tolist() == [0.5, 0.6]


def test_one_judge_alone_cannot_disagree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two judges"):
        results(tmp_path / "out", row()).disagreements()


# -- saving and loading


def test_save_and_load_give_the_same_frames(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row("1"), row("2", None), call(), UseRow("a", "1", "", "m", "j", 0))
    again = Results.load(found.with_thresholds({"m": 0.25}).save(tmp_path / "deep/saved"))
    assert again.settings["metrics"]["m"]["threshold"] == 0.25
    for name in ("scores", "calls", "records"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))


def test_saving_replaces_results_and_nothing_else(tmp_path: Path) -> None:
    one = results(tmp_path / "one", row("1"))
    two = results(tmp_path / "two", row("2"), row("3"))
    one.save(tmp_path / "saved")
    assert len(Results.load(two.save(tmp_path / "saved")).scores) == 2
    one.with_thresholds({"m": 1.0}).save(tmp_path / "one")
    assert Results.load(tmp_path / "one").settings["metrics"]["m"]["threshold"] == 1.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "saved", "two"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="something other than results"):
        one.save(tmp_path / "mine")
    assert (tmp_path / "mine/thesis.txt").exists()


def test_loading_names_what_is_missing_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Results.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such folder"):
        Results.load("x" * 5000)
    with pytest.raises(InputError, match=r"no settings\.json"):
        Results.load(tmp_path)
    found = results(tmp_path / "out", row("1"))
    next((tmp_path / "out/scores").iterdir()).unlink()
    with pytest.raises(InputError, match="1 rows were written, 0 are there"):
        Results.load(found.folder)
    results(tmp_path / "other", row("1"))
    pd.DataFrame({"id": ["1"]}).to_parquet(tmp_path / "other/scores/part-00000.parquet")
    with pytest.raises(InputError, match="lacks the column 'variant'"):
        Results.load(tmp_path / "other")


def test_frames_given_out_are_copies(tmp_path: Path) -> None:
    found = results(tmp_path / "out", row("1"))
    for name in ("scores", "records", "calls"):
        mine = getattr(found, name)
        mine["mine"] = 1
        assert "mine" not in getattr(found, name).columns
    found.settings["metrics"]["m"]["threshold"] = 0.9
    assert found.settings["metrics"]["m"]["threshold"] == 0.5


def test_a_temporary_folder_lives_as_long_as_a_view_of_it() -> None:
    first = Results.from_frame(pd.DataFrame({"id": ["1"], "metric": "m", "judge": "j", "score": [0.5]}))
    second = first.with_thresholds({"m": 0.5})
    folder = first.folder
    del first
    gc.collect()
    assert len(second.scores) == 1
    del second
    gc.collect()
    assert not folder.exists()


# -- recorded scores


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ["1", "2"], "metric": "m", "judge": "j", "score": [0.2, 0.8], **columns})


def test_recorded_scores_keep_group_reason_and_variant() -> None:
    given = frame(group=["g", "g"], reason=["why", None], variant="v", repeat=[0, 1], note="left out")
    before = given.copy()
    found = Results.from_frame(given).scores
    pd.testing.assert_frame_equal(given, before)
    assert found[["id", "variant", "group", "reason", "repeat"]].to_numpy().tolist() == [
        ["1", "v", "g", "why", 0], ["2", "v", "g", "", 1],
    ]  # fmt: skip


def test_recorded_scores_say_that_a_range_comes_from_the_data() -> None:
    found = Results.from_frame(frame())
    assert found.settings["metrics"]["m"]["range"] == [0.2, 0.8]
    assert found.settings["metrics"]["m"]["range_from_data"] is True
    assert "Range taken from the data, higher taken as better: m." in found.notes()


def test_recorded_scores_take_a_metric_for_its_scale() -> None:
    @metric(needs=["answer"], range=(0, 1), higher_is_better=False, threshold=0.2)
    async def m(record: Any, ask: Any) -> Score:
        return Score(1.0)

    found = Results.from_frame(frame(), {"m": m})
    assert found.scores["passed"].tolist() == [True, False]
    assert "range_from_data" not in found.settings["metrics"]["m"]


def test_what_recorded_judges_took_is_unknown() -> None:
    found = Results.from_frame(frame())
    assert found.scores["judge_cost_usd"].isna().all() and math.isnan(line(found)["cost_usd"])
    assert found.totals().cost_usd is None


def test_recorded_failures_stay_failures() -> None:
    found = Results.from_frame(frame(score=[None, 0.8], error=["timeout: 60 s", None]))
    assert found.scores["status"].tolist() == ["failed", "ok"]


@pytest.mark.parametrize(
    ("columns", "metrics", "says"),
    [
        ({"score": ["good", 1]}, {}, "row 1, column 'score': expected a number, found 'good'"),
        ({"score": [math.inf, 1]}, {}, "row 1, column 'score': expected a number"),
        ({"id": ["1", "1"]}, {}, "row 1 and row 2 are the same"),
        ({"id": ["1", None]}, {}, "row 2, column 'id': expected text, found nothing"),
        ({"judge": [None, "j"]}, {}, "row 1, column 'judge'"),
        ({}, {"m": {"range": (0, 0.5)}}, "row 2: m of '2' is 0.8, outside 0 to 0.5"),
        ({}, {"m": {"range": (0, 1), "threshold": 3}}, "threshold 3 is outside the range"),
        ({}, {"m": {"range": (1, 0)}}, "a range is two numbers"),
        ({}, {"m": {"treshold": 1}}, "'treshold' is not known of a metric"),
        ({}, {"n": None}, "no scores for the metric 'n'; there are: m"),
        ({"error": ["timeout: x", None]}, {}, "row 1 has both a score and an error"),
        ({"score": [None, 1], "error": ["oops", None]}, {}, "does not begin with one of timeout"),
        ({"id": ["1", "1"], "judge": ["j", "k"], "group": ["x", "y"]}, {}, "'1' has two groups"),
    ],
)
def test_recorded_scores_that_cannot_be_used_are_refused(columns: Any, metrics: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Results.from_frame(frame(**columns), metrics)


def test_recorded_scores_need_their_columns() -> None:
    with pytest.raises(InputError, match="scores need one column 'judge'; found: id, metric, score"):
        Results.from_frame(frame().drop(columns="judge"))
    with pytest.raises(InputError, match="no scores"):
        Results.from_frame(frame().iloc[:0])
    with pytest.raises(InputError, match="expected a DataFrame"):
        Results.from_frame([{"id": "1"}])  # type: ignore[arg-type]


def test_shuffled_scores_give_the_same_summary() -> None:
    random = np.random.default_rng(1)
    given = pd.DataFrame(
        [(str(at), m, j, float(random.random())) for at in range(30) for m in ("m", "k") for j in ("a", "b", "c")],
        columns=["id", "metric", "judge", "score"],
    )
    shuffled = given.sample(frac=1, random_state=2).set_index(pd.Index(range(7, 7 + len(given))))
    scale = {name: {"range": (0, 1), "threshold": 0.5} for name in ("m", "k")}
    one, other = (Results.from_frame(one, scale).summary() for one in (given, shuffled))
    pd.testing.assert_frame_equal(
        one.sort_values(["metric", "judge"], ignore_index=True),
        other.sort_values(["metric", "judge"], ignore_index=True),
    )


def test_summary_never_reads_the_long_texts(tmp_path: Path) -> None:
    found = results(tmp_path / "out", *(row(str(at), details={"reply": "x" * 100}) for at in range(20)))
    found.summary()
    assert "scores" not in found._frames and "details" not in found._frames["light"].columns


def test_importing_results_loads_nothing_heavy() -> None:
    heavy = ["scipy", "matplotlib", "mlflow", "sklearn", "statsmodels", "openai"]
    program = (
        "import sys, json, jurimetrics.results, jurimetrics.display, jurimetrics.stats.estimate; "
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
