"""How much each judge should count, fitted to labels and tried on groups that were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.folds import fold_codes

Numbers = npt.NDArray[np.float64]
Groups = Sequence[Any] | npt.NDArray[Any]
WeightKind = Literal["least_squares", "logistic"]
WEIGHT_KINDS: tuple[WeightKind, ...] = ("least_squares", "logistic")


@dataclass(frozen=True, slots=True)
class JudgeWeights:
    """Weights of J judges, none below 0; call it with their scores (J x N), it gives what people are expected to say.

    `kind` "least_squares": intercept + sum of `weights` times scores. "logistic": the probability of a pass, 1 / (1 +
    exp(-that)). A record without the score of a judge that has a weight is NaN.

    >>> JudgeWeights("least_squares", (0.5, 0.0), 1.0)(np.array([[2.0, 4.0], [9.0, np.nan]])).tolist()
    [2.0, 3.0]
    """

    kind: WeightKind
    weights: tuple[float, ...]
    intercept: float

    @property
    def shares(self) -> tuple[float, ...]:
        """The weights as parts of 1; all NaN where every weight is 0."""
        total = sum(self.weights)
        return tuple(weight / total if total > 0 else float("nan") for weight in self.weights)

    def __call__(self, scores: Numbers) -> Numbers:
        table, weights = np.asarray(scores, dtype=np.float64), np.array(self.weights)
        used = weights > 0
        sums = weights[used] @ table[used] + self.intercept
        if not used.any():
            sums = np.full(table.shape[1], self.intercept)
        return _logistic(sums) if self.kind == "logistic" else sums


def fit_weights(
    scores: Numbers,
    labels: Sequence[float] | Numbers,
    kind: WeightKind = "least_squares",
    weights: Numbers | None = None,
) -> JudgeWeights:
    """The weights, none below 0, under which judges together come nearest to the labels.

    `scores`: J judges x N records; records that a judge did not score (NaN), or without a label, are left out.
    "least_squares": least squared error, with an intercept. "logistic": for labels 1 and 0, least cross-entropy, with a
    normal prior of standard deviation 1 on each weight per standard deviation of its judge, so that judges who are never
    wrong on a few records do not count without limit. `weights`: how many records each stands for. Of judges that say the
    same one may get all the weight, and one that is worse than noise gets none.

    Raises `InputError` for another kind, too few complete records (twice the judges, and two more), labels that are all
    equal, and for "logistic" labels other than 1 and 0.
    Source: Lawson and Hanson, "Solving Least Squares Problems" (1974), 23.

    >>> one = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0])
    >>> fit_weights(np.array([one, one[::-1]]), 2 * one + 1).weights
    (2.0, 0.0)
    """
    table, told = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    mass = np.ones(len(told)) if weights is None else np.asarray(weights, dtype=np.float64)
    if kind not in WEIGHT_KINDS:
        raise InputError(f"weights are fitted by one of {', '.join(WEIGHT_KINDS)}, not {kind!r}")
    if table.ndim != 2 or not table.shape[1] == len(told) == len(mass):
        raise InputError(
            f"{table.shape} scores, {len(told)} labels, {len(mass)} weights: must be about the same records"
        )
    there = ~np.isnan(table).any(axis=0) & ~np.isnan(told)
    least = 2 * len(table) + 2
    if there.sum() < least:
        raise InputError(
            f"{int(there.sum())} records scored by all judges are too few for {len(table)} weights: {least}"
        )
    x, y, w = table[:, there], told[there], mass[there] / mass[there].mean()
    if np.ptp(y) == 0:
        raise InputError(f"all {len(y)} labels are {y[0]:g}: they say nothing of the judges")
    if kind == "logistic" and not np.isin(y, (0.0, 1.0)).all():
        raise InputError("logistic weights need labels 1 (pass) and 0 (fail)")
    centre = np.average(x, axis=1, weights=w)
    spread = np.sqrt(np.average((x - centre[:, None]) ** 2, axis=1, weights=w))
    # A judge that never varies says nothing, and is given no weight.
    unit = np.where(spread > 1e-12, spread, 1.0)
    design = np.where(spread[:, None] > 1e-12, (x - centre[:, None]) / unit[:, None], 0.0)
    slopes, start = _by_likelihood(design, y, w) if kind == "logistic" else _by_squares(design, y, w)
    found = slopes / unit
    return JudgeWeights(kind, tuple(found.round(12).tolist()), start - float(found @ centre))


@dataclass(frozen=True, slots=True)
class HeldOutWeights:
    """`predicted` (N): what people are expected to say of each record by weights fitted on other folds of groups, NaN
    where none could be fitted or a judge gave no score. `shares` (folds x J): the weights of each fold as parts of 1."""

    predicted: Numbers
    shares: Numbers


def held_out_weights(
    scores: Numbers,
    labels: Sequence[float] | Numbers,
    groups: Groups | None = None,
    kind: WeightKind = "least_squares",
    weights: Numbers | None = None,
    folds: int = 10,
) -> HeldOutWeights:
    """Weights tried on what they were not fitted on: every fold of whole groups by weights of the other folds.

    Arguments as `fit_weights`. A fold whose other records do not allow weights stays NaN.

    >>> one = np.array([1.0, 2.0, 3.0, 4.0] * 5)
    >>> found = held_out_weights(np.array([one, one[::-1]]), one + 1)
    >>> bool(np.allclose(found.predicted, one + 1)), found.shares.shape
    (True, (10, 2))
    """
    table, told = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    fold = fold_codes(np.arange(len(told)) if groups is None else groups, folds)
    count = int(fold.max()) + 1 if len(fold) else 0
    predicted, shares = np.full(len(told), np.nan), np.full((count, len(table)), np.nan)
    for one in range(count):
        mine, others = fold == one, fold != one
        mass = None if weights is None else np.asarray(weights, dtype=np.float64)[others]
        try:
            fitted = fit_weights(table[:, others], told[others], kind, mass)
        except InputError:
            if kind not in WEIGHT_KINDS:
                raise
            continue
        predicted[mine], shares[one] = fitted(table[:, mine]), fitted.shares
    return HeldOutWeights(predicted, shares)


def _by_squares(design: Numbers, y: Numbers, w: Numbers) -> tuple[Numbers, float]:
    from scipy.optimize import nnls

    centre, root = float(np.average(y, weights=w)), np.sqrt(w)
    slopes, _ = nnls((design * root).T, (y - centre) * root)
    return np.asarray(slopes), centre


def _by_likelihood(design: Numbers, y: Numbers, w: Numbers) -> tuple[Numbers, float]:
    from scipy.optimize import minimize

    def loss(at: Numbers) -> tuple[float, Numbers]:
        sums = at[:-1] @ design + at[-1]
        off = w * (_logistic(sums) - y)
        value = float((w * (np.logaddexp(0, sums) - y * sums)).sum() + 0.5 * (at[:-1] ** 2).sum())
        return value, np.append(design @ off + at[:-1], off.sum())

    share = float(np.average(y, weights=w))
    start = np.append(np.zeros(len(design)), np.log(share / (1 - share)))
    limits = [(0.0, None)] * len(design) + [(None, None)]
    found = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    return np.asarray(found.x[:-1]), float(found.x[-1])


def _logistic(at: Numbers) -> Numbers:
    return np.asarray(0.5 * (1 + np.tanh(at / 2)))
