"""How far the stretches that judges mark in answers are those that people mark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics.calibrate.claim_lists import Key
from jurimetrics.calibrate.labels import require_results
from jurimetrics.calibrate.part_estimates import (
    chance_corrected,
    estimate_of,
    flat,
    harmonic,
    kind_of,
    ratio,
    share,
    short,
)
from jurimetrics.calibrate.span_places import (
    Marked,
    Marker,
    Stretch,
    characters,
    common,
    marks_of_judges,
    marks_of_people,
)
from jurimetrics.display import count, html_table
from jurimetrics.stats.estimate import Estimate

if TYPE_CHECKING:
    from jurimetrics.results import Results

TYPES = ("intrinsic", "extrinsic")
"""The types that judges give and whose agreement is counted."""
_SHOWN = ("answer_precision", "answer_recall", "span_precision", "span_recall", "character_precision",
          "character_recall", "character_f1", "type_kappa")  # fmt: skip
_MATCHES = ["id", "variant", "group", "judge", "rater", "start", "end", "quote", "type", "people_start", "people_end",
            "people_quote", "people_type", "overlap", "reason", "rationale"]  # fmt: skip
_ALONE = ["id", "variant", "group", "judge", "rater", "start", "end", "quote", "type", "whole_sentence", "reason"]


@dataclass(frozen=True, slots=True)
class SpanLine:
    """One judge beside one rater, or (`kind` "person") one rater beside another: counts and estimates."""

    judge: str
    kind: str
    rater: str
    counts: Mapping[str, int]
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpanAgreement:
    """Judges held against people stretch by stretch: one line for each judge and rater, and for each two raters.

    `matches`: one row for each stretch of a judge and each of a rater that share a character: `id`, `variant`, `group`,
    `judge`, `rater`, `start`, `end`, `quote`, `type` of the judge's, the same with `people_` of the rater's, `overlap` (how
    many characters they share), `reason`, `rationale`. `missed`: the raters' stretches of which the judge marked no
    character; `extra`: the judge's of which the rater marked none (`whole_sentence`: the judge's words were not found, so
    its whole sentence is marked). `unmatched`: labels of answers that are not in the results. `notes`: what must be read
    beside the figures.
    """

    metric: str
    lines: tuple[SpanLine, ...]
    matches: pd.DataFrame
    missed: pd.DataFrame
    extra: pd.DataFrame
    unmatched: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each line. Columns: `judge`, `kind` ("judge", "panel", "baseline", "person"), `rater`; `answers`
        compared, `missing` answers whose row of the judge says nothing of marks, `groups`; `people_answers` and
        `judged_answers` with a mark, `people_spans` and `judged_spans`, `people_characters` and `judged_characters`,
        `pairs` that overlap; then each estimate under its name, `<name>_low`, `<name>_high`, `<name>_n`,
        `<name>_method`."""
        heads = [{"judge": one.judge, "kind": one.kind, "rater": one.rater} | dict(one.counts) for one in self.lines]
        return pd.DataFrame([head | flat(one.estimates) for head, one in zip(heads, self.lines, strict=True)])

    def estimate(self, name: str, judge: str | None = None, rater: str | None = None) -> Estimate:
        """One estimate by its name; judge and rater may be left out where there is one. Raises `InputError` otherwise."""
        return estimate_of(self.lines, name, judge, rater)

    def __repr__(self) -> str:
        return f"SpanAgreement({self.metric!r}, {count(len(self.lines), 'line')}, {len(self.missed):,} missed)"

    def __str__(self) -> str:
        headings, lines = self._compact()
        table = pd.DataFrame(lines, columns=headings).to_string(index=False)
        return "\n".join([table, *self.notes])

    def _repr_html_(self) -> str:
        headings, lines = self._compact()
        shown = html_table(headings, lines, self.notes, start=("judge", "kind", "rater"))
        for rows, what, name in (
            (self.missed, "stretches of people that a judge did not mark", "missed"),
            (self.extra, "stretches of a judge that people did not mark", "extra"),
        ):
            some = rows[["id", "judge", "rater", "quote", "type", "reason"]].head(10)
            note = f"{len(some)} of {len(rows):,} {what} (.{name})."
            names = [str(one) for one in some.columns]
            shown += html_table(names, some.to_numpy().tolist(), [note], start=names) if len(some) else ""
        return shown

    def _compact(self) -> tuple[list[str], list[list[str]]]:
        headings = ["judge", "kind", "rater", "answers", *(name.replace("_", " ") for name in _SHOWN)]
        lines = [
            [one.judge, one.kind, one.rater, f"{one.counts['answers']:,}", *(short(one.estimates[name]) for name in _SHOWN)]
            for one in self.lines
        ]  # fmt: skip
        return headings, lines


