"""How well the answer and the expected answer cover each other, fact by fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jurimetrics.metrics.grounding import (
    NO_CLAIMS,
    Refusals,
    no_claims,
    reasons,
    share,
    tally,
    undecided_bounds,
    verdicts_detail,
)
from jurimetrics.metrics.metric import Ask, Score, metric
from jurimetrics.records import Record
from jurimetrics.tasks.check import CheckClaims, Verdict
from jurimetrics.tasks.claims import Claim, ExtractClaims
from jurimetrics.text import is_blank

NO_FACTS = "the reference states no facts"
ENTAILMENT = {"supported": "entailed", "contradicted": "contradicted", "unknown": "neutral"}
Checked = tuple[Sequence[Claim], Sequence[Verdict]]


async def _claims_against_reference(record: Record, ask: Ask) -> Checked:
    claims = await ask(ExtractClaims(record.answer or "", record.question))
    if not claims:
        return (), ()
    texts = tuple(claim.text for claim in claims)
    return claims, await ask(CheckClaims(texts, (record.reference or "",), record.question))


async def _facts_against_answer(record: Record, ask: Ask) -> Checked:
    facts = await ask(ExtractClaims(record.reference or "", record.question))
    if not facts:
        return (), ()
    if is_blank(record.answer or ""):
        # Nothing can be entailed by nothing; a judge shown an empty text imagines one.
        return facts, [Verdict(fact.text, "unknown", "the answer is blank") for fact in facts]
    texts = tuple(fact.text for fact in facts)
    return facts, await ask(CheckClaims(texts, (record.answer or "",), record.question))


def _correctness(claims: Sequence[Claim], verdicts: Sequence[Verdict], refusals: Refusals) -> Score:
    if not claims:
        return no_claims(refusals, 0.0)
    labels = [verdict.label for verdict in verdicts]
    details = {"verdicts": verdicts_detail(verdicts, claims), "contradicted_share": _contradicted(labels)}
    bounds = undecided_bounds(verdicts, share, ("supported", "contradicted"))
    return Score(share(verdicts), tally(labels, "claim") + reasons(verdicts, "supported"), details | bounds)


def _contradicted(labels: Sequence[str]) -> float | None:
    """What was flatly wrong of what could be decided: an unknown extra counts as an error in the precision, but not here."""
    decided = labels.count("supported") + labels.count("contradicted")
    return labels.count("contradicted") / decided if decided else None


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _completeness(facts: Sequence[Claim], verdicts: Sequence[Verdict]) -> Score:
    if not facts:
        return Score.undefined(NO_FACTS)
    labels = [verdict.label for verdict in verdicts]
    bounds = undecided_bounds(verdicts, share, ("supported", "contradicted"))
    said = tally([ENTAILMENT[label] for label in labels], "fact") + reasons(verdicts, "supported")
    return Score(share(verdicts), said, {"evaluated_facts": evaluated_facts(verdicts)} | bounds)


def evaluated_facts(verdicts: Sequence[Verdict]) -> list[Mapping[str, Any]]:
    """The facts of the reference in the shape of Pinecone's alignment endpoint, each with why."""
    return [
        {
            "fact": {"content": verdict.claim},
            "entailment": ENTAILMENT[verdict.label],
            "reason": verdict.reason,
            "undecided": verdict.undecided,
        }
        for verdict in verdicts
    ]


@metric(needs=("answer", "reference"), range=(0, 1), threshold=0.7, asks=(ExtractClaims, CheckClaims))
async def alignment_correctness(record: Record, ask: Ask, *, refusals: Refusals = "exclude") -> Score:
    """Precision: supported claims over claims of the answer, checked against the reference (source: Pinecone's alignment).

    Undefined where the answer makes no claims. The details hold the share of flatly contradicted claims among those
    decided, because an extra that the reference does not know counts as an error here.
    """
    claims, verdicts = await _claims_against_reference(record, ask)
    return _correctness(claims, verdicts, refusals)


@metric(needs=("answer", "reference"), range=(0, 1), threshold=0.7, asks=(ExtractClaims, CheckClaims))
async def alignment_completeness(record: Record, ask: Ask) -> Score:
    """Recall: supported facts over facts of the reference, checked against the answer (source: Pinecone's alignment).

    Undefined where the reference states no facts; 0 for an answer that says nothing.
    """
    score = _completeness(*await _facts_against_answer(record, ask))
    return replace(score, flags=("no_claims",)) if is_blank(record.answer or "") else score


@metric(needs=("answer", "reference"), range=(0, 1), threshold=0.7, asks=(ExtractClaims, CheckClaims))
async def alignment(record: Record, ask: Ask) -> Score:
    """The harmonic mean of `alignment_correctness` and `alignment_completeness`, 0 if both are 0 (source: Pinecone).

    It asks nothing that these two do not ask. 0 for an answer without claims; undefined where the reference states no
    facts.
    """
    facts, entailed = await _facts_against_answer(record, ask)
    if not facts:
        return Score.undefined(NO_FACTS)
    claims, verdicts = await _claims_against_reference(record, ask)
    facts_found = {"evaluated_facts": evaluated_facts(entailed)}
    recall = share(entailed)
    if not claims:
        return Score(0.0, NO_CLAIMS, {"completeness": recall} | facts_found, ("no_claims",))
    precision = share(verdicts)
    details = {
        "correctness": precision,
        "completeness": recall,
        "contradicted_share": _contradicted([verdict.label for verdict in verdicts]),
        "verdicts": verdicts_detail(verdicts, claims),
    }
    said = f"correctness {precision:.3g}, completeness {recall:.3g}"
    return Score(_harmonic(precision, recall), said, details | facts_found | _bounds(verdicts, entailed))


def _bounds(verdicts: Sequence[Verdict], entailed: Sequence[Verdict]) -> dict[str, Any]:
    """The harmonic mean with everything that a panel left undecided counted one way and the other; {} if nothing was."""
    sides = [undecided_bounds(side, share, ("supported", "contradicted")) for side in (verdicts, entailed)]
    if not any(sides):
        return {}
    low, high = (
        [side.get(end, share(counted)) for side, counted in zip(sides, (verdicts, entailed), strict=True)]
        for end in ("undecided_low", "undecided_high")
    )
    undecided = sum(side.get("undecided", 0) for side in sides)
    return {"undecided": undecided, "undecided_low": _harmonic(*low), "undecided_high": _harmonic(*high)}
