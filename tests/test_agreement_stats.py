"""Agreement statistics, each with a second witness: another package, a textbook table, a derivation, or simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.stats.agreement import alpha_formula, fleiss_kappa, gwet_ac, gwet_formula, krippendorff_alpha
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.icc import anova, icc, icc_formula, of_the_mean
from jurimetrics.stats.intervals import around, jackknife_error
from jurimetrics.stats.kappa import cohen_kappa, confusion_table, kappa_errors, kappa_formula, raw_agreement
from jurimetrics.stats.products import product
from jurimetrics.stats.ranks import correlation, correlation_between, correlation_within
from jurimetrics.stats.resampling import Draws, Statistic, cells_of, leave_out

BLANKS: tuple[Any, ...] = (None, math.nan, "", " ")
# Krippendorff (2011), section C: four raters, twelve units.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
# Shrout and Fleiss (1979), table 2, with the six values they print.
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
PRINTED = {"1,1": 0.17, "2,1": 0.29, "3,1": 0.71, "1,k": 0.44, "2,k": 0.62, "3,k": 0.91}


def ratings(raters: int, units: int, seed: int = 0, missing: float = 0.0) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    truth = draw.normal(3, 1.2, units)
    given_ = np.clip(np.round(truth + draw.normal(0, 0.8, (raters, units))), 1, 5)
    given_[draw.uniform(size=given_.shape) < missing] = np.nan
    return given_


# -- Cohen's kappa


@pytest.mark.parametrize("weights", ["plain", "linear", "quadratic"])
def test_kappa_agrees_with_sklearn_and_statsmodels(weights: Any) -> None:
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    first, second = ratings(2, 90)
    scale = [1, 2, 3, 4, 5]
    found = cohen_kappa(first, second, scale, weights)
    name = None if weights == "plain" else weights
    assert found.value == pytest.approx(cohen_kappa_score(first, second, labels=scale, weights=name), abs=1e-12)
    table = confusion_table(first, second, scale)
    other = cohens_kappa(table, wt=name)
    assert kappa_errors(table, scale, weights) == pytest.approx((other.std_kappa, other.std_kappa0), abs=1e-12)
    assert [found.low, found.high] == pytest.approx([other.kappa_low, other.kappa_upp], abs=1e-9)


def test_kappa_by_hand() -> None:
    # 20 + 15 of 50 agree: .7; by chance .5 * .6 + .5 * .4 = .5; (.7 - .5) / (1 - .5) = .4.
    first = [1] * 25 + [2] * 25
    second = [1] * 20 + [2] * 5 + [1] * 10 + [2] * 15
    assert cohen_kappa(first, second, (1, 2)).value == pytest.approx(0.4)


def test_steps_that_nobody_used_change_nothing() -> None:
    first, second = [1, 1, 5, 5, 4, 1, 5, 4], [1, 5, 5, 5, 4, 1, 4, 4]
    wide, narrow = (cohen_kappa(first, second, scale, "quadratic").value for scale in ((1, 2, 3, 4, 5), (1, 4, 5)))
    assert wide == pytest.approx(narrow)


def test_s03_one_class_is_undefined_in_words_and_nothing_is_put_in_its_place() -> None:
    found = cohen_kappa([1] * 10, [1] * 10, (0, 1))
    assert found.value is None and found.low is None and found.n == 10
    assert "one class only: both gave 1 in all 10 pairs; raw agreement 1.00" in found.method
    one_off = cohen_kappa([1] * 10, [1] * 9 + [0], (0, 1))
    assert one_off.value == pytest.approx(0)
    assert "one side never varies, so kappa is 0 whatever the other gives (raw agreement 0.90)" in one_off.method
    with pytest.raises(InputError, match="0 is no step"):
        cohen_kappa([1] * 10, [1] * 9 + [0], (1, 2))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1.0, 2.0], [1.0, 2.5], (1, 2, 3)), "2.5 is no step"),
        (([0.5, 1.0], [0.5, 1.0], (0, 0.5, 1)), "whole steps"),
        (([1, 2], [1, 2], (2, 1)), "rising order"),
        (([1, 2], [1], (1, 2)), "same units"),
        (([1, 2], [1, 2], (1, 2), "cubic"), "plain, linear or quadratic"),
        (([1, 2], ["a", "b"], (1, 2)), "expected numbers"),
    ],
)
def test_kappa_refuses(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        cohen_kappa(*arguments)


# -- alpha, AC, Fleiss


@pytest.mark.parametrize(
    ("distance", "value"),
    [("nominal", 904 / 1216), ("ordinal", 0.8154), ("interval", 0.8491), ("ratio", 0.7974)],
)
def test_s06_alpha_of_the_textbook_data(distance: Any, value: float) -> None:
    assert krippendorff_alpha(KRIPPENDORFF, distance).value == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("distance", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_agrees_with_evalica_where_ratings_are_missing(distance: Any) -> None:
    import evalica
    import pandas as pd

    given_ = ratings(4, 60, seed=3, missing=0.3)
    other = evalica.alpha(pd.DataFrame(given_), distance=distance).alpha
    assert krippendorff_alpha(given_, distance).value == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("distance", ["nominal", "ordinal", "interval", "ratio"])
def test_a_weight_of_two_is_a_unit_given_twice(distance: Any) -> None:
    given_ = ratings(3, 12, seed=5, missing=0.2)
    times = np.array([2, 1, 0, 1, 3, 1, 1, 0, 2, 1, 1, 1])
    cells = cells_of(given_, np.arange(12), 12)
    repeated = np.repeat(given_, times, axis=1)
    drawn = cells.statistic(alpha_formula(distance)).each(times[None, :])[0]
    assert drawn == pytest.approx(krippendorff_alpha(repeated, distance).value, abs=1e-12)


@pytest.mark.parametrize("blank", BLANKS)
def test_s04_missing_in_every_spelling_is_not_a_category(blank: Any) -> None:
    assert krippendorff_alpha([[1, 1, 2], [1, 1, blank], [blank, 1, 2]]).value == 1.0
    assert gwet_ac([[1, 1, 2], [1, 1, blank], [blank, 1, 2]], (1, 2)).value == pytest.approx(1.0)
    assert cohen_kappa([1, 2, 1, blank], [1, 2, 1, 2], (1, 2)).n == 3
    assert correlation([1, 2, 3, blank], [1, 2, 3, 0]).value == pytest.approx(1.0)


def test_s07_alpha_of_skewed_labels_is_zero_and_says_why() -> None:
    # Five raters, all 3 but one 1, three blanks: 22 ratings, one of which differs.
    given_: list[list[Any]] = [[3] * 5 for _ in range(5)]
    given_[0][0] = 1
    for rater, unit in ((1, 1), (2, 2), (3, 3)):
        given_[rater][unit] = None
    for distance in ("nominal", "ordinal"):
        found = krippendorff_alpha(given_, distance)  # type: ignore[arg-type]
        assert found.value == pytest.approx(0, abs=0.05)
        assert "skewed: 21 of 22 ratings are 3" in found.method


def test_alpha_of_one_class_is_undefined() -> None:
    assert krippendorff_alpha([[3, 3], [3, None]]).method == (
        "undefined: alpha (nominal): one class only: all 2 ratings are the same"
    )
    assert krippendorff_alpha([[3, None], [None, 3]]).method == "undefined: alpha (nominal): no unit has two ratings"


def test_alpha_of_words_is_that_of_any_numbers_in_their_place() -> None:
    words = [["yes", "no", "yes", "no"], ["yes", "no", "no", None]]
    numbers = [[7, 1, 7, 1], [7, 1, 1, None]]
    assert krippendorff_alpha(words).value == krippendorff_alpha(numbers).value
    with pytest.raises(InputError, match="needs numbers"):
        krippendorff_alpha(words, "interval")


def test_ac1_of_two_raters_by_its_closed_form() -> None:
    first, second = ratings(2, 50, seed=8) > 3
    agreed = float((first == second).mean())
    share = (first.mean() + second.mean()) / 2
    chance = 2 * share * (1 - share)
    found = gwet_ac([first.astype(int), second.astype(int)], (0, 1))
    assert found.value == pytest.approx((agreed - chance) / (1 - chance), abs=1e-12)


def test_ac_counts_steps_that_nobody_used() -> None:
    given_ = [[1, 1, 2, 2, 1, 1, 2, 1], [1, 2, 2, 2, 1, 1, 1, 1]]
    two, five = (gwet_ac(given_, scale).value for scale in ((1, 2), (1, 2, 3, 4, 5)))
    assert two is not None and five is not None and five > two


def test_gwets_interval_covers() -> None:
    held, truth = 0, _ac1_of_the_population()
    for seed in range(400):
        found = gwet_ac(_skewed(seed, 60), (0, 1))
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    # 400 trials at .95: standard error .011.
    assert 0.92 <= held / 400 <= 0.98


def _skewed(seed: int, units: int) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    truth = draw.uniform(size=units) < 0.8
    return np.where(draw.uniform(size=(3, units)) < 0.85, truth, ~truth).astype(float)


def _ac1_of_the_population() -> float:
    # Two raters agree with .85^2 + .15^2; a rating is 1 with .8 * .85 + .2 * .15.
    agreed, share = 0.85**2 + 0.15**2, 0.8 * 0.85 + 0.2 * 0.15
    chance = 2 * share * (1 - share)
    return (agreed - chance) / (1 - chance)


def test_fleiss_agrees_with_statsmodels_and_refuses_uneven_items() -> None:
    from statsmodels.stats.inter_rater import aggregate_raters
    from statsmodels.stats.inter_rater import fleiss_kappa as other

    counts = aggregate_raters(ratings(4, 40).T.astype(int))[0]
    assert fleiss_kappa(counts).value == pytest.approx(other(counts), abs=1e-12)
    assert fleiss_kappa(counts, "uniform").value == pytest.approx(other(counts, method="randolph"), abs=1e-12)
    with pytest.raises(InputError, match="same number of raters"):
        fleiss_kappa([[2, 0], [1, 0]])
    assert "one class only: all 6 ratings" in fleiss_kappa([[2, 0], [2, 0], [2, 0]]).method


def test_raw_agreement_is_a_share() -> None:
    first, second = ratings(2, 80)
    assert raw_agreement(first, second).value == pytest.approx((first == second).mean())


# -- correlations


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("decimals", [0, 6])
def test_correlations_agree_with_scipy(kind: Any, decimals: int) -> None:
    from scipy import stats

    draw = np.random.default_rng(1)
    first = np.round(draw.normal(size=70) * 2, decimals)
    second = np.round(first + draw.normal(size=70), decimals)
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    assert correlation(first, second, kind).value == pytest.approx(float(reference(first, second)[0]), abs=1e-12)


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("decimals", [0, 6])
def test_a_group_drawn_twice_is_its_rows_given_twice(kind: Any, decimals: int) -> None:
    from jurimetrics.stats.ranks import pooled_statistic

    draw = np.random.default_rng(2)
    pair = np.round(draw.normal(size=(2, 40)) * 2, decimals)
    codes = np.repeat(np.arange(8), 5)
    times = np.array([[2, 0, 1, 3, 1, 0, 1, 0]])
    drawn = pooled_statistic(cells_of(pair, codes, 8), kind).each(times)[0]
    again = np.repeat(pair, times[0][codes], axis=1)
    assert drawn == pytest.approx(correlation(again[0], again[1], kind).value, abs=1e-12)


@pytest.mark.parametrize("each", [1, 3])
def test_tau_of_many_values_and_without_each_group_by_scipy(each: int) -> None:
    from jurimetrics.stats.ranks import MANY_PATTERNS, pooled_statistic
    from scipy.stats import kendalltau

    size = MANY_PATTERNS + 50
    draw = np.random.default_rng(4)
    first = draw.normal(size=size)
    second = np.round(first + draw.normal(size=size), 1)
    codes = np.arange(size) // each
    statistic = pooled_statistic(cells_of(np.vstack([first, second]), codes, int(codes.max()) + 1), "kendall")
    assert statistic.all_groups(int(codes.max()) + 1) == pytest.approx(kendalltau(first, second)[0], abs=1e-12)
    without = leave_out(statistic, int(codes.max()) + 1)
    for group in (0, 7, int(codes.max())):
        kept = codes != group
        assert without[group] == pytest.approx(kendalltau(first[kept], second[kept])[0], abs=1e-12)
    assert "each left out in turn" in correlation(first, second, "kendall", codes.tolist()).method


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_within_groups_is_the_mean_of_scipy_over_groups(kind: Any) -> None:
    from scipy import stats

    first, second = ratings(2, 160, seed=4)
    groups = np.repeat(np.arange(16), 10)
    first[groups == 3] = 2
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    each = [float(reference(first[groups == g], second[groups == g])[0]) for g in range(16) if g != 3]
    found = correlation_within(first, second, groups.tolist(), kind)
    assert found.estimate.value == pytest.approx(np.mean(each), abs=1e-12)
    assert (found.used, found.skipped, found.estimate.n) == (15, 1, 15)
    low, high = stats.t.interval(0.95, 14, np.mean(each), stats.sem(each))
    # Below 30 groups neither end is nearer than that of t, and skewness moves them a little at most.
    assert found.estimate.low is not None and found.estimate.high is not None
    assert low - 0.3 * (high - low) < found.estimate.low <= low + 1e-9
    assert high - 1e-9 <= found.estimate.high < high + 0.3 * (high - low)


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_between_systems_is_scipy_of_their_means(kind: Any) -> None:
    import pandas as pd
    from scipy import stats

    first, second = ratings(2, 200, seed=6)
    rows = pd.DataFrame({"a": first, "b": second, "system": np.tile(np.arange(10), 20)})
    means = rows.groupby("system").mean()
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    groups = np.repeat(np.arange(20), 10).tolist()
    found = correlation_between(first, second, rows["system"].tolist(), kind, groups)
    assert found.value == pytest.approx(float(reference(means["a"], means["b"])[0]), abs=1e-9)
    assert found.n == 10 and found.low is not None and found.high is not None
    assert found.low < found.value < found.high  # type: ignore[operator]
    assert found.method.startswith(f"{kind} between systems; bootstrap of 10 systems and 20 groups")


def test_what_has_no_correlation_says_why() -> None:
    assert correlation([1, 1, 1], [1, 2, 3]).method == (
        "undefined: spearman: the first side does not vary: 1 in all 3 rows"
    )
    alone = correlation_within([1, 2, 3], [1, 2, 3], ["a", "b", "c"])
    assert alone.estimate.value is None and alone.skipped == 3
    assert "each of the 3 groups has a single row" in alone.estimate.method
    assert "2 systems, 3 are needed" in correlation_between([1, 2], [1, 2], ["a", "b"]).method
    assert correlation([1, 2, 3], [2, 1, 3]).method == "spearman; no interval: 3 rows, 8 are needed"


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9)), min_size=2, max_size=40), st.randoms()
)
def test_order_never_changes_an_estimate(rows: list[tuple[int, int, int]], random: Any) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)
    one, other = (tuple(zip(*order, strict=True)) for order in (rows, shuffled))
    estimates = [
        [correlation(a, b, kind, g) for kind in ("pearson", "spearman", "kendall")]  # type: ignore[arg-type]
        + [cohen_kappa(a, b, range(1, 6), "quadratic", g), gwet_ac([a, b], range(1, 6), groups=g)]
        for a, b, g in (one, other)
    ]
    for first, second in zip(*estimates, strict=True):
        assert first.method == second.method
        assert [first.value, first.low, first.high] == pytest.approx([second.value, second.low, second.high], abs=1e-9)


# -- ICC


@pytest.mark.parametrize(("form", "printed"), PRINTED.items())
def test_icc_of_shrout_and_fleiss(form: Any, printed: float) -> None:
    found = icc(SHROUT, form)
    assert round(found.value or 0, 2) == printed


def test_one_way_icc_from_scipys_f() -> None:
    from scipy.stats import f_oneway

    table = ratings(5, 30, seed=2).T
    ratio = float(f_oneway(*table)[0])
    assert icc(table, "1,1").value == pytest.approx((ratio - 1) / (ratio + 4), abs=1e-12)
    assert icc(table, "1,k").value == pytest.approx((ratio - 1) / ratio, abs=1e-12)


def test_two_way_mean_squares_from_statsmodels() -> None:
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    table = ratings(4, 25, seed=7).T
    rows = pd.DataFrame(table).melt(ignore_index=False, var_name="rater").reset_index(names="target")
    squares = anova_lm(ols("value ~ C(target) + C(rater)", rows).fit())["mean_sq"]
    found = anova(table)
    assert [found.targets, found.raters, found.rest] == pytest.approx(squares.tolist(), rel=1e-9)


@pytest.mark.parametrize("form", ["1,1", "2,1", "2,k"])
def test_icc_interval_covers(form: Any) -> None:
    # Variances: targets 1, raters .25, rest .5; four raters.
    single = {"1": 1 / 1.75, "2": 1 / 1.75}[form[0]]
    truth = single if form[2] == "1" else 4 * single / (1 + 3 * single)
    held = 0
    for seed in range(400):
        draw = np.random.default_rng(seed)
        raters = draw.normal(0, 0.5, (30, 4)) if form[0] == "1" else draw.normal(0, 0.5, 4)[None, :]
        found = icc(draw.normal(0, 1, 30)[:, None] + raters + draw.normal(0, math.sqrt(0.5), (30, 4)), form)
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_icc_without_spread_is_undefined_and_gaps_are_refused() -> None:
    assert icc([[3, 3]] * 9).method == "undefined: ICC(2,1): nothing varies, all ratings are 3"
    with pytest.raises(InputError, match="complete table"):
        icc([[1, None], [2, 2]])
    with pytest.raises(InputError, match="two raters"):
        icc([[1], [2]])


# -- intervals


def test_below_eight_groups_there_is_no_interval_and_below_a_hundred_it_is_t() -> None:
    first, second = ratings(2, 120)
    scale = range(1, 6)
    few, some, many = "no interval: 6 groups, 8 are needed", "t over 12 groups", "BCa bootstrap of 100 groups"
    for count, says in ((6, few), (12, some), (100, many)):
        groups = [at % count for at in range(120)]
        for found in (
            cohen_kappa(first, second, scale, "plain", groups),
            krippendorff_alpha([first, second], "ordinal", groups),
            gwet_ac([first, second], scale, groups=groups),
            correlation(first, second, "kendall", groups),
            icc(np.column_stack([first, second]), "2,1", groups),
        ):
            assert says in found.method
            assert (found.low is None) == (count == 6)


def test_the_jackknife_of_a_mean_is_its_own_error() -> None:
    from jurimetrics.stats.ranks import mean_of_groups

    each = np.array([0.1, 0.5, 0.4, 0.9, 0.7])
    without = leave_out(mean_of_groups(each), 5)
    assert math.sqrt(0.8 * ((without - without.mean()) ** 2).sum()) == pytest.approx(each.std(ddof=1) / math.sqrt(5))


def test_draws_are_seeded_and_kept() -> None:
    one, two, other = Draws.make(50, 100, 1), Draws.make(50, 100, 1), Draws.make(50, 100, 2)
    assert (one.times == two.times).all() and (one.times != other.times).any()
    statistic = cells_of(ratings(2, 50), np.arange(50), 50).statistic(kappa_formula(range(1, 6)))
    assert one.values(statistic) is one.values(statistic)
    assert one.values(statistic) == pytest.approx(statistic.each(one.times), nan_ok=True)


def test_formulas_agree_with_the_functions_they_stand_behind() -> None:
    given_ = ratings(2, 30)
    once = np.ones((1, 30))
    assert gwet_formula(range(1, 6), "quadratic")(given_, once)[0] == pytest.approx(
        gwet_ac(given_, range(1, 6), "quadratic").value
    )
    assert icc_formula("2,1")(given_, once)[0] == pytest.approx(icc(given_.T, "2,1").value)


@pytest.mark.parametrize(
    "shape", [(2000, 100, 25), (2000, 100, 3), (7, 5, 2), (50, 700, 400), (0, 4, 2), (2001, 60, 40)]
)
def test_products_in_blocks_are_products(shape: tuple[int, int, int]) -> None:
    draw = np.random.default_rng(0)
    left, right = draw.normal(size=shape[:2]), draw.normal(size=shape[1:])
    assert product(left, right) == pytest.approx(left @ right, abs=1e-9)
    assert product(left[:, ::-1], right) == pytest.approx(left[:, ::-1] @ right, abs=1e-9)


def test_groups_left_out_in_blocks_tell_the_same_acceleration() -> None:
    each = np.random.default_rng(3).exponential(size=4000)
    mean = Statistic(lambda times: times @ each / times.sum(axis=1), 4000)
    drawn = Draws.make(4000, 10)
    blocks, alone = drawn.without(mean), leave_out(mean, 4000)
    assert (len(blocks), len(alone)) == (500, 4000)

    def rate(without: np.ndarray[Any, Any]) -> float:
        away = without.mean() - without
        return float((away**3).sum() / (6 * (away**2).sum() ** 1.5))

    assert jackknife_error(blocks) == pytest.approx(jackknife_error(alone), rel=0.1)
    assert rate(blocks) == pytest.approx(rate(alone), abs=0.003)


def test_ends_of_t_follow_skewness_bias_and_bounds() -> None:
    even = 0.5 + np.linspace(-0.01, 0.01, 40)
    low, high = around(0.5, even, 2.0) or (0.0, 0.0)
    assert 0.5 - low == pytest.approx(high - 0.5) == pytest.approx(2 * jackknife_error(even))
    # Values without one that are higher: that one pulls down, and the lower end lies further off.
    skewed = np.append(np.full(39, 0.499), 0.539)
    low, high = around(float(skewed.mean()), skewed, 2.0) or (0.0, 0.0)
    assert float(skewed.mean()) - low > 1.1 * (high - float(skewed.mean()))
    # Few groups: neither end is nearer than that of t.
    few = around(0.5, even[::4], 2.0) or (0.0, 0.0)
    assert few[0] <= 0.5 - 2 * jackknife_error(even[::4]) + 1e-12
    assert around(1.0, even, 2.0, (-1.0, 1.0)) is None
    inside = around(0.99, even + 0.49, 2.0, (-1.0, 1.0)) or (0.0, 2.0)
    assert -1 < inside[0] < 0.99 < inside[1] < 1


def test_the_icc_of_the_mean_follows_from_that_of_one() -> None:
    table = np.random.default_rng(0).normal(size=(60, 1)) + np.random.default_rng(1).normal(size=(60, 3))
    pairs: list[tuple[Any, Any]] = [("1,1", "1,k"), ("2,1", "2,k"), ("3,1", "3,k")]
    for single, many in pairs:
        found = of_the_mean(icc(table, single), 3)
        assert found.value == pytest.approx(icc(table, many).value)
        assert (found.low, found.high) == pytest.approx((icc(table, many).low, icc(table, many).high))
    assert of_the_mean(Estimate(-1.0, None, None, 0.95, 9, ""), 2).value is None
