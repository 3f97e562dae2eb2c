"""Bounds of a mean difference for a gate, one side at a time, and how many records would decide one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS
from jurimetrics.stats.flips import FLIPS, sign_flips
from jurimetrics.stats.paired import design_effect
from jurimetrics.stats.power import records_needed
from jurimetrics.stats.resampling import group_codes
from jurimetrics.stats.thresholds import clopper_pearson_upper

Numbers = npt.NDArray[np.float64]
Groups = Sequence[Any] | npt.NDArray[Any] | None
_EQUAL = 1e-9
"""Scores that differ only in the last digits of a float are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """A bound of each of K mean differences (NaN: none), and `why` there is none or what it rests on, "" for sign flips."""

    value: Numbers
    why: tuple[str, ...]


def lower_bounds(
    differences: Sequence[float] | Numbers,
    groups: Groups = None,
    spans: Sequence[float] | Numbers = (1.0,),
    level: float = 0.95,
    *,
    flips: int = FLIPS,
    seed: int = 0,
) -> Bounds:
    """Lower bounds of K mean differences, each alone: the chance that one lies above its mean is (1 - `level`) / 2.

    `differences`: n, or n x K (NaN: nothing is said of that record); `groups`: n names of what shares a source; `spans`:
    K widths of the metrics' ranges, which no difference can pass. The bound is the lower end of the interval of
    `sign_flips`. Two cases, in which the spread says nothing of what was not seen, rest on Clopper and Pearson instead:

    * fewer than 8 groups differ at all: at most the share u of all groups drops, by a span at most, where u is the upper
      bound for as many drops as were seen (u = 1 - ((1 - level) / 2)^(1/G) for none), times the largest group's size over
      the mean size; so, too, where none gains and at most half of them drop, by the largest drop seen: so lopsided are
      they that signs flipped understate it. The lower of both bounds holds;
    * no group differs from another: at most the share u for none has another difference than the one that was seen.

    No bound below 8 groups. Raises `InputError` as `sign_flips` does, and for spans that are not K numbers above 0.

    Sources: see `sign_flips`; Clopper and Pearson, Biometrika 26 (1934); Hanley and Lippman-Hand, "If nothing goes wrong,
    is everything all right?", JAMA 249 (1983).

    >>> lower_bounds([0.0] * 100).value.round(3), lower_bounds([0.0] * 400).value.round(3)
    (array([-0.036]), array([-0.009]))
    >>> lower_bounds([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.2, 0.2, 0.4, 0.0]).value.round(2)
    array([0.12])
    """
    table, widths = _table(differences, spans)
    codes, count = group_codes(groups, len(table))
    found = sign_flips(table, groups, level, flips=flips, seed=seed)
    value, why = np.full(len(widths), np.nan), []
    for at, span in enumerate(widths):
        seen = _seen(table[:, at], codes, count)
        reason = found.why[at]
        if seen.groups >= FEWEST_GROUPS:
            ends = float(found.low[at]), float(found.mean[at])
            value[at], reason = _low(ends, seen, float(span), level)
        why.append(reason)
    return Bounds(value, tuple(why))


def upper_bounds(
    differences: Sequence[float] | Numbers,
    groups: Groups = None,
    spans: Sequence[float] | Numbers = (1.0,),
    level: float = 0.95,
    *,
    flips: int = FLIPS,
    seed: int = 0,
) -> Bounds:
    """Upper bounds of K mean differences, all at once: the chance that any lies below its mean is (1 - `level`) / 2.

    As `lower_bounds`, but for its first case: a rare loss that was not seen makes a mean worse, never better. Each of the
    K bounds is at (1 - `level`) / 2K (Bonferroni), whatever goes together with what; of those whose groups are too few for
    that the span itself is the bound.

    >>> upper_bounds([0.0] * 100).value.round(3)
    array([0.036])
    >>> drops = np.array([[-1, -1], [0, -1]] * 10)
    >>> upper_bounds(drops, spans=(1, 1)).value.round(2)
    array([-0.22, -0.61])
    """
    table, widths = _table(differences, spans)
    codes, count = group_codes(groups, len(table))
    each = 1 - (1 - level) / len(widths)
    found = sign_flips(table, groups, each, flips=flips, seed=seed)
    value, why = np.full(len(widths), np.nan), []
    for at, span in enumerate(widths):
        seen = _seen(table[:, at], codes, count)
        reason = found.why[at]
        if seen.groups >= FEWEST_GROUPS:
            value[at] = found.high[at]
            if reason:
                value[at], reason = -_unseen(-float(found.mean[at]), seen, float(span), each), _SAME
            elif math.isnan(value[at]):
                value[at] = span
        why.append(reason)
    return Bounds(value, tuple(why))


_SAME = "no group differs from another; bounds by what may be unseen"
_RARE = "fewer than 8 groups differ; lower bound by what may be unseen"
_LOPSIDED = "no group gains; lower bound by how many may drop"


class _Seen(NamedTuple):
    """Of one column: groups with a value, how many of them drop and differ at all, largest drop of a record, largest over
    mean size of a group."""

    groups: int
    drops: int
    differ: int
    worst: float
    ratio: float


