"""How far judges find the claims that people find in answers, and how far they agree on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics.calibrate.claim_lists import Judged, Key, Lists, Said, claims_of_judges, claims_of_people
from jurimetrics.calibrate.claim_matching import THRESHOLD, Similarity, match_claims, similarities
from jurimetrics.calibrate.part_estimates import (
    chance_corrected,
    estimate_of,
    flat,
    kind_of,
    line_of,
    share,
    short,
)
from jurimetrics.calibrate.part_labels import VERDICTS
from jurimetrics.display import count, html_table
from jurimetrics.stats.estimate import Estimate

if TYPE_CHECKING:
    from jurimetrics.results import Results

_SHOWN = ("recall", "precision", "raw_agreement", "kappa", "ac1", "false_pass_rate", "false_fail_rate")
_STEPS = {name: float(at) for at, name in enumerate(VERDICTS[:3])}
_MATCHES = ["id", "variant", "group", "judge", "rater", "claim", "people_claim", "similarity", "by", "verdict",
            "people_verdict", "kind", "undecided", "reason", "rationale"]  # fmt: skip
_MISSED = ["id", "variant", "group", "judge", "rater", "claim", "verdict", "nearest", "similarity"]


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One judge beside one rater, or (`kind` "person") one rater beside another: counts, estimates, the table of
    verdicts (rows: the judge's, columns: the rater's)."""

    judge: str
    kind: str
    rater: str
    counts: Mapping[str, int]
    estimates: Mapping[str, Estimate]
    confusion: pd.DataFrame


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClaimAgreement:
    """Judges held against people claim by claim: one line for each judge and rater, and for each two raters.

    `matches`: one row for each claim of a judge that is one of a rater's: `id`, `variant`, `group`, `judge`, `rater`,
    `claim` (the judge's) and `people_claim`, their `similarity` (0 to 1) and whether it was seen `by` "text" or "words",
    `verdict` and `people_verdict` (missing: not rated), `kind` ("agree", "false pass", "false fail", "differ": both not
    supported but for another reason; "" where one is missing), `undecided`, `reason`, `rationale`.
    `missed`: the raters' claims that the judge has not: `claim`, `verdict` of people, the judge's claim that is `nearest`
    ("": it has none) and its `similarity`. `extra`: the judge's claims that the rater has not, in the same columns.
    `unmatched`: labels of answers that are not in the results. `notes`: what must be read beside the figures.
    """

    metric: str
    against: str
    threshold: float
    lines: tuple[ClaimLine, ...]
    matches: pd.DataFrame
    missed: pd.DataFrame
    extra: pd.DataFrame
    unmatched: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each line. Columns: `judge`, `kind` ("judge", "panel", "baseline", "person"), `rater`; `answers`
        compared, `missing` answers of which the judge gave no list of claims, `groups`; `people` and `judged`, how many
        claims each side has there, `matched` of them, `n` of those with both verdicts, `false_passes`, `false_fails`,
        `undecided`; then each estimate under its name, `<name>_low`, `<name>_high`, `<name>_n`, `<name>_method`."""
        heads = [{"judge": one.judge, "kind": one.kind, "rater": one.rater} | dict(one.counts) for one in self.lines]
        return pd.DataFrame([head | flat(one.estimates) for head, one in zip(heads, self.lines, strict=True)])

    def estimate(self, name: str, judge: str | None = None, rater: str | None = None) -> Estimate:
        """One estimate by its name; judge and rater may be left out where there is one. Raises `InputError` otherwise."""
        return estimate_of(self.lines, name, judge, rater)

    def confusion(self, judge: str | None = None, rater: str | None = None) -> pd.DataFrame:
        """Counts of matched claims by the judge's verdict (rows) and the rater's (columns). Raises as `estimate`."""
        return line_of(self.lines, judge, rater).confusion.copy()

    def __repr__(self) -> str:
        return f"ClaimAgreement({self.metric!r}, {count(len(self.lines), 'line')}, {len(self.missed):,} missed)"

    def __str__(self) -> str:
        headings, lines = self._compact()
        table = pd.DataFrame(lines, columns=headings).to_string(index=False)
        return "\n".join([table, *self.notes])

    def _repr_html_(self) -> str:
        headings, lines = self._compact()
        wrong = self.matches[self.matches["kind"].isin(["false pass", "false fail"])]
        below = (
            f"{min(10, len(wrong))} of {count(len(wrong), 'claim')} that judge and people pass differently (.matches)."
        )
        wrong = wrong[["kind", "id", "judge", "rater", "claim", "people_claim", "reason"]].head(10)
        lost = self.missed[["id", "judge", "rater", "claim", "nearest"]].head(10)
        beside = f"{len(lost)} of {count(len(self.missed), 'claim')} of people that a judge did not find (.missed)."
        shown = html_table(headings, lines, self.notes, start=("judge", "kind", "rater"))
        for rows, note in ((wrong, below), (lost, beside)):
            names = [str(name) for name in rows.columns]
            cells = rows.fillna("").to_numpy().tolist()
            shown += html_table(names, cells, [note], start=names) if cells else ""
        return shown

    def _compact(self) -> tuple[list[str], list[list[str]]]:
        headings = ["judge", "kind", "rater", "answers", "matched", *(name.replace("_", " ") for name in _SHOWN)]
        lines = [
            [one.judge, one.kind, one.rater, f"{one.counts['answers']:,}", f"{one.counts['matched']:,}",
             *(short(one.estimates[name]) for name in _SHOWN)]
            for one in self.lines
        ]  # fmt: skip
        return headings, lines


def claim_agreement(
    results: Results,
    labels: pd.DataFrame,
    metric: str = "faithfulness",
    *,
    against: str | None = None,
    threshold: float = THRESHOLD,
    similarity: Similarity | None = None,
    confidence: float = 0.95,
) -> ClaimAgreement:
    """Which of the claims that people find in answers each judge finds too, and how far both agree on those.

    `labels` is what :func:`load_claim_labels` gives. In each answer the claims of the judge and of one rater are paired one
    to one: by their text, then by the words they share, at `threshold` or above (`match_claims`; `similarity` of two texts
    takes the place of word overlap). What is compared are the answers that the rater labelled and of which the judge has
    a list of claims, an empty one too. Of repeats the first with claims counts. `against`: "contexts", "reference" or
    "answer", where the metric checks claims against several.

    Estimates, each with its interval by the results' `group`: `recall` of extraction, the share of the rater's claims that
    the judge has, and `precision`, the share of the judge's claims that the rater has. On pairs with both verdicts, as
    supported or not (contradicted, unknown and what a panel left undecided are not): `raw_agreement`, `kappa`, `ac1`;
    `false_pass_rate`, the share the judge calls supported of what people do not, and `false_fail_rate`, the reverse;
    `raw_agreement_three`, `kappa_three` and `ac1_three` on supported, contradicted and unknown, where people said which.
    They are of matched claims alone: read them beside recall.

    Several raters have a line each, and lines of `kind` "person" hold each beside the others on the answers both labelled:
    what people reach. What does not exist has the value None and says why.

    Raises `InputError` where the metric is not there or no row of it holds claims, a column is lacking, no label is of an
    answer in the results, or the threshold lies outside 0 to 1.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> from jurimetrics.calibrate.part_labels import load_claim_labels
    >>> record = {"id": 1, "answer": "Madrid is in Spain. It has 9 rivers.", "contexts": ["Madrid is in Spain."]}
    >>> people = [{"id": 1, "claim": "Madrid lies in Spain", "label": "supported"},
    ...           {"id": 1, "claim": "There are nine large rivers", "label": "unknown"}]
    >>> results = evaluate([record], ["faithfulness"], BaselineJudge(), store=None)
    >>> found = claim_agreement(results, load_claim_labels(people))
    >>> found.frame[["people", "judged", "matched", "recall", "precision"]].values.tolist()
    [[2.0, 2.0, 1.0, 0.5, 0.5]]
    >>> found.missed[["claim", "nearest"]].values.tolist()
    [['There are nine large rivers', 'It has 9 rivers.']]
    """
    judges, side = claims_of_judges(results, metric, against)
    scores = results.scores
    groups: dict[Key, str] = dict(zip(zip(scores["id"], scores["variant"], strict=True), scores["group"], strict=True))
    people, unmatched = claims_of_people(labels, groups)
    match_claims([], [], threshold)
    how = _How(groups, threshold, similarity, confidence)
    sides = [(name, kind_of(name, results.settings), one, rater) for name, one in judges.items() for rater in people]
    sides += [(one, "person", Judged(people[one], (), frozenset()), other) for one, other in permutations(people, 2)]
    made = [_compare(name, kind, one, rater, people[rater], how) for name, kind, one, rater in sides]
    shown = [one for one in made if one.line.kind != "person"]
    notes = tuple(_notes(judges, people, unmatched, made, int(scores["repeat"].max()) + 1))
    return ClaimAgreement(
        metric, side, threshold, tuple(one.line for one in made),
        pd.DataFrame([row for one in shown for row in one.matches], columns=_MATCHES),
        pd.DataFrame([row for one in shown for row in one.missed], columns=_MISSED),
        pd.DataFrame([row for one in shown for row in one.extra], columns=_MISSED), unmatched, notes,
    )  # fmt: skip


class _How(NamedTuple):
    groups: Mapping[Key, str]
    threshold: float
    similarity: Similarity | None
    level: float


class _Compared(NamedTuple):
    line: ClaimLine
    matches: list[dict[str, Any]]
    missed: list[dict[str, Any]]
    extra: list[dict[str, Any]]


def _compare(name: str, kind: str, judged: Judged, rater: str, lists: Lists, how: _How) -> _Compared:
    matches: list[dict[str, Any]] = []
    missed: list[dict[str, Any]] = []
    extra: list[dict[str, Any]] = []
    keys = [key for key in lists if key in judged.lists]
    for key in keys:
        mine, theirs = judged.lists[key], lists[key]
        head = {"id": key[0], "variant": key[1], "group": how.groups[key], "judge": name, "rater": rater}
        pairs = match_claims([one.claim for one in mine], [one.claim for one in theirs], how.threshold, how.similarity)
        matches += [head | _match(mine[at], theirs[to], like, by) for at, to, like, by in pairs]
        extra += _alone(head, mine, theirs, {one.first for one in pairs}, how)
        missed += _alone(head, theirs, mine, {one.second for one in pairs}, how)
    compared = [one for one in matches if one["kind"]]
    counts = {
        "answers": len(keys),
        "missing": len(set(lists) & set(judged.silent)),
        "groups": len({how.groups[key] for key in keys}),
        "people": len(matches) + len(missed),
        "judged": len(matches) + len(extra),
        "matched": len(matches),
        "n": len(compared),
        "false_passes": sum(one["kind"] == "false pass" for one in compared),
        "false_fails": sum(one["kind"] == "false fail" for one in compared),
        "undecided": sum(one["undecided"] for one in compared),
    }
    nothing = "" if judged.lists else f"the rows of {name} hold no claims"
    estimates = _extraction(matches, missed, extra, nothing, how.level) | _verdicts(compared, nothing, how.level)
    return _Compared(ClaimLine(name, kind, rater, counts, estimates, _table(compared)), matches, missed, extra)


def _match(mine: Said, theirs: Said, similarity: float, by: str) -> dict[str, Any]:
    passes = (mine.verdict == "supported", theirs.verdict == "supported")
    if mine.verdict is None or theirs.verdict is None:
        kind = ""
    elif passes[0] != passes[1]:
        kind = "false pass" if passes[0] else "false fail"
    else:
        kind = (
            "agree" if mine.verdict == theirs.verdict or "unsupported" in (mine.verdict, theirs.verdict) else "differ"
        )
    return {
        "claim": mine.claim, "people_claim": theirs.claim, "similarity": similarity, "by": by, "verdict": mine.verdict,
        "people_verdict": theirs.verdict, "kind": kind, "undecided": mine.undecided, "reason": mine.reason,
        "rationale": theirs.reason,
    }  # fmt: skip


def _alone(
    head: Mapping[str, Any], mine: Sequence[Said], theirs: Sequence[Said], found: set[int], how: _How
) -> list[dict[str, Any]]:
    """The claims of `mine` that were not found among `theirs`, each with the nearest of those."""
    left = [one for at, one in enumerate(mine) if at not in found]
    if not left:
        return []
    rows = []
    texts = [one.claim for one in theirs]
    like = similarities([one.claim for one in left], texts, how.similarity) if texts else np.zeros((len(left), 1))
    for one, each in zip(left, like, strict=True):
        best = int(each.argmax())
        near = {"nearest": texts[best] if texts else "", "similarity": float(each[best]) if texts else np.nan}
        rows.append({**head, "claim": one.claim, "verdict": one.verdict, **near})
    return rows


def _extraction(
    matches: list[dict[str, Any]], missed: list[dict[str, Any]], extra: list[dict[str, Any]], nothing: str, level: float
) -> dict[str, Estimate]:
    found = {}
    for name, alone, whose in (("recall", missed, "the rater"), ("precision", extra, "the judge")):
        hits = [True] * len(matches) + [False] * len(alone)
        groups = [one["group"] for one in (*matches, *alone)]
        found[name] = share(hits, groups, f"{name} of claims", nothing or f"{whose} has no claims there", level)
    return found


def _verdicts(compared: list[dict[str, Any]], nothing: str, level: float) -> dict[str, Estimate]:
    why = nothing or "no matched claim has both verdicts"
    groups = [one["group"] for one in compared]
    sides = [[float(one[name] == "supported") for one in compared] for name in ("verdict", "people_verdict")]
    found = chance_corrected(sides[0], sides[1], (0.0, 1.0), groups, why, level)
    for name, kind, people in (("false_pass_rate", "false pass", 0.0), ("false_fail_rate", "false fail", 1.0)):
        of = [one for one, said in zip(compared, sides[1], strict=True) if said == people]
        lacking = nothing or f"the rater supports {'no' if people else 'every'} matched claim"
        hits = [one["kind"] == kind for one in of]
        found[name] = share(hits, [one["group"] for one in of], name.replace("_", " "), lacking, level)
    said = {one[name] for one in compared for name in ("verdict", "people_verdict")}
    # Left out, the claims that were failed without saying which would leave only the supported ones.
    three = [] if "unsupported" in said else compared
    steps = [[_STEPS[one[name]] for one in three] for name in ("verdict", "people_verdict")]
    if compared and not three:
        why = "people gave pass and fail, not the three verdicts"
    more = chance_corrected(steps[0], steps[1], tuple(_STEPS.values()), groups if three else [], why, level)
    return found | {f"{name}_three": one for name, one in more.items()}


def _table(compared: list[dict[str, Any]]) -> pd.DataFrame:
    sides = [[one[name] for one in compared] for name in ("verdict", "people_verdict")]
    # Only who gave pass and fail says "unsupported".
    steps = [VERDICTS if "unsupported" in side else VERDICTS[:3] for side in sides]
    table = pd.DataFrame(0, index=pd.Index(steps[0], name="judge"), columns=pd.Index(steps[1], name="people"))
    for mine, theirs in zip(*sides, strict=True):
        table.loc[mine, theirs] += 1
    return table


def _notes(
    judges: Mapping[str, Judged], people: Mapping[str, Lists], unmatched: pd.DataFrame, made: Sequence[_Compared],
    repeats: int,
) -> Iterator[str]:  # fmt: skip
    yield "Precision counts on the rater having listed every claim of an answer."
    if silent := [name for name, one in judges.items() if not one.lists]:
        yield f"No claims in the rows of {', '.join(silent)}: scored elsewhere, or a panel that votes on scores."
    shared = {name for one in judges.values() for name in one.extractors}
    if shared and len(judges) > 1:
        yield f"The judges share the claims of {', '.join(sorted(shared))}, so recall and precision are that extractor's."
    if repeats > 1:
        yield f"Of {repeats} repeats the verdicts of the first with claims are compared."
    if missing := sum(one.line.counts["missing"] for one in made):
        yield f"{count(missing, 'time')} a judge gave no claims of a labelled answer (failed, or not applicable)."
    yield "The figures describe the labelled answers, and others as far as those were drawn at random."
    if len(people) > 1:
        yield "Intervals are conditional on these raters; lines of kind person hold raters beside each other."
    if len(unmatched):
        yield f"{count(len(unmatched), 'label')} of answers that are not in the results (see unmatched)."
