"""A record as HTML: its answer with what is not supported marked, its claims with their verdicts, what they rest on.

Everything that came from data or a judge is escaped text. The page needs no script and nothing from elsewhere, and is
readable on a phone and on paper.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, NamedTuple

import pandas as pd

from jurimetrics.display import View, count, plain_text
from jurimetrics.errors import InputError
from jurimetrics.results.claims import Checked, read_checked
from jurimetrics.results.marks import Mark, mark_quote, marked
from jurimetrics.results.reading import headline_judge
from jurimetrics.results.style import PAGE_STYLE, STYLE

_LONGEST_ANSWER = 20_000
_LONGEST_DOCUMENT = 3_000
_LONGEST_REASON = 1_200
_MOST_DOCUMENTS = 30
_MOST_CLAIMS = 100
_SIGNS = {
    "supported": "✓", "entailed": "✓", "contradicted": "✗", "unsupported": "✗", "unknown": "?", "neutral": "?",
    "undecided": "≈", "no_check": "–",
}  # fmt: skip
_SPANS = {"intrinsic": "contradicted", "extrinsic": "not in the documents", "unsupported": "unsupported"}
_AGAINST = {
    ("contexts", False): "Claims of the answer, checked against the documents",
    ("reference", False): "Claims of the answer, checked against the reference",
    ("answer", False): "Facts of the reference, looked for in the answer",
    ("contexts", True): "Sentences of the answer that the documents do not support",
}
_LEGEND = (
    ("intrinsic", "1889", "contradicted", "the documents say otherwise"),
    ("extrinsic", "by train", "not in the documents", "they do not say it"),
    ("undecided", "often", "undecided", "the judges have no majority"),
    ("quote", "in 1889", "A1", "what a judge quoted for claim A1"),
)


@dataclass(frozen=True, slots=True)
class _Section:
    """Claims with the same verdicts under one or several metrics; `letter` is what quotes refer to."""

    letter: str
    metrics: tuple[str, ...]
    items: tuple[Checked, ...]


def highlight(
    scores: pd.DataFrame, records: pd.DataFrame, settings: Mapping[str, Any], key: tuple[str, str], judge: str | None
) -> View:
    """The view of one record; see `Results.highlight`. `key`: id and variant; `judge`: whose verdicts, None to choose.

    >>> records = pd.DataFrame([dict.fromkeys(["question", "contexts", "reference", "answer_error"])])
    >>> records = records.assign(id="1", variant="", answer="It is old.")
    >>> row = {"id": "1", "variant": "", "metric": "m", "judge": "ann", "repeat": 0, "score": 0.5, "status": "ok",
    ...        "passed": pd.NA, "reason": "so so", "error": "", "details": "{}"}
    >>> "It is old." in highlight(pd.DataFrame([row]), records, {"metrics": {"m": {}}}, ("1", ""), None).html
    True
    """
    identity, variant = key
    there = records[records["id"] == identity]
    mine = there[there["variant"] == variant]
    if not len(mine):
        known = ", ".join(repr(name) for name in there["variant"]) or "none"
        of = (
            f"no record {identity!r}" if not len(there) else f"{identity!r} has no variant {variant!r}; it has: {known}"
        )
        raise InputError(of)
    names = list(dict.fromkeys(scores["judge"]))
    if judge is not None and judge not in names:
        raise InputError(f"no judge {judge!r} gave scores; judges: {', '.join(names) or 'none'}")
    rows = scores[(scores["id"] == identity) & (scores["variant"] == variant)]
    shown = _record(mine.iloc[0].to_dict(), rows, settings, judge or shown_judge(scores, settings))
    return View(f'<style>{STYLE}</style><div class="jm tex2jax_ignore mathjax_ignore">{_legend()}{shown}</div>')


def highlights_html(scores: pd.DataFrame, records: pd.DataFrame, settings: Mapping[str, Any], limit: int = 50) -> str:
    """The page of the records with the worst scores; see `Results.highlights_html`.

    >>> row = {"id": "1", "variant": "", "metric": "m", "judge": "ann", "repeat": 0, "score": 0.5, "status": "ok",
    ...        "passed": pd.NA, "reason": "so so", "error": "", "details": "{}"}
    >>> records = pd.DataFrame([dict.fromkeys(["question", "contexts", "reference", "answer_error"])])
    >>> records = records.assign(id="1", variant="", answer="It is old.")
    >>> highlights_html(pd.DataFrame([row]), records, {"metrics": {"m": {}}}).count("<section")
    1
    """
    if limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}")
    judge = shown_judge(scores, settings)
    keys = worst_first(scores, records, settings, judge)[:limit]
    rows: dict[Any, pd.DataFrame] = dict(iter(_only(scores, keys).groupby(["id", "variant"], sort=False)))
    of_key = {(one["id"], one["variant"]): one for one in _only(records, keys).to_dict("records")}
    shown = [_record(of_key[key], rows.get(key, scores.iloc[:0]), settings, judge) for key in keys]
    said = (
        f"{len(keys):,} of {count(len(records), 'answer')}, in the order of the mean of their scores as shares of each "
        f"metric's range (judged by {judge}), the worst first; those without any score come last."
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Answers, the worst first</title><style>{PAGE_STYLE}{STYLE}</style></head>"
        f'<body><div class="jm tex2jax_ignore mathjax_ignore"><h1>Answers, the worst first</h1><p>{_text(said)}</p>'
        f"{_legend()}{''.join(shown)}</div></body></html>\n"
    )


def shown_judge(scores: pd.DataFrame, settings: Mapping[str, Any]) -> str:
    """Whose verdicts are shown: the panel's or those of the only judge, else those of the first by name.

    >>> shown_judge(pd.DataFrame({"judge": ["computed", "bob", "ann"]}), {"judges": {"ann": {}, "bob": {}}})
    'ann'
    """
    names = [name for name in dict.fromkeys(scores["judge"]) if name != "computed"]
    declared = [name for name in settings.get("judges", {}) if name in names]
    return headline_judge(names, settings) or next(iter([*declared, *names]), "computed")


def worst_first(
    scores: pd.DataFrame, records: pd.DataFrame, settings: Mapping[str, Any], judge: str
) -> list[tuple[str, str]]:
    """Id and variant of each record by the mean of `judge`'s scores of it, each as a share of its metric's range, the
    worst first and those without any score last.

    >>> rows = pd.DataFrame({"id": ["1", "2"], "variant": "", "metric": "m", "judge": "ann", "score": [3, 1], "status": "ok"})
    >>> worst_first(rows, rows, {"metrics": {"m": {"range": [1, 5]}}}, "ann")
    [('2', ''), ('1', '')]
    """
    mine = scores[(scores["judge"] == judge) & (scores["status"] == "ok")]
    lowest, highest, better = (
        mine["metric"].map({name: pick(one) for name, one in settings["metrics"].items()}).astype("float64")
        for pick in (
            lambda one: (one.get("range") or (0, 1))[0],
            lambda one: (one.get("range") or (0, 1))[1],
            lambda one: float(one.get("higher_is_better", True)),
        )
    )
    share = ((mine["score"] - lowest) / (highest - lowest).where(highest > lowest)).fillna(0.5)
    quality = share.where(better == 1, 1 - share).groupby([mine["id"], mine["variant"]]).mean().to_dict()
    keys = list(dict.fromkeys(zip(records["id"], records["variant"], strict=True)))
    return sorted(keys, key=lambda key: quality.get(key, math.inf))


def _only(frame: pd.DataFrame, keys: Sequence[tuple[str, str]]) -> pd.DataFrame:
    return frame[pd.MultiIndex.from_frame(frame[["id", "variant"]]).isin(keys)]


def _record(record: Mapping[Any, Any], rows: pd.DataFrame, settings: Mapping[str, Any], judge: str) -> str:
    found = highlighted(record, rows, settings, judge)
    named = f"{record['id']} · {record['variant']}" if record["variant"] else str(record["id"])
    parts = [
        f"<h2>{_text(named)}</h2>",
        _block("Question", _text(_there(record["question"]))) if _there(record["question"]) else "",
        _block("Answer", found.answer),
        _scores(rows, judge),
        found.claims,
        found.sources,
    ]
    return f'<section class="jm-record">{"".join(parts)}</section>'


class Highlighted(NamedTuple):
    """Parts of one record as escaped HTML, for a page of one's own: its `answer` with marks, the `claims` checked under
    headings of their own, and the `sources`, documents and reference, with what was quoted of them marked."""

    answer: str
    claims: str
    sources: str


def highlighted(
    record: Mapping[Any, Any],
    rows: pd.DataFrame,
    settings: Mapping[str, Any],
    judge: str,
    *,
    heading: str = "h3",
    longest: int = _LONGEST_ANSWER,
) -> Highlighted:
    """One record by the verdicts of `judge` in its first repeat. `rows` are the rows of the score frame of that record,
    `heading` is the tag of headings, `longest` the characters from which an answer is cut around its marks.

    >>> rows = pd.DataFrame(columns=["metric", "judge", "repeat", "details"])
    >>> record = {"answer": "It is <old>.", "contexts": ["1889"], "reference": None}
    >>> highlighted(record, rows, {"metrics": {}}, "ann", heading="h4").sources
    '<h4>Document 1</h4><div class="jm-text" dir="auto">1889</div>'
    """
    shown = rows[(rows["judge"] == judge) & (rows["repeat"] == 0)]
    sections = _sections(shown, settings)
    contexts = [str(text) for text in record["contexts"]] if isinstance(record["contexts"], list | tuple) else []
    claims = "".join(_claims(section, judge) for section in sections)
    sources = _documents(contexts, sections) + _reference(_there(record["reference"]), sections)
    if heading != "h3":
        # Tags are of this page's making alone: what came from data is escaped.
        claims, sources = (
            part.replace("<h3>", f"<{heading}>").replace("</h3>", f"</{heading}>") for part in (claims, sources)
        )
    return Highlighted(_answer(record, shown, longest), claims, sources)


def _answer(record: Mapping[Any, Any], shown: pd.DataFrame, longest: int) -> str:
    answer = _there(record["answer"])
    if not isinstance(record["answer"], str):
        failed = _there(record["answer_error"])
        return f"<i>no answer{_text(f' ({failed})' if failed else '')}</i>"
    marks = [mark for details in shown["details"] for mark in _spans(details, answer)]
    return marked(answer, marks, longest) if answer.strip() else "<i>a blank answer</i>"


def _spans(details: object, answer: str) -> Iterator[Mark]:
    """The marks of one row's sentences: the spans of unsupported ones, undecided ones whole."""
    parsed = json.loads(details) if isinstance(details, str) and details else {}
    for sentence in parsed.get("sentences", ()) if isinstance(parsed, Mapping) else ():
        if not isinstance(sentence, Mapping):
            continue
        spans = [(span, str(span.get("type") or "unsupported")) for span in sentence.get("spans") or ()]
        if sentence.get("undecided"):
            spans = [({**sentence, "quote": sentence.get("text")}, "undecided")]
        for span, kind in spans:
            start = span.get("start")
            kind = kind if kind in (*_SPANS, "undecided") else "unsupported"
            at = start if isinstance(start, int) else None
            found = mark_quote(str(span.get("quote") or ""), answer, kind, _SPANS.get(kind, kind), at)
            if found is not None:
                yield found


