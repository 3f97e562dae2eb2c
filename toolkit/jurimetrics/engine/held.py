"""What a store holds, in sums: by judge and kind of task, and how much of it a condition means."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from jurimetrics.errors import InputError


@dataclass(frozen=True, slots=True)
class Held:
    """What a store holds of one judge and one kind of task, over all evaluations that used it.

    Tokens are sums of those that were counted. `cost_usd` is what the answers with a known price were paid, and so what
    every further use of all of them saves; `unpriced` are the others. `failures` are final ones, kept apart, counted by
    kind of failure. `first` and `last` are when the first and the last answer came (UTC), None without an answer.

    >>> Held("ada", "rate", failures={"filtered": 2}).answers
    0
    """

    judge: str
    kind: str
    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    first: datetime | None = None
    last: datetime | None = None
    failures: Mapping[str, int] = field(default_factory=dict)


_ANSWERS = """
SELECT judge, kind, count(*), total(json_extract(trace, '$.usage[0]')), total(json_extract(trace, '$.usage[1]')),
    total(json_extract(trace, '$.cost_usd')), sum(json_extract(trace, '$.cost_usd') IS NULL), min(at), max(at)
FROM answers GROUP BY judge, kind
"""
_FAILURES = "SELECT judge, kind, failure, count(*) FROM failures GROUP BY judge, kind, failure ORDER BY failure"


def held_in(database: sqlite3.Connection) -> list[Held]:
    """The sums of a store's tables, by judge and kind. Raises `sqlite3.DatabaseError` for a damaged file."""
    failures: dict[tuple[str, str], dict[str, int]] = {}
    for judge, kind, failure, number in database.execute(_FAILURES):
        failures.setdefault((judge, kind), {})[failure] = number
    held = [
        Held(
            judge, kind, answers, int(prompt), int(completion), cost, unpriced,
            datetime.fromisoformat(first), datetime.fromisoformat(last), failures.pop((judge, kind), {}),
        )
        for judge, kind, answers, prompt, completion, cost, unpriced, first, last in database.execute(_ANSWERS)
    ]  # fmt: skip
    held += [Held(judge, kind, failures=failed) for (judge, kind), failed in failures.items()]
    return sorted(held, key=lambda one: (one.judge, one.kind))


def condition(judge: str | None, before: date | datetime | None) -> tuple[str, list[str]]:
    """The condition, and its values, for rows of a judge, from before a moment (a day begins at 0:00 UTC), or both.

    Raises `InputError` where neither is given, which would mean everything.

    >>> condition("ada", date(2026, 1, 31))
    ('judge = ? AND at < ?', ['ada', '2026-01-31T00:00:00+00:00'])
    """
    if judge is None and before is None:
        raise InputError("prune: give a judge, a moment before which answers go, or both")
    conditions = {"judge = ?": judge, "at < ?": None if before is None else _moment(before)}
    given = {text: value for text, value in conditions.items() if value is not None}
    return " AND ".join(given), list(given.values())


def _moment(before: date | datetime) -> str:
    if not isinstance(before, datetime):
        before = datetime(before.year, before.month, before.day, tzinfo=UTC)
    return before.astimezone(UTC).isoformat()
