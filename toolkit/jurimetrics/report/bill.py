"""What failed, by kind with examples, and what judging and answering took."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.display import answers_lines, count, dollars, percent
from jurimetrics.report.facts import Facts
from jurimetrics.report.markup import Column, Markup, Piece, beside, bullets, joined, paragraph, section, table
from jurimetrics.report.words import listed

_LONGEST_EXAMPLE = 240
_EXAMPLES = 2
_MEANING = {
    "timeout": "no answer in time",
    "transport": "the connection or the server broke",
    "rate_limited": "still refused after all waiting",
    "rejected": "the endpoint refused the request for good",
    "filtered": "a content filter",
    "refused": "the judge declined",
    "truncated": "the reply was cut off",
    "unparsed": "no reply of the asked shape",
    "out_of_range": "a value outside the scale",
    "incomplete": "items missing even when asked again",
    "quorum": "too few members of the panel answered",
    "unsupported": "the judge cannot answer this kind",
    "budget": "the money or tokens allowed were spent",
    "cancelled": "interrupted",
    "crash": "an error in the metric's own code",
}


def failed(facts: Facts) -> Markup:
    """The section of the failures; it says so where nothing failed."""
    frame = facts.results.failures()
    asked = int(facts.summary["asked"].sum())
    if not asked:
        return Markup("")
    unanswered = facts.records[facts.records["answer_error"].notna()]
    parts = []
    if frame.empty:
        parts.append(paragraph(f"No row failed: every one of {asked:,} got a valid reply, or needed none."))
    else:
        parts.append(paragraph(f"{count(len(frame), 'row')} of {asked:,} failed ({percent(len(frame) / asked)})."))
        rows: list[list[Piece]] = []
        for kind, mine in frame.groupby("kind", sort=False):
            where = f"{listed(list(mine['metric'].unique()), 4)} by {listed(list(mine['judge'].unique()), 4)}"
            examples = bullets([_example(line) for line in mine.head(_EXAMPLES).to_dict("records")])
            named = joined([str(kind), beside(_MEANING.get(str(kind), ""))])
            rows.append([named, f"{len(mine):,}", where, examples])
        columns = [Column("kind", "name"), Column("rows"), Column("where", "text"), Column("examples", "text")]
        parts.append(table("Failures by kind", columns, rows))
    if len(unanswered):
        said = f"{count(len(unanswered), 'answer')} could not be written at all, so there was nothing to judge:"
        errors = unanswered["answer_error"].astype(str).str.partition(":")[0].value_counts()
        parts.append(paragraph(said))
        parts.append(bullets([f"{kind}: {number:,}" for kind, number in errors.items()]))
    return section("failures", "Failures", *parts)


def _example(line: dict[Any, Any]) -> str:
    of = f" ({line['variant']})" if line["variant"] else ""
    message = str(line["message"])
    cut = message if len(message) <= _LONGEST_EXAMPLE else f"{message[: _LONGEST_EXAMPLE - 1]}…"
    return f"{line['metric']} of {line['id']}{of} by {line['judge']}: {cut}"


def billed(facts: Facts) -> Markup:
    """The section of what judging took, and apart from it what the answers took."""
    totals = facts.results.totals()
    calls = facts.results.calls
    if calls.empty:
        recorded = totals.cost_usd is None
        said = (
            "The scores were given elsewhere: what judging took is unknown."
            if recorded
            else "No request was sent: judging cost nothing."
        )
        parts = [paragraph(said)]
    else:
        parts = [paragraph(f"In all: {totals}."), _by_judge(calls)]
    answers = answers_lines(facts.results.indicators("variant"))
    parts.append(bullets(list(answers)))
    return section("cost", "Cost and tokens", *parts)


def _by_judge(calls: pd.DataFrame) -> Markup:
    rows: list[list[Piece]] = []
    for judge, mine in calls.groupby("judge", sort=True):
        sent = mine[~mine["from_store"].to_numpy(dtype=bool)]
        cost = mine["cost_usd"].to_numpy(dtype=np.float64)
        latency = sent["latency_s"].to_numpy(dtype=np.float64)
        failures = int((sent["status"] != "ok").sum())
        rows.append(
            [
                str(judge),
                joined([f"{len(sent):,}", beside(f"{failures:,} in vain" if failures else "")]),
                f"{len(mine) - len(sent):,}",
                _tokens(sent["prompt_tokens"]),
                _tokens(sent["completion_tokens"]),
                _money(cost),
                f"{np.median(latency):.2g} s" if len(latency) else "-",
            ]
        )
    columns = [
        Column("judge", "name"), Column("requests sent"), Column("from the store"), Column("prompt tokens"),
        Column("completion tokens"), Column("cost"), Column("median latency"),
    ]  # fmt: skip
    return table("What each judge took", columns, rows)


def _tokens(counts: pd.Series[Any]) -> str:
    there = counts.dropna()
    total = f"{int(there.sum()):,}"
    if len(there) == len(counts):
        return total
    return f"at least {total}" if len(there) else "unknown"


def _money(cost: Any) -> str:
    there = cost[~np.isnan(cost)]
    total = dollars(math.fsum(there))
    if len(there) == len(cost):
        return total
    return f"at least {total}" if len(there) and there.any() else "unknown"
