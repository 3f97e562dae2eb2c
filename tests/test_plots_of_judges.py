"""Pictures of judges held against people: every mark stands where the statistics say, and says what it is without colour."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from jurimetrics import plots
from jurimetrics.calibrate.panels import panel_report
from jurimetrics.stats.maps import reliability_curve
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from test_plots import texts, width

GRADE = {"grade": {"range": (1, 5), "threshold": 3}}


def graded(judges: dict[str, list[float]]) -> jm.Results:
    rows = [
        {"id": at, "metric": "grade", "judge": judge, "score": score}
        for judge, given in judges.items()
        for at, score in enumerate(given)
    ]
    return jm.Results.from_frame(pd.DataFrame(rows), GRADE)


def people(labels: list[float], raters: int = 2) -> pd.DataFrame:
    rows = [
        {"id": at, "metric": "grade", "rater": f"rater {number}", "label": min(5, label + number * (at % 7 == 0))}
        for at, label in enumerate(labels)
        for number in range(raters)
    ]
    return jm.load_labels(rows, selection="random")


TRUTH = [1.0, 2, 3, 4, 5, 2, 3, 4] * 8
JUDGES = {
    "ann": [min(5.0, label + (at % 5 == 0)) for at, label in enumerate(TRUTH)],
    "bob": [max(1.0, label - (at % 3 == 0)) for at, label in enumerate(TRUTH)],
    "same": [3.0] * 64,
}


@pytest.fixture(scope="module")
def found() -> Any:
    return jm.agreement(graded(JUDGES), people(TRUTH), level="pooled", resamples=200)


@pytest.fixture(scope="module")
def report() -> Any:
    return panel_report(graded(JUDGES), people(TRUTH), costs={"ann": 3.0, "bob": 1.0, "same": 0.5})


def places(axes: Axes) -> list[tuple[float, float, str]]:
    """The points of a picture with their marks."""
    return [
        (float(x), float(y), str(line.get_marker()))
        for line in axes.lines
        for x, y in np.atleast_2d(line.get_xydata())
        if line.get_marker() in ("o", "s", "D", "x", "*")
    ]


def test_a_forest_shows_people_and_judges_where_their_estimates_are(found: Any) -> None:
    axes = plots.agreement(found, "kappa")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["people", "ann", "bob", "same"]
    marks = {place: (x, mark) for x, place, mark in places(axes)}
    human, ann, bob = (found.estimate(name, judge=judge).value for name, judge in (
        ("human_kappa", "ann"), ("kappa", "ann"), ("kappa", "bob"),
    ))  # fmt: skip
    assert marks[0] == (pytest.approx(human), "D")
    assert marks[1] == (pytest.approx(ann), "o") and marks[2] == (pytest.approx(bob), "o")
    bars = [collection.get_segments()[0] for collection in axes.collections]
    estimate = found.estimate("kappa", judge="ann")
    assert bars[1][:, 0].tolist() == pytest.approx([estimate.low, estimate.high])


def test_a_forest_says_where_there_is_no_value(found: Any) -> None:
    axes = plots.agreement(found, "spearman")
    assert "undefined" in texts(axes), "the constant judge has no correlation"
    assert "pooled" in axes.get_xlabel()
    with pytest.raises(jm.InputError, match="no estimate 'kapa'"):
        plots.agreement(found, "kapa")
    with pytest.raises(jm.InputError, match="under 'tone'"):
        plots.agreement(found, "kappa", "tone")


def test_the_baseline_has_a_mark_of_its_own(found: Any) -> None:
    frame = found.frame.assign(kind=["judge", "baseline", "judge"])
    axes = plots.agreement(SimpleNamespace(frame=frame, confidence=0.95, rows=None, results=None), "kappa")
    assert [mark for _, _, mark in places(axes)] == ["D", "o", "s", "o"]


def test_confusion_counts_every_cell_and_frames_agreement(found: Any) -> None:
    table = found.confusion("grade", "ann")
    axes = plots.confusion(table)
    cells = {(round(text.get_position()[1]), round(text.get_position()[0])): text for text in axes.texts}
    assert {at: float(text.get_text()) for at, text in cells.items()} == {
        (row, column): table.iloc[row, column] for row in range(5) for column in range(5)
    }
    assert {at for at, text in cells.items() if text.get_bbox_patch() is not None} == {(at, at) for at in range(5)}
    assert axes.get_xlabel() == "label of most raters" and axes.get_ylabel() == "judge"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4", "5"]


def test_no_two_records_hide_each_other_and_a_lone_one_is_not_moved(found: Any) -> None:
    axes = plots.judge_human(found, "grade", "ann")
    (cloud,) = axes.collections
    points = np.asarray(cloud.get_offsets())
    rows = found.rows[found.rows["judge"] == "ann"]
    true = rows[["label", "score"]].to_numpy()
    assert len(points) == 64 and len(np.unique(points.round(6), axis=0)) == 64
    assert np.abs(points - true).max() < 0.5, "a point stays nearer to its own place than to any other"
    alone = ~rows.duplicated(["label", "score"], keep=False).to_numpy()
    assert alone.any() and np.allclose(points[alone], true[alone])
    again = np.asarray(plots.judge_human(found, "grade", "ann").collections[0].get_offsets())
    assert (points == again).all()
    with pytest.raises(jm.InputError, match="by 'eve'"):
        plots.judge_human(found, "grade", "eve")


def test_reliability_stands_where_the_bins_are() -> None:
    curve = reliability_curve([0.1, 0.1, 0.9, 0.8, 0.7], [0, 1, 1, 1, 0], bins=4)
    axes = plots.reliability(curve)
    cloud = axes.collections[0]
    assert np.allclose(np.asarray(cloud.get_offsets()), np.column_stack([curve.predicted, curve.observed]))
    assert [text.get_text() for text in axes.texts] == [str(number) for number in curve.records]
    assert np.all(np.diff(cloud.get_sizes()[np.argsort(curve.share)]) >= 0)
    with pytest.raises(jm.InputError, match="no reliability curve"):
        plots.reliability(None)


def test_pairs_of_judges_stand_on_both_sides_of_the_diagonal() -> None:
    frame = pd.DataFrame(
        {"judge": ["ann", "ann", "bob"], "other": ["bob", "cid", "cid"], "correlation": [0.9, -0.4, math.nan]}
    )
    axes = plots.judge_judge(frame)
    cells = {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts}
    assert cells[0, 1] == cells[1, 0] == "0.90" and cells[0, 2] == "-0.40" and cells[2, 1] == "–"
    assert len(cells) == 6
    shade = np.ma.filled(axes.images[0].get_array().astype(float), np.nan)
    assert shade[0, 2] == pytest.approx(0.4) and np.isnan(shade[0, 0])
    with pytest.raises(jm.InputError, match="no pair"):
        plots.judge_judge(frame[:0])


def test_the_frontier_marks_what_is_beaten_the_winner_and_what_to_believe(report: Any) -> None:
    axes = plots.frontier(report)
    marks = places(axes)
    stars = [(x, y) for x, y, mark in marks if mark == "*"]
    won = report.frontier[report.frontier["winner"]].iloc[0]
    assert stars == [(pytest.approx(won["cost"]), pytest.approx(won["loss"]))]
    diamonds = [y for _, y, mark in marks if mark == "D"]
    assert diamonds == [pytest.approx(report.estimates["winner_held_out"].value)]
    assert len(marks) == len(report.frontier) + 1
    open_ones = sum(line.get_markerfacecolor() == "white" and line.get_marker() == "o" for line in axes.lines)
    beaten = ~(report.frontier["efficient"].astype(bool) | report.frontier["winner"])
    assert open_ones == beaten.sum() > 0
    named = {text.get_text() for text in axes.texts} - {"winner, held out"}
    assert named == set(report.frontier.loc[~beaten, "members"])


def test_panels_of_unknown_cost_are_counted_not_drawn(report: Any) -> None:
    lacking = report.frontier.assign(cost=report.frontier["cost"].where(report.frontier["judges"] == 1))
    plain = {"estimates": report.estimates, "cost_in": "given", "of": "passes"}
    axes = plots.frontier(SimpleNamespace(frontier=lacking, **plain))
    assert axes.get_title(loc="left") == "4 panels of unknown cost"
    with pytest.raises(jm.InputError, match="no panel"):
        plots.frontier(SimpleNamespace(frontier=lacking.assign(cost=math.nan), **plain))


def test_effects_are_filled_where_they_are_found() -> None:
    lenient = jm.probes.leniency(graded(JUDGES), people(TRUTH, raters=1))
    axes = plots.effects(lenient)
    by_place = {round(y): (x, line) for line in axes.lines for x, y in line.get_xydata() if line.get_marker() == "o"}
    for at, line in enumerate(lenient.lines):
        x, drawn = by_place[at]
        assert x == pytest.approx(line.estimate.value)
        assert (drawn.get_markerfacecolor() != "white") == (line.p_adjusted <= 0.05)
    assert {line.p_adjusted <= 0.05 for line in lenient.lines} == {True, False}
    together = plots.effects(jm.probes.family(lenient, lenient))
    assert len(together.get_yticks()) == 2 * len(lenient.lines)
    with pytest.raises(jm.InputError, match="'tone'"):
        plots.effects(lenient, "tone")


DRAWN: dict[str, Callable[[str, Axes | None], Axes]] = {
    "agreement": lambda name, ax: plots.agreement(_named(name), "kappa", ax=ax),
    "judge_human": lambda name, ax: plots.judge_human(_named(name), "grade", f"{name} a", ax=ax),
    "confusion": lambda name, ax: plots.confusion(pd.DataFrame([[1, 2], [0, 3]]), ax=ax),
    "reliability": lambda name, ax: plots.reliability(reliability_curve([0.2, 0.8], [0, 1], bins=2), ax=ax),
    "judge_judge": lambda name, ax: plots.judge_judge(
        pd.DataFrame({"judge": [f"{name} a"], "other": [f"{name} b"], "correlation": [0.3]}), ax=ax
    ),
    "frontier": lambda name, ax: plots.frontier(
        panel_report(graded({f"{name} a": JUDGES["ann"], f"{name} b": JUDGES["bob"]}), people(TRUTH, 1)), ax=ax
    ),
    "effects": lambda name, ax: plots.effects(
        jm.probes.leniency(graded({f"{name} a": JUDGES["ann"], f"{name} b": JUDGES["bob"]}), people(TRUTH, 1)), ax=ax
    ),
}


ODD = ("chinese", "formula", "newline", "long", "long and wide")


def _named(name: str) -> Any:
    return jm.agreement(
        graded({f"{name} a": JUDGES["ann"], f"{name} b": JUDGES["bob"]}), people(TRUTH, 1), resamples=50
    )


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize(
    "name", ["忠実", "$x^2$ and $y_", "m" * 300, "two\nlines"], ids=["wide", "formula", "long", "newline"]
)
def test_any_name_is_drawn_and_leaves_room(name: str, draw: Callable[[str, Axes | None], Axes]) -> None:
    axes = draw(name, None)
    shown = texts(axes)
    assert width(axes) > 0.2
    assert max(len(line) for text in shown for line in text.split("\n")) < 80


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_axes_that_are_given_are_drawn_into_and_given_back(draw: Callable[[str, Axes | None], Axes]) -> None:
    mine = Figure(layout="constrained").subplots()
    assert draw("ann", mine) is mine
    assert mine.has_data() or mine.images


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_a_picture_fits_a_notebook(draw: Callable[[str, Axes | None], Axes]) -> None:
    across, up = draw("ann", None).figure.get_size_inches()
    assert 2 < across <= 8 and 1 < up <= 8
    assert all(text.get_fontsize() >= 8 for text in draw("ann", None).findobj(Text) if text.get_text())
