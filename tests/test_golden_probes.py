"""Statistics of bias probes against golden values, recorded verdicts, and other packages as second witnesses."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurimetrics.errors import InputError
from jurimetrics.stats.finding import mean_differences, with_p
from jurimetrics.stats.lengths import length_controlled, verbosity
from jurimetrics.stats.logit import logit
from jurimetrics.stats.probes import Position, position, self_preference
from jurimetrics.stats.resampling import Statistic
from jurimetrics.stats.retest import retest

GOLDEN = Path(__file__).parents[2] / "shared" / "golden.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.is_file():
        pytest.skip("the golden values ../shared/golden.json are not here")
    return {one["method"]: one for one in json.loads(GOLDEN.read_text(encoding="utf-8"))["tests"]}


@pytest.fixture(scope="module")
def verdicts(shared_data: Path) -> dict[tuple[str, str, str], list[dict[str, str]]]:
    """Recorded verdicts by subset, judge and strategy; rating strategies code a tie as "second shown wins"."""
    found: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    with (shared_data / "llmbar_verdicts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["strategy"].startswith("Rating"):
                found.setdefault((row["subset"], row["judge"], row["strategy"]), []).append(row)
    return found


def won(rows: list[dict[str, str]], column: str) -> list[float]:
    return [{"1": 1.0, "2": 0.0}.get(row[column], math.nan) for row in rows]


def position_of(rows: list[dict[str, str]]) -> Position:
    return position(won(rows, "verdict_orig"), won(rows, "verdict_swap"), [row["idx"] for row in rows])


# --- the place ---


def test_position_of_recorded_verdicts(golden: dict[str, Any], verdicts: dict[Any, list[dict[str, str]]]) -> None:
    one = golden["position_bias"]
    rows = verdicts[one["input"]["subset"], one["input"]["judge"], one["input"]["strategy"]]
    found, expected = position_of(rows), one["expected"]
    numbers = {
        "n": found.n,
        "first_pick_rate": found.first_pick_rate.value,
        "consistency": found.consistency.value,
        "prefers_first": found.both_first,
        "prefers_second": found.both_second,
        "mcnemar_sign_p": found.p,
    }
    for name, value in numbers.items():
        assert value == pytest.approx(expected[name], abs=one["tolerance"]), name


def test_position_of_the_most_swayed_judge(verdicts: dict[Any, list[dict[str, str]]]) -> None:
    found = position_of(verdicts["Neighbor", "Falcon", "Vanilla_NoRules"])
    assert (found.both_first, found.both_second, found.n) == (78, 1, 134)
    assert found.consistency.value == pytest.approx(0.41, abs=0.005)
    assert found.p == pytest.approx(2.6e-22, rel=0.02)
    assert found.first_pick_rate.low is not None
    assert found.first_pick_rate.low > 0.5


def test_position_of_every_judge_is_that_of_plain_counting(verdicts: dict[Any, list[dict[str, str]]]) -> None:
    """For each judge under the plain prompt, over all subsets; unreadable verdicts leave only their own pair out."""
    from scipy.stats import binomtest

    judges = sorted({judge for _, judge, _ in verdicts})
    assert len(judges) == 6
    for judge in judges:
        rows = [
            row for (_, name, strategy), all_ in verdicts.items() if name == judge and strategy == "CoT" for row in all_
        ]
        pairs = Counter((row["verdict_orig"], row["verdict_swap"]) for row in rows)
        found = position_of(rows)
        whole = sum(number for pair, number in pairs.items() if "" not in pair)
        assert (found.n, found.unreadable, found.ties) == (whole, len(rows) - whole, 0), judge
        assert (found.both_first, found.both_second) == (pairs["1", "2"], pairs["2", "1"]), judge
        assert found.consistency.value == pytest.approx((pairs["1", "1"] + pairs["2", "2"]) / whole), judge
        if found.test == "exact binomial":
            assert found.p == pytest.approx(binomtest(pairs["1", "2"], pairs["1", "2"] + pairs["2", "1"]).pvalue), judge


def test_ties_and_unreadable_pairs_are_counted_apart() -> None:
    found = position([1, 0.5, 1, math.nan, 0], [1, 0.5, 0.5, 1, 1])
    assert (found.n, found.ties, found.unreadable) == (2, 2, 1)
    assert (found.both_first, found.both_second) == (0, 1)
    # Verdicts that name a winner: A first: 1, 1, 0; B first: 1, 1, 1 (A wins, second shown), so 2 of 6 name the first.
    assert found.first_pick_rate.value == pytest.approx(2 / 6)


def test_swings_in_one_group_are_not_independent() -> None:
    groups = [f"g{at // 10}" for at in range(80)]
    found = position([1] * 80, [0] * 80, groups)
    assert found.test == "all 128 sign patterns by group"
    assert found.p == pytest.approx(2 / 256)
    alone = position([1] * 80, [0] * 80)
    assert alone.test == "exact binomial"
    assert alone.p < 1e-20


def test_other_codes_are_refused() -> None:
    with pytest.raises(InputError, match="a_first: 1, 0,"):
        position([2, 1], [1, 1])
    with pytest.raises(InputError, match="same length"):
        position([1, 1], [1])


# --- the author ---


def test_self_preference_of_a_recorded_judge(shared_data: Path) -> None:
    """The judge is a tuned llama-7b; pairs in which one answer is llama-7b's, people by majority of three."""
    judge, people = [], []
    with (shared_data / "pandalm_pairwise.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            models = (row["model_1"], row["model_2"])
            if models.count("llama-7b") != 1:
                continue
            own = models.index("llama-7b") + 1
            vote, number = Counter(row["human"]).most_common(1)[0]
            code = {own: 1.0, 3 - own: 0.0, 0: 0.5}
            people.append(code[vote] if number > 1 else math.nan)
            judge.append(code[row["judge_pandalm_raw"]])
    found = self_preference(judge, people)
    assert (found.n_own, found.n_other) == (281, 103)
    assert found.own.value == pytest.approx(0.733, abs=5e-4)
    assert found.other.value == pytest.approx(0.680, abs=5e-4)
    assert found.difference.value == pytest.approx(0.053, abs=5e-4)
    assert found.p is not None
    assert found.p > 0.2
    assert found.difference.low is not None
    assert found.difference.low < 0 < (found.difference.high or 0)


def test_self_preference_of_one_sided_people_has_no_value() -> None:
    found = self_preference([1, 0] * 10, [1] * 20)
    assert found.difference.value is None
    assert found.p is None
    assert "one side only" in found.difference.method


# --- the length ---


def test_length_controlled_win_rate(golden: dict[str, Any], shared_data: Path) -> None:
    one = golden["length_controlled_minimal"]
    path = shared_data / one["input"]["data"]
    if not path.is_file():
        pytest.skip(f"{one['input']['data']} is not among the shared data")
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[frame["model"] == one["input"]["model"]]
    found = length_controlled(frame["preference"], frame["len_model"], frame["len_baseline"])
    assert found.slope.value == pytest.approx(one["expected"]["a"], abs=one["tolerance"])
    assert found.intercept == pytest.approx(one["expected"]["b"], abs=one["tolerance"])


def answers(seed: int, n: int = 300) -> tuple[Any, Any, Any]:
    """Shares won by a model whose judge favours length, and both lengths."""
    random = np.random.default_rng(seed)
    model, base = random.lognormal(6, 0.5, n), random.lognormal(6.3, 0.4, n)
    odds = -0.5 - 1.5 * np.tanh((base - model) / (base - model).std(ddof=1))
    return (np.clip(1 / (1 + np.exp(-odds)) + random.normal(0, 0.2, n), 0, 1), model, base)


@pytest.mark.parametrize("seed", range(3))
def test_length_controlled_fit_is_that_of_statsmodels(seed: int) -> None:
    import statsmodels.api as sm

    share, model, base = answers(seed)
    gap = base - model
    design = np.stack([np.tanh(gap / gap.std(ddof=1)), np.ones(len(gap))], axis=1)
    theirs = sm.GLM(share, design, family=sm.families.Binomial()).fit()
    found = length_controlled(share, model, base)
    assert found.slope.value == pytest.approx(theirs.params[0], abs=1e-7)
    assert found.intercept == pytest.approx(theirs.params[1], abs=1e-7)
    assert found.controlled.value == pytest.approx(1 / (1 + math.exp(-theirs.params[1])), abs=1e-8)
    assert found.slope.low is not None
    # The sandwich error of independent rows is the yardstick of the bootstrap over rows.
    robust = sm.GLM(share, design, family=sm.families.Binomial()).fit(cov_type="HC1").bse[0]
    assert (found.slope.high or 0) - found.slope.low == pytest.approx(2 * 1.96 * robust, rel=0.12)


def test_a_fit_without_a_maximum_has_no_value() -> None:
    design = np.stack([np.ones(20), np.repeat([-1.0, 1.0], 10)], axis=1)
    fit = logit(design, np.repeat([0.0, 1.0], 10), np.arange(20), 20)
    assert np.isnan(fit.coefficients(np.ones((1, 20)))).all()
    constant = logit(np.ones((20, 2)), np.tile([0.0, 1.0], 10), np.arange(20), 20)
    found = constant.coefficients(np.ones((2, 20)))
    assert np.isnan(found).all() or np.allclose(found.sum(axis=1), 0)


def pairs(seed: int, bias: float, n: int = 400) -> tuple[Any, Any, Any, Any]:
    """A judge whose log odds are those of people plus `bias` for the longer answer."""
    random = np.random.default_rng(seed)
    gap, worth = random.normal(0, 300, n), random.normal(0, 1.5, n)
    people = (random.random(n) < 1 / (1 + np.exp(-worth - 0.3 * np.sign(gap)))).astype(float)
    judge = (random.random(n) < 1 / (1 + np.exp(-2 * (people - 0.5) * 1.5 - bias * np.sign(gap)))).astype(float)
    return judge, gap, people, random.integers(0, 100, n)


def test_a_judge_that_likes_length_is_found_and_one_that_does_not_is_not() -> None:
    judge, gap, people, groups = pairs(0, 1.2)
    found = verbosity(judge, gap, people, groups)
    assert found.excess.low is not None
    assert found.excess.low > 0
    assert found.slope.low is not None
    assert found.slope.low > 0
    assert (found.p or 1) < 1e-4
    assert (found.slope_p or 1) < 1e-4
    judge, gap, people, groups = pairs(1, 0.0)
    fair = verbosity(judge, gap, people, groups)
    assert (fair.slope_p or 0) > 0.05


def test_slope_beside_people_is_that_of_statsmodels() -> None:
    import statsmodels.api as sm

    judge, gap, people, _ = pairs(2, 0.6)
    design = np.stack([np.ones(len(gap)), np.tanh(gap / gap.std(ddof=1)), people - 0.5], axis=1)
    theirs = sm.Logit(judge, design).fit(disp=False)
    assert verbosity(judge, gap, people).slope.value == pytest.approx(theirs.params[1], abs=1e-6)


def test_without_people_there_is_no_excess() -> None:
    judge, gap, _, _ = pairs(3, 0.6)
    found = verbosity(judge, gap)
    assert found.excess.value is None
    assert "not given" in found.excess.method
    assert found.judge.value is not None


# --- asked again ---


def test_retest_by_hand() -> None:
    """Two targets' runs differ by 1: variances 0, .5, 0, .5 ..., squares worked out from sums."""
    runs = np.array([[4, 4], [2, 3], [5, 5], [1, 2], [3, 3], [4, 4], [2, 2], [5, 5]], dtype=float)
    k, n = 2, len(runs)
    means = runs.mean(axis=1)
    between = k * ((means - runs.mean()) ** 2).sum() / (n - 1)
    within = ((runs - means[:, None]) ** 2).sum() / (n * (k - 1))
    found = retest(runs, scale=(1, 2, 3, 4, 5), verdicts=(runs >= 3).astype(float))
    assert found.icc_single.value == pytest.approx((between - within) / (between + (k - 1) * within))
    assert found.icc_mean.value == pytest.approx((between - within) / between)
    assert found.within_sd.value == pytest.approx(math.sqrt(within))
    # Only the second target's runs fall on both sides of 3.
    assert found.flip_rate.value == pytest.approx(1 / 8)


def test_kappa_between_runs_is_the_mean_over_their_pairs() -> None:
    from sklearn.metrics import cohen_kappa_score

    random = np.random.default_rng(0)
    runs = np.clip(random.integers(1, 6, (60, 1)) + random.integers(-1, 2, (60, 3)), 1, 5).astype(float)
    theirs = np.mean([cohen_kappa_score(runs[:, i], runs[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    found = retest(runs, scale=(1, 2, 3, 4, 5))
    assert found.kappa.value == pytest.approx(theirs, abs=1e-12)
    assert retest(runs / 7, scale=None).kappa.value is None


def test_a_run_without_a_score_is_counted_and_not_dropped_in_silence() -> None:
    runs = np.array([[1, 1, 1], [2, math.nan, 3], [4, 4, 4], [5, math.nan, math.nan]] * 5, dtype=float)
    found = retest(runs)
    assert found.incomplete == 10
    assert found.icc_single.n == 10
    assert found.flip_rate.n == 15
    assert found.flip_rate.value == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="two or more"):
        retest(runs[:, :1])


# --- p values ---


@pytest.mark.parametrize("count", [10, 40])
def test_p_keeps_its_level_for_ratios_over_groups(count: int) -> None:
    """400 draws without an effect: P(p <= .05) within two and a half standard errors of .05."""
    random = np.random.default_rng(count)
    hits = 0
    for _ in range(400):
        each, size = random.normal(0, 1, count), random.integers(1, 4, count).astype(float)
        statistic = Statistic(lambda times, e=each, s=size: times @ (e * s) / (times @ s), count)
        found = with_p(statistic, count, count, "mean", why="none", bounds=None)
        hits += (found.p or 0) <= 0.05
    assert abs(hits / 400 - 0.05) <= 2.5 * math.sqrt(0.05 * 0.95 / 400)


def test_a_difference_that_is_the_same_everywhere_has_a_p_and_no_interval() -> None:
    found = mean_differences([1.0] * 12)[0]
    assert found.estimate.value == 1.0
    assert found.estimate.low is None
    assert found.p == pytest.approx(2 / 2**12)
    none = mean_differences([math.nan] * 3)[0]
    assert none.estimate.value is None
    assert none.p is None
