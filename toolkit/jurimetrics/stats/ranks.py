"""Correlations of two columns: Pearson, Spearman, Kendall's tau-b; over all rows, within groups, between systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.products import product
from jurimetrics.stats.ratings import read_pair
from jurimetrics.stats.resampling import (
    RESAMPLES,
    Cells,
    Draws,
    Statistic,
    cells_of,
    estimate,
    group_codes,
    made_from,
    percentiles,
    undefined,
)

Numbers = npt.NDArray[np.float64]
Kind = Literal["pearson", "spearman", "kendall"]
_Codes = tuple[npt.NDArray[np.intp], int]
Level = Literal["pooled", "group", "system"]
MANY_PATTERNS = 400
"""Kendall's tau compares every distinct pair of values with every other. Beyond this many, drawing anew takes too long:
each group is left out in turn, which needs every comparison once."""


class WithinGroups(NamedTuple):
    """The mean of the groups' own correlations, and how many groups were `used` and `skipped` (a side is constant)."""

    estimate: Estimate
    used: int
    skipped: int


def correlation(
    first: Any,
    second: Any,
    kind: Kind = "spearman",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
    seed: int = 0,
) -> Estimate:
    """The correlation of n pairs over all rows, whatever group they are of; -1 to 1.

    `first`, `second`: n numbers; pairs with a missing side (None, NaN, blank) are left out. `kind`: "pearson",
    "spearman" (Pearson of ranks; ties share their mean rank) or "kendall" (tau-b). `groups`: n labels of what shares a
    source, for the interval (`estimate`). The value is None where a side does not vary; `method` says so. Raises
    `InputError` for lengths that differ.

    Sources: Spearman (1904); Kendall, Biometrika 33 (1945), for ties.

    >>> correlation([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]).value.__round__(5)
    0.82078
    >>> correlation([1, 1, 1], [1, 2, 3], "kendall").method
    'undefined: kendall: the first side does not vary: 1 in all 3 rows'
    """
    pair, kept = _pairs(first, second, groups)
    codes, count = group_codes(kept, pair.shape[1])
    cells = cells_of(pair, codes, count)
    found, why = pooled_statistic(cells, kind), why_constant(pair)
    return estimate(found, count, pair.shape[1], kind, why=why, level=level, draws=draws, seed=seed)


def correlation_within(
    first: Any,
    second: Any,
    groups: Sequence[Any],
    kind: Kind = "spearman",
    *,
    level: float = 0.95,
) -> WithinGroups:
    """The mean over groups of the correlation within each, as the meta-evaluation of G-Eval does.

    Arguments as for `correlation`. Groups in which a side is constant have no correlation: they are left out and
    counted, for leaving them out favours a judge that gives few different scores. `n` of the estimate is the number of
    groups used; its interval is Student's t over them, heeding how skewed they are. The value is None where no group has
    a correlation.

    Source: Liu and others, "G-Eval", arXiv 2303.16634.

    >>> found = correlation_within([1, 2, 3, 3, 3, 3], [1, 3, 2, 1, 2, 3], ["a", "a", "a", "b", "b", "b"])
    >>> found.estimate.value, found.used, found.skipped
    (0.5, 1, 1)
    """
    pair, kept = _pairs(first, second, groups)
    codes, count = group_codes(kept, pair.shape[1])
    each = within_each(cells_of(pair, codes, count), kind)
    used = np.flatnonzero(~np.isnan(each))
    if not len(used):
        return WithinGroups(undefined(f"{kind} within groups: {why_not_within(codes, count)}", 0, level), 0, count)
    statistic = mean_of_groups(each[used])
    found = estimate(
        statistic, len(used), len(used), f"mean {kind} within groups", why="", level=level, always_t=True, unit="group"
    )
    return WithinGroups(found, len(used), count - len(used))