def _seen(column: Numbers, codes: npt.NDArray[np.intp], count: int) -> _Seen:
    there = ~np.isnan(column)
    sizes = np.bincount(codes[there], minlength=count)
    groups = int((sizes > 0).sum())
    drops = np.unique(codes[there & (column < -_EQUAL)])
    differ = np.unique(codes[there & (np.abs(column) > _EQUAL)])
    ratio = float(sizes.max()) * groups / float(sizes.sum()) if groups else 1.0
    return _Seen(groups, len(drops), len(differ), -float(column[there].min(initial=0.0)), ratio)


def _low(ends: tuple[float, float], seen: _Seen, span: float, level: float) -> tuple[float, str]:
    low, mean = ends
    if math.isnan(low):
        return _unseen(mean, seen, span, level), _SAME
    loss = _loss(seen, span)
    if loss is None:
        return low, ""
    share = min(1.0, clopper_pearson_upper(seen.drops, seen.groups, (1 - level) / 2) * seen.ratio)
    return min(low, -share * loss), _RARE if seen.differ < FEWEST_GROUPS else _LOPSIDED


def _loss(seen: _Seen, span: float) -> float | None:
    """How much a group that drops may lose, where the share of those that drop is what is known; None where the spread is."""
    if seen.differ < FEWEST_GROUPS:
        return span
    return seen.worst if seen.drops == seen.differ and 2 * seen.differ <= seen.groups else None


def _unseen(mean: float, seen: _Seen, span: float, level: float) -> float:
    """The lowest mean where all groups seen are alike and so many others may have gone unseen."""
    share = min(1.0, clopper_pearson_upper(0, seen.groups, (1 - level) / 2) * seen.ratio)
    return (1 - share) * mean - share * span


class Needed(NamedTuple):
    """How many records would decide (NaN: none would, or it cannot be told), and `supposing` which true difference:
    "no change", "as seen", or "" without a number."""

    records: float
    supposing: str


def records_to_decide(
    differences: Sequence[float] | Numbers,
    groups: Groups,
    span: float,
    margin: float,
    *,
    level: float = 0.95,
    power: float = 0.8,
) -> Needed:
    """Paired records after which a gate of this margin would probably decide, from the spread seen.

    With so many a version that changed nothing passes with the chance `power`, and one that is worse by twice the margin
    fails with it ("no change": the paired t test for `margin` at 1 - `level`, two-sided, times the design effect of the
    groups; where no loss was seen and fewer than 8 groups differ at least as many as the bound on unseen ones takes). If
    there are so many already, what was seen lies near the margin: the number for which a true difference as large as the one
    seen would be told from it, or losses as rare as those seen be shown to be rare enough ("as seen").

    NaN below 8 groups, for a margin of 0 without a difference, and where the difference seen is the margin itself.

    >>> wavering = [0.3, -0.3, 0.1, -0.1, 0.2, -0.2, 0.0, 0.0] * 5
    >>> found = records_to_decide(wavering, None, 1.0, 0.05)
    >>> math.ceil(found.records), found.supposing
    (115, 'no change')
    >>> math.ceil(records_to_decide([0.0] * 100, None, 1.0, 0.02).records)
    183
    """
    values = np.asarray(differences, dtype=np.float64)
    there = values[~np.isnan(values)]
    codes, count = group_codes(groups, len(values))
    seen = _seen(values, codes, count)
    if seen.groups < FEWEST_GROUPS:
        return Needed(math.nan, "")
    effect, spread = design_effect(values, groups), float(there.std(ddof=1))

    def planned(distance: float) -> float:
        if distance <= _EQUAL:
            return math.nan
        if math.isnan(effect) or spread <= _EQUAL:
            return 0.0
        return records_needed(spread, distance, alpha=1 - level, power=power, design_effect=effect)

    plan, rare = planned(margin), math.nan
    loss = span if math.isnan(effect) else _loss(seen, span)
    if loss is not None:
        rare = _groups_for_share(seen, margin / loss / seen.ratio, level) * len(there) / seen.groups
    # Without any loss seen the bound on those unseen is part of the plan; else what was seen of them decides.
    plan = max(plan, rare) if not seen.drops else plan
    if plan > len(there):
        return Needed(plan, "no change")
    apart = rare if rare > len(there) else planned(abs(float(there.mean()) + margin))
    return Needed(apart, "as seen") if apart > len(there) else Needed(math.nan, "")


def _groups_for_share(seen: _Seen, share: float, level: float) -> float:
    """How many groups show that less than `share` of all drop, if as large a part drops as was seen; NaN: none do."""
    rate = seen.drops / seen.groups
    if not rate < share < 1:
        return math.nan
    if not rate:
        return math.log((1 - level) / 2) / math.log1p(-share)
    from scipy.optimize import brentq
    from scipy.stats import beta

    def over(groups: float) -> float:
        return float(beta.ppf((1 + level) / 2, rate * groups + 1, (1 - rate) * groups)) - share

    most = 2.0 * seen.groups
    while over(most) > 0:
        most *= 2
    return float(brentq(over, 1.0, most)) if over(1.0) > 0 else 1.0


def _table(differences: Any, spans: Any) -> tuple[Numbers, Numbers]:
    table = np.asarray(differences, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    widths = np.asarray(spans, dtype=np.float64)
    if widths.shape != (table.shape[1],) or not (widths > 0).all():
        raise InputError(f"spans: expected {table.shape[1]} numbers above 0, found {spans!r}")
    return table, widths
