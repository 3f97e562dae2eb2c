"""What a notebook and a terminal show: escaped, bounded, aligned."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest
from jurimetrics.display import (
    _TABLE_STYLE,
    View,
    dollars,
    headline,
    html_table,
    results_html,
    show_rows,
    summary_text,
)
from jurimetrics.errors import InputError
from jurimetrics.results import Results
from jurimetrics.results.style import STYLE

ATTACKS = (
    '<img src=x onerror="alert(1)">',
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "[click](javascript:alert(1))",
    '<a href="javascript:alert(1)">x</a>',
    "</td></tr></table><b>out",
    '"><iframe src=//x>',
    "$$\\href{javascript:alert(1)}{x}$$",
    "\u202e\u2028\x00\x1b[31m",
)
ALLOWED = {"style", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}

ATTRIBUTES = {("class", "jm-table tex2jax_ignore mathjax_ignore"), ("class", "jm-start"), ("dir", "auto")}


class Tags(HTMLParser):
    """Collects the tags, attributes, styles and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.open: list[str] = []
        self.text = ""
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.styles.append(data)
        else:
            self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    return tags


def recorded(rows: int = 3, **columns: Any) -> Results:
    base = {
        "id": [str(at) for at in range(rows)],
        "metric": "m",
        "judge": "j",
        "score": [at / rows for at in range(rows)],
    }
    return Results.from_frame(pd.DataFrame({**base, **columns}))


@pytest.mark.parametrize("attack", ATTACKS)
def test_x04_nothing_from_data_or_judges_becomes_markup(attack: str) -> None:
    found = Results.from_frame(
        pd.DataFrame(
            {"id": [attack, "2"], "variant": [attack, "v"], "metric": attack, "judge": attack, "score": [0.5, None],
             "reason": attack, "error": [None, f"unparsed: {attack}"]}
        )
    )  # fmt: skip
    for html in (found._repr_html_(), show_rows(found).html):
        tags = parsed(html)
        assert tags.tags <= ALLOWED
        assert tags.attributes <= ATTRIBUTES
        assert set(tags.styles) == {_TABLE_STYLE}
        assert not set(html) & set("\x00\x1b\u2028")
    if attack.isprintable():
        assert attack in parsed(show_rows(found).html).text


def test_n04_a_view_is_small_whatever_the_number_of_rows() -> None:
    found = recorded(2_000, reason="long " * 10_000)
    assert len(found._repr_html_()) < 5_000
    assert len(show_rows(found, 20).html) < 20_000
    assert "20 of 2,000 rows are shown." in show_rows(found, 20).html
    assert len(repr(found)) < 200


def test_many_lines_are_cut_and_said_so() -> None:
    found = recorded(100, metric=[f"m{at}" for at in range(100)])
    assert "60 of 100 lines are shown." in results_html(found)
    assert results_html(found).count("<tr>") == 61


def test_the_view_shows_notes_and_totals() -> None:
    html = recorded()._repr_html_()
    assert "Range taken from the data" in html and "Totals: cost unknown" in html


def test_a_view_is_shown_only_as_the_value_of_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    view = show_rows(recorded())
    assert isinstance(view, View) and view._repr_html_() == view.html
    assert capsys.readouterr().out == ""


def test_a_view_as_text_is_short() -> None:
    view = show_rows(recorded(400, reason="long " * 50), 400)
    assert len(view.html) > 50_000 and len(repr(view)) < 100
    assert f"{len(view.html):,} characters" in repr(view)


@pytest.mark.parametrize("style", [_TABLE_STYLE, STYLE])
def test_a_notebooks_own_rules_for_tables_are_the_weaker_ones(style: str) -> None:
    """JupyterLab's are of a class twice and two elements at most: right-aligned cells, columns of one width."""
    inside = [one for rule in re.findall(r"([^{}]+){[^{}]*}", style) for one in re.split(r",(?![^()]*\))", rule)]
    of_tables = [one for one in inside if re.search(r"[ (,](table|th|td|tr|ul|li|h[1-3])\b", one)]
    assert len(of_tables) >= 3
    assert [one for one in of_tables if one.count(".jm") < 3] == []
    assert "table-layout:auto" in style


