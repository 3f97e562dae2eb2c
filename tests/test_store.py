"""The store: two processes, kills, a full disk, damaged and older files; nothing is lost without a word."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.engine.store import FORMAT, Store
from jurimetrics.judges.judge import JudgeError, Trace, Usage
from scripted_judge import ScriptedJudge, answer_all
from test_evaluate import honest, records


def keep(store: Store, key: str, data: Any = 1, judge: str = "ada", **trace: Any) -> None:
    store.keep(key, judge_key="j", judge=judge, kind="rate", data=data, trace=Trace(**trace))


def data_of(store: Store, key: str) -> Any:
    stored = store.answer(key)
    return None if stored is None else stored.data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), JSON, st.booleans()), max_size=25))
def test_store_is_the_first_answer_under_each_key_whenever_it_is_opened(steps: list[tuple[str, Any, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, expected = Path(folder) / "s.db", {}
        store = Store(path)
        for key, data, reopened in steps:
            keep(store, key, data)
            expected.setdefault(key, json.loads(json.dumps(data)))
            if reopened:
                store.close()
                store = Store(path)
            assert data_of(store, key) == expected[key] and len(store) == len(expected)
        store.close()


# ---------------------------------------------------------------------------------------------- processes

WRITE = """
import sys
from pathlib import Path
from test_store import Store, keep
print("ready", flush=True)
sys.stdin.readline()
store = Store(Path(sys.argv[1]))
for at in range(int(sys.argv[3])):
    keep(store, f"{sys.argv[2]}-{at}", {"text": "x" * 3000})
    print(at, flush=True)
    keep(store, f"both-{at}", sys.argv[2])
assert store.notes() == []
"""


def apart(source: str, *given: Any) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, given)],
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def test_two_processes_that_make_and_fill_one_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "s.db"
    writers = [apart(WRITE, path, name, 150) for name in ("a", "b")]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        _, complaints = writer.communicate(timeout=60)
        assert writer.returncode == 0 and complaints == ""
    store = Store(path)
    assert len(store) == 150 * 3 and {data_of(store, f"both-{at}") for at in range(150)} <= {"a", "b"}
    store.close()


@pytest.mark.parametrize("after", [1, 40])
def test_z02_killed_while_it_writes_keeps_every_answer_that_was_told(tmp_path: Path, after: int) -> None:
    path = tmp_path / "s.db"
    with apart(WRITE, path, "a", 100_000) as writer:
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
        told = 0
        for line in writer.stdout:
            told = int(line) if line != "ready\n" else 0
            if told >= after:
                writer.send_signal(signal.SIGKILL)
                break
        told += sum(1 for _ in writer.stdout)
    store = Store(path)
    assert all(data_of(store, f"a-{at}") == {"text": "x" * 3000} for at in range(told))
    keep(store, "next")
    assert data_of(store, "next") == 1 and store.notes() == []
    store.close()


def test_store_held_by_another_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.store.LOCKED_S", 0.2)
    path = tmp_path / "s.db"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(jm.InputError, match="another process holds it"):
        Store(path)
    other.close()
    Store(path).close()


# ---------------------------------------------------------------------------------------------- full disk

FULL = """
import resource, sys
from pathlib import Path
import jurimetrics as jm
from jurimetrics.engine.store import Store
from test_evaluate import honest, records
from scripted_judge import ScriptedJudge, answer_all
path = Path(sys.argv[1])
Store(path).close()
script = lambda task, repeat: {"findings": "x" * 5000, "score": 4}
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
judge = ScriptedJudge("ada", script)
asked = records(100) + [record | {"id": "again" + record["id"]} for record in records(100)]
results = jm.evaluate(asked, ["coherence"], judge, store=path, concurrency=4)
print(results.scores["status"].value_counts().to_dict(), len(judge.asked))
print(*results.notes(), sep="|")
"""


def test_z02_full_disk_costs_no_row_and_is_said(tmp_path: Path) -> None:
    with apart(FULL, tmp_path / "s.db") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    rows, notes = out.splitlines()
    # Every row is there, and what could not be written is not asked for twice.
    assert rows == "{'ok': 200} 100"
    assert "is the disk full?" in notes and "answers are in these results only" in notes
    assert err.count("is the disk full?") == 1
    store = Store(tmp_path / "s.db")
    kept = len(store)
    assert 5 <= kept < 100 and f"{100 - kept} answers are in these results only" in notes
    store.close()


class Refusing:
    """A connection that cannot write while `full`."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self.real, self.full = real, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if self.full and statement.startswith("INSERT"):
            raise sqlite3.OperationalError("database or disk is full")
        return self.real.execute(statement, *values)


