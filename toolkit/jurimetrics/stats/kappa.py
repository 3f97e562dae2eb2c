"""Two raters on one scale: the table of their ratings, raw agreement and Cohen's kappa."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.ratings import off_scale, read_pair
from jurimetrics.stats.resampling import Draws, cells_of, estimate, group_codes, noted, undefined

Numbers = npt.NDArray[np.float64]
Formula = Callable[[Numbers, Numbers], Numbers]
Weights = Literal["plain", "linear", "quadratic"]


class KappaErrors(NamedTuple):
    """Standard errors of kappa: `around` its value, for intervals, and `at_zero`, for a test of no agreement."""

    around: float
    at_zero: float


def confusion_table(first: Any, second: Any, scale: Sequence[float], weights: Numbers | None = None) -> Numbers:
    """How often `first` gave each step of `scale` (rows) where `second` gave each (columns).

    `first`, `second`: n ratings each; pairs in which one is missing (None, NaN, NA, blank) are left out. `weights`: n
    numbers, 1 each by default. Raises `InputError` for a rating that is no step of the scale and for lengths that differ.

    >>> confusion_table([1, 1, 2, None], [1, 2, 2, 2], (1, 2, 3)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    pair = _pair(first, second, scale)
    mass = np.ones(pair.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    return np.asarray(_tables(pair, mass[None, :], scale)[0])


def raw_formula() -> Formula:
    """The share of pairs that agree exactly, over k = 2 rows of ratings; NaN without a pair."""

    def raw(values: Numbers, weights: Numbers) -> Numbers:
        both = ~np.isnan(values).any(axis=0)
        mass = weights[:, both]
        with np.errstate(invalid="ignore"):
            return np.asarray(mass @ (values[0, both] == values[1, both]) / mass.sum(axis=1))

    return raw


def kappa_formula(scale: Sequence[float], weights: Weights = "plain") -> Formula:
    """Cohen's kappa over k = 2 rows of ratings on `scale`; NaN where both sides hold one and the same step."""
    distance = _distances(scale, weights)

    def kappa(values: Numbers, mass: Numbers) -> Numbers:
        tables = _tables(values, mass, scale)
        total = tables.sum(axis=(1, 2))
        rows, columns = tables.sum(axis=2), tables.sum(axis=1)
        expected = np.einsum("bi,ij,bj->b", rows, distance, columns)
        seen = (tables * distance).sum(axis=(1, 2)) * total
        there = expected > 1e-12 * np.maximum(1.0, total**2)
        return np.asarray(np.where(there, 1 - seen / np.where(there, expected, 1.0), np.nan))

    return kappa


def raw_agreement(
    first: Any, second: Any, groups: Sequence[Any] | None = None, *, level: float = 0.95, draws: Draws | None = None
) -> Estimate:
    """The share of pairs in which both raters gave exactly the same.

    `first`, `second`: n ratings each (numbers or text); pairs with a missing side are left out. `groups`: n labels of
    what shares a source. The interval is that of `estimate`. Raises `InputError` for lengths that differ.

    >>> raw_agreement(["pass", "fail", "pass"], ["pass", "pass", "pass"]).value
    0.6666666666666666
    """
    pair, kept = _complete(read_pair(first, second)[0], groups)
    codes, count = group_codes(kept, pair.shape[1])
    statistic = cells_of(pair, codes, count).statistic(raw_formula())
    return estimate(
        statistic, count, pair.shape[1], "raw agreement", why="no pairs", level=level, draws=draws, bounds=(0.0, 1.0)
    )


def cohen_kappa(
    first: Any,
    second: Any,
    scale: Sequence[float],
    weights: Weights = "plain",
    groups: Sequence[Any] | None = None,
    *,
    level: float = 0.95,
    draws: Draws | None = None,
) -> Estimate:
    """Cohen's kappa: agreement beyond what the two raters' own frequencies would give, -1 to 1.

    `first`, `second`: n ratings each; pairs in which one is missing are left out. `scale`: every step that could be
    given, whole numbers, used or not. `weights`: how bad a disagreement is: "plain" all alike, "linear" by the distance
    of the steps, "quadratic" by its square. `groups`: n labels of what shares a source; the interval is then that of
    `estimate`, without groups the normal one of Fleiss, Cohen and Everitt. Of 100 pairs that one holds a nominal .95 .93
    to .94 of the time, and .89 where one label in ten is a fail; with each pair a group of its own `estimate` holds .94.

    The value is None, and `method` says why, where there is no pair and where both sides hold one and the same step: the
    formula is 0/0. Raises `InputError` for a scale whose steps are not whole, a rating that is no step, lengths that
    differ.

    Sources: Cohen, Educational and Psychological Measurement 20 (1960), Psychological Bulletin 70 (1968); Fleiss, Cohen
    and Everitt, Psychological Bulletin 72 (1969).

    >>> print(cohen_kappa([1, 1, 2, 2, 3, 3, 1, 2], [1, 1, 2, 2, 3, 2, 1, 1], (1, 2, 3)))
    0.61 [0.16, 1.00]
    >>> cohen_kappa([1, 1, 1], [1, 1, 1], (0, 1)).method
    'undefined: kappa (plain): one class only: both gave 1 in all 3 pairs; raw agreement 1.00'
    """
    if any(not float(step).is_integer() for step in scale):
        raise InputError("kappa needs a scale of whole steps; other scales have correlations and ICC")
    pair, kept = _complete(_pair(first, second, scale), groups)
    n, said = pair.shape[1], f"kappa ({weights})"
    table = _tables(pair, np.ones((1, n)), scale)[0]
    if (why := why_no_kappa(table, scale)) is not None:
        return undefined(f"{said}: {why}", n, level)
    note = one_sided(table)
    if groups is not None:
        codes, count = group_codes(kept, n)
        statistic = cells_of(pair, codes, count).statistic(kappa_formula(scale, weights))
        return noted(estimate(statistic, count, n, said, why="one class only", level=level, draws=draws), note)
    value = float(kappa_formula(scale, weights)(pair, np.ones((1, n)))[0])
    return noted(_normal(value, kappa_errors(table, scale, weights).around, n, level, said), note)


def kappa_errors(table: Numbers, scale: Sequence[float] | None = None, weights: Weights = "plain") -> KappaErrors:
    """The large-sample standard errors of Cohen's kappa for a square table of counts whose rows stand alone.

    `scale` are the steps of rows and columns (default: 1, 2, ...). NaN where kappa is undefined.
    Source: Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969), 323-327.

    >>> round(kappa_errors(np.array([[20.0, 5.0], [10.0, 15.0]])).around, 6)
    0.126996
    """
    counts = np.asarray(table, dtype=np.float64)
    distance = _distances(range(1, len(counts) + 1) if scale is None else scale, weights)
    total, agree = counts.sum(), 1 - distance / distance.max()
    share = counts / total
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    seen, chance = float((share * agree).sum()), float(rows @ agree @ columns)
    if 1 - chance <= 1e-12:
        return KappaErrors(math.nan, math.nan)
    kappa = (seen - chance) / (1 - chance)
    sides = (agree @ columns)[:, None] + (rows @ agree)[None, :]
    around = (share * (agree - sides * (1 - kappa)) ** 2).sum() - (kappa - chance * (1 - kappa)) ** 2
    at_zero = (np.outer(rows, columns) * (agree - sides) ** 2).sum() - chance**2
    scaled = [math.sqrt(max(0.0, float(part)) / total) / (1 - chance) for part in (around, at_zero)]
    return KappaErrors(*scaled)


def why_no_kappa(table: Numbers, scale: Sequence[float]) -> str | None:
    """In words why kappa does not exist for a table of counts, None where it does.

    >>> why_no_kappa(np.array([[0.0, 0.0], [0.0, 9.0]]), (0, 1))
    'one class only: both gave 1 in all 9 pairs; raw agreement 1.00'
    """
    total = table.sum()
    if total == 0:
        return "no pairs"
    alone = np.argwhere(table == total)
    if len(alone) and alone[0][0] == alone[0][1]:
        return one_class(scale[alone[0][0]], total)
    return None


def one_class(step: float, pairs: float) -> str:
    """The words for two raters who gave one and the same step throughout."""
    return f"one class only: both gave {step:g} in all {pairs:g} pairs; raw agreement 1.00"


def one_sided(table: Numbers) -> str:
    """What must be said beside a kappa of 0 that is no verdict on the rater; blank where both sides vary."""
    varied = [int((table.sum(axis=axis) > 0).sum()) > 1 for axis in (1, 0)]
    if all(varied) or not table.sum():
        return ""
    agreed = float(np.trace(table) / table.sum())
    return f"one side never varies, so kappa is 0 whatever the other gives (raw agreement {agreed:.2f})"


def _normal(value: float, error: float, n: int, level: float, said: str) -> Estimate:
    from scipy.special import ndtri

    if n < 8 or error <= 1e-12:
        why = "the rows do not differ" if n >= 8 else f"{n} rows, 8 are needed"
        return Estimate(value, None, None, level, n, f"{said}; no interval: {why}")
    half = float(ndtri(0.5 + level / 2)) * error
    method = f"{said}; normal over {n} rows"
    if value + half > 1 or value - half < -1:
        method += ", cut at -1 to 1"
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half), level, n, method)


