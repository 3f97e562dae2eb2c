"""A cascade: who is asked, whose score stands, what the members' rows say, and that costs add up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jurimetrics.calibrate.trust import selective
from jurimetrics.engine.evaluate import evaluate
from jurimetrics.engine.plan import plan
from jurimetrics.errors import InputError
from jurimetrics.judges.baseline import BaselineJudge
from jurimetrics.judges.cascade import Cascade, agreement_confidence
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.panel import Panel
from jurimetrics.labels import load_labels
from jurimetrics.metrics.metric import Score, metric
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.tasks.task import Task
from scripted_judge import ScriptedJudge, answer_all

RECORDS = [{"id": name, "question": "What?", "answer": f"It is {name}."} for name in ("clear", "unclear")]


def rating(judge: str, score: Callable[[str, int], int | JudgeError], **more: Any) -> ScriptedJudge:
    """A judge whose ratings follow from the answer and the repeat."""

    def script(task: Task[Any], repeat: int) -> Any:
        answer = "unclear" if "unclear" in str(dict(task.data)) else "clear"
        said = score(answer, repeat)
        return said if isinstance(said, JudgeError) else answer_all(task, score=said)

    return ScriptedJudge(judge, script, model=judge, **more)


def wavering(answer: str, repeat: int) -> int:
    return 5 if answer == "clear" or repeat == 0 else 1


def rows_of(results: Any, judge: str) -> dict[str, dict[str, Any]]:
    mine = results.scores[results.scores["judge"] == judge]
    return {row["id"]: row for row in mine.drop_duplicates("id").to_dict("records")}


def cheap_and_strong(**more: Any) -> tuple[ScriptedJudge, ScriptedJudge]:
    return rating("mini", wavering, usd=0.001), rating("big", lambda answer, repeat: 2, usd=0.1, **more)


def test_the_next_judge_is_asked_only_where_the_first_is_not_sure() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, big], [0.9]), repeats=3, store=None, progress=False)
    decided = rows_of(results, "cascade")
    assert decided["clear"]["score"] == 5 and decided["unclear"]["score"] == 2
    assert list(decided["unclear"]["flags"]) == ["escalated"] and not list(decided["clear"]["flags"])
    assert decided["unclear"]["reason"].startswith("big answered; ")
    assert len(mini.asked) == 6 and len(big.asked) == 1
    asked = rows_of(results, "big")
    assert asked["clear"]["status"] == "not_applicable"
    assert asked["clear"]["reason"] == "not asked: the cascade stopped before"
    assert asked["unclear"]["status"] == "ok"


def test_costs_sum_to_the_bill_and_the_cascade_takes_no_calls() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(
        RECORDS, ["fluency", "coherence"], Cascade([mini, big], [0.9]), repeats=3, store=None, progress=False
    )
    scores, calls = results.scores, results.calls
    assert scores["judge_cost_usd"].sum() == pytest.approx(calls["cost_usd"].sum(), abs=1e-9)
    assert calls["cost_usd"].sum() == pytest.approx(12 * 0.001 + 2 * 0.1)
    mine = scores[scores["judge"] == "cascade"]
    assert mine["judge_calls"].sum() == 0 and mine["judge_cost_usd"].sum() == 0
    assert len(scores) == 2 * 2 * (3 + 1 + 1)
    assert not scores.duplicated(["id", "variant", "metric", "judge", "repeat"]).any()


def test_the_cascade_stands_for_the_metric_as_a_panel_does() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, big], [0.9]), repeats=3, store=None, progress=False)
    told = results.settings["panel"]
    assert (told["name"], told["members"], told["thresholds"]) == ("cascade", ["mini", "big"], [0.9])
    summary = results.summary()
    assert summary.loc[summary["judge"] == "cascade", ["n", "mean"]].to_numpy().tolist() == [[2.0, 3.5]]
    assert results.azure()[1]["fluency"] == 2.0


def test_a_judge_that_fails_passes_the_question_on() -> None:
    mini = rating("mini", lambda answer, repeat: JudgeError("refused", "no"))
    _, big = cheap_and_strong()
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, big], [0.5]), repeats=3, store=None, progress=False)
    assert [row["score"] for row in rows_of(results, "cascade").values()] == [2, 2]
    assert {row["status"] for row in rows_of(results, "mini").values()} == {"failed"}


def test_a_last_judge_that_fails_is_a_failure_and_one_with_a_threshold_may_abstain() -> None:
    mini, _ = cheap_and_strong()
    broken = rating("big", lambda answer, repeat: JudgeError("refused", "no"))
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, broken], [0.9]), repeats=3, store=None, progress=False)
    assert rows_of(results, "cascade")["unclear"]["error"] == "refused: no"
    unsure = rating("big", wavering)
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, unsure], [0.9, 0.9]), repeats=3, store=None, progress=False)
    row = rows_of(results, "cascade")["unclear"]
    assert row["status"] == "undefined" and list(row["flags"]) == ["abstained"]
    assert row["reason"] == "no judge was sure enough: mini 0.67, big 0.67"


def test_a_panel_is_a_stage_whose_members_are_asked_once() -> None:
    cheap = [rating("mini0", lambda answer, repeat: 5 if answer == "clear" else 1)]
    cheap += [rating(f"mini{at}", lambda answer, repeat: 5) for at in (1, 2)]
    big = rating("big", lambda answer, repeat: 2)
    stages = Cascade([Panel(cheap, rule="median", vote_on="scores"), big], [0.9])
    results = evaluate(RECORDS, ["fluency"], stages, store=None, progress=False)
    decided = rows_of(results, "cascade")
    assert [decided[name]["score"] for name in ("clear", "unclear")] == [5, 2]
    assert [len(judge.asked) for judge in cheap] == [2, 2, 2] and len(big.asked) == 1
    assert "panel" not in set(results.scores["judge"])


def test_a_declared_confidence_needs_no_repeats() -> None:
    mini, big = cheap_and_strong()
    sure = Cascade([mini, big], [1.5], confidence=lambda scores: abs(scores[0] - 3))
    results = evaluate(RECORDS, ["fluency"], sure, store=None, progress=False)
    assert [row["score"] for row in rows_of(results, "cascade").values()] == [5, 5]
    broken = Cascade([mini, big], [1.5], confidence=lambda scores: scores[7])
    results = evaluate(RECORDS, ["fluency"], broken, store=None, progress=False)
    assert {row["error"].split(":")[0] for row in rows_of(results, "cascade").values()} == {"crash"}
    assert not big.asked


def test_a_stage_that_is_never_trusted_is_not_asked() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(RECORDS, ["fluency"], Cascade([mini, big], [None]), repeats=3, store=None, progress=False)
    assert not mini.asked and [row["score"] for row in rows_of(results, "cascade").values()] == [2, 2]


def test_records_that_lack_what_is_needed_say_so_in_every_row() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(
        [{"id": "a", "question": "What?"}],
        ["fluency"],
        Cascade([mini, big], [0.9]),
        repeats=2,
        store=None,
        progress=False,
    )
    assert len(results.scores) == 4 and set(results.scores["reason"]) == {"the record has no answer"}
    assert not mini.asked and not big.asked


@metric(needs=("answer",), range=(0, 1), threshold=0.5, asks=(RateRubric,))
async def silent(record: Any, ask: Any) -> Score:
    """A metric that never has a value."""
    return Score.undefined("nothing to rate")


def test_what_all_voices_find_undefined_is_settled() -> None:
    mini, big = cheap_and_strong()
    results = evaluate(RECORDS, [silent], Cascade([mini, big], [0.9]), repeats=3, store=None, progress=False)
    row = rows_of(results, "cascade")["clear"]
    assert row["status"] == "undefined" and "abstained" not in list(row["flags"])
    assert rows_of(results, "big")["clear"]["status"] == "not_applicable"


def test_claims_are_split_by_the_first_judge_that_can() -> None:
    mini, big = ScriptedJudge("zz-mini", answer_all, model="mini"), ScriptedJudge("aa-big", answer_all, model="big")
    record = {"id": 1, "answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    results = evaluate([record], ["faithfulness"], Cascade([mini, big], [0.9]), repeats=3, store=None, progress=False)
    assert rows_of(results, "cascade")["1"]["score"] == 1 and not big.asked
    assert [request.task.kind for request in mini.asked].count("claims") == 1


def test_a_plan_says_the_most_that_it_can_take() -> None:
    mini, big = cheap_and_strong()
    planned = plan(RECORDS, ["fluency"], Cascade([mini, big], [0.9]), store=None, repeats=3)
    assert dict(planned.frame[["judge", "calls"]].to_numpy().tolist()) == {"mini": 6.0, "big": 2.0}
    assert any("all judges of the cascade" in note for note in planned.notes)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda a, b: Cascade([], [0.9]), "no judges"),
        (lambda a, b: Cascade([a, b], []), "1 or 2"),
        (lambda a, b: Cascade([a, b], [1.5]), "between 0 and 1"),
        (lambda a, b: Cascade([a, b], [None, None]), "ever trusted"),
        (lambda a, b: Cascade([a, a], [0.9]), "two judges are called"),
        (lambda a, b: Cascade([Panel([a]), b], [0.9]), "must vote on scores"),
        (lambda a, b: Cascade([a, object()], [0.9]), "expected a judge or a Panel"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_a_cascade_is_refused(made: Callable[[Any, Any], Cascade], told: str) -> None:
    with pytest.raises(InputError, match=told):
        made(*cheap_and_strong())


def test_what_cannot_be_asked_is_refused_before_anything_is_sent() -> None:
    mini, big = cheap_and_strong()
    for stages, repeats, told in (
        (Cascade([mini, big], [0.9]), 1, "speaks once"),
        (Cascade([BaselineJudge(), big], [0.9]), 3, "speaks once"),
        (Cascade([mini, big], {"coherence": [0.9]}), 3, "no thresholds of fluency"),
    ):
        with pytest.raises(InputError, match=told):
            evaluate(RECORDS, ["fluency"], stages, repeats=repeats, store=None, progress=False)
    assert not mini.asked and not big.asked


def test_agreement_counts_missing_voices_against() -> None:
    assert agreement_confidence([5, None, 1], 5, lambda score: score >= 3, 4) == pytest.approx(1 / 3)
    assert agreement_confidence([5, 5, None, 5], 5, None, 4) == 0.75
    assert agreement_confidence([1, 5], 3, None, 4) == 0


def test_thresholds_of_selective_mean_the_same_to_a_cascade(tmp_path: Path) -> None:
    """Measured on judges asked side by side, then asked as a cascade out of the same store: nobody is asked anew, and each
    record is settled by the judge that the measured confidences say."""
    names = [f"r{at}" for at in range(240)]
    hard = {name: at % 4 == 0 for at, name in enumerate(names)}

    def script(unsteady: bool) -> Callable[[Task[Any], int], Any]:
        def said(task: Task[Any], repeat: int) -> Any:
            name = next(one for one in re.findall(r"r\d+", str(dict(task.data))) if one in hard)
            return answer_all(task, score=1 if unsteady and hard[name] and repeat else 5)

        return said

    judges = [ScriptedJudge("mini", script(True), model="mini"), ScriptedJudge("big", script(False), model="big")]
    records = [{"id": name, "question": "What?", "answer": f"It is {name}."} for name in names]
    common: dict[str, Any] = {"repeats": 3, "store": tmp_path / "store.db", "progress": False}
    results = evaluate(records, ["fluency"], judges, **common)
    people = load_labels([{"id": name, "metric": "fluency", "label": 5} for name in names], selection="random")
    found = selective(results, people, 0.1, 0.2, judges=["mini", "big"])
    assert found.thresholds[0] is not None and found.thresholds[0] > 2 / 3
    asked = [len(judge.asked) for judge in judges]
    cascade = evaluate(records, ["fluency"], Cascade(judges, found.thresholds), **common)
    assert [len(judge.asked) for judge in judges] == asked
    rows = rows_of(cascade, "cascade")
    assert {row["score"] for row in rows.values()} == {5}
    assert {name for name, row in rows.items() if "escalated" in list(row["flags"])} == {n for n in names if hard[n]}
    told = json.loads(rows["r0"]["details"])["panel"]["votes"]
    assert [(one["stage"], round(one["confidence"], 2)) for one in told] == [("mini", 0.67), ("big", 1.0)]
