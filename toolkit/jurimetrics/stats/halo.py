"""How much closer two ratings go together when asked in one call: a difference of correlations, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate

Numbers = npt.NDArray[np.float64]
Kind = Literal["pearson", "spearman"]
_CELLS = 2_000_000
"""Resamples times groups held at once; more is done in parts."""
_MOST_UNDEFINED = 0.05
"""With more resamples than this share without a correlation, those that have one are a selection."""


@dataclass(frozen=True, slots=True)
class Halo:
    """Two correlations over the same n records, and the second minus the first.

    `separate` and `batched` lie in -1 to 1 and are None where a side does not vary; `difference` then has no value.

    >>> Halo(0.2, 0.5, Estimate(0.3, 0.1, 0.5, 0.95, 60, "bootstrap")).difference.value
    0.3
    """

    separate: float | None
    batched: float | None
    difference: Estimate


def halo_of(
    separate: tuple[Sequence[float] | Numbers, Sequence[float] | Numbers],
    batched: tuple[Sequence[float] | Numbers, Sequence[float] | Numbers],
    groups: Sequence[Any] | None = None,
    kind: Kind = "pearson",
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Halo:
    """The correlation of two criteria asked apart, that of the same two asked in one call, and their difference.

    `separate` and `batched`: the scores of the first and of the second criterion, n numbers each, of the same n records
    in the same order; none may be missing. `groups`: n labels of what shares a source (None: every record stands alone).
    `kind`: "pearson", or "spearman" (ranks, ties share their mean rank).

    The interval of the difference is the percentile bootstrap: whole groups are drawn with replacement, the four scores
    of a record stay together, and both correlations (ranks included) are computed anew in each of `resamples`. None is
    given below 8 groups, where a correlation does not exist, where more than 5 % of the resamples lack one, or where all
    of them agree. `method` says which. The order of records does not change the result.

    Raises `InputError` for lengths that differ, a value that is no finite number, or a level outside 0 to 1.
    Source: Davison and Hinkley, "Bootstrap Methods and their Application" (1997), 2.4 and 3.8.

    >>> first, second = [1, 2, 3, 4, 5] * 4, [2, 1, 4, 3, 5] * 4
    >>> found = halo_of((first, second), (first, first))
    >>> round(found.separate, 3), round(found.batched, 3), round(found.difference.value, 3)
    (0.8, 1.0, 0.2)
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    columns, codes = _arranged([*separate, *batched], groups)
    n, count = columns.shape[1], int(codes.max()) + 1 if columns.shape[1] else 0
    sides = [_cells(columns[at], columns[at + 1], codes, count) for at in (0, 2)]
    points = [side.correlations(np.ones((1, count)), kind)[0] if n else np.nan for side in sides]
    apart, together = (None if np.isnan(point) else float(point) for point in points)
    if apart is None or together is None:
        why = "no records" if not n else f"asked {'apart' if apart is None else 'together'}, a criterion does not vary"
        return Halo(apart, together, Estimate(None, None, None, level, n, f"no {kind} correlation: {why}"))
    value = together - apart
    if count < FEWEST_GROUPS:
        method = f"difference of {kind} correlations; no interval: {count} groups, {FEWEST_GROUPS} are needed"
        return Halo(apart, together, Estimate(value, None, None, level, n, method))
    drawn = _resampled(sides, count, kind, resamples, seed)
    return Halo(apart, together, _interval(value, drawn, level, n, count, kind))


