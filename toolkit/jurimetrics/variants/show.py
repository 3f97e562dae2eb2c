"""A comparison as a table in a notebook and as text; everything that came from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jurimetrics.display import fit, html_table, one_line
from jurimetrics.variants.words import interval

if TYPE_CHECKING:
    from jurimetrics.variants.compare import Comparison

_MOST_LINES = 60
_TEXTS = ("metric", "judge", "variants", "verdict")
_LONGEST_NOTE = 500


def comparison_html(comparison: Comparison, limit: int = _MOST_LINES) -> str:
    """The lines that are read first, each with its verdict below it, and their notes, `limit` at most."""
    headings, lines = _readable(comparison, limit)
    verdicts = [line[-1] for line in lines]
    return html_table(headings[:-1], [line[:-1] for line in lines], _notes(comparison, limit), _TEXTS, verdicts)


def comparison_text(comparison: Comparison, limit: int = _MOST_LINES) -> str:
    """The same as aligned plain text; the verdict of each line stands below it."""
    headings, lines = _readable(comparison, limit)
    columns = headings[:-1]
    cells = [[one_line(cell, 40) for cell in line[:-1]] for line in lines]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    drawn = []
    for row, said in zip([columns, *cells], ["", *(line[-1] for line in lines)], strict=True):
        shown = [fit(cell, width, name in _TEXTS) for cell, width, name in zip(row, widths, columns, strict=True)]
        drawn += ["  ".join(shown).rstrip(), *([f"    {one_line(said, _LONGEST_NOTE)}"] if said else [])]
    told = [f"* {one_line(note, _LONGEST_NOTE)}" for note in _notes(comparison, limit)]
    return "\n".join([drawn[0], "-" * (sum(widths) + 2 * len(widths) - 2), *drawn[1:], *(["", *told] if told else [])])


def _notes(comparison: Comparison, limit: int) -> list[str]:
    total = len(comparison.frame)
    return [*([f"{limit:,} of {total:,} lines are shown."] if total > limit else []), *comparison.notes]


def _readable(comparison: Comparison, limit: int) -> tuple[list[str], list[list[str]]]:
    labelled = bool((comparison.frame["labelled"] > 0).any())
    planned = bool(comparison.frame["needed"].notna().any())
    headings = [
        *("metric", "judge", "variants", "n", "difference [interval in the family]", "p alone", "p in the family"),
        "wins/ties/losses",
        *(["corrected [interval]"] if labelled else []),
        *(["n needed"] if planned else []),
        "verdict",
    ]
    lines = []
    for line in comparison.frame.head(limit).to_dict("records"):
        extra = [_estimate(line, "corrected", "corrected_low", "corrected_high")] if labelled else []
        extra += (
            [_number(math.ceil(line["needed"])) if planned and not math.isnan(line["needed"]) else "-"]
            if planned
            else []
        )
        ends = ("low", "high") if line["family"] != "primary" else ("simultaneous_low", "simultaneous_high")
        lines.append(
            [
                line["metric"], line["judge"], f"{line['b']} - {line['a']}", _number(line["n"]),
                _estimate(line, "difference", *ends), _p(line["p"]), _p(line["p_adjusted"]),
                f"{line['wins']}/{line['ties']}/{line['losses']}", *extra, line["verdict"],
            ]
        )  # fmt: skip
    return headings, lines


def _estimate(line: Mapping[Any, Any], value: str, low: str, high: str) -> str:
    if math.isnan(line[value]):
        return "-"
    if math.isnan(line[low]) or math.isnan(line[high]):
        return f"{line[value]:.2f}"
    return interval(line[value], line[low], line[high])


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _number(value: float) -> str:
    return f"{value:,}"
