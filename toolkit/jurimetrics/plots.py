"""Results as pictures: each function takes what statistics returned and an Axes, draws, and gives the Axes back.

A notebook shows an Axes as a line of text and its figure as a picture: `jm.plots.summary(results).figure`.

Nothing is computed here. Names are other people's text: cut where they are long, and drawn with whichever installed font
has their letters; a letter that none has is shown by its code. Pictures are readable in black and white: marks differ in
shape, not in colour alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jurimetrics.display import cut
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from jurimetrics.results import Results

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_NUMBERS = 20
"""Sentences on a side up to which a heat map has room for numbers and texts."""
SENTENCE_SHOWN, NAME_SHOWN = 40, 36
"""Columns of a sentence and of a name that leave room for the picture beside them."""
FAMILIES = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans Thai", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Thonburi", "Geeza Pro",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Leelawadee UI", "Nirmala UI", "Segoe UI", "Arial Unicode MS",
    "WenQuanYi Zen Hei", "Droid Sans Fallback",
)  # fmt: skip
"""Fonts for letters that the reader's own font lacks, as far as they are installed."""
GREYS = ("#1b4965", "#c1666b", "#4f772d", "#8d6a9f", "#b08968", "#2a9d8f", "#6c757d", "#e09f3e")


def summary(results: Results, ax: Axes | None = None, *, judge: str | None = None) -> Axes:
    """Mean of every metric with its interval, one mark per variant, for one judge (default: the panel, else the first).

    Metrics with another range than 0 to 1 are drawn as (mean - lowest) / (highest - lowest); the label gives their
    range. A mean without an interval has no bar; a metric without scored rows has no mark. Lower-is-better metrics have
    a downward arrow. Raises `InputError` where the judge has no rows.

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
    named = _names(variants, "all")
    labels = [_label(label, results.settings["metrics"][name]) for name, label in _names(metrics).items()]
    # Inches: room for long names beside the picture, not inside it.
    beside = 0.14 * max(25, *map(len, labels)) + 0.11 * max(12, *map(len, named.values())) - 4.82
    axes = ax if ax is not None else _axes(7.5 + beside, 1.2 + 0.42 * len(metrics) * max(1, len(variants) * 0.6))
    for at, variant in enumerate(variants):
        rows = frame[frame["variant"] == variant].set_index("metric")
        _interval_marks(axes, rows, metrics, results.settings["metrics"], at, len(variants), named[variant])
    axes.set_yticks(range(len(metrics)), labels)
    axes.set_ylim(len(metrics) - 0.5, -0.5)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("mean and 95 % interval, as a share of the range")
    axes.set_title(f"Judged by {_name(chosen)}", loc="left", fontsize=10)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    if len(variants) > 1:
        axes.legend(title="variant", frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _lettered(axes)


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
    axes = ax if ax is not None else _axes(1.6 + 1.5 * len(variants), 3.4)
    ticks, named = [], _names(variants, "all", longest=20)
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
    pad = 0.04 * (high - low)
    axes.set_ylim(low - pad, high + pad)
    if settings["threshold"] is not None:
        axes.axhline(settings["threshold"], linestyle="--", color="0.4", linewidth=1)
    better = "high" if settings["higher_is_better"] else "low"
    label = _name(metric)
    axes.set_ylabel(f"{label}{chr(10) if len(label) > 18 else ' '}({low:g} to {high:g}, {better} is better)")
    axes.set_title(f"Judged by {_name(chosen, 22)}", loc="left", fontsize=10)
    return _lettered(axes)


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
    axes = ax if ax is not None else _axes(4.6 + 0.75 * min(len(expected), 20), 1.6 + 0.42 * min(len(said), 20))
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    if max(len(said), len(expected)) <= MOST_NUMBERS:
        _numbers(axes, matrix)
        axes.set_yticks(range(len(said)), _numbered(said), fontsize=8)
        axes.set_xticks(range(len(expected)), _numbered(expected), fontsize=8, rotation=30, ha="right")
    axes.set_ylabel("sentences of the answer")
    axes.set_xlabel("sentences of the reference")
    sides = f"precision side {found['precision']:.2f}, recall side {found['recall']:.2f}"
    axes.set_title(sides, loc="left", fontsize=9)
    return _lettered(axes)


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
    axes = ax if ax is not None else _axes(7.5, 1.2 + 0.36 * len(frame))
    names, named = [], _names([*frame["metric"], *frame["a"], *frame["b"]], "(no name)", longest=22)
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
    return _lettered(axes)


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
    axes = ax if ax is not None else _axes(5.5, 4.0)
    named = _names([str(name) for name in frame["variant"]], "(no name)", longest=22)
    for at, line in enumerate(known.to_dict("records")):
        color, mark = GREYS[at % len(GREYS)], MARKS[at % len(MARKS)]
        face = color if line["front"] else "white"
        x, y = line["amount"], line["quality"]
        across, up = _bar(line, "amount"), _bar(line, "quality")
        axes.errorbar(x, y, xerr=across, yerr=up, fmt=mark, color=color, mfc=face, markersize=7, capsize=2)
        axes.annotate(named[str(line["variant"])], (x, y), xytext=(6, 6), textcoords="offset points", fontsize=8)
    front = known[known["front"].astype(bool)].sort_values(["amount", "quality"])
    axes.plot(front["amount"], front["quality"], color="0.5", linewidth=1, linestyle=":", zorder=0)
    better = "higher" if frame["higher_is_better"].iloc[0] else "lower"
    axes.set_xlabel(f"mean {frame['against'].iloc[0]} of an answer")
    axes.set_ylabel(f"{_name(str(frame['metric'].iloc[0]), 30)} ({better} is better)")
    if unknown := [named[str(name)] for name in frame.loc[frame["front"].isna(), "variant"]]:
        axes.set_title(cut(f"unknown: {', '.join(unknown)}", 70), loc="left", fontsize=9)
    return _lettered(axes)


def _deciding(line: dict[Any, Any]) -> tuple[float, float, float, str]:
    """The difference, the interval its verdict goes by, and its mark."""
    if not math.isnan(line["corrected"]):
        return line["corrected"], line["corrected_low"], line["corrected_high"], "D"
    if line["family"] != "primary":
        return line["difference"], line["low"], line["high"], "s"
    return line["difference"], line["simultaneous_low"], line["simultaneous_high"], "o"


def _bar(line: dict[Any, Any], name: str) -> list[list[float]] | None:
    """The two arms of an interval, None where there is none."""
    value, low, high = line[name], line[f"{name}_low"], line[f"{name}_high"]
    return None if math.isnan(low) else [[value - low], [high - value]]


def _name(text: str, longest: int = NAME_SHOWN) -> str:
    """A name on one line, as far as there is room, with the code of each letter that no installed font has."""
    line, letters = " ".join(text.split()), _drawable(text)
    line = "".join(char if char in letters else char.encode("unicode_escape").decode() for char in line)
    # A dollar sign would begin a formula.
    return cut(line, longest).replace("$", r"\$")


def _names(names: Sequence[str], unnamed: str = "", longest: int = NAME_SHOWN) -> dict[str, str]:
    """Each name as it is shown; those that look alike when cut are numbered."""
    shown = {name: _name(name, longest) or unnamed for name in names}
    alike = Counter(shown.values())
    return {
        name: label if alike[label] == 1 else f"{number} {label}"
        for number, (name, label) in enumerate(shown.items(), 1)
    }


def _drawable(text: str, own: bool = False) -> set[str]:
    """The characters of `text` that the reader's font has, or unless `own` any of the installed ones."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    families = [None] if own else [None, *_installed()]
    fonts = [get_font(findfont(FontProperties(family=family))) for family in families]
    return {
        char for char in {*text, " "} if char.isprintable() and any(font.get_char_index(ord(char)) for font in fonts)
    }


def _installed() -> list[str]:
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return [family for family in FAMILIES if family in there]


def _lettered(axes: Axes) -> Axes:
    """The same Axes, each text with the fonts that have its letters."""
    from matplotlib.text import Text

    texts: list[Any] = axes.findobj(Text)
    for text in texts:
        if set(text.get_text()) - _drawable(text.get_text(), own=True) - {"\n"}:
            text.set_fontfamily([*text.get_fontfamily(), *_installed()])
    return axes


def _axes(width: float, height: float) -> Axes:
    # Not pyplot: a figure made here belongs to its Axes alone and leaves no global state behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    return figure.subplots()


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
        drawable = not set("".join(text.split())) - _drawable(text)
        shown.append(f"{number}  {_name(text, SENTENCE_SHOWN)}" if drawable else str(number))
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
