"""What people would have said of all records when only some are labelled: prediction-powered means.

`ppi_mean` is the estimator as published. `corrected_mean` is the one to report: its weight is fitted on other folds,
records of one group are summed before they are squared, known probabilities of being labelled are used, and the
interval takes Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.resampling import group_codes

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Target = Literal["population", "these records"]
_BORROWED = 4
"""As many values as Agresti and Coull add to a share."""
_ENOUGH_ODD = 10
TARGETS: tuple[Target, ...] = ("population", "these records")


def tuned_weight(labels: Values, judged: Values, rest: Values) -> float:
    """How much of the judge PPI++ uses: Cov(Y, f) / ((1 + n / N) Var f), cut to 0 to 1.

    `labels` and `judged`: what people and the judge said of the n labelled records; `rest`: what the judge said of the
    N others. The covariance divides by n, the variance, over all n + N, by n + N - 1. 0 where the judge does not vary.

    Source: Angelopoulos, Duchi, Zrnic, "PPI++", arXiv 2311.01453, example 6.1.

    >>> round(tuned_weight([1, 0, 1, 0], [1, 0, 1, 1], [1, 0, 1, 1, 0, 1, 1, 0]), 3)
    0.344
    """
    y, f, u = _finite(labels, judged, rest)
    if len(y) != len(f) or not len(y) or not len(u):
        raise InputError(f"PPI needs as many labels as judged records and some others: {len(y)}, {len(f)}, {len(u)}")
    pooled = np.concatenate([f, u])
    spread = float(pooled.var(ddof=1))
    if spread <= _floor(pooled):
        return 0.0
    between = float(((y - y.mean()) * (f - f.mean())).mean())
    return min(1.0, max(0.0, between / ((1 + len(y) / len(u)) * spread)))


def ppi_mean(labels: Values, judged: Values, rest: Values, lam: float | None = None, level: float = 0.95) -> Estimate:
    """The prediction-powered mean as published: lam mean(f(U)) + mean(Y - lam f(X)), with a normal interval.

    `labels` (Y) and `judged` (f(X)): people and judge on the n labelled records, a random subset; `rest` (f(U)): the
    judge on the N others, none of which is labelled. `lam`: 1 is PPI, 0 the labels alone, None the tuned weight of
    PPI++. Every record stands alone. With fewer than 100 labels the tuned interval is too narrow, with groups it is at
    any size: `corrected_mean` heeds both.

    Raises `InputError` for lengths that do not fit, values that are no finite numbers, or a level outside 0 to 1.
    Source: Angelopoulos et al., "Prediction-powered inference", Science 382 (2023); PPI++, arXiv 2311.01453.

    >>> print(ppi_mean([1, 0, 1, 0], [1, 0, 1, 1], [1, 0, 1, 1, 0, 1, 1, 0], lam=1))
    0.38 [-0.17, 0.92]
    """
    y, f, u = _finite(labels, judged, rest)
    _check_level(level)
    name = "PPI" if lam == 1 else "PPI++"
    weight = tuned_weight(y, f, u) if lam is None else float(lam)
    value = weight * u.mean() + (y - weight * f).mean()
    error = math.sqrt(weight**2 * u.var() / len(u) + (y - weight * f).var() / len(y))
    half = _normal(level) * error
    method = f"{name}; lam {weight:.3f}; {len(y)} labelled, {len(u)} others; normal interval, every record alone"
    return Estimate(float(value), float(value - half), float(value + half), level, len(y), method)


def corrected_mean(
    scores: Values,
    labels: Values,
    *,
    probabilities: Values | None = None,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    folds: npt.NDArray[np.intp] | None = None,
    lam: float | None = None,
    target: Target = "population",
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """The mean that people would have given all N records, from the judge's scores of all and the labels of some.

    `scores`: N numbers, none missing. `labels`: N numbers, NaN where nobody labelled. `probabilities`: None where the
    labelled records are a random subset (PPI++); else the known probability of being labelled, needed where a label is
    (weighted PPI++: (1/N) sum lam F + (1/N) sum over labelled (Y - lam F) / pi). `groups`: N names of what shares a
    source (None: every record alone).

    `lam`: the judge's weight on the scale of `tuned_weight`; None fits it for every fold of groups on the other folds;
    0 gives the labels alone. For scores that were themselves fitted on the labels pass one row of N scores for each
    fold, made without that fold's labels, and `folds`, the fold of each record.

    `target`: "population" from which the records come, or "these records" alone. The variance sums each group's
    influence, labelled and not, before squaring, times G / (G - 1), and takes t with G - 1 degrees of freedom, G the
    groups with a label. For "these records" it is that of the draw: by record, or by group where whole groups are
    labelled, less what is labelled already; with probabilities by stratum of equal ones. Where these do not add up to
    N, records are taken as drawn one by one, the cautious reading. `bounds`: the metric's range, at which an interval
    is cut, and by which it is widened where fewer than ten groups hold any but the most frequent label: the odd ones may
    be missing by chance. No interval below 8 groups.

    Raises `InputError` for lengths that differ, a score that is no finite number, a labelled record without a
    probability above 0, a missing group, another `target` or a level outside 0 to 1.
    Source: PPI++, arXiv 2311.01453; cross-fitting: Zrnic and Candès, arXiv 2309.16598; design-based variance: Särndal,
    Swensson, Wretman, "Model Assisted Survey Sampling" (1992), 5.6 and 6.6.

    >>> people = [1, 0, 1, 1, 0, 1, 0, 1, 1, 0] + [float("nan")] * 90
    >>> print(corrected_mean([0.9, 0.2, 0.8, 0.7, 0.3, 0.9, 0.1, 0.8, 0.6, 0.2] * 10, people))
    0.60 [0.41, 0.79]
    """
    draw = _drawn(scores, labels, probabilities, groups, folds, target, level)
    name = "labels alone" if lam == 0 else "PPI++"
    name = name if probabilities is None else f"weighted {name}"
    if draw.n == 0:
        return Estimate(None, None, None, level, 0, f"{name}: no labelled records of {draw.total}")
    weights = _fold_weights(draw) if lam is None else np.full(len(draw.scores), lam * draw.scale)
    # Each labelled record meets the scores and the weight that its own label had no part in.
    own = weights[draw.fold] if len(weights) > 1 else np.full(draw.n, weights[0])
    mine = draw.scores[draw.fold if len(draw.scores) > 1 else 0, draw.at]
    residuals = draw.labels - own * mine
    shares = 1 / draw.chance
    shares /= shares.sum()
    predicted = _predicted(draw, weights, own, shares)
    value = predicted.mean() + math.fsum(residuals / draw.chance) / draw.total
    used = float((shares * own).sum()) / draw.scale
    how = "" if lam == 0 else f" lam {used:.3f}{' fitted on other folds' if lam is None else ''};"
    said = f"{name};{how} {draw.n} labelled of {draw.total} records"
    return _with_interval(draw, float(value), predicted, residuals, said, level, bounds)


@dataclass(frozen=True, slots=True)
class _Draw:
    """What was labelled, and how it was drawn. Arrays of the labelled hold n values in the order of `at`."""

    scores: Numbers  # folds (or 1) x N
    total: int
    at: npt.NDArray[np.intp]
    labels: Numbers
    chance: Numbers
    fold: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]  # N
    unit: npt.NDArray[np.intp]
    stratum: npt.NDArray[np.intp]
    simple: bool
    exact: bool
    target: Target

    @property
    def n(self) -> int:
        return len(self.at)

    @property
    def scale(self) -> float:
        """What the published weight is multiplied by where the mean is written over all records, not the unlabelled."""
        return self.total / (self.total - self.n) if self.simple and self.n < self.total else 1.0


def _drawn(
    scores: Any, labels: Any, probabilities: Any, groups: Any, folds: Any, target: Target, level: float
) -> _Draw:
    table, given = np.atleast_2d(np.asarray(scores, dtype=np.float64)), np.asarray(labels, dtype=np.float64)
    total = table.shape[1]
    _check_level(level)
    if target not in TARGETS:
        raise InputError(f'target: expected "population" or "these records", found {target!r}')
    if not np.isfinite(table).all() or np.isinf(given).any():
        raise InputError("a score or label is no finite number: leave out records that the judge did not score")
    if not total:
        raise InputError("no scores: there is no mean to correct")
    group, _ = group_codes(groups, total)
    at = np.flatnonzero(~np.isnan(given))
    if {len(given), len(folds) if folds is not None else total} != {total}:
        raise InputError(f"{total} scores, {len(given)} labels: they must be equally many")
    if len(table) > 1 and folds is None:
        raise InputError("scores by fold need the fold of each record")
    simple = probabilities is None
    chance = np.full(len(at), len(at) / total) if simple else _chances(probabilities, at, total)
    names = list(range(total) if groups is None else groups)
    fold = fold_codes([names[one] for one in at]) if folds is None else np.asarray(folds, dtype=np.intp)[at]
    unit, whole = _units(group, at)
    unit_chance = np.full(int(unit.max(initial=-1)) + 1, np.nan)
    unit_chance[unit] = chance
    strata, of_unit, sizes = np.unique(np.round(unit_chance, 12), return_inverse=True, return_counts=True)
    added = math.fsum(1 / chance)
    # Strata drawn to a fixed size add up to the whole; records drawn one by one do so only by accident.
    exact = simple or (abs(added - total) <= 1e-6 * total + 1e-9 and bool(((sizes > 1) | (strata > 1 - 1e-9)).all()))
    if whole and not simple:
        exact = exact and all(np.ptp(chance[unit == one]) == 0 for one in range(len(unit_chance)))
    return _Draw(table, total, at, given[at], chance, fold, group, unit, of_unit[unit], simple, exact, target)


def _chances(probabilities: Any, at: npt.NDArray[np.intp], total: int) -> Numbers:
    given = np.asarray(probabilities, dtype=np.float64)
    if len(given) != total:
        raise InputError(f"{total} scores but {len(given)} probabilities")
    chance = given[at]
    bad = np.flatnonzero(~((chance > 0) & (chance <= 1)))
    if len(bad):
        raise InputError(
            f"labelled record {int(at[bad[0]])} has the probability {chance[bad[0]]:g} of being labelled: it must be "
            "above 0 and at most 1 for every record that could be drawn"
        )
    return chance


def _units(group: npt.NDArray[np.intp], at: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], bool]:
    """What was drawn: whole groups where every labelled group is labelled whole, else single records."""
    sizes, hit = np.bincount(group), np.bincount(group[at], minlength=int(group.max(initial=-1)) + 1)
    whole = bool((hit[hit > 0] == sizes[hit > 0]).all()) and bool((hit > 1).any())
    return (np.unique(group[at], return_inverse=True)[1] if whole else np.arange(len(at))), whole


def _fold_weights(draw: _Draw) -> Numbers:
    """For each fold the weight that the labels outside it call for, for a mean written over all records."""
    count = int(draw.fold.max()) + 1
    if draw.n == draw.total or count < 2:
        return np.zeros(1)
    table = draw.scores if len(draw.scores) > 1 else np.repeat(draw.scores, count, axis=0)
    y, f = draw.labels[None, :], table[:, draw.at]
    # What a residual adds to the variance of the draw; alike for all in a simple random one.
    each = np.ones(draw.n) if draw.simple else (1 - draw.chance) / draw.chance**2
    held = (draw.fold[None, :] != np.arange(count)[:, None]) * each
    if draw.exact:
        y, f = _centred(y, held, draw.stratum), _centred(f, held, draw.stratum)
    total = held.sum(axis=1)
    if draw.simple:
        spread = table.var(axis=1, ddof=1)
        floors = np.array([_floor(row) for row in table])
    else:
        spread = (held * f**2).sum(axis=1) / np.where(total > 0, total, 1)
        floors = np.full(count, _floor(table))
    between = (held * y * f).sum(axis=1) / np.where(total > 0, total, 1)
    found = np.where(spread > floors, between / np.where(spread > floors, spread, 1.0), 0.0)
    return np.clip(found, 0.0, draw.scale)


def _centred(values: Numbers, weights: Numbers, stratum: npt.NDArray[np.intp]) -> Numbers:
    """`values` (1 or folds x n) less their weighted mean in each stratum, for each row of `weights`."""
    found = np.array(np.broadcast_to(values, weights.shape))
    for one in np.unique(stratum):
        within = weights * (stratum == one)
        sums = within.sum(axis=1)
        means = (within * values).sum(axis=1) / np.where(sums > 0, sums, 1.0)
        found = np.where((stratum == one)[None, :], found - means[:, None], found)
    return found


def _predicted(draw: _Draw, weights: Numbers, own: Numbers, shares: Numbers) -> Numbers:
    """What all records would add by the judge alone: the folds' scores and weights, as often as each is used."""
    if len(draw.scores) == 1:
        return np.asarray((shares * own).sum() * draw.scores[0])
    often = np.bincount(draw.fold, weights=shares, minlength=len(draw.scores))
    return np.asarray((often * (weights if len(weights) > 1 else weights[0])) @ draw.scores)