def test_text_begins_at_the_left_and_numbers_end_at_the_right() -> None:
    found = recorded()
    html = results_html(found)
    for heading in headline(found.summary())[0]:
        begins = heading in ("metric", "judge", "variant")
        assert (f'<th class="jm-start">{heading}</th>' in html) == begins, heading
    assert '<td class="jm-start" dir="auto">m</td>' in html and "<td>3</td>" in html
    assert '<td class="jm-start" dir="auto">why</td>' in show_rows(recorded(reason="why")).html
    assert html_table(["left", "n"], [["a", "1"]], [], start=("left",)).count('jm-start"') == 2


def test_a_sentence_under_a_line_is_as_wide_as_the_table() -> None:
    html = html_table(["left", "n"], [["a", "1"], ["b", "2"]], [], under=["a < b", "b > a"])
    said = re.findall(r'<td class="jm-start jm-under" dir="auto" colspan="2">(.*?)</td></tr>', html)
    assert said == ["a &lt; b", "b &gt; a"]
    assert html.index(">1<") < html.index("a &lt; b") < html.index(">2<")


@pytest.mark.parametrize("width", [40, 100])
def test_notes_are_wrapped_under_their_first_word(width: int) -> None:
    found = recorded(3, judge="裁判" * 30, score=[None] * 3, error="unparsed: no JSON")
    text = summary_text(found, width)
    notes = text.split("\n\n")[1].splitlines()
    assert all(line.startswith(("* ", "  ")) and line[2] != " " for line in notes)
    whole = " ".join(" ".join(notes).replace("* ", "").split())
    assert all(note in whole for note in found.notes())
    longest = max(len(word) for note in found.notes() for word in note.split())
    assert max(len(line) for line in notes) <= max(width, longest + 2)
    assert (len(notes) > len(found.notes())) == (width == 40)


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_limit_out_of_bounds_is_refused(limit: int) -> None:
    with pytest.raises(InputError, match="between 1 and 500"):
        show_rows(recorded(), limit)


def test_rows_show_what_is_not_there_as_a_dash() -> None:
    html = show_rows(recorded(2, score=[0.123456, None])).html
    assert ">0.1235<" in html and ">undefined<" in html and ">nan<" not in html.lower()


def test_text_is_aligned_and_fits() -> None:
    found = recorded(24, judge=["short", "裁判" * 20, "e\u0301" * 40, "x" * 90] * 6, variant="a")
    text = summary_text(found, 100)
    table = text.split("\n\n")[0].splitlines()

    def columns(line: str) -> int:
        return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)

    assert {columns(line) for line in table[2:]} == {columns(table[0])}
    assert max(map(columns, table)) <= 100
    assert text.splitlines()[-1].startswith("* ")


def test_text_of_others_never_steers_the_terminal() -> None:
    text = summary_text(recorded(judge="\x1b]0;owned\x07\r\nnext\u2028\u202e"))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert len([line for line in text.splitlines() if "owned" in line]) == 1


def test_text_of_the_headline() -> None:
    scale = {"m": {"range": (0, 1), "threshold": 0.5}}
    given = pd.DataFrame(
        {"id": [str(at) for at in range(10)], "metric": "m", "judge": "j", "score": [0.4] * 5 + [0.8] * 5}
    )
    lines = summary_text(Results.from_frame(given, scale)).splitlines()
    assert lines[0].split("  ")[0] == "metric" and "mean [interval]" in lines[0]
    # mean .6, s = .2108, t(9) = 2.262: .6 -+ .151
    assert " ".join(lines[2].split()) == "m j 0.600 [0.449, 0.751] 10 - 0 0 0 50% unknown"


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "$0"), (1e-9, "$0.000000001"), (0.0999, "$0.1"), (0.99999, "$1"), (12.345, "$12.35")]
)
def test_dollars(amount: float, shown: str) -> None:
    assert dollars(amount) == shown
