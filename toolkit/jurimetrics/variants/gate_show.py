"""A gate as a table in a notebook and as text; everything that came from data is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jurimetrics.display import count, fit, html_table, one_line, percent
from jurimetrics.variants.words import interval

if TYPE_CHECKING:
    from jurimetrics.variants.gate import Gate

_TEXTS = ("metric", "judge", "variant", "outcome")
_LONGEST_NAME = 40
_LONGEST_NOTE = 500


def gate_html(gate: Gate) -> str:
    """The lines with their notes."""
    headings, lines = _readable(gate)
    return html_table(headings, lines, [*_reasons(gate), *gate.notes, gate.verdict], start=_TEXTS)


def gate_text(gate: Gate) -> str:
    """The same as aligned plain text, the verdict last."""
    headings, lines = _readable(gate)
    cells = [headings, *([one_line(cell, _LONGEST_NAME) for cell in line] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    drawn = [
        "  ".join(
            fit(cell, width, name in _TEXTS) for cell, width, name in zip(row, widths, headings, strict=True)
        ).rstrip()
        for row in cells
    ]
    told = [f"* {one_line(note, _LONGEST_NOTE)}" for note in [*_reasons(gate), *gate.notes]]
    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    return "\n".join([drawn[0], rule, *drawn[1:], "", *told, "", one_line(gate.verdict, _LONGEST_NOTE)])


def gate_verdict(gate: Gate) -> str:
    """The outcome in one sentence."""
    from jurimetrics.variants.gate import rounded

    mine = gate.frame[gate.frame["outcome"] == gate.outcome]
    names = ", ".join(dict.fromkeys(mine["metric"]))
    if gate.outcome == "passed":
        return "passed: nothing is worse by its margin or more"
    if gate.outcome == "failed":
        return f"failed: worse by more than its margin: {names}"
    said = f"inconclusive: not decided: {names}"
    return said if math.isnan(gate.needed) else f"{said}; about {rounded(gate.needed)} records would decide"


def line_text(line: Mapping[Any, Any]) -> str:
    """One line in words.

    >>> line_text({"difference": -0.01, "low": -0.04, "high": 0.02, "margin": 0.02, "mean_old": 0.8, "mean_new": 0.79,
    ...            "n": 120, "lost": 2, "coverage_old": 1.0, "coverage_new": 0.98, "outcome": "inconclusive", "why": ""})
    'inconclusive: difference -0.01 [-0.04, 0.02] against a margin of 0.02; mean 0.8 old, 0.79 new over 120 records; scored \
100% old, 98% new'
    """
    said = (
        f"{line['outcome']}: difference {difference(line)} against a margin of {line['margin']:g}; "
        f"mean {line['mean_old']:.4g} old, {line['mean_new']:.4g} new over {count(line['n'], 'record')}; "
        f"scored {percent(line['coverage_old'])} old, {percent(line['coverage_new'])} new"
    )
    return f"{said}; {line['why']}" if line["why"] else said


def difference(line: Mapping[Any, Any]) -> str:
    """The difference of a line with its interval, as far as there is one."""
    if math.isnan(line["difference"]):
        return "-"
    if math.isnan(line["low"]):
        return f"{line['difference']:.2f}"
    return interval(line["difference"], line["low"], line["high"])


def _readable(gate: Gate) -> tuple[list[str], list[list[str]]]:
    from jurimetrics.variants.gate import rounded

    frame = gate.frame
    named = bool((frame["variant_old"] != "").any() or (frame["variant_new"] != "").any())
    headings = [
        "metric", "judge", *(["variant"] if named else []), "n", "scored old, new", "old", "new", "difference [interval]",
        "margin", "outcome", "n needed",
    ]  # fmt: skip
    lines = []
    for line in frame.to_dict("records"):
        old, new = line["variant_old"] or "(no name)", line["variant_new"] or "(no name)"
        scored = percent(line["coverage_old"]), percent(line["coverage_new"])
        lines.append(
            [
                line["metric"], line["judge"], *([new if new == old else f"{new} - {old}"] if named else []),
                f"{line['n']:,}", scored[0] if scored[0] == scored[1] else ", ".join(scored),
                _number(line["mean_old"]), _number(line["mean_new"]), difference(line), f"{line['margin']:g}",
                line["outcome"], "-" if math.isnan(line["needed"]) else rounded(line["needed"]),
            ]
        )  # fmt: skip
    return headings, lines


def _reasons(gate: Gate) -> list[str]:
    """What stands behind each line that is not plain."""
    several = len(gate.frame[["variant_old", "variant_new"]].drop_duplicates()) > 1
    return [
        f"{line['metric']}{' of ' + (line['variant_new'] or '(no name)') if several else ''}: {line['why']}."
        for line in gate.frame.to_dict("records")
        if line["why"]
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
