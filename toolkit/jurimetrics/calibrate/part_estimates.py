"""Shares, ratios and agreement of parts of answers (claims, stretches), with intervals by the answers' groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.agreement import gwet_ac
from jurimetrics.stats.estimate import Estimate, share_estimate
from jurimetrics.stats.kappa import cohen_kappa
from jurimetrics.stats.resampling import Statistic, estimate, group_codes, undefined

Numbers = npt.NDArray[np.float64]


class Line(Protocol):
    """A judge, or a person, held against a rater."""

    @property
    def judge(self) -> str: ...
    @property
    def rater(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def estimates(self) -> Mapping[str, Estimate]: ...


L = TypeVar("L", bound=Line)


def line_of(lines: Sequence[L], judge: str | None, rater: str | None) -> L:
    """The line of a judge and a rater, who may be left out where there is one. Raises `InputError` otherwise.

    >>> line_of([], "ann", None)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: 0 lines for judge 'ann', rater None; there are: none
    """
    found = [
        one
        for one in lines
        if (one.judge == judge if judge is not None else one.kind != "person") and rater in (None, one.rater)
    ]
    if len(found) != 1:
        known = ", ".join(f"{one.judge} beside {one.rater}" for one in lines) or "none"
        raise InputError(f"{len(found)} lines for judge {judge!r}, rater {rater!r}; there are: {known}")
    return found[0]


def estimate_of(lines: Sequence[Line], name: str, judge: str | None, rater: str | None) -> Estimate:
    """One estimate of `line_of` by its name. Raises `InputError` for a name that is not there.

    >>> estimate_of([], "recall", None, None)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: 0 lines for judge None, rater None; there are: none
    """
    line = line_of(lines, judge, rater)
    if name not in line.estimates:
        raise InputError(f"no estimate {name!r}; there are: {', '.join(line.estimates)}")
    return line.estimates[name]


def share(hits: Sequence[bool], groups: Sequence[Any], said: str, why: str, level: float) -> Estimate:
    """The share of `hits`, by group; undefined, and `why`, where there are none to hit.

    >>> print(share([True, False], ["a", "b"], "recall", "no claims", 0.95))
    0.50 (recall; no interval: 2 rows, 8 are needed)
    """
    if not hits:
        return undefined(f"{said}: {why}", 0, level)
    found = share_estimate([float(hit) for hit in hits], groups, level)
    return replace(found, method=found.method.replace("share;", f"{said};", 1))


def ratio(above: Numbers, below: Numbers, groups: Sequence[Any], said: str, why: str, level: float) -> Estimate:
    """The sum of `above` over the sum of `below` (n numbers each, one of an answer), 0 to 1, by group.

    Groups that add nothing below say nothing of it and are left aside. `n` counts the answers that add something.

    >>> print(ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]), ["a", "b"], "precision", "nothing marked", 0.95))
    0.50 (precision; no interval: 2 rows, 8 are needed)
    """
    use = below > 0
    if not use.any():
        return undefined(f"{said}: {why}", 0, level)
    n = int(use.sum())
    codes, count = group_codes([group for group, one in zip(groups, use, strict=True) if one], n)
    sums = np.zeros((count, 2))
    np.add.at(sums, codes, np.column_stack([above[use], below[use]]))

    def of(times: Numbers) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(drawn[:, 0] / drawn[:, 1])

    return estimate(Statistic(of, 2), count, n, said, why=why, level=level, bounds=(0.0, 1.0))


def harmonic(
    first: tuple[Numbers, Numbers],
    second: tuple[Numbers, Numbers],
    groups: Sequence[Any],
    said: str,
    why: str,
    level: float,
) -> Estimate:
    """The harmonic mean of two ratios (F1 of precision and recall), each given as what stands above and below.

    0 where both are 0; undefined where one is.

    >>> hits, marked = np.array([1.0, 1.0]), np.array([1.0, 3.0])
    >>> print(harmonic((hits, marked), (hits, hits), ["a", "b"], "F1", "nothing marked", 0.95))
    0.67 (F1; no interval: 2 rows, 8 are needed)
    """
    columns = np.column_stack([*first, *second])
    use = columns[:, [1, 3]].sum(axis=1) > 0
    n = int(use.sum())
    codes, count = group_codes([group for group, one in zip(groups, use, strict=True) if one], n)
    sums = np.zeros((count, 4))
    np.add.at(sums, codes, columns[use])

    def of(times: Numbers) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            one, other = drawn[:, 0] / drawn[:, 1], drawn[:, 2] / drawn[:, 3]
            return np.asarray(np.where((one == 0) & (other == 0), 0.0, 2 * one * other / (one + other)))

    return estimate(Statistic(of, 4), count, n, said, why=why, level=level, bounds=(0.0, 1.0))


def chance_corrected(
    first: Sequence[float],
    second: Sequence[float],
    scale: Sequence[float],
    groups: Sequence[Any],
    why: str,
    level: float,
) -> dict[str, Estimate]:
    """`raw_agreement`, `kappa` and `ac1` of n pairs of verdicts, by group; undefined, and `why`, without a pair.

    >>> chance_corrected([1, 0, 1], [1, 0, 0], (0, 1), "abc", "no pair", 0.95)["kappa"].value
    0.4
    """
    if not first:
        return {name: undefined(why, 0, level) for name in ("raw_agreement", "kappa", "ac1")}
    equal = [one == other for one, other in zip(first, second, strict=True)]
    return {
        "raw_agreement": share(equal, groups, "raw agreement", why, level),
        "kappa": cohen_kappa(first, second, scale, groups=list(groups), level=level),
        "ac1": gwet_ac([list(first), list(second)], scale, groups=list(groups), level=level),
    }


def kind_of(judge: str, settings: Mapping[str, Any]) -> str:
    """Whether a judge is the "panel", the "baseline" or another "judge".

    >>> kind_of("ann", {"panel": None, "judges": {"ann": {"kind": "chat"}}})
    'judge'
    """
    if judge == (settings.get("panel") or {}).get("name"):
        return "panel"
    return "baseline" if settings.get("judges", {}).get(judge, {}).get("kind") == "baseline" else "judge"


def flat(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Estimates as columns: the value under its name (NaN where there is none), `_low`, `_high`, `_n`, `_method`.

    >>> flat({"recall": undefined("no claims", 0)})["recall_method"]
    'undefined: no claims'
    """
    found: dict[str, Any] = {}
    for name, one in estimates.items():
        numbers = {"": one.value, "_low": one.low, "_high": one.high}
        found |= {f"{name}{ending}": np.nan if number is None else number for ending, number in numbers.items()}
        found |= {f"{name}_n": one.n, f"{name}_method": one.method}
    return found


def short(found: Estimate) -> str:
    """An estimate in a cell of a table.

    >>> short(Estimate(0.5, 0.25, 0.75, 0.95, 10, "t")), short(undefined("no claims", 0))
    ('0.50 [0.25, 0.75]', '-')
    """
    if found.value is None:
        return "-"
    return f"{found.value:.2f}" + ("" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]")
