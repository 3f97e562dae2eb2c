"""Comparison statistics against golden values, and against scipy and statsmodels as second witnesses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import mean_estimate
from jurimetrics.stats.flips import sign_flips
from jurimetrics.stats.multiple import adjust
from jurimetrics.stats.paired import bca_difference, design_effect, effect_size, mcnemar, paired_difference
from jurimetrics.stats.power import pairs_needed_mcnemar, questions_needed, records_needed
from jurimetrics.stats.strengths import bradley_terry, mean_ranks

GOLDEN = Path(__file__).parents[2] / "shared" / "golden.json"
BASEBALL = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.is_file():
        pytest.skip("the golden values ../shared/golden.json are not here")
    return {one["method"]: one for one in json.loads(GOLDEN.read_text(encoding="utf-8"))["tests"]}


def pairs(seed: int, n: int = 40, groups: int = 12) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[str]]:
    random = np.random.default_rng(seed)
    names = random.integers(0, groups, n)
    a = random.random(n)
    return (
        a,
        np.clip(a + random.normal(0.05, 0.2, n) + random.normal(0, 0.1, groups)[names], 0, 1),
        [f"g{g}" for g in names],
    )


# --- sign flips ---


def test_exact_permutation_of_twelve_pairs(golden: dict[str, Any]) -> None:
    one = golden["paired_permutation"]
    found = sign_flips(np.subtract(one["input"]["a"], one["input"]["b"]))
    assert found.exact
    assert found.mean[0] == pytest.approx(one["expected"]["diff"], abs=one["tolerance"])
    assert found.p[0] == pytest.approx(one["expected"]["p_exact"], abs=one["tolerance"])


@pytest.mark.parametrize("seed", range(5))
def test_exact_p_is_that_of_scipy(seed: int) -> None:
    from scipy.stats import permutation_test

    values = np.round(np.random.default_rng(seed).normal(0.3, 1, 11), 1)
    theirs = permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False, alternative="two-sided"
    )
    assert sign_flips(values).p[0] == pytest.approx(float(theirs.pvalue), abs=1e-12)


def test_drawn_p_is_near_the_exact_one_and_never_zero() -> None:
    from scipy.stats import permutation_test

    values = np.random.default_rng(3).normal(0.5, 1, 18)
    exact = permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False)
    found = sign_flips(values, flips=20_000)
    assert not found.exact
    # A share near .04 among 20,000 has a standard error of .0014.
    assert found.p[0] == pytest.approx(float(exact.pvalue), abs=0.006)
    # (b + 1) / (B + 1) with b = 0.
    assert sign_flips([1.0 + at / 100 for at in range(40)], flips=99).p[0] == pytest.approx(0.01)


def test_groups_flip_as_one() -> None:
    # Nine groups of five equal records each are nine trials, whatever the 45 rows.
    values = np.array([0.3, 0.1, -0.2, 0.4, 0.2, 0.1, 0.5, -0.1, 0.3])
    found = sign_flips(np.repeat(values, 5), np.repeat(np.arange(9), 5))
    assert found.p[0] == pytest.approx(sign_flips(values).p[0])
    assert found.low[0] == pytest.approx(sign_flips(values).low[0])


@pytest.mark.parametrize("seed", range(3))
def test_interval_holds_the_shifts_that_are_not_rejected(seed: int) -> None:
    a, b, groups = pairs(seed)
    values = b - a
    found = sign_flips(values, groups)
    low, high = float(found.low[0]), float(found.high[0])
    for inside in (low + 1e-9, high - 1e-9):
        assert sign_flips(values - inside, groups).p[0] > 0.05
    for outside in (low - 1e-9, high + 1e-9):
        assert sign_flips(values - outside, groups).p[0] <= 0.05


def test_interval_of_many_groups_is_close_to_students() -> None:
    random = np.random.default_rng(0)
    values = random.normal(0.1, 1, 400)
    flipped, student = sign_flips(values), mean_estimate(values)
    assert student.low is not None and student.high is not None
    width = student.high - student.low
    assert flipped.low[0] == pytest.approx(student.low, abs=0.05 * width)
    assert flipped.high[0] == pytest.approx(student.high, abs=0.05 * width)


def test_family_of_one_is_the_comparison_alone() -> None:
    a, b, groups = pairs(1)
    found = sign_flips(b - a, groups)
    assert (found.p_family, found.family_low, found.family_high) == (found.p, found.low, found.high)


def test_family_of_the_same_comparison_twice_costs_nothing_and_of_others_lies_below_bonferroni() -> None:
    random = np.random.default_rng(5)
    column = random.normal(0.3, 1, 60)
    same = sign_flips(np.column_stack([column, column]))
    assert same.p_family == pytest.approx(same.p)
    others = np.column_stack([random.normal(0.35, 1, 60) for _ in range(4)])
    found = sign_flips(others)
    assert (found.p_family >= found.p).all()
    # Independent: 1 - (1 - p)^4, Sidak's.
    assert found.p_family == pytest.approx(1 - (1 - found.p) ** 4, abs=0.02)
    assert found.alpha == pytest.approx(1 - 0.95**0.25, abs=0.002)


def test_no_interval_where_none_can_be_defended() -> None:
    few = sign_flips([0.1, 0.3, 0.2, 0.5, 0.1])
    assert few.why == ("no interval: 5 groups, 8 are needed",)
    assert few.p[0] == pytest.approx(2 / 32)
    assert np.isnan([few.low[0], few.p_family[0], few.family_low[0]]).all()
    assert sign_flips([0.25] * 20).why == ("no interval: the groups do not differ",)
    nothing = sign_flips([math.nan] * 20)
    assert nothing.why == ("no pairs",) and np.isnan(nothing.p[0]) and np.isnan(nothing.mean[0])


def test_a_column_without_an_interval_is_not_in_the_family() -> None:
    a, b, groups = pairs(2)
    alone = sign_flips(b - a, groups)
    beside = sign_flips(np.column_stack([b - a, np.full(len(a), 0.5)]), groups)
    assert beside.family == 1
    assert beside.p_family[0] == alone.p_family[0]


def test_a_family_too_large_for_its_groups_finds_nothing() -> None:
    # 8 groups have 128 patterns: no p is below 1/128, which a family of 40 unrelated comparisons does not reach.
    table = np.random.default_rng(0).normal(0, 1, (8, 40)) + 1.5
    found = sign_flips(table)
    assert found.alpha == 0
    assert np.isnan(found.family_low).all() and (found.p_family > 0.05).all()
    assert np.isfinite(found.low).all()


def test_bad_differences_are_refused() -> None:
    with pytest.raises(InputError, match="infinite"):
        sign_flips([1.0, math.inf])
    with pytest.raises(InputError, match="level"):
        sign_flips([1.0], level=1.0)
    with pytest.raises(InputError, match="no group"):
        sign_flips([1.0, 2.0], ["a", None])


# --- one pair of variants ---


def test_bca_of_twelve_pairs(golden: dict[str, Any]) -> None:
    one = golden["paired_bootstrap_bca"]
    found = bca_difference(one["input"]["b"], one["input"]["a"], resamples=one["input"]["n_resamples"])
    assert [found.low, found.high] == pytest.approx(one["expected"]["ci95"], abs=one["tolerance"])


def test_bca_of_records_that_stand_alone_is_that_of_scipy() -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(2).exponential(1, 60)
    theirs = bootstrap((values,), np.mean, method="BCa", n_resamples=20_000, random_state=1).confidence_interval
    found = bca_difference(np.zeros(60), values, resamples=20_000)
    assert [found.low, found.high] == pytest.approx([theirs.low, theirs.high], abs=0.02)


def test_bca_of_constant_differences_has_no_interval() -> None:
    found = bca_difference([0.1] * 10, [0.4] * 10)
    assert found.value == pytest.approx(0.3)
    assert found.low is None and "no interval" in found.method


def test_cluster_error_is_millers_times_the_correction(golden: dict[str, Any]) -> None:
    from scipy.stats import t

    one = golden["cluster_se"]
    score, cluster = one["input"]["score"], one["input"]["cluster"]
    found = paired_difference(np.zeros(len(score)), score, cluster)
    assert found.value == pytest.approx(one["expected"]["mean"], abs=one["tolerance"])
    assert found.low is not None and found.high is not None
    groups = len(set(cluster))
    error = (found.high - found.low) / 2 / t.ppf(0.975, groups - 1)
    plain = error / math.sqrt(groups / (groups - 1))
    assert plain == pytest.approx(one["expected"]["se_cluster_miller_eq4"], abs=one["tolerance"])
    assert error == pytest.approx(one["expected"]["statsmodels_default_correction"], abs=one["tolerance"])


def test_paired_difference_is_scipys_paired_t() -> None:
    from scipy.stats import ttest_rel

    a, b, _ = pairs(4)
    theirs = ttest_rel(b, a).confidence_interval(0.95)
    found = paired_difference(a, b)
    assert [found.low, found.high] == pytest.approx([theirs.low, theirs.high])


def test_mcnemar_of_the_approval_table(golden: dict[str, Any]) -> None:
    one = golden["mcnemar"]
    found = mcnemar(one["input"]["table"][0][1], one["input"]["table"][1][0])
    expected = one["expected"]
    assert found.exact_p == pytest.approx(expected["exact_p"], rel=one["tolerance"])
    assert found.mid_p == pytest.approx(expected["mid_p"], rel=one["tolerance"])
    assert found.chi2 == pytest.approx(expected["chi2_nocorr"], rel=one["tolerance"])
    assert found.chi2_p == pytest.approx(expected["p_nocorr"], rel=one["tolerance"])
    assert found.corrected == pytest.approx(expected["chi2_corr"], rel=one["tolerance"])


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 1), (3, 3), (0, 7), (12, 5)])
def test_mcnemar_is_that_of_statsmodels(only_a: int, only_b: int) -> None:
    from scipy.stats import binom
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    found = mcnemar(only_a, only_b)
    assert found.exact_p == pytest.approx(theirs([[9, only_a], [only_b, 9]], exact=True).pvalue)
    least, both = min(only_a, only_b), only_a + only_b
    by_hand = 2 * binom.cdf(least, both, 0.5) - binom.pmf(least, both, 0.5)
    # Equal counts: 2 cdf - pmf is 1 already.
    assert found.mid_p == pytest.approx(min(1.0, by_hand))


def test_effect_size_and_design_effect_by_hand() -> None:
    # Differences 1, 2, 3, 4: mean 2.5, variance 5/3.
    assert effect_size([0, 0, 0, 0], [1, 2, 3, 4]) == pytest.approx(2.5 / math.sqrt(5 / 3))
    assert math.isnan(effect_size([0.1, 0.1], [0.4, 0.4]))
    assert math.isnan(effect_size([0.1], [0.4]))
    # Each group twice the same value: the effect is 2 but for the (n - 1) / n and G / (G - 1) of small samples.
    values = np.repeat(np.random.default_rng(0).normal(0, 1, 500), 2)
    assert design_effect(values, np.repeat(np.arange(500), 2)) == pytest.approx(2, abs=0.01)
    assert design_effect(values) == 1.0


# --- records needed ---


def test_power_of_miller(golden: dict[str, Any]) -> None:
    one = golden["power_miller"]
    given, expected = one["input"], one["expected"]
    omega, sigma = given["omega2"], (given["sigmaA2"], given["sigmaB2"])
    assert questions_needed(omega, given["delta"], sigma2=sigma) == pytest.approx(expected["n"], abs=one["tolerance"])
    ten = questions_needed(omega, given["delta"], sigma2=sigma, repeats=(10, 10))
    assert ten == pytest.approx(expected["n_K10"], abs=one["tolerance"])
    assert questions_needed(omega, given["delta"]) == pytest.approx(expected["n_sigma2_0"], abs=one["tolerance"])


def test_power_of_the_paired_t_test(golden: dict[str, Any]) -> None:
    one = golden["power_paired_t"]
    found = records_needed(1.0, one["input"]["effect_size_dz"])
    assert found == pytest.approx(one["expected"]["n"], abs=one["tolerance"])


@pytest.mark.parametrize(("size", "alpha", "power"), [(0.05, 0.01, 0.9), (0.5, 0.05, 0.8), (1.5, 0.05, 0.95)])
def test_records_needed_are_those_of_statsmodels(size: float, alpha: float, power: float) -> None:
    from statsmodels.stats.power import TTestPower

    theirs = TTestPower().solve_power(effect_size=size, alpha=alpha, power=power)
    assert records_needed(2.0, 2.0 * size, alpha=alpha, power=power) == pytest.approx(float(theirs), rel=1e-4)


def test_power_of_mcnemar(golden: dict[str, Any]) -> None:
    one = golden["power_mcnemar"]
    found = pairs_needed_mcnemar(one["input"]["p10"], one["input"]["p01"])
    assert found == pytest.approx(one["expected"]["n_pairs"], abs=one["tolerance"])


def test_impossible_plans_are_refused() -> None:
    for spread, difference in ((1.0, 0.0), (-1.0, 0.1)):
        with pytest.raises(InputError):
            records_needed(spread, difference)
    with pytest.raises(InputError):
        pairs_needed_mcnemar(0.7, 0.6)
    assert records_needed(0.0, 0.1) == 2.0
    assert math.isnan(records_needed(math.nan, 0.1))


# --- several at once ---


@pytest.mark.parametrize("method", ["holm", "fdr_bh", "fdr_by"])
def test_adjusted_p_of_benjamini_and_hochberg(golden: dict[str, Any], method: Any) -> None:
    one = golden["multiple_testing"]
    found = adjust(one["input"]["p"], method)
    assert found.p == pytest.approx(one["expected"][method]["adjusted"], abs=one["tolerance"])
    assert int((found.p <= one["input"]["alpha"]).sum()) == one["expected"][method]["n_reject"]


def test_by_rejects_two_of_four(golden: dict[str, Any]) -> None:
    one = golden["by_fdr"]
    found = adjust(one["input"]["p"], "fdr_by")
    assert int((found.p <= one["input"]["q"]).sum()) == one["expected"]["n_rejected"]


@pytest.mark.parametrize("method", ["holm", "fdr_bh", "fdr_by"])
def test_adjusted_p_is_that_of_statsmodels_and_nan_is_left_out(method: Any) -> None:
    from statsmodels.stats.multitest import multipletests

    random = np.random.default_rng(1).random(20) ** 3
    found = adjust([*random[:7], math.nan, *random[7:]], method)
    assert found.dropped == 1 and found.tested == 20
    assert np.delete(found.p, 7) == pytest.approx(multipletests(random, method=method)[1])
    assert math.isnan(found.p[7])


# --- an order of variants ---


def test_bradley_terry_of_baseball(golden: dict[str, Any]) -> None:
    one = golden["bradley_terry"]
    teams, wins = one["input"]["teams"], one["input"]["wins_row_beats_col"]
    assert tuple(map(tuple, wins)) == BASEBALL
    games = [(a, b) for i, a in enumerate(teams) for j, b in enumerate(teams) for _ in range(wins[i][j])]
    found = bradley_terry([a for a, _ in games], [b for _, b in games], [1.0] * len(games), resamples=200)
    logs = {name: one.value for name, one in zip(found.names, found.log_strengths, strict=True)}
    assert sum(value for value in logs.values() if value is not None) == pytest.approx(0, abs=1e-9)
    for name, expected in one["expected"]["log_ability_ref_Baltimore"].items():
        assert logs[name] - logs["Baltimore"] == pytest.approx(expected, abs=one["tolerance"])


def test_bradley_terry_errors_are_those_of_a_logistic_regression() -> None:
    import statsmodels.api as sm

    games = [(i, j) for i in range(7) for j in range(7) for _ in range(BASEBALL[i][j])]
    design = np.zeros((len(games), 7))
    for at, (i, j) in enumerate(games):
        design[at, i], design[at, j] = 1, -1
    # Half of the rows turned round, so that not every outcome is a win of the first.
    turned = np.arange(len(games)) % 2 == 1
    design[turned] *= -1
    fit = sm.GLM((~turned).astype(float), design[:, :6], family=sm.families.Binomial()).fit()
    # Sum to zero: b_i = theta_i - mean(theta), theta of the last team 0.
    centre = np.eye(7)[:, :6] - np.ones((7, 6)) / 7
    values, errors = centre @ fit.params, np.sqrt(np.diag(centre @ fit.cov_params() @ centre.T))
    names = [str(at) for at in range(7)]
    found = bradley_terry(
        [names[i] for i, _ in games], [names[j] for _, j in games], [1.0] * len(games), resamples=1000
    )
    for name, one in zip(found.names, found.log_strengths, strict=True):
        assert one.value == pytest.approx(values[int(name)], abs=1e-6)
        assert one.low is not None and one.high is not None
        assert (one.high - one.low) / 2 == pytest.approx(1.96 * errors[int(name)], rel=0.12)


def test_bradley_terry_without_a_maximum_has_no_value() -> None:
    found = bradley_terry(["a"] * 10, ["b"] * 10, [1.0] * 10)
    assert [one.value for one in found.log_strengths] == [None, None]
    assert "no variant may win or lose all" in found.log_strengths[0].method
    assert np.isnan(found.chances[0, 1])


def test_a_tie_is_half_a_win_and_duels_of_one_record_are_drawn_together() -> None:
    ties = bradley_terry(["a", "b"] * 20, ["b", "a"] * 20, [0.5] * 40)
    assert [one.value for one in ties.log_strengths] == pytest.approx([0, 0], abs=1e-9)
    random = np.random.default_rng(0)
    wins = (random.random(60) < 0.6).astype(float)
    alone = bradley_terry(["a"] * 60, ["b"] * 60, wins)
    fivefold = bradley_terry(["a"] * 300, ["b"] * 300, np.repeat(wins, 5), np.repeat(np.arange(60), 5))
    assert alone.log_strengths[0].low == pytest.approx(fivefold.log_strengths[0].low)


def test_bad_duels_are_refused() -> None:
    with pytest.raises(InputError, match="cannot meet itself"):
        bradley_terry(["a"], ["a"], [1.0])
    with pytest.raises(InputError, match="between 0 and 1"):
        bradley_terry(["a"], ["b"], [2.0])
    with pytest.raises(InputError, match="equally long"):
        bradley_terry(["a"], ["b", "c"], [1.0])


def test_mean_ranks_by_hand() -> None:
    table = np.array([[0.9, 0.5, 0.5], [0.2, 0.4, 0.6], [0.1, math.nan, 0.3]])
    # Ranks 1, 2.5, 2.5 and 3, 2, 1; the third record lacks a score.
    assert [one.value for one in mean_ranks(table)] == [2.0, 2.25, 1.75]
    assert [one.value for one in mean_ranks(table, higher_is_better=False)] == [2.0, 1.75, 2.25]
    assert all(one.n == 2 for one in mean_ranks(table))
