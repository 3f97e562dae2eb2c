"""Somebody's table -> rows with their position: CSV, TSV, JSONL, JSON, Parquet, a frame, dictionaries.

Nothing is interpreted here: cells stay as the source holds them, but for a blank CSV cell, which is ``None``.
What the columns mean is the business of :mod:`jurimetrics.columns`, what a cell means that of :mod:`jurimetrics.cells`.
"""

from __future__ import annotations

import _csv
import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TextIO

import pandas as pd

from jurimetrics.cells import show
from jurimetrics.errors import InputError

Source = str | os.PathLike[str] | pd.DataFrame | Iterable[Any]
_PARQUET_BATCH = 1024
_CELL_LIMIT = 2**31 - 1  # characters; the most that every platform takes
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
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
        ".csv": partial(_text_rows, read=_csv_rows),
        ".tsv": partial(_text_rows, read=partial(_csv_rows, delimiter="\t")),
        ".jsonl": partial(_text_rows, read=_jsonl_rows),
        ".ndjson": partial(_text_rows, read=_jsonl_rows),
        ".json": partial(_text_rows, read=_json_rows),
        ".parquet": _parquet_rows,
    }
    if suffix not in readers:
        raise InputError(f"{path}: expected a file that ends in one of {', '.join(readers)}")
    try:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file" + (" (it is a folder)" if path.is_dir() else ""))
    except OSError as error:
        raise InputError(f"{show(str(path))}: cannot be read: {error.strerror or error}") from error
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
        _refuse_wide_encodings(raw.read(4), path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from read(stream)
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8, found {_bad_byte(path)}; save the file as UTF-8{_in_excel(path)}") from error


def _in_excel(path: Path) -> str:
    """What the encoding is called where most tables that lack it are made."""
    return " (in Excel: CSV UTF-8)" if path.suffix.casefold() == ".csv" else ""


def _refuse_wide_encodings(head: bytes, path: Path) -> None:
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    # Without a mark, every other byte of ASCII text is NUL, which no header or JSON text begins with.
    unmarked = len(head) == 4 and (head[1] == head[3] == 0 or head[0] == head[2] == 0)
    if marked or unmarked:
        raise InputError("expected UTF-8, found UTF-16 or UTF-32; save the file as UTF-8" + _in_excel(path))


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


def _csv_rows(stream: TextIO, delimiter: str | None = None) -> Iterator[Row]:
    delimiter = delimiter or _delimiter(stream)
    rows = _csv_cells(stream, delimiter)
    header = next(rows, None)
    if header is None:
        return
    names = [name if name.strip() else f"column {position}" for position, name in enumerate(header.cells, 1)]
    _refuse_repeated(names)
    for row in rows:
        if len(row.cells) != len(names):
            raise InputError(
                f"{row.place}: expected {len(names)} cells as in the header, found {len(row.cells)}; "
                f"is a {_SEPARATORS[delimiter]} or a line break inside a cell not quoted?"
            )
        yield row._replace(cells={n: c if c.strip() else None for n, c in zip(names, row.cells, strict=True)})


def _delimiter(stream: TextIO) -> str:
    """A semicolon where the header has one and no comma, as Excel writes where the comma stands in numbers."""
    header = next((line for line in stream if line.strip()), "")
    stream.seek(0)
    bare = _QUOTED.sub("", header)
    return ";" if ";" in bare and "," not in bare else ","


def _csv_cells(stream: TextIO, delimiter: str) -> Iterator[Row]:
    """The header as row 0, then the rows, each with the list of its cells and the line on which it begins."""
    parser = _csv_parser()
    reader = parser.reader(stream, delimiter=delimiter, strict=True)
    number, line = 0, 1
    try:
        for cells in reader:
            if cells:  # a blank line is no row
                yield Row(number, line, cells)
                number += 1
            line = reader.line_num + 1
    except parser.Error as error:
        place = Row(number, line, None).place if number else f"the header (line {line})"
        raise InputError(
            f"{place}: expected cells quoted as CSV does, found in line {reader.line_num}: {error}; "
            'is a quote never closed, or a quote inside a quoted cell not written as ""?'
        ) from error


def _csv_parser() -> ModuleType:
    """The parser of Python's ``csv``, loaded a second time for one file.

    ``csv`` refuses cells over 131,072 characters, less than a retrieved context may have, and its limit holds for
    the whole process. Each loaded instance of the module keeps a limit of its own (PEP 489), so that one stays as it is.
    """
    spec = _csv.__spec__
    assert spec.loader is not None  # a module that was imported has a loader
    parser = module_from_spec(spec)
    spec.loader.exec_module(parser)
    parser.field_size_limit(_CELL_LIMIT)
    return parser


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
