"""From which score on a record passes: chosen on labelled records, and worth what it is worth on other ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.folds import fold_codes, group_codes

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any]
Objective = Literal["youden", "balanced_accuracy", "cost", "kappa"]
OBJECTIVES: tuple[Objective, ...] = ("youden", "balanced_accuracy", "cost", "kappa")
Tie = Literal["first", "middle"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold chosen on labelled records: pass means `score >= value` (`<=` where lower is better).

    `gain` is the objective reached on the records it was chosen on, which flatters it ("cost": the mean cost, less is
    better). `first` and `last` are the ends of the run of thresholds that do equally well. `n` labelled records.
    """

    value: float
    gain: float
    objective: Objective
    sensitivity: float
    specificity: float
    first: float
    last: float
    tie: Tie
    n: int


def choose_threshold(
    scores: Values,
    passed: Values,
    *,
    objective: Objective = "youden",
    tie: Tie = "first",
    costs: tuple[float, float] = (1.0, 1.0),
    higher_is_better: bool = True,
    weights: Values | None = None,
) -> Threshold:
    """The threshold, among the observed scores, at which the judge's verdicts agree best with people's.

    `scores`: n of the judge. `passed`: what people said, 1 pass, 0 fail. `objective`: "youden" (sensitivity +
    specificity - 1), "balanced_accuracy", "cost" (mean of `costs`, of a pass that people fail and of a fail that they
    pass), "kappa" (Cohen's). `tie`: of several equally good thresholds the "first" from the lenient side, or the
    "middle" of the gap that this first run leaves between scores, which moves less from sample to sample. `weights`: how
    many records each stands for.

    Raises `InputError` for lengths that differ, values that are no finite numbers, labels other than 1 and 0 or of one
    kind only. Source: Youden, Cancer 3 (1950).

    >>> choose_threshold([1, 2, 3, 4, 5], [0, 0, 1, 1, 1]).value
    3.0
    >>> choose_threshold([1, 2, 3, 4, 5], [0, 0, 1, 1, 1], tie="middle").value
    2.5
    """
    x, y, w = _checked(scores, passed, weights, objective)
    sign = 1.0 if higher_is_better else -1.0
    cuts, place = np.unique(sign * x, return_inverse=True)
    # At each cut what reaches it passes: sums from the top down.
    hits, false = (np.cumsum(np.bincount(place, weights=w * (y == kind))[::-1])[::-1] for kind in (1.0, 0.0))
    tables = np.stack([hits, false, hits[0] - hits, false[0] - false])
    gains = _gain(tables, objective, costs)
    good = gains >= np.nanmax(gains) - 1e-12
    start = int(np.argmax(good))
    stop = start
    while stop + 1 < len(cuts) and good[stop + 1]:
        stop += 1
    below = cuts[start - 1] if start else cuts[start]
    value = cuts[start] if tie == "first" else (below + cuts[stop]) / 2
    gain = float(gains[start])
    return Threshold(
        float(sign * value),
        -gain if objective == "cost" else gain,
        objective,
        float(hits[start] / hits[0]),
        float(1 - false[start] / false[0]),
        float(sign * cuts[start]),
        float(sign * cuts[stop]),
        tie,
        len(x),
    )


def held_out_gain(
    scores: Values,
    passed: Values,
    groups: Groups | None = None,
    *,
    objective: Objective = "youden",
    tie: Tie = "first",
    costs: tuple[float, float] = (1.0, 1.0),
    higher_is_better: bool = True,
    weights: Values | None = None,
    splits: int = 20,
    level: float = 0.95,
) -> Estimate:
    """What choosing a threshold this way is worth on records it was not chosen on: the objective over verdicts that each
    come from a threshold chosen on other groups. Arguments and errors as `choose_threshold`.

    The groups are halved `splits` times; each half is judged by the threshold of the other, and a record's verdict is
    the share of times it passes. The interval leaves out one group at a time (jackknife) and takes t; it does not see
    all that choosing adds, and covers about .91 at .95. None below 8 groups. Halves whose labels are all of one kind
    choose nothing.

    >>> round(held_out_gain([1, 2, 3, 4, 5, 6, 7, 8] * 5, [0, 0, 0, 0, 1, 1, 1, 1] * 5).value, 3)
    0.975
    """
    x, y, w = _checked(scores, passed, weights, objective)
    names = np.arange(len(x)) if groups is None else groups
    code = group_codes(names)[1]
    passing, times = np.zeros(len(x)), np.zeros(len(x))
    for seed in range(splits):
        half = fold_codes(names, 2, seed)
        for one in (0, 1):
            others, mine = half != one, half == one
            if not others.any() or np.ptp(y[others]) == 0:
                continue
            cut = choose_threshold(
                x[others], y[others], objective=objective, tie=tie, costs=costs, higher_is_better=higher_is_better,
                weights=w[others],
            ).value  # fmt: skip
            passing[mine] += x[mine] >= cut if higher_is_better else x[mine] <= cut
            times[mine] += 1
    there = times > 0
    verdict, y, w = passing[there] / times[there], y[there], w[there]
    said = f"{objective} held out by {'group' if groups is not None else 'row'}, {splits} halvings"
    if not there.any() or np.ptp(y) == 0:
        return Estimate(None, None, None, level, int(there.sum()), f"{said}: no value, too few labels of one kind")
    by_group = np.unique(code[there], return_inverse=True)[1]
    cells = (verdict * y, verdict * (1 - y), (1 - verdict) * y, (1 - verdict) * (1 - y))
    each = np.stack([np.bincount(by_group, weights=w * cell) for cell in cells])
    return _jackknifed(each.astype(np.float64), objective, costs, said, level, int(there.sum()))


