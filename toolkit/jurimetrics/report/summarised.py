"""The summary: means with their intervals, how much was answered, how much is missing, what passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from jurimetrics.display import dollars, percent
from jurimetrics.report.facts import Facts
from jurimetrics.report.figures import picture
from jurimetrics.report.markup import Column, Markup, Piece, beside, folded, joined, paragraph, section, table
from jurimetrics.report.words import known, with_interval
from jurimetrics.results.reading import COMPUTED

_MOST_DRAWN = 60
_COLUMNS = (
    Column("mean [95 % interval]", kept=True), Column("n"), Column("answered"), Column("missing"),
    Column("passed [95 % interval]"),
)  # fmt: skip


def summarised(facts: Facts) -> Markup:
    """The section of the summary."""
    if facts.summary.empty:
        return section("summary", "Summary", paragraph("There are no rows."))
    by = facts.by if facts.judge != COMPUTED else "nobody: all is computed"
    said = paragraph(
        "n counts the answers with a score. Answered is the share of answers that say something to check; missing the share "
        "of rows without a score. A mean without an interval rests on too few answers, or on equal ones.",
        kind="aside",
    )
    return section(
        "summary",
        "Summary",
        paragraph("Judged by ", joined([by]), "."),
        _table(facts, facts.headlines, "Means of each metric", judge=False),
        said,
        _figure(facts),
        _others(facts),
    )


def _others(facts: Facts) -> Markup:
    others = facts.summary[~facts.summary["judge"].isin([facts.judge, COMPUTED])]
    title = f"The same by the other judges ({len(others):,} lines)"
    return folded(title, _table(facts, others, "Means by the other judges", judge=True))


def _table(facts: Facts, lines: pd.DataFrame, caption: str, *, judge: bool) -> Markup:
    variants = len(facts.variants) > 1 or bool((facts.summary["variant"] != "").any())
    columns = [
        Column("metric", "name"),
        *([Column("judge", "word")] if judge else []),
        *([Column("variant", "word")] if variants else []),
        *_COLUMNS,
        *([Column("cost")] if judge else []),
    ]
    rows: list[list[Piece]] = [
        [
            _metric(facts, line, judge),
            *([str(line["judge"])] if judge else []),
            *([str(line["variant"]) or "(no name)"] if variants else []),
            with_interval(line["mean"], line["low"], line["high"]),
            f"{line['n']:,}",
            percent(line["answered"]),
            _missing(line),
            _passed(line),
            *([_cost(line)] if judge else []),
        ]
        for line in lines.to_dict("records")
    ]
    return table(caption, columns, rows)


def _metric(facts: Facts, line: Mapping[Any, Any], judge: bool) -> Piece:
    low, high = facts.settings["metrics"].get(line["metric"], {}).get("range") or (0.0, 1.0)
    said = [
        *([] if (low, high) == (0, 1) else [f"{low:g} to {high:g}"]),
        *([] if line["higher_is_better"] else ["lower is better"]),
        *(["computed"] if line["judge"] == COMPUTED and not judge and facts.judges else []),
    ]
    return joined([str(line["metric"]), beside(", ".join(said))])


def _missing(line: Mapping[Any, Any]) -> Piece:
    words = (("failed", "failed"), ("undefined", "undefined"), ("not_applicable", "not applicable"))
    why = [f"{int(line[name]):,} {word}" for name, word in words if line[name]]
    return joined([percent(line["missing"]), beside(", ".join(why))])


def _passed(line: Mapping[Any, Any]) -> Piece:
    if not known(line["pass_rate"]):
        return "-"
    ends = f" [{percent(line['pass_low'])}, {percent(line['pass_high'])}]" if known(line["pass_low"]) else ""
    sign = "≥" if line["higher_is_better"] else "≤"
    return joined([f"{percent(line['pass_rate'])}{ends}", beside(f"{sign} {line['threshold']:g}")])


def _cost(line: Mapping[Any, Any]) -> str:
    if known(line["cost_usd"]):
        return dollars(line["cost_usd"])
    return f"at least {dollars(line['at_least_cost'])}" if line["at_least_cost"] > 0 else "unknown"


def _figure(facts: Facts) -> Markup:
    from jurimetrics.plots import summary

    lines = facts.headlines
    if len(lines) > _MOST_DRAWN or not lines["mean"].notna().any():
        return Markup("")
    return picture(
        summary(facts.results, judge=facts.judge),
        "The means of the table above with their 95 % intervals, each as a share of its metric's range, one mark for each "
        "variant.",
    )
