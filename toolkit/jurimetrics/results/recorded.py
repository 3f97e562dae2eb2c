"""Scores that anybody's judges gave elsewhere, written as a folder of results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from jurimetrics import cells
from jurimetrics.errors import FAILURE_KINDS, InputError
from jurimetrics.frames import RowWriter, ScoreRow
from jurimetrics.records import Record
from jurimetrics.results.reading import COMPUTED, RECORDED
from jurimetrics.results.thresholds import check_threshold
from jurimetrics.version import VERSION

_REQUIRED = ("id", "metric", "judge", "score")
_OPTIONAL = ("variant", "group", "repeat", "reason", "error", "status", "flags", "details", "disagreement")
_DECLARED = ("range", "higher_is_better", "threshold")


class Scale(Protocol):
    """What is declared of a metric's values; a `Metric` is one."""

    @property
    def range(self) -> tuple[float, float]: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def threshold(self) -> float | None: ...


Declared: TypeAlias = Scale | Mapping[str, Any] | None


def write_recorded(
    folder: Path, scores: pd.DataFrame, metrics: Mapping[str, Declared], records: Iterable[Record] | None = None
) -> None:
    """Check `scores` and write them as results into `folder`; see `Results.from_frame`."""
    known = None if records is None else {record.key: record for record in records}
    rows = _rows(scores, known or {})
    if not isinstance(metrics, Mapping):
        raise InputError(f"metrics: expected a mapping of names to what is declared, found {type(metrics).__name__}")
    declared = _declare(rows, metrics)
    for at, row in enumerate(rows):
        low, high = declared[row.metric]["range"]
        if row.score is not None and not low <= row.score <= high:
            raise InputError(f"row {at + 1}: {row.metric} of {row.id!r} is {row.score:g}, outside {low:g} to {high:g}")
    writer = RowWriter(folder)
    groups: dict[tuple[str, str], str] = {}
    for row in rows:
        if groups.setdefault((row.id, row.variant), row.group) != row.group:
            raise InputError(f"{row.id!r} has two groups: {groups[row.id, row.variant]!r} and {row.group!r}")
        writer.score(row)
    for (name, variant), group in groups.items():
        writer.record(_record(name, variant, group, known))
    writer.close(
        {
            "jurimetrics": VERSION,
            "metrics": declared,
            "judges": {judge: {"kind": RECORDED} for judge in dict.fromkeys(row.judge for row in rows)},
            "panel": None,
            "prompts": {},
            "repeats": max((row.repeat for row in rows), default=0) + 1,
            "interrupted": False,
            "records": len(groups),
            "variants": list(dict.fromkeys(row.variant for row in rows)),
        }
    )


def _record(name: str, variant: str, group: str, known: Mapping[tuple[str, str], Record] | None) -> Record:
    if known is None:
        return Record(name, variant=variant, group=group)
    found = known.get((name, variant))
    if found is None:
        raise InputError(f"records: none has the id {name!r} and variant {variant!r} of a score")
    if found.group != group:
        raise InputError(f"{name!r} has two groups: {found.group!r} in its record and {group!r} in its scores")
    return found


def _rows(scores: pd.DataFrame, known: Mapping[tuple[str, str], Record]) -> list[ScoreRow]:
    if not isinstance(scores, pd.DataFrame):
        raise InputError(f"expected a DataFrame of scores, found {type(scores).__name__}")
    columns = list(scores.columns)
    for name in (*_REQUIRED, *_OPTIONAL):
        if columns.count(name) not in ((1,) if name in _REQUIRED else (0, 1)):
            raise InputError(f"scores need one column {name!r}; found: {', '.join(map(str, columns)) or 'none'}")
    if not len(scores):
        raise InputError("no scores: the frame has no rows")
    identity, metric, judge = (_column(scores, name, _name) for name in ("id", "metric", "judge"))
    variant = _column(scores, "variant", lambda value: cells.read_id(value) or "")
    group = _column(scores, "group", cells.read_id)
    score = _column(scores, "score", _number)
    repeat = _column(scores, "repeat", lambda value: cells.read_count(value) or 0)
    reason, error = (_column(scores, name, lambda value: cells.read_text(value) or "") for name in ("reason", "error"))
    said = _column(scores, "status", cells.read_filled_text)
    flags, details = _column(scores, "flags", _flags), _column(scores, "details", _details)
    disagreement = _column(scores, "disagreement", cells.read_amount)
    rows, seen = [], dict[tuple[Any, ...], int]()
    for at in range(len(scores)):
        key = (identity[at], variant[at] or "", metric[at], judge[at], repeat[at] or 0)
        if (first := seen.setdefault(key, at)) != at:
            raise InputError(
                f"row {first + 1} and row {at + 1} are the same id, variant, metric, judge and repeat: {key}"
            )
        status = _status(at, score[at], error[at] or "", said[at] or "")
        record = known.get(key[:2])
        source = group[at] or (record.group if record is not None else identity[at])
        told = (reason[at] or "", error[at] or "", flags[at] or (), disagreement[at], details[at] or {})
        rows.append(ScoreRow(*key, source, score[at], status, *told))
    return rows


