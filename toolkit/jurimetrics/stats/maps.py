"""Maps from a judge's scores to what people say, how well they hold on other records, and how well probabilities hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate, mean_estimate
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.resampling import group_codes

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any]
MapKind = Literal["isotonic", "platt", "linear"]
Binning = Literal["width", "mass"]
MAP_KINDS: tuple[MapKind, ...] = ("isotonic", "platt", "linear")


@dataclass(frozen=True, slots=True)
class ScoreMap:
    """A fitted map; call it with scores, it gives what people are expected to say of them.

    `kind` "linear": `parameters` are slope and intercept, and the line is level beyond `bounds`. "platt": A and B of
    1 / (1 + exp(A score + B)), a probability. "isotonic": the knots' scores, then their values; straight between knots,
    level beyond the first and last. NaN stays NaN.

    >>> ScoreMap("linear", (2.0, 1.0), (1.0, 5.0))([0.5, 3.0]).tolist()
    [2.0, 5.0]
    """

    kind: MapKind
    parameters: tuple[float, ...]
    bounds: tuple[float, float]

    def __call__(self, scores: Values) -> Numbers:
        given = np.asarray(scores, dtype=np.float64)
        if self.kind == "isotonic":
            half = len(self.parameters) // 2
            return np.asarray(np.interp(given, self.parameters[:half], self.parameters[half:]))
        first, second = self.parameters
        if self.kind == "platt":
            return _logistic(-(first * given + second))
        return np.clip(first * given + second, *self.bounds)


def fit_map(
    kind: MapKind,
    scores: Values,
    labels: Values,
    weights: Values | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> ScoreMap:
    """The map of this kind from n scores to n labels.

    "isotonic": the best map that never falls (pooled adjacent violators); it overfits below some 200 labels. "platt":
    logistic, for labels 1 and 0, with Platt's smoothed targets (N+ + 1)/(N+ + 2) and 1/(N- + 2). "linear": least
    squares, level beyond `bounds`, the range of the labels. `weights`: how many records each stands for (1 divided by
    the probability of having been labelled).

    Raises `InputError` for lengths that differ, values that are no finite numbers, scores that are all equal, and for
    "platt" labels other than 1 and 0 or of one kind only.
    Sources: Platt, "Probabilistic Outputs for Support Vector Machines" (1999); Zadrozny and Elkan, KDD 2002.

    >>> fit_map("isotonic", [1, 2, 3, 4], [1, 3, 2, 5])([0, 2, 3.5]).tolist()
    [1.0, 2.5, 3.75]
    """
    if kind not in MAP_KINDS:
        raise InputError(f"a map is one of {', '.join(MAP_KINDS)}, not {kind!r}")
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(x) == len(y) == len(w) or not len(x):
        raise InputError(f"a map needs equally many scores, labels and weights: {len(x)}, {len(y)}, {len(w)}")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(w).all() and (w > 0).all()):
        raise InputError("a score, label or weight is no finite number, or a weight not above 0")
    if _equal(x):
        raise InputError(f"the judge gives all {len(x)} labelled records the score {x[0]:g}: nothing can be mapped")
    if kind == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=w)
        return ScoreMap(kind, tuple(map(float, (*fitted.X_thresholds_, *fitted.y_thresholds_))), bounds)
    return ScoreMap(kind, _platt(x, y, w) if kind == "platt" else _line(x, y, w), bounds)


def _equal(x: Numbers) -> bool:
    """Whether scores are equal up to rounding."""
    return bool(np.ptp(x) <= max(1e-12 * float(np.abs(x).max()), 1e-100))


def _line(x: Numbers, y: Numbers, w: Numbers) -> tuple[float, float]:
    across, up = float(np.average(x, weights=w)), float(np.average(y, weights=w))
    unit = float(np.ptp(x))
    away = (x - across) / unit
    slope = float((w * away * (y - up)).sum() / (w * away**2).sum()) / unit
    return slope, up - slope * across


def _platt(x: Numbers, y: Numbers, w: Numbers) -> tuple[float, float]:
    """A and B that minimise the cross-entropy with the smoothed targets, by Newton's method on standardised scores."""
    if not np.isin(y, (0.0, 1.0)).all() or np.ptp(y) == 0:
        raise InputError("a Platt map needs labels 1 (pass) and 0 (fail), and some of both")
    positive, negative = float(w[y == 1].sum()), float(w[y == 0].sum())
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))
    centre, wide = float(x.mean()), float(np.ptp(x))
    unit = float(((x - centre) / wide).std()) * wide
    design = np.column_stack([(x - centre) / unit, np.ones(len(x))])
    at = np.array([0.0, math.log(positive / negative)])
    loss = _cross_entropy(design @ at, target, w)
    for _ in range(200):
        chance = _logistic(design @ at)
        slope = design.T @ (w * (chance - target))
        curve = (design * (w * chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.solve(curve + 1e-12 * np.trace(curve) * np.eye(2), slope)
        size = 1.0
        while (there := _cross_entropy(design @ (at - size * step), target, w)) > loss and size > 1e-10:
            size /= 2
        at, fell, loss = at - size * step, loss - there, there
        if fell <= 1e-14 * max(1.0, abs(loss)) and float(np.abs(step).max()) < 1e-9:
            break
    slope_of, shift = float(at[0]) / unit, float(at[1]) - float(at[0]) * centre / unit
    return -slope_of, -shift


def _cross_entropy(odds: Numbers, target: Numbers, w: Numbers) -> float:
    return float((w * (np.logaddexp(0, odds) - target * odds)).sum())


def _logistic(odds: Numbers) -> Numbers:
    with np.errstate(invalid="ignore"):
        return np.exp(-np.logaddexp(0, -odds))


def held_out(
    kind: MapKind,
    scores: Values,
    labels: Values,
    groups: Groups | None = None,
    *,
    weights: Values | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    folds: int = 10,
) -> Numbers:
    """For each of n records what a map says of it that was fitted on the other folds; folds hold whole groups.

    NaN where the other folds allow no map (their scores are all equal, their labels all of one kind). Errors as
    `fit_map`. Raises `InputError` for a single group.

    >>> held_out("linear", [1, 2, 3, 4], [2, 4, 6, 8]).round(6).tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    fold = fold_codes(np.arange(len(x)) if groups is None else groups, folds)
    if len(np.unique(fold)) < 2:
        raise InputError("a map cannot be tried on other records: all labelled ones are of one group")
    found = np.full(len(x), np.nan)
    for one in np.unique(fold):
        others, mine = fold != one, fold == one
        if not _equal(x[others]) and (kind != "platt" or np.ptp(y[others]) > 0):
            found[mine] = fit_map(kind, x[others], y[others], w[others], bounds)(x[mine])
    return found


def mean_error(
    predicted: Values,
    labels: Values,
    groups: Groups | None = None,
    *,
    weights: Values | None = None,
    power: Literal[1, 2] = 2,
    level: float = 0.95,
) -> Estimate:
    """The mean squared error of n predictions (`power` 2; for probabilities of 1 and 0 the Brier score), or the mean
    absolute one (1), with an interval by group. Records without a prediction (NaN) are left out.

    Source: Brier, Monthly Weather Review 78 (1950).

    >>> mean_error([0.9, 0.2, 0.6, 0.1], [1, 0, 0, 0]).value
    0.105
    """
    errors = np.abs(np.asarray(predicted, dtype=np.float64) - np.asarray(labels, dtype=np.float64)) ** power
    return weighted_mean(errors, weights, groups, level)


def log_loss(
    predicted: Values,
    labels: Values,
    groups: Groups | None = None,
    *,
    weights: Values | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean of -log of the probability given to what happened; labels are 1 and 0.

    Without a value, and `method` says so, where something happened that was given the probability 0.

    >>> round(log_loss([0.9, 0.2, 0.6, 0.1], [1, 0, 0, 0]).value, 4)
    0.3375
    """
    p, y = _probabilities(predicted, labels)
    chance = np.where(y == 1, p, 1 - p)
    never = int((chance == 0).sum())
    if never:
        said = f"log loss is infinite: {never} of {len(p)} outcomes were given the probability 0"
        return Estimate(None, None, None, level, len(p), said)
    return weighted_mean(-np.log(chance), weights, groups, level)


def weighted_mean(values: Values, weights: Values | None, groups: Groups | None, level: float = 0.95) -> Estimate:
    """`mean_estimate`, where each value stands for as many records as its weight says; NaN is left out.

    >>> round(weighted_mean([1, 0, 1, 0, 1, 0, 1, 0], [3, 1] * 4, None).value, 2)
    0.75
    """
    x = np.asarray(values, dtype=np.float64)
    if weights is None:
        return mean_estimate(x, groups, level)
    there = ~np.isnan(x)
    w, code = np.asarray(weights, dtype=np.float64)[there], group_codes(groups, len(x))[0]
    x, code = x[there], np.unique(code[there], return_inverse=True)[1]
    if not len(x):
        return Estimate(None, None, None, level, 0, "no scored rows")
    value, count = float((w * x).sum() / w.sum()), int(code.max()) + 1
    sums = np.bincount(code, weights=w * (x - value))
    error = math.sqrt(float((sums**2).sum()) * count / max(1, count - 1)) / float(w.sum())
    plain = Estimate(value, None, None, level, len(x), "weighted mean")
    if count < FEWEST_GROUPS or error <= 1e-12 * max(1.0, float(np.abs(x).max())):
        why = f"{count} groups, {FEWEST_GROUPS} are needed" if count < FEWEST_GROUPS else "the values do not differ"
        return replace(plain, method=f"weighted mean; no interval: {why}")
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, 0.5 + level / 2)) * error
    method = f"weighted mean; cluster-robust t over {count} groups"
    return replace(plain, low=value - half, high=value + half, method=method)


