"""The store: every complete, valid reply is kept once, so that running the same call again asks nobody.

One sqlite file (write-ahead log), append-only: answers are never changed or removed by an evaluation. Each answer is
committed as it comes, so a process that is killed loses what was in flight and nothing else. What cannot be written (a
full disk) stays in memory until the evaluation ends, and is said; an answer that comes back damaged counts as none.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from jurimetrics.engine.held import Held, condition, held_in
from jurimetrics.errors import FailureKind, InputError
from jurimetrics.judges.judge import JudgeError, Trace, Usage

_HEADER = b"SQLite format 3\0"
FORMAT = 2
"""Version of the tables; a file of an earlier one is extended in place, one of a later one refused."""
LOCKED_S = 30.0
"""How long a lock of another process is waited for."""

FINAL_KINDS: frozenset[FailureKind] = frozenset({"filtered", "refused", "rejected"})
"""Failures that asking again will not mend; kept apart and asked again only on request."""

_TABLES = (
    """CREATE TABLE answers (
    key TEXT PRIMARY KEY, judge_key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
    trace TEXT NOT NULL, at TEXT NOT NULL, digest INTEGER) WITHOUT ROWID""",
    """CREATE TABLE failures (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, failure TEXT NOT NULL,
    message TEXT NOT NULL, at TEXT NOT NULL)""",
    "CREATE INDEX failures_by_key ON failures (key)",
    "CREATE TABLE learned (id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, facts TEXT NOT NULL, at TEXT NOT NULL)",
)
_PRUNED = ("answers", "failures")
_FROM_1 = ("ALTER TABLE answers ADD COLUMN digest INTEGER",)
_ANSWER = "answers (key, judge_key, judge, kind, data, trace, at, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer from the store: the JSON that `task.read` accepts, and what the request that brought it looked like."""

    data: Any
    trace: Trace
    judge: str
    at: datetime


