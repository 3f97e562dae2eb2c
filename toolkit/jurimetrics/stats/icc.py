"""Intraclass correlations: how much of the spread of scores is spread between what is scored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.kappa import Formula
from jurimetrics.stats.products import product
from jurimetrics.stats.ratings import read_ratings
from jurimetrics.stats.resampling import Draws, cells_of, estimate, group_codes, undefined

Numbers = npt.NDArray[np.float64]
Form = Literal["1,1", "2,1", "3,1", "1,k", "2,k", "3,k"]


class Anova(NamedTuple):
    """Mean squares of a complete table of n targets x k raters: between targets, between raters, of the rest, and
    within targets (raters and rest together)."""

    targets: float
    raters: float
    rest: float
    within: float


def anova(ratings: Any) -> Anova:
    """The mean squares of targets (rows) x raters (columns), two of each or more, none missing; else `InputError`.

    Source: Shrout and Fleiss, Psychological Bulletin 86 (1979).

    >>> anova([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]).targets.__round__(4)
    11.2417
    """
    table = _table(ratings)
    found = _squares(table.T, np.ones((1, len(table))))
    return Anova(*(float(part[0]) for part in found))


def icc(
    ratings: Any,
    form: Form = "2,1",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
) -> Estimate:
    """An intraclass correlation of n targets (rows) x k raters or repeats (columns), in the names of Shrout and Fleiss.

    `form`: "1,1" one-way (columns are exchangeable, such as repeats of one judge); "2,1" two-way, absolute agreement of
    single ratings; "3,1" consistency, raters' levels set aside; "1,k", "2,k", "3,k" the same for the mean of all k
    columns. At most 1; below 0 where targets differ less than chance would have it. `groups`: a label for each target of
    what shares a source; the interval is then that of `estimate` (for the mean of k columns by `of_the_mean`), without
    groups the one from F (McGraw and Wong). F is for scores that are about normal: of 100 targets on 5 steps it holds
    a nominal .95 .95 of the time, of pass and fail .91, and .75 where one in ten fails; `estimate` holds .94 there.

    The value is None, and `method` says why, for fewer than two targets or where nothing varies. Raises `InputError` for
    one column, a missing rating (a mixed model is needed there) or another form.

    Sources: Shrout and Fleiss, Psychological Bulletin 86 (1979); McGraw and Wong, Psychological Methods 1 (1996).

    >>> table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> print(icc(table, "2,1"), icc(table, "2,k"))
    0.29 [0.02, 0.76] 0.62 [0.07, 0.93]
    """
    if form not in ("1,1", "2,1", "3,1", "1,k", "2,k", "3,k"):
        raise InputError(f"forms are 1,1 2,1 3,1 1,k 2,k 3,k, not {form!r}")
    table = _table(ratings, fewest=0)
    n, said = len(table), f"ICC({form})"
    if n < 2:
        return undefined(f"{said}: {n} targets, 2 are needed", n, level)
    if np.ptp(table) == 0:
        return undefined(f"{said}: nothing varies, all ratings are {table[0, 0]:g}", n, level)
    if groups is not None:
        codes, count = group_codes(groups, n)
        single: Form = "1,1" if form[0] == "1" else "2,1" if form[0] == "2" else "3,1"
        statistic = cells_of(table.T, codes, count).statistic(icc_formula(single))
        least = -1 / (table.shape[1] - 1)
        found = estimate(
            statistic, count, n, said, why="nothing varies", level=level, draws=draws, bounds=(least, 1.0)
        )  # fmt: skip
        return found if form == single else of_the_mean(found, table.shape[1])
    value = float(icc_formula(form)(table.T, np.ones((1, n)))[0])
    if math.isnan(value):
        return undefined(f"{said}: neither targets nor raters differ beyond rounding", n, level)
    limits = _limits(anova(table), n, table.shape[1], form, level)
    if limits is None:
        return Estimate(
            value, None, None, level, n, f"{said}; no interval: columns or targets do not differ enough for F"
        )
    return Estimate(value, *limits, level, n, f"{said}; F over {n} rows")


def of_the_mean(single: Estimate, k: int) -> Estimate:
    """From the ICC of single ratings, such as ICC(2,1), that of the mean of `k` of them, ICC(2,k), by Spearman and Brown.

    The one is a rising function of the other, so that both ends of the interval are taken over. The value is None where
    single ratings go against each other so far that their mean says nothing.

    Source: Spearman, British Journal of Psychology 3 (1910); Brown, ibid.

    >>> print(of_the_mean(Estimate(0.5, 0.2, 0.8, 0.95, 40, "ICC(2,1); t over 40 groups"), 2))
    0.67 [0.33, 0.89]
    """
    least = -1 / (k - 1)
    if single.value is None:
        return single
    if single.value <= least + 1e-12:
        why = "undefined: the targets' means do not differ beyond rounding"
        return replace(single, value=None, low=None, high=None, method=why)
    value = _stepped_up(single.value, k)
    if single.low is None or single.high is None or single.low <= least:
        no_end = "" if single.low is None else "; no interval: it has no lower end"
        return replace(single, value=value, low=None, high=None, method=single.method + no_end)
    return replace(single, value=value, low=_stepped_up(single.low, k), high=_stepped_up(single.high, k))


def icc_formula(form: Form) -> Formula:
    """ICC over k rows of ratings (raters) x C patterns of targets, none missing; NaN where nothing varies."""

    def formula(values: Numbers, weights: Numbers) -> Numbers:
        k, n = len(values), weights.sum(axis=1)
        # In which unit the ratings are changes nothing; of this one what is left by rounding can be told.
        unit = float(np.abs(values - values.mean()).max(initial=0.0)) or 1.0
        targets, raters, rest, within = _squares(values / unit, weights)
        if form[0] == "1":
            below = targets + (k - 1) * within if form[2] == "1" else targets
            return _share(targets - within, below)
        between = raters - rest if form[0] == "2" else np.zeros_like(raters)
        with np.errstate(invalid="ignore", divide="ignore"):
            below = targets + (k - 1) * rest + k * between / n if form[2] == "1" else targets + between / n
        return _share(targets - rest, below)

    return formula


def _share(part: Numbers, whole: Numbers) -> Numbers:
    # All ratings alike: 0/0 up to rounding.
    there = np.abs(whole) > 1e-12
    return np.asarray(np.where(there, part / np.where(there, whole, 1.0), np.nan))


def _squares(values: Numbers, weights: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The four mean squares under each row of weights (how often a pattern of targets counts)."""
    k = len(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        n = weights.sum(axis=1)
        centred = values - values.mean()
        of_target = centred.mean(axis=0)
        of_rater = product(weights, centred.T) / n[:, None]
        middle = of_rater.mean(axis=1)
        targets = k * (weights * (of_target[None, :] - middle[:, None]) ** 2).sum(axis=1)
        raters = n * ((of_rater - middle[:, None]) ** 2).sum(axis=1)
        within = weights @ ((centred - of_target) ** 2).sum(axis=0)
        # Rounding may leave a trace below zero.
        rest = np.maximum(within - raters, 0.0)
        return targets / (n - 1), raters / (k - 1), rest / ((n - 1) * (k - 1)), within / (n * (k - 1))


def _limits(found: Anova, n: int, k: int, form: Form, level: float) -> tuple[float, float] | None:
    """McGraw and Wong's interval from F; None where raters leave no error to compare with, or it has no lower end."""
    from scipy.stats import f

    tail = 0.5 + level / 2
    error = found.within if form[0] == "1" else found.rest
    if error <= 1e-12 * max(found.targets, found.raters, found.within):
        return None
    if form[0] == "2":
        single = _limits_two_way(found, n, k, tail)
    else:
        freedom = n * (k - 1) if form[0] == "1" else (n - 1) * (k - 1)
        ratio = found.targets / error
        low = ratio / float(f.ppf(tail, n - 1, freedom))
        high = ratio * float(f.ppf(tail, freedom, n - 1))
        single = ((low - 1) / (low + k - 1), (high - 1) / (high + k - 1))
    if not single[0] <= single[1]:
        return None
    if form[2] == "1":
        return single
    # Below this the mean of k would agree less than minus infinity: so few targets have no lower end.
    return None if single[0] <= -1 / (k - 1) else (_stepped_up(single[0], k), _stepped_up(single[1], k))


def _limits_two_way(found: Anova, n: int, k: int, tail: float) -> tuple[float, float]:
    from scipy.stats import f

    value = float(_two_way(found, n, k))
    a, b = k * value / (n * (1 - value)), 1 + k * value * (n - 1) / (n * (1 - value))
    top = (a * found.raters + b * found.rest) ** 2
    freedom = top / ((a * found.raters) ** 2 / (k - 1) + (b * found.rest) ** 2 / ((n - 1) * (k - 1)))
    upper, lower = float(f.ppf(tail, n - 1, freedom)), float(f.ppf(tail, freedom, n - 1))
    spare = k * found.raters + (k * n - k - n) * found.rest
    low = n * (found.targets - upper * found.rest) / (upper * spare + n * found.targets)
    high = n * (lower * found.targets - found.rest) / (spare + n * lower * found.targets)
    return low, high


def _two_way(found: Anova, n: int, k: int) -> float:
    return (found.targets - found.rest) / (found.targets + (k - 1) * found.rest + k * (found.raters - found.rest) / n)


def _stepped_up(single: float, k: int) -> float:
    """Spearman and Brown: what a correlation of single ratings is for means of k."""
    return k * single / (1 + (k - 1) * single)


def _table(ratings: Any, fewest: int = 2) -> Numbers:
    table, names = read_ratings(ratings)
    if names or np.isnan(table).any():
        raise InputError("ICC needs a complete table of numbers: leave out targets that lack a rating")
    if len(table) and table.shape[1] < 2:
        raise InputError("ICC needs two raters or repeats")
    if len(table) < fewest:
        raise InputError(f"{len(table)} targets, {fewest} are needed")
    return table
