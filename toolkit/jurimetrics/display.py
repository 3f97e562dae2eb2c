"""Results as small HTML for a notebook and as plain text for a terminal. Everything that came from data is escaped.

Ids, names, answers and reasons are other people's text: they appear as text alone, never as markup, links or scripts,
cut to a bounded length.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pandas as pd

from jurimetrics.errors import InputError

_LONGEST_CELL = 240
_LONGEST_NOTE = 500
_MOST_LINES = 60
_NARROWEST = 8
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TEXTS = ("metric", "judge", "variant")
_ROW_TEXTS = ("id", *_TEXTS, "status", "reason", "error")
# The class thrice: a notebook's own rules for tables would be the stronger ones.
_TABLE_STYLE = """
.jm-table.jm-table.jm-table table{border-collapse:collapse;table-layout:auto;margin:0 0 .6em;line-height:1.4}
.jm-table.jm-table.jm-table :is(th,td){text-align:right;vertical-align:top;padding:.25em .8em .25em 0;white-space:nowrap;
border:0;border-bottom:1px solid rgba(128,128,128,.25)}
.jm-table.jm-table.jm-table .jm-start{text-align:start;white-space:normal;overflow-wrap:break-word;max-width:34em}
.jm-table.jm-table.jm-table .jm-over td{border-bottom:0}
.jm-table.jm-table.jm-table .jm-under{max-width:none;padding-left:1.2em}
.jm-table.jm-table.jm-table ul{margin:0;padding-left:1.2em}
"""


class Shown(Protocol):
    """What is shown; `Results` is one."""

    @property
    def scores(self) -> pd.DataFrame: ...
    def summary(self) -> pd.DataFrame: ...
    def totals(self) -> object: ...
    def indicators(self, per: Literal["record", "variant"], judge: str | None = None) -> pd.DataFrame: ...


def dollars(amount: float) -> str:
    """An amount of US dollars in as many digits as tell something.

    >>> [dollars(amount) for amount in (0, 0.000123, 0.4, 12.345, 1234.5)]
    ['$0', '$0.00012', '$0.4', '$12.35', '$1,234.50']
    """
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}" if amount else "$0"
    digits = max(2, 1 - math.floor(math.log10(amount)))
    return f"${amount:.{digits}f}".rstrip("0").rstrip(".")


def count(number: int, word: str) -> str:
    """A number with its word.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {word}" + ("" if number == 1 else "s")


@dataclass(frozen=True, slots=True)
class View:
    """A piece of HTML that a notebook shows when it is the last value of a cell; nothing is shown by making it.

    Where there is only text, it says what to do.

    >>> View("<p>two words</p>")
    View(16 characters of HTML; a notebook shows it, .html holds it)
    """

    html: str

    def __repr__(self) -> str:
        return f"View({len(self.html):,} characters of HTML; a notebook shows it, .html holds it)"

    def _repr_html_(self) -> str:
        return self.html


def results_html(results: Shown, limit: int = _MOST_LINES) -> str:
    """The summary of `results` with its notes: at most `limit` lines, whatever the number of rows."""
    table = results.summary()
    headings, lines = headline(table.head(limit))
    notes = [*_left_out(len(table), limit, "line"), *table.attrs["notes"], f"Totals: {results.totals()}."]
    notes += answers_lines(results.indicators("variant"))
    return html_table(headings, lines, notes)


