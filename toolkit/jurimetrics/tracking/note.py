"""The Markdown note of a run: the summary as a table, what must be read beside it, where the rest is."""

from __future__ import annotations

import html
import math
import re
from typing import Any

from jurimetrics.tracking.measures import Evaluation

LONGEST_NOTE = 7500  # a tag holds 8,000 characters
_HEADER = (
    "| metric | judge | mean | 95 % interval | n | missing | pass rate | cost (USD) |",
    "|---|---|--:|---|--:|--:|--:|--:|",
)


def note(part: Evaluation) -> str:
    """The note of one variant. All names in it are other people's text and are escaped.

    Lines that do not fit are left out and counted; the files of the run hold them all.
    """
    scope = "All variants: " if len(part.settings.get("variants") or ()) > 1 else ""
    top = [*(f"- {scope}{escape(text)}" for text in part.notes), "", *_HEADER]
    end = [
        "",
        "`scores.parquet` holds every row, `summary.csv` this table, `settings.json` and `prompts/` how it was made.",
    ]
    rows = [_row(line) for line in part.summary.to_dict("records")]
    room = LONGEST_NOTE - sum(len(line) + 1 for line in top + end)
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    if len(kept) < len(rows):
        end.insert(0, f"\n{len(rows) - len(kept)} more lines stand in `summary.csv`.")
    return "\n".join([*top, *kept, *end])


def _row(line: dict[Any, Any]) -> str:
    interval = f"{_number(line['low'])} to {_number(line['high'])}" if _there(line["low"]) else ""
    cells = [
        escape(str(line["metric"])) + ("" if line["higher_is_better"] else " (lower is better)"),
        escape(str(line["judge"])),
        _number(line["mean"]),
        interval,
        str(line["n"]),
        _percent(line["missing"]),
        _percent(line["pass_rate"]),
        _number(line["cost_usd"], 6),
    ]
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text as itself in Markdown: no markup, no HTML, no end of a table's cell.

    >>> escape("a|b <img src=x> [c](javascript:d)")
    'a\\\\|b &lt;img src=x&gt; \\\\[c\\\\]\\\\(javascript:d\\\\)'
    """
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _there(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _number(value: object, digits: int = 3) -> str:
    return f"{value:.{digits}g}" if _there(value) else "–"


def _percent(value: object) -> str:
    return f"{value:.1%}" if _there(value) else "–"
