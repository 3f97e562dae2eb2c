"""Evaluations through a real small language model behind a real OpenAI-compatible server that nobody here wrote.

The model (135 million parameters) judges at chance: this proves protocol, usage, schema, failures and resume, never quality.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest

pytestmark = pytest.mark.local_model

RECORDS = [
    {
        "id": str(at),
        "question": "Where is Oslo?",
        "answer": answer,
        "contexts": ["Oslo is in Norway."],
        "reference": "Norway.",
    }
    for at, answer in enumerate(("Oslo is in Norway.", "In Chile."))
]


# Without these the server's memory of the last prompt changes a reply, and so small a model goes in circles.
STEADY = {"cache_prompt": False, "repeat_penalty": 1.15, "repeat_last_n": 128}


def judge(url: str, **options: Any) -> jm.ChatJudge:
    return jm.ChatJudge(
        "smollm2",
        base_url=url,
        price=0,
        extra_body=STEADY,
        **{"max_tokens": 160, "timeout": 60.0, "max_concurrency": 1, "seed": 1, **options},
    )


def test_rubric_comes_back_in_the_schema_with_usage(local_model_url: str) -> None:
    results = jm.evaluate(RECORDS, ["fluency"], judge(local_model_url), store=None)
    ok = results.scores[results.scores["status"] == "ok"]
    assert ok["score"].isin([1, 2, 3, 4, 5]).all()
    # Whatever the model says, each row is a score or a typed failure that says why.
    failed = results.scores[results.scores["status"] == "failed"]
    assert len(ok) + len(failed) == 2
    assert failed["error"].str.split(":").str[0].isin(["truncated", "unparsed", "out_of_range", "refused"]).all()
    assert len(ok) >= 1, results.scores["error"].tolist()
    calls = results.calls
    assert (calls["prompt_tokens"] > 100).all() and (calls["completion_tokens"] > 0).all()
    assert set(calls["format"]) == {"json_schema"} and (calls["cost_usd"] == 0).all()
    assert calls["model_returned"].notna().all()


def test_second_run_asks_nothing(local_model_url: str, tmp_path: Path) -> None:
    first = jm.evaluate(RECORDS[:1], ["fluency"], judge(local_model_url), store=tmp_path / "s.db")
    again = jm.evaluate(RECORDS[:1], ["fluency"], judge(local_model_url), store=tmp_path / "s.db")
    if first.scores["status"].item() == "ok":
        assert again.calls["from_store"].all()
        assert again.scores["score"].item() == first.scores["score"].item()
    else:
        assert not again.calls["from_store"].any(), "a failed reply is not kept"


def test_documents_are_rated_and_the_panel_votes(local_model_url: str) -> None:
    panel = jm.Panel([judge(local_model_url), jm.BaselineJudge()], rule="mean", quorum=1)
    results = jm.evaluate(RECORDS[:1], ["context_precision"], panel, store=None)
    rows = results.scores.set_index("judge")
    assert set(rows.index) == {"smollm2", "baseline", "panel"}
    assert rows.loc["panel", "status"] == "ok" and 0 <= rows.loc["panel", "score"] <= 1


def test_rubric_that_does_not_fit_is_not_applicable_by_the_servers_own_count(local_model_url: str) -> None:
    long = [RECORDS[0] | {"answer": "Oslo is in Norway. " * 3000}]
    results = jm.evaluate(long, ["fluency"], judge(local_model_url), store=None)
    row = results.scores.iloc[0]
    assert row["status"] == "not_applicable" and "does not fit" in row["reason"]
    assert results.calls["status"].tolist()[0] == "rejected"


def test_cut_off_reply_is_truncated_not_a_number(local_model_url: str) -> None:
    results = jm.evaluate(RECORDS[:1], ["fluency"], judge(local_model_url, max_tokens=4), store=None)
    row = results.scores.iloc[0]
    assert row["error"].startswith("truncated:") and row["status"] == "failed"
    assert len(results.calls) == 2


def test_wrong_path_is_said_with_its_address(local_model_url: str) -> None:
    lost = jm.ChatJudge("smollm2", base_url=local_model_url.replace("/v1", "/nowhere"), price=0)
    with pytest.raises(jm.InputError, match="nowhere"):
        jm.evaluate(RECORDS[:1], ["fluency"], lost, store=None)
