"""Records: what is evaluated, from anybody's table and back; labels, what people said of it, come in beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import pandas as pd

from jurimetrics import cells
from jurimetrics.columns import RECORD_COLUMNS, Columns
from jurimetrics.errors import InputError
from jurimetrics.labels import load_labels as load_labels
from jurimetrics.tables import Row, Source, Table, named_cells, read_table

_CONTENT = ("answer", "question", "contexts", "reference")


def _read_identity(value: object) -> str:
    found = cells.read_id(value)
    if found is None:
        raise InputError(f"expected text, found {cells.show(value)}")
    return found


def _read_name(value: object) -> str:
    return cells.read_id(value) or ""


def _read_metadata(value: object) -> Mapping[str, Any]:
    if cells.is_missing(value):
        return MappingProxyType({})
    if not isinstance(value, Mapping):
        raise InputError(f"expected a dictionary, found {cells.show(value)}")
    given = {name: inner for name, inner in value.items() if not cells.is_missing(inner)}
    try:
        return MappingProxyType(cells.plain(given))
    except RecursionError:
        raise InputError("expected a dictionary, found one that is nested too deeply") from None


_READERS: Mapping[str, Callable[[object], Any]] = {
    "id": _read_identity,
    "question": cells.read_shown_text,
    "answer": cells.read_text,
    "contexts": cells.read_documents,
    "reference": cells.read_shown_text,
    "variant": _read_name,
    "group": _read_name,
    "answer_model": cells.read_filled_text,
    "answer_latency_s": cells.read_amount,
    "answer_prompt_tokens": cells.read_count,
    "answer_completion_tokens": cells.read_count,
    "answer_cost_usd": cells.read_amount,
    "answer_error": cells.read_filled_text,
    "metadata": _read_metadata,
}


@dataclass(frozen=True, slots=True)
class Record:
    r"""One thing to evaluate. Whatever is given is cleaned here, so every record keeps the same promises.

    Attributes
    ----------
    id : text; with ``variant`` it is unique in a set of records. 7, 7.0 and "7" are the same, "007" is another.
    question, reference : text, ``None`` where missing or blank.
    answer : text; ``None`` is missing, blank text is a non-answer (present). A number or truth value becomes its text
        (42 -> "42"). With an ``answer_error`` and no text it is a failed generation: ``None``.
    contexts : the retrieved documents, blank ones removed; ``()`` if none. One string is one document.
    variant : the system that wrote the answer, "" where there is only one.
    group : what records of one source share; default: the id.
    answer_model, answer_error : text or ``None``.
    answer_latency_s, answer_cost_usd : seconds and US dollars, at least 0; ``None`` is unknown, never 0.
    answer_prompt_tokens, answer_completion_tokens : whole numbers, at least 0; ``None`` is unknown.
    metadata : everything else, read-only, of values that JSON can hold; missing values are left out.

    Text is kept as it is, but for lone surrogates (half of a cut-off emoji, "\ud83d" in JSON), which become U+FFFD so
    that the text can be stored and sent. ``None``, NaN, ``pd.NA`` and ``NaT`` all mean missing.

    Raises
    ------
    InputError : a value of the wrong kind; names the field and what was found.

    Examples
    --------
    >>> record = Record("7", answer="Madrid.", contexts=["Madrid is the capital of Spain.", ""])
    >>> record.contexts, record.group, record.key
    (('Madrid is the capital of Spain.',), '7', ('7', ''))
    """

    id: str
    question: str | None = None
    answer: str | None = None
    contexts: tuple[str, ...] = ()
    reference: str | None = None
    variant: str = ""
    group: str = ""
    answer_model: str | None = None
    answer_latency_s: float | None = None
    answer_prompt_tokens: int | None = None
    answer_completion_tokens: int | None = None
    answer_cost_usd: float | None = None
    answer_error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, read in _READERS.items():
            try:
                object.__setattr__(self, name, read(getattr(self, name)))
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
        if not self.group:
            object.__setattr__(self, "group", self.id)
        if self.answer_error is not None and not (self.answer or "").strip():
            object.__setattr__(self, "answer", None)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled or deep-copied; the plain values it was made of can.
        return _rebuild, (self.as_dict(),)

    @property
    def key(self) -> tuple[str, str]:
        """``(id, variant)``, unique in a set of records.

        >>> Record("7", variant="b").key
        ('7', 'b')
        """
        return self.id, self.variant

    def has(self, name: str) -> bool:
        """Whether a field is present; a blank answer is (it is a non-answer), a blank question or reference is not.

        Raises :class:`InputError` for a name that is no field.

        >>> record = Record("7", question=" ", answer="", contexts=[""])
        >>> [record.has(name) for name in ("question", "answer", "contexts", "reference")]
        [False, True, False, False]
        """
        if name not in _READERS:
            raise InputError(f"a record has no field {name!r}; it has {', '.join(_READERS)}")
        value = getattr(self, name)
        return value is not None and (name == "answer" or value not in ("", (), {}))

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values (lists, dictionaries); ``Record(**record.as_dict()) == record``.

        >>> Record("7", contexts="one", metadata={"topic": "law"}).as_dict()["metadata"]
        {'topic': 'law'}
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {"contexts": list(self.contexts), "metadata": cells.plain(self.metadata)}


def _rebuild(values: dict[str, Any]) -> Record:
    return Record(**values)


def load_records(source: Source, *, columns: Mapping[str, str] | None = None) -> list[Record]:
    """Read records from a path (.csv, .tsv, .jsonl, .ndjson, .json, .parquet), a DataFrame, or dictionaries or records.

    Column names are understood without case and surrounding spaces, in the words of other tools too: question (query,
    user_input, input), answer (response, output, prediction), contexts (context, retrieved_contexts,
    retrieval_context, documents), reference (ground_truth, ground_truth_answer, expected_answer, expected_output,
    expected_response), id (item, row_id), variant (system), answer_model (model), answer_latency_s (latency_s) and
    alike for prompt_tokens, completion_tokens, cost_usd. ``columns={"answer": "my_output"}`` maps any other name and
    goes before these. A column that means nothing here goes to ``metadata`` under its own name; so do the entries of a
    column ``metadata`` that holds dictionaries or JSON objects.

    A missing id is the row number, from 1. Files are UTF-8, with or without a byte order mark. CSV cells are text:
    "NA", "None" and "nan" stay text, "007" stays "007", a blank cell is missing, and a JSON list in ``contexts`` is a
    list of documents (so is a list as ``DataFrame.to_csv`` prints it). Anywhere else one string is one document.
    The source is not changed and a frame's index plays no part.

    Raises
    ------
    InputError : nothing to evaluate, a column missing, doubled or unreadable, a value of the wrong kind, id and variant
        given twice; names file, row, line and column.

    Examples
    --------
    >>> load_records([{"query": "Capital of Spain?", "response": "Madrid."}])[0].answer
    'Madrid.'
    >>> load_records([{"id": 7, "answer": "a"}, {"id": "7", "answer": "b"}])
    Traceback (most recent call last):
    jurimetrics.errors.InputError: the list: row 1 and row 2 have the same id '7' and variant ''
    """
    return list(iter_records(source, columns=columns))


def iter_records(source: Source, *, columns: Mapping[str, str] | None = None) -> Iterator[Record]:
    """The records of :func:`load_records`, one at a time: CSV and JSONL are read by the line, Parquet by batches.

    The same rules hold and the same errors are raised, each when its row is reached: what came before has then been
    handed out. At a doubled key the rest is gone through, to say how many more there are, unless it is an iterator.
    :func:`scan_duplicates` goes through a path first. Only the keys seen are kept in memory.

    >>> next(iter_records(iter([{"answer": "first"}, {"answer": "second"}]))).id
    '1'
    """
    table = read_table(source)
    known = Columns(table.name, RECORD_COLUMNS, columns or {})
    return _records(table, known, whole=not isinstance(source, Iterator))


def scan_duplicates(path: Source, *, columns: Mapping[str, str] | None = None) -> int:
    """Go through a source once, keeping no record, and return how many records it holds.

    It refuses whatever :func:`load_records` refuses, duplicates first among it, so that a file that is streamed later
    is known to be good before anything is paid for. Raises :class:`InputError`.

    >>> scan_duplicates([{"answer": "a"}, {"answer": "b"}])
    2
    """
    return sum(1 for _ in iter_records(path, columns=columns))


def _records(table: Table, known: Columns, *, whole: bool) -> Iterator[Record]:
    """The records of a table; `whole`: where two have one key, the rest is gone through to say how many more do."""
    places: dict[tuple[str, str], tuple[int, int | None]] = {}
    given = False
    for row in table.rows:
        if isinstance(row.cells, Record):
            record, given = row.cells, True
        else:
            record = _record(table, known, row)
            if table.fixed and row.number == 1:
                known.require_any(*_CONTENT)
        if record.key in places:
            first = Row(*places[record.key], None).place
            more = _repeats(table, known, set(places)) if whole else 0
            raise InputError(
                f"{table.name}: {first} and {row.place} have the same id {record.id!r} and variant {record.variant!r}"
                + (f"; {more:,} more {'row repeats' if more == 1 else 'rows repeat'} an id and variant" if more else "")
            )
        places[record.key] = (row.number, row.line)
        yield record
    if not places:
        raise InputError(f"{table.name}: no records")
    if not given:
        known.require_any(*_CONTENT)


def _repeats(table: Table, known: Columns, seen: set[tuple[str, str]]) -> int:
    """How many of the rows that are left have a key that came before; 0 where one of them cannot be read."""
    count = 0
    try:
        for row in table.rows:
            key = (row.cells if isinstance(row.cells, Record) else _record(table, known, row)).key
            count += key in seen
            seen.add(key)
    except InputError:
        return 0
    return count


def _record(table: Table, known: Columns, row: Row) -> Record:
    place = f"{table.name}: {row.place}"
    named = named_cells(row, table.name)
    layout = known.layout(tuple(named))
    values = {meaning: named[name] for meaning, name in layout.fields.items()}
    # A frame or a Parquet file may have been read from a CSV, where a list can only be written as text.
    if table.fixed and isinstance(values.get("contexts"), str):
        values["contexts"] = cells.split_documents_cell(values["contexts"])
    others = {cells.clean_text(name.strip()): named[name] for name in layout.others}
    try:
        values["metadata"] = _merged(values.get("metadata"), layout.fields.get("metadata", ""), others)
        if cells.read_id(values.get("id")) is None:
            values["id"] = str(row.number)
        return Record(**values)
    except InputError as error:
        raise InputError(f"{place}, {_blamed(values, layout.fields) or error}") from None


def _merged(value: object, name: str, others: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return others | {name.strip(): value}
    if not isinstance(value, Mapping):
        return others if cells.is_missing(value) else others | {name.strip(): value}
    inner = {str(key): entry for key, entry in value.items() if not cells.is_missing(entry)}
    twice = sorted(inner.keys() & {key for key, entry in others.items() if not cells.is_missing(entry)})
    if twice:
        raise InputError(f"column {name!r}: {twice[0]!r} is also a column of its own")
    return others | inner


def _blamed(values: Mapping[str, Any], holders: Mapping[str, str]) -> str:
    """Which column made a record impossible, in the caller's own words; "" if none did by itself."""
    for meaning, name in holders.items():
        try:
            if meaning != "metadata" and not (meaning == "id" and cells.read_id(values["id"]) is None):
                _READERS[meaning](values[meaning])
        except InputError as error:
            return f'column "{name}": {error}'
    return ""