def correlation_between(
    first: Any,
    second: Any,
    systems: Sequence[Any],
    kind: Kind = "spearman",
    groups: Sequence[Any] | None = None,
    *,
    weights: Numbers | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The correlation of the systems' mean values: whether both columns rank the systems alike.

    `first`, `second`: n numbers; `systems`: n names of what is ranked; `groups`: n labels of what shares a source;
    `weights`: how much each row counts (1 each by default). `n` is the number of systems. The interval draws systems
    and groups anew at once, so that it speaks of other systems and other groups; none is given below 8 of either. The
    value is None below three systems, or where the means of a side do not vary.

    >>> correlation_between([1, 2, 3, 4], [1, 2, 2, 4], ["a", "b", "c", "d"]).value.__round__(4)
    0.9487
    """
    pair, kept = _pairs(first, second, groups)
    both = np.asarray(~np.isnan(read_pair(first, second)[0]).any(axis=0))
    names = [system for system, one in zip(systems, both, strict=True) if one]
    mass = np.ones(pair.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)[both]
    codes, count = group_codes(kept, pair.shape[1])
    of_system, size = group_codes(names, pair.shape[1])
    statistic = Systems.of(pair, (codes, count), (of_system, size), mass).statistic(kind)
    draws = both_drawn(count, size, resamples, seed)
    return estimate_between(statistic, count, size, f"{kind} between systems", draws, level)


def estimate_between(
    statistic: Statistic, groups: int, systems: int, said: str, draws: Draws, level: float = 0.95
) -> Estimate:
    """The value of a statistic of `Systems` with its interval; see `correlation_between`."""
    if systems < 3:
        return undefined(f"{said}: {systems} system{'' if systems == 1 else 's'}, 3 are needed", systems, level)
    value = statistic.all_groups(groups + systems)
    if np.isnan(value):
        return undefined(f"{said}: the means of one side do not vary", systems, level)
    bare = Estimate(value, None, None, level, systems, "")
    if min(systems, groups) < FEWEST_GROUPS:
        few = f"{systems} systems and {groups} groups, {FEWEST_GROUPS} of each are needed"
        return replace(bare, method=f"{said}; no interval: {few}")
    return percentiles(
        bare, draws.values(statistic), min(systems, groups), said, f"{systems} systems and {groups} groups"
    )


def both_drawn(groups: int, systems: int, resamples: int = RESAMPLES, seed: int = 0) -> Draws:
    """Resamples of groups and, independent of them, of systems: how often each is drawn, side by side."""
    return Draws(np.hstack([Draws.make(groups, resamples, seed).times, Draws.make(systems, resamples, seed + 1).times]))


def pooled_statistic(cells: Cells, kind: Kind) -> Statistic:
    """The correlation over all rows of a pair of columns, as a statistic of groups."""
    if kind == "kendall":
        return _kendall(cells)
    return cells.statistic(lambda values, weights: _moments(*_sides(values, weights, kind), weights))


def within_each(cells: Cells, kind: Kind) -> Numbers:
    """The correlation within each group alone, NaN where a side is constant (or the group is empty)."""
    count = cells.table.shape[0]
    found = []
    # Groups are few at a time where they have many different values.
    step = max(1, min(200, MANY_PATTERNS * count // max(1, cells.values.shape[1])))
    for start in range(0, count, step):
        part = cells.table[start : start + step]
        here = np.flatnonzero(np.asarray(part.sum(axis=0)).reshape(-1) > 0)
        mine = Cells(cells.values[:, here], part[:, here])
        found.append(pooled_statistic(mine, kind).each(np.eye(part.shape[0])))
    return np.concatenate(found) if found else np.empty(0)


def mean_of_groups(each: Numbers, weights: Numbers | None = None) -> Statistic:
    """The (weighted) mean of one number for each group; groups without one (NaN) do not count."""
    there = ~np.isnan(each)
    mass = np.where(there, 1.0 if weights is None else weights, 0.0)
    value = np.where(there, each, 0.0)

    def mean(times: Numbers) -> Numbers:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((times @ (mass * value)) / (times @ mass))

    return Statistic(mean, 1)


def why_constant(pair: Numbers) -> str:
    """In words why a pair of columns has no correlation."""
    if pair.shape[1] < 2:
        return f"{pair.shape[1]} row{'' if pair.shape[1] == 1 else 's'}, 2 are needed"
    for side, name in zip(pair, ("first", "second"), strict=True):
        if np.ptp(side) == 0:
            return f"the {name} side does not vary: {side[0]:g} in all {len(side)} rows"
    return "a side does not vary"


def why_not_within(codes: npt.NDArray[np.intp], count: int) -> str:
    """In words why no group has a correlation."""
    if count and np.bincount(codes, minlength=count).max() < 2:
        return f'each of the {count} groups has a single row; level="pooled" compares across groups'
    return f"in each of the {count} groups a side does not vary"


def _pairs(first: Any, second: Any, groups: Sequence[Any] | None) -> tuple[Numbers, list[Any] | None]:
    pair, names = read_pair(first, second)
    if names:
        raise InputError(f"a correlation needs numbers, found {names[-1]!r}")
    both = np.asarray(~np.isnan(pair).any(axis=0))
    if groups is None:
        return pair[:, both], None
    if len(groups) != pair.shape[1]:
        raise InputError(f"{pair.shape[1]} rows but {len(groups)} groups")
    return pair[:, both], [group for group, one in zip(groups, both, strict=True) if one]


def _sides(values: Numbers, weights: Numbers, kind: Kind) -> tuple[Numbers, Numbers]:
    if kind == "spearman":
        return _ranks(values[0], weights), _ranks(values[1], weights)
    if kind != "pearson":
        raise InputError(f"correlations are pearson, spearman or kendall, not {kind!r}")
    # Centred first, so that sums of squares stay exact enough.
    one, two = ((side - side.mean())[None, :] for side in values[:2])
    return one, two


def _ranks(side: Numbers, weights: Numbers) -> Numbers:
    """Mid-ranks of the values under each row of weights, from the cumulated weights of the distinct values."""
    steps, place = np.unique(side, return_inverse=True)
    if len(steps) * 4 > len(side):
        order = np.argsort(side, kind="stable")
        total = np.add.reduceat(weights[:, order], np.searchsorted(side[order], steps), axis=1)
    else:
        total = product(weights, (place.reshape(-1)[:, None] == np.arange(len(steps))).astype(np.float64))
    middle = np.cumsum(total, axis=1) - total / 2
    return np.asarray(middle[:, place.reshape(-1)])


def _moments(first: Numbers, second: Numbers, weights: Numbers) -> Numbers:
    """Pearson under each row of weights; NaN where a side does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        one, two = ((weights * side).sum(axis=1) / total for side in (first, second))
        away, beside = first - one[:, None], second - two[:, None]
        between = (weights * away * beside).sum(axis=1)
        spreads = (weights * away**2).sum(axis=1), (weights * beside**2).sum(axis=1)
        # What is left of a spread by rounding is no spread.
        floors = [1e-12 * total * np.maximum(1e-6, np.abs(side).max(axis=1)) ** 2 for side in (first, second)]
        varies = (spreads[0] > floors[0]) & (spreads[1] > floors[1])
        return np.asarray(np.where(varies, between / np.sqrt(spreads[0] * spreads[1]), np.nan))


def _kendall(cells: Cells) -> Statistic:
    """tau-b: weights of the pairs of patterns that go together, over those that are no ties on either side."""
    size = int(cells.values.shape[1])
    if size > MANY_PATTERNS:
        return Statistic(lambda times: _tau_in_blocks(cells, times), size, without=lambda: _tau_without(cells))
    signs = _signs(cells.values, np.arange(size))

    def tau(times: Numbers) -> Numbers:
        mass = cells.prepare(times)
        return _tau([(product(mass, each) * mass).sum(axis=1) for each in signs])

    return Statistic(tau, size)


def _signs(values: Numbers, rows: npt.NDArray[np.intp]) -> tuple[Numbers, Numbers, Numbers]:
    """Of the patterns in `rows` with all others: whether they go together, are no tie on the first, on the second side."""
    one, two = (np.sign(side[rows, None] - side[None, :]) for side in values[:2])
    return one * two, np.abs(one), np.abs(two)


def _tau(pairs: Sequence[Numbers]) -> Numbers:
    untied = np.sqrt(np.maximum(pairs[1] * pairs[2], 0.0))
    there = untied > 1e-9
    return np.asarray(np.where(there, pairs[0] / np.where(there, untied, 1.0), np.nan))


def _blocks(size: int) -> list[npt.NDArray[np.intp]]:
    return [np.arange(start, min(start + MANY_PATTERNS, size)) for start in range(0, size, MANY_PATTERNS)]


def _tau_in_blocks(cells: Cells, times: Numbers) -> Numbers:
    mass = cells.prepare(times)
    sums = [np.zeros(len(times)) for _ in range(3)]
    for rows in _blocks(mass.shape[1]):
        for total, each in zip(sums, _signs(cells.values, rows), strict=True):
            total += ((mass[:, rows] @ each) * mass).sum(axis=1)
    return _tau(sums)


def _tau_without(cells: Cells) -> Numbers:
    """tau-b without each group in turn: all pairs, less those of the group with all, plus those within it."""
    table = cells.table
    mass = np.asarray(table.sum(axis=0)).reshape(-1)
    sums = [np.zeros(len(mass)) for _ in range(3)]
    for rows in _blocks(len(mass)):
        for total, each in zip(sums, _signs(cells.values, rows), strict=True):
            total[rows] = each @ mass
    left = [float(mass @ total) - 2 * np.asarray(table @ total) for total in sums]
    for group in range(table.shape[0]):
        own = np.asarray(table[[group]].toarray() if hasattr(table, "toarray") else table[[group]])[0]
        here = np.flatnonzero(own)
        if len(here) > 1:
            signs = _signs(cells.values[:, here], np.arange(len(here)))
            for total, each in zip(left, signs, strict=True):
                total[group] += own[here] @ each @ own[here]
    return _tau(left)


class _Means(NamedTuple):
    """System means of both columns under B weightings (B x K), how much each system counts, and for each pair of
    systems which mean is higher (B x P)."""

    means: tuple[Numbers, Numbers]
    there: Numbers
    signs: tuple[Numbers, Numbers]


@dataclass(frozen=True, slots=True, eq=False)
class Systems:
    """Sums of two columns, and of the weights, of each group and system (G x K each)."""

    first: Numbers
    second: Numbers
    mass: Numbers

    @classmethod
    def of(cls, pair: Numbers, groups: _Codes, systems: _Codes, weights: Numbers | None = None) -> Systems:
        """Of the rows in `pair` (2 x n); `groups` and `systems`: their codes from 0, and how many there are."""
        mass = np.ones(pair.shape[1]) if weights is None else weights
        sums = [np.zeros((groups[1], systems[1])) for _ in range(3)]
        for total, column in zip(sums, (pair[0], pair[1], np.ones_like(mass)), strict=True):
            np.add.at(total, (groups[0], systems[0]), mass * column)
        return cls(*sums)

    @property
    def width(self) -> int:
        return int(self.mass.shape[1]) ** 2

    def prepare(self, times: Numbers) -> _Means:
        """The system means where groups, and after them systems, count as in `times` (B x (G + K))."""
        groups, systems = times[:, : len(self.mass)], times[:, len(self.mass) :]
        counts = product(groups, self.mass)
        some = np.where(counts > 0, counts, 1.0)
        # Means that differ by rounding alone are tied.
        one, two = (np.round(product(groups, total) / some, 10) for total in (self.first, self.second))
        left, right = np.triu_indices(systems.shape[1], 1)
        signs = np.sign(one[:, left] - one[:, right]), np.sign(two[:, left] - two[:, right])
        return _Means((one, two), np.where(counts > 0, systems, 0.0), signs)

    def statistic(self, kind: Kind) -> Statistic:
        """The correlation of the systems' means."""
        return made_from(self, lambda prepared: _between(prepared, kind))


def _between(prepared: _Means, kind: Kind) -> Numbers:
    there = prepared.there
    if kind == "pearson":
        first, second = (mean - mean.mean(axis=1)[:, None] for mean in prepared.means)
        return _moments(first, second, there)
    left, right = np.triu_indices(there.shape[1], 1)
    if kind == "spearman":
        to_left, to_right = (np.eye(there.shape[1])[side] for side in (left, right))
        first, second = (
            (product(sign * there[:, right], to_left) - product(sign * there[:, left], to_right)) / 2
            for sign in prepared.signs
        )
        return _moments(first, second, there)
    pairs = there[:, left] * there[:, right]
    one, two = prepared.signs
    together, first, second = ((pairs * each).sum(axis=1) for each in (one * two, np.abs(one), np.abs(two)))
    untied = np.sqrt(first * second)
    return np.asarray(np.where(untied > 0, together / np.where(untied > 0, untied, 1.0), np.nan))
