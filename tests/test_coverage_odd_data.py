"""Odd data for every statistic: what cannot be told is None with a reason in words or an `InputError`, never a bare NaN, a
warning of numpy (warnings are errors here) or an error of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.stats.agreement import fleiss_kappa, gwet_ac, krippendorff_alpha
from jurimetrics.stats.alternative import alt_test
from jurimetrics.stats.corrected import corrected_mean
from jurimetrics.stats.estimate import Estimate, mean_estimate, share_estimate
from jurimetrics.stats.finding import mean_differences
from jurimetrics.stats.flips import sign_flips
from jurimetrics.stats.frontier import frontier
from jurimetrics.stats.halo import halo_of
from jurimetrics.stats.icc import icc
from jurimetrics.stats.kappa import cohen_kappa, raw_agreement
from jurimetrics.stats.latent import dawid_skene
from jurimetrics.stats.lengths import length_controlled, verbosity
from jurimetrics.stats.maps import calibration_error, fit_map, held_out, log_loss, mean_error, reliability_curve
from jurimetrics.stats.paired import bca_difference, design_effect, effect_size, paired_difference, worst_case
from jurimetrics.stats.probes import position, self_preference
from jurimetrics.stats.ranks import correlation, correlation_between, correlation_within
from jurimetrics.stats.redundancy import leave_one_out, one_more, redundancy
from jurimetrics.stats.retest import retest
from jurimetrics.stats.rogan_gladen import corrected_pass_rate
from jurimetrics.stats.strengths import bradley_terry, mean_ranks
from jurimetrics.stats.thresholds import choose_threshold, held_out_gain
from jurimetrics.stats.weights import fit_weights, held_out_weights

Column = list[float]
NAN = math.nan
SCALE = (1.0, 2.0, 3.0, 4.0, 5.0)
STEPS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, NAN])
HALVES = st.sampled_from([0.0, 0.5, 1.0, NAN])
PASSES = st.sampled_from([0.0, 1.0])
# Huge, tiny, alike but for the last digits, tied.
NUMBERS = st.sampled_from([0.0, 1.0, 1.0 + 2**-52, -1.0, 1e-300, 1e-9, 0.1 + 0.2, 0.3, 1e8, 1e8 + 1, 1e60, -1e60, NAN])


def estimates(found: Any) -> Iterator[Estimate]:
    """Every estimate in a result, however deep."""
    if isinstance(found, Estimate):
        yield found
    elif is_dataclass(found):
        for one in fields(found):
            yield from estimates(getattr(found, one.name))
    elif isinstance(found, dict):
        yield from estimates(list(found.values()))
    elif isinstance(found, list | tuple):
        for one in found:
            yield from estimates(one)


def sound(call: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Nothing but `InputError` with words, and estimates that are numbers or say why they are not."""
    try:
        found = call(*given, **named)
    except InputError as fault:
        assert str(fault).strip()
        return
    for one in estimates(found):
        assert one.method.strip()
        assert (one.low is None) == (one.high is None), one
        if one.value is None:
            assert one.low is None and len(one.method) > 8, one
            continue
        assert math.isfinite(one.value), one
        if one.low is None or one.high is None:
            assert "no interval" in one.method or "undefined" in one.method, one
        else:
            assert math.isfinite(one.low) and math.isfinite(one.high) and one.low <= one.high, one


def columns(cell: st.SearchStrategy[float], count: int, most: int = 14) -> st.SearchStrategy[list[Column]]:
    """`count` columns of the same length; in one example of three a column is constant, or they are copies."""

    def shaped(size: int) -> st.SearchStrategy[list[Column]]:
        drawn = st.lists(cell, min_size=size, max_size=size)
        constant = cell.map(lambda value: [value] * size)
        each = st.tuples(*[st.one_of(drawn, drawn, constant) for _ in range(count)]).map(list)
        return st.one_of(each, each, drawn.map(lambda one: [list(one) for _ in range(count)]))

    return st.integers(0, most).flatmap(shaped)


