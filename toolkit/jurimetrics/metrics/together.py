"""Metrics over the answers of several variants to one question: scored side by side, and preferred pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.metrics.grounding import Refusals
from jurimetrics.metrics.metric import Ask, Metric, Score, metric
from jurimetrics.records import Record
from jurimetrics.tasks.prefer import PreferOne, Preferred
from jurimetrics.tasks.task import fingerprint
from jurimetrics.tasks.together import ScoreTogether, TogetherScore
from jurimetrics.text import is_blank

BLANK = "the answer is blank"
Scores = dict[str, Score]


def _non_answer(refusals: Refusals, worst: float) -> Score:
    if refusals == "worst":
        return Score(worst, f"{BLANK}; counted as the worst value", flags=("no_claims",))
    return Score.undefined(BLANK, flags=("no_claims",))


def _question(records: Sequence[Record]) -> str | None:
    """The one question that all records ask, None where they ask different ones."""
    questions = {(record.question or "").strip() for record in records}
    return min(record.question or "" for record in records) if len(questions) == 1 else None


def _reference(records: Sequence[Record]) -> str | None:
    """The reference where all records have the same one: it is shown beside all answers or beside none."""
    references = {record.reference if record.has("reference") else None for record in records}
    return references.pop() if len(references) == 1 else None


def _all_not_applicable(records: Sequence[Record], reason: str) -> Scores:
    return {record.variant: Score.not_applicable(reason) for record in records}


@dataclass(frozen=True, slots=True)
class _Permutation:
    """The variants in the order in which one prompt showed their answers, and what each got there."""

    shown: tuple[str, ...]
    scores: Mapping[str, TogetherScore]

    @property
    def blocks(self) -> list[list[str]]:
        """Who stood in which prompt, in the order shown."""
        places = sorted(
            (place.block, place.position, name) for name, one in self.scores.items() for place in one.places
        )
        made: dict[int, list[str]] = {}
        for block, _, name in places:
            made.setdefault(block, []).append(name)
        return list(made.values())

    def details(self) -> dict[str, Any]:
        """As the details of a row hold it."""
        kept = {"shown": list(self.shown), "scores": {name: one.value for name, one in sorted(self.scores.items())}}
        return kept | ({"blocks": self.blocks} if len(self.blocks) > 1 else {})


def _orders(record_id: str, variants: Sequence[str], seed: int, count: int) -> list[tuple[str, ...]]:
    """`count` orders, each followed by its reverse; fewer where there are not so many. The names of the variants, the
    id and the seed decide, never the order of the records."""
    wanted = min(count // 2, max(1, math.factorial(len(variants)) // 2))
    orders: dict[tuple[str, ...], None] = {}
    draw = 0
    while len(orders) < 2 * wanted:
        order = sorted(variants, key=lambda name: fingerprint([seed, draw, record_id, name]))
        orders |= {tuple(order): None, tuple(reversed(order)): None}
        draw += 1
    return list(orders)


def _order_effect(permutations: Sequence[_Permutation]) -> float:
    """How far the scores of an answer in an order and in its reverse lie apart, in points, on average."""
    pairs = zip(permutations[::2], permutations[1::2], strict=True)
    return _mean([abs(one.scores[name].value - other.scores[name].value) for one, other in pairs for name in one.shown])


def _mean_by_position(permutations: Sequence[_Permutation]) -> list[float]:
    """The mean of the scores given at each place of a prompt, the first place first."""
    given: dict[int, list[float]] = {}
    for permutation in permutations:
        for place in (place for one in permutation.scores.values() for place in one.places):
            given.setdefault(place.position, []).append(place.score)
    return [_mean(scores) for _, scores in sorted(given.items())]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _consensus_of(variant: str, permutations: Sequence[_Permutation]) -> Score:
    own = [permutation.scores[variant] for permutation in permutations]
    value = _mean([one.value for one in own])
    return Score(value, min(own, key=lambda one: abs(one.value - value)).note, {"notes": [one.note for one in own]})


@metric(
    needs=("question", "answer"), range=(1, 5), higher_is_better=True, threshold=3, together=True, asks=(ScoreTogether,)
)
async def consensus(
    records: Sequence[Record], ask: Ask, *, seed: int = 0, orders: int = 2, refusals: Refusals = "exclude"
) -> Scores:
    """Every variant's answer scored 1 to 5 by a judge that sees all variants' answers to the question at once (source:
    GitLab, Centralized Evaluation Framework, "consensus filtering").

    The answers are unnamed, and shuffled by `seed` and the record's id. They are shown in an order and in its reverse
    (`orders=4`: in two orders and their reverses, and so on, while there are different ones); the score is the mean, so
    it can lie between two levels. More than five answers, or more than fit, are shown in balanced blocks whose effects
    are taken out. The reference is shown where all variants have the same one; contexts never, they may differ.

    Scores depend on who is in the set, which `details["variants"]` names; a variant without an answer is not in it.
    Details: the `permutations` (who stood where, every score; their `blocks` if there were any), the judge's `notes` on
    this answer, `order_effect` (mean |score in an order - score in its reverse| over all answers, in points),
    `mean_by_position` (empty for a panel whose members saw different blocks; first and last place held the same answers),
    `identical_to` (variants that gave the same text, all the same shown and scored each for itself).

    Not applicable where only one variant has an answer or the variants were asked different questions. A blank answer is
    undefined and not shown (`refusals="worst"` counts 1).

    >>> consensus.range, consensus.threshold, consensus.using(orders=4).name
    ((1.0, 5.0), 3.0, 'consensus(orders=4)')
    """
    if orders < 2 or orders % 2:
        raise InputError(f"consensus: orders come with their reverses, so their number is even, not {orders!r}")
    settled = {record.variant: _non_answer(refusals, 1.0) for record in records if is_blank(record.answer or "")}
    shown = sorted((record for record in records if record.variant not in settled), key=lambda record: record.variant)
    if len(shown) < 2:
        return settled | _all_not_applicable(shown, "there is no other variant's answer to compare with")
    question = _question(shown)
    if question is None:
        return settled | _all_not_applicable(shown, "the variants were asked different questions")
    answers = {record.variant: record.answer or "" for record in shown}
    permutations = []
    for order in _orders(shown[0].id, tuple(answers), seed, orders):
        scores = await ask(ScoreTogether(question, tuple(answers[name] for name in order), _reference(shown)))
        permutations.append(_Permutation(order, dict(zip(order, scores, strict=True))))
    common = {
        "variants": list(answers),
        "seed": seed,
        "permutations": [permutation.details() for permutation in permutations],
        "order_effect": _order_effect(permutations),
        "mean_by_position": _mean_by_position(permutations),
    }
    for name in answers:
        one = _consensus_of(name, permutations)
        same = {"identical_to": [other for other in answers if other != name and answers[other] == answers[name]]}
        settled[name] = replace(one, details={**common, **one.details, **(same if same["identical_to"] else {})})
    return settled


# --- pair by pair ---


_WORTH = {"first": 1.0, "tie": 0.5, "second": 0.0}


def _outcome(one: float, other: float) -> str:
    """What two orders say together, of the answer that got `one` and `other` there."""
    if one == other:
        return {1.0: "consistent win", 0.0: "consistent loss", 0.5: "true tie"}[one]
    return "half tie" if 0.5 in (one, other) else "order flip"


def _seen(first: str, second: str, preferred: Preferred) -> dict[str, Any]:
    """One order as the details hold it."""
    winner = {"first": first, "second": second, "tie": None}[preferred.winner]
    findings = {first: preferred.first_findings, second: preferred.second_findings}
    return {"shown": [first, second], "tie": preferred.winner == "tie", "winner": winner, "findings": findings}


def _pair(a: str, b: str, a_first: Preferred, b_first: Preferred) -> Scores:
    """The scores of both variants from both orders."""
    seen = [_seen(a, b, a_first), _seen(b, a, b_first)]
    of_a = (_WORTH[a_first.winner], 1 - _WORTH[b_first.winner])
    made = {}
    for name, opponent, (one, other) in ((a, b, of_a), (b, a, (1 - of_a[0], 1 - of_a[1]))):
        outcome = _outcome(one, other)
        details = {
            "opponent": opponent,
            "outcome": outcome,
            "orders": seen,
            "first_shown_picked": sum(preferred.winner == "first" for preferred in (a_first, b_first)),
        }
        findings = a_first.first_findings if name == a else b_first.first_findings
        made[name] = Score((one + other) / 2, f"{outcome} against {opponent}: {findings}", details)
    return made


def _beside_blank(a: str, b: str, blank: Sequence[str], refusals: Refusals) -> Scores:
    """The scores where an answer is blank: no values, unless refusals count and there is another answer to win."""
    counted: Refusals = refusals if len(blank) == 1 else "exclude"
    other = "the other answer is blank"
    full = Score(1.0, f"{other}; counted as a win") if counted == "worst" else Score.undefined(other)
    return {name: _non_answer(counted, 0.0) if name in blank else full for name in (a, b)}


async def _prefer(records: Sequence[Record], ask: Ask, *, a: str, b: str, refusals: Refusals = "exclude") -> Scores:
    found = {record.variant: record for record in records}
    if set(found) != {a, b}:
        missing = " and ".join(repr(name) for name in (a, b) if name not in found)
        return _all_not_applicable(records, f"there is no answer of {missing} to compare with")
    blank = [name for name in (a, b) if is_blank(found[name].answer or "")]
    if blank:
        return _beside_blank(a, b, blank, refusals)
    question = _question(records)
    if question is None:
        return _all_not_applicable(records, "the variants were asked different questions")
    one, other, reference = found[a].answer or "", found[b].answer or "", _reference(records)
    a_first = await ask(PreferOne(question, one, other, reference))
    b_first = await ask(PreferOne(question, other, one, reference))
    return _pair(a, b, a_first, b_first)


def preference(a: str, b: str) -> Metric:
    """A metric: which of the answers of variants `a` and `b` the judge prefers, always asked in both orders.

    In each order a win is worth 1, a tie .5, a loss 0; the score is the mean of both, 0 to 1, higher is better, no
    threshold, and the two variants' scores add up to 1. A judge that always picks the first shown gives .5 to both.
    If one order fails, the pair has failed.

    One row for each of the two variants. Details: the `opponent`; the `outcome`, one of `consistent win`, `consistent
    loss`, `true tie` (both orders), `order flip` (the same place won twice), `half tie` (a tie and a win or loss); both
    `orders` with winner and findings; `first_shown_picked`, how often of 2 the first shown won (2 or 0 in an order flip:
    the judge goes by the place; Zheng et al. 2023, arXiv 2306.05685). The reference is shown where both have the same one.

    Rows of other variants are not applicable, and so is the row of one variant where the other has no answer. Where one
    answer is blank nothing is asked and both rows are undefined (`.using(refusals="worst")`: the blank one gets 0, the
    other 1). A panel votes order by order; where no winner has more than half of the votes, the pair is undefined.

    Raises `InputError` where the two are not the names of two different variants.

    >>> metric = preference("short", "long")
    >>> metric.name, metric.range, metric.variants
    ('preference(short,long)', (0.0, 1.0), ('short', 'long'))
    """
    for name in (a, b):
        if not isinstance(name, str):
            raise InputError(f"preference: a variant is called by its name, not {name!r}")
    if a == b:
        raise InputError(f"preference: {a!r} cannot be compared with itself")
    made = metric(
        needs=("question", "answer"),
        range=(0, 1),
        together=True,
        asks=(PreferOne,),
        levels=(0, 0.25, 0.5, 0.75, 1),
        name=f"preference({a},{b})",
    )(_prefer)
    return replace(made, options={"a": a, "b": b}, version=f"1+a={a},b={b}", variants=(a, b))
