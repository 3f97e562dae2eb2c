"""Comparison under seeded trials with known differences: levels, families, coverage, power, and no contradictions.

Bands are four standard errors of 2,000 trials around the nominal value unless a comment says why they are wider.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jurimetrics.stats.estimate import FEWEST_GROUPS
from jurimetrics.stats.flips import Flipped, sign_flips
from jurimetrics.stats.multiple import adjust
from jurimetrics.stats.paired import design_effect, mcnemar
from jurimetrics.stats.power import records_needed
from jurimetrics.stats.strengths import bradley_terry

pytestmark = pytest.mark.slow
TRIALS = 2_000
FOUR_ERRORS = 4 * math.sqrt(0.05 * 0.95 / TRIALS)
FLIPS = 999
Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator], tuple[Array, Array]]


def independent(random: np.random.Generator) -> tuple[Array, Array]:
    """Sixty records that stand alone; differences of three variants under two metrics go together."""
    return _scores(random, 60, 1), np.arange(60)


def clustered(random: np.random.Generator) -> tuple[Array, Array]:
    """Twenty groups of one to seven records; a group's differences go together."""
    sizes = random.integers(1, 8, 20)
    return _scores(random, 20, sizes), np.repeat(np.arange(20), sizes)


def few_clusters(random: np.random.Generator) -> tuple[Array, Array]:
    """Twelve groups of five: every sign pattern is looked at."""
    return _scores(random, 12, 5), np.repeat(np.arange(12), 5)


def _scores(random: np.random.Generator, groups: int, sizes: Any) -> Array:
    """Differences B - A, C - A, C - B under two correlated metrics, in steps of .25 as ratings have them."""
    sizes = np.broadcast_to(sizes, groups)
    of_group = np.repeat(random.normal(0, 0.6, (groups, 3, 2)), sizes, axis=0)
    total = int(sizes.sum())
    shared = random.normal(0, 0.5, (total, 3, 1))
    scores = np.round((of_group + shared + random.normal(0, 0.5, (total, 3, 2))) * 4) / 4
    return np.column_stack([scores[:, b, m] - scores[:, a, m] for m in (0, 1) for a, b in ((0, 1), (0, 2), (1, 2))])


KINDS = [independent, clustered, few_clusters]


def trials(draw: Draw, shift: Array | None = None, columns: int = 6) -> list[Flipped]:
    found = []
    for seed in range(TRIALS):
        table, groups = draw(np.random.default_rng(seed))
        table = table[:, :columns] + (0 if shift is None else shift)
        found.append(sign_flips(table, groups, flips=FLIPS, seed=seed))
    return found


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def null(request: pytest.FixtureRequest) -> list[Flipped]:
    return trials(request.param)


def test_one_comparison_keeps_its_level(null: list[Flipped]) -> None:
    rejected = np.mean([found.p <= 0.05 for found in null], axis=0)
    assert np.abs(rejected - 0.05).max() < FOUR_ERRORS


def test_family_keeps_its_level_where_nothing_differs(null: list[Flipped]) -> None:
    any_found = np.mean([(found.p_family <= 0.05).any() for found in null])
    assert any_found < 0.05 + FOUR_ERRORS
    # Six comparisons without adjustment find something far more often.
    assert np.mean([(found.p <= 0.05).any() for found in null]) > 0.12


def test_holm_keeps_the_level_of_the_family_too(null: list[Flipped]) -> None:
    assert np.mean([(adjust(found.p).p <= 0.05).any() for found in null]) < 0.05 + FOUR_ERRORS


@pytest.mark.parametrize("draw", KINDS)
def test_family_keeps_its_level_where_some_differ(draw: Draw) -> None:
    # Only variant C differs, under the first metric: B - A and the second metric stay true nulls.
    shift = np.array([0, 0.8, 0.8, 0, 0, 0])
    found = trials(draw, shift)
    false = np.mean([(one.p_family[[0, 3, 4, 5]] <= 0.05).any() for one in found])
    assert false < 0.05 + FOUR_ERRORS


@pytest.mark.parametrize("draw", KINDS)
def test_intervals_cover_alone_and_all_at_once(draw: Draw) -> None:
    truth = np.array([0.2, 0.5, 0.3, 0, -0.1, -0.1])
    found = trials(draw, truth)
    alone = np.mean([(one.low <= truth) & (truth <= one.high) for one in found], axis=0)
    together = np.mean([((one.family_low <= truth) & (truth <= one.family_high)).all() for one in found])
    assert np.abs(alone - 0.95).max() < FOUR_ERRORS
    assert together > 0.95 - FOUR_ERRORS
    # Not by being absurdly wide: Bonferroni would be at .95 and a little more.
    assert together < 0.985


