"""Which of all panels that some judges could make is worth its money: loss against cost, and the best one tried anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.maps import weighted_mean
from jurimetrics.stats.products import product
from jurimetrics.stats.resampling import Draws, group_codes

Numbers = npt.NDArray[np.float64]
Groups = Sequence[Any] | npt.NDArray[Any]
Loss = Literal["error_rate", "squared_error", "absolute_error"]
LOSSES: tuple[Loss, ...] = ("error_rate", "squared_error", "absolute_error")
PanelRule = Literal["mean", "median"]
MOST_JUDGES = 10
"""Their 1,023 panels can be looked at one by one."""
_RESAMPLES = 200
"""How often groups are drawn for the interval of a held-out loss."""


class PanelChoice(NamedTuple):
    """One panel: the places of its `members`, its mean `loss` on the labelled records, its `cost` for a record (NaN:
    unknown), and whether no other panel is as good and cheaper, or better and as cheap (None where its cost is unknown)."""

    members: tuple[int, ...]
    loss: float
    cost: float
    efficient: bool | None


class Size(NamedTuple):
    """The best panel of each size: its `members`; `loss` on the records it was chosen on; `held_out`, the loss of choosing
    so on records that had no part in it; `less`, by how much that is below the held-out loss of one judge fewer (None
    for the first); `average`, the mean loss of all panels of this size."""

    size: int
    members: tuple[int, ...]
    loss: float
    held_out: Estimate
    less: Estimate | None
    average: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """All panels, the cheapest first; the `winner` among them with what choosing it so is worth on other records
    (`held_out`), and how often each panel won in the folds (`chosen`: members -> folds)."""

    panels: tuple[PanelChoice, ...]
    winner: PanelChoice
    held_out: Estimate
    chosen: dict[tuple[int, ...], int]
    sizes: tuple[Size, ...]


def panel_losses(
    scores: Numbers, labels: Numbers, members: Sequence[int], loss: Loss, rule: PanelRule = "mean"
) -> Numbers:
    """The loss of a panel on each of N records; NaN where half of its members or more gave no score, or without a label.

    `scores`: J x N. "error_rate" takes scores and labels as shares of 1: 1 where panel and label are on different sides
    of a half, half where the panel is undecided. Other losses are in the unit of the scores, or its square.

    >>> panel_losses(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]), (0, 1), "error_rate").tolist()
    [0.5, 0.0]
    """
    mine = scores[list(members)]
    there = ~np.isnan(mine)
    n = there.sum(axis=0)
    enough = 2 * n > len(mine)
    said = np.full(scores.shape[1], np.nan)
    if rule == "mean":
        said[enough] = np.where(there, mine, 0.0).sum(axis=0)[enough] / n[enough]
    else:
        said[enough] = np.nanmedian(mine[:, enough], axis=0) if enough.any() else said[enough]
    if loss == "error_rate":
        side = np.where(np.abs(said - 0.5) < 1e-9, 0.5, (said > 0.5).astype(np.float64))
        return np.where(np.isnan(said) | np.isnan(labels), np.nan, np.abs(side - (labels > 0.5)))
    off = said - labels
    return off**2 if loss == "squared_error" else np.abs(off)


def frontier(
    scores: Numbers,
    labels: Sequence[float] | Numbers,
    costs: Sequence[float] | Numbers,
    groups: Groups | None = None,
    *,
    loss: Loss = "absolute_error",
    rule: PanelRule = "mean",
    weights: Numbers | None = None,
    most: float | None = None,
    folds: int = 10,
    level: float = 0.95,
) -> Frontier:
    """Every panel that J judges can make: what it costs and how far it is from people.

    `scores`: J x N (NaN: not scored); `labels`: N; `costs`: J, of one record (NaN: unknown). All panels are compared on
    the same records: those labelled and scored by every judge. `most` is the dearest panel that may win. The winner has
    the least loss, of equally good ones the cheapest, then the smallest, then the first judges. Being the best of many
    flatters it, so its worth is `held_out`: in each fold of whole groups the panel that wins on the other folds. Its
    interval is for the loss of the winner on other records: winners are chosen and held out anew in 200 resamples of
    whole groups, and t is taken over the spread of what the held-out loss then misses the winner's by, which holds what
    choosing adds (.97 to .99 in simulations at .95; t over the held-out losses alone .85 to .92). `weights`: how many
    records each stands for.

    Raises `InputError` for no or more than 10 judges, another loss or rule, lengths that differ, no record that all
    judges scored, and no panel that costs at most `most`.

    >>> truth = np.array([0.0, 1.0] * 20)
    >>> noisy = np.where(np.arange(40) % 5 == 0, 1 - truth, truth)
    >>> found = frontier(np.array([noisy, truth]), truth, [0.1, 1.0], loss="error_rate")
    >>> found.winner.members, found.held_out.value, [one.efficient for one in found.panels]
    ((1,), 0.0, [True, True, False])
    """
    table, told = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    price = np.asarray(costs, dtype=np.float64)
    _check(table, told, price, loss, rule)
    use = ~np.isnan(table).any(axis=0) & ~np.isnan(told)
    if not use.any():
        raise InputError("no labelled record was scored by every judge")
    mass = np.ones(int(use.sum())) if weights is None else np.asarray(weights, dtype=np.float64)[use]
    names = np.flatnonzero(use) if groups is None else np.asarray(groups, dtype=object)[use]
    fold = fold_codes(names, folds)
    made = _Made.of(table[:, use], told[use], price, loss, rule, mass, fold)
    allowed = np.arange(len(made.members)) if most is None else np.flatnonzero(made.cost <= most + 1e-12)
    if not len(allowed):
        raise InputError(f"no panel costs at most {most:g}; the cheapest costs {np.nanmin(made.cost):g}")
    whole = made.sums.sum(axis=1) / mass.sum()
    efficient = _efficient(whole, made.cost)
    panels = [
        PanelChoice(one, float(whole[at]), float(made.cost[at]), efficient[at]) for at, one in enumerate(made.members)
    ]
    picked = made.picked(allowed)
    told_by = None if weights is None else mass
    resamples = _Resamples.of(made, names, mass)
    held_out = resamples.widened(weighted_mean(made.taken(picked), told_by, names, level), allowed, whole)
    chosen = [made.members[at] for at in picked]
    order = sorted(range(len(panels)), key=lambda at: (math.isnan(made.cost[at]), made.cost[at], at))
    return Frontier(
        tuple(panels[at] for at in order),
        panels[made.best(whole, allowed)],
        held_out,
        {one: chosen.count(one) for one in dict.fromkeys(chosen)},
        tuple(_sizes(made, whole, len(table), told_by, names, level, resamples)),
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """The losses of all panels by record, with their weighted sums by fold (panels x folds)."""

    members: tuple[tuple[int, ...], ...]
    losses: Numbers
    cost: Numbers
    sums: Numbers
    masses: Numbers
    fold: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls, table: Numbers, told: Numbers, price: Numbers, loss: Loss, rule: PanelRule, mass: Numbers, fold: Any
    ) -> _Made:
        judges = range(len(table))
        members = tuple(one for size in judges for one in combinations(judges, size + 1))
        losses = np.stack([panel_losses(table, told, one, loss, rule) for one in members])
        cost = np.array([math.fsum(price[list(one)]) for one in members])
        parts = np.eye(int(fold.max()) + 1)[fold] * mass[:, None]
        return cls(members, losses, cost, losses @ parts, parts.sum(axis=0), fold)

    def best(self, loss: Numbers, allowed: npt.NDArray[np.intp]) -> int:
        """The place of the winner among `allowed`, given the loss of all."""
        slack = float(loss[allowed].min()) + 1e-12
        good = [int(at) for at in allowed if loss[at] <= slack]
        return min(good, key=self.preference)

    def preference(self, at: int) -> tuple[bool, float, int, int]:
        """Of equally good panels the one with the least of this wins."""
        cost = float(self.cost[at])
        return math.isnan(cost), 0.0 if math.isnan(cost) else cost, len(self.members[at]), int(at)

    def picked(self, allowed: npt.NDArray[np.intp]) -> list[int]:
        """For each fold the winner on all others; where there is one fold only, nothing is held out."""
        rest = self.masses.sum() - self.masses
        return [
            self.best((self.sums.sum(axis=1) - self.sums[:, one]) / rest[one], allowed)
            for one in range(len(rest))
            if rest[one] > 0
        ]

    def taken(self, picked: Sequence[int]) -> Numbers:
        """The loss of each record under its own fold's pick; NaN where there is none."""
        if not picked:
            return np.full(self.losses.shape[1], np.nan)
        return np.asarray(self.losses[np.array(picked)[self.fold], np.arange(self.losses.shape[1])])