def _arranged(columns: Sequence[Any], groups: Sequence[Any] | None) -> tuple[Numbers, npt.NDArray[np.intp]]:
    """The four columns and the groups as numbers from 0, in an order that the caller's order does not decide."""
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    lengths = {len(column) for column in values} | ({len(groups)} if groups is not None else set())
    if len(lengths) > 1:
        raise InputError(f"scores and groups must be equally long, found lengths {sorted(lengths)}")
    table = np.vstack(values)
    if not np.isfinite(table).all():
        raise InputError("a score is no finite number: leave out records that lack one")
    names = list(range(table.shape[1])) if groups is None else list(groups)
    if groups is None:
        # Records that stand alone are told apart by their scores alone.
        order = np.lexsort(table[::-1])
        return table[:, order], np.arange(table.shape[1])
    kinds = {name: at for at, name in enumerate(sorted(set(names), key=str))}
    codes = np.array([kinds[name] for name in names], dtype=np.intp)
    order = np.lexsort((*table[::-1], codes))
    return table[:, order], codes[order]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The distinct pairs of values, and how many records of each group (row) lie in each of them (column)."""

    first: Numbers
    second: Numbers
    table: Any

    def correlations(self, times: Numbers, kind: Kind) -> Numbers:
        """One correlation for each row of `times`, which says how often each group is drawn."""
        return _correlations(self.first, self.second, np.asarray(times @ self.table), kind)


def _cells(first: Numbers, second: Numbers, codes: npt.NDArray[np.intp], count: int) -> _Cells:
    from scipy.sparse import csr_array

    # Ratings take few values: a correlation over thousands of records is one over a few dozen weighted pairs.
    pairs, cell = np.unique(np.vstack([first, second]), axis=1, return_inverse=True)
    place = (codes, cell.reshape(-1))
    return _Cells(pairs[0], pairs[1], csr_array((np.ones(len(first)), place), shape=(count, pairs.shape[1])))


def _resampled(sides: Sequence[_Cells], count: int, kind: Kind, resamples: int, seed: int) -> Numbers:
    """The difference in each resample of whole groups, NaN where a correlation does not exist."""
    draw = np.random.default_rng(seed)
    part = max(1, _CELLS // count)
    found = []
    for start in range(0, resamples, part):
        size = min(part, resamples - start)
        drawn = draw.integers(0, count, size=(size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(drawn.reshape(-1), minlength=size * count).reshape(size, count).astype(np.float64)
        apart, together = (side.correlations(times, kind) for side in sides)
        found.append(together - apart)
    return np.concatenate(found)


def _correlations(first: Numbers, second: Numbers, weights: Numbers, kind: Kind) -> Numbers:
    """One correlation for each row of `weights` (times a record is drawn); NaN where a side does not vary."""
    if kind == "spearman":
        return _pearson(_ranks(first, weights), _ranks(second, weights), weights)
    # Centred first, so that sums of squares stay exact enough.
    return _pearson((first - first.mean())[None, :], (second - second.mean())[None, :], weights)


def _pearson(first: Numbers, second: Numbers, weights: Numbers) -> Numbers:
    total = weights.sum(axis=1)
    one, two = ((weights * side).sum(axis=1) / total for side in (first, second))
    away, beside = first - one[:, None], second - two[:, None]
    between = (weights * away * beside).sum(axis=1)
    spreads = (weights * away**2).sum(axis=1), (weights * beside**2).sum(axis=1)
    # What is left of a spread by rounding is no spread.
    floors = [1e-12 * total * np.maximum(1.0, np.abs(side).max()) ** 2 for side in (first, second)]
    varies = (spreads[0] > floors[0]) & (spreads[1] > floors[1])
    product = np.sqrt(np.where(varies, spreads[0], 1.0)) * np.sqrt(np.where(varies, spreads[1], 1.0))
    return np.where(varies, np.clip(between / product, -1.0, 1.0), np.nan)


def _ranks(values: Numbers, weights: Numbers) -> Numbers:
    """Mean ranks of every record within each resample, where a record counts as often as it is drawn."""
    levels, of_record = np.unique(values, return_inverse=True)
    order = np.argsort(of_record, kind="stable")
    starts = np.searchsorted(of_record[order], np.arange(len(levels)))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)
    below = np.cumsum(counts, axis=1) - counts
    return (below + (counts + 1) / 2)[:, of_record]


def _interval(value: float, drawn: Numbers, level: float, n: int, count: int, kind: Kind) -> Estimate:
    there = drawn[~np.isnan(drawn)]
    said = f"difference of {kind} correlations; "
    if len(there) < (1 - _MOST_UNDEFINED) * len(drawn):
        undefined = len(drawn) - len(there)
        why = f"no interval: in {undefined} of {len(drawn)} resamples a criterion does not vary"
        return Estimate(value, None, None, level, n, said + why)
    if np.ptp(there) <= 1e-12:
        return Estimate(value, None, None, level, n, f"{said}no interval: all resamples agree")
    low, high = np.quantile(there, [(1 - level) / 2, (1 + level) / 2])
    over = f"{n} records" if count == n else f"{count} groups"
    return Estimate(
        value, float(low), float(high), level, n, f"{said}percentile bootstrap of {over}, {len(drawn)} resamples"
    )
