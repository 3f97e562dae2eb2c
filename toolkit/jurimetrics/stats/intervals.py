"""The ends of intervals: from leaving each group out in turn, and from the values of a statistic in resamples."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
ENOUGH_FOR_SKEWNESS = 30
"""From so many groups on their skewness is known well enough to shorten an end by it."""
_MOST_SKEWED = 0.2
"""Skewness over the root of the groups, beyond which the correction for it would no longer hold."""
SHARE = (0.0, 1.0)
"""The ends of what a share can be."""


def jackknife_error(without: Numbers) -> float:
    """The standard error that the values `without` each of the groups (or of equally large blocks of them) give.

    >>> round(jackknife_error(np.array([1.0, 2.0, 3.0])), 4)
    1.1547
    """
    count = len(without)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


def around(
    value: float, without: Numbers, quantile: float, bounds: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """The ends of an interval around `value` at `quantile` errors, of which the values `without` each group tell.

    Within finite `bounds` errors are alike after Fisher's transformation of the range, which they are carried over to by
    its slope at the value; None where that lies at an end or beyond. For a share (0 to 1) this is enough. Else the ends
    heed how skewed the groups are (Hall's cubic transformation of the studentised value, undone) and reach over the
    jackknife estimate of bias. Below 30 groups, of which nobody knows how skewed they are, neither end is shorter for
    it.

    Sources: Fisher, Metron 1 (1921), 3-32; Hall, "On the removal of skewness by transformation", Journal of the Royal
    Statistical Society B 54 (1992), 221-228; for the bias Quenouille, Biometrika 43 (1956), 353-360.

    >>> low, high = around(0.5, np.linspace(0.49, 0.51, 40), 2.0, (-1.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.422, 0.57)
    """
    at, slope, middle, far = value, 1.0, 0.0, 1.0
    if bounds is not None:
        middle, far = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
        place = (value - middle) / far
        if not abs(place) < 1 - 1e-9:
            return None
        at, slope = math.atanh(place), 1 / (far * (1 - place**2))
    half = quantile * slope * jackknife_error(without)
    low, high = at - half, at + half
    if bounds != SHARE:
        low, high = _corrected(at, value, without, slope, quantile)
    return (low, high) if bounds is None else (middle + far * math.tanh(low), middle + far * math.tanh(high))


def _corrected(at: float, value: float, without: Numbers, slope: float, quantile: float) -> tuple[float, float]:
    count, error, away = len(without), slope * jackknife_error(without), without.mean() - without
    skewness = float((away**3).mean() / (away**2).mean() ** 1.5) / math.sqrt(count)
    skewness = max(-_MOST_SKEWED, min(_MOST_SKEWED, skewness))
    low, high = (at - error * _unskewed(side * quantile, skewness) for side in (1, -1))
    bias = slope * (count - 1) * (float(without.mean()) - value)
    if count < ENOUGH_FOR_SKEWNESS:
        low, high = min(low, at - quantile * error), max(high, at + quantile * error)
    return low - max(bias, 0.0), high - min(bias, 0.0)


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
