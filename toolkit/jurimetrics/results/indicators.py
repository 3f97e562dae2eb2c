"""What the answers themselves took, and how relevant what was retrieved for them: kept apart from what judging took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.results.reading import headline_judge

RELEVANCE = "context_precision"
"""The metric whose scores say how relevant the retrieved documents are."""
FROM_RECORDS = (
    "id", "variant", "answer_latency_s", "answer_prompt_tokens", "answer_completion_tokens", "answer_cost_usd",
)  # fmt: skip
INDICATORS = (
    "answer_latency_s", "answer_prompt_tokens", "answer_completion_tokens", "answer_tokens", "answer_cost_usd",
    "context_relevance",
)  # fmt: skip


def per_record(
    records: pd.DataFrame, scores: pd.DataFrame, settings: Mapping[str, Any], judge: str | None = None
) -> pd.DataFrame:
    """The frame of `Results.indicators`: one row for each record, in their order.

    `records` has the columns `FROM_RECORDS`, `scores` the key, `score` and `status`.

    >>> records = pd.DataFrame({"id": ["1", "2"], "variant": "", "answer_latency_s": [0.5, None],
    ...     "answer_prompt_tokens": [90, 80], "answer_completion_tokens": [10, None], "answer_cost_usd": [0.01, None]})
    >>> scores = pd.DataFrame({"id": ["1"], "variant": "", "metric": "context_precision", "judge": "ann", "score": 0.5,
    ...     "status": "ok"})
    >>> found = per_record(records, scores, {"panel": None})
    >>> found["answer_tokens"].tolist(), found["context_relevance"].tolist()
    ([100, <NA>], [0.5, nan])
    """
    frame = records[["id", "variant"]].reset_index(drop=True)
    for name in ("answer_latency_s", "answer_cost_usd"):
        frame[name] = pd.array(records[name].to_numpy(dtype=np.float64, na_value=np.nan), dtype="float64")
    for name in ("answer_prompt_tokens", "answer_completion_tokens"):
        frame[name] = records[name].reset_index(drop=True).astype("Int64")
    frame["answer_tokens"] = frame["answer_prompt_tokens"] + frame["answer_completion_tokens"]
    rated = scores[(scores["metric"] == RELEVANCE) & (scores["status"] == "ok")]
    chosen = judge or headline_judge(list(dict.fromkeys(rated["judge"])), settings)
    relevance = rated[rated["judge"] == chosen].groupby(["id", "variant"])["score"].mean()
    keys = pd.MultiIndex.from_frame(frame[["id", "variant"]])
    frame["context_relevance"] = relevance.reindex(keys).to_numpy(dtype=np.float64)
    return frame[["id", "variant", *INDICATORS]]


def per_variant(records: pd.DataFrame) -> pd.DataFrame:
    """The indicators of each variant out of those of its records; see `Results.indicators`.

    >>> records = pd.DataFrame({"variant": ["a", "a"], **dict.fromkeys(INDICATORS, [2.0, None])})
    >>> per_variant(records).loc[0, ["n", "records", "mean", "at_least"]].tolist()
    [1.0, 2.0, 2.0, 2.0]
    >>> math.isnan(per_variant(records).loc[0, "total"])
    True
    """
    lines = [
        {"variant": variant, "indicator": name, **_line(mine[name], name)}
        for variant, mine in records.groupby("variant", sort=False)
        for name in INDICATORS
    ]
    columns = ["variant", "indicator", "mean", "n", "records", "total", "at_least"]
    return pd.DataFrame(lines, columns=columns)


def _line(values: pd.Series[Any], name: str) -> dict[str, Any]:
    known = values.to_numpy(dtype=np.float64, na_value=np.nan)
    known = known[~np.isnan(known)]
    some = math.fsum(known) if len(known) else math.nan
    adds_up = name != "context_relevance"
    return {
        "mean": some / len(known) if len(known) else math.nan,
        "n": len(known),
        "records": len(values),
        "total": some if adds_up and len(known) == len(values) else math.nan,
        "at_least": some if adds_up else math.nan,
    }