def test_disk_with_room_again_gets_what_was_held_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path / "s.db")
    store._db = disk = Refusing(store._db)  # type: ignore[assignment]
    with caplog.at_level(logging.WARNING):
        for key in "abc":
            keep(store, key)
        store.keep_failure("f", "ada", "rate", JudgeError("filtered", "no"))
    assert len(caplog.records) == 1 and data_of(store, "b") == 1 and store.holds("b") and len(store) == 3
    disk.full = False
    keep(store, "d")
    assert "these results only" not in store.notes()[0] and "disk full" in store.notes()[0]
    store.close()
    again = Store(tmp_path / "s.db")
    assert [data_of(again, key) for key in "abcd"] == [1] * 4
    again.close()


# ---------------------------------------------------------------------------------------------- damaged files


def filled(path: Path, count: int = 400) -> Path:
    store = Store(path)
    for at in range(count):
        keep(store, f"key-{at}", {"findings": f"number {at} " + "words " * 60, "score": at})
    store.close()
    return path


def outcome(path: Path, count: int = 400) -> str:
    """'refused', or how many answers are right; a wrong one fails the test."""
    try:
        store = Store(path)
    except jm.InputError as error:
        assert "damaged" in str(error) and str(path) in str(error)
        return "refused"
    right = 0
    for at in range(count):
        data = data_of(store, f"key-{at}")
        assert data is None or data["score"] == at, "a damaged answer never becomes another one"
        right += data is not None
    assert right == count or store.notes()
    store.close()
    return f"{right} right"


@pytest.mark.parametrize("share", [0.1, 0.35, 0.5, 0.77, 0.95])
def test_bytes_flipped_in_the_middle(tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path / "s.db")
    whole = bytearray(path.read_bytes())
    start = int(len(whole) * share)
    for at in range(start, start + 200):
        whole[at] ^= 0x15
    path.write_bytes(whole)
    assert outcome(path) != "400 right"


def test_one_digit_changed_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path / "s.db", 10)
    path.write_bytes(path.read_bytes().replace(b'"score": 7}', b'"score": 9}'))
    assert outcome(path, 10) == "9 right"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_truncated_file_is_refused_or_said(tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path / "s.db")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert outcome(path) == "refused"


