"""Pictures hold whatever names are like: no warning, no empty box, no name that takes the room of the picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from jurimetrics import Results, plots
from jurimetrics.plots import drawing
from jurimetrics.tracking.files import write_figures
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text

NAMES = {
    "latin": "faithfulness",
    "chinese": "忠实度评分",
    "japanese": "回答の忠実性と明瞭さ",
    "korean": "충실도",
    "thai": "ความถูกต้อง",
    "arabic": "الأمانة",
    "private use": "odd\ue000name",
    "control": "bell\x07and\x1besc",
    "newline": "two\nlines",
    "formula": "$x^2$ and $y_",
    "long": "m" * 300,
    "long and wide": "長" * 300,
}
DRAWN: list[Callable[[Results, str], Axes]] = [
    lambda results, _: plots.summary(results),
    lambda results, metric: plots.scores(results, metric),
]


def results_of(metric: str, variants: list[str], judge: str = "ann") -> Results:
    rows = [
        {"id": str(at), "variant": variant, "metric": metric, "judge": judge, "score": (at % 5) / 5}
        for variant in variants
        for at in range(10)
    ]
    return Results.from_frame(pd.DataFrame(rows), {metric: {"range": (0, 1)}})


def texts(axes: Axes) -> list[str]:
    axes.figure.canvas.draw()
    return [text.get_text() for text in axes.findobj(Text) if isinstance(text, Text) and text.get_text()]


def width(axes: Axes) -> float:
    return axes.get_window_extent().width / axes.figure.get_window_extent().width


@pytest.mark.parametrize("draw", DRAWN, ids=["summary", "scores"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_is_drawn_without_a_warning_and_leaves_room(name: str, draw: Callable[[Results, str], Axes]) -> None:
    axes = draw(results_of(name, [f"{name} one", f"{name} two"], judge=name), name)
    shown = texts(axes)
    assert width(axes) > 0.15
    assert max(len(line) for text in shown for line in text.split("\n")) < 70


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_letter_that_no_font_has_is_shown_by_its_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "FAMILIES", ())
    own = get_font(findfont(FontProperties()))
    shown = texts(plots.summary(results_of(name, ["a", "b"])))
    assert all(own.get_char_index(ord(char)) for text in shown for char in text if char != "\n")


def test_codes_name_the_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "FAMILIES", ())
    assert "\\u5fe0\\u5b9f" in texts(plots.summary(results_of("忠実", ["a"])))
    assert "faith\\ue000" in texts(plots.summary(results_of("faith\ue000", ["a"])))


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0, 2000.0])
def test_equal_scores_whose_range_is_taken_from_them_are_drawn(value: float, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": value})
    results = Results.from_frame(frame)
    assert results.settings["metrics"]["grade"]["range"] == [value, value]
    low, high = plots.scores(results, "grade").get_ylim()
    assert low <= value - 0.5 and value + 0.5 <= high
    # Both pictures of a run: a warning would be an error here.
    assert [path.stat().st_size > 1000 for path in write_figures(results, ["grade"], tmp_path)] == [True, True]


@pytest.mark.parametrize("draw", DRAWN, ids=["summary", "scores"])
def test_a_file_has_the_picture_without_the_empty_space_around_it(
    draw: Callable[[Results, str], Axes], tmp_path: Path
) -> None:
    results = results_of("忠実度", ["A", "a name of a variant that is longer than there is room for"])
    draw(results, "忠実度").figure.savefig(tmp_path / "tight.png", bbox_inches="tight")
    drawing.write_png(draw(results, "忠実度"), tmp_path / "once.png")
    assert (tmp_path / "once.png").read_bytes() == (tmp_path / "tight.png").read_bytes()
    # A layout that the reader wants for all figures is not applied on top.
    with rc_context({"figure.autolayout": True}):
        drawing.write_png(draw(results, "忠実度"), tmp_path / "own.png")
    assert (tmp_path / "own.png").read_bytes() == (tmp_path / "tight.png").read_bytes()


def test_names_that_are_cut_alike_are_numbered() -> None:
    shown = texts(plots.summary(results_of("grade", ["v" * 299 + "a", "v" * 299 + "b", "c"])))
    cut = [text for text in shown if text.endswith("…")]
    assert len(cut) == 2 and {text[:3] for text in cut} == {"1 v", "2 v"} and "c" in shown


def test_an_installed_font_has_the_letters_that_the_readers_own_lacks() -> None:
    if not drawing.installed():
        pytest.skip("none of the fonts for other scripts is installed here")
    axes = plots.summary(results_of("忠実", ["a"]))
    label = next(text for text in axes.findobj(Text) if isinstance(text, Text) and "忠実" in text.get_text())
    plain = next(
        text for text in axes.findobj(Text) if isinstance(text, Text) and "share of the range" in text.get_text()
    )
    assert set(drawing.installed()) <= set(label.get_fontfamily())
    assert not set(drawing.installed()) & set(plain.get_fontfamily())
