"""Pictures of variants against each other: their differences, and quality against what an answer takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jurimetrics.display import cut
from jurimetrics.errors import InputError
from jurimetrics.plots.drawing import GREYS, MARKS, arms, lettered, name_shown, names_shown, new_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LETTER, _LINE = 4.5, 10.0
"""About the width of a letter and the height of a line of the names of marks, in points."""


class Compared(Protocol):
    """A comparison of variants, as `compare` gives it."""

    @property
    def frame(self) -> pd.DataFrame: ...
    @property
    def level(self) -> float: ...


def differences(comparison: Compared, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """The differences of a comparison with the intervals that decide them, one line for each metric and pair.

    A filled mark is decided: its interval leaves out 0. An open one is not, and one without a bar has no interval. The
    interval is that of the whole family, for exploratory lines (in brackets) that of the comparison alone; where labels
    corrected a difference, it is the corrected one and a diamond. With several ranges of metrics, choose a `metric`.
    Raises `InputError` where there is nothing to draw.

    In a notebook: `jm.plots.differences(comparison).figure`.

    >>> import pandas as pd
    >>> from jurimetrics import Results, compare
    >>> rows = [{"id": i, "variant": v, "metric": "grade", "judge": "ann", "score": (3 + i % 3 + up) / 10}
    ...         for i in range(20) for v, up in (("A", 0), ("B", i % 4))]
    >>> differences(compare(Results.from_frame(pd.DataFrame(rows)))).get_xlabel()
    'difference of mean scores, 95 % intervals'
    """
    frame = comparison.frame if metric is None else comparison.frame[comparison.frame["metric"] == metric]
    if frame.empty:
        raise InputError(f"plots: no comparison under {metric!r}")
    axes = ax if ax is not None else new_axes(7.5, 1.2 + 0.36 * len(frame))
    names, named = [], names_shown([*frame["metric"], *frame["a"], *frame["b"]], "(no name)", longest=22)
    for place, line in enumerate(frame.to_dict("records")):
        value, low, high, mark = _deciding(line)
        decided = low > 0 or high < 0
        if not math.isnan(value):
            bar = None if math.isnan(low) else [[value - low], [high - value]]
            face = GREYS[0] if decided else "white"
            axes.errorbar(value, place, xerr=bar, fmt=mark, color=GREYS[0], mfc=face, markersize=6, capsize=2.5)
        metric_name, one, other = (named[line[column]] for column in ("metric", "b", "a"))
        name = f"{metric_name}: {one} - {other}{'' if line['higher_is_better'] else ' ↓'}"
        names.append(name if line["family"] == "primary" else f"({name})")
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(f"difference of mean scores, {comparison.level * 100:g} % intervals")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return lettered(axes)


def pareto(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Quality against what an answer takes: a mark for each variant with both intervals, the front as a line.

    `frame` is what `tradeoff` gives. Filled marks stand on the front, open ones are beaten; a variant of which the cost
    is unknown has no mark and is named in the title. Raises `InputError` where nothing is known.

    In a notebook: `jm.plots.pareto(jm.tradeoff(results)).figure`.

    >>> import pandas as pd
    >>> numbers = {"quality": [0.8, 0.7], "quality_low": 0.6, "quality_high": 0.9, "amount": [0.02, 0.01]}
    >>> numbers |= {"amount_low": [0.01, 0.005], "amount_high": [0.03, 0.02], "front": pd.array([True, True], "boolean")}
    >>> frame = pd.DataFrame({"variant": ["A", "B"], "metric": "faithfulness", "against": "answer_cost_usd", **numbers})
    >>> pareto(frame.assign(higher_is_better=True)).get_xlabel()
    'mean answer_cost_usd of an answer'
    """
    known = frame[frame["front"].notna()]
    if known.empty:
        raise InputError(f"plots: no variant has both quality and {', '.join(set(frame['against'])) or 'amount'}")
    axes = ax if ax is not None else new_axes(5.5, 4.0)
    named = names_shown([str(name) for name in frame["variant"]], "(no name)", longest=22)
    for at, line in enumerate(known.to_dict("records")):
        color, mark = GREYS[at % len(GREYS)], MARKS[at % len(MARKS)]
        face = color if line["front"] else "white"
        x, y = line["amount"], line["quality"]
        across, up = arms(line, "amount"), arms(line, "quality")
        axes.errorbar(x, y, xerr=across, yerr=up, fmt=mark, color=color, mfc=face, markersize=7, capsize=2)
    _name_marks(
        axes, [(named[str(line["variant"])], line["amount"], line["quality"]) for line in known.to_dict("records")]
    )
    front = known[known["front"].astype(bool)].sort_values(["amount", "quality"])
    axes.plot(front["amount"], front["quality"], color="0.5", linewidth=1, linestyle=":", zorder=0)
    better = "higher" if frame["higher_is_better"].iloc[0] else "lower"
    axes.set_xlabel(f"mean {frame['against'].iloc[0]} of an answer")
    axes.set_ylabel(f"{name_shown(str(frame['metric'].iloc[0]), 30)} ({better} is better)")
    if unknown := [named[str(name)] for name in frame.loc[frame["front"].isna(), "variant"]]:
        axes.set_title(cut(f"unknown: {', '.join(unknown)}", 70), loc="left", fontsize=9)
    return lettered(axes)


def _name_marks(axes: Axes, marks: Sequence[tuple[str, float, float]]) -> None:
    """Write a name beside each mark, above the names that stand there already."""
    _ = axes.get_xlim(), axes.get_ylim()  # settles the limits that `transData` goes by
    taken: list[tuple[float, float, float]] = []
    for name, x, y in marks:
        left, base = axes.transData.transform((x, y)) * 72 / axes.figure.dpi
        right, up = left + _LETTER * len(name), 6.0
        while any(left < end and start < right and abs(base + up - at) < _LINE for start, end, at in taken):
            up += _LINE
        taken.append((left, right, base + up))
        axes.annotate(name, (x, y), xytext=(6, up), textcoords="offset points", fontsize=8)


def _deciding(line: dict[Any, Any]) -> tuple[float, float, float, str]:
    """The difference, the interval its verdict goes by, and its mark."""
    if not math.isnan(line["corrected"]):
        return line["corrected"], line["corrected_low"], line["corrected_high"], "D"
    if line["family"] != "primary":
        return line["difference"], line["low"], line["high"], "s"
    return line["difference"], line["simultaneous_low"], line["simultaneous_high"], "o"
