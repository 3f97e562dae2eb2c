"""Pictures of judges held against people: agreement with its intervals, confusion, scores against labels, reliability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jurimetrics.errors import InputError
from jurimetrics.plots.drawing import GREYS, arms, lettered, name_shown, names_shown, new_axes, undefined
from jurimetrics.stats.maps import Reliability

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The angle between neighbours in a sunflower's head: points spread so never stand in rows.
_GOLDEN = math.pi * (3 - math.sqrt(5))
_SPREAD = 0.011
"""How far the second of equal points stands from the first, as a share of the range; the n-th sqrt(n) times as far."""


class Agreed(Protocol):
    """Judges held against people, as `agreement` gives them."""

    @property
    def frame(self) -> pd.DataFrame: ...
    @property
    def rows(self) -> pd.DataFrame: ...
    @property
    def confidence(self) -> float: ...
    @property
    def results(self) -> Any: ...


def agreement(found: Agreed, estimate: str = "spearman", metric: str | None = None, ax: Axes | None = None) -> Axes:
    """A forest of one estimate: a line for each metric and judge with its interval, and what people reach among themselves.

    Filled circles are judges, open squares the baseline, open diamonds people held against people (`human_<estimate>`),
    where there are two raters. Where there is no value the line says so; a mark without a bar has no interval. `estimate`
    is any of `found.frame`; the default correlation is that of `found.level`. Raises `InputError` for an unknown estimate
    or metric.

    In a notebook: `jm.plots.agreement(jm.agreement(results, labels), "kappa").figure`.

    >>> import pandas as pd
    >>> from jurimetrics import Results, agreement as agree, load_labels
    >>> scores = pd.DataFrame({"id": range(8), "metric": "grade", "judge": "ann", "score": [1, 2, 3, 4, 5, 2, 3, 4]})
    >>> people = load_labels([{"id": i, "metric": "grade", "label": x} for i, x in enumerate([1, 2, 3, 4, 5, 1, 3, 5])])
    >>> found = agree(Results.from_frame(scores, {"grade": {"range": (1, 5)}}), people, level="pooled")
    >>> agreement(found, "kappa").get_xlabel()
    'kappa with 95 % interval'
    """
    frame = found.frame if metric is None else found.frame[found.frame["metric"] == metric]
    if frame.empty or f"{estimate}_low" not in frame.columns:
        known = [name.removesuffix("_low") for name in frame.columns if name.endswith("_low")]
        raise InputError(f"plots: no estimate {estimate!r} under {metric!r}; estimates: {', '.join(known) or 'none'}")
    lines = _forest_lines(frame, estimate)
    axes = ax if ax is not None else new_axes(7.0, 1.2 + 0.34 * len(lines))
    for place, (_, kind, line) in enumerate(lines):
        _forest_mark(axes, place, kind, line)
    axes.set_yticks(range(len(lines)), [name for name, _, _ in lines], fontsize=8)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.axvline(0, color="0.4", linewidth=1)
    level = f" ({frame['level'].iloc[0]})" if estimate in ("spearman", "kendall", "pearson") else ""
    axes.set_xlabel(f"{estimate}{level} with {found.confidence * 100:g} % interval")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return lettered(axes)


def _forest_lines(frame: pd.DataFrame, estimate: str) -> list[tuple[str, str, dict[str, float]]]:
    """The name of each line, its kind, and its three numbers; people first under each metric."""
    named = names_shown([*frame["metric"], *frame["judge"]], "(no name)", longest=26)
    several = frame["metric"].nunique() > 1
    lines = []
    for metric, rows in frame.groupby("metric", sort=False):
        before = f"{named[str(metric)]}: " if several else ""
        human = f"human_{estimate}"
        known = rows[rows[human].notna()] if human in rows.columns else rows[:0]
        if len(known):
            lines.append((f"{before}people", "people", _numbers(known.iloc[0], human)))
        for _, row in rows.iterrows():
            lines.append((f"{before}{named[row['judge']]}", str(row["kind"]), _numbers(row, estimate)))
    return lines


def _numbers(row: pd.Series[Any], name: str) -> dict[str, float]:
    return {f"value{ending}": float(row[f"{name}{ending}"]) for ending in ("", "_low", "_high")}


def _forest_mark(axes: Axes, place: int, kind: str, line: dict[str, float]) -> None:
    if math.isnan(line["value"]):
        undefined(axes, place)
        return
    mark = {"people": "D", "baseline": "s"}.get(kind, "o")
    face = GREYS[0] if mark == "o" else "white"
    color = "black" if kind == "people" else GREYS[0]
    bar = arms(line, "value")
    axes.errorbar(line["value"], place, xerr=bar, fmt=mark, color=color, mfc=face, markersize=6, capsize=2.5)


def confusion(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How often the judge gave each step (rows) where most people gave each step (columns): `Agreement.confusion`.

    The number stands in the cell, darker is more; agreement lies on the framed diagonal. Raises `InputError` for an
    empty table.

    In a notebook: `jm.plots.confusion(found.confusion("grade", "ann")).figure`.

    >>> import pandas as pd
    >>> confusion(pd.DataFrame([[5, 1], [0, 4]], index=["0", "1"], columns=["0", "1"])).texts[1].get_text()
    '1'
    """
    if table.empty:
        raise InputError("plots: the confusion table is empty")
    counts = table.to_numpy(dtype=float)
    axes = ax if ax is not None else new_axes(1.9 + 0.5 * table.shape[1], 1.5 + 0.45 * table.shape[0])
    axes.imshow(counts, cmap="Greys", vmin=0, vmax=max(1.0, float(counts.max())), aspect="auto")
    for at, row in enumerate(counts):
        for to, number in enumerate(row):
            frame = {"boxstyle": "round,pad=0.25", "fill": False, "edgecolor": "0.5"} if at == to else None
            ink = "white" if number > 0.55 * counts.max() else "black"
            axes.text(to, at, f"{number:.4g}", ha="center", va="center", fontsize=8, color=ink, bbox=frame)
    axes.set_xticks(range(table.shape[1]), list(map(str, table.columns)), fontsize=8)
    axes.set_yticks(range(table.shape[0]), list(map(str, table.index)), fontsize=8)
    axes.set_xlabel("label of most raters")
    axes.set_ylabel("judge")
    return lettered(axes)


