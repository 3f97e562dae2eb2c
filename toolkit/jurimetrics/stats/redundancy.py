"""How far judges err together, and what each of them, or one more, is worth to the mean of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.maps import weighted_mean
from jurimetrics.stats.resampling import Draws, Statistic, estimate, group_codes

Numbers = npt.NDArray[np.float64]
Groups = Sequence[Any] | npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Redundancy:
    """How far J judges err together.

    `correlation`: J x J, between the errors of every two judges; NaN where one never varies or too few records are
    shared. `mean_correlation` and `effective` are Estimates over the records that all judges scored: the mean of the
    pairs, and how many judges of the same quality but with independent errors would make a mean as good as this one.
    """

    correlation: Numbers
    mean_correlation: Estimate
    effective: Estimate


def error_correlation(errors: Numbers, weights: Numbers | None = None) -> Numbers:
    """The correlation of every two judges' errors (J x N, NaN: not scored), over the records that both scored: J x J.

    NaN where a judge's errors never vary there, or fewer than 3 records are shared. `weights`: how many records each of
    the N stands for.

    >>> error_correlation(np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [0.0, 1.0, 0.0]])).round(2).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    there = ~np.isnan(errors)
    filled = np.where(there, errors, 0.0)
    mask = there.astype(np.float64)
    mass = mask if weights is None else mask * weights
    n = mass @ mask.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled @ mass.T / n
        square = (filled**2) @ mass.T / n - mean**2
        both = (filled * mass) @ filled.T / n - mean * mean.T
        scale = np.sqrt(square * square.T)
        found = np.where((mask @ mask.T >= 3) & (scale > 1e-12), both / np.where(scale > 1e-12, scale, 1.0), np.nan)
    return np.clip(found, -1.0, 1.0)


def redundancy(
    errors: Numbers,
    groups: Groups | None = None,
    *,
    weights: Numbers | None = None,
    level: float = 0.95,
    draws: Draws | None = None,
    seed: int = 0,
) -> Redundancy:
    """How far judges err together and how many they amount to.

    `errors`: J judges x N records, score minus label (or 1 for wrong and 0 for right), NaN where a judge gave no score.
    `groups`: N labels of what shares a source. `weights`: how many records each stands for. `effective` is J divided by
    1 + (J - 1) times the mean correlation: J for independent errors, 1 for judges that all err alike, more than J where
    errors cancel. It is undefined where a judge's errors never vary, and where errors cancel out altogether. Intervals as
    `estimate` makes them.

    Raises `InputError` for fewer than two judges. Source: Kish, "Survey Sampling" (1965), whose design effect this is.

    >>> draw = np.random.default_rng(0)
    >>> shared, own = draw.normal(size=400), draw.normal(size=(3, 400))
    >>> print(redundancy(own).effective.value > 2.8, redundancy(shared + own / 10).effective.value < 1.1)
    True True
    """
    table = _judges(errors)
    whole = ~np.isnan(table).any(axis=0)
    kept, n = table[:, whole], int(whole.sum())
    codes, count = group_codes(groups, table.shape[1])
    codes = np.unique(codes[whole], return_inverse=True)[1]
    count = int(codes.max()) + 1 if n else 0
    statistic = _mean_correlation(kept, codes, count, np.ones(n) if weights is None else weights[whole])
    why = "no record was scored by all judges" if not n else "a judge's errors never vary"
    made = {"level": level, "draws": draws if draws is not None and draws.count == count else None, "seed": seed}
    mean = estimate(statistic, count, n, "mean error correlation", why=why, **made)  # type: ignore[arg-type]
    size = len(table)
    number = Statistic(lambda times: _effective(statistic.of(times), size), statistic.width)
    why = why if mean.value is None else "errors cancel out"
    found = estimate(number, count, n, "effective number of judges", why=why, bounds=(0.0, math.inf), **made)  # type: ignore[arg-type]
    return Redundancy(error_correlation(table, weights), mean, found)


class WithoutOne(NamedTuple):
    """What the mean of all judges loses without one: `value` without it, `lost` the rise of the loss (negative: the panel
    is better off without), as Estimates."""

    value: Estimate
    lost: Estimate


def leave_one_out(
    losses: Numbers, without: Numbers, groups: Groups | None = None, weights: Numbers | None = None, level: float = 0.95
) -> list[WithoutOne]:
    """What a panel loses without each judge: `losses` of the whole panel (N), `without` one judge each (J x N).

    Less is better. Records where either is NaN are left out of the pair. Intervals are paired and by group.

    >>> found = leave_one_out(np.zeros(4), np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    >>> [one.lost.value for one in found]
    [0.5, 0.0]
    """
    found = []
    for one in without:
        both = np.where(np.isnan(losses), np.nan, one)
        rise = one - losses
        found.append(
            WithoutOne(weighted_mean(both, weights, groups, level), weighted_mean(rise, weights, groups, level))
        )
    return found


def one_more(
    errors: Numbers, groups: Groups | None = None, weights: Numbers | None = None, level: float = 0.95
) -> Estimate:
    """By how much the mean squared error of the mean of J judges would fall with one more judge like them.

    The mean of k judges drawn from many alike has the squared error a + b / k, where a is the mean product of two judges'
    errors and b what their mean square exceeds it by; one more than J takes b / (J (J + 1)) away. `errors` as for
    `redundancy`; over the records that all judges scored, with an interval by group.

    >>> round(one_more(np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])).value, 4)
    0.1667
    """
    table = _judges(errors)
    size = len(table)
    square = (table**2).mean(axis=0)
    product = (table.sum(axis=0) ** 2 - (table**2).sum(axis=0)) / (size * (size - 1))
    found = weighted_mean((square - product) / (size * (size + 1)), weights, groups, level)
    return replace(found, method=f"squared error less with one more judge like these {size}; {found.method}")


def _judges(errors: Numbers) -> Numbers:
    table = np.asarray(errors, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2:
        raise InputError("errors that judges share need two judges or more")
    return table


def _mean_correlation(kept: Numbers, codes: npt.NDArray[np.intp], count: int, weights: Numbers) -> Statistic:
    """The mean correlation of all pairs of judges, from sums by group."""
    size = len(kept)
    # Sums of squares lose digits far from zero, and where zero lies changes no correlation.
    centred = kept - kept.mean(axis=1, keepdims=True) if kept.shape[1] else kept
    pairs = [(one, two) for one in range(size) for two in range(one, size)]
    columns = [np.ones(kept.shape[1]), *centred, *(centred[one] * centred[two] for one, two in pairs)]
    sums = np.column_stack([np.bincount(codes, weights=weights * one, minlength=count) for one in columns])
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    alone, apart = first == second, first != second

    def of(times: Numbers) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = drawn[:, 1 : size + 1] / drawn[:, :1]
            cross = drawn[:, size + 1 :] / drawn[:, :1] - mean[:, first] * mean[:, second]
            spread = np.sqrt(np.where(cross[:, alone] > 1e-12, cross[:, alone], np.nan))
            return np.asarray((cross[:, apart] / (spread[:, first[apart]] * spread[:, second[apart]])).mean(axis=1))

    return Statistic(of, sums.shape[1])


def _effective(mean: Numbers, size: int) -> Numbers:
    below = 1 + (size - 1) * mean
    return np.where(below > 1e-9, size / np.where(below > 1e-9, below, 1.0), np.nan)