def test_damaged_answer_is_asked_again_and_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, judge = tmp_path / "s.db", honest()
    first = jm.evaluate(records(5), ["coherence"], judge, store=path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE answers SET data = replace(data, '4', '1') WHERE key = (SELECT min(key) FROM answers)")
    database.close()
    second = jm.evaluate(records(5), ["coherence"], judge, store=path)
    assert second.scores["score"].tolist() == first.scores["score"].tolist() == [4] * 5
    assert len(judge.asked) == 6 and any("cannot be read and is asked for again" in note for note in second.notes())
    jm.evaluate(records(5), ["coherence"], judge, store=path)
    assert len(judge.asked) == 6


def test_answer_of_another_shape_is_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, judge = tmp_path / "s.db", honest()
    jm.evaluate(records(3), ["coherence"], judge, store=path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE answers SET data = '{}', digest = NULL")
    database.close()
    assert (jm.evaluate(records(3), ["coherence"], judge, store=path).scores["status"] == "ok").all()
    assert len(judge.asked) == 6


FIRST_FORMAT = """
CREATE TABLE answers (
    key TEXT PRIMARY KEY, judge_key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
    trace TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, judge TEXT NOT NULL, kind TEXT NOT NULL, failure TEXT NOT NULL,
    message TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX failures_by_key ON failures (key);
CREATE TABLE learned (id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, facts TEXT NOT NULL, at TEXT NOT NULL);
PRAGMA user_version=1;
"""


def test_file_of_the_first_format_is_extended_and_keeps_its_answers(tmp_path: Path) -> None:
    path, judge = tmp_path / "s.db", honest()
    jm.evaluate(records(4), ["coherence"], judge, store=path)
    old = tmp_path / "old.db"
    with sqlite3.connect(old) as database:
        database.executescript(FIRST_FORMAT)
        database.execute("ATTACH ? AS new", (str(path),))
        database.execute("INSERT INTO answers SELECT key, judge_key, judge, kind, data, trace, at FROM new.answers")
    database.close()
    assert (jm.evaluate(records(4), ["coherence"], judge, store=old).scores["status"] == "ok").all()
    assert len(judge.asked) == 4
    with sqlite3.connect(old) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    database.close()


def test_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (tmp_path / "file" / "s.db", tmp_path):
        with pytest.raises(jm.InputError, match=r"store .*cannot be (opened|written)"):
            Store(path)


# ---------------------------------------------------------------------------------------------- overview, prune


def test_overview_sums_over_all_sittings(tmp_path: Path) -> None:
    for _ in range(2):
        store = Store(tmp_path / "s.db")
        at = len(store)
        keep(store, f"{at}", usage=Usage(100, 10), cost_usd=0.5)
        keep(store, f"{at + 1}", judge="bob", usage=Usage(None, 7))
        store.keep_failure("f", "cem", "rate", JudgeError("filtered", "no"))
        store.close()
    store = Store(tmp_path / "s.db")
    ada, bob, cem = store.overview()
    assert (ada.judge, ada.answers, ada.prompt_tokens, ada.completion_tokens) == ("ada", 2, 200, 20)
    assert (ada.cost_usd, ada.unpriced, bob.cost_usd, bob.unpriced, bob.completion_tokens) == (1.0, 0, 0.0, 2, 14)
    assert (cem.answers, cem.failures, cem.first) == (0, {"filtered": 2}, None)
    assert ada.first is not None and ada.last is not None and ada.first <= ada.last <= datetime.now(UTC)
    store.close()


def test_prune_removes_what_was_meant_and_nothing_else(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", 300)
    store = Store(path)
    keep(store, "other", judge="bob")
    size = path.stat().st_size
    with pytest.raises(jm.InputError, match="give a judge"):
        store.prune()
    assert store.prune(judge="ada", before=date(2020, 1, 1)) == 0
    assert store.prune(before=datetime.now(UTC) + timedelta(seconds=1), judge="ada") == 300
    assert data_of(store, "other") == 1 and len(store) == 1 and path.stat().st_size < size / 2
    assert store.prune(before=date.today() + timedelta(days=2)) == 1
    store.close()


def test_overview_keeps_kinds_of_tasks_and_of_failures_apart(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    for at, kind in enumerate(("rate", "check", "rate")):
        store.keep(str(at), judge_key="j", judge="ada", kind=kind, data=1, trace=Trace(latency_s=float(at)))
    for failure in ("refused", "filtered", "refused"):
        store.keep_failure("f", "ada", "rate", JudgeError(failure, "no"))
    assert [(one.kind, one.answers, dict(one.failures)) for one in store.overview()] == [
        ("check", 1, {}),
        ("rate", 2, {"filtered": 1, "refused": 2}),
    ]
    assert store.meant(judge="ada") == (3, 3) and store.meant(before=date(2020, 1, 1)) == (0, 0)
    assert [(kind, trace.latency_s) for kind, trace in store.traces("j", 2)] == [("rate", 0.0), ("check", 1.0)]
    with pytest.raises(jm.InputError, match="give a judge"):
        store.meant()
    store.close()


def test_traces_that_cannot_be_read_teach_nothing_and_are_said(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    keep(store, "k")
    store._db.execute("UPDATE answers SET trace = '{'")
    assert store.traces("j", 10) == [] and "cannot be read" in store.notes()[0]
    with pytest.raises(jm.InputError, match="damaged"):
        store.overview()
    store.close()


def test_answers_without_a_file_are_gone_with_the_store() -> None:
    judge = ScriptedJudge("ada", lambda task, _: answer_all(task))
    for _ in range(2):
        jm.evaluate(records(2), ["coherence"], judge, store=None)
    assert len(judge.asked) == 4


@pytest.mark.parametrize("content", [b"x", b"{}", b"id,answer\n1,a\n"])
def test_small_file_of_another_kind_is_not_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plainfile"
    path.write_bytes(content)
    with pytest.raises(jm.InputError, match="not a usable sqlite file"):
        Store(path)
    assert path.read_bytes() == content
