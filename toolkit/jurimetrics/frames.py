"""The rows that an evaluation writes, their Parquet schemas, and the folder they live in.

A folder of results holds `records/`, `scores/`, `calls/` and `uses/` with Parquet parts, and `settings.json`. Parts are
written as rows are done. What can be computed from rows (pass or fail, shares of cost) is computed when a frame is read
(`results/reading.py`).
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.records import Record


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

RECORD_SCHEMA = pa.schema(
    [
        ("id", _text), ("question", _text), ("answer", _text), ("contexts", pa.list_(_text)), ("reference", _text),
        ("variant", _text), ("group", _text), ("answer_model", _text), ("answer_latency_s", _real),
        ("answer_prompt_tokens", _whole), ("answer_completion_tokens", _whole), ("answer_cost_usd", _real),
        ("answer_error", _text), ("metadata", _text),
    ]
)  # fmt: skip

_call_values = attrgetter(*CALL_SCHEMA.names)

SCHEMAS: Mapping[str, pa.Schema] = {
    "records": RECORD_SCHEMA, "scores": SCORE_SCHEMA, "calls": CALL_SCHEMA, "uses": USE_SCHEMA,
}  # fmt: skip
SETTINGS = "settings.json"


class RowWriter:
    """Writes rows into a folder of results while an evaluation goes on.

    Rows are buffered and written as a part whenever one table holds `rows_per_part` rows or about `bytes_per_part`
    bytes of text, so memory is flat in the number and the length of rows. A part appears under its name only when it is
    whole: a process that is killed leaves whole parts. `settings` are written at once and marked `interrupted`, so that
    what a killed process leaves can be loaded; `close` writes the final ones.

    A folder in which an evaluation has ended is not written over unless `replace` is True; what an evaluation that never
    ended left there is removed. Without a `folder` a temporary one is made (`temporary`), which whoever reads it removes. One
    writer is used from one thread. Raises `InputError` for a folder that cannot be used.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> writer = RowWriter(folder)
    >>> writer.score(ScoreRow("1", "", "f1", "computed", 0, "1", 0.5, "ok", "2 of 4 tokens are shared"))
    >>> writer.close({"metrics": {}})
    >>> read_settings(folder)["rows"]
    {'records': 0, 'scores': 1, 'calls': 0, 'uses': 0}
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        rows_per_part: int = 5_000,
        bytes_per_part: int = 8_000_000,
        *,
        settings: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> None:
        self.temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="jurimetrics-")) if folder is None else Path(folder)
        self._rows_per_part, self._bytes_per_part = rows_per_part, bytes_per_part
        self._buffers: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}
        self._bytes = dict.fromkeys(SCHEMAS, 0)
        self._parts = dict.fromkeys(SCHEMAS, 0)
        self._written = dict.fromkeys(SCHEMAS, 0)
        self._closed = False
        try:
            _make_room(self.folder, replace, {"metrics": {}, **(settings or {}), "interrupted": True})
        except OSError as fault:
            raise InputError(f"{self.folder}: cannot be written ({fault.strerror or fault})") from fault

    def record(self, record: Record) -> None:
        """Keep a record; `metadata` becomes JSON text."""
        row = tuple(
            to_json(dict(record.metadata)) if name == "metadata" else getattr(record, name)
            for name in RECORD_SCHEMA.names
        )
        size = sum(map(sys.getsizeof, row)) + sum(map(sys.getsizeof, record.contexts or ()))
        self._add("records", row, size)

    def score(self, row: ScoreRow) -> None:
        """Keep a row of the score frame. Raises `ValueError` where `score` and `status` contradict each other."""
        score = None if row.score is None or math.isnan(row.score) else float(row.score)
        if (score is None) == (row.status == "ok") or (score is not None and math.isinf(score)):
            raise ValueError(
                f"{row.metric} of {row.id!r}: status {row.status!r} cannot go with the score {row.score!r}"
            )
        details, flags = to_json(row.details), [str(flag) for flag in row.flags]
        reason, error = str(row.reason), str(row.error)
        key = (row.id, row.variant, row.metric, row.judge, row.repeat, row.group)
        size = sum(map(sys.getsizeof, (reason, error, details))) + 500
        self._add("scores", (*key, score, row.status, reason, error, flags, row.disagreement, details, row.panel), size)

    def call(self, row: CallRow) -> None:
        """Keep a row of the call frame."""
        self._add("calls", _call_values(row), sys.getsizeof(row.error) + 1_000)

    def use(self, row: UseRow) -> None:
        """Keep that a row used an ask."""
        self._add("uses", (row.ask, row.id, row.variant, row.metric, row.judge, row.repeat), 500)

    def flush(self) -> None:
        """Write what is buffered. After an error (a full disk) the rows are still buffered, and it can be tried again."""
        for table in SCHEMAS:
            self._flush(table)

    def close(self, settings: Mapping[str, Any]) -> None:
        """Write what is left, then `settings` with the number of rows of each table, from which a lost part is told."""
        for table in SCHEMAS:
            self._flush(table, even_empty=True)
        write_settings(self.folder, {**settings, "rows": self._written})
        self._closed = True

    def abandon(self) -> None:
        """End without an end: the rows so far are written, but the folder stays marked as unfinished, as after a kill.

        A temporary folder is removed.
        """
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.flush()
        self._closed = True

    def _add(self, table: str, row: tuple[Any, ...], size: int) -> None:
        if self._closed:
            raise ValueError("the writer is closed")
        self._buffers[table].append(row)
        self._bytes[table] += size
        if len(self._buffers[table]) >= self._rows_per_part or self._bytes[table] >= self._bytes_per_part:
            self._flush(table)

    def _flush(self, table: str, even_empty: bool = False) -> None:
        rows = self._buffers[table]
        if not rows and not (even_empty and self._parts[table] == 0):
            return
        path = self.folder / table / f"part-{self._parts[table]:05d}.parquet"
        write_part(to_table(table, rows), path)
        self._written[table] += len(rows)
        self._parts[table] += 1
        self._buffers[table], self._bytes[table] = [], 0