class Reliability(NamedTuple):
    """Probabilities against outcomes by bin; arrays over the bins that hold anything, lowest first.

    `predicted`: mean probability; `observed`: share of 1; `records`: how many; `share`: their part of the whole
    (weighted).
    """

    predicted: Numbers
    observed: Numbers
    records: npt.NDArray[np.int_]
    share: Numbers
    bins: int
    binning: Binning


def reliability_curve(
    predicted: Values, labels: Values, *, bins: int = 10, binning: Binning = "width", weights: Values | None = None
) -> Reliability:
    """What was predicted and what was observed in each bin of n probabilities for labels 1 and 0.

    "width": bins ((m - 1)/bins, m/bins], 0 in the first. "mass": equally many records in each, in order of probability.

    >>> reliability_curve([0.2, 0.4, 0.6, 0.9], [0, 1, 1, 1], bins=2).observed.tolist()
    [0.5, 1.0]
    """
    p, y = _probabilities(predicted, labels)
    w = np.ones(len(p)) if weights is None else np.asarray(weights, dtype=np.float64)
    if binning not in ("width", "mass") or bins < 1:
        raise InputError(f"bins are of equal 'width' or 'mass', and at least 1; not {bins} of {binning!r}")
    if binning == "width":
        code = np.maximum(0, np.searchsorted(np.arange(1, bins) / bins, p, side="left"))
    else:
        code = np.empty(len(p), dtype=np.intp)
        code[np.lexsort((y, p))] = np.repeat(np.arange(bins), [len(part) for part in np.array_split(p, bins)])
    count = np.bincount(code, minlength=bins)
    mass = np.bincount(code, weights=w, minlength=bins)
    held = count > 0
    mean_p, mean_y = (np.bincount(code, weights=w * each, minlength=bins)[held] / mass[held] for each in (p, y))
    return Reliability(mean_p, mean_y, count[held], mass[held] / mass.sum(), bins, binning)