def _with_interval(
    draw: _Draw,
    value: float,
    predicted: Numbers,
    residuals: Numbers,
    said: str,
    level: float,
    bounds: tuple[float, float] | None,
) -> Estimate:
    centre = float((residuals / draw.chance).sum() / (1 / draw.chance).sum()) if draw.exact else 0.0
    off = residuals - centre
    by_unit = np.bincount(draw.unit, weights=off).astype(np.float64)
    of_draw = _variance_of_draw(draw, by_unit)
    if draw.target == "these records":
        if draw.n == draw.total:
            return Estimate(value, value, value, level, draw.n, f"{said}; these records: all are labelled")
        variance, count = of_draw, len(by_unit)
        said += "; these records"
    else:
        influence = predicted + centre - value
        influence[draw.at] += off / draw.chance
        sums = np.bincount(draw.group, weights=influence)
        count = len(np.unique(draw.group[draw.at]))
        variance = float((sums**2).sum()) / draw.total**2 * count / max(1, count - 1)
        if not draw.simple:
            # The sums have a draw one by one in them; a draw by stratum is tighter.
            variance = max(of_draw, variance + of_draw - _variance_one_by_one(draw, by_unit))
        said += "; population"
    return _finished(draw, value, variance, count, said, level, bounds)


def _finished(
    draw: _Draw, value: float, variance: float, count: int, said: str, level: float, bounds: tuple[float, float] | None
) -> Estimate:
    without = Estimate(value, None, None, level, draw.n, said)
    if count < FEWEST_GROUPS:
        return _noted(without, f"no interval: {count} labelled groups, {FEWEST_GROUPS} are needed")
    unseen = _unseen(draw, bounds)
    error = math.sqrt(variance + unseen)
    if error <= 1e-12 * max(1.0, float(np.abs(draw.labels).max())):
        return _noted(without, "no interval: the labels do not differ from what the judge leads to expect")
    half = _student(level, _freedom(draw, count)) * error
    low, high = value - half, value + half
    alone = count == draw.n
    over = f"t over {count} labelled {'records' if alone else 'groups'}"
    note = over if alone else f"cluster-robust {over}"
    if not draw.simple and not draw.exact:
        note += f", drawn one by one (1/probability adds up to {(1 / draw.chance).sum():.0f} of {draw.total})"
    if unseen:
        note += ", widened since few labels differ from the most frequent one"
    if bounds is not None and (low < bounds[0] or high > bounds[1]):
        note += f", cut at the range {bounds[0]:g} to {bounds[1]:g}"
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return _noted(Estimate(value, low, high, level, draw.n, said), note)


