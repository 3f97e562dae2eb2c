"""Somebody's table -> rows with their position: CSV, TSV, JSONL, JSON, Parquet, a frame, dictionaries.

Nothing is interpreted here: cells stay as the source holds them, but for a blank CSV cell, which is ``None``.
What the columns mean is the business of :mod:`jurimetrics.columns`, what a cell means that of :mod:`jurimetrics.cells`.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pandas as pd

from jurimetrics.cells import show
from jurimetrics.errors import InputError

Source = str | os.PathLike[str] | pd.DataFrame | Iterable[Any]
_PARQUET_BATCH = 1024
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")


class Row(NamedTuple):
    """One row: its number (from 1, headers and blank lines not counted), its line in a text file, and its cells."""

    number: int
    line: int | None
    cells: Any

    @property
    def place(self) -> str:
        """Where the row is, for people.

        >>> Row(3, 4, {}).place
        'row 3 (line 4)'
        """
        return f"row {self.number}" if self.line is None else f"row {self.number} (line {self.line})"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that are read as they are asked for, once.

    ``name`` is what errors call the source. ``fixed``: every row has the same columns. ``textual``: all cells are text.
    """

    name: str
    rows: Iterator[Row]
    fixed: bool = False
    textual: bool = False


def read_table(source: Source) -> Table:
    """Open a path, a frame or an iterable of dictionaries; one row at a time is held, but for JSON arrays and frames.

    Raises :class:`InputError` for a file that is not there or of unknown type; the rows raise it for what is in them.

    >>> [row.cells for row in read_table([{"id": 1}, {"id": 2}]).rows]
    [{'id': 1}, {'id': 2}]
    """
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source))
    if isinstance(source, pd.DataFrame):
        return Table("the frame", _naming("the frame", _frame_rows(source)), fixed=True)
    if isinstance(source, (Mapping, bytes, pd.Series)) or not isinstance(source, Iterable):
        raise InputError(f"expected a path, a DataFrame or a list of dictionaries, found a {type(source).__name__}")
    return Table("the list", (Row(number, None, item) for number, item in enumerate(source, 1)))


def named_cells(row: Row, table: str) -> dict[str, Any]:
    """The cells of a row by the text of their column's name. Raises :class:`InputError` for a row that has no names.

    >>> named_cells(Row(1, None, {0: "a"}), "the list")
    {'0': 'a'}
    """
    if not isinstance(row.cells, Mapping):
        raise InputError(f"{table}: {row.place}: expected an object with named values, found {show(row.cells)}")
    _refuse_repeated([str(name) for name in row.cells])
    return {str(name): value for name, value in row.cells.items()}


def _read_file(path: Path) -> Table:
    suffix = path.suffix.lower()
    readers: dict[str, Callable[[Path], Iterator[Row]]] = {
        ".csv": partial(_text_rows, read=partial(_csv_rows, delimiter=",")),
        ".tsv": partial(_text_rows, read=partial(_csv_rows, delimiter="\t")),
        ".jsonl": partial(_text_rows, read=_jsonl_rows),
        ".ndjson": partial(_text_rows, read=_jsonl_rows),
        ".json": partial(_text_rows, read=_json_rows),
        ".parquet": _parquet_rows,
    }
    if suffix not in readers:
        raise InputError(f"{path}: expected a file that ends in one of {', '.join(readers)}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file" + (" (it is a folder)" if path.is_dir() else ""))
    textual = suffix in (".csv", ".tsv")
    rows = _naming(str(path), readers[suffix](path))
    return Table(str(path), rows, fixed=textual or suffix == ".parquet", textual=textual)


def _naming(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error


def _frame_rows(frame: pd.DataFrame) -> Iterator[Row]:
    names = [str(name) for name in frame.columns]
    _refuse_repeated(names)
    # Column by column: going through rows would turn integers beside a missing value into floats.
    columns = [frame.iloc[:, position].tolist() for position in range(len(names))]
    for number, values in enumerate(zip(*columns, strict=True), 1):
        yield Row(number, None, dict(zip(names, values, strict=True)))


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as stored:
            _refuse_repeated(stored.schema_arrow.names)
            names = [name for name in stored.schema_arrow.names if not _PARQUET_INDEX.fullmatch(name)]
            number = 0
            for batch in stored.iter_batches(batch_size=_PARQUET_BATCH, columns=names):
                for cells in batch.to_pylist():
                    number += 1
                    yield Row(number, None, cells)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"expected a readable Parquet file: {error}") from error


def _text_rows(path: Path, read: Callable[[TextIO], Iterator[Row]]) -> Iterator[Row]:
    with path.open("rb") as raw:
        _refuse_wide_encodings(raw.read(4))
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from read(stream)
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8, found {_bad_byte(path)}; save the file as UTF-8") from error


