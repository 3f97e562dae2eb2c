"""Labels: what people said of records, from anybody's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics import cells
from jurimetrics.columns import LABEL_COLUMNS, Columns
from jurimetrics.errors import InputError
from jurimetrics.tables import Row, Source, Table, named_cells, read_table

Selection = Literal["random", "probabilities", "by_label"]

_SELECTIONS = (None, "random", "probabilities", "by_label")
_WIDE = "label:"
UNRATED = frozenset(("", "na", "n/a", "nan", "none", "null", "-", "\u2013", "\u2014", "not rated", "unrated"))
"""What stands for "not rated" in a cell, without case and surrounding spaces."""
_WORDS = {"pass": 1.0, "yes": 1.0, "true": 1.0, "fail": 0.0, "no": 0.0, "false": 0.0}


class _Label(NamedTuple):
    row: Row
    id: str
    variant: str
    metric: str
    rater: str
    label: float
    word: bool
    probability: float | None
    rationale: str | None


def load_labels(
    source: Source, *, columns: Mapping[str, str] | None = None, selection: Selection | None = None
) -> pd.DataFrame:
    """Read what people said of records, one row per label, from whatever :func:`load_records` reads.

    The table is long (columns id, metric, label) or wide (a column ``label:<metric>`` each, blank where not rated). The
    columns variant, rater, probability and rationale are optional, others are left aside. In a wide table without
    raters a missing id is the row number, as it is for the records beside it; else an id is required.

    "Not rated" is None, NaN, blank, "NA", "n/a", "nan", "none", "null", "-", "not rated" or "unrated" in any case: no
    row. Labels of one metric are numbers (3 and "3.0" are the same) or pass/fail, yes/no, true/false, which are 1.0 and
    0.0; words and numbers mix only where the numbers are 0 and 1.

    Parameters
    ----------
    columns : maps a field to the caller's column, as in ``{"rater": "annotator"}``.
    selection : how the labelled records were chosen, kept in ``frame.attrs["selection"]``: "random"; "probabilities"
        (each with a known ``probability`` in (0, 1], required then); "by_label" (by the true label, or an external
        set); ``None`` is unknown, which later estimates refuse.

    Returns
    -------
    DataFrame : id, variant ("" by default), metric, rater ("human" by default), label (float), and, where the source
        has them, probability (float in (0, 1], NaN if missing) and rationale (text or missing); in the source's order.

    Raises
    ------
    InputError : a column or value is missing or unreadable, a label given twice; names file, row and column.

    Examples
    --------
    >>> load_labels([{"id": 7, "label:fluency": "4"}, {"id": 8, "label:fluency": "n/a"}]).to_dict("records")
    [{'id': '7', 'variant': '', 'metric': 'fluency', 'rater': 'human', 'label': 4.0}]
    """
    if selection not in _SELECTIONS:
        raise InputError(f"selection: expected one of {_SELECTIONS}, found {selection!r}")
    table = read_table(source)
    known = Columns(table.name, LABEL_COLUMNS, columns or {})
    found: list[_Label] = []
    for row in table.rows:
        found.extend(_row_labels(table, known, row, selection == "probabilities"))
    if not found:
        raise InputError(f"{table.name}: no labels; found the columns {', '.join(known.found) or 'none'}")
    known.require_chosen()
    _refuse_repeated(table.name, found)
    _refuse_mixed(table.name, found)
    names = ["id", "variant", "metric", "rater", "label"]
    names += [name for name in ("probability", "rationale") if name in known.holders]
    types = {name: "float64" if name in ("label", "probability") else "str" for name in names}
    frame = pd.DataFrame(
        {name: pd.Series([getattr(label, name) for label in found], dtype=types[name]) for name in names}
    )
    frame.attrs["selection"] = selection
    return frame


def _row_labels(table: Table, known: Columns, row: Row, weighted: bool) -> Iterator[_Label]:
    named = named_cells(row, table.name)
    layout = known.layout(tuple(named))
    wide = [name for name in layout.others if name.strip().casefold().startswith(_WIDE)]
    if wide and "label" in layout.fields:
        raise InputError(f'{table.name}: expected a column "label" or columns "label:<metric>", found both')
    if not wide and (table.fixed or row.number == 1):
        known.require_any("label")

    def read(meaning: str, reader: Callable[[object], Any], required: bool = False) -> Any:
        name = layout.fields.get(meaning, meaning)
        return read_cell(f"{table.name}: {row.place}", name, named.get(name), reader, required)

    # A wide table without raters has one row per record, so its row numbers are the records' own.
    numbered = bool(wide) and "rater" not in layout.fields
    for name in wide or [layout.fields.get("label", "label")]:
        rating = read_cell(f"{table.name}: {row.place}", name, named.get(name), _read_label)
        if rating is None:
            continue
        metric = name.strip()[len(_WIDE) :].strip() if wide else read("metric", cells.read_filled_text, True).strip()
        if not metric:
            raise InputError(f'{table.name}: expected the name of a metric in the column "{name}"')
        yield _Label(
            row=row,
            id=read("id", cells.read_id, not numbered) or str(row.number),
            variant=read("variant", cells.read_id) or "",
            metric=metric,
            rater=(read("rater", cells.read_id) or "human").strip(),
            label=rating[0],
            word=rating[1],
            probability=read("probability", _read_probability, weighted),
            rationale=read("rationale", cells.read_filled_text),
        )


def read_cell(place: str, name: str, value: object, reader: Callable[[object], Any], required: bool = False) -> Any:
    """One cell of the column `name` by `reader`; an error of it names file, row (both in `place`) and column.

    >>> read_cell("labels.csv: row 2 (line 3)", "start", "x", cells.read_count)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: labels.csv: row 2 (line 3), column "start": expected a number, found 'x'
    """
    try:
        found = reader(value)
    except InputError as error:
        raise InputError(f'{place}, column "{name}": {error}') from None
    if found is None and required:
        raise InputError(f'{place}, column "{name}": expected a value, found none')
    return found


def _read_label(value: object) -> tuple[float, bool] | None:
    """The label and whether it was a word; ``None`` is not rated."""
    if isinstance(value, (bool, np.bool_)):
        return float(value), True
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in UNRATED:
            return None
        if word in _WORDS:
            return _WORDS[word], True
    try:
        number = cells.read_finite(value)
    except InputError:
        raise InputError(
            f"expected a number, pass/fail, yes/no, true/false or blank, found {cells.show(value)}"
        ) from None
    return None if number is None else (number, False)


def _read_probability(value: object) -> float | None:
    number = cells.read_finite(value)
    if number is not None and not 0 < number <= 1:
        raise InputError(f"expected a number above 0 and at most 1, found {cells.show(value)}")
    return number


def _refuse_repeated(table: str, labels: list[_Label]) -> None:
    seen: dict[tuple[str, str, str, str], Row] = {}
    for each in labels:
        key = (each.id, each.variant, each.metric, each.rater)
        if key in seen:
            raise InputError(
                f"{table}: {seen[key].place} and {each.row.place} both label id {each.id!r}, variant {each.variant!r}, "
                f"metric {each.metric!r}, rater {each.rater!r}"
            )
        seen[key] = each.row


def _refuse_mixed(table: str, labels: list[_Label]) -> None:
    worded = {each.metric: each for each in labels if each.word}
    for each in labels:
        if not each.word and each.metric in worded and each.label not in (0.0, 1.0):
            raise InputError(
                f"{table}: {worded[each.metric].row.place} labels {each.metric!r} with a word and "
                f"{each.row.place} with the number {each.label:g}; expected one kind"
            )
