"""Sign flips by group: the p value of a mean difference, the interval that belongs to it, and both for a whole family.

If a difference has no direction, the sum of a group's differences is as likely to be positive as negative. The mean is
compared with its values under other signs of the groups; the interval holds every shift that this test does not
reject. One set of signs serves p values, intervals and families, so none of them can contradict another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS
from jurimetrics.stats.resampling import group_codes

Numbers = npt.NDArray[np.float64]
MOST_EXACT = 14
"""Up to so many groups every pattern of signs is looked at (2^14, of which half mirror the others)."""
FLIPS = 9_999
"""Patterns drawn where there are too many to look at all."""
_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """Patterns of signs for `count` groups: M rows, the first leaves all as they are. `exact`: these are all there are.

    A pattern and its mirror image say the same, so one of both is kept. The same for the same number and seed.

    >>> Signs.make(3).patterns.tolist()
    [[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]]
    >>> Signs.make(30, 999).patterns.shape, Signs.make(30).exact
    ((1000, 30), False)
    """

    patterns: npt.NDArray[np.int8]
    exact: bool

    @classmethod
    def make(cls, count: int, flips: int = FLIPS, seed: int = 0) -> Signs:
        """All patterns for up to 14 groups, else `flips` drawn ones and the one that leaves all as they are."""
        if count <= MOST_EXACT:
            bits = np.arange(2 ** max(0, count - 1))[:, None] >> np.arange(max(0, count - 1)) & 1
            return cls(np.hstack([np.ones((len(bits), min(count, 1))), 1 - 2 * bits]).astype(np.int8), True)
        drawn = np.random.default_rng(seed).integers(0, 2, (flips + 1, count), dtype=np.int8)
        drawn[0] = 1
        return cls(2 * drawn - 1, False)

    def sums(self, columns: Numbers) -> Numbers:
        """The sums of `columns` (groups x K) under each pattern: M x K."""
        step = max(1, _CELLS // max(1, self.patterns.shape[1]))
        parts = [
            self.patterns[at : at + step].astype(np.float64) @ columns for at in range(0, len(self.patterns), step)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Flipped:
    """What sign flips say of K mean differences tested together; arrays of K numbers, NaN where there is none.

    `mean`; `p` alone; `low` and `high` alone; `p_family` and `family_low`, `family_high` for all K at once (the chance
    that any of K true values lies outside, or is declared different though it is not, is at most 1 - level). In each
    of the two the interval leaves 0 out exactly where p <= 1 - level. `groups` with a value; `alpha`, the level at
    which each one is tested so that the family keeps its own (0: so few groups that none can be found different);
    `patterns` looked at, all there are if `exact`; `why` there is no interval, "" where there is one.
    """

    mean: Numbers
    p: Numbers
    low: Numbers
    high: Numbers
    p_family: Numbers
    family_low: Numbers
    family_high: Numbers
    groups: npt.NDArray[np.intp]
    alpha: float
    level: float
    patterns: int
    exact: bool
    why: tuple[str, ...]

    @property
    def family(self) -> int:
        """How many of the K were tested together: those with an interval."""
        return sum(not why for why in self.why)

    @property
    def signs(self) -> str:
        """How many patterns of signs were looked at, in words."""
        return f"all {self.patterns:,} sign patterns" if self.exact else f"{self.patterns - 1:,} sign patterns drawn"


def sign_flips(
    differences: Sequence[float] | Numbers,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    *,
    flips: int = FLIPS,
    seed: int = 0,
) -> Flipped:
    """Is the mean of paired differences 0, and which means are compatible with them.

    `differences`: n numbers, or n x K of them for K comparisons over the same records (NaN: this record says nothing
    of that comparison). `groups`: n names of what shares a source (None: every record alone); all differences of a
    group change sign together, in all K comparisons at once.

    Up to 14 groups every pattern of signs is looked at and p is exact; else `flips` are drawn and p = (b + 1) /
    (flips + 1), b the drawn patterns that lie as far from 0 as the data. The interval holds the means m for which the
    differences less m have p > 1 - level; its ends are means of subsets of the groups. Together, K comparisons are
    judged by the smallest p of the K (single-step min-p), whose distribution comes from the same patterns applied to the
    differences less their means, so that it heeds how they go together; p of the family is never below p alone.

    No interval for fewer than 8 groups or where the groups do not differ at all; such a column is left out of the
    family. A family too large for its few groups has no intervals either, and nothing in it is found different.

    Raises `InputError` for an infinite value, a missing group, lengths that differ or a level outside 0 to 1.

    Sources: Hartigan, "Using subsample values as typical values", JASA 64 (1969); Canay, Romano, Shaikh, "Randomization
    tests under an approximate symmetry assumption", Econometrica 85 (2017); Westfall and Young, "Resampling-based
    multiple testing" (1993), 2.3.

    >>> found = sign_flips([1, 0, 0, 0, 1, 0, 0, 1, 0, -1, 0, 1])
    >>> float(found.mean[0]), float(found.p[0]), found.signs
    (0.25, 0.375, 'all 2,048 sign patterns')
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    table = np.asarray(differences, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if np.isinf(table).any():
        raise InputError(f"difference {int(np.argwhere(np.isinf(table))[0, 0])} is infinite")
    codes, count = group_codes(groups, len(table))
    totals, sizes = _by_group(table, codes, count)
    signs = Signs.make(count, flips, seed)
    means = np.divide(totals.sum(axis=0), sizes.sum(axis=0), out=np.full(totals.shape[1], np.nan),
                      where=sizes.sum(axis=0) > 0)  # fmt: skip
    unit = np.nanmax(np.abs(table), axis=0, initial=0.0, where=~np.isnan(table))
    centred = totals - np.nan_to_num(means) * sizes
    why = tuple(
        _why_not(int((sizes[:, at] > 0).sum()), float(np.abs(centred[:, at]).max(initial=0.0)), float(unit[at]))
        for at in range(len(means))
    )
    return _tested(signs, totals, sizes, centred, unit, why, level)


def _by_group(table: Numbers, codes: npt.NDArray[np.intp], count: int) -> tuple[Numbers, Numbers]:
    """Sum and number of the differences of each group in each column."""
    there = ~np.isnan(table)
    columns = range(table.shape[1])
    filled = np.where(there, table, 0.0)
    totals = [np.bincount(codes, weights=filled[:, at], minlength=count) for at in columns]
    sizes = [np.bincount(codes, weights=there[:, at], minlength=count) for at in columns]
    shape = (table.shape[1], count)
    return np.array(totals, np.float64).reshape(shape).T, np.array(sizes, np.float64).reshape(shape).T


def _why_not(groups: int, spread: float, unit: float) -> str:
    if groups == 0:
        return "no pairs"
    if groups < FEWEST_GROUPS:
        return f"no interval: {groups} group{'' if groups == 1 else 's'}, {FEWEST_GROUPS} are needed"
    return "no interval: the groups do not differ" if spread <= 1e-12 * max(1.0, unit) else ""


def _tested(
    signs: Signs, totals: Numbers, sizes: Numbers, centred: Numbers, unit: Numbers, why: tuple[str, ...], level: float
) -> Flipped:
    count = len(signs.patterns)
    below, above = _shifts(signs, totals, sizes, unit)
    hits = ((below <= 0) & (above >= 0)).sum(axis=0)
    with_values = sizes.sum(axis=0) > 0
    usable = np.array([not reason for reason in why], dtype=bool)
    alone = int(np.floor((1 - level) * count + 1e-9))
    smallest = _smallest_ranks(signs, centred[:, usable])
    # A single p is never judged at more than the level of the whole family.
    together = min(alone, int(np.sort(smallest)[alone]) - 1) if usable.any() else alone
    joint = np.searchsorted(np.sort(smallest), hits, side="right")
    below.sort(axis=0)
    above.sort(axis=0)

    def end(edge: Numbers) -> Numbers:
        return np.where(usable & np.isfinite(edge), edge, np.nan).astype(np.float64)

    return Flipped(
        mean=np.divide(totals.sum(axis=0), sizes.sum(axis=0), out=np.full(len(why), np.nan), where=with_values),
        p=np.where(with_values, hits / count, np.nan),
        low=end(below[alone]),
        high=end(above[count - 1 - alone]),
        p_family=np.where(usable, np.maximum(hits, joint) / count, np.nan),
        family_low=end(below[together]),
        family_high=end(above[count - 1 - together]),
        groups=(sizes > 0).sum(axis=0),
        alpha=together / count,
        level=level,
        patterns=count,
        exact=signs.exact,
        why=why,
    )


def _shifts(signs: Signs, totals: Numbers, sizes: Numbers, unit: Numbers) -> tuple[Numbers, Numbers]:
    """For each pattern and column the two means between which a shift counts as lying as far out as the data.

    |A - m n| <= |A_w - m n_w| holds exactly for m between the mean of the groups that keep their sign and the mean of
    those that change it. Where one of the two has no records, it holds for every m.
    """
    total, size = totals.sum(axis=0), sizes.sum(axis=0)
    flipped_total, flipped_size = signs.sums(totals), signs.sums(sizes)
    kept, changed = size + flipped_size, size - flipped_size
    both = (kept > 0) & (changed > 0)
    one = np.divide(total + flipped_total, kept, out=np.full(kept.shape, -np.inf), where=both)
    other = np.divide(total - flipped_total, changed, out=np.full(kept.shape, np.inf), where=both)
    for ends in (one, other):
        # Sums in another order differ in their last digits; a tie with 0 must stay a tie.
        ends[np.abs(ends) <= 1e-12 * np.maximum(unit, 1e-300)] = 0.0
    return np.minimum(one, other), np.maximum(one, other)


def _smallest_ranks(signs: Signs, centred: Numbers) -> npt.NDArray[np.intp]:
    """For each pattern the smallest of the K ranks (1: the most extreme) that it would have as the data, were no
    difference true."""
    count = len(signs.patterns)
    smallest = np.full(count, count, dtype=np.intp)
    sums = np.abs(signs.sums(centred))
    for at in range(centred.shape[1]):
        column = sums[:, at]
        slack = 1e-9 * max(float(column.max()), 1e-300)
        rank = count - np.searchsorted(np.sort(column), column - slack, side="left")
        smallest = np.minimum(smallest, rank)
    return smallest
