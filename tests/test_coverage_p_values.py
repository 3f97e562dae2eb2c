"""How often p values fall below .01, .05 and .10 where nothing is there, in 2,000 seeded simulations each; slow.

At most two standard errors oftener than they say, and, of samples that are not small, at least .6 as often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jurimetrics.stats.alternative import alt_test, one_sided_p
from jurimetrics.stats.finding import mean_differences, ratio, with_p
from jurimetrics.stats.flips import sign_flips
from jurimetrics.stats.lengths import verbosity
from jurimetrics.stats.paired import mcnemar
from jurimetrics.stats.probes import position, self_preference

pytestmark = pytest.mark.slow
RUNS = 2000
LEVELS = (0.01, 0.05, 0.10)
FLIPS = 999
Random = np.random.Generator
Array = np.ndarray[Any, Any]


def found(trial: Callable[[Random], float | None], runs: int = RUNS) -> Array:
    """The p values of the trials; what could not be tested is 1: nothing is said to be there."""
    p = [trial(np.random.default_rng(seed)) for seed in range(runs)]
    return np.array([1.0 if one is None or math.isnan(one) else one for one in p])


def at_most(p: Array, slack: float = 0.0) -> bool:
    return all((p <= a).mean() <= a + 2 * math.sqrt(a * (1 - a) / len(p)) + slack for a in LEVELS)


def at_least(p: Array, share: float = 0.6) -> bool:
    return all((p <= a).mean() >= share * a for a in LEVELS)


def shares(p: Array) -> list[float]:
    """What a failing test shows."""
    return [float((p <= a).mean()) for a in LEVELS]


def fresh(random: Random) -> int:
    """Another set of sign patterns in each trial: the level is kept over patterns as well."""
    return int(random.integers(2**31))


def grouped(random: Random, groups: int, each: int) -> tuple[Array, Array]:
    """Values without a direction; half of their variance is of the group."""
    code = np.repeat(np.arange(groups), each)
    return random.normal(size=groups)[code] + random.normal(size=len(code)), code


# Sign flips -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 12, 40, 100])
def test_sign_flips_of_records_that_stand_alone(n: int) -> None:
    p = found(lambda random: float(sign_flips(random.standard_t(4, n), flips=FLIPS, seed=fresh(random)).p[0]))
    assert at_most(p) and at_least(p, 0.6 if n > 10 else 0.3), shares(p)


def test_sign_flips_of_ratings_with_many_ties() -> None:
    steps = [-2.0, -1, 0, 0, 0, 1, 2]
    p = found(lambda random: float(sign_flips(random.choice(steps, 40), flips=FLIPS, seed=fresh(random)).p[0]))
    assert at_most(p) and at_least(p), shares(p)


@pytest.mark.parametrize(("groups", "each"), [(12, 5), (30, 8)])
def test_sign_flips_by_group(groups: int, each: int) -> None:
    def trial(random: Random) -> float:
        values, code = grouped(random, groups, each)
        return float(sign_flips(values, code, flips=FLIPS, seed=fresh(random)).p[0])

    def as_if_alone(random: Random) -> float:
        values, _ = grouped(random, groups, each)
        return float(sign_flips(values, flips=FLIPS, seed=fresh(random)).p[0])

    p = found(trial)
    assert at_most(p) and at_least(p), shares(p)
    # The negative control: rows flipped one by one.
    assert (found(as_if_alone, 500) <= 0.05).mean() > 0.15


def test_mean_differences_of_a_probe() -> None:
    def trial(random: Random) -> float | None:
        values, code = grouped(random, 30, 4)
        return mean_differences(values.round().tolist(), code, flips=FLIPS, seed=fresh(random))[0].p

    p = found(trial)
    assert at_most(p) and at_least(p), shares(p)


# Pass and fail of two variants ----------------------------------------------------------------------------------------


def test_mcnemar_of_records_that_stand_alone() -> None:
    tables = [np.random.default_rng(seed).multinomial(200, [0.15, 0.15, 0.7]) for seed in range(RUNS)]
    tests = [mcnemar(int(b), int(c)) for b, c, _ in tables]
    exact, middle = np.array([one.exact_p for one in tests]), np.array([one.mid_p for one in tests])
    assert at_most(exact), shares(exact)
    assert at_most(middle) and at_least(middle), shares(middle)
    # Exact p is never below the middle one, which is why that one finds more.
    assert (exact >= middle - 1e-12).all()
    assert at_least(exact, 0.4), shares(exact)


def test_mcnemar_is_not_for_groups_and_sign_flips_are() -> None:
    def sides(random: Random) -> tuple[Array, Array]:
        lean = np.repeat(random.beta(0.6, 0.6, 24), 5)
        return np.where(random.random(120) < 0.5, np.where(random.random(120) < lean, 1.0, -1.0), 0.0), np.repeat(
            np.arange(24), 5
        )

    def by_group(random: Random) -> float:
        return float(sign_flips(*sides(random), flips=FLIPS, seed=fresh(random)).p[0])

    def as_if_alone(random: Random) -> float:
        values, _ = sides(random)
        return mcnemar(int((values > 0).sum()), int((values < 0).sum())).mid_p

    p = found(by_group)
    assert at_most(p) and at_least(p), shares(p)
    assert (found(as_if_alone) <= 0.05).mean() > 0.15


# The alternative annotator test ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 60, 200])
def test_an_annotator_who_wins_oftener_by_just_epsilon(n: int) -> None:
    draws = np.random.default_rng(16).choice([-1.0, 0.0, 1.0], p=[0.1, 0.6, 0.3], size=(RUNS, n))
    p = np.array([one_sided_p(one, 0.2) for one in draws])
    # Student's t of three different values is no exact test: one in a hundred more.
    assert at_most(p, slack=0.01) and at_least(p), shares(p)


def rated(random: Random, n: int) -> tuple[Array, Array]:
    """A judge who is right less often than each of three people."""
    truth = random.integers(0, 2, n)
    people = np.stack([np.where(random.random(n) < 0.85, truth, 1 - truth) for _ in range(3)])
    return np.where(random.random(n) < 0.7, truth, 1 - truth), people


def test_a_judge_just_too_bad_is_seldom_an_alternative() -> None:
    judge, people = rated(np.random.default_rng(10**6), 400_000)
    whole = alt_test(judge, people, 0.1)
    # Of so many items the shares are known: the judge loses by just this epsilon.
    epsilon = float(np.mean([one.annotator_wins - one.judge_wins for one in whole.annotators]))

    def smallest(random: Random) -> float:
        judge, people = rated(random, 60)
        return min(one.adjusted for one in alt_test(judge, people, epsilon).annotators)

    p = found(smallest)
    # With all three nulls true the false discovery rate is that of any rejection.
    assert at_most(p), shares(p)
    assert (p <= 0.1).mean() > 0.01


# Probes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [10, 40])
def test_ratios_over_groups(groups: int) -> None:
    def trial(random: Random) -> float | None:
        code = np.repeat(np.arange(groups), random.integers(1, 6, groups))
        values = 0.7 * random.normal(size=groups)[code] + random.normal(size=len(code))
        statistic = ratio(values, np.ones(len(code)), code, groups)
        return with_p(statistic, groups, len(code), "mean", why="none", bounds=None).p

    p = found(trial)
    # Groups of different size: t is no exact test there.
    assert at_most(p, slack=0.01) and at_least(p), shares(p)


def test_position_of_pairs_that_stand_alone() -> None:
    def trial(random: Random) -> float:
        winner = random.integers(0, 2, 90)
        swings, first = random.random(90) < 0.7, random.integers(0, 2, 90)
        a_first, b_first = np.where(swings, first, winner), np.where(swings, 1 - first, winner)
        return position(a_first, b_first).p

    p = found(trial)
    # The exact binomial test is cautious: of about 60 pairs it can say .05 or .03, nothing between.
    assert at_most(p) and at_least(p, 0.5), shares(p)


def test_position_of_pairs_in_groups() -> None:
    def trial(random: Random) -> float:
        code = np.repeat(np.arange(30), 4)
        lean = random.beta(0.7, 0.7, 30)[code]
        swings, first = random.random(120) < 0.5, random.random(120) < lean
        winner = random.integers(0, 2, 120)
        return position(np.where(swings, first, winner), np.where(swings, ~first, winner), code.tolist()).p

    p = found(trial)
    assert at_most(p) and at_least(p, 0.5), shares(p)


@pytest.mark.parametrize(("groups", "each"), [(90, 1), (30, 6)])
def test_self_preference(groups: int, each: int) -> None:
    def trial(random: Random) -> float | None:
        code = np.repeat(np.arange(groups), each)
        people = (random.random(len(code)) < 0.5).astype(float)
        # How well a judge follows people depends on the group, and not on whose answer they prefer.
        right = random.random(len(code)) < random.uniform(0.5, 0.9, groups)[code]
        judge = np.where(right, people, 1 - people)
        return self_preference(judge, people, code.tolist()).p

    p = found(trial)
    assert at_most(p, slack=0.01) and at_least(p), shares(p)


@pytest.mark.parametrize("what", ["p", "slope_p"])
def test_verbosity_beside_people(what: str) -> None:
    def trial(random: Random) -> float | None:
        people = (random.random(80) < 0.5).astype(float)
        judge = np.where(random.random(80) < 0.75, people, 1 - people)
        of: float | None = getattr(verbosity(judge, random.normal(0, 200, 80), people), what)
        return of

    p = found(trial)
    # People's verdicts tell most of the judge's, so that few pairs say anything of length: t is cautious there.
    assert at_most(p) and at_least(p, 0.4), shares(p)
