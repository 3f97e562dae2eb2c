"""One metric and one judge as arrays: what is compared, and the statistics of every comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from jurimetrics.stats.agreement import alpha_formula, gwet_formula
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.icc import icc_formula
from jurimetrics.stats.kappa import Formula, confusion_table, kappa_formula, one_class, one_sided, raw_formula
from jurimetrics.stats.ranks import (
    Kind,
    Level,
    Systems,
    both_drawn,
    estimate_between,
    mean_of_groups,
    pooled_statistic,
    why_constant,
    why_not_within,
    within_each,
)
from jurimetrics.stats.ratings import off_scale
from jurimetrics.stats.resampling import Draws, Statistic, average, cells_of, estimate, noted, restricted, undefined

Numbers = npt.NDArray[np.float64]
Codes = tuple[npt.NDArray[np.intp], int]
Used = npt.NDArray[np.bool_]
CORRELATIONS: tuple[Kind, ...] = ("spearman", "kendall", "pearson")
ON_SCALE = ("raw_agreement", "kappa", "kappa_linear", "kappa_quadratic", "ac1", "ac2_quadratic")
ALPHAS = ("alpha_nominal", "alpha_ordinal", "alpha_interval")
PAIRWISE = ON_SCALE + ALPHAS


@dataclass(frozen=True, slots=True)
class Sheet:
    """The labelled rows of one metric that one judge scored, n of them, in arrays.

    `score` (n); `raters` (R x n, NaN not rated); `gold` their mean (n); `groups` and `systems`, codes from 0 and how
    many; `weights` (n) or None; `scale`, the steps or None where they are not whole, `no_scale` then says why.
    """

    score: Numbers
    raters: Numbers
    gold: Numbers
    groups: Codes
    systems: Codes
    weights: Numbers | None
    scale: tuple[float, ...] | None
    no_scale: str


@dataclass(frozen=True, slots=True)
class Part:
    """A statistic that is there for some comparisons: their mean, how many are `left_out` for having no value, and,
    where none has one, `why` (then `statistic` is None). `used` are the groups that have to do with it (None: all)."""

    statistic: Statistic | None
    why: str = ""
    left_out: int = 0
    of: int = 1
    note: str = ""
    used: Used | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """How parts become estimates: at which `level`, with which confidence, from which draws."""

    level: Level
    confidence: float
    resamples: int
    seed: int
    kept: dict[tuple[int, int], Draws] = field(default_factory=dict)

    def estimate(
        self, sheet: Sheet, part: Part, said: str, bounds: tuple[float, float] | None = (-1.0, 1.0)
    ) -> Estimate:
        """The estimate of one part over the groups of the sheet; undefined in words where there is none."""
        n = len(sheet.score)
        if part.statistic is None:
            return undefined(f"{said}: {part.why}", n, self.confidence)
        statistic, count = _of_used(part.statistic, part.used, sheet.groups[1])
        found = estimate(
            statistic,
            count,
            n,
            said,
            why="a side does not vary",
            level=self.confidence,
            draws=self._draws(count),
            bounds=bounds,
        )
        return noted(found, *_left_out(part), part.note)

    def correlation(self, sheet: Sheet, part: Part, said: str, bounds: tuple[float, float] = (-1.0, 1.0)) -> Estimate:
        """The same for a correlation, at the level asked for."""
        n, count = len(sheet.score), sheet.groups[1]
        if part.statistic is None:
            return undefined(f"{said}: {part.why}", n, self.confidence)
        if self.level == "system":
            systems = sheet.systems[1]
            draws = self._draws(count, systems)
            found = estimate_between(part.statistic, count, systems, f"{said} between systems", draws, self.confidence)
        elif self.level == "group":
            statistic, count = _of_used(part.statistic, part.used, count)
            found = estimate(
                statistic,
                count,
                count,
                f"mean {said} within groups",
                why="no group has a correlation",
                level=self.confidence,
                bounds=bounds,
                always_t=True,
                unit="group",
            )
        else:
            return self.estimate(sheet, part, said, bounds)
        return noted(found, *_left_out(part), part.note)

    def _draws(self, groups: int, systems: int = 0) -> Draws:
        if (groups, systems) not in self.kept:
            drawn = both_drawn(groups, systems, self.resamples, self.seed) if systems else None
            self.kept[groups, systems] = drawn or Draws.make(groups, self.resamples, self.seed)
        return self.kept[groups, systems]


def judge_pairs(sheet: Sheet) -> dict[str, Part]:
    """Each statistic of two raters, of the judge with every rater in turn, averaged."""
    return _pairwise(sheet, [(sheet.score, one) for one in sheet.raters], sheet.no_scale)


def human_pairs(sheet: Sheet) -> dict[str, Part]:
    """The same of every two raters."""
    return _pairwise(sheet, list(combinations(sheet.raters, 2)), _off(sheet.raters, sheet.scale))


def judge_with_gold(sheet: Sheet, level: Level) -> dict[Kind, Part]:
    """The correlations of the judge with the mean of the raters."""
    return _correlated(sheet, sheet.score, sheet.gold, level)


def with_others(sheet: Sheet, level: Level, judge: bool) -> dict[Kind, Part]:
    """The correlations with the mean of all raters but one, averaged over who is left out: of the judge, or of the rater
    left out, on the same rows."""
    if len(sheet.raters) < 2:
        return dict.fromkeys(CORRELATIONS, Part(None, "one rater only, two are needed"))
    there = ~np.isnan(sheet.raters)
    total, many = np.where(there, sheet.raters, 0.0).sum(axis=0), there.sum(axis=0)
    found: dict[Kind, list[Part]] = {kind: [] for kind in CORRELATIONS}
    for rater, present in zip(sheet.raters, there, strict=True):
        use = present & (many >= 2)
        if not use.any():
            continue
        others = np.full(len(total), np.nan)
        others[use] = (total[use] - rater[use]) / (many[use] - 1)
        mine = np.where(use, sheet.score if judge else rater, np.nan)
        for kind, part in _correlated(sheet, mine, others, level).items():
            found[kind].append(part)
    if not found["spearman"]:
        return dict.fromkeys(CORRELATIONS, Part(None, "no record has two raters"))
    return {kind: _averaged(parts) for kind, parts in found.items()}


def reliability(sheet: Sheet) -> Part:
    """ICC(2,1) of judge and mean rater: absolute agreement of single scores."""
    table = np.vstack([sheet.score, sheet.gold])
    if np.ptp(table) == 0:
        return Part(None, f"nothing varies, all are {table[0, 0]:g}")
    return Part(cells_of(table, *sheet.groups, sheet.weights).statistic(icc_formula("2,1")))


def skipped_groups(sheet: Sheet) -> tuple[int, int]:
    """How many groups have a correlation of judge and mean rater, and how many have none since a side is constant."""
    each = within_each(cells_of(np.vstack([sheet.score, sheet.gold]), *sheet.groups), "pearson")
    skipped = int(np.isnan(each).sum())
    return len(each) - skipped, skipped


def _formulas(scale: Sequence[float] | None) -> Mapping[str, Callable[[], Formula]]:
    steps = scale or (0.0, 1.0)
    return {
        "raw_agreement": raw_formula,
        "kappa": lambda: kappa_formula(steps),
        "kappa_linear": lambda: kappa_formula(steps, "linear"),
        "kappa_quadratic": lambda: kappa_formula(steps, "quadratic"),
        "ac1": lambda: gwet_formula(steps),
        "ac2_quadratic": lambda: gwet_formula(steps, "quadratic"),
        "alpha_nominal": lambda: alpha_formula("nominal"),
        "alpha_ordinal": lambda: alpha_formula("ordinal"),
        "alpha_interval": lambda: alpha_formula("interval"),
    }


def _pairwise(sheet: Sheet, pairs: list[tuple[Numbers, Numbers]], no_scale: str) -> dict[str, Part]:
    if not pairs:
        return dict.fromkeys(PAIRWISE, Part(None, "one rater only, two are needed"))
    parts: dict[str, list[Part]] = {name: [] for name in PAIRWISE}
    for first, second in pairs:
        both = ~np.isnan(first) & ~np.isnan(second)
        if not both.any():
            continue
        columns = np.vstack([first, second])[:, both]
        mass = None if sheet.weights is None else sheet.weights[both]
        cells = cells_of(columns, sheet.groups[0][both], sheet.groups[1], mass)
        used = _present(sheet.groups[0][both], sheet.groups[1])
        why, note = _why_not(columns, mass, None if no_scale else sheet.scale)
        for name, formula in _formulas(sheet.scale).items():
            if no_scale and name in ON_SCALE:
                parts[name].append(Part(None, no_scale))
            elif why and name not in ("raw_agreement", "ac1", "ac2_quadratic"):
                parts[name].append(Part(None, why))
            else:
                told = note if name.startswith("kappa") else ""
                parts[name].append(Part(cells.statistic(formula()), note=told, used=used))
    return {name: _averaged(found) if found else Part(None, "no pairs") for name, found in parts.items()}


def _why_not(columns: Numbers, mass: Numbers | None, scale: tuple[float, ...] | None) -> tuple[str, str]:
    """Why kappa and alpha do not exist for two columns, and what to say beside a kappa that does."""
    if np.ptp(columns) == 0:
        return one_class(columns[0, 0], columns.shape[1]), ""
    return "", "" if scale is None else one_sided(confusion_table(columns[0], columns[1], scale, mass))


def _correlated(sheet: Sheet, first: Numbers, second: Numbers, level: Level) -> dict[Kind, Part]:
    """The three correlations of two columns (NaN: not rated) at one level."""
    both = ~np.isnan(first) & ~np.isnan(second)
    pair = np.vstack([first, second])[:, both]
    mass = None if sheet.weights is None else sheet.weights[both]
    codes, count = sheet.groups[0][both], sheet.groups[1]
    if level == "system":
        return _of_systems(pair, (codes, count), (sheet.systems[0][both], sheet.systems[1]), mass)
    cells = cells_of(pair, codes, count, mass)
    if level == "pooled":
        if min(np.ptp(side) for side in pair) == 0:
            return dict.fromkeys(CORRELATIONS, Part(None, why_constant(pair)))
        present = _present(codes, count)
        return {kind: Part(pooled_statistic(cells, kind), used=present) for kind in CORRELATIONS}
    rows = np.bincount(codes, minlength=count)
    # A group stands for as many as its rows do on average.
    weights = None if mass is None else np.bincount(codes, weights=mass, minlength=count) / np.maximum(rows, 1)
    found = {}
    for kind in CORRELATIONS:
        each = within_each(cells, kind)
        there = ~np.isnan(each)
        found[kind] = (
            Part(mean_of_groups(each, weights), used=there) if there.any() else Part(None, why_not_within(codes, count))
        )
    return found


def _of_systems(pair: Numbers, groups: Codes, systems: Codes, mass: Numbers | None) -> dict[Kind, Part]:
    if systems[1] < 3:
        many = f"{systems[1]} variant{'' if systems[1] == 1 else 's'}"
        return dict.fromkeys(CORRELATIONS, Part(None, f"{many}, 3 are needed to compare systems"))
    sums = Systems.of(pair, groups, systems, mass)
    statistics = {kind: sums.statistic(kind) for kind in CORRELATIONS}
    if np.isnan(statistics["spearman"].all_groups(groups[1] + systems[1])):
        return dict.fromkeys(CORRELATIONS, Part(None, "the systems' means of one side do not vary"))
    return {kind: Part(statistic) for kind, statistic in statistics.items()}


def _averaged(parts: list[Part]) -> Part:
    there = [part for part in parts if part.statistic is not None]
    if not there:
        return Part(None, parts[0].why, len(parts), len(parts))
    notes = list(dict.fromkeys(part.note for part in there if part.note))
    statistics = [part.statistic for part in there if part.statistic is not None]
    return Part(average(statistics), "", len(parts) - len(there), len(parts), notes[0] if notes else "", united(there))


def _of_used(statistic: Statistic, used: Used | None, count: int) -> tuple[Statistic, int]:
    return (statistic, count) if used is None else (restricted(statistic, used), int(used.sum()))


def united(parts: Sequence[Part]) -> Used | None:
    """The groups that have to do with any of `parts`; None where that is all of them."""
    known = [part.used for part in parts if part.statistic is not None]
    some = [one for one in known if one is not None]
    return np.logical_or.reduce(some) if some and len(some) == len(known) else None


def _present(codes: npt.NDArray[np.intp], count: int) -> Used:
    return np.bincount(codes, minlength=count) > 0


def _left_out(part: Part) -> list[str]:
    if not part.left_out:
        return []
    return [f"mean of {part.of - part.left_out} of {part.of} comparisons, the others are undefined"]


def _off(values: Numbers, scale: tuple[float, ...] | None) -> str:
    """Why a column is no list of steps; blank where it is."""
    if scale is None:
        return "the metric's scale has no whole steps"
    strange = off_scale(values.reshape(-1), scale)
    return "" if strange is None else f"a label of {strange:g} is no whole step of the scale"


def why_off_scale(score: Numbers, raters: Numbers, scale: tuple[float, ...] | None, repeated: bool) -> str:
    """Why a judge's scores and the labels are not compared step by step; blank where they can be.

    >>> why_off_scale(np.array([1.5]), np.array([[1.0]]), (1.0, 2.0), repeated=True)
    'a score of 1.5 is no whole step of the scale (repeats are averaged); see correlations and ICC'
    """
    if scale is None:
        return "the metric's scale has no whole steps; see correlations and ICC"
    strange = off_scale(score, scale)
    if strange is not None:
        averaged = " (repeats are averaged)" if repeated else ""
        return f"a score of {strange:.4g} is no whole step of the scale{averaged}; see correlations and ICC"
    return _off(raters, scale)