def groupings(n: int) -> list[Sequence[Any] | None]:
    """No groups, one group, pairs, each row alone, eight groups."""
    return [None, ["a"] * n, [at // 2 for at in range(n)], list(range(n)), [str(at % 8) for at in range(n)]]


EASY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EASY
@given(columns(STEPS, 2), st.integers(0, 4))
@example([[3.0] * 12, [3.0] * 12], 3)
@example([[1.0, 2.0] * 50, [1.0] * 100], 3)
@example([[1.0], [NAN]], 0)
def test_two_raters_on_a_scale(pair: list[Column], at: int) -> None:
    groups = groupings(len(pair[0]))[at]
    # The last two: a scale of one step, and one that nobody used.
    for scale in (SCALE, (3.0,), (7.0, 8.0)):
        for kind in ("plain", "linear", "quadratic"):
            sound(cohen_kappa, *pair, scale, kind, groups)
        for close in ("plain", "linear", "quadratic", "ordinal"):
            sound(gwet_ac, pair, scale, close, groups)
    sound(raw_agreement, *pair, groups)


@EASY
@given(columns(st.one_of(STEPS, NUMBERS), 3), st.integers(0, 4))
@example([[1e60, -1e60, 1e60]] * 3, 0)
@example([[1.0, 3.0], [2.0, 2.0], [2.0, 2.0]], 0)
@example([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [2.0, 2.0, 1.0]], 0)
@example([[1e8, 1e8 + 1] * 6, [1e8 + 1, 1e8] * 6, [1e8] * 12], 3)
def test_several_raters(raters: list[Column], at: int) -> None:
    groups = groupings(len(raters[0]))[at]
    for distance in ("nominal", "ordinal", "interval", "ratio"):
        sound(krippendorff_alpha, raters, distance, groups)
    table = np.array(raters, dtype=np.float64)
    for form in ("1,1", "2,1", "3,1", "1,k", "2,k", "3,k"):
        sound(icc, table.T, form, groups)
    sound(retest, table.T, groups)
    sound(retest, table.T, groups, scale=SCALE)
    sound(redundancy, table, groups)
    sound(one_more, table, groups)
    sound(leave_one_out, table[0], table[1:], groups)


@EASY
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3).map(list), max_size=12), st.integers(0, 4))
def test_counts_of_categories(counts: list[list[int]], at: int) -> None:
    groups = groupings(len(counts))[at]
    for chance in ("given", "uniform"):
        sound(fleiss_kappa, counts, chance, groups)


@EASY
@given(columns(st.one_of(STEPS, NUMBERS), 2), st.integers(0, 4))
@example([[1.0 + 2**-52, 1.0] * 6, [1.0, 2.0] * 6], 0)
@example([[1e60, -1e60] * 6, [1e60, 1.0] * 6], 3)
@example([[1e-300, 0.0] * 6, [1.0, 2.0] * 6], 3)
def test_correlations(pair: list[Column], at: int) -> None:
    n = len(pair[0])
    groups = groupings(n)[at]
    for kind in ("pearson", "spearman", "kendall"):
        sound(correlation, *pair, kind, groups)
        sound(correlation_within, *pair, groups or list(range(n)), kind)
        sound(correlation_between, *pair, [str(i % 4) for i in range(n)], kind, groups, resamples=50)
    sound(halo_of, (pair[0], pair[1]), (pair[1], pair[0]), groups, resamples=50)