def judge_human(found: Agreed, metric: str, judge: str, ax: Axes | None = None) -> Axes:
    """Every labelled record: the mean label of its raters across, the judge's score upwards; on the line both are equal.

    Records with the same two numbers would hide each other, so they are spread a little around the true place, in the
    order of the rows and without chance. Raises `InputError` where metric and judge share no record.

    In a notebook: `jm.plots.judge_human(jm.agreement(results, labels), "grade", "ann").figure`.

    >>> import pandas as pd
    >>> from jurimetrics import Results, agreement as agree, load_labels
    >>> scores = pd.DataFrame({"id": range(8), "metric": "grade", "judge": "ann", "score": [1, 2, 3, 4, 5, 2, 3, 4]})
    >>> people = load_labels([{"id": i, "metric": "grade", "label": x} for i, x in enumerate([1, 2, 3, 4, 5, 1, 3, 5])])
    >>> judge_human(agree(Results.from_frame(scores, {"grade": {"range": (1, 5)}}), people), "grade", "ann").get_ylabel()
    'ann'
    """
    rows = found.rows
    rows = rows[(rows["metric"] == metric) & (rows["judge"] == judge) & rows["score"].notna() & rows["label"].notna()]
    if rows.empty:
        raise InputError(f"plots: no record has both a label and a score for {metric!r} by {judge!r}")
    low, high = (float(end) for end in found.results.settings["metrics"][metric]["range"])
    span = high - low or 1.0
    across, up = _spread(rows["label"].tolist(), rows["score"].tolist(), _SPREAD * span)
    axes = ax if ax is not None else new_axes(4.2, 4.0)
    axes.plot([low, high], [low, high], color="0.6", linewidth=1, linestyle="--", zorder=0)
    axes.scatter(across, up, s=12, facecolors="none", edgecolors=GREYS[0], linewidths=0.8)
    for set_limits in (axes.set_xlim, axes.set_ylim):
        set_limits(low - 0.12 * span, high + 0.12 * span)
    axes.set_aspect("equal")
    axes.set_xlabel("label (mean of raters)")
    axes.set_ylabel(name_shown(judge))
    axes.set_title(f"{name_shown(metric)}, n={len(rows)}", loc="left", fontsize=10)
    return lettered(axes)


def _spread(across: Sequence[float], up: Sequence[float], step: float) -> tuple[list[float], list[float]]:
    """The points, equal ones around their place like the seeds of a sunflower; a point that stands alone is not moved."""
    seen: dict[tuple[float, float], int] = {}
    found: tuple[list[float], list[float]] = ([], [])
    for x, y in zip(across, up, strict=True):
        rank = seen[x, y] = seen.get((x, y), -1) + 1
        radius, angle = step * math.sqrt(rank), _GOLDEN * rank
        found[0].append(x + radius * math.cos(angle))
        found[1].append(y + radius * math.sin(angle))
    return found


def reliability(curve: Reliability | None, ax: Axes | None = None) -> Axes:
    """What was predicted against what was observed, bin by bin: `Calibration.reliability`; on the line both are equal.

    A larger circle holds more records, whose number stands beside it. Raises `InputError` where the calibration has no
    curve (its scores are no probabilities).

    In a notebook: `jm.plots.reliability(jm.calibrate(results, labels, method="platt").reliability).figure`.

    >>> from jurimetrics.stats.maps import reliability_curve
    >>> reliability(reliability_curve([0.2, 0.4, 0.6, 0.9], [0, 1, 1, 1], bins=2)).get_ylabel()
    'share that passed'
    """
    if curve is None:
        raise InputError('plots: no reliability curve; probabilities come from calibrate(..., method="platt")')
    axes = ax if ax is not None else new_axes(4.2, 4.0)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", zorder=0)
    axes.plot(curve.predicted, curve.observed, color=GREYS[0], linewidth=1)
    sizes = [30 + 270 * float(share) for share in curve.share]
    axes.scatter(curve.predicted, curve.observed, s=sizes, facecolors="white", edgecolors=GREYS[0], zorder=2)
    for x, y, records in zip(curve.predicted, curve.observed, curve.records, strict=True):
        axes.annotate(str(int(records)), (x, y), xytext=(9, -11), textcoords="offset points", fontsize=8)
    for set_limits in (axes.set_xlim, axes.set_ylim):
        set_limits(-0.06, 1.06)
    axes.set_aspect("equal")
    axes.set_xlabel("predicted probability of a pass")
    axes.set_ylabel("share that passed")
    return lettered(axes)