def span_agreement(
    results: Results, labels: pd.DataFrame, metric: str = "hallucination", *, confidence: float = 0.95
) -> SpanAgreement:
    """How far the stretches of answers that each judge marks as unsupported are those that people mark.

    `labels` is what :func:`load_span_labels` gives. What is compared are the answers that the rater read (a row without a
    stretch: nothing to mark) and of which the judge has sentences; a judge marks the spans of the sentences it calls
    unsupported, a panel nothing in one it left undecided. Of repeats the first counts.

    Estimates, each with its interval by the results' `group`: precision, recall and f1
    of answers (`answer_precision`, ...: an answer is right where both mark anything in it);
    of stretches (`span_...`: one is found where the other side marked at least one of its characters, whatever the rest);
    of characters (`character_...`, over all answers together, every character in any stretch once, spaces too).
    `type_raw_agreement`, `type_kappa` and `type_ac1`: of every two stretches that overlap, whether both are intrinsic or
    extrinsic (those with another type, or none, are left out).

    Several raters have a line each, and lines of `kind` "person" hold each beside the others on the answers both read: what
    people reach. What does not exist has the value None and says why.

    Raises `InputError` where the metric is not there or no row of it holds sentences, a column is lacking, no label is of
    an answer in the results, or a label is of no stretch of its answer (see :func:`load_span_labels`).

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> from jurimetrics.calibrate.part_labels import load_span_labels
    >>> records = [{"id": 1, "answer": "Madrid is in Spain. It has 9 rivers.", "contexts": ["Madrid is in Spain."]},
    ...            {"id": 2, "answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}]
    >>> results = evaluate(records, ["hallucination"], BaselineJudge(), store=None)
    >>> people = load_span_labels([{"id": 1, "quote": "9 rivers", "type": "extrinsic"}, {"id": 2}])
    >>> found = span_agreement(results, people)
    >>> found.frame[["answer_recall", "span_recall", "character_recall", "character_precision"]].values.tolist()
    [[1.0, 1.0, 1.0, 0.5]]
    """
    records = require_results(results).records
    keys = zip(records["id"], records["variant"], strict=True)
    answers = {key: text if isinstance(text, str) else None for key, text in zip(keys, records["answer"], strict=True)}
    scores = results.scores
    groups: dict[Key, str] = dict(zip(zip(scores["id"], scores["variant"], strict=True), scores["group"], strict=True))
    judges = marks_of_judges(results, metric, answers)
    people, unmatched = marks_of_people(labels, answers)
    how = _How(groups, answers, confidence)
    sides = [(name, kind_of(name, results.settings), one, rater) for name, one in judges.items() for rater in people]
    sides += [(one, "person", Marker(people[one], ()), other) for one, other in permutations(people, 2)]
    made = [_compare(name, kind, one, rater, people[rater], how) for name, kind, one, rater in sides]
    shown = [one for one in made if one.line.kind != "person"]
    notes = tuple(_notes(made, shown, people, unmatched, int(scores["repeat"].max()) + 1))
    return SpanAgreement(
        metric, tuple(one.line for one in made),
        pd.DataFrame([row for one in shown for row in one.matches], columns=_MATCHES),
        pd.DataFrame([row for one in shown for row in one.missed], columns=_ALONE),
        pd.DataFrame([row for one in shown for row in one.extra], columns=_ALONE), unmatched, notes,
    )  # fmt: skip


class _How(NamedTuple):
    groups: Mapping[Key, str]
    answers: Mapping[Key, str | None]
    level: float


class _Compared(NamedTuple):
    line: SpanLine
    matches: list[dict[str, Any]]
    missed: list[dict[str, Any]]
    extra: list[dict[str, Any]]


# Of one answer: the judge's stretches and how many were found, the rater's and how many were found, the characters of
# both and those in common.
_COLUMNS = 7


def _compare(name: str, kind: str, judge: Marker, rater: str, marked: Marked, how: _How) -> _Compared:
    matches: list[dict[str, Any]] = []
    missed: list[dict[str, Any]] = []
    extra: list[dict[str, Any]] = []
    keys = [key for key in marked if key in judge.marked]
    counts = []
    for key in keys:
        mine, theirs, answer = judge.marked[key], marked[key], how.answers[key] or ""
        head = {"id": key[0], "variant": key[1], "group": how.groups[key], "judge": name, "rater": rater}
        pairs = [(one, other) for one in mine for other in theirs if _overlap(one, other)]
        matches += [head | _pair(one, other, answer) for one, other in pairs]
        lone = [one for one in mine if not any(_overlap(one, other) for other in theirs)]
        lost = [one for one in theirs if not any(_overlap(one, other) for other in mine)]
        extra += [head | _row(one, answer) for one in lone]
        missed += [head | _row(one, answer) for one in lost]
        spread, wide = characters(mine), characters(theirs)
        sizes = [sum(end - start for start, end in places) for places in (spread, wide)]
        found = [len(mine), len(mine) - len(lone), len(theirs), len(theirs) - len(lost)]
        counts.append([*found, *sizes, common(spread, wide)])
    table = np.array(counts, dtype=np.float64).reshape(len(counts), _COLUMNS)
    nothing = "" if judge.marked else f"the rows of {name} hold no sentences"
    groups = [how.groups[key] for key in keys]
    estimates = _estimates(table, groups, nothing, how.level) | _types(matches, nothing, how.level)
    told = _told(table, groups, len(set(marked) & set(judge.silent)), len(matches))
    return _Compared(SpanLine(name, kind, rater, told, estimates), matches, missed, extra)