@pytest.mark.parametrize("draw", KINDS)
def test_interval_and_p_never_disagree(draw: Draw) -> None:
    for one in trials(draw, np.array([0.15, 0.3, 0.2, 0.1, 0, 0])):
        assert (((one.low > 0) | (one.high < 0)) == (one.p <= 0.05)).all()
        assert (((one.family_low > 0) | (one.family_high < 0)) == (one.p_family <= 0.05)).all()
        assert (one.p_family >= one.p).all()
        assert (one.family_low <= one.low).all() and (one.family_high >= one.high).all()


def test_ignoring_groups_would_have_been_noticed() -> None:
    rejected = 0
    for seed in range(500):
        table, _ = few_clusters(np.random.default_rng(seed))
        rejected += sign_flips(table[:, 0], flips=FLIPS, seed=seed).p[0] <= 0.05
    assert rejected / 500 > 0.15


def test_mcnemar_keeps_its_level_for_independent_pairs_and_not_for_clustered_ones() -> None:
    rejected = {"independent": 0, "clustered": 0}
    by_group = 0
    for seed in range(TRIALS):
        random = np.random.default_rng(seed)
        lean = np.repeat(random.beta(0.6, 0.6, 24), 5)
        first, second = random.random(120), random.random(120)
        for name, chance in (("independent", 0.5), ("clustered", lean)):
            only_b = int(((first < 0.5) & (second < chance)).sum())
            only_a = int((first < 0.5).sum()) - only_b
            rejected[name] += mcnemar(only_a, only_b).mid_p <= 0.05
        sides = np.where(first < 0.5, np.where(second < lean, 1.0, -1.0), 0.0)
        by_group += sign_flips(sides, np.repeat(np.arange(24), 5), flips=FLIPS, seed=seed).p[0] <= 0.05
    assert rejected["independent"] / TRIALS < 0.05 + FOUR_ERRORS
    assert rejected["clustered"] / TRIALS > 0.15
    assert abs(by_group / TRIALS - 0.05) < FOUR_ERRORS


def test_power_is_as_planned() -> None:
    planned = math.ceil(records_needed(1.0, 0.4))
    found = 0
    for seed in range(TRIALS):
        found += sign_flips(np.random.default_rng(seed).normal(0.4, 1, planned), flips=FLIPS, seed=seed).p[0] <= 0.05
    # Four errors of a share of .8 are .036.
    assert abs(found / TRIALS - 0.8) < 0.036


def test_power_is_as_planned_for_groups() -> None:
    # Correlation .5 within groups of four: the design effect is 2.5.
    planned = math.ceil(records_needed(1.0, 0.4, design_effect=2.5) / 4)
    found = 0
    for seed in range(TRIALS):
        random = np.random.default_rng(seed)
        values = (
            0.4
            + np.repeat(random.normal(0, math.sqrt(0.5), planned), 4)
            + random.normal(0, math.sqrt(0.5), 4 * planned)
        )
        found += sign_flips(values, np.repeat(np.arange(planned), 4), flips=FLIPS, seed=seed).p[0] <= 0.05
    # The plan takes t with the degrees of all records, the test has the groups': a little less power.
    assert abs(found / TRIALS - 0.8) < 0.045


def test_design_effect_finds_what_was_put_in() -> None:
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(3_000), 4)
    values = np.repeat(random.normal(0, math.sqrt(0.5), 3_000), 4) + random.normal(0, math.sqrt(0.5), 12_000)
    assert design_effect(values, groups) == pytest.approx(2.5, abs=0.1)


@pytest.mark.parametrize("groups", [12, 40])
def test_intervals_of_strengths_cover_when_records_are_drawn(groups: int) -> None:
    held, size = 0, 300
    for seed in range(size):
        random = np.random.default_rng(seed)
        # Five duels about each record, which lean together; the chance of a win is .6 on average.
        lean = np.repeat(random.beta(3, 2, groups), 5)
        wins = (random.random(5 * groups) < lean).astype(float)
        found = bradley_terry(
            ["a"] * len(wins), ["b"] * len(wins), wins, np.repeat(np.arange(groups), 5), resamples=400
        )
        low, high = found.log_strengths[0].low, found.log_strengths[0].high
        assert low is not None and high is not None
        held += low <= math.log(0.6 / 0.4) / 2 <= high
    # Four errors of 300 trials are .050; the logarithm is curved, which few groups feel.
    assert 0.9 < held / size < 0.99


def test_eight_groups_are_the_fewest_and_keep_their_level() -> None:
    rejected = 0
    for seed in range(TRIALS):
        random = np.random.default_rng(seed)
        values = np.repeat(random.normal(0, 1, FEWEST_GROUPS), 3) + random.normal(0, 1, 3 * FEWEST_GROUPS)
        found = sign_flips(values, np.repeat(np.arange(FEWEST_GROUPS), 3))
        rejected += found.low[0] > 0 or found.high[0] < 0
    assert rejected / TRIALS < 0.05 + FOUR_ERRORS
