"""Variants in order, in slices and against cost, and the pictures of a comparison."""

from __future__ import annotations

from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from compared import A, B, results, rows
from jurimetrics import InputError, Results, compare, plots
from jurimetrics.variants.leaderboard import leaderboard
from jurimetrics.variants.slices import slices
from jurimetrics.variants.tradeoff import tradeoff


def test_leaderboard_leaves_open_what_is_not_decided() -> None:
    random = np.random.default_rng(0)
    base = random.random(40) * 0.4
    each = {
        name: [float(v) for v in base + up + random.normal(0, 0.08, 40).clip(-0.1, 0.1)]
        for name, up in (("A", 0.11), ("B", 0.4), ("C", 0.1))
    }
    board = leaderboard(results(rows(**each), {"grade": {"range": (-1, 2)}}))
    assert board[["variant", "rank", "best_rank", "worst_rank"]].values.tolist()[0] == ["B", 1, 1, 1]
    assert board.loc[1:, ["best_rank", "worst_rank"]].values.tolist() == [[2, 3], [2, 3]]
    assert board["mean_rank"].sum() == pytest.approx(6)
    assert ((board["mean_rank_low"] <= board["mean_rank"]) & (board["mean_rank"] <= board["mean_rank_high"])).sum() >= 2
    assert board["strength"].isna().all()
    with pytest.raises(InputError, match="with a baseline"):
        leaderboard(compare(results(rows(**each), {"grade": {"range": (-1, 2)}}), "A"))


def test_leaderboard_of_preferences_has_strengths() -> None:
    random = np.random.default_rng(0)
    lines = []
    for first, second, chance in (("A", "B", 0.3), ("A", "C", 0.5), ("B", "C", 0.7)):
        wins = (random.random(40) < chance).astype(float)
        both = {first: wins.tolist(), second: (1 - wins).tolist()}
        lines += rows(f"preference({first},{second})", **both)
        # The third variant has no row under this metric that applies.
    board = leaderboard(results(lines, {}))
    assert set(board["metric"]) == {"preference"}
    assert board["variant"].iloc[0] == "B" and board["rank"].tolist() == [1, 2, 3]
    assert board["strength"].sum() == pytest.approx(0, abs=1e-9)
    assert board[["strength_low", "strength_high"]].notna().all(axis=None)
    assert board["best_rank"].iloc[0] == 1


def test_pairs_that_a_metric_does_not_apply_to_are_left_out() -> None:
    lines = rows("preference(A,B)", A=[1.0, 0.0] * 5, B=[0.0, 1.0] * 5) + rows(A=A, B=B, C=B)
    found = compare(results(lines))
    assert found.frame.groupby("metric", sort=False).size().to_dict() == {"preference(A,B)": 1, "grade": 3}


def sliced(metadata: Any) -> Results:
    records = [
        {"id": at, "variant": name, "answer": "It is 4.", "contexts": [f"It is {4 + (at % 2) * (name == 'B')}."],
         "metadata": metadata(at, name), "cost_usd": 0.01 if name == "A" else None}
        for at in range(20) for name in "AB"
    ]  # fmt: skip
    return jm.evaluate(records, ["faithfulness", "fluency"], jm.BaselineJudge(), store=None)


def test_slices_are_exploratory_and_adjusted_over_all_lines() -> None:
    found = slices(sliced(lambda at, _: {"kind": "odd"} if at % 2 else {}), "kind", metrics=["faithfulness"])
    assert found[["slice", "n", "difference"]].values.tolist() == [["odd", 10, -1.0], ["(none)", 10, 0.0]]
    assert (found["family"] == "exploratory").all() and found["verdict"].str.startswith("exploratory: ").all()
    # Benjamini and Yekutieli of two: the smaller times 2 * 1.5 / 1.
    assert found["p_fdr"].tolist() == pytest.approx([2 / 1024 * 3, 1.0])


def test_slices_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(InputError, match="no record has 'kind' in its metadata; there are: topic"):
        slices(sliced(lambda at, name: {"topic": 1}), "kind")
    with pytest.raises(InputError, match="variants must not differ"):
        slices(sliced(lambda at, name: {"kind": name}), "kind")
    many = pd.DataFrame(rows(A=A * 3, B=B * 3))
    assert many["id"].nunique() > 20
    records = [{"id": at, "variant": v, "answer": "x", "metadata": {"kind": at}} for at in range(25) for v in "AB"]
    with pytest.raises(InputError, match="25 values"):
        slices(jm.evaluate(records, ["fluency"], jm.BaselineJudge(), store=None), "kind")


def test_unknown_cost_is_no_place_on_the_front() -> None:
    done = sliced(lambda at, name: {})
    found = tradeoff(done, "faithfulness")
    assert found["front"].tolist() == [True, pd.NA]
    assert found[["known", "n"]].values.tolist() == [[20, 20], [0, 20]]
    with pytest.raises(InputError, match="against is one of"):
        tradeoff(done, "faithfulness", "price")
    assert plots.pareto(found).get_title(loc="left") == "unknown: B"


def test_names_of_marks_at_one_place_do_not_cover_each_other() -> None:
    numbers = {"quality": 0.58, "quality_low": 0.26, "quality_high": 0.91, "amount_low": 0.7, "amount_high": 1.4}
    frame = pd.DataFrame({"variant": ["short", "wording", "far"], "amount": [1.07, 1.06, 1.35], **numbers})
    frame = frame.assign(
        metric="m", against="answer_latency_s", higher_is_better=True, front=pd.array([True] * 3, "boolean")
    )
    axes = plots.pareto(frame)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    short, wording, far = (text.get_window_extent() for text in axes.texts)
    assert [text.get_text() for text in axes.texts] == ["short", "wording", "far"]
    assert not short.overlaps(wording) and wording.y0 > short.y0
    assert far.y0 == short.y0  # where nothing is in the way a name stays at its mark


def test_pictures_show_what_decides() -> None:
    lines = rows(A=A, B=B) + rows("style", A=A[:5], B=B[:5])
    axes = plots.differences(compare(results(lines)))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["grade: B - A", "style: B - A"]
    with pytest.raises(InputError, match="no comparison under 'tone'"):
        plots.differences(compare(results(lines)), "tone")
