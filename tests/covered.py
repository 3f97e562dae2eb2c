"""Raters whose agreement is known, drawn a thousand times over, and how often intervals hold it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jurimetrics.stats.agreement import alpha_formula, gwet_formula
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.icc import icc_formula, of_the_mean
from jurimetrics.stats.kappa import kappa_formula, raw_formula
from jurimetrics.stats.ranks import pooled_statistic
from jurimetrics.stats.resampling import Cells, Draws, Statistic, average, cells_of, estimate, minus

RUNS = 2000
Array = np.ndarray[Any, Any]
Random = np.random.Generator
Made = Callable[[Cells], Statistic]


class Raters(NamedTuple):
    """Ratings of `groups`, `each` rows in every one, on `scale`: `cuts` between the steps of what they see.

    `shared` is how far raters err together in a group, `own` how far each errs alone (half as far again on rows alone).
    """

    groups: int
    each: int
    cuts: tuple[float, ...]
    columns: int = 2
    shared: float = 0.57
    own: float = 0.6

    @property
    def scale(self) -> tuple[float, ...]:
        return tuple(float(step) for step in range(len(self.cuts) + 1))

    def draw(self, random: Random, count: int | None = None) -> tuple[Array, Array]:
        """Ratings (columns x n) and the groups of the n rows. Of the truth .3 is of the group, and in a group raters err
        together; rows that stand alone share nothing."""
        count = count or self.groups
        codes = np.repeat(np.arange(count), self.each)
        alone = self.each == 1
        of_group = 0.0 if alone else math.sqrt(0.3) * random.normal(size=count)[codes]
        truth = of_group + math.sqrt(1.0 if alone else 0.7) * random.normal(size=len(codes))
        shared = 0.0 if alone else self.shared * random.normal(size=(self.columns, count))[:, codes]
        own = (1.5 if alone else 1.0) * self.own * random.normal(size=(self.columns, len(codes)))
        return np.digitize(truth + shared + own, self.cuts).astype(np.float64), codes


FIVE = (-1.5, -0.5, 0.5, 1.5)
MOSTLY_HIGH = (-2.7, -1.7, -0.7, 0.3)
PASS = (-0.5,)
RARELY_FAIL = (-1.8,)


def plain(formula: Any) -> Made:
    return lambda cells: cells.statistic(formula)


def statistics(scale: tuple[float, ...]) -> dict[str, Made]:
    """What `agreement` reports of two raters; of pass and fail alone without what is then one and the same."""
    found = {
        "raw": plain(raw_formula()),
        "kappa": plain(kappa_formula(scale)),
        "AC1": plain(gwet_formula(scale)),
        "alpha nominal": plain(alpha_formula("nominal")),
        "spearman": lambda cells: pooled_statistic(cells, "spearman"),
        "ICC(2,1)": plain(icc_formula("2,1")),
    }
    if len(scale) > 2:
        found |= {
            "kappa linear": plain(kappa_formula(scale, "linear")),
            "kappa quadratic": plain(kappa_formula(scale, "quadratic")),
            "AC2": plain(gwet_formula(scale, "quadratic")),
            "alpha ordinal": plain(alpha_formula("ordinal")),
            "alpha interval": plain(alpha_formula("interval")),
            "pearson": lambda cells: pooled_statistic(cells, "pearson"),
            "kendall": lambda cells: pooled_statistic(cells, "kendall"),
        }
    return found


def of_three(scale: tuple[float, ...]) -> dict[str, Made]:
    """Of a judge (first) and two people: averages over pairs, and the judge's less the people's."""

    def pair(cells: Cells, one: int, other: int, formula: Any) -> Statistic:
        return Cells(cells.values[[one, other]], cells.table).statistic(formula)

    def judge(formula: Any) -> Made:
        return lambda cells: average([pair(cells, 0, 1, formula), pair(cells, 0, 2, formula)])

    def gap(formula: Any) -> Made:
        return lambda cells: minus(judge(formula)(cells), pair(cells, 1, 2, formula))

    quadratic, ordinal = kappa_formula(scale, "quadratic"), alpha_formula("ordinal")
    return {
        "kappa quadratic, averaged": judge(quadratic),
        "kappa quadratic, gap": gap(quadratic),
        "alpha ordinal, gap": gap(ordinal),
        "raw, gap": gap(raw_formula()),
        "alpha ordinal of three": plain(ordinal),
    }


def truths(raters: Raters, made: Mapping[str, Made]) -> dict[str, float]:
    """The statistics of a million rows."""
    values, codes = raters.draw(np.random.default_rng(10**6), 1_000_000 // raters.each)
    cells = cells_of(values, np.zeros_like(codes), 1)
    return {name: one(cells).all_groups(1) for name, one in made.items()}


def bounds_of(name: str) -> tuple[float, float] | None:
    return None if "gap" in name else (0.0, 1.0) if name == "raw" else (-1.0, 1.0)


class Held(NamedTuple):
    """How often intervals held the truth, `share` of those that there were, missed it below and above, and were none."""

    share: float
    below: int
    above: int
    none: int


def coverage(raters: Raters, made: Mapping[str, Made], runs: int = RUNS) -> dict[str, Held]:
    """How often the intervals of `estimate` hold the truth; each run draws raters anew."""
    truth = truths(raters, made)
    tally = {name: [0, 0, 0] for name in made}
    if "ICC(2,1)" in made:
        truth["ICC(2,k)"], tally["ICC(2,k)"] = 2 * truth["ICC(2,1)"] / (1 + truth["ICC(2,1)"]), [0, 0, 0]
    # Rows and groups are fresh in every run, so one set of resamples serves all.
    times = Draws.make(raters.groups).times
    for seed in range(runs):
        values, codes = raters.draw(np.random.default_rng(seed))
        cells, draws = cells_of(values, codes, raters.groups), Draws(times)
        for name, one in made.items():
            found = estimate(
                one(cells), raters.groups, len(codes), name, why="", draws=draws, bounds=bounds_of(name)
            )  # fmt: skip
            _count(tally[name], found, truth[name])
            if name == "ICC(2,1)":
                _count(tally["ICC(2,k)"], of_the_mean(found, 2), truth["ICC(2,k)"])
    return {name: _held(one, runs) for name, one in tally.items()}


def coverage_of(trial: Callable[[Random], tuple[Estimate, float]], runs: int = RUNS) -> Held:
    """The same for any estimate and its truth, drawn together."""
    tally = [0, 0, 0]
    for seed in range(runs):
        _count(tally, *trial(np.random.default_rng(seed)))
    return _held(tally, runs)


def _count(tally: list[int], found: Estimate, truth: float) -> None:
    if found.low is None or found.high is None:
        tally[2] += 1
    elif truth < found.low:
        tally[0] += 1
    elif truth > found.high:
        tally[1] += 1


def _held(tally: list[int], runs: int) -> Held:
    below, above, none = tally
    return Held(1 - (below + above) / max(1, runs - none), below, above, none)
