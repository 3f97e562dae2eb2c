"""The pass rate that people would have found, from a judge's pass rate and how often the judge errs.

For labels that were chosen by what people said (so many passes, so many fails) or come from another set. Where the
labels are a random subset of the records, `corrected_mean` says the same far more sharply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.resampling import group_codes

Numbers = npt.NDArray[np.float64]


class Allocation(NamedTuple):
    """How many records to label that people will fail and pass."""

    failing: int
    passing: int


def rogan_gladen(
    rate: float,
    specificity: float,
    sensitivity: float,
    n: float,
    failing: float,
    passing: float,
    level: float = 0.95,
    *,
    quantile: float | None = None,
) -> Estimate:
    """(p + q0 - 1) / (q0 + q1 - 1), cut to 0 to 1, with the interval of Lee et al. 2025.

    `rate` (p): the judge's pass rate on `n` records. `specificity` (q0): how often it fails what people fail, on
    `failing` labelled records; `sensitivity` (q1): how often it passes what people pass, on `passing` ones. All lie in
    0 to 1. Counts may be effective ones, where records come in groups. `quantile` takes the place of the normal one.

    The interval shrinks the rates first, so it is not centred on the value. Needed is that whether a record was labelled
    had nothing to do with the judge's verdict on it, given what people say, and that judge and kind of record are the
    same on both sides.

    Raises `InputError` where q0 + q1 does not exceed 1 by more than its own uncertainty: the judge cannot be told from
    chance there, and any pass rate would fit. Also for rates outside 0 to 1 and counts below 1.
    Source: Rogan and Gladen, American Journal of Epidemiology 107 (1978); Lee et al., arXiv 2511.21140 (2025).

    >>> print(rogan_gladen(0.4, 0.7, 0.9, 1000, 200, 200))
    0.17 [0.06, 0.26]
    """
    _check(rate, specificity, sensitivity, n, failing, passing, level)
    z = _normal(level) if quantile is None else quantile
    q0, q1 = _shrunk(specificity, failing), _shrunk(sensitivity, passing)
    m0, m1 = failing + 2, passing + 2
    apart = z * math.sqrt(q0 * (1 - q0) / m0 + q1 * (1 - q1) / m1)
    if specificity + sensitivity - 1 <= apart or q0 + q1 - 1 <= 0:
        raise InputError(
            f"the judge fails {specificity:.0%} of what people fail and passes {sensitivity:.0%} of what they pass "
            f"({failing:g} and {passing:g} labels): that cannot be told from chance, so no pass rate can be inferred "
            "from it; label more, use another judge, or label a random subset and declare selection='random'"
        )
    value = _inferred(rate, specificity, sensitivity)
    p = (n * rate + z * z / 2) / (n + z * z)
    # Not cut here: the ends are.
    middle = (p + q0 - 1) / (q0 + q1 - 1)
    error = _delta(p, q0, q1, middle, n + z * z, m0, m1)
    shift = 2 * z * z * (middle * q1 * (1 - q1) / m1 - (1 - middle) * q0 * (1 - q0) / m0)
    low, high = (min(1.0, max(0.0, middle + shift + side * z * error)) for side in (-1, 1))
    method = (
        f"Rogan-Gladen; specificity {specificity:.3f} of {failing:g}, sensitivity {sensitivity:.3f} of {passing:g}, "
        f"pass rate {rate:.3f} of {n:g}; interval of Lee et al. 2025"
    )
    return Estimate(value, low, high, level, round(failing + passing), method)


def rogan_gladen_error(
    rate: float, specificity: float, sensitivity: float, n: float, failing: float, passing: float
) -> float:
    """The standard error of the corrected pass rate by the delta method; arguments and errors as `rogan_gladen`.

    >>> round(rogan_gladen_error(0.4, 0.7, 0.9, 1000, 200, 200), 6)
    0.052219
    """
    _check(rate, specificity, sensitivity, n, failing, passing, 0.95)
    if specificity + sensitivity <= 1:
        raise InputError("specificity and sensitivity add up to 1 or less: the judge is no better than chance")
    value = _inferred(rate, specificity, sensitivity)
    return _delta(rate, specificity, sensitivity, value, n, failing, passing)


def rogan_gladen_allocation(labels: int, rate: float, specificity: float, sensitivity: float, pilot: int) -> Allocation:
    """How to divide `labels` between records that people fail and pass so that the interval becomes narrowest.

    `rate`: the judge's pass rate (above 0); `specificity` and `sensitivity`: of a pilot with `pilot` labels of each
    kind, shrunk here before use. Source: Lee et al., arXiv 2511.21140 (2025).

    >>> rogan_gladen_allocation(200, 0.4, 0.7, 0.9, 10)
    Allocation(failing=136, passing=64)
    """
    _check(rate, specificity, sensitivity, 1, pilot, pilot, 0.95)
    if rate == 0 or labels < 2:
        raise InputError(f"needs a pass rate above 0 and at least 2 labels, not {rate:g} and {labels}")
    ratio = (1 - _shrunk(specificity, pilot)) / (1 - _shrunk(sensitivity, pilot))
    passing = round(labels / (1 + (1 / rate - 1) * math.sqrt(ratio)))
    passing = min(labels - 1, max(1, passing))
    return Allocation(labels - passing, passing)


def corrected_pass_rate(
    passed: Sequence[float] | Numbers,
    labels: Sequence[float] | Numbers,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """`rogan_gladen` from records: what the judge said of all N, and what people said of some.

    `passed`: N shares in 0 to 1 of the judge's verdicts that pass, none missing. `labels`: N values, 1 pass, 0 fail, NaN
    not labelled. `groups`: N names of what shares a source; records of one group count for less in the interval (each
    rate's count is divided by its design effect), which then takes Student's t. No interval below 8 labelled groups.

    Raises `InputError` as `rogan_gladen` does, and where people failed none or passed none of the labelled records.

    >>> verdicts, people = [1, 1, 1, 0, 0] * 40, [1, 1, 0, 0, 0] * 12 + [float("nan")] * 140
    >>> print(corrected_pass_rate(verdicts, people))
    0.40 [0.20, 0.58]
    """
    judged, given = np.asarray(passed, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    code = group_codes(groups, len(judged))[0]
    if len(judged) != len(given):
        raise InputError(f"{len(judged)} verdicts, {len(given)} labels: must be equally many")
    if not bool(((judged >= 0) & (judged <= 1)).all()):
        raise InputError("a verdict is 1 (pass), 0 (fail) or a share between; leave out records without one")
    return _from_labelled(judged, code, judged, given, code, level)


def transported_pass_rate(
    passed: Sequence[float] | Numbers,
    verdicts: Sequence[float] | Numbers,
    labels: Sequence[float] | Numbers,
    groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    label_groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    level: float = 0.95,
) -> Estimate:
    """`rogan_gladen` of records that nobody labelled, with the judge's errors on another, labelled set.

    `passed`: N shares in 0 to 1 of the judge's verdicts that pass, none missing. `verdicts` and `labels`: the same judge's
    verdicts on M other records, and what people said of them: 1 pass, 0 fail, NaN not labelled. `groups` (N) and
    `label_groups` (M) name what shares a source, as for `corrected_pass_rate`; the sets share none.

    Needed is, beyond what `rogan_gladen` needs, that the judge errs on both sets alike: the same judge, metric and kind of
    records. Nothing in the numbers shows whether that holds. Raises `InputError` as `corrected_pass_rate` does.

    >>> verdicts, people = [1, 1, 1, 0, 0] * 12, [1, 1, 0, 0, 0] * 12
    >>> print(transported_pass_rate([1, 1, 0, 0] * 50, verdicts, people))
    0.25 [0.01, 0.44]
    """
    judged = np.asarray(passed, dtype=np.float64)
    told, given = np.asarray(verdicts, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    code = group_codes(groups, len(judged))[0]
    label_code = group_codes(label_groups, len(told))[0]
    if len(told) != len(given):
        raise InputError(f"{len(told)} verdicts and {len(given)} labels of the labelled set: must be equally many")
    if not len(judged):
        raise InputError("no verdicts: there is no pass rate to correct")
    for values in (judged, told):
        if not bool(((values >= 0) & (values <= 1)).all()):
            raise InputError("a verdict is 1 (pass), 0 (fail) or a share between; leave out records without one")
    return _from_labelled(judged, code, told, given, label_code, level)


def _from_labelled(
    judged: Numbers,
    code: npt.NDArray[np.intp],
    told: Numbers,
    given: Numbers,
    label_code: npt.NDArray[np.intp],
    level: float,
) -> Estimate:
    """The pass rate of `judged`, corrected by how `told` errs where `given` is known; groups as codes."""
    there = ~np.isnan(given)
    if not np.isin(given[there], (0.0, 1.0)).all():
        raise InputError("labels of pass and fail are 1 and 0")
    fails, passes = given == 0, given == 1
    if not fails.any() or not passes.any():
        which = "passed none" if fails.any() else "failed none"
        raise InputError(f"Rogan-Gladen needs labels of both kinds: people {which} of the {int(there.sum())} labelled")
    parts = [(judged, code), (1 - told[fails], label_code[fails]), (told[passes], label_code[passes])]
    rates = [float(values.mean()) for values, _ in parts]
    n, m0, m1 = (_effective(values, of) for values, of in parts)
    count, held = int(there.sum()), len(np.unique(label_code[there]))
    alone = held == count
    quantile = None if alone else _student(level, max(1, held - 1))
    found = rogan_gladen(rates[0], rates[1], rates[2], n, m0, m1, level, quantile=quantile)
    method = found.method if alone else f"{found.method}, effective counts of {held} groups"
    if held < FEWEST_GROUPS:
        method += f"; no interval: {held} labelled groups, {FEWEST_GROUPS} are needed"
        return Estimate(found.value, None, None, level, count, method)
    return Estimate(found.value, found.low, found.high, level, count, method)


def _effective(values: Numbers, code: npt.NDArray[np.intp]) -> float:
    """How many records that stand alone would tell a rate as well as these, which come in groups."""
    n, groups = len(values), len(np.unique(code))
    rate = float(values.mean())
    if groups == n:
        return float(n)
    if groups < 2 or not 0 < rate < 1:
        return float(groups)
    sums = np.bincount(code, weights=values - rate)
    clustered = float((sums**2).sum()) / n**2 * groups / (groups - 1)
    return n / max(1.0, clustered / (rate * (1 - rate) / n))


def _check(rate: float, q0: float, q1: float, n: float, m0: float, m1: float, level: float) -> None:
    if not all(0 <= value <= 1 for value in (rate, q0, q1)):
        raise InputError(f"pass rate, specificity and sensitivity lie in 0 to 1, not {rate:g}, {q0:g}, {q1:g}")
    if not all(count >= 1 for count in (n, m0, m1)):
        raise InputError(f"needs at least one record of each kind, not {n:g}, {m0:g}, {m1:g}")
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")


def _inferred(rate: float, q0: float, q1: float) -> float:
    return min(1.0, max(0.0, (rate + q0 - 1) / (q0 + q1 - 1)))


def _delta(rate: float, q0: float, q1: float, value: float, n: float, m0: float, m1: float) -> float:
    own = rate * (1 - rate) / n
    judge = (1 - value) ** 2 * q0 * (1 - q0) / m0 + value**2 * q1 * (1 - q1) / m1
    return math.sqrt(own + judge) / (q0 + q1 - 1)


def _shrunk(share: float, count: float) -> float:
    return (count * share + 1) / (count + 2)


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _student(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))