def _sections(shown: pd.DataFrame, settings: Mapping[str, Any]) -> list[_Section]:
    """What was checked, each list once however many metrics rest on it."""
    found: dict[tuple[Any, ...], tuple[list[str], list[Checked]]] = {}
    for metric, details in zip(shown["metric"], shown["details"], strict=True):
        items = read_checked(details, settings["metrics"].get(metric, {}))
        for place in dict.fromkeys((one.against, one.sentence) for one in items):
            part = [one for one in items if (one.against, one.sentence) == place]
            same = (place, *((one.claim, one.verdict, one.reason) for one in part))
            found.setdefault(same, ([], part))[0].append(metric)
    letters = [*ascii_uppercase, *(f"Z{at}" for at in range(len(found)))]
    return [
        _Section(letter, tuple(metrics), tuple(part))
        for letter, (metrics, part) in zip(letters, found.values(), strict=False)
    ]


def _scores(rows: pd.DataFrame, judge: str) -> str:
    by_metric: dict[str, dict[str, list[_Said]]] = {}
    columns = (rows[name].tolist() for name in ("metric", "judge", "score", "status", "passed", "error", "reason"))
    for metric, name, *said in zip(*columns, strict=True):
        by_metric.setdefault(metric, {}).setdefault(name, []).append(_Said(*said))
    lines = []
    for metric, by_judge in by_metric.items():
        own = judge if judge in by_judge else next(iter(by_judge))
        others = [f"{name} {_values(said)}" for name, said in by_judge.items() if name != own]
        of_own = by_judge[own]
        why = str(of_own[0].error or of_own[0].reason)
        beside = f'<span class="jm-beside">{_text(" · ".join(others))}</span>' if others else ""
        lines.append(
            f'<tr><td class="jm-name">{_text(str(metric))}</td>'
            f'<td class="jm-name">{_text(_values(of_own))}{_pass(of_own)}</td>'
            f'<td dir="auto">{_text(why, _LONGEST_REASON)}{beside}</td></tr>'
        )
    if not lines:
        return ""
    head = f"<tr><th>metric</th><th>{_text(judge)}</th><th>why; what the others gave</th></tr>"
    return f"<h3>Scores</h3><table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


