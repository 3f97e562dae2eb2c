"""The golden values of panels: Dawid and Skene, the alternative annotator test, selective evaluation; second witnesses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jurimetrics.errors import InputError
from jurimetrics.stats.alternative import alt_test, one_sided_p
from jurimetrics.stats.frontier import frontier, panel_losses
from jurimetrics.stats.latent import DawidSkene, dawid_skene, most_frequent
from jurimetrics.stats.multiple import adjust
from jurimetrics.stats.redundancy import error_correlation, leave_one_out, one_more, redundancy
from jurimetrics.stats.selective import fewest_records, trust_threshold, useful_grid
from jurimetrics.stats.thresholds import clopper_pearson_upper
from jurimetrics.stats.weights import fit_weights, held_out_weights

SHARED = Path(__file__).parents[2] / "shared"
GOLDEN = SHARED / "golden.json"
# Regressions of another package and of data that are not here.
ELSEWHERE = {"glad", "mace", "dawid_skene_crowdkit_default"}


def anaesthesia(name: str = "dawid_skene_1979_anaesthesia.csv") -> pd.DataFrame:
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip(f"{name} is not in ../shared/data")
    return pd.read_csv(path)


def fitted(name: str = "dawid_skene_1979_anaesthesia.csv") -> DawidSkene:
    rows = anaesthesia(name)
    return dawid_skene(rows["patient"].to_numpy(), rows["observer"].to_numpy(), rows["label"].to_numpy())


def dawid_skene_em(given: dict[str, Any]) -> dict[str, Any]:
    found = fitted(given["data"])
    patient = {name: found.posterior[at] for at, name in enumerate(found.items)}
    return {
        "class_marginals": found.prevalence,
        "error_rates_observer1": found.errors[0],
        "error_rates_observer2": found.errors[1],
        "loglik": found.log_likelihood,
        "n_iter": found.iterations,
        **{f"posterior_patient_{at}": row for at, row in patient.items()},
    }


def alternative_annotator(given: dict[str, Any]) -> dict[str, Any]:
    if "humans" not in given:
        pytest.skip("the labels of this entry are not in ../shared/data")
    found = alt_test(given["llm"], list(given["humans"].values()), given["epsilon"], q=given["q"])
    return {"winning_rate": found.winning_rate, "advantage_probability": found.advantage}


def alternative_degenerate(given: dict[str, Any]) -> dict[str, Any]:
    p = [one_sided_p([0.0] * 40, epsilon) for epsilon in given["epsilon"]]
    return {"eps0_p": None if math.isnan(p[0]) else p[0], "eps0.1_p": p[1]}


def trusted(given: dict[str, Any]) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    sure = draw.uniform(0.5, 1, 400)
    right = draw.uniform(size=400) < sure
    found = {}
    for start in (99, 95):
        one = trust_threshold(
            sure, right, given["alpha"], given["delta"], [step / 100 for step in range(start, 49, -1)]
        )
        found[f"grid_from_0.{start}"] = None if one.value is None else [one.value, one.n, one.wrong]
    return found | {"rejects_first_lambda_n": int((sure >= 0.99).sum())}


METHODS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "dawid_skene_em": dawid_skene_em,
    "alt_test": alternative_annotator,
    "alt_test_small": alternative_annotator,
    "alt_test_degenerate": alternative_degenerate,
    "by_fdr": lambda given: {"n_rejected": int((adjust(given["p"], "fdr_by").p <= given["q"]).sum())},
    "clopper_pearson_upper": lambda given: {
        "upper": clopper_pearson_upper(given["errors"], given["n"], given["delta"])
    },
    "trust_or_escalate_fixed_sequence": trusted,
}


def entries() -> list[dict[str, Any]]:
    if not GOLDEN.is_file():
        return []
    tests = json.loads(GOLDEN.read_text(encoding="utf-8"))["tests"]
    return [one for one in tests if one["method"] in {*METHODS, *ELSEWHERE}]


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden values ../shared/golden.json are not here")
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry['method']}-{entry['id']}")
def test_golden(entry: dict[str, Any]) -> None:
    if entry["method"] in ELSEWHERE:
        pytest.skip("a regression of another package, which is no witness of this one")
    found = METHODS[entry["method"]](entry["input"])
    compared = 0
    for name, expected in entry["expected"].items():
        if name not in found:
            continue
        compared += 1
        if expected is None or found[name] is None:
            assert found[name] is expected, name
        else:
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=entry["tolerance"] or 1e-12, err_msg=name)
    assert compared


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the golden values ../shared/golden.json are not here")
def test_the_methods_here_have_golden_values() -> None:
    there = {one["method"] for one in entries()}
    assert there >= {"dawid_skene_em", "alt_test_small", "clopper_pearson_upper", "trust_or_escalate_fixed_sequence"}


def test_dawid_skene_equals_the_published_table() -> None:
    """The marginals and the rows of observer 1 as the paper prints them, to two digits."""
    found = fitted()
    assert found.prevalence.round(2).tolist() == [0.4, 0.42, 0.11, 0.07]
    published = [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]
    assert found.errors[0].round(2).tolist() == published


def test_the_likelihood_never_falls_and_is_that_of_the_sum_over_truths() -> None:
    """A second way to the likelihood: every item's labels under each class in turn, multiplied out."""
    draw = np.random.default_rng(5)
    items, judges = (column.ravel() for column in np.meshgrid(range(12), range(3), indexing="ij"))
    labels = draw.integers(0, 2, len(items))
    known = [dawid_skene(items, judges, labels, iterations=steps) for steps in range(6)]
    assert all(two.log_likelihood >= one.log_likelihood - 1e-12 for one, two in pairwise(known))
    last = known[-1]
    total = 0.0
    for item in range(12):
        mine = labels[items == item]
        total += math.log(
            sum(last.prevalence[k] * math.prod(last.errors[j, k, mine[j]] for j in range(3)) for k in range(2))
        )
    assert last.log_likelihood == pytest.approx(total, abs=1e-9)