def _overlap(one: Stretch, other: Stretch) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))


def _row(one: Stretch, answer: str) -> dict[str, Any]:
    return {
        "start": one.start, "end": one.end, "quote": answer[one.start : one.end], "type": one.type,
        "whole_sentence": one.whole, "reason": one.why,
    }  # fmt: skip


def _pair(one: Stretch, other: Stretch, answer: str) -> dict[str, Any]:
    theirs = {f"people_{name}": value for name, value in _row(other, answer).items()}
    return {**_row(one, answer), **theirs, "overlap": _overlap(one, other), "rationale": other.why}


def _told(table: Any, groups: Sequence[str], missing: int, pairs: int) -> dict[str, int]:
    mine, _, theirs, _, my_characters, their_characters, _ = table.T.astype(int)
    return {
        "answers": len(table), "missing": missing, "groups": len(set(groups)),
        "people_answers": int((theirs > 0).sum()), "judged_answers": int((mine > 0).sum()),
        "people_spans": int(theirs.sum()), "judged_spans": int(mine.sum()),
        "people_characters": int(their_characters.sum()), "judged_characters": int(my_characters.sum()), "pairs": pairs,
    }  # fmt: skip


def _estimates(table: Any, groups: Sequence[str], nothing: str, level: float) -> dict[str, Estimate]:
    mine, mine_found, theirs, theirs_found, my_characters, their_characters, shared = table.T
    judge = nothing or "the judge marked nothing there"
    rater = nothing or "the rater marked nothing there"
    either = nothing or "precision or recall is undefined"
    both = ((mine > 0) & (theirs > 0)).astype(np.float64)
    found: dict[str, Estimate] = {}
    for name, said, of_judge, of_rater in (
        ("answer", "answers", (both, (mine > 0).astype(np.float64)), (both, (theirs > 0).astype(np.float64))),
        ("span", "stretches", (mine_found, mine), (theirs_found, theirs)),
        ("character", "characters", (shared, my_characters), (shared, their_characters)),
    ):
        for kind, (above, below), why in (("precision", of_judge, judge), ("recall", of_rater, rater)):
            found[f"{name}_{kind}"] = _share_or_ratio(name, above, below, groups, f"{kind} of {said}", why, level)
        found[f"{name}_f1"] = harmonic(of_judge, of_rater, groups, f"F1 of {said}", either, level)
    return found


def _share_or_ratio(
    name: str, above: Any, below: Any, groups: Sequence[str], said: str, why: str, level: float
) -> Estimate:
    if name == "character":
        return ratio(above, below, groups, said, why, level)
    hits, of = [], []
    for right, total, group in zip(above.astype(int), below.astype(int), groups, strict=True):
        hits += [True] * right + [False] * (total - right)
        of += [group] * total
    return share(hits, of, said, why, level)


def _types(matches: Sequence[Mapping[str, Any]], nothing: str, level: float) -> dict[str, Estimate]:
    typed = [one for one in matches if one["type"] in TYPES and one["people_type"] in TYPES]
    sides = [[float(one[name] == TYPES[1]) for one in typed] for name in ("type", "people_type")]
    why = nothing or "no two stretches that overlap are both intrinsic or extrinsic"
    made = chance_corrected(sides[0], sides[1], (0.0, 1.0), [one["group"] for one in typed], why, level)
    return {f"type_{name}": one for name, one in made.items()}


def _notes(
    made: Sequence[_Compared], shown: Sequence[_Compared], people: Mapping[str, Marked], unmatched: pd.DataFrame,
    repeats: int,
) -> Iterator[str]:  # fmt: skip
    yield "A stretch is found where the other side marked at least one of its characters."
    if silent := sorted({one.line.judge for one in shown if not one.line.counts["answers"]}):
        yield f"No answer to compare for {', '.join(silent)}."
    if whole := sum(row["whole_sentence"] for one in shown for row in (*one.matches, *one.extra)):
        yield f"{count(whole, 'time')} a whole sentence is marked for words of a judge that do not stand in it."
    if repeats > 1:
        yield f"Of {repeats} repeats the first with sentences is compared."
    if missing := sum(one.line.counts["missing"] for one in made):
        yield f"{count(missing, 'time')} a judge's row says nothing of a labelled answer (failed, or not applicable)."
    yield "The figures describe the labelled answers, and others as far as those were drawn at random."
    if len(people) > 1:
        yield "Intervals are conditional on these raters; lines of kind person hold raters beside each other."
    if len(unmatched):
        yield f"{count(len(unmatched), 'label')} of answers that are not in the results (see unmatched)."