_FRAME_TYPES = {
    "answer_latency_s": "float64",
    "answer_cost_usd": "float64",
    "answer_prompt_tokens": "Int64",
    "answer_completion_tokens": "Int64",
    "contexts": "object",
}


def records_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Records as a frame, one row each: a column for every field (``contexts`` holds lists, tokens are ``Int64``, what
    is missing is NaN or ``pd.NA``), then one for every metadata name.

    A metadata name that is also the name of a field stays in a column ``metadata`` of JSON text, which
    :func:`load_records` reads back; so ``load_records(records_frame(records)) == records``.

    >>> frame = records_frame([Record("7", answer="a", metadata={"topic": "law"})])
    >>> frame[["id", "answer", "topic"]].to_dict("records")
    [{'id': '7', 'answer': 'a', 'topic': 'law'}]
    """
    rows = [record.as_dict() for record in records]
    extras = [row.pop("metadata") for row in rows]
    reserved = {alias for aliases in RECORD_COLUMNS.values() for alias in aliases}
    frame = pd.DataFrame(
        {
            name: pd.Series([row[name] for row in rows], dtype=_FRAME_TYPES.get(name, "str"))
            for name in _READERS
            if name != "metadata"
        }
    )
    names = dict.fromkeys(name for extra in extras for name in extra)
    nested = {name for name in names if name.strip().casefold() in reserved or name != name.strip()}
    spread = {name: _inferred([extra.get(name) for extra in extras]) for name in names if name not in nested}
    if nested:
        kept = [{name: extra[name] for name in extra if name in nested} for extra in extras]
        spread["metadata"] = _inferred([json.dumps(extra, ensure_ascii=False) if extra else None for extra in kept])
    return frame.assign(**spread)


def _inferred(values: list[Any]) -> pd.Series[Any]:
    # pandas' own inference would make floats of integers beside a missing value, and numbers of truth values.
    if len({type(value) for value in values if value is not None}) == 1 and not any(
        isinstance(value, (list, dict)) for value in values
    ):
        return pd.Series(pd.array(values))
    return pd.Series(values, dtype="object")
