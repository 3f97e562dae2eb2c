"""How often intervals of agreement hold the truth, in 2,000 seeded simulations each; slow.

2,000 trials of a true .95 have a standard error of .005. All are by the procedure that `agreement` uses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from covered import (
    FIVE,
    MOSTLY_HIGH,
    PASS,
    RARELY_FAIL,
    Random,
    Raters,
    bounds_of,
    coverage,
    coverage_of,
    of_three,
    statistics,
    truths,
)
from jurimetrics.stats.agreement import gwet_ac
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.icc import icc
from jurimetrics.stats.kappa import cohen_kappa
from jurimetrics.stats.ranks import correlation_within, pooled_statistic
from jurimetrics.stats.resampling import cells_of, estimate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("raters", "low", "high"),
    [
        pytest.param(Raters(100, 1, FIVE), 0.935, 0.965, id="100 rows on 5 steps"),
        pytest.param(Raters(100, 1, PASS), 0.935, 0.965, id="100 passes and fails"),
        pytest.param(Raters(30, 8, FIVE), 0.935, 0.966, id="30 groups on 5 steps"),
        pytest.param(Raters(30, 8, MOSTLY_HIGH), 0.935, 0.965, id="30 groups, mostly high"),
        pytest.param(Raters(30, 8, PASS), 0.935, 0.968, id="30 groups of passes and fails"),
        pytest.param(Raters(60, 8, FIVE), 0.935, 0.966, id="60 groups on 5 steps"),
        # Raters who nearly always agree: a few disagreements are all there is to know.
        pytest.param(Raters(99, 1, PASS, own=0.15), 0.935, 0.97, id="99 rows, few disagreements"),
        pytest.param(Raters(30, 8, PASS, shared=0.15, own=0.15), 0.935, 0.965, id="30 groups, few disagreements"),
        # Few groups, by t: at least .93.
        pytest.param(Raters(8, 8, FIVE), 0.93, 0.975, id="8 groups on 5 steps"),
        pytest.param(Raters(10, 8, PASS), 0.93, 0.975, id="10 groups of passes and fails"),
        pytest.param(Raters(20, 8, FIVE), 0.93, 0.97, id="20 groups on 5 steps"),
        # One label in ten is a fail.
        pytest.param(Raters(100, 1, RARELY_FAIL), 0.935, 0.965, id="100 rows, rare fails"),
        pytest.param(Raters(30, 8, RARELY_FAIL), 0.935, 0.965, id="30 groups, rare fails"),
    ],
)
def test_intervals_hold_the_truth(raters: Raters, low: float, high: float) -> None:
    found = coverage(raters, statistics(raters.scale))
    assert {name: held for name, held in found.items() if not low <= held.share <= high} == {}
    # What is not told does not count as held, and is rare.
    assert max(held.none for held in found.values()) <= 60


@pytest.mark.parametrize(
    "raters",
    [pytest.param(Raters(100, 1, FIVE, 3), id="100 rows"), pytest.param(Raters(30, 8, FIVE, 3), id="30 groups")],
)
def test_a_judge_and_two_people(raters: Raters) -> None:
    found = coverage(raters, of_three(raters.scale))
    assert {name: held for name, held in found.items() if not 0.935 <= held.share <= 0.965} == {}


def test_so_few_rare_fails_are_not_known() -> None:
    """The limit that the docstring states: 12 groups of 20, one in ten a fail."""
    raters = Raters(12, 20, RARELY_FAIL)
    found = coverage(raters, {name: statistics(raters.scale)[name] for name in ("kappa", "alpha nominal")}, 1000)
    assert all(0.88 <= held.share <= 0.94 for held in found.values())


@pytest.mark.parametrize("groups", [30, 100])
@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_mean_correlation_within_groups(kind: Any, groups: int) -> None:
    raters = Raters(groups, 8, FIVE)
    values, codes = raters.draw(np.random.default_rng(5), 60_000)
    truth = correlation_within(values[0], values[1], codes.tolist(), kind).estimate.value
    assert truth is not None

    def trial(random: Random) -> tuple[Estimate, float]:
        drawn, mine = raters.draw(random)
        return correlation_within(drawn[0], drawn[1], mine.tolist(), kind).estimate, truth

    assert 0.935 <= coverage_of(trial).share <= 0.965


def test_the_mean_of_judge_less_people() -> None:
    def trial(random: Random) -> tuple[Estimate, float]:
        values, codes = Raters(30, 8, FIVE).draw(random)
        return mean_estimate(values[0] - values[1], codes), 0.0

    assert 0.935 <= coverage_of(trial).share <= 0.965


# Negative control -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kappa quadratic", "spearman"])
def test_rows_drawn_one_by_one_would_not_hold_it(name: str) -> None:
    raters = Raters(40, 8, FIVE, shared=0.8)
    made = {name: statistics(raters.scale)[name]}
    truth = truths(raters, made)[name]

    def trial(random: Random) -> tuple[Estimate, float]:
        values, _ = raters.draw(random)
        rows = cells_of(values, np.arange(320), 320)
        return estimate(made[name](rows), 320, 320, name, why="", bounds=bounds_of(name)), truth

    assert coverage_of(trial, 1000).share < 0.8


# The published intervals for rows alone -------------------------------------------------------------------------------


PUBLISHED = {
    "kappa": lambda values, scale: cohen_kappa(values[0], values[1], scale),
    "AC1": lambda values, scale: gwet_ac(values, scale),
    "ICC(2,1)": lambda values, scale: icc(values.T, "2,1"),
}


@pytest.mark.parametrize(
    ("name", "cuts", "low", "high"),
    [
        ("kappa", FIVE, 0.92, 0.95),
        ("kappa", RARELY_FAIL, 0.87, 0.91),
        ("AC1", FIVE, 0.93, 0.955),
        ("AC1", RARELY_FAIL, 0.92, 0.945),
        ("ICC(2,1)", FIVE, 0.935, 0.965),
        ("ICC(2,1)", PASS, 0.89, 0.93),
        ("ICC(2,1)", RARELY_FAIL, 0.72, 0.79),
    ],
)
def test_intervals_as_published_hold_what_their_docstrings_say(
    name: str, cuts: tuple[float, ...], low: float, high: float
) -> None:
    raters = Raters(100, 1, cuts)
    truth = truths(raters, {name: statistics(raters.scale)[name]})[name]

    def trial(random: Random) -> tuple[Estimate, float]:
        return PUBLISHED[name](raters.draw(random)[0], raters.scale), truth

    assert low <= coverage_of(trial).share <= high


def test_correlations_of_many_different_scores() -> None:
    """Scores without steps: every row is its own pattern."""
    raters = Raters(100, 1, tuple(np.linspace(-4, 4, 801).tolist()))
    truth = {
        "spearman": 6 / np.pi * np.arcsin(1 / 1.81 / 2),
        "pearson": 1 / 1.81,
        "kendall": 2 / np.pi * np.arcsin(1 / 1.81),
    }

    def trial(kind: Any) -> Any:
        def one(random: Random) -> tuple[Estimate, float]:
            values, codes = raters.draw(random)
            statistic = pooled_statistic(cells_of(values, codes, 100), kind)
            return estimate(statistic, 100, 100, kind, why=""), truth[kind]

        return one

    for kind in ("spearman", "pearson"):
        assert 0.935 <= coverage_of(trial(kind)).share <= 0.965
    # Comparing every pair of 100 anew 2,000 times takes long; a tenth of the trials tells a gross fault.
    assert 0.9 <= coverage_of(trial("kendall"), 200).share <= 0.99