def _distances(scale: Sequence[float], weights: Weights) -> Numbers:
    steps = np.asarray(scale, dtype=np.float64)
    apart = np.abs(steps[:, None] - steps[None, :])
    if weights == "plain":
        return (apart > 0).astype(np.float64)
    if weights not in ("linear", "quadratic"):
        raise InputError(f"weights are plain, linear or quadratic, not {weights!r}")
    return apart if weights == "linear" else apart**2


def _tables(values: Numbers, weights: Numbers, scale: Sequence[float]) -> Numbers:
    """B tables of the two rows in `values`, for each row of `weights`."""
    from scipy.sparse import csr_array

    steps, size = np.asarray(scale, dtype=np.float64), len(scale)
    both = np.flatnonzero(~np.isnan(values).any(axis=0))
    place = [np.searchsorted(steps, values[side, both]) for side in (0, 1)]
    cell = csr_array((np.ones(len(both)), (both, place[0] * size + place[1])), shape=(values.shape[1], size * size))
    return np.asarray(weights @ cell).reshape(len(weights), size, size)


def _pair(first: Any, second: Any, scale: Sequence[float]) -> Numbers:
    if len(scale) < 2 or list(scale) != sorted(set(scale)):
        raise InputError("a scale needs two steps or more, in rising order")
    pair, names = read_pair(first, second)
    if names:
        raise InputError(f"expected numbers on the scale, found {names[-1]!r}")
    strange = off_scale(pair, scale)
    if strange is not None:
        raise InputError(f"{strange:g} is no step of the scale {', '.join(f'{step:g}' for step in scale)}")
    return pair


def _complete(pair: Numbers, groups: Sequence[Any] | None) -> tuple[Numbers, list[Any] | None]:
    both = np.asarray(~np.isnan(pair).any(axis=0))
    if groups is None:
        return pair[:, both], None
    if len(groups) != pair.shape[1]:
        raise InputError(f"{pair.shape[1]} rows but {len(groups)} groups")
    return pair[:, both], [group for group, kept in zip(groups, both, strict=True) if kept]
