"""A variant that refuses its hardest 30 % and would otherwise win: what shows it, and what makes it lose."""

from __future__ import annotations

from functools import cache
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from jurimetrics.display import summary_text
from jurimetrics.metrics import faithfulness
from scripted_judge import ScriptedJudge, answer_all, sentence_labels, verdicts

RECORDS = 20
HARD = 6  # 30 %: here the one that answers is half right, the abstainer says nothing
STRICT = faithfulness.using(refusals="worst")
EXCLUDING = ["faithfulness", "noise_sensitivity", "alignment_correctness"]


def answer(at: int, variant: str) -> str:
    if at >= HARD:
        return f"Lock {at} is old. Lock {at} has a gate."
    return "I don't know." if variant == "abstainer" else f"Lock {at} is old. Lock {at} is false."


def script(task: Any, repeat: int) -> Any:
    """Everything is supported but what says that it is false; a refusal states nothing."""
    if task.kind == "claims" and "don't know" in task.text:
        return {"sentences": [{"at": 1, "check": "non_factual", "claims": []}]}
    if task.kind == "check":
        return verdicts(task, lambda claim: "unknown" if "false" in claim else "supported")
    if task.kind == "sentences":
        return sentence_labels(
            task, lambda text: "no_check" if "know" in text else "unsupported" if "false" in text else "supported"
        )
    return answer_all(task)


@cache
def judged() -> jm.Results:
    records = [
        {"id": str(at), "variant": variant, "question": f"What is lock {at}?", "answer": answer(at, variant),
         "contexts": [f"Lock {at} is old and has a gate."], "reference": f"Lock {at} is old."}
        for at in range(RECORDS)
        for variant in ("answerer", "abstainer")
    ]  # fmt: skip
    metrics = [*EXCLUDING, "hallucination", "alignment", STRICT]
    return jm.evaluate(records, metrics, ScriptedJudge("ada", script), store=None)


def line(metric: str, variant: str) -> pd.Series[Any]:
    table = judged().summary()
    found = table[(table["metric"] == metric) & (table["variant"] == variant)]
    assert len(found) == 1
    return found.iloc[0]


def test_the_abstainer_wins_where_refusals_are_left_out() -> None:
    answerer, abstainer = line("faithfulness", "answerer"), line("faithfulness", "abstainer")
    # 14 wholly right and 6 half right of 20; 14 of 14 wholly right.
    assert answerer["mean"] == pytest.approx((14 + 3) / 20) and abstainer["mean"] == 1.0
    assert (answerer["n"], abstainer["n"], abstainer["undefined"]) == (20, 14, 6)


def test_its_answered_share_stands_beside_the_mean() -> None:
    assert (line("faithfulness", "answerer")["answered"], line("faithfulness", "abstainer")["answered"]) == (1.0, 0.7)
    shown = [" ".join(text.split()) for text in summary_text(judged()).splitlines()]
    row = next(text for text in shown if text.startswith("faithfulness ada abstainer"))
    assert "1.000 14 70%" in row


def test_it_loses_where_refusals_count_as_the_worst() -> None:
    answerer, abstainer = line(STRICT.name, "answerer"), line(STRICT.name, "abstainer")
    assert abstainer["mean"] == pytest.approx(14 / 20) and answerer["mean"] == pytest.approx(17 / 20)
    assert abstainer["n"] == 20 and abstainer["answered"] == 0.7


def test_it_loses_where_what_is_left_out_counts() -> None:
    assert line("alignment", "abstainer")["mean"] < line("alignment", "answerer")["mean"]


def test_one_note_warns_for_all_metrics_that_see_the_same() -> None:
    warnings = [note for note in judged().notes() if "differ in how often they answer" in note]
    assert warnings == [
        f"faithfulness, noise_sensitivity, alignment_correctness, alignment, {STRICT.name}: the variants differ in how "
        "often they answer (answerer 100.0%, abstainer 70.0%; judge ada). A mean that leaves non-answers out favours the "
        "one that answers less."
    ]
    assert judged().summary().attrs["notes"] == judged().notes()


def test_metrics_that_see_it_otherwise_have_a_note_of_their_own() -> None:
    # One refusal more, of a record without a reference: only what needs none sees it.
    records = judged().records.to_dict("records")
    wanted = ("id", "variant", "question", "answer", "contexts", "reference")
    records = [{name: record[name] for name in wanted} for record in records]
    last = next(record for record in reversed(records) if record["variant"] == "abstainer")
    del last["reference"]
    last["answer"] = "I don't know."
    found = jm.evaluate(records, ["faithfulness", "alignment"], ScriptedJudge("ada", script), store=None)
    warnings = [note for note in found.notes() if "differ in how often" in note]
    assert [note.split(":")[0] for note in warnings] == ["faithfulness", "alignment_correctness, alignment"]
    assert "abstainer 65.0%" in warnings[0] and "abstainer 70.0%" in warnings[1]


def test_no_note_where_all_answer_alike() -> None:
    records = [record for record in judged().records.to_dict("records") if int(record["id"]) >= HARD]
    wanted = ("id", "variant", "question", "answer", "contexts", "reference")
    same = [{name: record[name] for name in wanted} for record in records]
    found = jm.evaluate(same, ["faithfulness"], ScriptedJudge("ada", script), store=None)
    assert not [note for note in found.notes() if "differ in how often" in note]
