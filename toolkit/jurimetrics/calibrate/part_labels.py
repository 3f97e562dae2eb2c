"""Labels of parts of an answer: what people said of its single claims, and the stretches of it that they marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics import cells
from jurimetrics.calibrate.claim_matching import bare
from jurimetrics.columns import LABEL_COLUMNS, Columns
from jurimetrics.errors import InputError
from jurimetrics.labels import UNRATED, read_cell
from jurimetrics.tables import Row, Source, Table, named_cells, read_table
from jurimetrics.text import fold, is_blank

VERDICTS = ("supported", "contradicted", "unknown", "unsupported")
"""What people say of a claim; "unsupported" is either of the two before it, by who gave pass and fail only."""

_WHO: Mapping[str, tuple[str, ...]] = {name: LABEL_COLUMNS[name] for name in ("id", "variant", "rater", "rationale")}
_CLAIM_COLUMNS: Mapping[str, tuple[str, ...]] = {
    **_WHO,
    "claim": ("claim", "fact", "statement"),
    "label": ("label", "verdict"),
}
_SPAN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    **_WHO,
    "start": ("start",),
    "end": ("end",),
    "quote": ("quote", "span", "text"),
    "type": ("type", "label_type", "label"),
}
_WORDS = {
    **dict.fromkeys(("supported", "entailed", "pass", "yes", "true", "1", "1.0"), "supported"),
    "contradicted": "contradicted",
    **dict.fromkeys(("unknown", "neutral"), "unknown"),
    **dict.fromkeys(("unsupported", "not supported", "fail", "no", "false", "0", "0.0"), "unsupported"),
}


class _Part(NamedTuple):
    row: Row
    place: str
    id: str
    variant: str
    rater: str
    rationale: str | None
    claim: str = ""
    label: str | None = None
    start: int | None = None
    end: int | None = None
    quote: str = ""
    type: str = ""


_Read = Callable[..., Any]
"""Reads the cell of a meaning: `read(meaning, reader, required)`."""


def load_claim_labels(source: Source, *, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Read what people said of single claims, one row per claim, from whatever :func:`load_records` reads.

    Columns: id, claim (or fact, statement) and label (or verdict); variant, rater and rationale are optional. A label is
    supported, contradicted, unknown or unsupported in any case; entailed and neutral are supported and unknown;
    pass/fail, yes/no, true/false and 1/0 are supported and unsupported. Where it is "not rated" as for
    :func:`load_labels` (blank, "n/a", ...), or there is no such column, the claim says nothing of verdicts, but still
    that this person found it in the answer. A row without a claim says that the rater found none in that answer.

    Parameters
    ----------
    columns : maps a field to the caller's column, as in ``{"claim": "fact_text"}``.

    Returns
    -------
    DataFrame : id, variant ("" by default), rater ("human" by default), claim ("": none found), label (missing: not
        rated), rationale where the source has it, and place, where the row stands in the source; in its order.

    Raises
    ------
    InputError : a column or value is missing or unreadable, a claim given twice by one rater, or a row without a claim
        beside others; names file, row and column.

    Examples
    --------
    >>> rows = [{"id": 7, "claim": "It is old.", "label": "pass"}, {"id": 8, "claim": "It is tall.", "label": "n/a"}]
    >>> load_claim_labels(rows)[["id", "rater", "claim", "label"]].values.tolist()
    [['7', 'human', 'It is old.', 'supported'], ['8', 'human', 'It is tall.', nan]]
    """
    table = read_table(source)
    parts, known = _read(table, Columns(table.name, _CLAIM_COLUMNS, columns or {}), _claim, ("claim",))
    _refuse_repeated(parts, lambda one: (bare(one.claim),), lambda one: f"claim {cells.show(one.claim)}")
    _refuse_none_beside(parts, lambda one: bool(one.claim), "claim")
    return _frame(parts, known, {"claim": "str", "label": "str"})