def _column(scores: pd.DataFrame, name: str, read: Callable[[object], Any]) -> list[Any]:
    """A column read cell by cell; None throughout where there is no such column."""
    if name not in scores.columns:
        return [None] * len(scores)
    found = []
    for at, value in enumerate(scores[name].astype(object)):
        try:
            found.append(read(value))
        except InputError as fault:
            raise InputError(f"row {at + 1}, column {name!r}: {fault}") from None
    return found


def _name(value: object) -> str:
    found = cells.read_id(value)
    if found is None:
        raise InputError("expected text, found nothing")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool | np.bool_):
        return float(value)
    return cells.read_finite(value)


def _flags(value: object) -> tuple[str, ...]:
    """Flags as a list, or as text with commas between them, as `flags` is written into a CSV."""
    given = value if isinstance(value, list | tuple | np.ndarray) else (cells.read_filled_text(value) or "").split(",")
    if strange := [each for each in given if not isinstance(each, str)]:
        raise InputError(f"expected flags, words, found {cells.show(strange[0])}")
    return tuple(word for word in map(str.strip, given) if word)


def _details(value: object) -> Mapping[str, Any]:
    """Details as a mapping, or as the JSON text of one, as the score frame holds them."""
    if isinstance(value, Mapping):
        return value
    text = cells.read_filled_text(value)
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"expected an object as JSON text, found {cells.show(value)}")
    return found


def _status(at: int, score: float | None, error: str, said: str) -> str:
    found = _found(at, score, error)
    if said not in ("", found) and not (said == "not_applicable" and found == "undefined"):
        raise InputError(f"row {at + 1}: the status {said!r} does not go with its score and error, which say {found!r}")
    return said or found


def _found(at: int, score: float | None, error: str) -> str:
    if not error:
        return "undefined" if score is None else "ok"
    if score is not None:
        raise InputError(f"row {at + 1} has both a score and an error")
    if error.partition(":")[0] not in FAILURE_KINDS:
        kinds = ", ".join(FAILURE_KINDS)
        raise InputError(f"row {at + 1}: the error {cells.show(error)} does not begin with one of {kinds}")
    return "failed"


def _declare(rows: list[ScoreRow], metrics: Mapping[str, Declared]) -> dict[str, dict[str, Any]]:
    """The settings of each metric; a range that nobody declared is that of the data, and marked so."""
    values: dict[str, list[float]] = {}
    judges: dict[str, set[str]] = {}
    for row in rows:
        judges.setdefault(row.metric, set()).add(row.judge)
        values.setdefault(row.metric, []).extend([] if row.score is None else [row.score])
    if strange := [name for name in metrics if name not in values]:
        raise InputError(f"no scores for the metric {strange[0]!r}; there are: {', '.join(values)}")
    for name, who in judges.items():
        if COMPUTED in who and len(who) > 1:
            other = min(who - {COMPUTED})
            raise InputError(
                f"{name}: {COMPUTED!r} stands for scores that no judge gave, and {other!r} gave some too; call it otherwise"
            )
    return {name: _settings(name, metrics.get(name), found) for name, found in values.items()}


def _settings(name: str, declared: Declared, values: list[float]) -> dict[str, Any]:
    given = dict(declared) if isinstance(declared, Mapping) else {}
    if declared is not None and not isinstance(declared, Mapping):
        if not all(hasattr(declared, field) for field in _DECLARED):
            raise InputError(
                f"{name}: expected a mapping with {', '.join(_DECLARED)}, or a metric, found {cells.show(declared)}"
            )
        given = {field: getattr(declared, field) for field in _DECLARED}
    if strange := [field for field in given if field not in _DECLARED]:
        raise InputError(f"{name}: {strange[0]!r} is not known of a metric; known are {', '.join(_DECLARED)}")
    limits, higher = given.get("range"), given.get("higher_is_better", True)
    if not isinstance(higher, bool | np.bool_):
        # The text "false" is true to Python, and the wrong way round for whoever wrote it.
        raise InputError(f"{name}: higher_is_better must be True or False, not {cells.show(higher)}")
    if limits is not None:
        low, high = _range(name, limits)
    else:
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return {
        "range": [low, high],
        "higher_is_better": bool(higher),
        "threshold": check_threshold(name, given.get("threshold"), (low, high) if limits is not None else None),
        "version": "",
        "levels": None,
        "judged": True,
        "asks_claims": False,
        "needs": [],
        **({} if limits is not None else {"range_from_data": True}),
    }


def _range(name: str, limits: Any) -> tuple[float, float]:
    found = list(limits) if isinstance(limits, list | tuple | np.ndarray) else []
    try:
        low, high = map(cells.read_finite, found) if len(found) == 2 else (None, None)
    except InputError:
        low, high = None, None
    if low is None or high is None or not low < high:
        raise InputError(f"{name}: a range is two numbers, the lower first, not {cells.show(limits)}")
    return low, high