def test_dawid_skene_recovers_judges_and_beats_the_majority() -> None:
    draw = np.random.default_rng(1)
    truth = draw.integers(0, 2, 600)
    right = [0.95, 0.6, 0.6, 0.6, 0.6]
    said = np.stack([np.where(draw.uniform(size=600) < one, truth, 1 - truth) for one in right])
    items = np.tile(np.arange(600), 5)
    found = dawid_skene(items, np.repeat(range(5), 600), said.ravel())
    votes = most_frequent(items, said.ravel())
    assert found.accuracy == pytest.approx(right, abs=0.06)
    assert np.mean(np.array(found.labels) == truth) > np.mean(np.array(votes.label) == truth) + 0.1


def test_judges_that_share_errors_are_believed_without_gold() -> None:
    """The trap: three judges with the same errors outvote two independent better ones; gold labels show it."""
    draw = np.random.default_rng(2)
    truth = draw.integers(0, 2, 500)
    shared = np.where(draw.uniform(size=500) < 0.7, truth, 1 - truth)
    own = [np.where(draw.uniform(size=500) < 0.85, truth, 1 - truth) for _ in range(2)]
    said = np.stack([shared, shared, shared, *own])
    columns = (np.tile(np.arange(500), 5), np.repeat(range(5), 500), said.ravel())
    blind = dawid_skene(*columns, smoothing=0.01)
    anchored = dawid_skene(*columns, smoothing=0.01, gold={at: truth[at] for at in range(250)})
    assert blind.accuracy[0] > 0.95
    assert anchored.accuracy[0] < blind.accuracy[0] - 0.1


def test_missing_labels_strange_labels_and_unequal_lengths() -> None:
    found = dawid_skene(["a", "a", "b", "b"], ["x", "y", "x", "y"], ["yes", None, "no", "no"])
    assert found.labels == ("yes", "no")
    with pytest.raises(InputError, match="none of the classes"):
        dawid_skene([1, 2], [1, 1], ["a", "c"], classes=["a", "b"])
    with pytest.raises(InputError, match="equally many"):
        dawid_skene([1], [1, 2], ["a"])
    with pytest.raises(InputError, match="no ratings"):
        most_frequent([1], [None])


