"""Results as an evaluation leaves them, made by hand: two variants, a panel of three, every status, every script."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jurimetrics.frames import CallRow, RowWriter, ScoreRow, UseRow
from jurimetrics.records import Record
from jurimetrics.results import Results
from jurimetrics.tracking.store import Store

MEMBERS = ("gpt-4.1-mini", "claude-haiku", "baseline")
METRICS = ("faithfulness", "noise_sensitivity", "context_precision", "f1")
VARIANTS = ("concise", "thorough")
QUESTIONS = ("When may the tenant terminate item {}?", "¿Cuánto cuesta el artículo {}?", "第 {} 条规定了什么？")


@dataclass(frozen=True)
class Logged:
    """Results of both variants that were logged once, with their runs, and where."""

    results: Results
    store: Store
    runs: list[str]


def make_results(folder: Path, records: int = 12, metrics: tuple[str, ...] = METRICS, seed: int = 7) -> Results:
    """Results of `records` records under two variants; about one row in ten is undefined or failed."""
    draw = random.Random(seed)
    writer = RowWriter(folder)
    for variant in VARIANTS:
        for at in range(records):
            record = make_record(at, variant, draw)
            writer.record(record)
            for metric in metrics:
                _score(writer, record, metric, draw)
    writer.close(make_settings(metrics, records))
    return Results(folder)


def make_record(at: int, variant: str, draw: random.Random) -> Record:
    return Record(
        f"q{at:03}",
        question=QUESTIONS[at % len(QUESTIONS)].format(at),
        answer=f"Within {14 + at} days, in writing. ({variant})" if at != 3 else None,
        contexts=[f"Article {at}. The tenant may terminate within {14 + at} days.", "Article 99. Noise."],
        reference=f"Within {14 + at} days." if at % 2 == 0 else None,
        variant=variant,
        answer_model=f"model-{variant}",
        answer_latency_s=round(0.4 + draw.random() + (variant == "thorough"), 3),
        answer_prompt_tokens=220,
        answer_completion_tokens=20 + 30 * (variant == "thorough"),
        answer_cost_usd=0.0002,
        answer_error="timeout: no answer within 60 s" if at == 3 else None,
        metadata={"temperature": 0.2 if variant == "concise" else 0.7, "topic": ["law", "price"][at % 2]},
    )


def _score(writer: RowWriter, record: Record, metric: str, draw: random.Random) -> None:
    judges = ("computed",) if metric == "f1" else (*MEMBERS, "panel")
    for judge in judges:
        value, status, reason, error = _outcome(record, metric, draw)
        disagreement = round(draw.random() / 3, 3) if judge == "panel" else None
        writer.score(
            ScoreRow(
                record.id, record.variant, metric, judge, 0, record.group, value, status, reason, error,
                disagreement=disagreement, details={"claims": []}, panel=judge == "panel",
            )
        )  # fmt: skip
        if judge in MEMBERS[:2]:
            ask = f"{record.id}/{record.variant}/{metric}/{judge}"
            writer.call(_call(ask, judge, draw))
            writer.use(UseRow(ask, record.id, record.variant, metric, judge, 0))


def _outcome(record: Record, metric: str, draw: random.Random) -> tuple[float | None, str, str, str]:
    if record.answer is None:
        return None, "not_applicable", "the record has no answer", ""
    chance = draw.random()
    if chance < 0.04:
        return None, "undefined", "the answer makes no claims", ""
    if chance < 0.08:
        return None, "failed", "", "timeout: no answer within 60 s"
    better = record.variant == "thorough"
    value = min(1.0, round(0.45 + 0.15 * better + 0.4 * draw.random(), 3))
    return (
        value,
        "ok",
        f"{metric}: 3 of 4 claims are supported; claim 2 names another date than article {record.id}.",
        "",
    )


def _call(ask: str, judge: str, draw: random.Random) -> CallRow:
    return CallRow(
        ask, judge, "check", "key", 0, 1, "ok", "", judge, judge, None, 900, 0, 120, None, 0.0006, None,
        round(0.5 + draw.random(), 3), "stop", "json_schema", (), False, datetime.now(UTC),
    )  # fmt: skip


def make_settings(metrics: tuple[str, ...], records: int) -> dict[str, object]:
    declared = {
        name: {
            "range": [0.0, 1.0], "higher_is_better": name != "noise_sensitivity", "version": "1", "levels": None,
            "threshold": 0.7 if name == "faithfulness" else None, "judged": name != "f1", "asks_claims": False, "needs": [],
        }
        for name in metrics
    }  # fmt: skip
    return {
        "jurimetrics": "0", "created": "2026-01-01T00:00:00+00:00", "metrics": declared,
        "judges": {
            "gpt-4.1-mini": {"kind": "chat", "model": "gpt-4.1-mini"},
            "claude-haiku": {"kind": "chat", "model": "claude-haiku-4"},
            "baseline": {"kind": "baseline"},
        },
        "panel": {
            "name": "panel", "rule": "median", "vote_on": "verdicts", "weights": None, "quorum": 2,
            "members": list(MEMBERS), "extractor": None,
        },
        "prompts": {"check@1": {"messages": [{"role": "user", "content": "Check «每一条» " + "x" * 6001}], "schema": {}}},
        "repeats": 1, "reason_language": None, "store": None, "interrupted": False, "data_digest": "ab" * 32,
        "records": records * len(VARIANTS), "variants": list(VARIANTS),
        "started": "2026-01-01T00:00:00+00:00", "seconds": 1.0,
    }  # fmt: skip
