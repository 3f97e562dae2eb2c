"""Small evaluations made by hand, which differ in exactly what a test wants: records, settings, who answered."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jurimetrics.frames import CallRow, RowWriter, ScoreRow, UseRow
from jurimetrics.records import Record
from jurimetrics.results import Results

MEMBERS = ("ann", "bob")
COST = 0.002


def evaluation(
    folder: Path,
    variants: Sequence[str] = ("",),
    *,
    records: int = 12,
    gain: float = 0.0,
    served: str | Callable[[str, int], str] = "m-1",
    fingerprint: str | Callable[[str, int], str] | None = None,
    kind: str = "rate",
    record: Mapping[int, Mapping[str, Any]] | None = None,
    change: Callable[[dict[str, Any]], Any] | None = None,
) -> Results:
    """Metrics `clear` (judged by a panel of two; one call for each record and judge, shared by all variants) and `f1`
    (computed). `gain` is added to the scores of all variants but the first, `served` and `fingerprint` may depend on the
    judge and the number of the record, `record` changes fields of single records, `change` the settings."""
    folder = folder / uuid.uuid4().hex
    writer, draw, noise = RowWriter(folder), random.Random(5), random.Random(f"gain {gain}")
    for at in range(records):
        base = draw.random() / 2
        for variant in variants:
            fields = {"question": f"Question {at}?", "contexts": [f"Article {at}."], "reference": f"It is {at}."}
            given = {**fields, "answer": f"{variant}: {at}", **(record or {}).get(at, {})}
            one = Record(f"r{at:02}", variant=variant, **given)
            writer.record(one)
            score = min(1.0, base + (gain + noise.random() / 50 if variant != variants[0] or len(variants) == 1 else 0))
            for judge in (*MEMBERS, "panel"):
                writer.score(_row(one, "clear", judge, score))
                if judge in MEMBERS:
                    writer.use(UseRow(f"{at}/{judge}", one.id, variant, "clear", judge, 0))
            writer.score(_row(one, "f1", "computed", score))
        for judge in MEMBERS:
            model = served if isinstance(served, str) else served(judge, at)
            mark = fingerprint(judge, at) if callable(fingerprint) else fingerprint
            writer.call(_call(f"{at}/{judge}", judge, kind, model, mark))
    settings = _settings(variants, records * len(variants))
    if change is not None:
        change(settings)
    writer.close(settings)
    return Results(folder)


def _row(record: Record, metric: str, judge: str, score: float) -> ScoreRow:
    panel = judge == "panel"
    return ScoreRow(record.id, record.variant, metric, judge, 0, record.group, score, "ok", "said so", panel=panel)


def _call(ask: str, judge: str, kind: str, model: str, mark: str | None) -> CallRow:
    return CallRow(
        ask, judge, kind, "key", 0, 1, "ok", "", judge, model, mark, 90, 0, 10, None, COST, None, 0.5, "stop",
        "json_schema", (), False, datetime.now(UTC),
    )  # fmt: skip


def _settings(variants: Sequence[str], records: int) -> dict[str, Any]:
    scale = {
        "range": [0.0, 1.0],
        "higher_is_better": True,
        "version": "1",
        "levels": None,
        "asks_claims": False,
        "needs": [],
    }
    now = datetime.now(UTC).isoformat()
    return {
        "jurimetrics": "1.0", "created": now, "started": now, "seconds": 2.0, "data_digest": uuid.uuid4().hex,
        "metrics": {
            "clear": {**scale, "threshold": 0.5, "judged": True}, "f1": {**scale, "threshold": None, "judged": False},
        },
        "judges": {
            name: {"kind": "chat", "model": name, "address": "http://127.0.0.1:9", "family": None, "reply_key": f"key-{name}",
                   "temperature": 0.0}
            for name in MEMBERS
        },
        "panel": {
            "name": "panel", "rule": "median", "vote_on": "verdicts", "weights": None, "quorum": 2,
            "members": list(MEMBERS), "extractor": None,
        },
        "embedder": {"kind": "embeddings", "model": "e-1", "reply_key": "e-1"},
        "prompts": {"rate@abc": {"messages": [], "schema": {}}},
        "repeats": 1, "reason_language": None, "store": None, "interrupted": False, "records": records,
        "variants": list(variants), "notes": [],
    }  # fmt: skip