def test_error_correlation_equals_numpy_and_leaves_out_what_is_missing() -> None:
    draw = np.random.default_rng(0)
    errors = draw.normal(size=(4, 200)) + draw.normal(size=200)
    np.testing.assert_allclose(error_correlation(errors), np.corrcoef(errors), atol=1e-12)
    errors[0, :50] = np.nan
    assert error_correlation(errors)[0, 1] == pytest.approx(np.asarray(np.corrcoef(errors[:2, 50:]))[0, 1], abs=1e-12)
    errors[3] = 0.5
    assert np.isnan(error_correlation(errors)[3]).all()
    assert redundancy(errors).effective.value is None


def test_the_effective_number_is_what_the_variance_of_the_mean_says() -> None:
    draw = np.random.default_rng(4)
    errors = draw.normal(size=(5, 5000)) + 0.8 * draw.normal(size=5000)
    errors = (errors - errors.mean(axis=1, keepdims=True)) / errors.std(axis=1, keepdims=True)
    assert redundancy(errors).effective.value == pytest.approx(1 / errors.mean(axis=0).var(), rel=1e-9)
    assert redundancy(errors, np.repeat(range(500), 10)).mean_correlation.low is not None


@pytest.mark.parametrize("groups", [8, 20, 59, 60])
def test_the_effective_number_has_an_interval_however_many_groups(groups: int) -> None:
    draw = np.random.default_rng(5)
    errors = draw.normal(size=(4, groups * 5)) + draw.normal(size=groups * 5)
    found = redundancy(errors, np.repeat(range(groups), 5)).effective
    assert found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high < np.inf


def test_one_more_judge_is_worth_what_dropping_one_says() -> None:
    """Over all panels of k judges the mean squared error is a + b / k: two sizes give a and b, and so the next step."""
    draw = np.random.default_rng(6)
    truth = draw.normal(size=300)
    scores = truth + draw.normal(size=(4, 300)) + 0.5 * draw.normal(size=300)
    sizes = frontier(scores, truth, [1.0] * 4, loss="squared_error").sizes
    slope = (sizes[2].average - sizes[3].average) / (1 / 3 - 1 / 4)
    assert one_more(scores - truth).value == pytest.approx(slope * (1 / 4 - 1 / 5), rel=1e-9)


def test_leaving_out_a_good_judge_costs_and_a_bad_one_gains() -> None:
    draw = np.random.default_rng(7)
    truth = draw.normal(size=200)
    scores = np.stack([truth + 0.1 * draw.normal(size=200), truth + 0.1 * draw.normal(size=200), -truth])
    whole = panel_losses(scores, truth, (0, 1, 2), "squared_error")
    without = [panel_losses(scores, truth, [j for j in range(3) if j != one], "squared_error") for one in range(3)]
    lost = [one.lost.value for one in leave_one_out(whole, np.stack(without))]
    assert lost[0] > 0 and lost[2] < 0  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["least_squares", "logistic"])
def test_weights_meet_the_conditions_of_a_minimum(kind: Any) -> None:
    """Karush, Kuhn and Tucker: the slope is 0 where a weight is above 0, and points upwards where it is 0."""
    draw = np.random.default_rng(8)
    truth = draw.normal(size=400)
    scores = np.stack(
        [truth + draw.normal(size=400), truth + 2 * draw.normal(size=400), -truth + draw.normal(size=400)]
    )
    labels = (truth > 0).astype(float) if kind == "logistic" else 2 * truth + 1
    found = fit_weights(scores, labels, kind)
    off = found(scores) - labels
    spread = scores.std(axis=1)
    slope = (scores @ off) / spread + (np.array(found.weights) * spread if kind == "logistic" else 0)
    assert found.weights[0] > found.weights[1] > 0 == found.weights[2]
    assert slope[:2] == pytest.approx([0, 0], abs=1e-3)
    assert slope[2] > 1 and off.sum() == pytest.approx(0, abs=1e-3)


def test_least_squares_weights_equal_a_search() -> None:
    scores = np.array([[1.0, 2, 3, 4, 5, 2, 3, 1], [2.0, 2, 4, 3, 5, 1, 2, 2]])
    labels = np.array([1.0, 2, 4, 4, 5, 1, 3, 1])
    grid = np.arange(0, 1.5, 0.05)

    def error(one: float, two: float) -> float:
        rest = labels - one * scores[0] - two * scores[1]
        return float(((rest - rest.mean()) ** 2).sum())

    best = min(product(grid, grid), key=lambda pair: error(*pair))
    found = fit_weights(scores, labels)
    assert found.weights == pytest.approx(best, abs=0.06)
    assert error(*found.weights) <= error(*best)


