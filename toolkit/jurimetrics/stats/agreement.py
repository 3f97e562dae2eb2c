"""Any number of raters on one scale: Krippendorff's alpha, Gwet's AC1 and AC2, Fleiss' kappa."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.kappa import Formula
from jurimetrics.stats.products import product
from jurimetrics.stats.ratings import off_scale, read_ratings
from jurimetrics.stats.resampling import Draws, Statistic, cells_of, estimate, group_codes, noted, undefined

Numbers = npt.NDArray[np.float64]
Distance = Literal["nominal", "ordinal", "interval", "ratio"]
Closeness = Literal["plain", "linear", "quadratic", "ordinal"]
_SKEWED = 0.9


def krippendorff_alpha(
    ratings: Any,
    distance: Distance = "nominal",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
    seed: int = 0,
) -> Estimate:
    """Krippendorff's alpha: 1 where raters agree, 0 where they agree as by chance, below where they contradict.

    `ratings`: raters (rows) x units (columns); None, NaN, NA and blank are "not rated"; units with one rating drop out.
    `distance`: of two ratings, "nominal" (also for text), "ordinal" (by ranks of what was given), "interval", "ratio"
    (numbers from 0). `groups`: a label for each unit of what shares a source. `n` counts the units with two ratings or
    more; the interval resamples whole units or groups of them (`estimate`), never pairs as if they were independent.

    The value is None where fewer than two different ratings were given: there is no disagreement to expect. Raises
    `InputError` for raters with other units, groups of another length, text where numbers are needed.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011); "Content Analysis", 4th edition (2018).

    >>> krippendorff_alpha([[1, 1, 2], [1, 1, None], ["", 1, 2]]).value
    1.0
    >>> print(krippendorff_alpha([[3, 3], [3, 3]]))
    no value (undefined: alpha (nominal): one class only: all 4 ratings are the same)
    """
    values, names = read_ratings(ratings)
    if names and distance != "nominal":
        raise InputError(f"{distance} alpha needs numbers, found {names[-1]!r}")
    if distance == "ratio" and values.size and np.nanmin(values, initial=0.0) < 0:
        raise InputError("ratio alpha needs numbers from 0")
    rated = np.asarray((~np.isnan(values)).sum(axis=0) >= 2)
    kept = values[:, rated]
    codes, count = group_codes(_of(groups, rated), kept.shape[1])
    said = f"alpha ({distance})"
    given = kept[~np.isnan(kept)]
    if len(np.unique(given)) < 2:
        why = f"one class only: all {len(given)} ratings are the same" if len(given) else "no unit has two ratings"
        return undefined(f"{said}: {why}", kept.shape[1], level)
    statistic = cells_of(kept, codes, count).statistic(alpha_formula(distance))
    found = estimate(statistic, count, kept.shape[1], said, why="one class only", level=level, draws=draws, seed=seed)
    return noted(found, _skew(given))


def alpha_formula(distance: Distance) -> Formula:
    """Krippendorff's alpha over k rows of ratings (NaN: not rated); NaN where only one value is given."""
    if distance not in ("nominal", "ordinal", "interval", "ratio"):
        raise InputError(f"distances are nominal, ordinal, interval or ratio, not {distance!r}")

    def alpha(values: Numbers, weights: Numbers) -> Numbers:
        there = ~np.isnan(values)
        rated = there.sum(axis=0)
        steps = np.unique(values[there])
        place = np.searchsorted(steps, np.where(there, values, steps[0] if len(steps) else 0.0))
        counts = np.zeros((len(weights), len(steps)))
        for rater in range(len(values)):
            use = np.flatnonzero(there[rater] & (rated >= 2))
            counts += product(weights[:, use], (place[rater, use][:, None] == np.arange(len(steps))).astype(np.float64))
        total = counts.sum(axis=1)
        spread = _Spread(distance, steps, counts)
        seen = np.zeros(len(weights))
        for one in range(len(values)):
            for other in range(one + 1, len(values)):
                use = np.flatnonzero(there[one] & there[other])
                share = 2 * weights[:, use] / (rated[use] - 1)
                seen += (share * spread.between(place[one, use], place[other, use])).sum(axis=1)
        expected = spread.everywhere()
        defined = ((counts > 0).sum(axis=1) >= 2) & (expected > 0)
        return np.asarray(np.where(defined, 1 - (total - 1) * seen / np.where(defined, expected, 1.0), np.nan))

    return alpha


