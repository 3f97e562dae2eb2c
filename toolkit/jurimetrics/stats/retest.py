"""How far a judge agrees with itself when it is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.agreement import krippendorff_alpha
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.finding import ratio, renumbered
from jurimetrics.stats.icc import icc
from jurimetrics.stats.kappa import kappa_formula
from jurimetrics.stats.resampling import Statistic, average, cells_of, estimate, group_codes, undefined

Numbers = npt.NDArray[np.float64]
Groups = Sequence[Any] | npt.NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Retest:
    """How far a judge agrees with itself when asked again: K runs over the same n targets.

    `flip_rate`: share of pairs of runs of a target that differ (0: never). `kappa`: Cohen's between runs, averaged over
    their pairs (undefined for scores that are no steps of a scale). `alpha`: Krippendorff's over the runs as raters
    (interval distance). `icc_single` and `icc_mean`: one-way ICC(1,1) of a run and ICC(1,K) of the mean of all; sqrt(ICC)
    bounds any correlation with people. `within_sd`: standard deviation of a target's runs, in the unit of the score.
    `incomplete`: targets that lack a run; ICC leaves them out, the others use what is there.
    """

    flip_rate: Estimate
    kappa: Estimate
    alpha: Estimate
    icc_single: Estimate
    icc_mean: Estimate
    within_sd: Estimate
    incomplete: int


def retest(
    runs: Any,
    groups: Groups = None,
    *,
    scale: Sequence[float] | None = None,
    verdicts: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> Retest:
    """Reliability of scores `runs` (n targets x K runs, NaN: no score) on asking again.

    `verdicts` (same shape, 1 pass, 0 fail, NaN) are what flips are counted of; without them the scores themselves are.
    `scale`: the steps a score can take, for kappa. At temperature 0 this measures what the endpoint does by itself, not
    whether the judge is right. Raises `InputError` for another shape or fewer than two runs.

    Sources: Shrout and Fleiss, Psychological Bulletin 86 (1979); Krippendorff (2011).

    >>> found = retest([[4, 4], [2, 2], [5, 5], [1, 2], [3, 3], [4, 4], [2, 3], [5, 5]], scale=(1, 2, 3, 4, 5))
    >>> found.flip_rate.value, round(found.icc_single.value, 3), found.incomplete
    (0.25, 0.932, 0)
    """
    table = np.asarray(runs, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"runs are n targets x K runs, two or more; found the shape {table.shape}")
    states = table if verdicts is None else np.asarray(verdicts, dtype=np.float64)
    if states.shape != table.shape:
        raise InputError(f"verdicts have the shape {states.shape}, runs {table.shape}")
    names = list(range(len(table))) if groups is None else list(groups)
    codes, count = group_codes(names, len(table))
    complete = np.asarray(~np.isnan(table).any(axis=1))
    pairs = list(combinations(range(table.shape[1]), 2))
    clustered = None if groups is None else [name for name, whole in zip(names, complete, strict=True) if whole]
    several = (~np.isnan(table)).sum(axis=1) >= 2
    again, left = renumbered(codes[several])
    spread = np.array([np.nanvar(row, ddof=1) for row in table[several]], dtype=np.float64)
    return Retest(
        mean_estimate(_flips(states, pairs), names, level, bounds=(0.0, 1.0)),
        _kappa_between(table, pairs, codes, count, scale, level, seed),
        krippendorff_alpha(table.T, "interval", None if groups is None else names, level=level, seed=seed),
        icc(table[complete], "1,1", clustered, level=level),
        icc(table[complete], "1,k", clustered, level=level),
        _within_sd(spread, again, left, level, seed),
        int((~complete).sum()),
    )  # fmt: skip


def _within_sd(spread: Numbers, codes: npt.NDArray[np.intp], count: int, level: float, seed: int) -> Estimate:
    """The root of the mean of the targets' variances."""
    variance = ratio(spread, np.ones(len(spread)), codes, count)
    root = Statistic(lambda times: np.sqrt(variance.of(times)), variance.width)
    found = estimate(
        root, count, len(spread), "within SD", why="no target has two runs", level=level, seed=seed, bounds=None
    )
    return replace(found, low=0.0) if found.low is not None and found.low < 0 else found


def _flips(states: Numbers, pairs: Sequence[tuple[int, int]]) -> Numbers:
    """For each target the share of pairs of runs that differ, NaN where there is no pair."""
    apart = np.array([np.abs(states[:, i] - states[:, j]) for i, j in pairs])
    there = ~np.isnan(apart)
    number = there.sum(axis=0)
    differ = (np.where(there, apart, 0.0) > 1e-9).sum(axis=0)
    return np.where(number > 0, differ / np.maximum(number, 1), np.nan)


def _kappa_between(
    table: Numbers, pairs: Sequence[tuple[int, int]], codes: Any, count: int, scale: Any, level: float, seed: int
) -> Estimate:
    if scale is None:
        return undefined("kappa between runs: the scores are no steps of a scale", len(table), level)
    if not np.isin(table[~np.isnan(table)], np.asarray(scale, dtype=np.float64)).all():
        return undefined("kappa between runs: a score is no step of the scale", len(table), level)
    parts = [cells_of(table[:, pair].T, codes, count).statistic(kappa_formula(scale)) for pair in map(list, pairs)]
    return estimate(
        average(parts), count, len(table), "kappa between runs", why="one class only", level=level, seed=seed
    )  # fmt: skip