def test_held_out_weights_do_not_see_their_own_group() -> None:
    draw = np.random.default_rng(9)
    scores, labels = draw.normal(size=(6, 60)), draw.normal(size=60)
    groups = np.repeat(range(20), 3)
    inside = fit_weights(scores, labels)(scores)
    outside = held_out_weights(scores, labels, groups).predicted
    # Noise fitted to noise looks better than nothing on its own records and worse than nothing on others.
    assert ((inside - labels) ** 2).mean() < labels.var() <= ((outside - labels) ** 2).mean() + 0.05
    changed = labels.copy()
    changed[:3] += 100
    np.testing.assert_allclose(held_out_weights(scores, changed, groups).predicted[:3], outside[:3])


def test_the_winner_of_many_noisy_panels_is_worth_less_held_out() -> None:
    draw = np.random.default_rng(10)
    flattered = []
    for _ in range(40):
        truth = draw.integers(0, 2, 40).astype(float)
        scores = np.where(draw.uniform(size=(6, 40)) < 0.6, truth, 1 - truth)
        found = frontier(scores, truth, [1.0] * 6, loss="error_rate")
        assert found.held_out.value is not None
        flattered.append(found.held_out.value - found.winner.loss)
    assert np.mean(flattered) > 0.02


def test_the_frontier_equals_a_search_by_hand_and_heeds_the_money() -> None:
    draw = np.random.default_rng(11)
    truth = draw.normal(size=80)
    scores = truth + draw.normal(size=(3, 80)) * np.array([[0.5], [1.0], [2.0]])
    found = frontier(scores, truth, [5.0, 1.0, 0.5], loss="absolute_error")
    assert [one.cost for one in found.panels] == sorted(one.cost for one in found.panels)
    for one in found.panels:
        by_hand = np.abs(scores[list(one.members)].mean(axis=0) - truth).mean()
        assert one.loss == pytest.approx(by_hand)
        beaten = any(
            other.loss <= one.loss and other.cost <= one.cost and (other.loss, other.cost) != (one.loss, one.cost)
            for other in found.panels
        )
        assert one.efficient is not beaten
    assert frontier(scores, truth, [5.0, 1.0, 0.5], most=2.0).winner.members != found.winner.members
    with pytest.raises(InputError, match=r"at most 0\.1"):
        frontier(scores, truth, [5.0, 1.0, 0.5], most=0.1)
    unknown = frontier(scores, truth, [math.nan, 1.0, 0.5])
    assert [one.efficient for one in unknown.panels if 0 in one.members] == [None] * 4


def test_the_alternative_test_equals_scipy_and_statsmodels() -> None:
    from scipy.stats import ttest_1samp
    from statsmodels.stats.multitest import multipletests

    draw = np.random.default_rng(12)
    truth = draw.integers(0, 3, 80)
    people = np.where(draw.uniform(size=(4, 80)) < 0.7, truth, draw.integers(0, 3, (4, 80))).astype(float)
    people[0, :20] = np.nan
    judge = np.where(draw.uniform(size=80) < 0.75, truth, draw.integers(0, 3, 80)).astype(float)
    found = alt_test(judge, people, 0.15, closeness="rmse")
    p = []
    for at, one in enumerate(found.annotators):
        others = np.delete(people, at, axis=0)
        use = ~np.isnan(people[at])
        near = [-np.sqrt(np.nanmean((who[use] - others[:, use]) ** 2, axis=0)) for who in (judge, people[at])]
        wins = (near[1] >= near[0]).astype(float) - (near[0] >= near[1])
        assert one.n == use.sum()
        p.append(ttest_1samp(wins, 0.15, alternative="less").pvalue)
    assert [one.p for one in found.annotators] == pytest.approx(p, rel=1e-9)
    rejected, adjusted, _, _ = multipletests(p, 0.05, "fdr_by")
    assert [one.adjusted for one in found.annotators] == pytest.approx(adjusted.tolist(), rel=1e-9)
    assert [one.rejected for one in found.annotators] == rejected.tolist()


