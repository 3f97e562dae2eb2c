"""A number with its interval, and the two estimates that every summary needs: a mean and a share of passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError

FEWEST_GROUPS = 8
"""With fewer groups the spread between groups is too poorly known for an interval to keep its level."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, and how both were made.

    `value` is None where nothing was scored (never NaN, never 0). `low` and `high` are both None where no interval can
    be defended; `method` then says why. `level` is the interval's nominal coverage (0 to 1), `n` the number of values.

    >>> print(Estimate(0.8123, 0.76, 0.8649, 0.95, 120, "t"))
    0.81 [0.76, 0.86]
    >>> print(Estimate(0.5, None, None, 0.95, 4, "no interval: 4 groups, 8 are needed"))
    0.50 (no interval: 4 groups, 8 are needed)
    >>> print(Estimate(None, None, None, 0.95, 0, "no scored rows"))
    no value (no scored rows)
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    method: str

    def __str__(self) -> str:
        if self.value is None:
            return f"no value ({self.method})"
        if self.low is None or self.high is None:
            return f"{self.value:.2f} ({self.method})"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean_estimate(
    values: Sequence[float] | npt.NDArray[np.float64],
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
    *,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """The mean of `values` with an interval that allows for values of one group going together.

    `values`: n numbers; NaN is not a value and is left out. `groups`: n labels of what shares a source (None: every
    value stands alone). Residuals are summed within each of the G groups before they are squared; the variance is
    multiplied by G / (G - 1) and the interval takes Student's t with G - 1 degrees of freedom. `bounds` are the ends
    of the metric's range: an interval that passes one is cut there, which costs no coverage, and `method` says so.

    No interval is given for fewer than 8 groups, nor where the groups do not differ at all: a width of zero would
    claim a certainty that nobody has. The order of the values never changes the result.

    Raises `InputError` for an infinite value, a missing group, lengths that differ or a level outside 0 to 1.

    Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640.

    >>> mean_estimate([0.2, 0.4, 0.9, 0.7, 0.6, 0.8, 0.3, 0.5]).method
    'mean; t over 8 rows'
    >>> print(mean_estimate([0.2, 0.4, 0.9, 0.7, 0.6, 0.8, 0.3, 0.5]))
    0.55 [0.35, 0.75]
    >>> mean_estimate([1.0, float("nan"), 0.5], ["a", "a", "b"])
    Estimate(value=0.75, low=None, high=None, level=0.95, n=2, method='mean; no interval: 2 rows, 8 are needed')
    """
    numbers, codes = _present(values, groups, level)
    n = len(numbers)
    if n == 0:
        return Estimate(None, None, None, level, 0, "no scored rows")
    mean = math.fsum(numbers) / n
    count = int(codes.max()) + 1
    without = Estimate(mean, None, None, level, n, "")
    if count < FEWEST_GROUPS:
        return replace(without, method=f"mean; no interval: {_few(count, n)}, {FEWEST_GROUPS} are needed")
    sums = np.bincount(codes, weights=numbers - mean)
    error = math.sqrt(math.fsum(sums**2) * count / (count - 1)) / n
    if error <= 1e-12 * max(1.0, float(np.abs(numbers).max())):
        alike = "all values are equal" if np.ptp(numbers) == 0 else "the groups do not differ"
        return replace(without, method=f"mean; no interval: {alike}")
    half = _student(level, count - 1) * error
    method = "mean; " + (f"t over {n} rows" if count == n else f"cluster-robust t over {count} groups")
    low, high = mean - half, mean + half
    if bounds is not None and (low < bounds[0] or high > bounds[1]):
        method += f", cut at the range {bounds[0]:g} to {bounds[1]:g}"
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Estimate(mean, low, high, level, n, method)


def share_estimate(
    passed: Sequence[float] | npt.NDArray[np.float64],
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The share of passes: Wilson's interval where every row stands alone, else the interval of `mean_estimate`.

    `passed`: n values, 1 pass and 0 fail; NaN is neither and is left out. Values between are shares of a row's repeats
    that passed. Where rows come in groups and all rows agree, each group counts as one trial, the most cautious
    reading. No interval for fewer than 8 groups. Raises `InputError` as `mean_estimate` does, and for a value outside
    0 to 1.

    Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927).

    >>> print(share_estimate([1, 1, 1, 1, 1, 1, 1, 0, 0, 0]))
    0.70 [0.40, 0.89]
    >>> share_estimate([1.0] * 20, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] * 2).method
    'share; Wilson over 10 groups, within which all agree'
    """
    numbers, codes = _present(passed, groups, level)
    if len(numbers) and (numbers.min() < 0 or numbers.max() > 1):
        raise InputError("a share of passes needs values between 0 and 1")
    n = len(numbers)
    count = int(codes.max()) + 1 if n else 0
    whole = bool(np.isin(numbers, (0.0, 1.0)).all())
    agree = n > 0 and np.ptp(numbers) == 0
    if count < FEWEST_GROUPS or not whole or (count < n and not agree):
        plain = mean_estimate(numbers, codes.tolist(), level, bounds=(0.0, 1.0))
        return replace(plain, method=plain.method.replace("mean;", "share;", 1))
    value = math.fsum(numbers) / n
    low, high = _wilson(value, count, level)
    over = f"{n} rows" if count == n else f"{count} groups, within which all agree"
    return Estimate(value, low, high, level, n, f"share; Wilson over {over}")


def _present(values: Any, groups: Any, level: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Values that are there and their groups as numbers from 0, in an order that the caller's order does not decide."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    numbers = np.asarray(values, dtype=np.float64)
    labels = range(len(numbers)) if groups is None else list(groups)
    if len(labels) != len(numbers):
        raise InputError(f"{len(numbers)} values but {len(labels)} groups")
    if np.isinf(numbers).any():
        raise InputError(f"value {int(np.flatnonzero(np.isinf(numbers))[0])} is infinite")
    there = np.flatnonzero(~np.isnan(numbers))
    seen: dict[Any, int] = {}
    codes = np.empty(len(there), dtype=np.intp)
    for place, at in enumerate(there):
        label = labels[at]
        if label is None or label != label:
            raise InputError(f"value {int(at)} has no group")
        codes[place] = seen.setdefault(label, len(seen))
    kept = numbers[there]
    order = np.lexsort((kept, codes))
    return kept[order], codes[order]


def _few(count: int, n: int) -> str:
    word = "row" if count == n else "group"
    return f"{count} {word}" + ("" if count == 1 else "s")


def _student(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))


def _wilson(share: float, n: int, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))