def clopper_pearson_upper(errors: int, n: int, delta: float) -> float:
    """The largest error rate that `errors` of `n` still allow with probability `delta`: an upper bound at 1 - delta.

    For records that stand alone, one to a group. Source: Clopper and Pearson, Biometrika 26 (1934).

    >>> round(clopper_pearson_upper(5, 100, 0.1), 7)
    0.0907715
    """
    if not (0 <= errors <= n and n >= 1 and 0 < delta < 1):
        raise InputError(f"needs 0 <= errors <= n, n >= 1 and delta in 0 to 1, not {errors}, {n}, {delta:g}")
    if errors == n:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(1 - delta, errors + 1, n - errors))


def _jackknifed(
    each: Numbers, objective: Objective, costs: tuple[float, float], said: str, level: float, n: int
) -> Estimate:
    """The objective of the summed tables (4 x groups) with an interval from leaving out each group."""
    sign = -1.0 if objective == "cost" else 1.0
    whole = each.sum(axis=1, keepdims=True)
    value, count = sign * float(_gain(whole, objective, costs)[0]), each.shape[1]
    if count < FEWEST_GROUPS:
        method = f"{said}; no interval: {count} groups, {FEWEST_GROUPS} are needed"
        return Estimate(value, None, None, level, n, method)
    without = sign * _gain(whole - each, objective, costs)
    without = without[~np.isnan(without)]
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    if len(without) < count or error <= 1e-12:
        why = "the groups do not differ" if len(without) == count else "one group holds all labels of a kind"
        return Estimate(value, None, None, level, n, f"{said}; no interval: {why}")
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, 0.5 + level / 2)) * error
    low, high = value - half, value + half
    if objective != "cost":
        low, high = max(0.0 if objective == "balanced_accuracy" else -1.0, low), min(1.0, high)
    return Estimate(value, low, high, level, n, f"{said}; jackknife t over {count} groups")


def _gain(tables: Numbers, objective: Objective, costs: tuple[float, float]) -> Numbers:
    """The objective, more is better, of tables 4 x k: passes right and wrong, fails wrong and right; NaN: undefined."""
    hit, false, missed, right = tables
    passing, failing, total = hit + missed, false + right, tables.sum(axis=0)
    if objective == "cost":
        return np.asarray(-(costs[0] * false + costs[1] * missed) / total)
    if objective == "kappa":
        agree, pass_rate, people = (hit + right) / total, (hit + false) / total, passing / total
        chance = pass_rate * people + (1 - pass_rate) * (1 - people)
        return np.where(chance < 1 - 1e-12, (agree - chance) / np.where(chance < 1 - 1e-12, 1 - chance, 1.0), np.nan)
    both = (passing > 1e-12) & (failing > 1e-12)
    youden = np.where(both, hit / np.where(both, passing, 1.0) + right / np.where(both, failing, 1.0) - 1, np.nan)
    return youden if objective == "youden" else (youden + 1) / 2


def _checked(
    scores: Values, passed: Values, weights: Values | None, objective: str
) -> tuple[Numbers, Numbers, Numbers]:
    if objective not in OBJECTIVES:
        raise InputError(f"an objective is one of {', '.join(OBJECTIVES)}, not {objective!r}")
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(passed, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(x) == len(y) == len(w):
        raise InputError(f"{len(x)} scores, {len(y)} labels, {len(w)} weights: must be equally many")
    if not np.isfinite(x).all() or not bool((w > 0).all()):
        raise InputError("a score is no finite number, or a weight not above 0")
    if not np.isin(y, (0.0, 1.0)).all() or len(np.unique(y)) < 2:
        raise InputError("a threshold needs labels 1 (pass) and 0 (fail), and some of both")
    return x, y, w
