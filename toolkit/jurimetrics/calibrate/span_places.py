"""The stretches of answers that judges and people marked, as places in the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from jurimetrics.calibrate.claim_lists import Key, check_part_labels, refuse_unmet
from jurimetrics.cells import show
from jurimetrics.errors import InputError
from jurimetrics.text import find_quote

if TYPE_CHECKING:
    from jurimetrics.results import Results


class Stretch(NamedTuple):
    """`answer[start:end]`, offsets in code points; `type` is "" where none was given, `whole` whether a judge's words were
    not found, so that its whole sentence stands for them; `why`, a reason or rationale."""

    start: int
    end: int
    type: str = ""
    whole: bool = False
    why: str = ""


Marked = dict[Key, list[Stretch]]


class Marker(NamedTuple):
    """What one judge marked by answer; `silent`, answers whose row says nothing of marks."""

    marked: Marked
    silent: tuple[Key, ...]


def characters(stretches: Sequence[Stretch]) -> list[tuple[int, int]]:
    """The characters in any of the stretches, as places that neither overlap nor touch, in order.

    >>> characters([Stretch(4, 9), Stretch(0, 2), Stretch(6, 12)])
    [(0, 2), (4, 12)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted((one.start, one.end) for one in stretches):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int:
    """How many characters two lists of `characters` share.

    >>> common([(0, 4), (8, 10)], [(2, 9)])
    3
    """
    return sum(max(0, min(b, d) - max(a, c)) for a, b in one for c, d in other)


def marks_of_people(labels: pd.DataFrame, answers: Mapping[Key, str | None]) -> tuple[dict[str, Marked], pd.DataFrame]:
    """What each rater marked by answer, of those in `answers`; and the labels of other answers.

    Raises `InputError` where a column is lacking, no answer is known, or a label is of no stretch of its answer: offsets
    out of range, a quote that does not stand there, stands there several times, or is not what the offsets give, one
    stretch given twice by a rater in different words.

    >>> people = pd.DataFrame({"id": ["1"], "variant": "", "rater": "ann", "start": [None], "end": [None],
    ...                        "quote": ["old"], "type": ""})
    >>> marks_of_people(people, {("1", ""): "It is old."})[0]["ann"][("1", "")][0][:2]
    (6, 9)
    """
    check_part_labels(labels, ("id", "variant", "rater", "start", "end", "quote", "type"), "load_span_labels")
    met = [key in answers for key in zip(labels["id"], labels["variant"], strict=True)]
    refuse_unmet(labels, met, answers)
    found: dict[str, Marked] = {}
    for at, (row, there) in enumerate(zip(labels.to_dict("records"), met, strict=True)):
        if not there:
            continue
        key = (row["id"], row["variant"])
        listed = found.setdefault(str(row["rater"]), {}).setdefault(key, [])
        place = row["place"] if isinstance(row.get("place"), str) else f"labels: row {at + 1}"
        where = _placed(row, answers[key] or "", f"{place}, id {key[0]!r}")
        if any(where == (one.start, one.end) for one in listed):
            raise InputError(
                f"{place}, id {key[0]!r}: {row['rater']!r} labels the stretch {where} of this answer twice"
            )
        if where is not None:
            rationale = row.get("rationale")
            why = rationale if isinstance(rationale, str) else ""
            listed.append(Stretch(*where, row["type"] if isinstance(row["type"], str) else "", why=why))
    return dict(sorted(found.items())), labels[[not one for one in met]].reset_index(drop=True)


def _placed(row: Mapping[Any, Any], answer: str, place: str) -> tuple[int, int] | None:
    """Where a label's stretch stands in the answer; None where the label says that nothing is marked."""
    start, end = (None if pd.isna(row[name]) else int(row[name]) for name in ("start", "end"))
    quote = row["quote"] if isinstance(row["quote"], str) else ""
    if start is None:
        return _quoted(quote, answer, place) if quote else None
    end = start + len(quote) if end is None else end
    if not 0 <= start < end <= len(answer):
        raise InputError(
            f'{place}, columns "start" and "end": expected a stretch of the answer, which has {len(answer)} characters, '
            f"found {start} to {end}"
        )
    if quote and answer[start:end] != quote:
        raise InputError(
            f'{place}, column "quote": the answer has {show(answer[start:end])} from {start} to {end}, not {show(quote)}; '
            "offsets count Unicode code points from 0 (not bytes or UTF-16 units) and the end is exclusive"
        )
    return start, end


def _quoted(quote: str, answer: str, place: str) -> tuple[int, int]:
    found = list(_occurrences(quote, answer))
    if not found:
        raise InputError(f'{place}, column "quote": {show(quote)} does not stand in the answer {show(answer)}')
    if len(found) > 1:
        at = ", ".join(str(start) for start, _ in found[:5])
        raise InputError(
            f'{place}, column "quote": {show(quote)} stands in the answer {len(found)} times (at {at}); say which in a '
            'column "start"'
        )
    return found[0]


def _occurrences(quote: str, answer: str) -> Iterator[tuple[int, int]]:
    """Where a quote stands: word for word, overlapping itself too; else where both are folded."""
    if (at := answer.find(quote)) >= 0:
        while at >= 0:
            yield at, at + len(quote)
            at = answer.find(quote, at + 1)
        return
    behind = 0
    while (place := find_quote(quote, answer[behind:])) is not None:
        yield behind + place[0], behind + place[1]
        behind += place[1]


def marks_of_judges(results: Results, metric: str, answers: Mapping[Key, str | None]) -> dict[str, Marker]:
    """What each judge marked by answer under `metric` (of repeats the first): the spans of unsupported sentences.

    Raises `InputError` where there is no such metric, or no row of it holds sentences.
    """
    if metric not in results.settings["metrics"]:
        raise InputError(f"no metric {metric!r}; there are: {', '.join(results.settings['metrics'])}")
    scores = results.scores
    rows = scores[scores["metric"] == metric]
    found: dict[str, tuple[Marked, dict[Key, None]]] = {name: ({}, {}) for name in dict.fromkeys(rows["judge"])}
    rows = rows.sort_values("repeat", kind="stable")
    for identity, variant, judge, details in rows[["id", "variant", "judge", "details"]].itertuples(index=False):
        marked, keys = found[judge]
        key = (identity, variant)
        keys[key] = None
        sentences = _sentences(details)
        if sentences is not None and key not in marked:
            marked[key] = [one for each in sentences for one in _of_sentence(each, answers.get(key) or "")]
    if not any(marked for marked, _ in found.values()):
        raise InputError(
            f"{metric}: no row holds sentences with marked stretches; only metrics that look for them keep them "
            "(hallucination), in rows that were evaluated here"
        )
    return {
        name: Marker(marked, tuple(key for key in keys if key not in marked)) for name, (marked, keys) in found.items()
    }


def _sentences(details: object) -> list[Mapping[str, Any]] | None:
    parsed = json.loads(details) if isinstance(details, str) and details else None
    given = parsed.get("sentences") if isinstance(parsed, Mapping) else None
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else None


def _of_sentence(sentence: Mapping[str, Any], answer: str) -> Iterator[Stretch]:
    if sentence.get("label") != "unsupported":
        return
    why = str(sentence.get("reason") or "")
    for span in sentence.get("spans") or ({**sentence, "type": "", "found": False},):
        start, end = span.get("start"), span.get("end")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(answer):
            yield Stretch(start, end, str(span.get("type") or ""), not span.get("found", True), why)
