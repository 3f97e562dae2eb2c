"""Two variants on the same records: their mean difference, how often which one wins, and what missing scores could do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate, mean_estimate
from jurimetrics.stats.intervals import accelerated
from jurimetrics.stats.resampling import RESAMPLES, Draws, group_codes

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any] | None


def paired_difference(a: Values, b: Values, groups: Groups = None, level: float = 0.95) -> Estimate:
    """The mean of b - a over the n records, with the cluster-robust interval of `mean_estimate` (Student's t, G - 1).

    `a` and `b`: n scores each, of the same records in the same order; a pair with a NaN is left out. `groups`: n names
    of what shares a source (None: every record alone). No interval below 8 groups. Raises `InputError` for lengths that
    differ and as `mean_estimate` does.

    Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640, 4.

    >>> print(paired_difference([0.2, 0.4, 0.6, 0.5, 0.3, 0.7, 0.4, 0.5], [0.4, 0.5, 0.9, 0.5, 0.6, 0.8, 0.4, 0.9]))
    0.18 [0.05, 0.30]
    """
    found = mean_estimate(_differences(a, b), groups, level)
    return replace(found, method=found.method.replace("mean", "mean paired difference", 1))


def bca_difference(
    a: Values, b: Values, groups: Groups = None, level: float = 0.95, *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """The mean of b - a with the bias-corrected and accelerated bootstrap interval; whole groups are drawn.

    Arguments as for `paired_difference`. The acceleration comes from leaving out one group at a time. No interval below 8
    groups or where the groups do not differ (there the correction has no value). It follows skewed differences better
    than t but is too narrow for few groups: prefer `sign_flips` there.

    Source: Efron, "Better bootstrap confidence intervals", JASA 82 (1987).

    >>> a, b = [0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1], [1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1]
    >>> print(bca_difference(a, b))
    0.25 [-0.08, 0.58]
    """
    plain = paired_difference(a, b, groups, level)
    if plain.value is None or plain.low is None:
        return plain
    values, codes, count = _present(_differences(a, b), groups)
    totals, sizes = np.bincount(codes, values, count), np.bincount(codes, minlength=count)
    times = Draws.make(count, resamples, seed).times.astype(np.float64)
    drawn = (times @ totals) / (times @ sizes)
    left_out = (totals.sum() - totals) / (sizes.sum() - sizes)
    said = f"mean paired difference; BCa over {count} {'rows' if groups is None else 'groups'}, {resamples} resamples"
    ends = accelerated(plain.value, drawn, left_out, (1 - level) / 2)
    if ends is None:
        return replace(plain, low=None, high=None, method=f"{said}; no interval: all resamples lie on one side")
    low, high = np.quantile(drawn, ends)
    return Estimate(plain.value, float(low), float(high), level, plain.n, said)


def effect_size(a: Values, b: Values) -> float:
    """The mean of b - a divided by the standard deviation of the differences between records (d_z), without a unit.

    NaN where fewer than two pairs are whole or the differences are all equal: then it has no value.

    Source: Cohen, "Statistical Power Analysis" (1988), 2.3.5.

    >>> round(effect_size([0.2, 0.4, 0.6], [0.4, 0.5, 0.9]), 3)
    2.0
    """
    there = _whole(_differences(a, b))
    if len(there) < 2 or np.ptp(there) <= 1e-12 * max(1.0, float(np.abs(there).max())):
        return math.nan
    return float(there.mean() / there.std(ddof=1))


@dataclass(frozen=True, slots=True)
class Tally:
    """How often b scored higher than a (`higher`), as high (`equal`), lower (`lower`), over the pairs that are whole.

    >>> tally([0.2, 0.4, 0.6], [0.4, 0.4, 0.9])
    Tally(higher=2, equal=1, lower=0)
    """

    higher: int
    equal: int
    lower: int


def tally(a: Values, b: Values) -> Tally:
    """Count the pairs; scores that differ only in the last digits of a float are equal.

    >>> tally([0.1 + 0.2, float("nan")], [0.3, 1.0])
    Tally(higher=0, equal=1, lower=0)
    """
    there = _whole(_differences(a, b))
    slack = 1e-9
    return Tally(int((there > slack).sum()), int((np.abs(there) <= slack).sum()), int((there < -slack).sum()))


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pass and fail of two variants on the same independent records.

    `only_a` and `only_b`: records that just one of both passes. `exact_p` is the binomial test of the two, `mid_p` the
    less conservative one (prefer it), `chi2` = (b - c)^2 / (b + c) with `chi2_p`, and `corrected` with Edwards' correction.
    All p are two-sided; where no record tells the variants apart (b + c = 0) p is 1 and `chi2` NaN.
    """

    only_a: int
    only_b: int
    exact_p: float
    mid_p: float
    chi2: float
    chi2_p: float
    corrected: float


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """McNemar's test. It needs independent pairs: where records share a group, use `sign_flips` by group instead.

    Raises `InputError` for counts that are not whole numbers from 0.
    Source: McNemar, Psychometrika 12 (1947); mid-p: Fagerland, Lydersen, Laake, BMC Med. Res. Methodol. 13:91 (2013).

    >>> found = mcnemar(86, 150)
    >>> round(found.chi2, 4), f"{found.exact_p:.4g}", f"{found.mid_p:.4g}"
    (17.3559, '3.716e-05', '2.893e-05')
    >>> mcnemar(0, 0).mid_p
    1.0
    """
    from scipy.special import bdtr, chdtrc

    for count in (only_a, only_b):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise InputError(f"McNemar counts records, which needs whole numbers from 0, not {count!r}")
    b, c = int(only_a), int(only_b)
    if b + c == 0:
        return McNemar(0, 0, 1.0, 1.0, math.nan, 1.0, math.nan)
    at_most = float(bdtr(min(b, c), b + c, 0.5))
    just = at_most - (float(bdtr(min(b, c) - 1, b + c, 0.5)) if min(b, c) else 0.0)
    chi2 = (b - c) ** 2 / (b + c)
    corrected = (abs(b - c) - 1) ** 2 / (b + c)
    middle = 1.0 if b == c else 2 * at_most - just
    return McNemar(b, c, min(1.0, 2 * at_most), min(1.0, middle), chi2, float(chdtrc(1, chi2)), corrected)


def worst_case(a: Values, b: Values, bounds: tuple[float, float]) -> tuple[float, float]:
    """The least and the greatest mean of b - a if every score that is missing on one side lay anywhere in `bounds`.

    Pairs that lack both scores say nothing and are left out. NaN for both ends where no record has a score. Without
    missing scores both ends are the mean difference. These are bounds, not an interval: they say nothing of chance.

    Raises `InputError` for a score outside `bounds`. Source: Horowitz and Manski, JASA 95 (2000).

    >>> low, high = worst_case([0.5, 0.5, 0.5], [0.8, 0.8, float("nan")], (0, 1))
    >>> round(low, 3), round(high, 3)
    (0.033, 0.367)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _differences(first, second)
    low, high = bounds
    for score in np.concatenate([_whole(first), _whole(second)]):
        if not low - 1e-9 <= score <= high + 1e-9:
            raise InputError(f"a score of {score:g} lies outside {low:g} to {high:g}")
    some = ~(np.isnan(first) & np.isnan(second))
    if not some.any():
        return math.nan, math.nan
    first, second = first[some], second[some]
    least = np.where(np.isnan(second), low, second) - np.where(np.isnan(first), high, first)
    most = np.where(np.isnan(second), high, second) - np.where(np.isnan(first), low, first)
    return float(least.mean()), float(most.mean())


def outcome(low: float, high: float, margin: float) -> Literal["pass", "fail", "inconclusive"]:
    """What an interval of (new - old), higher being better, says of "not worse by more than `margin`".

    Pass only where the lower bound lies above -margin, fail where the upper bound lies below it; else, and where there
    is no interval (NaN), inconclusive. Raises `InputError` for a margin below 0.

    >>> outcome(-0.01, 0.05, 0.02), outcome(-0.09, -0.03, 0.02), outcome(-0.05, 0.05, 0.02)
    ('pass', 'fail', 'inconclusive')
    """
    if not margin >= 0:
        raise InputError(f"a margin is a number from 0, not {margin!r}")
    if low > -margin:
        return "pass"
    return "fail" if high < -margin else "inconclusive"


def design_effect(values: Values, groups: Groups = None) -> float:
    """How many times the variance of the mean that independent values would have, because groups go together.

    The ratio of the cluster-robust variance to that of n values that stand alone; 1 without groups. At least 1 is given:
    below lies what chance alone does to the estimate. NaN below 8 groups or where the values do not vary. It estimates
    1 + (m - 1) rho for groups of m records with the correlation rho.

    >>> design_effect([1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0] * 2, list("aabbccddeeffgghh")) > 1
    True
    """
    there, codes, count = _present(np.asarray(values, dtype=np.float64), groups)
    if count < FEWEST_GROUPS or np.ptp(there) <= 1e-12 * max(1.0, float(np.abs(there).max())):
        return math.nan
    sums = np.bincount(codes, there - there.mean(), count)
    clustered = float((sums**2).sum()) * count / (count - 1) / len(there)
    return max(1.0, clustered / float(there.var(ddof=1)))


def _differences(a: Values, b: Values) -> Numbers:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"pairs need two lists of the same length, found {first.shape} and {second.shape}")
    found: Numbers = second - first
    return found


def _whole(values: Numbers) -> Numbers:
    there: Numbers = values[~np.isnan(values)]
    return there


def _present(values: Numbers, groups: Groups) -> tuple[Numbers, npt.NDArray[np.intp], int]:
    """The values that are there with their groups as numbers from 0."""
    there = ~np.isnan(values)
    names = None if groups is None else [name for name, here in zip(groups, there, strict=True) if here]
    codes, count = group_codes(names, int(there.sum()))
    return values[there], codes, count
