"""The answers with the worst scores: what was asked, what was answered with what is not supported marked, who said what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from jurimetrics.display import count
from jurimetrics.report.facts import Facts
from jurimetrics.report.labelled import people_of
from jurimetrics.report.markup import (
    Column,
    Markup,
    Piece,
    beside,
    block,
    folded,
    joined,
    paragraph,
    prose,
    put,
    section,
    table,
)
from jurimetrics.report.words import known
from jurimetrics.results.highlight import highlighted, worst_first
from jurimetrics.results.reading import COMPUTED

_LONGEST_ANSWER = 3_000
_LONGEST_QUESTION = 1_500
_LONGEST_REFERENCE = 1_500
_LONGEST_REASON = 700
_MOST_OPEN = 12
"""Rows of scores that stand open; more are folded but for those of the judge that is read first."""
_COLUMNS = (Column("metric", "name"), Column("judge", "word"), Column("score"), Column("why", "text"))


def worst(facts: Facts) -> Markup:
    """The section of the answers with the worst scores."""
    if facts.worst == 0 or facts.records.empty:
        return Markup("")
    judge = facts.judge
    keys = worst_first(facts.scores, facts.records, facts.settings, judge)[: facts.worst]
    scores, records = _only(facts.scores, keys), _only(facts.records, keys)
    rows = dict(iter(scores.groupby(["id", "variant"], sort=False)))
    of_key = {(one["id"], one["variant"]): one for one in records.to_dict("records")}
    said = (
        f"{len(keys):,} of {count(len(facts.records), 'answer')}, in the order of the mean of their scores by {facts.by}, "
        "each as a share of its metric's range, the worst first. Long texts are cut, and say so."
    )
    shown = [_answer(facts, of_key[key], rows.get(key, scores.iloc[:0])) for key in keys]
    lacking = facts.records[["answer", "answer_error"]].isna().all(axis=None)
    texts = paragraph("The texts of the answers are not part of these results.") if lacking else Markup("")
    return section("worst", "Worst answers", paragraph(said), texts, _legend(shown), *shown)


def _only(frame: pd.DataFrame, keys: list[tuple[str, str]]) -> pd.DataFrame:
    return frame[pd.MultiIndex.from_frame(frame[["id", "variant"]]).isin(keys)]


def _legend(shown: list[Markup]) -> Markup:
    marks = (
        ("intrinsic", "contradicted", "the documents say otherwise"),
        ("extrinsic", "not in the documents", "they do not say it"),
        ("unsupported", "unsupported", "nothing given supports it"),
        ("undecided", "undecided", "the judges have no majority"),
    )
    used = [
        f'<span><mark class="jm-{kind}">{word}</mark> {meaning}</span>'
        for kind, word, meaning in marks
        if any(f'<mark class="jm-{kind}">' in one.html for one in shown)
    ]
    return Markup(f'<p class="jm-legend">{" ".join(used)}</p>' if used else "")


def _answer(facts: Facts, record: Mapping[Any, Any], rows: pd.DataFrame) -> Markup:
    named = f"{record['id']} · {record['variant']}" if record["variant"] else str(record["id"])
    found = highlighted(record, rows, facts.settings, facts.judge, heading="h5", longest=_LONGEST_ANSWER)
    parts = [
        Markup(f'<h3 dir="auto">{put(named)}</h3>'),
        _text("Question", record["question"], _LONGEST_QUESTION),
        Markup(f"<h4>Answer</h4>{block(Markup(found.answer)).html}" if _has_answer(record) else ""),
        _text(_reference(record), record["reference"], _LONGEST_REFERENCE),
        _scores(facts, record, rows),
        folded("Claims with their verdicts", Markup(f"<h4>Claims</h4>{found.claims}" if found.claims else "")),
        folded("Documents and what was quoted", Markup(f"<h4>Documents</h4>{found.sources}" if found.sources else "")),
    ]
    return Markup(f'<article class="jr-record">{"".join(part.html for part in parts)}</article>')


def _text(title: str, value: object, longest: int) -> Markup:
    if not isinstance(value, str) or not value.strip():
        return Markup("")
    return Markup(f"<h4>{title}</h4>{block(prose(value, longest)).html}")


def _has_answer(record: Mapping[Any, Any]) -> bool:
    return isinstance(record["answer"], str) or isinstance(record["answer_error"], str)


def _reference(record: Mapping[Any, Any]) -> str:
    return "Reference, written by a model" if '"reference_model"' in str(record["metadata"]) else "Reference"


def _scores(facts: Facts, record: Mapping[Any, Any], rows: pd.DataFrame) -> Markup:
    lines = [_line(row) for row in rows.to_dict("records")]
    people: list[list[Piece]] = [
        [str(one["metric"]), f"{one['rater']} (a person)", f"{one['label']:.3g}", _cut(str(one.get("rationale") or ""))]
        for one in people_of(facts.labels, record["id"], record["variant"])
    ]
    if len(lines) + len(people) <= _MOST_OPEN:
        return table("Scores and reasons", _COLUMNS, [*lines, *people])
    first = rows["judge"].isin([facts.judge, COMPUTED]).tolist()
    own = [line for line, is_first in zip(lines, first, strict=True) if is_first]
    others = [line for line, is_first in zip(lines, first, strict=True) if not is_first]
    shown = table("Scores and reasons", _COLUMNS, [*own, *people])
    more = table("Scores and reasons of the other judges", _COLUMNS, others)
    return Markup(shown.html + folded(f"What the other judges said ({count(len(others), 'row')})", more).html)


def _line(row: Mapping[Any, Any]) -> list[Piece]:
    score = f"{row['score']:.3g}" if known(row["score"]) else str(row["status"]).replace("_", " ")
    side = "" if pd.isna(row["passed"]) else "pass" if row["passed"] else "fail"
    again = f"repeat {row['repeat']}" if row["repeat"] else ""
    flags = f"flagged: {', '.join(map(str, row['flags']))}" if len(row["flags"]) else ""
    return [
        str(row["metric"]),
        joined([str(row["judge"]), beside(again)]),
        joined([score, beside(side)]),
        joined([Markup(_cut(str(row["error"] or row["reason"])).html), beside(flags)]),
    ]


def _cut(text: str) -> Markup:
    return prose(text, _LONGEST_REASON)
