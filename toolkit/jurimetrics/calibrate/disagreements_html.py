"""The rows where judges and people part, as HTML: counts, then each row with both reasons side by side.

Everything that came from data, judges and people is escaped text. The page needs no script and nothing from elsewhere.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.calibrate.labels import RATER
from jurimetrics.display import count, plain_text
from jurimetrics.results.marks import marked
from jurimetrics.results.style import PAGE_STYLE, STYLE

if TYPE_CHECKING:
    from jurimetrics.calibrate.disagreements import Disagreements

_IN_NOTEBOOK = 5
_LONGEST_IN_NOTEBOOK = 700
_LONGEST_IN_PAGE = 3_000
_LONGEST_REASON = 1_500
_LONGEST_DOCUMENT = 2_000
_MOST_DOCUMENTS = 10
_STYLE = """
.jm .jm-sides td{width:50%;padding:.5em .8em .5em 0;overflow-wrap:anywhere}
.jm .jm-said{display:block;font-weight:600}
.jm .jm-why{white-space:pre-wrap}
.jm .jm-counts{width:auto}.jm .jm-counts td,.jm .jm-counts th{padding-right:1.4em;overflow-wrap:break-word}
.jm .jm-wide{overflow-x:auto}
.jm .jm-number{text-align:end;font-variant-numeric:tabular-nums}
.jm summary{font-size:.82em;color:#50575e;margin:1.1em 0 .25em;font-weight:600;cursor:pointer}
.jm .jm-kind{margin-top:1.4em}
@media(max-width:600px){.jm .jm-sides td{width:auto}.jm .jm-counts thead{display:table-header-group}
.jm .jm-counts tr{display:table-row}
.jm .jm-counts td{display:table-cell;padding:.3em .9em .3em 0;border-top:1px solid #e3e6e9}}
""".replace(".jm ", ".jm.jm.jm ")


def view(found: Disagreements) -> str:
    """For a notebook cell: the first rows of each kind, texts cut visibly.

    >>> from jurimetrics.calibrate.disagreements import Disagreements
    >>> counts = pd.DataFrame({"metric": ["ok"], "judge": ["ann"], "rows": [4], "agreed": [4]})
    >>> counts = counts.assign(false_passes=0, false_fails=0, differences=0)
    >>> "agree on all 4 rows" in view(Disagreements(pd.DataFrame({"kind": []}), counts, pd.DataFrame()))
    True
    """
    body = _body(found, _IN_NOTEBOOK, _LONGEST_IN_NOTEBOOK)
    return f'<style>{STYLE}{_STYLE}</style><div class="jm tex2jax_ignore mathjax_ignore">{body}</div>'


def page(found: Disagreements) -> str:
    """A page of all listed rows."""
    title = "Where judges and people differ"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{PAGE_STYLE}{STYLE}{_STYLE}</style></head>"
        f'<body><div class="jm tex2jax_ignore mathjax_ignore"><h1>{title}</h1>'
        f"{_body(found, len(found.frame), _LONGEST_IN_PAGE)}</div></body></html>\n"
    )


def _body(found: Disagreements, most: int, longest: int) -> str:
    from jurimetrics.calibrate.disagreements import TITLES

    total = int(found.counts["rows"].sum())
    if not len(found.frame):
        return f"<p>Judges and people agree on all {count(total, 'row')} with a label and a score.</p>"
    of_key: dict[Any, Mapping[Any, Any]] = {
        (one["id"], one["variant"]): one for one in found.records.to_dict("records")
    }
    parts = [_counts(found.counts)]
    for kind, number in found.of_kind().items():
        rows = found.frame[found.frame["kind"] == kind].head(most)
        if rows.empty:
            continue
        left = "" if len(rows) == number else f' <span class="jm-beside">the {len(rows):,} largest are shown</span>'
        parts.append(f'<h2 class="jm-kind">{TITLES[kind]}: {number:,}{left}</h2>')
        parts += [_row(row, of_key.get((row["id"], row["variant"]), {}), longest) for row in rows.to_dict("records")]
    return "".join(parts)


def _counts(counts: pd.DataFrame) -> str:
    numbers = {
        "rows": "labelled", "false_passes": "false passes", "false_fails": "false fails",
        "differences": "other", "agreed": "same",
    }  # fmt: skip
    head = "".join(f'<th class="jm-number">{name}</th>' for name in numbers.values())
    lines = "".join(
        f"<tr><td>{_text(str(line['metric']), 200)}</td><td>{_text(str(line['judge']), 200)}</td>"
        + "".join(f'<td class="jm-number">{line[name]:,}</td>' for name in numbers)
        + "</tr>"
        for line in counts.to_dict("records")
    )
    return (
        f'<div class="jm-wide"><table class="jm-counts"><thead><tr><th>metric</th><th>judge</th>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        "<p>A false pass is what a judge lets pass and most raters do not, a false fail the reverse, under the metric's "
        "threshold.</p>"
    )


def _row(row: Mapping[Any, Any], record: Mapping[Any, Any], longest: int) -> str:
    named = " · ".join(str(part) for part in (row["id"], row["variant"], row["metric"]) if part)
    judge = f"{row['judge']}: {row['score']:.3g}{_passes(row['passed'])}"
    people = f"{_raters(row)}: {row['label']:.3g}{_passes(row['label_passed'])}"
    sides = (
        f'<table class="jm-sides"><tbody><tr>{_side(judge, [], str(row["reason"]), "no reason")}'
        f"{_side(people, _given(row), str(row['rationale']), 'no rationale')}</tr></tbody></table>"
    )
    return (
        f'<section class="jm-record"><h2>{_text(named, 400)}</h2>{sides}'
        f"{_block('Question', record.get('question'), longest)}{_answer(record, longest)}{_evidence(record)}</section>"
    )


def _side(head: str, given: list[str], why: str, without: str) -> str:
    each = f'<span class="jm-beside">{_text(", ".join(given), 1_000)}</span>' if len(given) > 1 else ""
    said = _text(why, _LONGEST_REASON) if why.strip() else f"<i>{without}</i>"
    return (
        f'<td dir="auto"><span class="jm-said">{_text(head, 400)}</span>{each}<span class="jm-why">{said}</span></td>'
    )


def _passes(share: object) -> str:
    """What a share of passes says; a split one in numbers."""
    if not isinstance(share, float) or pd.isna(share):
        return ""
    return ", passes" if share == 1 else ", fails" if share == 0 else f", {share:.0%} pass"


def _given(row: Mapping[Any, Any]) -> list[str]:
    raters = {str(name).removeprefix(RATER): value for name, value in row.items() if str(name).startswith(RATER)}
    return [f"{name} {value:.3g}" for name, value in raters.items() if not pd.isna(value)]


def _raters(row: Mapping[Any, Any]) -> str:
    given = _given(row)
    return "people" if len(given) != 1 else given[0].rpartition(" ")[0]


def _answer(record: Mapping[Any, Any], longest: int) -> str:
    answer = record.get("answer")
    if isinstance(answer, str) and answer.strip():
        return _block("Answer", answer, longest)
    failed = record.get("answer_error")
    why = f" ({_text(failed, 400)})" if isinstance(failed, str) and failed else ""
    said = "a blank answer" if isinstance(answer, str) else f"no answer{why}"
    # Scores that were given elsewhere come without the texts that they are of.
    there = isinstance(answer, str) or why or isinstance(record.get("question"), str)
    return f"<h3>Answer</h3><p><i>{said}</i></p>" if there else ""


def _evidence(record: Mapping[Any, Any]) -> str:
    contexts = record.get("contexts")
    documents = [str(text) for text in contexts] if isinstance(contexts, list | tuple) else []
    reference = record.get("reference")
    shown = [
        _block(f"Document {at}", text, _LONGEST_DOCUMENT) for at, text in enumerate(documents[:_MOST_DOCUMENTS], 1)
    ]
    if len(documents) > _MOST_DOCUMENTS:
        shown.append(f"<p>{count(len(documents) - _MOST_DOCUMENTS, 'more document')} not shown.</p>")
    named = [count(len(documents), "document")] if documents else []
    if isinstance(reference, str):
        shown.append(_block("Reference", reference, _LONGEST_DOCUMENT))
        named.append("the reference")
    return f"<details><summary>{' and '.join(named)}</summary>{''.join(shown)}</details>" if shown else ""


def _block(title: str, text: object, longest: int) -> str:
    if not isinstance(text, str) or not text.strip():
        return ""
    return f'<h3>{title}</h3><div class="jm-text" dir="auto">{marked(text, [], longest)}</div>'


def _text(text: str, longest: int) -> str:
    left = len(text) - longest
    cut = text if left <= 0 else f"{text[:longest]} … {left:,} characters left out"
    return html.escape(plain_text(cut), quote=True)