def show_rows(results: Shown, limit: int = 20) -> View:
    """The first `limit` rows of the score frame with their reasons, for looking into; long texts are cut.

    Raises `InputError` for a limit below 1 or above 500.
    """
    if not 1 <= limit <= 500:
        raise InputError(f"limit must lie between 1 and 500, not {limit}")
    scores = results.scores
    columns = ["id", "variant", "metric", "judge", "score", "passed", "status", "reason", "error"]
    rows = [
        ["-" if pd.isna(value) else f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
        for row in scores.head(limit)[columns].astype(object).itertuples(index=False)
    ]
    return View(html_table(columns, rows, _left_out(len(scores), limit, "row"), start=_ROW_TEXTS))


def summary_text(results: Shown, width: int = 120) -> str:
    """The summary of `results` as an aligned table of plain text with its notes below, for a terminal.

    Names are shortened until a line fits `width` columns, as far as they can be; notes are wrapped. Control
    characters in names are replaced, so that no text of others can steer the terminal.
    """
    table = results.summary()
    headings, lines = headline(table)
    texts = [at for at, heading in enumerate(headings) if heading in _TEXTS]
    lines = [[one_line(cell, _LONGEST_CELL) for cell in line] for line in lines]
    widths = [max(map(_columns, column)) for column in zip(headings, *lines, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    cells = [[fit(cell, widths[at], at in texts) for at, cell in enumerate(line)] for line in (headings, *lines)]
    drawn = ["  ".join(line).rstrip() for line in cells]
    below = [*table.attrs["notes"], *answers_lines(results.indicators("variant"))]
    notes = [line for note in below for line in _bullet(one_line(note, _LONGEST_NOTE), width)]
    return "\n".join([drawn[0], "-" * max(map(_columns, drawn)), *drawn[1:], *(["", *notes] if notes else [])])


def answers_lines(indicators: pd.DataFrame, most: int = 10) -> list[str]:
    """What the answers of each variant took themselves, one line each where anything is known, `most` at most.

    `indicators` as `Results.indicators("variant")` gives them. Means are over the answers of which it is known; how many
    those are is said where it is not all.

    >>> frame = pd.DataFrame({"variant": "a", "indicator": ["answer_latency_s", "answer_cost_usd"], "mean": [1.25, 0.002],
    ...                       "n": [4, 3], "records": 4, "total": [5.0, float("nan")], "at_least": [5.0, 0.006]})
    >>> answers_lines(frame)
    ['Answers of a, without what judging took: 1.25 s each, $0.002 each, $0.006 for the 3 of 4 whose cost is known.']
    """
    found = []
    for variant, lines in indicators.groupby("variant", sort=False):
        said = [part for line in lines.to_dict("records") if line["n"] for part in _indicator(line)]
        of = f" of {variant!s}" if variant else ""
        found += [f"Answers{of}, without what judging took: {', '.join(said)}."] if said else []
    return found[:most] + ([f"{len(found) - most:,} more variants are not shown."] if len(found) > most else [])


def _indicator(line: Mapping[Any, Any]) -> list[str]:
    known = "" if line["n"] == line["records"] else f" ({line['n']:,} of {line['records']:,} known)"
    match line["indicator"]:
        case "answer_latency_s":
            return [f"{line['mean']:.3g} s each{known}"]
        case "answer_tokens":
            return [f"{line['mean']:,.0f} tokens each{known}"]
        case "answer_cost_usd":
            # What is not known may be a request that was never sent: no bound of the whole is claimed.
            of = "in all" if not known else f"for the {line['n']:,} of {line['records']:,} whose cost is known"
            return [f"{dollars(line['mean'])} each", f"{dollars(line['at_least'])} {of}"]
        case "context_relevance":
            return [f"documents of relevance {line['mean']:.2f}{known}"]
    return []


def headline(summary: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """The columns of a summary that are read first, rounded, as headings and lines of text.

    The variant is shown only where there is a name to show. "-" stands for what is not there.
    """
    named = bool((summary["variant"] != "").any())
    headings = ["metric", "judge", *(["variant"] if named else []), "mean [interval]", "n", "answered", "undefined", "n/a",
                "failed", "pass", "cost"]  # fmt: skip
    lines = [
        [
            line["metric"], line["judge"], *([line["variant"]] if named else []), _mean(line), f"{line['n']:,}",
            percent(line["answered"]), f"{line['undefined']:,}", f"{line['not_applicable']:,}", f"{line['failed']:,}",
            percent(line["pass_rate"]), _cost(line),
        ]
        for line in summary.to_dict("records")
    ]  # fmt: skip
    return headings, lines


def _mean(line: Mapping[Any, Any]) -> str:
    if math.isnan(line["mean"]):
        return "-"
    return f"{line['mean']:.3f}" + ("" if math.isnan(line["low"]) else f" [{line['low']:.3f}, {line['high']:.3f}]")


def percent(share: float) -> str:
    """A share in percent, "-" for NaN; one that is not whole never reads as if it were none or all.

    >>> percent(0.125), percent(0.998), percent(1.0), percent(math.nan)
    ('12%', '99.8%', '100%', '-')
    """
    if math.isnan(share):
        return "-"
    shown = f"{share:.0%}"
    return f"{share:.1%}" if shown in ("0%", "100%") and share not in (0, 1) else shown


def _cost(line: Mapping[Any, Any]) -> str:
    if not math.isnan(line["cost_usd"]):
        return dollars(line["cost_usd"])
    return f">= {dollars(line['at_least_cost'])}" if line["at_least_cost"] > 0 else "unknown"


def _left_out(total: int, limit: int, word: str) -> list[str]:
    return [f"{limit:,} of {total:,} {word}s are shown."] if total > limit else []


def html_table(
    headings: Sequence[str],
    lines: Sequence[Sequence[str]],
    notes: Sequence[str],
    start: Collection[str] = _TEXTS,
    under: Sequence[str] = (),
) -> str:
    """A table of texts with notes below, as HTML; the columns headed by a name in `start` begin at the left.

    `under`: a sentence for each line, which stands below it and is as wide as the table; a column of sentences would leave
    them too little room beside many numbers. Everything given is escaped, and cut to a bounded length.

    >>> "<td>1 &lt; 2</td>" in html_table(["n"], [["1 < 2"]], [])
    True
    """
    begins = [' class="jm-start"' if heading in start else "" for heading in headings]
    head = "".join(f"<th{side}>{_escaped(text)}</th>" for text, side in zip(headings, begins, strict=True))
    rows = ["".join(_cell(text, side) for text, side in zip(line, begins, strict=True)) for line in lines]
    if under:
        wide = f'class="jm-start jm-under" dir="auto" colspan="{len(headings)}"'
        said = [f"<td {wide}>{_escaped(text)}</td>" for text in under]
        rows = [f'<tr class="jm-over">{row}</tr><tr>{text}</tr>' for row, text in zip(rows, said, strict=True)]
    else:
        rows = [f"<tr>{row}</tr>" for row in rows]
    body = "".join(rows)
    below = "".join(f"<li>{_escaped(note, _LONGEST_NOTE)}</li>" for note in notes)
    # The class keeps a notebook from setting other people's text as formulas.
    return (
        f'<style>{_TABLE_STYLE}</style><div class="jm-table tex2jax_ignore mathjax_ignore">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<ul>{below}</ul>" if below else "")
        + "</div>"
    )


def _cell(text: str, side: str) -> str:
    # What begins at the left may be text of any script, whose direction is its own.
    direction = ' dir="auto"' if side else ""
    return f"<td{side}{direction}>{_escaped(text)}</td>"


def _escaped(text: str, longest: int = _LONGEST_CELL) -> str:
    return html.escape(one_line(text, longest), quote=True)


def one_line(text: str, longest: int) -> str:
    r"""Text on one line without characters that control a page or a terminal, cut to `longest`.

    >>> one_line("red: \x1b[31m\nnext", 40), one_line("faithfulness", 6)
    ('red: \ufffd[31m next', 'faith…')
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(_shown(char) for char in cut)


def plain_text(text: str) -> str:
    r"""Text with its lines, but without other characters that control a page or turn the direction of what follows.

    >>> plain_text("one\r\ntwo\x1b[31m")
    'one\ntwo\ufffd[31m'
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in "\n\t" else _shown(char) for char in lines)


def _shown(char: str) -> str:
    if char in "\t\n\r":
        return " "
    # Categories of controls and line ends, and what turns the direction of all text after it.
    steers = unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _TURNS
    return "\ufffd" if steers else char


def _bullet(text: str, width: int) -> list[str]:
    """`text` after a "* ", its further lines indented; a word longer than a line stands alone."""
    lines = ["*"]
    for word in text.split():
        if lines[-1].strip() and lines[-1] != "*" and _columns(f"{lines[-1]} {word}") > width:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for those that combine."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, width: int) -> str:
    """Text with an ellipsis at its end where it takes more than `width` columns, of which wide characters take two.

    >>> cut("faithfulness", 6), cut("忠実性", 6), cut("忠実性の高さ", 6)
    ('faith…', '忠実性', '忠実…')
    """
    if _columns(text) <= width:
        return text
    text = text[:width]
    while _columns(text) > width - 1:
        text = text[:-1]
    return text + "…"


def fit(text: str, width: int, left: bool) -> str:
    """Text filled up with spaces, or cut, to `width` columns of a terminal; `left`: it begins at the left.

    >>> fit("0.5", 5, left=False), fit("faithfulness", 5, left=True)
    ('  0.5', 'fait…')
    """
    text = cut(text, width)
    space = " " * (width - _columns(text))
    return text + space if left else space + text