class _Spread:
    """Squared distances between ratings, given how often each of the `steps` was given (B x q `counts`)."""

    def __init__(self, distance: Distance, steps: Numbers, counts: Numbers) -> None:
        self.nominal, self.counts = distance == "nominal", counts
        self.ratios: Numbers | None = None
        if distance == "ordinal":
            # The sum of counts from one step to another, half of both ends, is the distance of their mid-ranks.
            self.places = np.cumsum(counts, axis=1) - counts / 2
        else:
            self.places = (steps - (steps.mean() if len(steps) else 0.0))[None, :]
        if distance == "ratio":
            plus = steps[:, None] + steps[None, :]
            self.ratios = ((steps[:, None] - steps[None, :]) / np.where(plus > 0, plus, 1.0)) ** 2

    def between(self, one: npt.NDArray[np.intp], other: npt.NDArray[np.intp]) -> Numbers:
        if self.nominal:
            return np.asarray((one != other).astype(np.float64)[None, :])
        if self.ratios is not None:
            return np.asarray(self.ratios[one, other][None, :])
        return np.asarray((self.places[:, one] - self.places[:, other]) ** 2)

    def everywhere(self) -> Numbers:
        """The sum over all ordered pairs of ratings, of whatever units."""
        counts, total = self.counts, self.counts.sum(axis=1)
        if self.nominal:
            found = total**2 - (counts**2).sum(axis=1)
        elif self.ratios is not None:
            found = ((counts @ self.ratios) * counts).sum(axis=1)
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                middle = (counts * self.places).sum(axis=1) / total
            found = 2 * total * (counts * (self.places - middle[:, None]) ** 2).sum(axis=1)
        return np.asarray(found, dtype=np.float64)


def gwet_ac(
    ratings: Any,
    scale: Sequence[float],
    closeness: Closeness = "plain",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
) -> Estimate:
    """Gwet's AC1 ("plain") or AC2: agreement beyond chance that does not collapse where one class is frequent.

    `ratings`: raters (rows) x units (columns), missing ones as for `krippendorff_alpha`. `scale`: every step that could
    be given, q of them. `closeness`: the credit for a near miss, "linear", "quadratic" or "ordinal" (1 minus the pairs of
    steps between two over all pairs). `groups`: a label for each unit; the interval is then that of `estimate`, without
    groups Gwet's own, t with n - 1 degrees of freedom, cut at 1, which holds a nominal .95 .93 to .94 of the time with 100
    units (with each a group of its own `estimate` holds .94 to .96). `n` counts the units with a rating.

    On skewed scales it lies far above alpha and kappa: never compare one with the other. The value is None where no unit
    has two ratings. Raises `InputError` for a rating that is no step of the scale, or a scale of fewer than two.

    Source: Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008); "Handbook of Inter-Rater
    Reliability" (2014).

    >>> print(gwet_ac([[1, 1, 1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1, 2, 1]], (1, 2)))
    0.68 [0.07, 1.00]
    """
    if len(scale) < 2 or list(scale) != sorted(set(scale)):
        raise InputError("a scale needs two steps or more, in rising order")
    values, names = read_ratings(ratings)
    strange = names[-1] if names else off_scale(values, scale)
    if strange is not None:
        raise InputError(f"{strange!r} is no step of the scale {', '.join(f'{step:g}' for step in scale)}")
    rated = np.asarray((~np.isnan(values)).any(axis=0))
    kept = values[:, rated]
    said = "AC1" if closeness == "plain" else f"AC2 ({closeness})"
    if not ((~np.isnan(kept)).sum(axis=0) >= 2).any():
        return undefined(f"{said}: no unit has two ratings", kept.shape[1], level)
    given = kept[~np.isnan(kept)]
    note = f"one class only: every rating is {given[0]:g}" if len(np.unique(given)) == 1 else _skew(given)
    if groups is None:
        return noted(_gwet_t(kept, scale, closeness, level, said), note)
    codes, count = group_codes(_of(groups, rated), kept.shape[1])
    statistic = cells_of(kept, codes, count).statistic(gwet_formula(scale, closeness))
    why = "no unit has two ratings"
    return noted(estimate(statistic, count, kept.shape[1], said, why=why, level=level, draws=draws), note)