@dataclass(frozen=True, slots=True)
class _Resamples:
    """Sums of the losses (B x folds x panels) and of the weights (B x folds) in resamples of whole groups."""

    made: _Made
    groups: int
    sums: Numbers
    masses: Numbers

    @classmethod
    def of(cls, made: _Made, names: Any, mass: Numbers) -> _Resamples:
        codes, count = group_codes(names, len(mass))
        times = Draws.make(count, _RESAMPLES).times.astype(np.float64)
        folds = np.zeros(count, dtype=np.intp)
        folds[codes] = made.fold
        sums = np.empty((len(times), int(made.fold.max()) + 1, len(made.members)))
        masses = np.empty(sums.shape[:2])
        for fold in range(sums.shape[1]):
            mine = folds == fold
            part = np.flatnonzero(mine[codes])
            place = np.cumsum(mine)[codes[part]] - 1
            table = np.zeros((int(mine.sum()), len(made.members) + 1))
            np.add.at(table, place, np.column_stack([made.losses[:, part].T, np.ones(len(part))]) * mass[part, None])
            drawn = product(times[:, mine], table)
            sums[:, fold], masses[:, fold] = drawn[:, :-1], drawn[:, -1]
        return cls(made, count, sums, masses)

    def widened(self, held_out: Estimate, allowed: npt.NDArray[np.intp], whole: Numbers) -> Estimate:
        """`held_out` with t over the spread of what it misses the winner's loss by when groups are drawn anew."""
        if held_out.low is None or held_out.value is None or self.sums.shape[1] < 2:
            return held_out
        from scipy.special import stdtrit

        preferred = np.array(sorted(allowed, key=self.made.preference))
        total, mass = self.sums.sum(axis=1), self.masses.sum(axis=1)
        taken = np.zeros(len(total))
        for fold in range(self.sums.shape[1]):
            rest = mass - self.masses[:, fold]
            others = (total - self.sums[:, fold]) / np.where(rest > 0, rest, 1.0)[:, None]
            taken += self.sums[np.arange(len(total)), fold, _least(others, preferred)]
        errors = taken / mass - whole[_least(total / mass[:, None], preferred)]
        error = float(errors.std(ddof=1))
        half = float(stdtrit(self.groups - 1, 0.5 + held_out.level / 2)) * error
        method = f"{held_out.method.split(';')[0]}; t over {self.groups} groups, chosen anew in {len(errors)} resamples"
        return replace(held_out, low=held_out.value - half, high=held_out.value + half, method=method)


