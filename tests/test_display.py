"""What a notebook and a terminal show: escaped, bounded, aligned."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest
from jurimetrics.display import View, dollars, results_html, show_rows, summary_text
from jurimetrics.errors import InputError
from jurimetrics.results import Results

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
ALLOWED = {"div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


class Tags(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
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
        assert tags.attributes <= {("class", "tex2jax_ignore mathjax_ignore"), ("dir", "auto")}
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