def gwet_formula(scale: Sequence[float], closeness: Closeness = "plain") -> Formula:
    """AC1 or AC2 over k rows of ratings (NaN: not rated); NaN where no unit has two."""

    def gwet(values: Numbers, weights: Numbers) -> Numbers:
        agreed, shares, paired, credit = _gwet_units(values, scale, closeness)
        with np.errstate(invalid="ignore", divide="ignore"):
            seen = weights[:, paired] @ agreed[paired] / weights[:, paired].sum(axis=1)
            frequent = product(weights, shares) / weights.sum(axis=1)[:, None]
            chance = _gwet_chance(frequent, credit)
            found: Numbers = (seen - chance) / (1 - chance)
        return found

    return gwet


def fleiss_kappa(
    counts: Any,
    chance: Literal["given", "uniform"] = "given",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
) -> Estimate:
    """Fleiss' kappa for items that were all rated by the same number m of raters.

    `counts`: items x categories, how many raters chose each. `chance`: agreement by chance from how often categories were
    "given" (Fleiss) or "uniform" over the categories (Randolph). It generalises Scott's pi, not Cohen's kappa.

    The value is None where all ratings fall into one category. Raises `InputError` where items differ in the number of
    ratings (use alpha), or it is below 2.

    Sources: Fleiss, Psychological Bulletin 76 (1971); Randolph (2005).

    >>> round(fleiss_kappa([[2, 0], [0, 2], [1, 1], [2, 0]]).value, 4)
    0.4667
    """
    table = np.asarray(counts, dtype=np.float64)
    raters = np.unique(table.sum(axis=1)) if table.ndim == 2 else np.empty(0)
    if len(raters) != 1 or not raters[0] >= 2:
        raise InputError("Fleiss' kappa needs the same number of raters, two or more, for all items; else use alpha")
    size, m = table.shape[1], float(raters[0])
    agreed = ((table**2).sum(axis=1) - m) / (m * (m - 1))
    codes, count = group_codes(groups, len(table))
    sums = np.zeros((count, size + 2))
    np.add.at(sums, codes, np.column_stack([np.ones(len(table)), agreed, table / m]))

    def kappa(times: Numbers) -> Numbers:
        drawn = times @ sums
        share = drawn[:, 1:] / drawn[:, :1]
        by_chance = (share[:, 1:] ** 2).sum(axis=1) if chance == "given" else np.full(len(drawn), 1 / size)
        there = 1 - by_chance > 1e-12
        return np.where(there, (share[:, 0] - by_chance) / np.where(there, 1 - by_chance, 1.0), np.nan)

    said = "Fleiss' kappa" if chance == "given" else "Randolph's kappa"
    why = f"one class only: all {table.sum():g} ratings fall into one category"
    return estimate(Statistic(kappa, size), count, len(table), said, why=why, level=level, draws=draws)


