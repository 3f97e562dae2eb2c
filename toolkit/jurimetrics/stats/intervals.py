"""The ends of intervals: from leaving each group out in turn, and from the values of a statistic in resamples."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
ENOUGH_FOR_SKEWNESS = 30
"""From so many groups on their skewness is known well enough to correct for it."""


def jackknife_error(without: Numbers) -> float:
    """The standard error that the values `without` each of the groups (or of equally large blocks of them) give.

    >>> round(jackknife_error(np.array([1.0, 2.0, 3.0])), 4)
    1.1547
    """
    count = len(without)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


def stretched(values: Numbers, bounds: tuple[float, float]) -> Numbers | None:
    """`values` by Fisher's transformation of the range; None where it has no two ends, or one lies at an end or beyond.

    >>> stretched(np.array([0.0, 0.5]), (-1.0, 1.0)).round(4).tolist()
    [0.0, 0.5493]
    """
    if not math.isfinite(bounds[1] - bounds[0]):
        return None
    inside = (2 * values - bounds[0] - bounds[1]) / (bounds[1] - bounds[0])
    return None if (np.abs(inside) >= 1 - 1e-9).any() else np.arctanh(inside)


def reach(value: float, without: Numbers, quantile: float) -> tuple[float, float]:
    """The ends of an interval around `value` at `quantile` errors, for what is skewed or biased.

    `without` are the values without each group, on the same scale. From 30 groups on the ends heed the skewness that
    these have (Hall's cubic transformation of the studentised value, undone); with fewer, of which nobody knows how
    skewed they are, they reach as far as the value and the value less its jackknife bias do.

    Source: Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54 (1992),
    221-228; for the bias Quenouille, Biometrika 43 (1956).

    >>> low, high = reach(0.0, np.linspace(-0.1, 0.1, 40), 2.0)
    >>> round(low, 3) == -round(high, 3)
    True
    """
    count, error = len(without), jackknife_error(without)
    if count < ENOUGH_FOR_SKEWNESS:
        unbiased = value - (count - 1) * (float(without.mean()) - value)
        return min(value, unbiased) - quantile * error, max(value, unbiased) + quantile * error
    away = without.mean() - without
    skewness = float((away**3).mean() / (away**2).mean() ** 1.5) / math.sqrt(count)
    low, high = (value - error * _unskewed(side * quantile, skewness) for side in (1, -1))
    return low, high


def _unskewed(at: float, skewness: float) -> float:
    """What studentised value Hall's transformation takes to `at`; `skewness` is that of the groups over their root."""
    if abs(skewness) < 1e-6:
        return at
    return 3 / skewness * (float(np.cbrt(1 + skewness * (at - skewness / 6))) - 1)


def accelerated(value: float, drawn: Numbers, without: Numbers, tail: float) -> tuple[float, float] | None:
    """Which shares of `drawn` are the ends of the bias-corrected and accelerated interval with `tail` on either side.

    `without`: the values without each group or block of groups, for the acceleration. None where all of `drawn` lie on
    one side of the value, or the groups do not differ: there is no such correction.

    Source: Efron, "Better bootstrap confidence intervals", JASA 82 (1987), 171-185.

    >>> drawn = np.arange(-50.0, 51.0)
    >>> low, high = accelerated(0.0, drawn, np.array([-1.0, 0.0, 1.0]), 0.025)
    >>> round(low, 6), round(high, 6)
    (0.025, 0.975)
    """
    from scipy.special import ndtr, ndtri

    away = without.mean() - without
    spread = float((away**2).sum())
    slack = 1e-12 * max(1.0, abs(value))
    # Half of the ties count as below.
    below = float((drawn < value - slack).sum() + (drawn <= value + slack).sum()) / (2 * len(drawn))
    bias = float(ndtri(below))
    if np.isnan(without).any() or spread <= 0 or not math.isfinite(bias):
        return None
    rate = float((away**3).sum()) / (6 * spread**1.5)
    shifts = [bias + float(ndtri(side)) for side in (tail, 1 - tail)]
    if any(1 - rate * shift <= 0 for shift in shifts):
        return None
    low, high = (float(ndtr(bias + shift / (1 - rate * shift))) for shift in shifts)
    return low, high