def to_table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    r"""Rows as an Arrow table of the schema `name`. Half of a surrogate pair, which no file can hold, is spelt out.

    >>> row = ("ask", "half \ud800", "", "f1", "computed", 0)
    >>> to_table("uses", [row]).column("id").to_pylist()
    ['half \\ud800']
    """
    schema = SCHEMAS[name]
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    return pa.table([_array(list(column), field.type) for column, field in zip(columns, schema, strict=True)], schema)


def write_part(table: pa.Table, path: Path) -> None:
    """Write one part so that it is seen whole or not at all."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write `settings.json` of a folder of results so that it is seen whole or not at all."""
    text = json.dumps(settings, ensure_ascii=False, allow_nan=False, indent=2)
    unfinished = folder / f".{SETTINGS}.unfinished"
    # Half of a surrogate pair becomes the JSON escape that means it.
    unfinished.write_bytes(text.encode("utf-8", "backslashreplace"))
    unfinished.replace(folder / SETTINGS)


def read_settings(folder: Path | str) -> dict[str, Any]:
    """The settings of a folder of results. Raises `InputError` where there are none or they cannot be read."""
    path = Path(folder) / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: no {SETTINGS}, so this is not a folder of results") from None
    except (OSError, ValueError, RecursionError) as fault:
        raise InputError(f"{path}: cannot be read as JSON ({fault})") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("metrics"), dict):
        raise InputError(f"{path}: expected an object with the key 'metrics'")
    for name, declared in settings["metrics"].items():
        if not isinstance(declared, dict) or not isinstance(declared.get("threshold", None), int | float | None):
            raise InputError(f"{path}: expected an object with range and threshold for the metric {name!r}")
    return settings


def to_json(value: Any) -> str:
    """`value` as JSON text. What JSON lacks is written as what comes nearest, and never ends a run.

    NaN and infinity become null, dataclasses objects, dates ISO text, numpy's numbers numbers, sets sorted lists, and
    anything else its `repr`, or its type where even that fails.

    >>> to_json({"claims": ("a", "b"), "share": float("nan"), "é": 1})
    '{"claims": ["a", "b"], "share": null, "é": 1}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(_plain(value), ensure_ascii=True, allow_nan=False)
    return text


def _plain(value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        # Python writes no integer of more digits than this, and few readers take them.
        return value if value.bit_length() < 10_000 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > 60:
        return _repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({one.name: getattr(value, one.name) for one in fields(value)}, depth + 1)
    if isinstance(value, Mapping):
        return {_name(key): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(inner, depth + 1) for inner in value), key=repr)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), depth + 1)
    return _repr(value)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else str(_plain(key))


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as fault:  # noqa: BLE001 - an object that cannot be shown must not end a run
        return f"<{type(value).__name__}, whose repr raises {type(fault).__name__}>"


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_spelt(value) for value in values], kind)


def _spelt(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return [_spelt(inner) for inner in value] if isinstance(value, list | tuple) else value


def _make_room(folder: Path, replace: bool, settings: Mapping[str, Any]) -> None:
    """Make the folder and its tables; remove the parts of an evaluation that never ended, or that may be replaced."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, expected a folder")
    left = [part for table in SCHEMAS for part in (folder / table).glob("*part-*.parquet*")]
    if (folder / SETTINGS).exists():
        if not replace and not read_settings(folder).get("interrupted"):
            raise InputError(f"{folder}: already holds results; choose another folder or remove it")
    elif folder.exists():
        others = sorted(each.name for each in folder.iterdir() if each.name != ".gitignore")
        if others:
            raise InputError(f"{folder / others[0]}: belongs to something else than results; choose another folder")
    for table in SCHEMAS:
        (folder / table).mkdir(parents=True, exist_ok=True)
    # Marked before anything is removed: whenever the process dies, the folder says that it is unfinished.
    write_settings(folder, settings)
    for part in left:
        part.unlink()
