"""What all pictures share: marks, names as far as there is room, fonts that have their letters, and new Axes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics.display import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
NAME_SHOWN = 36
"""Columns of a name that leave room for the picture beside it."""
FAMILIES = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans Thai", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Thonburi", "Geeza Pro",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Leelawadee UI", "Nirmala UI", "Segoe UI", "Arial Unicode MS",
    "WenQuanYi Zen Hei", "Droid Sans Fallback",
)  # fmt: skip
"""Fonts for letters that the reader's own font lacks, as far as they are installed."""
GREYS = ("#1b4965", "#c1666b", "#4f772d", "#8d6a9f", "#b08968", "#2a9d8f", "#6c757d", "#e09f3e")


def name_shown(text: str, longest: int = NAME_SHOWN) -> str:
    """A name on one line, as far as there is room, with the code of each letter that no installed font has."""
    line, letters = " ".join(text.split()), drawable(text)
    line = "".join(char if char in letters else char.encode("unicode_escape").decode() for char in line)
    # A dollar sign would begin a formula.
    return cut(line, longest).replace("$", r"\$")


def names_shown(names: Sequence[str], unnamed: str = "", longest: int = NAME_SHOWN) -> dict[str, str]:
    """Each name as it is shown; those that look alike when cut are numbered."""
    shown = {name: name_shown(name, longest) or unnamed for name in names}
    alike = Counter(shown.values())
    return {
        name: label if alike[label] == 1 else f"{number} {label}"
        for number, (name, label) in enumerate(shown.items(), 1)
    }


def drawable(text: str, own: bool = False) -> set[str]:
    """The characters of `text` that the reader's font has, or unless `own` any of the installed ones."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    families = [None] if own else [None, *installed()]
    fonts = [get_font(findfont(FontProperties(family=family))) for family in families]
    return {
        char for char in {*text, " "} if char.isprintable() and any(font.get_char_index(ord(char)) for font in fonts)
    }


def installed() -> list[str]:
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return [family for family in FAMILIES if family in there]


def lettered(axes: Axes) -> Axes:
    """The same Axes, each text with the fonts that have its letters."""
    from matplotlib.text import Text

    texts: list[Any] = axes.findobj(Text)
    letters = set().union(*(text.get_text() for text in texts)) - {"\n"}
    if lacking := letters - drawable("".join(letters), own=True):
        for text in texts:
            if lacking.intersection(text.get_text()):
                text.set_fontfamily([*text.get_fontfamily(), *installed()])
    return axes


def new_axes(width: float, height: float) -> Axes:
    # Not pyplot: a figure made here belongs to its Axes alone and leaves no global state behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    return figure.subplots()


def write_png(axes: Axes, path: Path) -> None:
    """Write the figure of `axes`, one of `new_axes`, without the empty space around it. It keeps the layout that it has here.

    The same picture as `savefig` with a tight box makes, which would draw all of it a second time to find its layout.
    """
    import matplotlib

    figure: Any = axes.figure
    figure.get_layout_engine().execute(figure)
    box = figure.get_tightbbox(figure.canvas.get_renderer()).padded(matplotlib.rcParams["savefig.pad_inches"])
    figure.set_layout_engine(None)
    if figure.get_layout_engine() is not None:  # the reader's settings have one for all figures
        figure.set_layout_engine("none")
    figure.savefig(path, bbox_inches=box)


def arms(line: Mapping[Any, Any], name: str) -> list[list[float]] | None:
    """The two arms of the interval of `name`, as `errorbar` has them; None where there is none.

    >>> arms({"cost": 2.0, "cost_low": 1.5, "cost_high": 3.0}, "cost")
    [[0.5], [1.0]]
    """
    value, low, high = line[name], line[f"{name}_low"], line[f"{name}_high"]
    return None if math.isnan(low) else [[value - low], [high - value]]


def undefined(axes: Axes, place: float) -> None:
    """Say at the left of line `place` that it has no value."""
    over = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.annotate(
        "undefined", (0.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8, color="0.3", bbox=over
    )
