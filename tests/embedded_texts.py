"""Texts with vectors that can be computed by hand, and an endpoint that gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jurimetrics as jm
import pandas as pd
from jurimetrics.tasks.embed import packed
from scripted_judge import ScriptedJudge
from scripted_server import Answer, Call, ScriptedServer

NOBODY = jm.ChatJudge("nobody", base_url="http://127.0.0.1:9/v1")
"""A judge that is given because one must be, and is never asked."""
PLACES: Mapping[str, Sequence[float]] = {
    "East.": (2, 0), "North.": (0, 5), "West.": (-1, 0), "Far.": (3, 4), "Near.": (4, 3), "East. North.": (1, 1),
}  # fmt: skip


def scripted(table: Mapping[str, Sequence[float]] = PLACES, **options: Any) -> ScriptedJudge:
    return ScriptedJudge("vectors", lambda task, _: packed([table[text] for text in task.texts]), **options)


def record(answer: str | None, reference: str | None, **more: Any) -> dict[str, Any]:
    return {"id": "1", "answer": answer, "reference": reference} | more


def only(records: Any, chosen: Any, embedder: Any = None, **options: Any) -> pd.Series[Any]:
    """The one row of one record under one metric."""
    given_store = {"store": None} | options
    scores = jm.evaluate([records], [chosen], NOBODY, embedder=embedder, **given_store).scores
    assert len(scores) == 1
    row: pd.Series[Any] = scores.iloc[0]
    return row


CROSS = {"precision": 0.7, "recall": 0.8, "f": 2 * 0.7 * 0.8 / 1.5}


def vectors_of(call: Call, table: Mapping[str, Sequence[float]] = PLACES) -> list[dict[str, Any]]:
    return [
        {"object": "embedding", "index": at, "embedding": list(table[text])}
        for at, text in enumerate(call.body["input"])
    ]


def embedded(data: Any, usage: Any = None) -> Answer:
    payload = {"object": "list", "data": data} | ({} if usage is None else {"usage": usage})
    return Answer("send", payload)


def placed(call: Call) -> Answer:
    tokens = 10 * len(call.body["input"])
    return embedded(vectors_of(call), {"prompt_tokens": tokens, "total_tokens": tokens})


def never(call: Call) -> Answer:
    raise AssertionError(f"no judge is asked here, but {call.path} was")


def endpoint(server: ScriptedServer, **options: Any) -> jm.EndpointEmbedder:
    return jm.EndpointEmbedder("places", **{"base_url": server.url, "price": 2.0} | options)


RECORDS = [
    record("East. North.", "Far.", id="a"), record("Far.", "Near.", id="b"), record("East. North.", "Near.", id="c"),
]  # fmt: skip
BOTH = ["similarity_score", "cross_similarity"]