class _Said(NamedTuple):
    """One row of the score frame."""

    score: float
    status: str
    passed: Any
    error: str
    reason: str


def _values(rows: Sequence[_Said]) -> str:
    """The score, or the scores of all repeats; where there is none, why."""
    return ", ".join(f"{row.score:.3g}" if row.status == "ok" else str(row.status).replace("_", " ") for row in rows)


def _pass(rows: Sequence[_Said]) -> str:
    said = ["-" if pd.isna(row.passed) else "pass" if row.passed else "fail" for row in rows]
    return "" if set(said) == {"-"} else f'<span class="jm-beside">{_text(", ".join(said))}</span>'


def _claims(section: _Section, judge: str) -> str:
    first = section.items[0]
    title = _AGAINST.get((first.against, first.sentence), "Checked")
    # A sentence that nobody doubts stands in the answer, and is not said twice.
    listed = [one for one in section.items if not one.sentence or one.verdict in ("unsupported", "undecided")]
    lines = [_claim(section.letter, one) for one in listed[:_MOST_CLAIMS]]
    cut = f"<p>{len(listed) - _MOST_CLAIMS:,} more are not shown.</p>" if len(listed) > _MOST_CLAIMS else ""
    body = f'<ul class="jm-claims">{"".join(lines)}</ul>{cut}' if lines else "<p>none</p>"
    under = f"{', '.join(section.metrics)}, by {judge}"
    return f'<h3>{section.letter}. {_text(title)} <span class="jm-beside">{_text(under)}</span></h3>{body}'


