"""Ratings as anybody writes them, read into numbers with NaN for what was not rated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError

Numbers = npt.NDArray[np.float64]
MOST_STEPS = 101
"""More steps than this and a scale is no list of categories."""


def read_ratings(rows: Sequence[Sequence[Any]] | npt.NDArray[Any]) -> tuple[Numbers, tuple[Any, ...]]:
    """Ratings of any spelling as a float array of the same shape, and what its numbers stand for.

    None, NaN, pandas' NA and blank text are "not rated" and become NaN. Numbers, truth values and numbers written as text
    stay numbers; the names are then (). Where any cell is another text, all are categories: their places from 0 in the
    sorted names, which are given too. Raises `InputError` for rows of different lengths or an infinite number.

    >>> read_ratings([[1, "2", None], [1.0, "", float("nan")]])[0].tolist()
    [[1.0, 2.0, nan], [1.0, nan, nan]]
    >>> read_ratings([["yes", "no"], ["yes", None]])
    (array([[ 1.,  0.],
           [ 1., nan]]), ('no', 'yes'))
    """
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiub":
        return _finite(rows.astype(np.float64)), ()
    table = [[_cell(cell) for cell in row] for row in rows]
    if len({len(row) for row in table}) > 1:
        raise InputError(f"raters must have rated the same units, found lengths {sorted({len(row) for row in table})}")
    words = sorted({str(cell) for row in table for cell in row if isinstance(cell, str)})
    if words:
        names = sorted({_name(cell) for row in table for cell in row if cell is not None})
        place = {name: float(at) for at, name in enumerate(names)}
        return _array([[np.nan if cell is None else place[_name(cell)] for cell in row] for row in table]), tuple(names)
    return _finite(_array([[np.nan if cell is None else cell for cell in row] for row in table])), ()


def read_pair(first: Any, second: Any) -> tuple[Numbers, tuple[Any, ...]]:
    """Two columns of ratings as `read_ratings` gives them, 2 x n.

    >>> read_pair([1, None], np.array([2.0, 3.0]))[0].tolist()
    [[1.0, nan], [2.0, 3.0]]
    """
    both = [np.asarray(one) for one in (first, second)]
    plain = all(one.dtype.kind in "fiub" for one in both) and both[0].shape == both[1].shape
    return read_ratings(np.vstack(both) if plain else [first, second])


def whole_scale(limits: tuple[float, float], levels: Sequence[float] | None = None) -> tuple[float, ...] | None:
    """The steps of a declared scale: `levels`, else the whole numbers from low to high; None where steps are not whole.

    >>> whole_scale((1, 5)), whole_scale((0, 1)), whole_scale((0, 0.5)), whole_scale((0, 1), (0, 0.5, 1))
    ((1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 1.0), None, None)
    """
    low, high = (float(limit) for limit in limits)
    steps = sorted({float(level) for level in levels}) if levels else None
    if not all(float(end).is_integer() for end in (steps or (low, high))) or not high - low < MOST_STEPS:
        return None
    return tuple(steps or np.arange(low, high + 1).tolist())


def off_scale(values: Numbers, scale: Sequence[float]) -> float | None:
    """The first of `values` that is no step of `scale`, None where all are (or are NaN).

    >>> off_scale(np.array([1.0, np.nan, 2.5]), (1, 2, 3))
    2.5
    """
    strange = values[~np.isnan(values) & ~np.isin(values, list(scale))]
    return float(strange[0]) if len(strange) else None


def _finite(found: Numbers) -> Numbers:
    if np.isinf(found).any():
        raise InputError("a rating is infinite")
    return found


def _cell(value: Any) -> Any:
    """A number, a text, or None for what was not rated."""
    # pandas' NA and NaT are unequal to themselves or refuse to say.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            return text
        return None if number != number else number
    number = float(value)
    return None if number != number else number


def _name(cell: Any) -> str:
    return cell if isinstance(cell, str) else f"{cell:g}"


def _array(rows: list[list[float]]) -> Numbers:
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)
