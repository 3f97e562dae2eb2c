"""Pictures of scores: means of metrics, every score of one metric, sentences against sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jurimetrics.errors import InputError
from jurimetrics.plots.drawing import GREYS, MARKS, drawable, lettered, name_shown, names_shown, new_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from jurimetrics.results import Results

MOST_NUMBERS = 20
"""Sentences on a side up to which a heat map has room for numbers and texts."""
SENTENCE_SHOWN = 40
"""Columns of a sentence that leave room for the picture beside it."""


def summary(results: Results, ax: Axes | None = None, *, judge: str | None = None) -> Axes:
    """Mean of every metric with its interval, one mark per variant, for one judge (default: the panel, else the first).

    Metrics with another range than 0 to 1 are drawn as (mean - lowest) / (highest - lowest); the label gives their
    range. A mean without an interval has no bar; a metric without scored rows, or with a range without width (all scores
    equal, the range taken from them), has no mark. Lower-is-better metrics have a downward arrow. Raises `InputError`
    where the judge has no rows.

    In a notebook: `jm.plots.summary(results).figure`.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    >>> results = evaluate([record], ["faithfulness"], BaselineJudge(), store=None)
    >>> summary(results).get_xlabel()
    'mean and 95 % interval, as a share of the range'
    """
    frame = results.summary()
    chosen = _judge(frame, results.settings, judge)
    frame = frame[frame["judge"].isin([chosen, "computed"])]
    metrics, variants = list(dict.fromkeys(frame["metric"])), list(dict.fromkeys(frame["variant"]))
    named = names_shown(variants, "all")
    labels = [_label(label, results.settings["metrics"][name]) for name, label in names_shown(metrics).items()]
    # Inches: room for long names beside the picture, not inside it.
    beside = 0.14 * max(25, *map(len, labels)) + 0.11 * max(12, *map(len, named.values())) - 4.82
    axes = ax if ax is not None else new_axes(7.5 + beside, 1.2 + 0.42 * len(metrics) * max(1, len(variants) * 0.6))
    for at, variant in enumerate(variants):
        rows = frame[frame["variant"] == variant].set_index("metric")
        _interval_marks(axes, rows, metrics, results.settings["metrics"], at, len(variants), named[variant])
    axes.set_yticks(range(len(metrics)), labels)
    axes.set_ylim(len(metrics) - 0.5, -0.5)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("mean and 95 % interval, as a share of the range")
    axes.set_title(f"Judged by {name_shown(chosen)}", loc="left", fontsize=10)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    if len(variants) > 1 and axes.get_legend_handles_labels()[0]:
        axes.legend(title="variant", frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return lettered(axes)


def scores(results: Results, metric: str, ax: Axes | None = None, *, judge: str | None = None) -> Axes:
    """Every score of one metric as a dot, a column per variant, for one judge (default: the panel, else the first).

    Equal scores stand side by side; the dashed line is the threshold. Rows without a score are counted in the label.
    Raises `InputError` where metric or judge have no rows.

    In a notebook: `jm.plots.scores(results, "faithfulness").figure`.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    >>> results = evaluate([record], ["faithfulness"], BaselineJudge(), store=None)
    >>> scores(results, "faithfulness").get_ylabel()
    'faithfulness (0 to 1, high is better)'
    """
    frame = results.scores
    frame = frame[frame["metric"] == metric]
    if frame.empty:
        raise InputError(f"plots: no rows of a metric {metric!r}")
    chosen = _judge(frame, results.settings, judge)
    frame = frame[frame["judge"].isin([chosen, "computed"])]
    settings = results.settings["metrics"][metric]
    variants = list(dict.fromkeys(frame["variant"]))
    axes = ax if ax is not None else new_axes(1.6 + 1.5 * len(variants), 3.4)
    ticks, named = [], names_shown(variants, "all", longest=20)
    for at, variant in enumerate(variants):
        rows = frame[frame["variant"] == variant]
        values = sorted(rows.loc[rows["status"] == "ok", "score"])
        color, mark = GREYS[at % len(GREYS)], MARKS[at % len(MARKS)]
        axes.scatter(_side_by_side(values, at), values, s=14, color=color, marker=mark, alpha=0.75)
        missing = len(rows) - len(values)
        ticks.append(f"{named[variant]}\nn={len(values)}" + (f", {missing} without" if missing else ""))
    axes.set_xticks(range(len(variants)), ticks, fontsize=8)
    axes.set_xlim(-0.6, len(variants) - 0.4)
    low, high = settings["range"]
    # A range that was taken from the data has no width where all scores are equal.
    pad = 0.04 * (high - low) or max(0.5, 0.04 * abs(high))
    axes.set_ylim(low - pad, high + pad)
    if settings["threshold"] is not None:
        axes.axhline(settings["threshold"], linestyle="--", color="0.4", linewidth=1)
    better = "high" if settings["higher_is_better"] else "low"
    label = name_shown(metric)
    axes.set_ylabel(f"{label}{chr(10) if len(label) > 18 else ' '}({low:g} to {high:g}, {better} is better)")
    axes.set_title(f"Judged by {name_shown(chosen, 22)}", loc="left", fontsize=10)
    return lettered(axes)


def similarity_matrix(results: Results, id: str, variant: str = "", ax: Axes | None = None) -> Axes:  # noqa: A002
    """The sentences of one answer (rows) against those of its reference (columns), as `cross_similarity` compared them.

    Darker is nearer; the number in a cell is the cosine (0 to 1), the greatest of its row in bold, the greatest of its
    column in a frame: means of these are the precision and the recall side, which the title gives. A sentence in a
    script that no installed font has is shown by its number; beyond 20 sentences on a side there is no room for either.
    Raises `InputError` where the record has no scored row of that metric.

    In a notebook: `jm.plots.similarity_matrix(results, "7").figure`.

    >>> from jurimetrics import ChatJudge, evaluate
    >>> record = {"id": "7", "answer": "Madrid is in Spain. It is large.", "reference": "Madrid is in Spain."}
    >>> judge = ChatJudge("not-asked", base_url="http://127.0.0.1:9/v1")
    >>> results = evaluate([record], ["cross_similarity"], judge, store=None)
    >>> similarity_matrix(results, "7").get_title(loc="left")
    'precision side 0.50, recall side 1.00'
    """
    frame = results.scores
    of_record = (frame["id"] == str(id)) & (frame["variant"] == variant) & (frame["status"] == "ok")
    rows = frame[of_record & frame["metric"].str.fullmatch(r"cross_similarity(\(.*\))?")]
    if rows.empty:
        named = f"{str(id)!r}{f' of {variant!r}' if variant else ''}"
        raise InputError(f"plots: no scored row of cross_similarity for {named}")
    found = json.loads(rows["details"].iloc[0])
    matrix, said, expected = found["matrix"], found["answer_sentences"], found["reference_sentences"]
    axes = ax if ax is not None else new_axes(4.6 + 0.75 * min(len(expected), 20), 1.6 + 0.42 * min(len(said), 20))
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    if max(len(said), len(expected)) <= MOST_NUMBERS:
        _numbers(axes, matrix)
        axes.set_yticks(range(len(said)), _numbered(said), fontsize=8)
        axes.set_xticks(range(len(expected)), _numbered(expected), fontsize=8, rotation=30, ha="right")
    axes.set_ylabel("sentences of the answer")
    axes.set_xlabel("sentences of the reference")
    sides = f"precision side {found['precision']:.2f}, recall side {found['recall']:.2f}"
    axes.set_title(sides, loc="left", fontsize=9)
    return lettered(axes)


def _judge(frame: pd.DataFrame, settings: dict[str, Any], judge: str | None) -> str:
    panel = (settings.get("panel") or {}).get("name", "")
    judges: list[str] = list(dict.fromkeys(frame["judge"]))
    if judge is not None:
        if judge not in judges:
            raise InputError(f"plots: no rows of a judge {judge!r}; judges: {', '.join(judges)}")
        return judge
    return panel if panel in judges else next((name for name in judges if name != "computed"), judges[0])


def _interval_marks(
    axes: Axes, rows: pd.DataFrame, metrics: Sequence[str], settings: dict[str, Any], at: int, of: int, variant: str
) -> None:
    shift = (at - (of - 1) / 2) * min(0.5 / of, 0.22)
    named = False
    for place, metric in enumerate(metrics):
        low, high = settings[metric]["range"]
        shares = (rows[["mean", "low", "high"]].reindex([metric]).astype(float).iloc[0] - low) / (high - low)
        mean, begin, end = (float(share) for share in shares)
        if math.isnan(mean):
            continue
        bar = None if math.isnan(begin) else [[mean - begin], [end - mean]]
        axes.errorbar(
            mean,
            place + shift,
            xerr=bar,
            fmt=MARKS[at % len(MARKS)],
            color=GREYS[at % len(GREYS)],
            markersize=5,
            capsize=2.5,
            linewidth=1.2,
            label=None if named else variant,
        )
        named = True


def _numbers(axes: Axes, matrix: Sequence[Sequence[float]]) -> None:
    greatest = [max(column) for column in zip(*matrix, strict=True)]
    for at, row in enumerate(matrix):
        for column, value in enumerate(row):
            color = "white" if value > 0.55 else "black"
            frame = {"boxstyle": "round,pad=0.25", "fill": False, "edgecolor": color}
            axes.text(
                column,
                at,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color=color,
                fontweight="bold" if value == max(row) else "normal",
                bbox=frame if value == greatest[column] else None,
            )


def _numbered(texts: Sequence[str]) -> list[str]:
    shown = []
    for number, text in enumerate(texts, 1):
        has_letters = not set("".join(text.split())) - drawable(text)
        shown.append(f"{number}  {name_shown(text, SENTENCE_SHOWN)}" if has_letters else str(number))
    return shown


def _label(name: str, settings: dict[str, Any]) -> str:
    low, high = settings["range"]
    span = "" if (low, high) == (0, 1) else f" ({low:g} to {high:g})"
    return f"{name}{span}{'' if settings['higher_is_better'] else ' ↓'}"


def _side_by_side(values: Sequence[float], at: int) -> list[float]:
    places: list[float] = []
    seen: dict[float, int] = {}
    counts = {value: values.count(value) for value in values}
    for value in values:
        rank = seen[value] = seen.get(value, -1) + 1
        width = min(0.04, 0.7 / max(counts[value], 1))
        places.append(at + (rank - (counts[value] - 1) / 2) * width)
    return places
