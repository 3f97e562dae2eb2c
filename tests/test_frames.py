"""The writer of rows, the folder it leaves, and the shares of cost."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.frames import (
    CALL_SCHEMA,
    RECORD_SCHEMA,
    SCORE_SCHEMA,
    USE_SCHEMA,
    CallRow,
    RowWriter,
    ScoreRow,
    UseRow,
    read_settings,
    to_json,
)
from jurimetrics.records import Record
from jurimetrics.results.reading import SCORE_COLUMNS, read_calls, read_parts, read_records, read_scores
from jurimetrics.results.shares import bill

DECLARED = {"m": {"range": [0, 1], "higher_is_better": True, "threshold": 0.5}}


def score(identity: str = "1", **changes: Any) -> ScoreRow:
    row = ScoreRow(identity, "", "m", "j", 0, identity, 0.5, "ok", "because")
    return dataclasses.replace(row, **changes)


def call(ask: str = "a", **changes: Any) -> CallRow:
    row = CallRow(
        ask=ask, judge="j", kind="check", task_key="k", repeat=0, attempt=1, status="ok", error="", model="x",
        model_returned="x-1", fingerprint=None, prompt_tokens=100, cached_prompt_tokens=0, completion_tokens=10,
        reasoning_tokens=None, cost_usd=0.01, saved_usd=None, latency_s=0.5, finish_reason="stop", format="json_schema",
        refused_parameters=("seed",), from_store=False, at=datetime(2026, 1, 2, tzinfo=UTC),
    )  # fmt: skip
    return dataclasses.replace(row, **changes)


def use(ask: str = "a", identity: str = "1", metric: str = "m", judge: str = "j") -> UseRow:
    return UseRow(ask, identity, "", metric, judge, 0)


def write(folder: Path, *rows: Any, declared: Any = None) -> dict[str, Any]:
    writer = RowWriter(folder)
    put: dict[type, Callable[[Any], None]] = {
        ScoreRow: writer.score,
        CallRow: writer.call,
        UseRow: writer.use,
        Record: writer.record,
    }
    for row in rows:
        put[type(row)](row)
    writer.close({"metrics": DECLARED if declared is None else declared})
    return read_settings(folder)


@pytest.mark.parametrize(
    ("schema", "row"), [(SCORE_SCHEMA, ScoreRow), (CALL_SCHEMA, CallRow), (USE_SCHEMA, UseRow), (RECORD_SCHEMA, Record)]
)
def test_schema_holds_every_field(schema: Any, row: Any) -> None:
    assert sorted(schema.names) == sorted(field.name for field in dataclasses.fields(row))


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    record = Record("1", question="q", answer="a", contexts=("c", "d"), metadata={"topic": "law", "n": 1})
    rows = [score(flags=("split",), details={"claims": [{"text": "é", "verdict": None}]}), call(), use(), record]
    kept = write(tmp_path / "out", *rows)
    scores = read_scores(tmp_path / "out", kept)
    assert tuple(scores.columns) == SCORE_COLUMNS
    row = scores.iloc[0]
    assert (row["score"], row["reason"], row["flags"]) == (0.5, "because", ["split"])
    assert json.loads(row["details"]) == {"claims": [{"text": "é", "verdict": None}]}
    assert (row["judge_calls"], row["judge_prompt_tokens"], row["judge_cost_usd"]) == (1, 100, 0.01)
    records: Any = read_records(tmp_path / "out")
    assert records.loc[0, "contexts"] == ["c", "d"]
    assert json.loads(str(records.loc[0, "metadata"])) == {"topic": "law", "n": 1}
    assert pd.isna(records.loc[0, "reference"])
    calls: Any = read_calls(tmp_path / "out")
    assert calls.loc[0, "refused_parameters"] == ["seed"]
    assert pd.isna(calls.loc[0, "reasoning_tokens"]) and calls.loc[0, "at"] == pd.Timestamp("2026-01-02", tz="UTC")


def test_no_rows_at_all_still_read(tmp_path: Path) -> None:
    kept = write(tmp_path / "out")
    scores = read_scores(tmp_path / "out", kept)
    assert len(scores) == 0 and tuple(scores.columns) == SCORE_COLUMNS


def test_half_a_surrogate_pair_and_nul_are_kept_apart_and_do_not_end_the_run(tmp_path: Path) -> None:
    bad = "\ud800 and \x00"
    rows = [
        score("\ud800", reason=bad, error="", details={"quote": bad, "nul": "\0"}, flags=(bad,)),
        score("\udc00", reason="fine"),
        call(error=bad, refused_parameters=(bad,)),
        use(identity="\ud800"),
    ]
    kept = write(tmp_path / "out", *rows)
    scores = read_scores(tmp_path / "out", kept)
    assert scores["id"].tolist() == ["\\ud800", "\\udc00"]
    assert scores.loc[0, "reason"] == "\\ud800 and \x00"
    assert json.loads(str(scores.loc[0, "details"])) == {"quote": bad, "nul": "\0"}
    assert scores["judge_calls"].tolist() == [1, 0]


def test_nan_is_never_written_for_a_score(tmp_path: Path) -> None:
    write(tmp_path / "out", score(score=math.nan, status="undefined"))
    assert read_parts(tmp_path / "out", "scores", ["score"]).column("score").null_count == 1


@pytest.mark.parametrize(
    "changes",
    [{"score": None}, {"score": math.nan}, {"score": math.inf}, {"status": "failed"}, {"status": "undefined"}],
)
def test_score_and_status_cannot_contradict_each_other(tmp_path: Path, changes: Any) -> None:
    with pytest.raises(ValueError, match="cannot go with"):
        RowWriter(tmp_path / "out").score(score(**changes))


def test_details_of_any_kind_never_end_the_run() -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    odd = {
        "nan": math.nan,
        "numpy": np.float64(0.5),
        "array": np.arange(2),
        "date": date(2026, 1, 2),
        "set": {2, 1},
        3: 1,
    }
    assert json.loads(to_json(odd)) == {
        "nan": None, "numpy": 0.5, "array": [0, 1], "date": "2026-01-02", "set": [1, 2], "3": 1,
    }  # fmt: skip
    assert json.loads(to_json({"row": score()}))["row"]["id"] == "1"
    assert "again" in json.loads(to_json(circle))
    assert "object" in json.loads(to_json([object()]))[0]


def test_parts_are_bounded_by_rows(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "out", rows_per_part=10)
    for number in range(25):
        writer.score(score(str(number)))
    assert len(list((tmp_path / "out/scores").glob("part-*.parquet"))) == 2
    writer.close({"metrics": DECLARED})
    assert [pq.read_metadata(part).num_rows for part in sorted((tmp_path / "out/scores").iterdir())] == [10, 10, 5]


def test_z08_parts_are_bounded_by_bytes_so_memory_is_flat_in_reply_length(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "out", bytes_per_part=1_000_000)
    text = "x" * 20_000
    for number in range(500):
        writer.score(score(str(number), details={"reply": text}))
        writer.record(Record(str(number), contexts=(text,)))
    writer.close({"metrics": DECLARED})
    for table in ("scores", "records"):
        parts = list((tmp_path / "out" / table).glob("part-*.parquet"))
        assert 10 <= len(parts) <= 12
        assert max(pq.read_metadata(part).num_rows for part in parts) <= 51


def test_a_killed_process_leaves_whole_parts_that_load(tmp_path: Path) -> None:
    program = f"""
