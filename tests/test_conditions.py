"""The conditions under which intervals must hold, each as 2,000 seeded simulations; slow.

2,000 trials of a true .95 have a standard error of .0049: the band .935 to .965 is three of them to either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from jurimetrics.errors import InputError
from jurimetrics.stats.corrected import corrected_mean, ppi_mean
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.frontier import Frontier, frontier, panel_losses
from jurimetrics.stats.maps import fit_map, weighted_mean
from jurimetrics.stats.rogan_gladen import corrected_pass_rate, rogan_gladen
from jurimetrics.stats.thresholds import choose_threshold, held_out_gain

pytestmark = pytest.mark.slow
RUNS = 2000
Random = np.random.Generator


class Trial(NamedTuple):
    """An interval that was found and the truth it should hold."""

    found: Estimate
    truth: float


def coverage(trial: Callable[[Random], Trial], runs: int = RUNS) -> float:
    """The share of intervals that hold the truth; a run without an interval counts as a failure to cover."""
    held = 0
    for seed in range(runs):
        found, truth = trial(np.random.default_rng(seed))
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    return held / runs


def verdicts(random: Random, truth: Any, sensitivity: float, specificity: float) -> Any:
    right = np.where(truth == 1, random.random(len(truth)) < sensitivity, random.random(len(truth)) < specificity)
    return np.where(right, truth, 1 - truth).astype(float)


def some(random: Random, truth: Any, n: int) -> Any:
    labels = np.full(len(truth), np.nan)
    taken = random.choice(len(truth), n, replace=False)
    labels[taken] = truth[taken]
    return labels


def clustered(random: Random, groups: int, each: int, icc: float) -> tuple[Any, Any]:
    group = np.repeat(np.arange(groups), each)
    return random.normal(0, math.sqrt(icc), groups)[group] + random.normal(0, math.sqrt(1 - icc), len(group)), group


# Random labels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 300])
def test_random_labels_of_pass_and_fail(n: int) -> None:
    def trial(random: Random) -> Trial:
        truth = (random.random(2000) < 0.268).astype(float)
        return Trial(corrected_mean(verdicts(random, truth, 0.6, 0.95), some(random, truth, n)), 0.268)

    assert 0.935 <= coverage(trial) <= 0.965


def test_random_labels_on_a_scale() -> None:
    def trial(random: Random) -> Trial:
        truth = random.choice([1.0, 2, 3, 4, 5], 1000, p=[0.05, 0.1, 0.2, 0.3, 0.35])
        judged = np.clip(truth + random.choice([-1, 0, 1], 1000) + 0.5, 1, 5)
        return Trial(corrected_mean(judged, some(random, truth, 100)), 3.8)

    assert 0.935 <= coverage(trial) <= 0.965


@pytest.mark.parametrize(("n", "least"), [(20, 0.90), (50, 0.93)])
def test_few_labels_keep_more_of_their_level_than_the_published_interval(n: int, least: float) -> None:
    def drawn(random: Random) -> tuple[Any, Any]:
        truth = (random.random(2000) < 0.268).astype(float)
        return verdicts(random, truth, 0.7, 0.95), some(random, truth, n)

    def published(random: Random) -> Trial:
        judged, labels = drawn(random)
        there = ~np.isnan(labels)
        return Trial(ppi_mean(labels[there], judged[there], judged[~there]), 0.268)

    mine = coverage(lambda random: Trial(corrected_mean(*drawn(random)), 0.268))
    assert mine >= least and mine > coverage(published) + 0.005


@pytest.mark.parametrize(("rate", "n"), [(0.02, 100), (0.05, 50), (0.05, 100), (0.1, 60)])
def test_rare_fails_are_allowed_for(rate: float, n: int) -> None:
    def drawn(random: Random) -> tuple[Any, Any]:
        truth = (random.random(2000) < rate).astype(float)
        return verdicts(random, truth, 0.7, 0.95), some(random, truth, n)

    within = coverage(lambda random: Trial(corrected_mean(*drawn(random), bounds=(0, 1)), rate))
    # Without the metric's range the rare ones that were not drawn are forgotten.
    assert within >= 0.93 and within > coverage(lambda random: Trial(corrected_mean(*drawn(random)), rate))


def test_the_judge_alone_and_ppi_against_labels_alone() -> None:
    widths: dict[str, list[float]] = {"judge": [], "labels": [], "raw": []}
    held = 0
    for seed in range(500):
        random = np.random.default_rng(seed)
        truth = (random.random(4000) < 0.268).astype(float)
        judged = verdicts(random, truth, 0.6, 0.955)
        labels = some(random, truth, 300)
        both = {"judge": corrected_mean(judged, labels), "labels": corrected_mean(judged, labels, lam=0)}
        both["raw"] = mean_estimate(judged)
        for name, found in both.items():
            assert found.low is not None and found.high is not None
            widths[name].append(found.high - found.low)
        raw = both["raw"]
        held += bool(raw.low is not None and raw.high is not None and raw.low <= 0.268 <= raw.high)
    # The judge's own interval is the narrowest and hardly ever right.
    assert held / 500 < 0.05
    assert np.mean(widths["raw"]) < np.mean(widths["judge"]) < 0.9 * np.mean(widths["labels"])


def test_these_records_need_the_correction_for_what_is_labelled() -> None:
    def drawn(random: Random) -> tuple[Any, Any, float]:
        truth = (random.random(400) < 0.3).astype(float)
        return verdicts(random, truth, 0.7, 0.9), some(random, truth, 200), float(truth.mean())

    def these(random: Random) -> Trial:
        judged, labels, mean = drawn(random)
        return Trial(corrected_mean(judged, labels, target="these records"), mean)

    def population(random: Random) -> Trial:
        judged, labels, mean = drawn(random)
        return Trial(corrected_mean(judged, labels), mean)

    assert 0.935 <= coverage(these) <= 0.965
    # The interval for the population, held against the records at hand, is far too wide.
    assert coverage(population) >= 0.985


# Clusters -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "low", "high"), [(8, 0.93, 0.975), (15, 0.93, 0.975), (30, 0.935, 0.965), (60, 0.935, 0.965)]
)
def test_whole_groups_labelled(groups: int, low: float, high: float) -> None:
    def trial(random: Random) -> Trial:
        truth, group = clustered(random, 150, 8, 0.3)
        judged = 0.7 * truth + random.normal(0, 0.5, len(truth)) + random.normal(0, 0.3, 150)[group]
        labels = np.where(np.isin(group, random.choice(150, groups, replace=False)), truth, np.nan)
        return Trial(corrected_mean(judged, labels, groups=group), 0.0)

    assert low <= coverage(trial) <= high


def test_records_labelled_across_groups() -> None:
    def trial(random: Random) -> Trial:
        truth, group = clustered(random, 60, 8, 0.3)
        judged = 0.7 * truth + random.normal(0, 0.5, len(truth))
        return Trial(corrected_mean(judged, some(random, truth, 120), groups=group), 0.0)

    assert 0.935 <= coverage(trial) <= 0.965


def test_a_bootstrap_of_rows_would_have_been_noticed() -> None:
    """The negative control: ICC .3 and 8 to a group, resampled as if rows stood alone."""
    held = 0
    weights = np.random.default_rng(0).multinomial(240, np.full(240, 1 / 240), 400) / 240
    for seed in range(RUNS):
        truth, _ = clustered(np.random.default_rng(seed), 30, 8, 0.3)
        # Multinomial weights are rows drawn with replacement; the rows are fresh in every run, so one set serves all.
        low, high = np.quantile(weights @ truth, [0.025, 0.975])
        held += low <= 0 <= high
    assert held / RUNS < 0.80


def test_groups_drawn_of_these_records() -> None:
    def trial(random: Random) -> Trial:
        truth, group = clustered(random, 80, 8, 0.3)
        judged = 0.7 * truth + random.normal(0, 0.5, len(truth))
        labels = np.where(np.isin(group, random.choice(80, 40, replace=False)), truth, np.nan)
        return Trial(corrected_mean(judged, labels, groups=group, target="these records"), float(truth.mean()))

    assert 0.935 <= coverage(trial) <= 0.965


# Labels used twice ----------------------------------------------------------------------------------------------------


def reused(random: Random, n: int, *, cross_fitted: bool) -> Trial:
    """Weights of ten judges fitted by least squares on the labels that then correct the mean."""
    truth = random.normal(0, 1, 1500)
    judges = np.column_stack([0.5 * truth + random.normal(0, 1, 1500) for _ in range(10)])
    labels = some(random, truth, n)
    there = np.flatnonzero(~np.isnan(labels))

    def fitted(rows: Any) -> Any:
        design = np.column_stack([judges, np.ones(1500)])
        return design @ np.linalg.lstsq(design[rows], labels[rows], rcond=None)[0]

    if not cross_fitted:
        scores = fitted(there)
        rest = np.isnan(labels)
        return Trial(ppi_mean(labels[there], scores[there], scores[rest]), 0.0)
    fold = np.zeros(1500, dtype=np.intp)
    fold[there] = fold_codes(there)
    table = np.stack([fitted(there[fold[there] != one]) for one in range(10)])
    return Trial(corrected_mean(table, labels, folds=fold), 0.0)


@pytest.mark.parametrize(("n", "too_few"), [(60, 0.92), (100, 0.945)])
def test_labels_that_weigh_judges_and_correct_the_mean_are_cross_fitted(n: int, too_few: float) -> None:
    cross = coverage(lambda random: reused(random, n, cross_fitted=True))
    naive = coverage(lambda random: reused(random, n, cross_fitted=False))
    assert 0.92 <= cross <= 0.975
    # The fault is seen where it is: fitted and judged on the same labels, the interval is too narrow.
    assert naive < too_few and naive < cross


@pytest.mark.parametrize("kind", ["isotonic", "linear"])
def test_a_map_fitted_on_the_same_labels_is_cross_fitted(kind: Any) -> None:
    def trial(random: Random) -> Trial:
        truth = random.normal(0, 1, 800)
        judged = np.round(2 + truth + random.normal(0, 0.8, 800), 1)
        labels = some(random, truth, 60)
        there = np.flatnonzero(~np.isnan(labels))
        fold = np.zeros(800, dtype=np.intp)
        fold[there] = fold_codes(there, 5)
        parts = [there[fold[there] != one] for one in range(5)]
        table = np.stack([fit_map(kind, judged[part], labels[part])(judged) for part in parts])
        return Trial(corrected_mean(table, labels, folds=fold), 0.0)

    assert coverage(trial) >= 0.92


# Labels not chosen at random ------------------------------------------------------------------------------------------


def by_verdict(random: Random, n: int, total: int = 1500) -> tuple[Any, Any, Any]:
    """Half of the labels from what the judge passed (rarer), half from what it failed."""
    truth = (random.random(total) < 0.3).astype(float)
    judged = verdicts(random, truth, 0.7, 0.95)
    chance = np.where(judged == 1, n / 2 / judged.sum(), n / 2 / (total - judged.sum()))
    labels = np.full(total, np.nan)
    for kind in (0, 1):
        taken = random.choice(np.flatnonzero(judged == kind), n // 2, replace=False)
        labels[taken] = truth[taken]
    return judged, labels, chance


@pytest.mark.parametrize("n", [60, 100, 200])
def test_labels_selected_by_verdict_with_known_probabilities(n: int) -> None:
    def trial(random: Random) -> Trial:
        judged, labels, chance = by_verdict(random, n)
        return Trial(corrected_mean(judged, labels, probabilities=chance), 0.3)

    assert coverage(trial) >= 0.92


def test_labels_selected_by_verdict_taken_for_random_or_for_chosen_by_label_are_refused() -> None:
    import pandas as pd
    from jurimetrics.calibrate.drawing import check_random, check_verdicts

    wrong, caught = [], 0
    for seed in range(200):
        judged, labels, _ = by_verdict(np.random.default_rng(seed), 100)
        there = ~np.isnan(labels)
        rows = pd.DataFrame({"id": range(1500), "variant": "", "metric": "ok", "judge": "ann", "group": range(1500)})
        with pytest.raises(InputError, match="declared a random subset"):
            check_random(rows.assign(score=judged, raters=there.astype(int)))
        # Where people, too, passed just half nothing tells the two apart.
        if np.nansum(labels) != 50:
            caught += 1
            with pytest.raises(InputError, match="chosen by its verdict"):
                check_verdicts(judged, labels, "ok")
        q1, q0 = judged[there & (labels == 1)].mean(), 1 - judged[there & (labels == 0)].mean()
        wrong.append(rogan_gladen(judged.mean(), q0, q1, 1500, 50, 50).value)
    assert caught >= 170
    # What would have been said instead of .30.
    assert np.mean(wrong) < 0.2


def test_random_labels_are_not_refused() -> None:
    import pandas as pd
    from jurimetrics.calibrate.drawing import check_random

    for seed in range(300):
        random = np.random.default_rng(seed)
        truth = (random.random(1000) < 0.05).astype(float)
        labels = some(random, truth, 40)
        rows = pd.DataFrame({"id": range(1000), "variant": "", "metric": "ok", "judge": "ann", "group": range(1000)})
        check_random(rows.assign(score=verdicts(random, truth, 0.8, 0.98), raters=(~np.isnan(labels)).astype(int)))


def disputed(random: Random, n: int, total: int, *, one_by_one: bool) -> tuple[Any, Any, Any, float]:
    """Records on which three judges disagree are drawn four times as often as the others."""
    truth = (random.random(total) < 0.3).astype(float)
    judges = np.stack([verdicts(random, truth, 0.55, 0.95) for _ in range(3)])
    apart = np.ptp(judges, axis=0) > 0
    weight = np.where(apart, 4.0, 1.0)
    if one_by_one:
        chance = np.minimum(1, n * weight / weight.sum())
        labels = np.where(random.random(total) < chance, truth, np.nan)
        return np.median(judges, axis=0), labels, chance, float(truth.mean())
    more = min(int(apart.sum()), round(n * weight[apart].sum() / weight.sum()))
    chance = np.where(apart, more / apart.sum(), (n - more) / (~apart).sum())
    labels = np.full(total, np.nan)
    for kind, size in ((apart, more), (~apart, n - more)):
        taken = random.choice(np.flatnonzero(kind), size, replace=False)
        labels[taken] = truth[taken]
    return np.median(judges, axis=0), labels, chance, float(truth.mean())


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("n", [60, 100, 200])
def test_labels_sampled_by_disagreement(n: int, one_by_one: bool) -> None:
    def trial(random: Random) -> Trial:
        judged, labels, chance, _ = disputed(random, n, 1000, one_by_one=one_by_one)
        return Trial(corrected_mean(judged, labels, probabilities=chance), 0.3)

    assert 0.92 <= coverage(trial) <= 0.98


def test_labels_sampled_by_disagreement_in_these_records() -> None:
    def trial(random: Random) -> Trial:
        judged, labels, chance, mean = disputed(random, 200, 500, one_by_one=False)
        return Trial(corrected_mean(judged, labels, probabilities=chance, target="these records"), mean)

    assert 0.92 <= coverage(trial) <= 0.975


def test_labels_enriched_by_disagreement_are_wrong_unweighted_and_right_weighted() -> None:
    plain, weighted = [], []
    for seed in range(300):
        judged, labels, chance, _ = disputed(np.random.default_rng(seed), 150, 1500, one_by_one=False)
        plain.append(corrected_mean(judged, labels).value)
        weighted.append(corrected_mean(judged, labels, probabilities=chance).value)
    assert abs(np.mean(plain) - 0.3) > 0.03
    assert np.mean(weighted) == pytest.approx(0.3, abs=0.008)


def test_labels_chosen_by_label() -> None:
    def trial(random: Random) -> Trial:
        truth = (random.random(2000) < 0.3).astype(float)
        judged = verdicts(random, truth, 0.75, 0.9)
        labels = np.full(2000, np.nan)
        for kind in (0, 1):
            taken = random.choice(np.flatnonzero(truth == kind), 75, replace=False)
            labels[taken] = kind
        return Trial(corrected_pass_rate(judged, labels), 0.3)

    assert 0.935 <= coverage(trial) <= 0.97


def test_labels_chosen_by_label_in_groups() -> None:
    def trial(random: Random) -> Trial:
        # Whole groups are judged well or badly, and people's verdicts go together in them.
        group = np.repeat(np.arange(250), 6)
        likely = random.beta(1.2, 2.8, 250)[group]
        truth = (random.random(1500) < likely).astype(float)
        hard = random.random(250)[group] < 0.3
        judged = np.where(hard, verdicts(random, truth, 0.5, 0.7), verdicts(random, truth, 0.9, 0.97))
        labels = np.full(1500, np.nan)
        for kind in (0, 1):
            taken = random.choice(np.flatnonzero(truth == kind), 90, replace=False)
            labels[taken] = kind
        return Trial(corrected_pass_rate(judged, labels, group), 0.3)

    assert coverage(trial) >= 0.92


# Thresholds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "low"), [(60, 0.94), (100, 0.94)])
def test_held_out_threshold_covers_what_the_chosen_one_is_worth(n: int, low: float) -> None:
    from scipy.stats import norm

    def trial(random: Random) -> Trial:
        truth = (random.random(n) < 0.4).astype(float)
        scores = random.normal(truth, 1)
        # The value of the threshold that all labels choose, on endlessly many other records.
        cut = choose_threshold(scores, truth, tie="middle").value
        worth = float(norm.sf(cut - 1) + norm.cdf(cut) - 1)
        return Trial(held_out_gain(scores, truth, tie="middle"), worth)

    assert low <= coverage(trial) <= 0.975


@pytest.mark.parametrize(("groups", "objective"), [(15, "youden"), (30, "youden"), (30, "kappa"), (30, "cost")])
def test_held_out_threshold_of_groups_on_steps(groups: int, objective: Any) -> None:
    """Scores of 0 to 5; passes and scores go together within groups of 8."""

    def drawn(random: Random, count: int) -> tuple[Any, Any, Any]:
        group = np.repeat(np.arange(count), 8)
        truth = (random.random(8 * count) < random.beta(1.2, 1.8, count)[group]).astype(float)
        shared = random.normal(0, math.sqrt(0.3), count)[group]
        seen = truth + shared + random.normal(0, math.sqrt(0.7), 8 * count)
        return np.clip(np.round(2 * seen + 2), 0, 5), truth, group

    many, people, _ = drawn(np.random.default_rng(10**6), 40_000)
    worth = {}
    for cut in range(6):
        passed = many >= cut
        hit, wrong = (passed & (people == 1)).mean(), (passed & (people == 0)).mean()
        rate, said = people.mean(), passed.mean()
        chance = said * rate + (1 - said) * (1 - rate)
        missed = rate - hit
        worth[float(cut)] = {
            "youden": hit / rate - wrong / (1 - rate),
            "kappa": (1 - wrong - missed - chance) / (1 - chance),
            "cost": wrong + missed,
        }[objective]

    def trial(random: Random) -> Trial:
        scores, truth, group = drawn(random, groups)
        cut = choose_threshold(scores, truth, objective=objective).value
        return Trial(held_out_gain(scores, truth, group, objective=objective), float(worth[cut]))

    assert 0.93 <= coverage(trial, 1000) <= 0.98


# The best of many panels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "each"), [(60, 1), (40, 5)])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_held_out_loss_of_the_winner_of_thirty_one_panels(loss: Any, n: int, each: int) -> None:
    spread = np.array([0.6, 0.7, 0.8, 0.9, 1.0])

    def drawn(random: Random) -> tuple[Frontier, Any, float]:
        group = np.repeat(np.arange(n), each)
        truth = random.normal(size=n * each)
        # Half of what a judge errs by is of the group, where groups have several records.
        shared = random.normal(size=(5, n))[:, group]
        errors = (
            random.normal(size=(5, n * each)) if each == 1 else (shared + random.normal(size=shared.shape)) / 2**0.5
        )
        scores = truth + spread[:, None] * errors
        found = frontier(scores, truth, [1.0] * 5, group, loss=loss)
        members = list(found.winner.members)
        variance = float((spread[members] ** 2).sum()) / len(members) ** 2
        worth = variance if loss == "squared_error" else math.sqrt(2 * variance / math.pi)
        return found, weighted_mean(panel_losses(scores, truth, members, loss), None, group), worth

    def held_out(random: Random) -> Trial:
        found, _, worth = drawn(random)
        return Trial(found.held_out, worth)

    def on_the_same_labels(random: Random) -> Trial:
        _, flattered, worth = drawn(random)
        return Trial(flattered, worth)

    # On the careful side: in resamples panels take turns at winning more than they do.
    assert 0.94 <= coverage(held_out) <= 0.992
    # The negative control: the winner's loss on the labels that it won on.
    assert coverage(on_the_same_labels, 500) < 0.93