def load_span_labels(source: Source, *, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Read the stretches of answers that people marked, one row per stretch, from whatever :func:`load_records` reads.

    Columns: id, and where the stretch stands: start and end, or quote (or span, text), or both; variant, rater, type (or
    label_type, label) and rationale are optional. Offsets count characters of the answer (Unicode code points, as Python
    does; no bytes, no UTF-16 units) from 0, the end is exclusive. A quote alone must stand in the answer, once; where it
    stands there several times start says which is meant. That is checked where the answers are at hand:
    :func:`span_agreement`. `type` is any word in any case; judges use intrinsic and extrinsic.

    A row without start, end and quote says that the rater read that answer and marked nothing. Answers without any row
    were not read: nothing is said of them.

    Returns
    -------
    DataFrame : id, variant ("" by default), rater ("human" by default), start, end (whole numbers, missing where not
        given), quote, type ("" where not given), rationale where the source has it, and place, where the row stands in
        the source; in its order.

    Raises
    ------
    InputError : a column or value is missing or unreadable, an end without a start or not behind it, a stretch given
        twice by one rater, or a row without one beside others; names file, row and column.

    Examples
    --------
    >>> rows = [{"id": 7, "start": 13, "end": 17, "type": "Intrinsic"}, {"id": 8, "quote": "by train"}, {"id": 9}]
    >>> found = load_span_labels(rows)
    >>> found[["id", "start", "end", "quote", "type"]].astype(object).fillna("").values.tolist()
    [['7', 13, 17, '', 'intrinsic'], ['8', '', '', 'by train', ''], ['9', '', '', '', '']]
    """
    table = read_table(source)
    parts, known = _read(table, Columns(table.name, _SPAN_COLUMNS, columns or {}), _span, ("start", "quote"))
    _refuse_repeated(parts, lambda one: (one.start, one.end, one.quote), _said_span)
    _refuse_none_beside(parts, lambda one: one.start is not None or bool(one.quote), "stretch")
    return _frame(parts, known, {"start": "Int64", "end": "Int64", "quote": "str", "type": "str"})


def _read(
    table: Table, known: Columns, read_part: Callable[[_Read], dict[str, Any]], needed: tuple[str, ...]
) -> tuple[list[_Part], Columns]:
    parts = []
    for row in table.rows:
        named = named_cells(row, table.name)
        layout, place = known.layout(tuple(named)), f"{table.name}: {row.place}"
        if table.fixed:
            known.require_any(*needed)
        read = partial(_meant, place, layout.fields, named)
        parts.append(
            _Part(
                row,
                place,
                read("id", cells.read_id, True),
                read("variant", cells.read_id) or "",
                (read("rater", cells.read_id) or "human").strip(),
                read("rationale", cells.read_filled_text),
                **read_part(read),
            )
        )
    if not parts:
        raise InputError(f"{table.name}: no labels; found the columns {', '.join(known.found) or 'none'}")
    known.require_any(*needed)
    return parts, known


def _meant(
    place: str,
    fields: Mapping[str, str],
    named: Mapping[str, Any],
    meaning: str,
    reader: Callable[[object], Any],
    required: bool = False,
) -> Any:
    name = fields.get(meaning, meaning)
    return read_cell(place, name, named.get(name), reader, required)


def _claim(read: _Read) -> dict[str, Any]:
    claim = " ".join((read("claim", cells.read_text) or "").split())
    claim = "" if is_blank(claim) else claim
    label = read("label", _read_verdict)
    if label is not None and not claim:
        read("claim", lambda _: None, True)
    return {"claim": claim, "label": label}


def _span(read: _Read) -> dict[str, Any]:
    start, end = read("start", _read_offset), read("end", _read_offset)
    quote = read("quote", cells.read_text) or ""
    quote = "" if is_blank(quote) else quote
    if end is not None and (start is None or end <= start):
        why = "no start" if start is None else f"the start {start}"
        read("end", lambda value: _refuse(f"expected a number above that of the start, found {end} and {why}"))
    if start is not None and end is None and not quote:
        read("end", lambda _: None, True)
    return {"start": start, "end": end, "quote": quote, "type": fold(read("type", _read_type) or "")}


def _refuse(message: str) -> None:
    raise InputError(message)


def _read_verdict(value: object) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return "supported" if value else "unsupported"
    word = (cells.read_text(value) or "").strip().casefold()
    if word in UNRATED:
        return None
    found = _WORDS.get(word)
    if found is None:
        raise InputError(f"expected {', '.join(VERDICTS)}, pass/fail, yes/no, 1/0 or blank, found {cells.show(value)}")
    return found


def _read_offset(value: object) -> int | None:
    text = value.strip().casefold() if isinstance(value, str) else None
    return None if text in UNRATED else cells.read_count(value)


def _read_type(value: object) -> str | None:
    text = cells.read_filled_text(value)
    return None if text is None or text.strip().casefold() in UNRATED else text


def _who(part: _Part) -> tuple[str, str, str]:
    return part.id, part.variant, part.rater


def _refuse_repeated(parts: list[_Part], key: Callable[[_Part], tuple[Any, ...]], said: Callable[[_Part], str]) -> None:
    seen: dict[tuple[Any, ...], _Part] = {}
    for each in parts:
        first = seen.setdefault((*_who(each), *key(each)), each)
        if first is not each:
            raise InputError(
                f"{each.place.removesuffix(each.row.place)}{first.row.place} and {each.row.place} both label id "
                f"{each.id!r}, variant {each.variant!r}, rater {each.rater!r}, {said(each)}"
            )


def _refuse_none_beside(parts: list[_Part], there: Callable[[_Part], bool], what: str) -> None:
    some = {_who(each): each for each in parts if there(each)}
    for each in parts:
        if not there(each) and _who(each) in some:
            raise InputError(
                f"{each.place}: a row without a {what} says that there is none, but {some[_who(each)].row.place} has one "
                f"of id {each.id!r}, variant {each.variant!r}, rater {each.rater!r}"
            )


def _said_span(part: _Part) -> str:
    if part.start is None:
        return f"quote {cells.show(part.quote)}" if part.quote else "nothing marked"
    return f"start {part.start}" + ("" if part.end is None else f", end {part.end}")


def _frame(parts: list[_Part], known: Columns, types: Mapping[str, str]) -> pd.DataFrame:
    names = dict.fromkeys(("id", "variant", "rater"), "str") | dict(types)
    names |= {"rationale": "str"} if "rationale" in known.holders else {}
    names["place"] = "str"
    return pd.DataFrame(
        {name: pd.Series([getattr(one, name) for one in parts], dtype=kind) for name, kind in names.items()}
    )