def _noted(estimate: Estimate, note: str) -> Estimate:
    method = f"{estimate.method}; {note}"
    return Estimate(estimate.value, estimate.low, estimate.high, estimate.level, estimate.n, method)


def _unseen(draw: _Draw, bounds: tuple[float, float] | None) -> float:
    """What the variance lacks where nearly all labels are alike and the odd ones may be missing from so few.

    As if two labels more lay at the far end of the range, less the more odd ones there are, none from ten groups on.
    """
    if bounds is None:
        return 0.0
    kinds, times = np.unique(draw.labels, return_counts=True)
    usual = float(kinds[int(np.argmax(times))])
    odd = len(np.unique(draw.unit[draw.labels != usual]))
    far = max(usual - bounds[0], bounds[1] - usual)
    left = 1 - draw.n / draw.total if draw.target == "these records" else 1.0
    each = 1 / draw.chance
    alike = each.sum() ** 2 / (each**2).sum()
    return max(0.0, 2 * (1 - odd / _ENOUGH_ODD)) * left * float(far / alike) ** 2


def _freedom(draw: _Draw, count: int) -> float:
    """Degrees of freedom: groups less one; of unequal weights as many as equal weights would have."""
    if draw.simple:
        return count - 1
    shares = np.bincount(draw.unit, weights=1 / draw.chance)
    return max(2.0, min(count - 1.0, float(shares.sum() ** 2 / (shares**2).sum()) - 1))