def calibration_error(
    predicted: Values, labels: Values, *, bins: int = 10, binning: Binning = "width", weights: Values | None = None
) -> Estimate:
    """The expected calibration error: the mean distance between predicted and observed, over bins by their share.

    It depends on the number of bins and is biased upwards where they hold few records; no interval is given for that
    reason, and `method` states the bins. Source: Naeini, Cooper, Hauskrecht, AAAI 2015; Guo et al., ICML 2017.

    >>> round(calibration_error([0.2, 0.4, 0.6, 0.9], [0, 1, 1, 1], bins=2).value, 3)
    0.225
    """
    curve = reliability_curve(predicted, labels, bins=bins, binning=binning, weights=weights)
    value = float((curve.share * np.abs(curve.observed - curve.predicted)).sum())
    method = f"ECE over {bins} bins of equal {binning}; no interval: biased upwards for few records in a bin"
    return Estimate(value, None, None, 0.95, int(curve.records.sum()), method)


def _probabilities(predicted: Values, labels: Values) -> tuple[Numbers, Numbers]:
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if len(p) != len(y) or not len(p):
        raise InputError(f"needs equally many probabilities and labels, and some: {len(p)}, {len(y)}")
    if not bool(((p >= 0) & (p <= 1)).all()) or not np.isin(y, (0.0, 1.0)).all():
        raise InputError("probabilities lie in 0 to 1 and labels are 1 or 0")
    return p, y