import os, signal
from jurimetrics.frames import RowWriter, ScoreRow
writer = RowWriter({str(tmp_path / "out")!r}, rows_per_part=10, settings={{"metrics": {DECLARED!r}}})
for number in range(35):
    writer.score(ScoreRow(str(number), "", "m", "j", 0, str(number), 0.5, "ok", ""))
os.kill(os.getpid(), signal.SIGKILL)
"""
    # S603: the program is the text above.
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    kept = read_settings(tmp_path / "out")
    assert kept["interrupted"] is True
    assert len(read_scores(tmp_path / "out", kept)) == 30
    assert len(read_scores(tmp_path / "out", write(tmp_path / "out", score()))) == 1


def test_rows_survive_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RowWriter(tmp_path / "out", rows_per_part=2)
    writer.score(score("1"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        with pytest.raises(OSError, match="No space"):
            writer.score(score("2"))
    writer.close({"metrics": DECLARED})
    assert read_scores(tmp_path / "out", read_settings(tmp_path / "out"))["id"].tolist() == ["1", "2"]


def test_finished_results_are_not_written_over(tmp_path: Path) -> None:
    write(tmp_path / "out", score())
    with pytest.raises(InputError, match="already holds results"):
        RowWriter(tmp_path / "out")
    RowWriter(tmp_path / "out", replace=True).close({"metrics": DECLARED})
    assert len(read_scores(tmp_path / "out", read_settings(tmp_path / "out"))) == 0


def test_parquet_of_something_else_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records/part-00000.parquet").write_bytes(b"spark")
    with pytest.raises(InputError, match="belongs to something else"):
        RowWriter(tmp_path)
    assert (tmp_path / "records/part-00000.parquet").read_bytes() == b"spark"


def test_a_file_in_the_way_and_a_closed_writer_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="expected a folder"):
        RowWriter(tmp_path / "file")
    writer = RowWriter(tmp_path / "out")
    writer.close({"metrics": {}})
    with pytest.raises(ValueError, match="closed"):
        writer.score(score())


def test_abandoned_rows_stay_in_a_named_folder_and_a_temporary_one_goes(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "out")
    writer.score(score())
    writer.abandon()
    kept = read_settings(tmp_path / "out")
    assert kept["interrupted"] and len(read_scores(tmp_path / "out", kept)) == 1
    other = RowWriter()
    assert other.temporary and other.folder.is_dir()
    other.abandon()
    assert not other.folder.exists()


def test_order_of_writing_never_shows(tmp_path: Path) -> None:
    rows = [score(identity, judge=judge, metric=metric, repeat=repeat, panel=judge == "a panel")
            for identity in ("2", "10", "1") for metric in ("z", "m") for judge in ("b", "c", "a panel")
            for repeat in (0, 1)]  # fmt: skip
    records = [Record(identity) for identity in ("2", "10", "1")]
    declared = {"z": DECLARED["m"], "m": DECLARED["m"]}
    one = write(tmp_path / "one", *records, *rows, declared=declared)
    write(tmp_path / "two", *records, *reversed(rows), declared=declared)
    frames = [read_scores(tmp_path / name, one) for name in ("one", "two")]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    expected = [(row.id, row.metric, row.judge, row.repeat) for row in rows]
    assert list(zip(*(frames[0][name] for name in ("id", "metric", "judge", "repeat")), strict=True)) == expected


def test_k04_an_answer_from_the_store_costs_nothing_and_takes_no_tokens(tmp_path: Path) -> None:
    kept = write(tmp_path / "out", score(), call(from_store=True, cost_usd=0.0, saved_usd=0.01), use())
    row = read_scores(tmp_path / "out", kept).iloc[0]
    assert (row["judge_cost_usd"], row["judge_prompt_tokens"], row["judge_calls"], row["cached_calls"]) == (0, 0, 0, 1)


def test_k05_an_unknown_price_is_null_in_every_row_that_used_the_call(tmp_path: Path) -> None:
    rows = [score("1"), score("2"), score("3"), call("a", cost_usd=None), call("b"), use("a", "1"), use("a", "2"),
            use("b", "2"), use("b", "3")]  # fmt: skip
    scores = read_scores(tmp_path / "out", write(tmp_path / "out", *rows))
    assert scores["judge_cost_usd"].isna().tolist() == [True, True, False]
    assert scores.loc[2, "judge_cost_usd"] == pytest.approx(0.005)


def test_k09_missing_usage_is_unknown_not_zero(tmp_path: Path) -> None:
    rows = [score(), call(prompt_tokens=None, completion_tokens=7), use()]
    row = read_scores(tmp_path / "out", write(tmp_path / "out", *rows)).iloc[0]
    assert math.isnan(row["judge_prompt_tokens"]) and row["judge_completion_tokens"] == 7


def test_rows_that_asked_nobody_cost_nothing(tmp_path: Path) -> None:
    scores = read_scores(
        tmp_path / "out", write(tmp_path / "out", score("1", panel=True), score("2", judge="computed"))
    )
    assert scores["judge_cost_usd"].tolist() == [0, 0] and scores["judge_calls"].tolist() == [0, 0]


def test_every_try_of_an_ask_belongs_to_the_rows_that_used_it(tmp_path: Path) -> None:
    tries = [call("a", status="timeout", attempt=1), call("a", attempt=2)]
    uses = [use("a", "1"), use("a", "2"), use("a", "2")]
    scores = read_scores(tmp_path / "out", write(tmp_path / "out", score("1"), score("2"), *tries, *uses))
    assert scores["judge_cost_usd"].tolist() == [0.01, 0.01]
    assert scores["judge_calls"].tolist() == [2, 2] and scores["judge_latency_s"].tolist() == [1.0, 1.0]


def test_a_call_that_nobody_used_stays_in_the_call_frame(tmp_path: Path) -> None:
    kept = write(tmp_path / "out", score(), call("a"), call("lost"), use("a"))
    assert read_calls(tmp_path / "out")["cost_usd"].sum() == pytest.approx(0.02)
    assert read_scores(tmp_path / "out", kept)["judge_cost_usd"].sum() == pytest.approx(0.01)


@st.composite
def used(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    count = draw(st.integers(1, 12))
    rows = pd.DataFrame(
        {"id": [str(at) for at in range(count)], "variant": "", "metric": "m", "judge": "j", "repeat": 0}
    )
    asks = draw(st.integers(1, 8))
    pairs = [(str(ask), draw(st.integers(0, count - 1))) for ask in range(asks)]
    pairs += draw(st.lists(st.tuples(st.integers(0, asks - 1).map(str), st.integers(0, count - 1)), max_size=40))
    uses = rows.iloc[[row for _, row in pairs]].assign(ask=[ask for ask, _ in pairs])
    spent = draw(
        st.lists(st.tuples(st.integers(0, asks - 1).map(str), st.floats(0, 100), st.integers(0, 9999)), max_size=20)
    )
    calls = pd.DataFrame(
        {
            "ask": pd.Series([ask for ask, _, _ in spent], dtype=str),
            "from_store": pd.Series(False, index=range(len(spent)), dtype=bool),
            "latency_s": 0.1,
            "cost_usd": pd.Series([cost for _, cost, _ in spent], dtype=float),
            "prompt_tokens": pd.Series([tokens for _, _, tokens in spent], dtype="Int64"),
            "completion_tokens": pd.Series([1] * len(spent), dtype="Int64"),
        }
    )
    return rows, calls, uses


@settings(deadline=None)
@given(used())
def test_shares_sum_to_the_bill(frames: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]) -> None:
    rows, calls, uses = frames
    found = bill(rows, calls, uses)
    assert math.fsum(found.share("cost_usd").strict) == pytest.approx(math.fsum(calls["cost_usd"]), abs=1e-9)
    assert math.fsum(found.share("prompt_tokens").strict) == pytest.approx(int(calls["prompt_tokens"].sum()), abs=1e-9)


@settings(deadline=None)
@given(used())
def test_shares_are_equal_parts_by_a_slow_second_way(frames: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]) -> None:
    rows, calls, uses = frames
    users = {ask: set(part["id"]) for ask, part in uses.groupby("ask")}
    slow = dict.fromkeys(rows["id"], 0.0)
    for ask, cost in zip(calls["ask"], calls["cost_usd"], strict=True):
        for identity in users[ask]:
            slow[identity] += cost / len(users[ask])
    assert bill(rows, calls, uses).share("cost_usd").strict == pytest.approx(list(slow.values()), abs=1e-9)


def test_shares_of_many_rows_take_no_time() -> None:
    count = 15_000
    rows = pd.DataFrame(
        {"id": [str(at // 15) for at in range(count)], "variant": "", "metric": [f"m{at % 5}" for at in range(count)],
         "judge": [f"j{at // 5 % 3}" for at in range(count)], "repeat": 0}
    )  # fmt: skip
    uses = pd.concat(
        [rows.assign(ask=[f"a{at // 2}" for at in range(count)]), rows.assign(ask=[f"b{at}" for at in range(count)])]
    )
    asks = uses["ask"].unique()
    calls = pd.DataFrame({"ask": asks, "from_store": False, "latency_s": 0.1, "cost_usd": 0.001, "prompt_tokens": 10,
                          "completion_tokens": 1})  # fmt: skip
    begun = time.process_time()
    found = bill(rows, calls, uses).share("cost_usd").strict
    assert math.fsum(found) == pytest.approx(0.001 * len(asks), abs=1e-9)
    # Far above what it takes (some hundredths), far below what a loop over rows would.
    assert time.process_time() - begun < 1.0


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    kept = write(tmp_path / "out", score())
    part = next((tmp_path / "out/scores").glob("part-*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(InputError, match=r"part-00000\.parquet: cannot be read"):
        read_scores(tmp_path / "out", kept)


@pytest.mark.parametrize(
    ("text", "says"), [("{", "cannot be read as JSON"), ("[]", "expected an object"), (None, "no settings")]
)
def test_damaged_settings_are_named(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / "settings.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_settings(tmp_path)
