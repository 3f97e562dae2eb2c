"""Estimates, each with a second witness: statsmodels, a derivation by hand, or the coverage of seeded trials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate, share_estimate


def clustered(seed: int, groups: int = 30, each: int = 4) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(groups), each)
    return random.normal(0, 1, groups)[labels] + random.normal(0, 1, len(labels)), labels


def test_mean_agrees_with_statsmodels_cluster_covariance() -> None:
    import statsmodels.api as sm

    values, labels = clustered(5)
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": labels, "use_correction": True, "df_correction": True}, use_t=True
    )
    low, high = fit.conf_int(0.05)[0]
    found = mean_estimate(values, labels)
    # statsmodels also multiplies the variance by (n - 1) / (n - k); with k = 1 that is 1.
    assert found.value == pytest.approx(float(fit.params[0]), abs=1e-12)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_mean_of_rows_that_stand_alone_is_the_plain_t_interval() -> None:
    from scipy import stats

    values = clustered(9)[0]
    low, high = stats.t.interval(0.9, len(values) - 1, values.mean(), stats.sem(values))
    found = mean_estimate(values, level=0.9)
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.method == "mean; t over 120 rows"


@pytest.mark.parametrize("groups", [8, 15, 40])
def test_mean_interval_covers_at_its_level(groups: int) -> None:
    held = 0
    for seed in range(600):
        values, labels = clustered(seed, groups)
        found = mean_estimate(values, labels)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    # 600 trials at .95 have a standard error of .009; ignoring the groups covers about .80 here.
    assert 0.925 <= held / 600 <= 0.975


def test_ignoring_groups_would_have_been_noticed() -> None:
    held = 0
    for seed in range(300):
        values, _ = clustered(seed, 15)
        found = mean_estimate(values)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    assert held / 300 < 0.9


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 11)), min_size=1, max_size=60), st.randoms())
def test_order_never_changes_an_estimate(rows: list[tuple[float, int]], random: Any) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    one, other = ([list(column) for column in zip(*order, strict=True)] for order in (rows, shuffled))
    assert mean_estimate(one[0], one[1]) == mean_estimate(other[0], other[1])


@given(st.lists(st.floats(0, 1), min_size=8, max_size=60))
def test_interval_lies_within_the_range_and_holds_the_mean(values: list[float]) -> None:
    found = mean_estimate(values, bounds=(0, 1))
    if found.low is not None and found.high is not None and found.value is not None:
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_interval_cut_at_the_range_says_so() -> None:
    values = [1.0] * 9 + [0.6]
    found = mean_estimate(values, bounds=(0, 1))
    assert found.high == 1.0
    assert found.method == "mean; t over 10 rows, cut at the range 0 to 1"
    assert mean_estimate(values).high is not None and mean_estimate(values).high > 1  # type: ignore[operator]


def test_nothing_scored_has_no_value() -> None:
    assert mean_estimate([math.nan]) == Estimate(None, None, None, 0.95, 0, "no scored rows")
    assert share_estimate([]) == Estimate(None, None, None, 0.95, 0, "no scored rows")


def test_s01_missing_values_are_left_out_of_the_mean() -> None:
    found = mean_estimate([0.8, math.nan, 0.9])
    assert found.value == pytest.approx(0.85) and found.n == 2


def test_fewer_than_eight_groups_give_no_interval() -> None:
    values, labels = clustered(1, groups=7, each=20)
    found = mean_estimate(values, labels)
    assert (found.low, found.high) == (None, None)
    assert found.method == "mean; no interval: 7 groups, 8 are needed"
    assert share_estimate((values > 0).astype(float), labels).low is None
    assert share_estimate([1, 0, 1]).method == "share; no interval: 3 rows, 8 are needed"


def test_equal_values_never_give_a_width_of_zero() -> None:
    assert mean_estimate([0.7] * 50).low is None
    assert mean_estimate([0.7] * 50).method == "mean; no interval: all values are equal"
    # Every group has the mean .5, so there is no spread between groups to estimate from.
    assert (
        mean_estimate([0.0, 1.0] * 10, np.repeat(range(10), 2)).method == "mean; no interval: the groups do not differ"
    )


@pytest.mark.parametrize(("passes", "n"), [(0, 20), (20, 20), (13, 20), (399, 400)])
def test_share_agrees_with_statsmodels_wilson(passes: int, n: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(passes, n, method="wilson")
    found = share_estimate([1.0] * passes + [0.0] * (n - passes))
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.method == f"share; Wilson over {n} rows"


def test_share_in_groups_is_the_clustered_mean() -> None:
    values, labels = clustered(3)
    passes = (values > 0).astype(float)
    found, mean = share_estimate(passes, labels), mean_estimate(passes, labels, bounds=(0, 1))
    assert (found.low, found.high) == (mean.low, mean.high)
    assert found.method == "share; cluster-robust t over 30 groups"


def test_share_of_groups_that_all_agree_counts_groups_not_rows() -> None:
    found = share_estimate([1.0] * 100, np.repeat(range(10), 10))
    assert found.low == pytest.approx(share_estimate([1.0] * 10).low)


def test_share_of_repeats_is_not_taken_for_whole_passes() -> None:
    assert share_estimate([0.5, 1, 1, 0, 1, 0.5, 0, 1]).method == "share; t over 8 rows"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1.0, math.inf],), "value 1 is infinite"),
        (([1.0, 2.0], ["a"]), "2 values but 1 groups"),
        (([1.0, 2.0], ["a", None]), "value 1 has no group"),
        (([1.0, 2.0], [1.0, math.nan]), "value 1 has no group"),
        (([1.0], None, 1.5), "level must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        mean_estimate(*arguments)


def test_share_outside_its_range_is_refused() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        share_estimate([2.0])
