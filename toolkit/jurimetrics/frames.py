"""The rows that an evaluation writes, their Parquet schemas, and the folder they live in.

A folder of results holds `records/`, `scores/`, `calls/` and `uses/` with Parquet parts, and `settings.json`. Parts are
written as rows are done. What can be computed from rows (pass or fail, shares of cost) is computed when a frame is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One row of the score frame as the engine writes it; key: id, variant, metric, judge, repeat.

    `score` is None unless `status` is `ok`. `error` is "" or "kind: message". `details` is JSON-able. `panel` is True
    for rows of a panel, which carry no cost. `disagreement` is None but for panel rows.
    """

    id: str
    variant: str
    metric: str
    judge: str
    repeat: int
    group: str
    score: float | None
    status: str
    reason: str
    error: str = ""
    flags: tuple[str, ...] = ()
    disagreement: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    panel: bool = False


@dataclass(frozen=True, slots=True)
class CallRow:
    """One request to a judge, or one answer taken from the store (`from_store`, cost 0, its saving apart).

    `ask` joins calls with uses: all requests for one task, judge and repeat share it. `status` is `ok` or a failure kind.
    Tokens, costs: None where unknown. `latency_s` in seconds, `at` in UTC.
    """

    ask: str
    judge: str
    kind: str
    task_key: str
    repeat: int
    attempt: int
    status: str
    error: str
    model: str
    model_returned: str | None
    fingerprint: str | None
    prompt_tokens: int | None
    cached_prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    saved_usd: float | None
    latency_s: float
    finish_reason: str | None
    format: str
    refused_parameters: tuple[str, ...]
    from_store: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class UseRow:
    """A member's row used an ask: recorded from the moment of asking, whatever comes of it."""

    ask: str
    id: str
    variant: str
    metric: str
    judge: str
    repeat: int


_text, _real, _whole = pa.string(), pa.float64(), pa.int64()

SCORE_SCHEMA = pa.schema(
    [
        ("id", _text), ("variant", _text), ("metric", _text), ("judge", _text), ("repeat", _whole), ("group", _text),
        ("score", _real), ("status", _text), ("reason", _text), ("error", _text), ("flags", pa.list_(_text)),
        ("disagreement", _real), ("details", _text), ("panel", pa.bool_()),
    ]
)  # fmt: skip

CALL_SCHEMA = pa.schema(
    [
        ("ask", _text), ("judge", _text), ("kind", _text), ("task_key", _text), ("repeat", _whole), ("attempt", _whole),
        ("status", _text), ("error", _text), ("model", _text), ("model_returned", _text), ("fingerprint", _text),
        ("prompt_tokens", _whole), ("cached_prompt_tokens", _whole), ("completion_tokens", _whole),
        ("reasoning_tokens", _whole), ("cost_usd", _real), ("saved_usd", _real), ("latency_s", _real),
        ("finish_reason", _text), ("format", _text), ("refused_parameters", pa.list_(_text)), ("from_store", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip

USE_SCHEMA = pa.schema(
    [("ask", _text), ("id", _text), ("variant", _text), ("metric", _text), ("judge", _text), ("repeat", _whole)]
)