def _variance_of_draw(draw: _Draw, by_unit: Numbers) -> float:
    """The variance that drawing adds for a fixed set of records: by stratum without replacement, or one by one."""
    stratum, chance = _of_units(draw)
    weight = (1 - chance) / chance**2
    if not draw.exact:
        squares, total = by_unit**2, weight.sum()
        if total <= 0:
            return 0.0
        seen = float((weight * squares).sum() / total)
        alike = float(total**2 / (weight**2).sum())
        return float(total * _steadied(seen, alike, float(squares.mean()))) / draw.total**2
    n = np.bincount(stratum)
    apart = (by_unit - (np.bincount(stratum, weights=by_unit) / n)[stratum]) ** 2
    freedom = np.maximum(1, n - 1)
    spread = np.bincount(stratum, weights=apart) / freedom
    if len(n) > 1:
        spread = _steadied(spread, freedom, float(apart.sum()) / max(1, len(by_unit) - len(n)))
    return float((spread * np.bincount(stratum, weights=weight)).sum()) / draw.total**2


def _steadied(seen: Any, known_from: Any, pooled: float) -> Any:
    """A variance known from few values, raised towards that of all strata as if a few more values had shown it.

    Where the judge is seldom wrong a stratum's few labels often hold no error at all, and their spread is then too
    small. A variance above the pooled one is left as it is.
    """
    return np.maximum(seen, (known_from * seen + _BORROWED * pooled) / (known_from + _BORROWED))


def _variance_one_by_one(draw: _Draw, by_unit: Numbers) -> float:
    chance = _of_units(draw)[1]
    return float((by_unit**2 * (1 - chance) / chance**2).sum()) / draw.total**2


def _of_units(draw: _Draw) -> tuple[npt.NDArray[np.intp], Numbers]:
    stratum = np.empty(int(draw.unit.max()) + 1, dtype=np.intp)
    chance = np.empty(len(stratum))
    stratum[draw.unit], chance[draw.unit] = draw.stratum, draw.chance
    return stratum, chance


def _finite(*arrays: Any) -> list[Numbers]:
    found = [np.asarray(array, dtype=np.float64) for array in arrays]
    if not all(np.isfinite(array).all() for array in found):
        raise InputError("a score or label is no finite number")
    return found


def _floor(values: Numbers) -> float:
    """What rounding leaves of a variance of equal values."""
    return 1e-24 * max(1.0, float(np.abs(values).max(initial=0.0))) ** 2


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _student(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))