def _refuse_wide_encodings(head: bytes) -> None:
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    # Without a mark, every other byte of ASCII text is NUL, which no header or JSON text begins with.
    unmarked = len(head) == 4 and (head[1] == head[3] == 0 or head[0] == head[2] == 0)
    if marked or unmarked:
        raise InputError("expected UTF-8, found UTF-16 or UTF-32; save the file as UTF-8")


def _bad_byte(path: Path) -> str:
    offset = 0
    with path.open("rb") as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"the byte 0x{byte:02X} in line {number} (byte {offset + error.start + 1} of the file)"
            offset += len(line)
    return "other bytes"


def _csv_rows(stream: TextIO, delimiter: str) -> Iterator[Row]:
    rows = split_csv(stream, delimiter)
    header = next(rows, None)
    if header is None:
        return
    names = [name if name.strip() else f"column {position}" for position, name in enumerate(header[1], 1)]
    _refuse_repeated(names)
    for number, (line, cells) in enumerate(rows, 1):
        if len(cells) != len(names):
            raise InputError(
                f"{Row(number, line, None).place}: expected {len(names)} cells as in the header, found {len(cells)}; "
                "is a comma or a line break inside a cell not quoted?"
            )
        yield Row(number, line, {n: c if c.strip() else None for n, c in zip(names, cells, strict=True)})


def split_csv(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    r"""CSV as RFC 4180 and Excel write it: ``(line on which the row begins, cells)``; blank lines are no rows.

    Not Python's ``csv`` module, because that refuses a cell over 131,072 characters unless a limit of the whole
    process is changed, and reads on to the end of the file where a quote is never closed. Both are tested to read
    alike what ``csv.writer`` writes. ``lines`` keep their line ends. Raises :class:`InputError` that names the line.

    >>> list(split_csv(['id,answer\n', '7,"one\n', 'two ""quoted"" lines"\n'], ","))
    [(1, ['id', 'answer']), (2, ['7', 'one\ntwo "quoted" lines'])]
    """
    cells: list[str] = []
    pending: list[str] | None = None
    begin = number = 0
    for number, line in enumerate(lines, 1):
        if pending is None:
            if not line.rstrip("\r\n"):
                continue
            cells, begin = [], number
            if '"' not in line:
                yield begin, line.rstrip("\r\n").split(delimiter)
                continue
        pending = _scan_line(line, delimiter, cells, pending, number)
        if pending is None:
            yield begin, cells
    if pending is not None:
        raise InputError(f"line {begin}: a quote opened in this row is never closed")


def _scan_line(line: str, delimiter: str, cells: list[str], pending: list[str] | None, number: int) -> list[str] | None:
    """Add the line's cells to ``cells``; return the parts of a quoted cell that goes on in the next line, else None."""
    at = 0
    while True:
        if pending is None and not line.startswith('"', at):
            end = line.find(delimiter, at)
            if end < 0:
                cells.append(line[at:].rstrip("\r\n"))
                return None
            cells.append(line[at:end])
            at = end + 1
            continue
        if pending is None:
            pending, at = [], at + 1
        end = line.find('"', at)
        if end < 0:
            pending.append(line[at:])
            return pending
        pending.append(line[at:end])
        if line.startswith('"', end + 1):
            pending.append('"')
            at = end + 2
            continue
        cells.append("".join(pending))
        pending = None
        after = line.find(delimiter, end + 1)
        if line[end + 1 : after if after >= 0 else len(line)].strip():
            raise InputError(f'line {number}: expected the cell to end after its closing quote (write a quote as "")')
        if after < 0:
            return None
        at = after + 1


def _jsonl_rows(stream: TextIO) -> Iterator[Row]:
    number = 0
    for line_number, line in enumerate(stream, 1):
        if line.strip():
            number += 1
            yield Row(number, line_number, _parse_json(line, f"{Row(number, line_number, None).place}: "))


def _json_rows(stream: TextIO) -> Iterator[Row]:
    text = stream.read()
    if not text.strip():
        return
    items = _parse_json(text)
    if not isinstance(items, list):
        raise InputError("expected an array of objects; a file with one object a line ends in .jsonl")
    for number, item in enumerate(items, 1):
        yield Row(number, None, item)


def _parse_json(text: str, place: str = "") -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unrepeated)
    except json.JSONDecodeError as error:
        line = "" if place else f"line {error.lineno}, "
        raise InputError(f"{place}expected JSON: {error.msg} at {line}character {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}expected JSON: {error}") from error


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"the key {_first_repeated(names)!r} stands twice in one object")
    return found


def _refuse_repeated(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise InputError(f"two columns are named {_first_repeated(names)!r}; found {', '.join(names)}")


def _first_repeated(names: Sequence[str]) -> str:
    return next(name for position, name in enumerate(names) if name in names[:position])
