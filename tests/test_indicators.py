"""Automatic indicators: what the answers took and the relevance of their documents, apart from what judging took."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics.display import results_html, summary_text
from jurimetrics.errors import InputError
from jurimetrics.results.indicators import INDICATORS
from scripted_judge import ScriptedJudge, answer_all, ratings

BASE = {"question": "What is it?", "answer": "It is old.", "contexts": ["It is old.", "Bread."], "reference": "Old."}
TAKEN = {"latency_s": 0.5, "prompt_tokens": 90, "completion_tokens": 10, "cost_usd": 0.001}
RECORDS = [
    BASE | TAKEN | {"id": "1", "variant": "a"},
    BASE | {"id": "2", "variant": "a", "latency_s": 1.5, "prompt_tokens": 50},
    BASE | {"id": "1", "variant": "b"},
]  # fmt: skip


def judge(name: str = "ada", *scores: int) -> ScriptedJudge:
    given = scores or (8, 2)
    return ScriptedJudge(name, lambda task, _: ratings(task, *given) if task.kind == "documents" else answer_all(task))


def run(judges: Any = None, metrics: Any = ("context_precision", "coherence"), records: Any = RECORDS) -> jm.Results:
    return jm.evaluate(list(records), list(metrics), judges or judge(), store=None)


def test_per_record_what_is_known_and_nothing_else() -> None:
    found = run().indicators()
    assert found.columns.tolist() == ["id", "variant", *INDICATORS]
    first = found.iloc[0]
    assert first[list(INDICATORS)].tolist() == [0.5, 90, 10, 100, 0.001, 0.5]
    # Half of the tokens unknown: the sum is unknown; unknown is never 0.
    assert pd.isna(found.loc[1, "answer_tokens"]) and found.loc[1, "answer_prompt_tokens"] == 50
    assert math.isnan(found.loc[1, "answer_cost_usd"])
    assert found.loc[2, list(INDICATORS)[:-1]].isna().all()  # type: ignore[union-attr]
    assert found.loc[2, "context_relevance"] == 0.5


def test_per_variant_means_over_the_known_and_totals_only_of_all() -> None:
    found = run().indicators("variant").set_index(["variant", "indicator"])
    latency, cost = found.loc[("a", "answer_latency_s")], found.loc[("a", "answer_cost_usd")]
    assert latency[["mean", "n", "records", "total", "at_least"]].tolist() == [1.0, 2, 2, 2.0, 2.0]
    assert cost[["mean", "n", "records", "at_least"]].tolist() == [0.001, 1, 2, 0.001] and math.isnan(cost["total"])
    nothing = found.loc[("b", "answer_cost_usd")]
    assert nothing["n"] == 0 and nothing[["mean", "total", "at_least"]].isna().all()
    relevance = found.loc[("b", "context_relevance")]
    assert (relevance["mean"], relevance["n"]) == (0.5, 1) and math.isnan(relevance["total"])


def test_what_judging_costs_is_no_part_of_it() -> None:
    dear = ScriptedJudge("ada", judge().script, usd=9.0)
    pd.testing.assert_frame_equal(run(dear).indicators(), run().indicators())
    assert run(dear).totals().cost_usd == pytest.approx(9.0 * len(run(dear).calls))


def test_relevance_is_the_panels_else_the_only_judges_else_the_one_named() -> None:
    judges = [judge("ada", 8, 2), judge("bob", 4, 2), judge("cem", 0, 0)]
    # Median of the members document by document: .4 and .2.
    assert run(jm.Panel(judges)).indicators()["context_relevance"].tolist() == pytest.approx([0.3] * 3)
    assert run(judges).indicators()["context_relevance"].isna().all()
    assert run(judges).indicators(judge="ada")["context_relevance"].tolist() == [0.5] * 3


def test_relevance_that_was_not_evaluated_is_unknown() -> None:
    assert run(metrics=["coherence"]).indicators()["context_relevance"].isna().all()


def test_repeats_are_averaged() -> None:
    script = lambda task, repeat: ratings(task, 10, 10 * repeat) if task.kind == "documents" else answer_all(task)  # noqa: E731
    found = jm.evaluate(RECORDS[:1], ["context_precision"], ScriptedJudge("ada", script), store=None, repeats=2)
    assert found.indicators()["context_relevance"].tolist() == [0.75]


def test_the_summary_shows_them_where_any_is_known() -> None:
    text = summary_text(run(), 200)
    assert (
        "* Answers of a, without what judging took: 1 s each, 100 tokens each (1 of 2 known), $0.001 each, $0.001 for "
        "the 1 of 2 whose cost is known, documents of relevance 0.50." in text
    )
    assert "Answers of b, without what judging took: documents of relevance 0.50." in text
    assert "Answers of a, without what judging took: 1 s each" in results_html(run())
    plain = run(metrics=["coherence"], records=[BASE | {"id": "1"}])
    assert "without what judging took" not in summary_text(plain) + results_html(plain)


def test_many_variants_are_cut_and_said_so() -> None:
    many = run(records=[BASE | TAKEN | {"id": "1", "variant": f"v{at}"} for at in range(14)])
    assert summary_text(many).count("without what judging took") == 10
    assert "4 more variants are not shown." in summary_text(many)


def test_saved_and_recorded_results_have_them_too(tmp_path: Path) -> None:
    saved = jm.Results.load(run().save(tmp_path / "saved"))
    pd.testing.assert_frame_equal(saved.indicators(), run().indicators())
    frame = pd.DataFrame({"id": ["1"], "metric": "context_precision", "judge": "j", "score": [0.25]})
    found = jm.Results.from_frame(frame, {"context_precision": {"range": (0, 1)}}).indicators()
    assert found["context_relevance"].tolist() == [0.25] and found[list(INDICATORS)[:-1]].isna().all(axis=None)


def test_they_are_read_without_the_texts() -> None:
    found = run()
    found.indicators()
    assert "records" not in found._frames and "scores" not in found._frames


def test_another_grouping_is_refused() -> None:
    with pytest.raises(InputError, match="per 'record' or per 'variant', not 'group'"):
        run().indicators("group")  # type: ignore[arg-type]


def test_types_hold_with_nothing_known() -> None:
    found = run(metrics=["coherence"], records=[BASE | {"id": "1"}]).indicators()
    assert found["answer_latency_s"].dtype == np.float64 and str(found["answer_tokens"].dtype) == "Int64"
