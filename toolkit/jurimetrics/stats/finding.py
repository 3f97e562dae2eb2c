"""An estimate with the p value of its being nothing, and what statistics of pairs share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.flips import FLIPS, sign_flips
from jurimetrics.stats.resampling import Statistic, estimate, leave_out, undefined

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any] | None
_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """An estimate and the two-sided p value of its being no different from nothing (None: it could not be tested).

    >>> Finding(Estimate(0.5, 0.2, 0.8, 0.95, 40, "mean"), 0.01).p
    0.01
    """

    estimate: Estimate
    p: float | None


def with_p(
    statistic: Statistic,
    count: int,
    n: int,
    said: str,
    *,
    why: str,
    null: float = 0.0,
    level: float = 0.95,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
    seed: int = 0,
) -> Finding:
    """`estimate`, and p from Student's t with G - 1 degrees over the error from leaving out each of the G groups.

    `null` is the value that means nothing is there. p is None below 8 groups, where the statistic is undefined, also
    without one of the groups, and where the groups do not differ. It takes the statistic as it is, while the interval may
    be taken after a transformation or from resamples; near the level the two can differ. Source: as of `estimate`.

    >>> each = np.array([0.2, 0.4, 0.9, 0.7, 0.6, 0.8, 0.3, 0.5])
    >>> mean = Statistic(lambda times: times @ each / times.sum(axis=1), 8)
    >>> found = with_p(mean, 8, 8, "mean", why="no rows", bounds=None)
    >>> print(found.estimate, round(found.p, 4))
    0.55 [0.35, 0.75] 0.0004
    """
    found = estimate(statistic, count, n, said, why=why, level=level, seed=seed, bounds=bounds)
    if found.value is None or count < FEWEST_GROUPS:
        return Finding(found, None)
    without = leave_out(statistic, count)
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    if math.isnan(error) or error <= 1e-12:
        return Finding(found, None)
    from scipy.special import stdtr

    return Finding(found, float(2 * stdtr(count - 1, -abs(found.value - null) / error)))


def mean_differences(
    differences: Values, groups: Groups = None, level: float = 0.95, *, flips: int = FLIPS, seed: int = 0
) -> tuple[Finding, ...]:
    """The mean of each column of `differences` (n x K, or n; NaN: none), its interval and p by `sign_flips` of groups.

    Interval and p of a column never contradict each other. A difference that is the same everywhere has no interval and
    still a p. Raises `InputError` as `sign_flips` does.

    >>> found = mean_differences([1, 0, 0, 0, 1, 0, 0, 1, 0, -1, 0, 1])[0]
    >>> print(found.estimate, found.p)
    0.25 [-0.17, 0.67] 0.375
    """
    table = without_dust(np.asarray(differences, dtype=np.float64))
    table = table[:, None] if table.ndim == 1 else table
    found = sign_flips(table, groups, level, flips=flips, seed=seed)
    made = []
    for at, why in enumerate(found.why):
        n, said = int((~np.isnan(table[:, at])).sum()), "mean difference"
        if math.isnan(found.mean[at]):
            made.append(Finding(undefined(f"{said}: no pairs", n, level), None))
            continue
        value, p = float(found.mean[at]), float(found.p[at])
        low, high = (None if math.isnan(end) else float(end) for end in (found.low[at], found.high[at]))
        if why or low is None or high is None:
            made.append(Finding(Estimate(value, None, None, level, n, f"{said}; {why or 'no interval'}"), p))
        else:
            method = f"{said}; {found.signs} over {found.groups[at]} groups"
            made.append(Finding(Estimate(value, low, high, level, n, method), p))
    return tuple(made)


def without_dust(differences: Numbers) -> Numbers:
    """Differences with 0 for those that only the last digits of a float make: sums in another order are no effect.

    >>> without_dust(np.array([0.1 + 0.2 - 0.3, -0.5])).tolist()
    [0.0, -0.5]
    """
    return np.where(np.abs(differences) <= _DUST, 0.0, differences)


def ratio(part: Numbers, whole: Numbers, codes: npt.NDArray[np.intp], count: int) -> Statistic:
    """The sum of `part` over the sum of `whole` (n each), as a statistic of the groups; NaN where that is 0.

    >>> ratio(np.array([1.0, 0.0, 1.0]), np.ones(3), np.array([0, 0, 1]), 2).of(np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([0.66666667, 1.        ])
    """
    parts = np.bincount(codes, weights=part, minlength=count)
    wholes = np.bincount(codes, weights=whole, minlength=count)

    def of(times: Numbers) -> Numbers:
        below = times @ wholes
        return np.asarray(np.where(below > 0, (times @ parts) / np.where(below > 0, below, 1.0), np.nan))

    return Statistic(of, max(1, count))


def renumbered(codes: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], int]:
    """Group codes from 0 without gaps, and how many groups are left.

    >>> renumbered(np.array([4, 1, 4]))
    (array([1, 0, 1]), 2)
    """
    names, again = np.unique(codes, return_inverse=True)
    return again, len(names)


def shares(values: Values, name: str) -> Numbers:
    """Preferences as numbers: 1, 0, .5 or NaN. Raises `InputError` for anything else.

    >>> shares([1, 0.5, 0], "judge").tolist()
    [1.0, 0.5, 0.0]
    """
    found = np.asarray(values, dtype=np.float64)
    strange = found[~np.isnan(found) & ~np.isin(found, (0.0, 0.5, 1.0))]
    if found.ndim != 1 or len(strange):
        raise InputError(f"{name}: 1, 0, .5 (tie) or NaN, found {strange[0] if len(strange) else found.shape!r}")
    return found


def same_length(*columns: Numbers) -> None:
    """Raise `InputError` where the columns are not equally long."""
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"lists of the same length are needed, found {', '.join(str(len(c)) for c in columns)}")
