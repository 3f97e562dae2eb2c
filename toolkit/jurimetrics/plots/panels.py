"""Pictures of several judges: whose errors go together, what each panel loses and costs, and what sways a judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from jurimetrics.display import cut
from jurimetrics.errors import InputError
from jurimetrics.plots.drawing import GREYS, arms, lettered, name_shown, names_shown, new_axes, undefined
from jurimetrics.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ALPHA = 0.05


def judge_judge(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """A heat map of pairs of judges: how far their errors go together, as `PanelReport.correlations` says.

    `frame`: `judge`, `other`, `correlation` (-1 to 1; NaN is shown as a dash). Darker is stronger, in either direction:
    the sign stands in the number. Raises `InputError` where there is no pair.

    In a notebook: `jm.plots.judge_judge(report.correlations).figure`.

    >>> import pandas as pd
    >>> judge_judge(pd.DataFrame({"judge": ["ann"], "other": ["bob"], "correlation": [0.4]})).texts[0].get_text()
    '0.40'
    """
    if frame.empty:
        raise InputError("plots: no pair of judges")
    judges = list(dict.fromkeys([*frame["judge"], *frame["other"]]))
    place = {name: at for at, name in enumerate(judges)}
    cells = [[math.nan] * len(judges) for _ in judges]
    axes = ax if ax is not None else new_axes(2.6 + 0.62 * len(judges), 1.9 + 0.48 * len(judges))
    for line in frame.to_dict("records"):
        value = float(line["correlation"])
        for at, to in ((line["judge"], line["other"]), (line["other"], line["judge"])):
            cells[place[at]][place[to]] = abs(value)
            ink = "white" if abs(value) > 0.55 else "black"
            shown = "–" if math.isnan(value) else f"{value:z.2f}"
            axes.text(place[to], place[at], shown, ha="center", va="center", fontsize=8, color=ink)
    axes.imshow(cells, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    named = list(names_shown([str(name) for name in judges], "(no name)", longest=24).values())
    axes.set_xticks(range(len(judges)), named, fontsize=8, rotation=30, ha="right")
    axes.set_yticks(range(len(judges)), named, fontsize=8)
    axes.set_title("correlation of errors", loc="left", fontsize=10)
    return lettered(axes)


class Weighed(Protocol):
    """What labels say of panels, as `panel_report` gives it."""

    @property
    def frontier(self) -> pd.DataFrame: ...
    @property
    def estimates(self) -> Mapping[str, Estimate]: ...
    @property
    def cost_in(self) -> str: ...
    @property
    def of(self) -> str: ...


def frontier(report: Weighed, ax: Axes | None = None) -> Axes:
    """What every panel loses against what it costs; those that no cheaper panel matches are filled and named.

    The winner is a star; the diamond with the bar is what choosing a winner so loses on records that it was not chosen
    on, and the one to believe. A panel whose cost is unknown has no mark and is counted in the title. Raises `InputError`
    where no cost is known.

    In a notebook: `jm.plots.frontier(panel_report(results, labels)).figure`.

    >>> import pandas as pd
    >>> from jurimetrics import Results, load_labels
    >>> from jurimetrics.calibrate.panels import panel_report
    >>> rows = [{"id": i, "judge": j, "metric": "ok", "score": (i + up * (i % 3 == 0)) % 2}
    ...         for i in range(40) for j, up in (("ann", 0), ("bob", 1))]
    >>> people = load_labels([{"id": i, "metric": "ok", "label": i % 2} for i in range(40)], selection="random")
    >>> frontier(panel_report(Results.from_frame(pd.DataFrame(rows)), people)).get_xlabel()
    'cost (judges)'
    """
    frame = report.frontier
    known = frame[frame["cost"].notna() & frame["loss"].notna()]
    if known.empty:
        raise InputError("plots: no panel has both a loss and a cost")
    axes = ax if ax is not None else new_axes(6.5, 4.2)
    named = names_shown([str(name) for name in known["members"]], "(no name)", longest=44)
    for line in known.to_dict("records"):
        efficient = line["efficient"] is True
        mark, size = ("*", 15) if line["winner"] else ("o", 6)
        face = GREYS[0] if efficient or line["winner"] else "white"
        axes.plot(line["cost"], line["loss"], mark, color=GREYS[0], mfc=face, markersize=size, linestyle="none")
        if efficient or line["winner"]:
            _beside(axes, named[str(line["members"])], line["cost"], line["loss"], 5)
    front = known[known["efficient"].fillna(False)].sort_values(["cost", "loss"])
    axes.plot(front["cost"], front["loss"], color="0.5", linewidth=1, linestyle=":", zorder=0)
    _held_out(axes, report, known)
    axes.margins(x=0.12, y=0.12)
    axes.set_xlabel(f"cost ({report.cost_in})")
    axes.set_ylabel("share of wrong verdicts" if report.of == "passes" else "mean distance from the label")
    if len(known) < len(frame):
        axes.set_title(f"{len(frame) - len(known)} panels of unknown cost", loc="left", fontsize=9)
    return lettered(axes)


def _held_out(axes: Axes, report: Weighed, known: pd.DataFrame) -> None:
    found, winner = report.estimates["winner_held_out"], known[known["winner"]]
    if found.value is None or winner.empty:
        return
    line = {"value": found.value} | {
        f"value_{name}": math.nan if end is None else end for name, end in (("low", found.low), ("high", found.high))
    }
    cost = float(winner["cost"].iloc[0])
    axes.errorbar(cost, found.value, yerr=arms(line, "value"), fmt="D", color="black", mfc="white", capsize=3)
    _beside(axes, "winner, held out", cost, found.value, -11)


def _beside(axes: Axes, text: str, x: float, y: float, up: float) -> None:
    axes.annotate(text, (x, y), xytext=(8, up), textcoords="offset points", fontsize=8)


class Probed(Protocol):
    """What a probe found, as each of `jurimetrics.probes` gives it."""

    @property
    def frame(self) -> pd.DataFrame: ...


def effects(found: Probed | pd.DataFrame, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """The effects of one probe, or of several (`jm.probes.family`), with their intervals; 0 is no effect.

    A filled mark is found: its adjusted p is at most .05. An open one is not, a cross was not tested, and one without a
    bar has no interval. Effects are in the unit of their metric: with several ranges choose a `metric`. Raises
    `InputError` where there is nothing to draw.

    In a notebook: `jm.plots.effects(jm.probes.leniency(results, labels)).figure`.

    >>> import pandas as pd
    >>> from jurimetrics import Results, probes
    >>> frame = pd.DataFrame({"id": [*range(9)] * 2, "metric": "grade", "judge": ["ann"] * 9 + ["bob"] * 9})
    >>> rows = frame.assign(score=[4, 5, 3, 4, 5, 4, 4, 5, 3] + [3, 4, 3, 4, 4, 3, 3, 5, 2])
    >>> effects(probes.leniency(Results.from_frame(rows))).get_xlabel()
    'effect in the unit of the metric, with its interval'
    """
    from pandas import DataFrame

    frame = found if isinstance(found, DataFrame) else found.frame
    frame = frame if metric is None else frame[frame["metric"] == metric]
    if frame.empty:
        raise InputError(f"plots: no effect under {metric!r}")
    axes = ax if ax is not None else new_axes(7.5, 1.2 + 0.36 * len(frame))
    names = []
    several = frame["metric"].nunique() > 1
    for place, line in enumerate(frame.to_dict("records")):
        tested = not math.isnan(line["p_adjusted"])
        mark, face = "o" if tested else "x", GREYS[0] if tested and line["p_adjusted"] <= _ALPHA else "white"
        if math.isnan(line["value"]):
            undefined(axes, place)
        else:
            bar = arms({"at": line["value"], "at_low": line["low"], "at_high": line["high"]}, "at")
            axes.errorbar(line["value"], place, xerr=bar, fmt=mark, color=GREYS[0], mfc=face, markersize=6, capsize=2.5)
        about = f"{line['metric']} by {line['judge']}" if several else str(line["judge"])
        names.append(f"{name_shown(cut(about, 34))}: {name_shown(str(line['effect']), 34)}")
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("effect in the unit of the metric, with its interval")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return lettered(axes)