class Store:
    """Answers, final failures and what was learned of endpoints, in one sqlite file.

    Without a `path` answers are kept for as long as the store is open, in a temporary file of sqlite's that nobody sees.
    Raises `InputError` where the file is not a store, is damaged, is held by another process, cannot be written, or was
    written by a later version; the file is then left as it is.

    >>> store = Store(None)
    >>> store.answer("k") is None, len(store)
    (True, 0)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._unsaved: dict[str, tuple[Any, ...]] = {}
        self._damaged: set[str] = set()
        self._trouble: str | None = None
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                _check_header(path)
            # A commit per answer: the write-ahead log makes that cheap, and a killed process keeps what it was paid for.
            self._db = sqlite3.connect(path or "", isolation_level=None, timeout=LOCKED_S)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"store {path}: cannot be opened or made ({error})") from None
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(f"store {path}: {_why(error)}") from None
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        self._turn_on_log()
        self._db.execute("PRAGMA synchronous=NORMAL" if self.path else "PRAGMA synchronous=OFF")
        # Within one transaction: of two processes that make the file at once, the second finds it made.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._bring_up_to_date()
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)

    def _turn_on_log(self) -> None:
        # Two processes that do this at once are told of a lock without a wait.
        until = time.monotonic() + LOCKED_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL" if self.path else "PRAGMA journal_mode=MEMORY")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(0.05)

    def _bring_up_to_date(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise InputError(
                f"store {self.path}: written by a later version (format {version}, this one reads {FORMAT})"
            )
        if version == FORMAT:
            return
        if version == 0 and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise InputError(f"store {self.path}: an sqlite file that holds something else")
        for statement in _TABLES if version == 0 else _FROM_1:
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version={FORMAT}")

    def __len__(self) -> int:
        """How many answers it holds."""
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0]) + len(self._unsaved)

    def answer(self, key: str) -> Stored | None:
        """The complete, valid answer kept under a key, or None."""
        if key in self._damaged and key not in self._unsaved:
            return None
        unsaved = self._unsaved.get(key)
        try:
            row = (
                unsaved
                or self._db.execute(
                    "SELECT key, judge_key, judge, kind, data, trace, at, digest FROM answers WHERE key = ?", (key,)
                ).fetchone()
            )
            if row is None:
                return None
            _, _, judge, _, data, trace, at, digest = row
            if digest is not None and digest != _digest(key, data, trace):
                raise ValueError("its digest does not match")
            return Stored(json.loads(data), _trace(json.loads(trace)), judge, datetime.fromisoformat(at))
        except (sqlite3.DatabaseError, ValueError, LookupError, TypeError) as error:
            self.refuse(key, str(error))
            return None

    def refuse(self, key: str, why: str) -> None:
        """Count an answer as none: it came back damaged, and the next one replaces it."""
        self._say(f"an answer cannot be read and is asked for again ({why})")
        self._damaged.add(key)

    def holds(self, key: str) -> bool:
        """Whether there is an answer under a key."""
        if key in self._unsaved:
            return True
        try:
            return self._db.execute("SELECT 1 FROM answers WHERE key = ?", (key,)).fetchone() is not None
        except sqlite3.DatabaseError:
            # `answer` says it.
            return False

    def keep(self, key: str, *, judge_key: str, judge: str, kind: str, data: Any, trace: Trace) -> None:
        """Keep an answer; the first one under a key stays. What cannot be written is kept in memory. Never raises."""
        told, facts = json.dumps(data), json.dumps(_facts(trace))
        row = (key, judge_key, judge, kind, told, facts, _now(), _digest(key, told, facts))
        if not self._write(f"INSERT OR {'REPLACE' if key in self._damaged else 'IGNORE'} INTO {_ANSWER}", [row]):
            self._unsaved[key] = row
            return
        self._damaged.discard(key)
        if self._unsaved:
            self._save_rest()

    def _save_rest(self) -> None:
        if self._write(f"INSERT OR REPLACE INTO {_ANSWER}", list(self._unsaved.values())):
            self._unsaved.clear()

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> bool:
        """Write rows in one transaction; False, and said, where that cannot be done."""
        given = list(rows)
        try:
            if len(given) == 1:
                self._db.execute(statement, given[0])
                return True
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(statement, given)
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._say(f"{_why(error)}; what comes now is kept in memory and lost with it")
            # Waited for once; after that every answer would hold all others up.
            self._db.execute("PRAGMA busy_timeout=100")
            return False
        return True

    def _say(self, trouble: str) -> None:
        # Once, through logging: that is seen without a set-up and ends nobody's evaluation.
        if self._trouble is None:
            self._trouble = trouble
            logging.getLogger("jurimetrics").warning("store %s: %s", self.path, trouble)

    def notes(self) -> list[str]:
        """What went wrong, for the results; first what could not be written is tried once more."""
        if self._unsaved:
            self._save_rest()
        if self._trouble is None:
            return []
        lost = f"; {len(self._unsaved)} answers are in these results only" if self._unsaved else ""
        return [f"Store {self.path}: {self._trouble}{lost}."]

    def failure(self, key: str) -> JudgeError | None:
        """The latest final failure under a key, or None."""
        try:
            row = self._db.execute(
                "SELECT failure, message FROM failures WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
            ).fetchone()
        except sqlite3.DatabaseError as error:
            self._say(f"failures cannot be read ({error})")
            return None
        return None if row is None else JudgeError(row[0], f"{row[1]} (kept from before; retry_failed=True asks again)")

    def keep_failure(self, key: str, judge: str, kind: str, error: JudgeError) -> None:
        """Keep a final failure apart from the answers. Never raises."""
        self._write(
            "INSERT INTO failures (key, judge, kind, failure, message, at) VALUES (?, ?, ?, ?, ?, ?)",
            [(key, judge, kind, error.kind, error.message, _now())],
        )

    def learned(self) -> dict[str, Any]:
        """What was learned of each endpoint so far, the latest facts of each; what cannot be read is learned anew."""
        try:
            rows = self._db.execute("SELECT endpoint, facts FROM learned ORDER BY id").fetchall()
            return {name: json.loads(facts) for name, facts in rows}
        except (sqlite3.DatabaseError, ValueError) as error:
            self._say(f"what was learned of endpoints cannot be read ({error})")
            return {}

    def keep_learned(self, learned: Mapping[str, Any]) -> None:
        """Add what changed of what is known of endpoints. Never raises."""
        known = self.learned()
        news = [
            (name, json.dumps(facts), _now()) for name, facts in sorted(learned.items()) if known.get(name) != facts
        ]
        if news:
            self._write("INSERT INTO learned (endpoint, facts, at) VALUES (?, ?, ?)", news)

    def traces(self, judge_key: str, most: int) -> list[tuple[str, Trace]]:
        """Kind of task and facts of up to `most` answers of a judge; none, and said, where they cannot be read."""
        # In the order of their keys, which are hashes: as good as drawn by lot.
        query = "SELECT kind, trace FROM answers WHERE judge_key = ? LIMIT ?"
        try:
            rows = self._db.execute(query, (judge_key, most)).fetchall()
            return [(kind, _trace(json.loads(facts))) for kind, facts in rows]
        except (sqlite3.DatabaseError, ValueError, LookupError, TypeError) as error:
            self._say(f"what answers took cannot be read ({error})")
            return []

    def overview(self) -> list[Held]:
        """What it holds of each judge and kind of task, by name. Raises `InputError` where the file is damaged."""
        try:
            return held_in(self._db)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise InputError(f"store {self.path}: {_why(error)}") from None

    def meant(self, *, judge: str | None = None, before: date | datetime | None = None) -> tuple[int, int]:
        """How many answers and how many failures `prune` would remove. Raises `InputError` as it does.

        >>> Store(None).meant(judge="ada")
        (0, 0)
        """
        where, values = condition(judge, before)
        try:
            answers, failures = (
                int(self._db.execute(f"SELECT count(*) FROM {table} WHERE {where}", values).fetchone()[0])  # noqa: S608
                for table in _PRUNED
            )
        except sqlite3.Error as error:
            raise InputError(f"store {self.path}: {_why(error)}") from None
        return answers, failures

    def prune(self, *, judge: str | None = None, before: date | datetime | None = None) -> int:
        """Remove for good the answers and failures of a judge, from before a moment (a day begins at 0:00 UTC), or both.

        Returns how many were removed and gives their room on the disk back. Raises `InputError` where neither is given,
        which would remove everything, and where the file cannot be changed.

        >>> Store(None).prune(judge="ada")
        0
        """
        where, values = condition(judge, before)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            removed = sum(
                self._db.execute(f"DELETE FROM {table} WHERE {where}", values).rowcount  # noqa: S608 - our own names
                for table in _PRUNED
            )
            self._db.execute("COMMIT")
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise InputError(f"store {self.path}: {_why(error)}") from None
        return removed

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _why(error: Exception) -> str:
    """What an error of sqlite (or a value it gave back) means for whoever reads it."""
    said = str(error)
    if "locked" in said or "busy" in said:
        return f"another process holds it for more than {LOCKED_S:g} s ({said})"
    if "full" in said or "disk I/O" in said:
        return f"it cannot be written: is the disk full? ({said})"
    if "readonly" in said or "unable to open" in said:
        return f"it cannot be written ({said})"
    return f"not a usable sqlite file, or a damaged one ({said}); move it away to start a new one"


def _digest(key: str, data: str, trace: str) -> int:
    return zlib.crc32(f"{key}\0{data}\0{trace}".encode("utf-8", "surrogatepass"))


def _check_header(path: Path) -> None:
    """Raise `InputError` for a file of another kind: sqlite takes a short one for an empty database and writes over it."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(len(_HEADER))
    if head and head != _HEADER:
        raise InputError(f"store {path}: not a usable sqlite file; move it away to start a new one")


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
