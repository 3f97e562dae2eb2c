"""The store: every complete, valid reply is kept once, so that running the same call again asks nobody.

One sqlite file (write-ahead log), append-only: answers are never changed or removed by an evaluation. Each answer is
committed as it comes, so a process that is killed loses what was in flight and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jurimetrics.errors import FailureKind, InputError
from jurimetrics.judges.judge import JudgeError, Trace, Usage

FORMAT = 1
"""Version of the tables; a file of a later one is refused, never rewritten."""

FINAL_KINDS: frozenset[FailureKind] = frozenset({"filtered", "refused", "rejected"})
"""Failures that asking again will not mend; kept apart and asked again only on request."""

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, judge_key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
    trace TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, failure TEXT NOT NULL,
    message TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS failures_by_key ON failures (key);
CREATE TABLE IF NOT EXISTS learned (
    id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, facts TEXT NOT NULL, at TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer from the store: the JSON that `task.read` accepts, and what the request that brought it looked like."""

    data: Any
    trace: Trace
    judge: str
    at: datetime


class Store:
    """Answers, final failures and what was learned of endpoints, in one sqlite file (`path` None: in memory).

    Raises `InputError` where the file is not a store, is damaged or was written by a later version.

    >>> store = Store(None)
    >>> store.answer("k") is None, len(store)
    (True, 0)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        # A commit per answer: the write-ahead log makes that cheap, and a killed process keeps all that it was paid for.
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=30)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(
                f"store {path}: not a usable sqlite file ({error}); move it away to start a new one"
            ) from None
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise InputError(
                f"store {self.path}: written by a later version (format {version}, this one reads {FORMAT})"
            )
        if version == 0:
            if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise InputError(f"store {self.path}: an sqlite file that holds something else")
            self._db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={FORMAT}; COMMIT;")

    def __len__(self) -> int:
        """How many answers it holds."""
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def answer(self, key: str) -> Stored | None:
        """The complete, valid answer kept under a key, or None."""
        row = self._db.execute("SELECT data, trace, judge, at FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return Stored(json.loads(row[0]), _trace(json.loads(row[1])), row[2], datetime.fromisoformat(row[3]))

    def holds(self, key: str) -> bool:
        """Whether there is an answer under a key."""
        return self._db.execute("SELECT 1 FROM answers WHERE key = ?", (key,)).fetchone() is not None

    def keep(self, key: str, *, judge_key: str, judge: str, kind: str, data: Any, trace: Trace) -> None:
        """Keep an answer; the first one under a key stays."""
        self._db.execute(
            "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, judge_key, judge, kind, json.dumps(data), json.dumps(_facts(trace)), _now()),
        )

    def failure(self, key: str) -> JudgeError | None:
        """The latest final failure under a key, or None."""
        row = self._db.execute(
            "SELECT failure, message FROM failures WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
        ).fetchone()
        return None if row is None else JudgeError(row[0], f"{row[1]} (kept from before; retry_failed=True asks again)")

    def keep_failure(self, key: str, judge: str, kind: str, error: JudgeError) -> None:
        """Keep a final failure apart from the answers."""
        self._db.execute(
            "INSERT INTO failures (key, judge, kind, failure, message, at) VALUES (?, ?, ?, ?, ?, ?)",
            (key, judge, kind, error.kind, error.message, _now()),
        )

    def learned(self) -> dict[str, Any]:
        """What was learned of each endpoint so far, the latest facts of each."""
        return {
            name: json.loads(facts)
            for name, facts in self._db.execute("SELECT endpoint, facts FROM learned ORDER BY id")
        }

    def keep_learned(self, learned: Mapping[str, Any]) -> None:
        """Add what changed of what is known of endpoints."""
        known = self.learned()
        news: Iterable[tuple[str, str, str]] = [
            (name, json.dumps(facts), _now()) for name, facts in sorted(learned.items()) if known.get(name) != facts
        ]
        self._db.executemany("INSERT INTO learned (endpoint, facts, at) VALUES (?, ?, ?)", news)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _facts(trace: Trace) -> dict[str, Any]:
    # The raw reply is not kept: the data read from it is.
    return {
        "usage": [trace.usage.prompt, trace.usage.completion, trace.usage.cached, trace.usage.reasoning],
        "latency_s": trace.latency_s,
        "model": trace.model,
        "fingerprint": trace.fingerprint,
        "finish_reason": trace.finish_reason,
        "format": trace.format,
        "refused_parameters": list(trace.refused_parameters),
        "cost_usd": trace.cost_usd,
    }


def _trace(facts: Mapping[str, Any]) -> Trace:
    return Trace(
        usage=Usage(*facts["usage"]),
        latency_s=facts["latency_s"],
        model=facts["model"],
        fingerprint=facts["fingerprint"],
        finish_reason=facts["finish_reason"],
        format=facts["format"],
        refused_parameters=tuple(facts["refused_parameters"]),
        cost_usd=facts["cost_usd"],
    )