def _gwet_units(
    values: Numbers, scale: Sequence[float], closeness: Closeness
) -> tuple[Numbers, Numbers, npt.NDArray[np.intp], Numbers]:
    """For each unit: its agreement, the share of each step; then the units with two ratings, and the credits."""
    steps = np.asarray(scale, dtype=np.float64)
    counts = (values[:, :, None] == steps).sum(axis=0).astype(np.float64)
    rated = counts.sum(axis=1)
    credit = closeness_credit(steps, closeness)
    pairs = np.where(rated >= 2, rated * (rated - 1), 1.0)
    agreed = (counts * (counts @ credit - 1)).sum(axis=1) / pairs
    return agreed, counts / np.maximum(rated, 1.0)[:, None], np.flatnonzero(rated >= 2), credit


def _gwet_chance(frequent: Numbers, credit: Numbers) -> Numbers:
    size = len(credit)
    found: Numbers = credit.sum() / (size * (size - 1)) * (frequent * (1 - frequent)).sum(axis=-1)
    return found


def closeness_credit(steps: Numbers, closeness: Closeness) -> Numbers:
    """The credit (0 to 1) that two ratings on the same or different steps earn, q x q.

    >>> closeness_credit(np.array([1.0, 2.0, 3.0]), "ordinal").round(2).tolist()
    [[1.0, 0.67, 0.0], [0.67, 1.0, 0.67], [0.0, 0.67, 1.0]]
    """
    if closeness == "plain":
        return np.eye(len(steps))
    apart = np.abs(steps[:, None] - steps[None, :])
    if closeness == "ordinal":
        between = np.abs(np.arange(len(steps))[:, None] - np.arange(len(steps))[None, :]) + 1.0
        apart = between * (between - 1) / 2
    elif closeness == "quadratic":
        apart = apart**2
    elif closeness != "linear":
        raise InputError(f"closeness is plain, linear, quadratic or ordinal, not {closeness!r}")
    found: Numbers = 1 - apart / apart.max()
    return found


def _gwet_t(values: Numbers, scale: Sequence[float], closeness: Closeness, level: float, said: str) -> Estimate:
    from scipy.special import stdtrit

    agreed, shares, paired, credit = _gwet_units(values, scale, closeness)
    n, size = values.shape[1], len(credit)
    frequent = shares.mean(axis=0)
    seen, chance = float(agreed[paired].mean()), float(_gwet_chance(frequent, credit))
    value = (seen - chance) / (1 - chance)
    if n < FEWEST_GROUPS:
        return Estimate(value, None, None, level, n, f"{said}; no interval: {n} rows, {FEWEST_GROUPS} are needed")
    # Linearised: what each unit contributes to agreement, less twice what it does to chance.
    mine = np.zeros(n)
    mine[paired] = n / len(paired) * (agreed[paired] - chance) / (1 - chance)
    of_chance = credit.sum() / (size * (size - 1)) * (shares @ (1 - frequent))
    mine -= 2 * (1 - value) * (of_chance - chance) / (1 - chance)
    error = math.sqrt(float(((mine - value) ** 2).sum()) / (n * (n - 1)))
    if error <= 1e-12:
        return Estimate(value, None, None, level, n, f"{said}; no interval: the rows do not differ")
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * error
    return Estimate(value, value - half, min(1.0, value + half), level, n, f"{said}; Gwet's t over {n} rows")


def _of(groups: Sequence[Any] | None, kept: npt.NDArray[np.bool_]) -> list[Any] | None:
    if groups is None:
        return None
    if len(groups) != len(kept):
        raise InputError(f"{len(kept)} units but {len(groups)} groups")
    return [group for group, one in zip(groups, kept, strict=True) if one]


def _skew(given: Numbers) -> str:
    values, counts = np.unique(given, return_counts=True)
    most = int(counts.max())
    if most < _SKEWED * len(given):
        return ""
    return f"skewed: {most} of {len(given)} ratings are {values[counts.argmax()]:g}, so chance agreement is high"
