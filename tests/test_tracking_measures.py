"""What a run shows of its answers is what `Results.indicators` says, by hand-computed values."""

from __future__ import annotations

from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.tracking.measures import Evaluation, measures

TEXT = {
    "question": "Where is Madrid?",
    "answer": "Madrid is in Spain.",
    "reference": "It is in Spain.",
    "contexts": ["Madrid is in Spain.", "Rome is in Italy."],
}
KNOWN = {"prompt_tokens": 90, "completion_tokens": 10, "cost_usd": 0.002, "latency_s": 1.0}


def logged(
    *taken: dict[str, Any], metrics: tuple[str, ...] = ("context_precision",), judges: Any = None
) -> dict[str, float]:
    records = [TEXT | {"id": str(at)} | one for at, one in enumerate(taken)]
    results = jm.evaluate(records, list(metrics), judges or jm.BaselineJudge(), store=None, progress=False)
    return {
        name: value for name, value in measures(Evaluation.of(results)).values.items() if name.startswith("answers/")
    }


def test_means_and_totals_of_what_is_known_of_all() -> None:
    found = logged(KNOWN, KNOWN | {"prompt_tokens": 190, "cost_usd": 0.004, "latency_s": 2.0})
    relevance = found.pop("answers/context_relevance")
    assert 0 <= relevance <= 1
    assert found == pytest.approx(
        {
            "answers/latency_s": 1.5, "answers/latency_s_p95": 1.95,
            "answers/prompt_tokens": 140, "answers/prompt_tokens_total": 280,
            "answers/completion_tokens": 10, "answers/completion_tokens_total": 20,
            "answers/tokens": 150, "answers/tokens_total": 300,
            "answers/cost_usd": 0.003, "answers/cost_usd_total": 0.006,
            "answers/failed": 0,
        }
    )  # fmt: skip


def test_totals_of_which_some_are_unknown_are_at_least() -> None:
    found = logged(KNOWN, {"latency_s": 2.0, "prompt_tokens": 50})
    assert found["answers/prompt_tokens_total"] == 140
    assert "answers/tokens_total" not in found and "answers/cost_usd_total" not in found
    assert (found["answers/tokens"], found["answers/tokens_total_at_least"]) == (100, 100)
    assert (found["answers/cost_usd"], found["answers/cost_usd_total_at_least"]) == (0.002, 0.002)


def test_what_nobody_knows_is_not_logged() -> None:
    assert set(logged({}, {})) == {"answers/context_relevance"}
    assert logged({}, {}, metrics=("fluency",)) == {}


def test_relevance_is_the_headline_judges_and_unknown_where_there_is_none() -> None:
    two = [jm.BaselineJudge("one"), jm.BaselineJudge("two")]
    assert "answers/context_relevance" not in logged(KNOWN, judges=two)
    results = jm.evaluate([TEXT], ["context_precision"], two, store=None, progress=False)
    assert Evaluation.of(results).headline == {}
    alone = jm.evaluate([TEXT], ["context_precision"], two[0], store=None, progress=False)
    whole = Evaluation.of(alone)
    assert whole.headline == {"context_precision": "one"}
    assert measures(whole).values["answers/context_relevance"] == measures(whole).values["context_precision"]