def _claim(letter: str, one: Checked) -> str:
    undecided = bool(one.undecided)
    verdict = "undecided" if undecided else one.verdict
    quotes = "".join(
        f'<span class="jm-beside">“{_text(quote, 400)}”{_text(_source(one.against, doc))}</span>'
        for doc, quote in one.evidence[:5]
    )
    votes = " · ".join(f"{judge}: {said or 'failed'}" for judge, said in one.votes.items())
    said = f'<span class="jm-beside">{_text(votes)}</span>' if votes else ""
    sign = _SIGNS.get(verdict, "·")
    kind = verdict if verdict in _SIGNS else "unknown"
    return (
        f'<li dir="auto"><b>{letter}{one.number}</b> <span class="jm-verdict jm-is-{kind}">{sign} {_text(verdict)}</span> '
        f'{_text(one.claim, _LONGEST_REASON)}<span class="jm-why">{_text(one.reason, _LONGEST_REASON)}</span>'
        f"{quotes}{said}</li>"
    )


def _source(against: str, doc: int) -> str:
    return f" document {doc}" if against == "contexts" and doc > 0 else f" {against}"


def _documents(contexts: Sequence[str], sections: Sequence[_Section]) -> str:
    quotes = _quotes(sections, "contexts")
    shown = [
        _block(f"Document {at}", _quoted(text, [(quote, label) for doc, quote, label in quotes if doc == at]))
        for at, text in enumerate(contexts[:_MOST_DOCUMENTS], 1)
    ]
    left = len(contexts) - _MOST_DOCUMENTS
    return "".join(shown) + (f"<p>{count(left, 'more document')} not shown.</p>" if left > 0 else "")


def _quotes(sections: Sequence[_Section], against: str) -> list[tuple[int, str, str]]:
    """What judges quoted: document from 1, the words, and the claim they were quoted for."""
    return [
        (doc, quote, f"{section.letter}{one.number}")
        for section in sections
        for one in section.items
        if one.against == against
        for doc, quote in one.evidence
    ]


def _quoted(text: str, quotes: Sequence[tuple[str, str]]) -> str:
    """A text with the passages marked that judges quoted from it."""
    marks = [mark_quote(quote, text, "quote", label) for quote, label in quotes]
    return marked(text, [mark for mark in marks if mark is not None], _LONGEST_DOCUMENT)


def _reference(text: str, sections: Sequence[_Section]) -> str:
    if not text:
        return ""
    return _block("Reference", _quoted(text, [(quote, label) for _, quote, label in _quotes(sections, "reference")]))


def _block(title: str, inner: str) -> str:
    return f'<h3>{_text(title)}</h3><div class="jm-text" dir="auto">{inner}</div>'


def _legend() -> str:
    shown = [
        f'<span><mark class="jm-{kind}">{_text(word)}</mark><sup>{_text(label)}</sup> {_text(says)}</span>'
        for kind, word, label, says in _LEGEND
    ]
    return f'<p class="jm-legend">{" ".join(shown)}</p>'


def _there(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(text: str, longest: int = 4_000) -> str:
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return html.escape(plain_text(cut), quote=True)