@EASY
@given(columns(NUMBERS, 2), st.integers(0, 4))
@example([[1e60] * 9, [-1e60] * 9], 3)
def test_means_and_differences(pair: list[Column], at: int) -> None:
    groups = groupings(len(pair[0]))[at]
    a, b = np.array(pair[0]), np.array(pair[1])
    sound(mean_estimate, a, groups)
    sound(share_estimate, a, groups)
    sound(paired_difference, a, b, groups)
    sound(bca_difference, a, b, groups, resamples=50)
    sound(mean_differences, a - b, groups, flips=99)
    sound(worst_case, a, b, (0, 1))
    flipped = sign_flips(a - b, groups, flips=99)
    # What is no number has its reason in words.
    assert math.isnan(flipped.p[0]) == (flipped.groups[0] == 0)
    assert not math.isnan(flipped.low[0]) or flipped.why[0] or flipped.alpha == 0
    for number in (effect_size(a, b), design_effect(a, groups)):
        assert math.isnan(number) or math.isfinite(number)


@EASY
@given(columns(HALVES, 2), st.integers(0, 4))
@example([[1.0] * 20, [0.0] * 20], 3)
def test_preferences(pair: list[Column], at: int) -> None:
    one, other = pair
    n = len(one)
    groups = groupings(n)[at]
    lengths = [float((place * 7) % 5 - 2) for place in range(n)]
    sound(position, one, other, groups)
    sound(self_preference, one, other, groups)
    sound(verbosity, one, lengths, other, groups)
    sound(verbosity, one, [0.0] * n, None, groups)
    sound(length_controlled, one, lengths, [0.0] * n, groups)
    sound(bradley_terry, ["a"] * n, ["b"] * n, one, groups, resamples=50)
    sound(bradley_terry, [str(i % 3) for i in range(n)], [str((i + 1) % 3) for i in range(n)], one, groups)
    sound(mean_ranks, np.array(pair).T, groups)
    sound(alt_test, one, [one, other, other], 0.1, fewest=2)
    sound(dawid_skene, [*range(n), *range(n)], ["a"] * n + ["b"] * n, [*one, *other])


@EASY
@given(columns(NUMBERS, 1), st.data(), st.integers(0, 4))
def test_scores_and_labels(scores: list[Column], data: st.DataObject, at: int) -> None:
    n = len(scores[0])
    groups = groupings(n)[at]
    x, y = np.array(scores[0]), np.array(data.draw(st.lists(PASSES, min_size=n, max_size=n)))
    some, chance = np.where(np.arange(n) % 2 == 0, y, NAN), np.clip(np.nan_to_num(x), 0, 1)
    for kind in ("isotonic", "platt", "linear"):
        sound(fit_map, kind, x, y)
        sound(held_out, kind, x, y, groups, folds=3)
    for objective in ("youden", "balanced_accuracy", "cost", "kappa"):
        sound(choose_threshold, x, y, objective=objective, tie="middle")
        sound(held_out_gain, x, y, groups, objective=objective)
    sound(corrected_mean, x, some, groups=groups)
    sound(corrected_mean, x, some, groups=groups, target="these records")
    sound(corrected_pass_rate, y, some, groups)
    sound(mean_error, x, y, groups)
    sound(log_loss, chance, y, groups)
    sound(calibration_error, chance, y)
    sound(reliability_curve, chance, y)
    sound(frontier, np.array([x, x, y]), y, [1.0, NAN, 2.0], groups)
    sound(fit_weights, np.array([x, y]), y)
    sound(fit_weights, np.array([x, y]), y, "logistic")
    sound(held_out_weights, np.array([x, y]), y, groups)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("value", [0.0, 3.0, 1e60, 0.1 + 0.2])
def test_constant_columns_of_every_size(n: int, value: float) -> None:
    one, groups = [value] * n, list(range(n))
    sound(cohen_kappa, one, one, SCALE, groups=groups)
    sound(krippendorff_alpha, [one, one], "interval", groups)
    sound(gwet_ac, [one, one], SCALE, groups=groups)
    sound(icc, np.array([one, one]).T, "2,k", groups)
    sound(correlation, one, one, "kendall", groups)
    sound(correlation_within, one, one, groups)
    sound(mean_estimate, one, groups)
    sound(held_out_gain, one, [at % 2 for at in range(n)], groups)
    sound(corrected_mean, one, one, groups=groups)
    sound(redundancy, np.array([one, one]), groups)
