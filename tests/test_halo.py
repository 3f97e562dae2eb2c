"""Halo: what one call for several criteria does to how they go together."""

from __future__ import annotations

import math
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurimetrics.errors import InputError
from jurimetrics.metrics import batched, resolve
from jurimetrics.results.halo import halo
from jurimetrics.stats import halo as stats
from jurimetrics.stats.halo import halo_of
from scipy.stats import pearsonr, spearmanr
from scripted_judge import ScriptedJudge

NAMES = ("coherence", "fluency", "readability")


def ratings(n: int, together: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two ratings 1 to 5 of n records that share `together` of what makes them."""
    draw = np.random.default_rng(seed)
    common, first, second = draw.normal(size=(3, n))
    made = [math.sqrt(together) * common + math.sqrt(1 - together) * own for own in (first, second)]
    low, high = (np.clip(np.round(3 + one), 1, 5) for one in made)
    return low, high


# -- the statistic


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_correlations_and_difference_agree_with_scipy(kind: Any) -> None:
    apart, together = ratings(60, 0.2), ratings(60, 0.8, seed=1)
    reference = pearsonr if kind == "pearson" else spearmanr
    found = halo_of(apart, together, kind=kind)
    expected = [float(reference(*pair).statistic) for pair in (apart, together)]
    assert [found.separate, found.batched] == pytest.approx(expected)
    assert found.difference.value == pytest.approx(expected[1] - expected[0])
    assert found.difference.n == 60


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_each_resample_is_what_scipy_says_of_the_records_drawn(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    apart, together = ratings(40, 0.2), ratings(40, 0.7, seed=1)
    totals: list[float] = []
    original = stats._correlations

    def watched(first: Any, second: Any, weights: Any, of: Any) -> Any:
        found = original(first, second, weights, of)
        for value, row in zip(found, weights, strict=True):
            drawn = np.repeat(np.arange(len(first)), row.astype(int))
            reference = pearsonr if of == "pearson" else spearmanr
            assert value == pytest.approx(float(reference(first[drawn], second[drawn]).statistic))
            totals.append(row.sum())
        return found

    monkeypatch.setattr(stats, "_correlations", watched)
    halo_of(apart, together, [f"g{at % 10}" for at in range(40)], kind, resamples=50)
    # Ten groups of four records, drawn ten times.
    assert totals == [40.0] * (2 + 2 * 50)


def test_groups_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # Four records in each group, with values that no other group has: each pair comes in fours.
    codes = np.repeat(np.arange(10), 4)
    seen: list[Any] = []
    original = stats._correlations

    def watched(first: Any, second: Any, weights: Any, of: Any) -> Any:
        seen.append(weights)
        return original(first, second, weights, of)

    monkeypatch.setattr(stats, "_correlations", watched)
    halo_of((codes, codes**2), (codes, -codes), codes.tolist(), resamples=30)
    drawn = np.vstack(seen)
    assert (drawn % 4 == 0).all() and (drawn.sum(axis=1) == 40).all() and drawn.max() > 4
    # The same groups for both ways of asking.
    assert all((seen[at] == seen[at + 1]).all() for at in range(0, len(seen), 2))


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_interval_lies_around_the_difference_and_is_seeded(kind: Any) -> None:
    apart, together = ratings(200, 0.1), ratings(200, 0.8, seed=1)
    found = halo_of(apart, together, kind=kind, seed=3)
    assert found == halo_of(apart, together, kind=kind, seed=3)
    other = halo_of(apart, together, kind=kind, seed=4)
    assert other.difference.low != found.difference.low
    low, value, high = found.difference.low, found.difference.value, found.difference.high
    assert low is not None and high is not None and value is not None
    assert 0 < low < value < high < 2
    assert (
        found.difference.method
        == f"difference of {kind} correlations; percentile bootstrap of 200 records, 2000 resamples"
    )


def test_interval_covers_what_is_true_about_as_often_as_it_says() -> None:
    # Truth: correlation .2 apart and .6 together, of normal ratings that are not rounded.
    covered, trials = 0, 120
    draw = np.random.default_rng(7)
    for trial in range(trials):
        pairs = []
        for share in (0.2, 0.6):
            common, first, second = draw.normal(size=(3, 80))
            pairs.append(tuple(math.sqrt(share) * common + math.sqrt(1 - share) * own for own in (first, second)))
        estimate = halo_of(pairs[0], pairs[1], resamples=400, seed=trial).difference
        assert estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 0.4 <= estimate.high
    # 95 % of 120 is 114; three standard errors of a true 95 % reach down to 106.8.
    assert covered >= 107


def test_memory_is_bounded_by_parts_that_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    apart, together = ratings(50, 0.2), ratings(50, 0.7, seed=1)
    whole = halo_of(apart, together, resamples=300)
    monkeypatch.setattr(stats, "_CELLS", 50 * 7)
    assert halo_of(apart, together, resamples=300) == whole


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_order_of_records_never_changes_anything(data: Any) -> None:
    rows = data.draw(
        st.lists(st.tuples(*[st.integers(1, 5)] * 4, st.sampled_from("abcdefghij")), min_size=2, max_size=40)
    )
    shuffled = data.draw(st.permutations(rows))

    def of(table: Any) -> Any:
        columns = list(zip(*table, strict=True))
        return halo_of((columns[0], columns[1]), (columns[2], columns[3]), columns[4], "spearman", resamples=40)

    assert of(shuffled) == of(rows)


def test_equal_ratings_have_no_halo() -> None:
    pair = ratings(60, 0.5)
    found = halo_of(pair, pair)
    assert found.difference.value == 0 and found.difference.low is None
    assert found.difference.method.endswith("no interval: all resamples agree")


@pytest.mark.parametrize(
    ("columns", "groups", "method"),
    [
        (([3] * 9, [1, 2] * 4 + [1], [1, 2, 3] * 3, [1, 2, 3] * 3), None, "asked apart, a criterion does not vary"),
        (([1, 2, 3] * 3, [1, 2, 3] * 3, [3] * 9, [1, 2, 3] * 3), None, "asked together, a criterion does not vary"),
        (([], [], [], []), None, "no records"),
        (([1, 2, 3] * 3, [1, 3, 2] * 3, [1, 2, 3] * 3, [1, 2, 3] * 3), ["a", "b", "c"] * 3, "3 groups, 8 are needed"),
        (([1.0] * 19 + [5], [1, 2] * 10, [1, 2] * 10, [2, 1] * 10), None, "resamples a criterion does not vary"),
    ],
)
def test_no_interval_where_none_can_be_defended(columns: Any, groups: Any, method: str) -> None:
    found = halo_of(columns[:2], columns[2:], groups)
    assert found.difference.low is None and found.difference.high is None
    assert method in found.difference.method
    assert (found.difference.value is None) == (found.separate is None or found.batched is None)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"separate": ([1, 2], [1])}, "equally long"),
        ({"groups": ["a"]}, "equally long"),
        ({"separate": ([1, math.nan], [1, 2])}, "no finite number"),
        ({"level": 1}, "level must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_correlated_is_refused(changes: Any, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        halo_of(**{"separate": ([1, 2], [1, 2]), "batched": ([1, 2], [2, 1]), **changes})


# -- over results


def recorded(pairs: dict[str, Any], ending: str = "", judge: str = "ann", groups: Any = None) -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame(
            {"id": [str(at) for at in range(len(scores))], "metric": name + ending, "judge": judge, "score": scores}
        ).assign(**({} if groups is None else {"group": groups}))
        for name, scores in pairs.items()
    )


def test_a_judge_whose_ratings_lean_on_each_other_in_one_call_shows_it() -> None:
    def script(task: Any, repeat: int) -> Any:
        # Alone each criterion gets its own digit of the answer; in one call all follow the first one asked.
        digits = dict(
            zip(NAMES, map(int, task.rubrics[0].answer if task.kind == "criteria" else task.answer), strict=True)
        )
        if task.kind != "criteria":
            return {"findings": "x", "score": digits[task.criterion]}
        shared = digits[task.rubrics[0].criterion]
        return {"ratings": [{"criterion": at, "findings": "x", "score": shared} for at in (1, 2, 3)]}

    draw = np.random.default_rng(2)
    texts = [f"{a}{b}{c}" for a in range(1, 6) for b in range(1, 6) for c in range(1, 6)]
    records = [{"id": str(at), "answer": text} for at, text in enumerate(draw.permutation(texts)[:60].tolist())]
    rubrics = list(resolve(list(NAMES)))
    judge = ScriptedJudge("ada", script)
    options: Any = {"store": None, "progress": False}
    alone = jm.evaluate(records, rubrics, judge, **options)
    together = jm.evaluate(records, batched(rubrics), judge, **options)
    assert len(judge.asked) == 60 * 4
    found = halo(alone, together)
    assert found[["first", "second"]].to_numpy().tolist() == [
        ["coherence", "fluency"], ["coherence", "readability"], ["fluency", "readability"],
    ]  # fmt: skip
    assert (found["n"] == 60).all() and (found["judge"] == "ada").all()
    for kind in ("pearson", "spearman"):
        assert found[f"{kind}_batched"].tolist() == pytest.approx([1, 1, 1])
        assert (found[f"{kind}_separate"].abs() < 0.4).all()
        assert (found[f"{kind}_low"] > 0.5).all()
        assert found[f"{kind}_difference"].tolist() == pytest.approx(
            (found[f"{kind}_batched"] - found[f"{kind}_separate"]).tolist()
        )
    scores = alone.scores.pivot(index="id", columns="metric", values="score")
    assert found.loc[0, "pearson_separate"] == pytest.approx(scores["coherence"].corr(scores["fluency"]))


def test_both_ways_may_stand_in_one_evaluation() -> None:
    apart, together = ratings(40, 0.2), ratings(40, 0.7, seed=1)
    names = ("coherence", "fluency")
    both = pd.concat(
        [recorded(dict(zip(names, apart, strict=True))), recorded(dict(zip(names, together, strict=True)), "(batched)")]
    )
    results = jm.Results.from_frame(both)
    found = halo(results, results)
    direct = halo_of(apart, together)
    assert found.loc[0, "pearson_difference"] == pytest.approx(direct.difference.value)
    assert len(found) == 1


def test_records_without_a_score_both_ways_are_left_out_and_counted() -> None:
    first, second = (list(map(float, side)) for side in ratings(30, 0.3))
    alone = jm.Results.from_frame(recorded({"coherence": [None, *first[1:]], "fluency": second}))
    together = jm.Results.from_frame(
        recorded({"coherence": first[:-2], "fluency": [*second[:10], None, *second[11:-2]]}, "(batched)")
    )
    found = halo(alone, together)
    assert found.loc[0, "n"] == 26


def test_groups_of_records_stay_together() -> None:
    first, second = ratings(40, 0.3)
    pairs = {"coherence": first, "fluency": second}
    few = [f"g{at % 4}" for at in range(40)]
    found = halo(
        jm.Results.from_frame(recorded(pairs, groups=few)),
        jm.Results.from_frame(recorded(pairs, "(batched)", groups=few)),
    )
    assert found.loc[0, "pearson_method"].endswith("no interval: 4 groups, 8 are needed")
    assert math.isnan(found.loc[0, "pearson_low"])


def test_repeats_are_averaged_first() -> None:
    apart, together = ratings(20, 0.2), ratings(20, 0.7, seed=1)

    def twice(pair: Any, ending: str) -> pd.DataFrame:
        scores = dict(zip(("coherence", "fluency"), pair, strict=True))
        shifted = {name: side + 1 for name, side in scores.items()}
        return pd.concat([recorded(scores, ending).assign(repeat=0), recorded(shifted, ending).assign(repeat=1)])

    found = halo(jm.Results.from_frame(twice(apart, "")), jm.Results.from_frame(twice(together, "(batched)")))
    assert found.loc[0, "n"] == 20
    assert found.loc[0, "pearson_separate"] == pytest.approx(halo_of(apart, together).separate)


def test_each_judge_is_compared_with_itself() -> None:
    apart, together = ratings(20, 0.2), ratings(20, 0.7, seed=1)
    names = ("coherence", "fluency")
    one, two = (dict(zip(names, pair, strict=True)) for pair in (apart, together))
    alone = jm.Results.from_frame(pd.concat([recorded(one), recorded(two, judge="bob"), recorded(one, judge="cem")]))
    shared = jm.Results.from_frame(pd.concat([recorded(one, "(batched)"), recorded(one, "(batched)", judge="bob")]))
    found = halo(alone, shared).set_index("judge")["pearson_difference"]
    assert list(found.index) == ["ann", "bob"]
    assert found["ann"] == 0 and found["bob"] < 0


def test_what_was_not_asked_both_ways_is_refused() -> None:
    first, second = ratings(10, 0.2)
    alone = jm.Results.from_frame(recorded({"coherence": first, "fluency": second}))
    with pytest.raises(InputError, match="needs two criteria asked both ways; asked alone: coherence, fluency"):
        halo(alone, alone)
    others = recorded({"coherence": first, "fluency": second}, "(batched)", judge="bob")
    with pytest.raises(InputError, match="no judge scored the same records"):
        halo(alone, jm.Results.from_frame(others))