def test_annotators_with_few_items_are_not_tested_and_one_is_not_enough() -> None:
    draw = np.random.default_rng(13)
    people = draw.integers(0, 2, (3, 50)).astype(float)
    people[2, 10:] = np.nan
    assert alt_test(people[0], people, 0.1).left_out == (2,)
    people[1, 10:] = np.nan
    with pytest.raises(InputError, match="two annotators with 30 items"):
        alt_test(people[0], people, 0.1)


def test_the_bound_equals_a_search_for_the_error_rate() -> None:
    from scipy.optimize import brentq
    from scipy.stats import binom

    for wrong, n in ((0, 22), (3, 40), (28, 239)):
        searched = brentq(lambda rate, k=wrong, n=n: binom.cdf(k, n, rate) - 0.1, 1e-9, 1 - 1e-9, xtol=1e-12)
        assert clopper_pearson_upper(wrong, n, 0.1) == pytest.approx(searched, abs=1e-9)
    least = fewest_records(0.15, 0.1)
    assert clopper_pearson_upper(0, least, 0.1) <= 0.15 < clopper_pearson_upper(0, least - 1, 0.1)


def test_the_guarantee_of_a_threshold_holds() -> None:
    """P(disagreement above alpha among the trusted) stays at most delta, the start of the grid chosen by counts included.

    500 draws, delta .1: at most .1 plus 2.6 standard errors of .0134; a threshold must also be found most of the time.
    """
    draw = np.random.default_rng(14)
    missed = found = 0
    for _ in range(500):
        sure = draw.uniform(0.5, 1, 200)
        right = draw.uniform(size=200) < sure
        grid = useful_grid(sure, 0.2, 0.1)
        one = trust_threshold(sure, right, 0.2, 0.1, grid)
        if one.value is not None:
            found += 1
            missed += (1 - (1 + one.value) / 2) > 0.2
    assert found > 250
    assert missed / 500 <= 0.1 + 2.6 * math.sqrt(0.09 / 500)


def test_a_grid_must_fall_and_confidences_be_numbers() -> None:
    with pytest.raises(InputError, match="falls"):
        trust_threshold([0.5], [1], 0.1, 0.1, (0.5, 0.6))
    with pytest.raises(InputError, match="equally many"):
        trust_threshold([math.nan], [1], 0.1, 0.1)
    assert useful_grid([0.9] * 5, 0.1, 0.1) == ()


def test_one_record_of_a_cluster_keeps_the_level_and_all_of_them_do_not() -> None:
    """2,000 draws of 40 clusters of 8 verdicts with intraclass correlation .3, of which .15 are wrong, delta .1.

    How often the bound lies below the truth: with one verdict of each cluster at most .1 plus two standard errors of
    .0067; with all of them, as if they stood alone, far above, the negative control.
    """
    draw = np.random.default_rng(15)
    rate, icc = 0.15, 0.3
    spread = 1 / icc - 1
    chance = draw.beta(rate * spread, (1 - rate) * spread, size=(2000, 40, 1))
    wrong = draw.uniform(size=(2000, 40, 8)) < chance
    alone = np.mean([clopper_pearson_upper(int(one), 40, 0.1) < rate for one in wrong[:, :, 0].sum(axis=1)])
    together = np.mean([clopper_pearson_upper(int(one), 320, 0.1) < rate for one in wrong.sum(axis=(1, 2))])
    assert alone <= 0.1 + 2 * 0.0067
    assert together > 0.15


def test_the_alternative_test_rejects_a_worse_judge_no_oftener_than_it_says() -> None:
    """2,000 draws of 60 items on which the annotator wins oftener by just epsilon: rejected at .05 at most two standard
    errors oftener than that, and .01 more for a t test of three values; at least .6 of it, so that it has power at all.
    """
    draw = np.random.default_rng(16)
    differences = draw.choice([-1.0, 0.0, 1.0], p=[0.1, 0.6, 0.3], size=(2000, 60))
    p = np.array([one_sided_p(one, 0.2) for one in differences])
    assert (p <= 0.05).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 2000) + 0.01
    assert (p <= 0.05).mean() >= 0.6 * 0.05