def _least(losses: Numbers, preferred: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """In each row the place of the least loss among `preferred`; of equal ones the first of these."""
    mine = losses[:, preferred]
    return np.asarray(preferred[np.argmax(mine <= mine.min(axis=1, keepdims=True) + 1e-12, axis=1)])


def _sizes(
    made: _Made, whole: Numbers, judges: int, mass: Numbers | None, names: Any, level: float, resamples: _Resamples
) -> list[Size]:
    found: list[Size] = []
    before: Numbers | None = None
    for size in range(1, judges + 1):
        allowed = np.array([at for at, one in enumerate(made.members) if len(one) == size])
        taken = made.taken(made.picked(allowed))
        less = None if before is None else weighted_mean(before - taken, mass, names, level)
        best = made.best(whole, allowed)
        held_out = resamples.widened(weighted_mean(taken, mass, names, level), allowed, whole)
        found.append(Size(size, made.members[best], float(whole[best]), held_out, less, float(whole[allowed].mean())))
        before = taken
    return found


def _efficient(loss: Numbers, cost: Numbers) -> list[bool | None]:
    found: list[bool | None] = []
    for at in range(len(loss)):
        if math.isnan(cost[at]):
            found.append(None)
            continue
        near, cheap = loss <= loss[at] + 1e-12, cost <= cost[at] + 1e-12
        better = near & cheap & ((loss < loss[at] - 1e-12) | (cost < cost[at] - 1e-12))
        found.append(not bool(better.any()))
    return found


def _check(table: Numbers, told: Numbers, price: Numbers, loss: str, rule: str) -> None:
    if loss not in LOSSES or rule not in ("mean", "median"):
        raise InputError(f"a loss is one of {', '.join(LOSSES)} and a rule mean or median, not {loss!r} and {rule!r}")
    if table.ndim != 2 or table.shape != (len(price), len(told)):
        raise InputError(f"{table.shape} scores, {len(price)} costs, {len(told)} labels do not go together")
    if not 1 <= len(table) <= MOST_JUDGES:
        raise InputError(f"all panels of {len(table)} judges are too many to compare; choose 1 to {MOST_JUDGES}")
    if (price < 0).any():
        raise InputError("a cost is below 0")
