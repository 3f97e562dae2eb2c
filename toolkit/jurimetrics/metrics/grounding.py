"""Is the answer backed by the retrieved documents, and were the documents any good?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from jurimetrics.metrics.metric import Ask, Score, metric
from jurimetrics.records import Record
from jurimetrics.tasks.check import CheckClaims, Verdict
from jurimetrics.tasks.claims import Claim, ExtractClaims
from jurimetrics.tasks.documents import DocumentRating, RateDocuments
from jurimetrics.tasks.quotes import Quote
from jurimetrics.tasks.sentences import FindUnsupported, SentenceLabel

T = TypeVar("T", Verdict, SentenceLabel)
Refusals = Literal["exclude", "worst"]
NO_CLAIMS = "the answer makes no claims"
RELEVANT = 0.5


def no_claims(refusals: Refusals, worst: float) -> Score:
    """The score of an answer without claims: undefined, or the worst value where refusals are to count."""
    if refusals == "worst":
        return Score(worst, f"{NO_CLAIMS}; counted as the worst value", flags=("no_claims",))
    return Score.undefined(NO_CLAIMS, flags=("no_claims",))


def tally(labels: Sequence[str], what: str) -> str:
    """A count of labels in words.

    >>> tally(["supported", "unknown", "supported"], "claim")
    '3 claims: 2 supported, 1 unknown'
    """
    counts = Counter(labels)
    said = ", ".join(f"{counts[label]} {label}" for label in sorted(counts, key=lambda label: (-counts[label], label)))
    return f"{len(labels)} {what}{'' if len(labels) == 1 else 's'}: {said}"


def reasons(items: Sequence[T], good: str) -> str:
    """The reasons of what is not `good`, in order."""
    said = [item.reason for item in items if item.label != good and item.reason]
    return f". {'; '.join(each.rstrip('. ') for each in said)}" if said else ""


def undecided_bounds(
    items: Sequence[T], value: Callable[[Sequence[T]], float], labels: tuple[str, str]
) -> dict[str, Any]:
    """The score with everything that a panel left undecided counted one way and the other; {} if nothing was."""
    if not any(item.undecided for item in items):
        return {}
    ways: list[Any] = list(labels)
    both = [value([replace(item, label=way) if item.undecided else item for item in items]) for way in ways]
    return {"undecided": sum(item.undecided for item in items), "undecided_low": min(both), "undecided_high": max(both)}


def _quotes(evidence: Sequence[Quote]) -> list[dict[str, Any]]:
    # Documents count from 1 for the reader, as in the prompt.
    return [{"doc": quote.doc + 1, "quote": quote.quote} for quote in evidence]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "verdict": verdict.label,
        "reason": verdict.reason,
        "evidence": _quotes(verdict.evidence),
        "sources_conflict": verdict.sources_conflict,
        "undecided": verdict.undecided,
    }


def verdicts_detail(verdicts: Sequence[Verdict], claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Verdicts as the details hold them, each with the sentence its claim comes from."""
    return [_verdict(verdict) | {"sentence": claim.sentence} for verdict, claim in zip(verdicts, claims, strict=True)]


def share(verdicts: Sequence[Verdict], label: str = "supported") -> float:
    """The share of verdicts with a label; the denominator is the number of claims asked."""
    return sum(verdict.label == label for verdict in verdicts) / len(verdicts)


def _texts(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(claim.text for claim in claims)


@metric(
    needs=("answer", "contexts"), range=(0, 1), higher_is_better=True, threshold=0.8, asks=(ExtractClaims, CheckClaims)
)
async def faithfulness(record: Record, ask: Ask, *, refusals: Refusals = "exclude") -> Score:
    """Supported claims over claims of the answer, checked against the contexts.

    Source: Globant Enterprise AI, Evaluation Metrics, 2025-04.

    Undefined where the answer makes no claims (`refusals="worst"` counts 0). The denominator is the number of claims
    asked, so a claim the panel cannot decide on counts as not supported.
    """
    claims = await ask(ExtractClaims(record.answer or "", record.question))
    if not claims:
        return no_claims(refusals, 0.0)
    verdicts = await ask(CheckClaims(_texts(claims), record.contexts))
    return Score(
        share(verdicts),
        tally([verdict.label for verdict in verdicts], "claim") + reasons(verdicts, "supported"),
        {"verdicts": verdicts_detail(verdicts, claims)}
        | undecided_bounds(verdicts, share, ("supported", "contradicted")),
    )


def _unsupported(sentences: Sequence[SentenceLabel]) -> float:
    counted = [sentence for sentence in sentences if sentence.label != "no_check"]
    return sum(sentence.label == "unsupported" for sentence in counted) / len(counted) if counted else 0.0


def _types(sentences: Sequence[SentenceLabel]) -> dict[str, float]:
    counted = [sentence for sentence in sentences if sentence.label != "no_check"]
    kinds = [{span.type for span in sentence.spans} for sentence in counted if sentence.label == "unsupported"]
    shares = {kind: sum(kind in found for found in kinds) / len(counted) for kind in ("intrinsic", "extrinsic")}
    return {"intrinsic_share": shares["intrinsic"], "extrinsic_share": shares["extrinsic"]}


def _sentence(sentence: SentenceLabel) -> dict[str, Any]:
    spans = [
        {"start": span.start, "end": span.end, "quote": span.quote, "type": span.type, "found": span.found}
        for span in sentence.spans
    ]
    place = {"text": sentence.text, "start": sentence.start, "end": sentence.end}
    said = {"label": sentence.label, "reason": sentence.reason, "evidence": _quotes(sentence.evidence)}
    return place | said | {"spans": spans, "undecided": sentence.undecided}


@metric(needs=("answer", "contexts"), range=(0, 1), higher_is_better=False, threshold=0.2, asks=(FindUnsupported,))
async def hallucination(record: Record, ask: Ask, *, refusals: Refusals = "exclude") -> Score:
    """The share of the answer's sentences that hold something the contexts do not support; lower is better.

    Sentences with nothing to check stay out of the denominator; an answer of which nothing is to be checked scores 0 and
    is flagged `no_claims` (`refusals="worst"` counts 1). Not 1 - faithfulness: another task, another unit. Whether a
    span is intrinsic or extrinsic is reported in the details only: people agree on it in about 80 % of cases.
    """
    sentences = await ask(FindUnsupported(record.answer or "", record.contexts))
    if all(sentence.label == "no_check" for sentence in sentences):
        value = 1.0 if refusals == "worst" else 0.0
        return Score(
            value,
            "the answer holds nothing to check",
            {"sentences": [_sentence(one) for one in sentences]},
            ("no_claims",),
        )
    return Score(
        _unsupported(sentences),
        tally([sentence.label for sentence in sentences], "sentence")
        + reasons([one for one in sentences if one.label != "no_check"], "supported"),
        {"sentences": [_sentence(one) for one in sentences]}
        | _types(sentences)
        | undecided_bounds(sentences, _unsupported, ("supported", "unsupported")),
    )


def _kinds(contexts: Sequence[Verdict], reference: Sequence[Verdict]) -> list[str]:
    """What each claim is: valid, unsupported, contradicted by the reference, or off the reference."""
    kinds = []
    for by_contexts, by_reference in zip(contexts, reference, strict=True):
        if by_contexts.label != "supported":
            kinds.append("unsupported")
        elif by_reference.label == "contradicted":
            kinds.append("contradicted by the reference")
        elif by_reference.label == "supported":
            kinds.append("supported by both")
        else:
            kinds.append("off-reference")
    return kinds


async def _against_both(record: Record, ask: Ask) -> tuple[Sequence[Claim], Sequence[Verdict], Sequence[Verdict]]:
    claims = await ask(ExtractClaims(record.answer or "", record.question))
    if not claims:
        return (), (), ()
    contexts = await ask(CheckClaims(_texts(claims), record.contexts))
    reference = await ask(CheckClaims(_texts(claims), (record.reference or "",), record.question))
    return claims, contexts, reference


def _noise_details(
    claims: Sequence[Claim], contexts: Sequence[Verdict], reference: Sequence[Verdict], kinds: Sequence[str]
) -> dict[str, Any]:
    return {
        "claims": [
            {"kind": kind, "contexts": _verdict(by_contexts), "reference": _verdict(by_reference), "claim": claim.text}
            for kind, by_contexts, by_reference, claim in zip(kinds, contexts, reference, claims, strict=True)
        ]
    }


@metric(
    needs=("answer", "contexts", "reference"),
    range=(0, 1),
    higher_is_better=False,
    threshold=0.2,
    asks=(ExtractClaims, CheckClaims),
)
async def noise_sensitivity(
    record: Record,
    ask: Ask,
    *,
    refusals: Refusals = "exclude",
    consistency: Literal["not_contradicted", "supported"] = "not_contradicted",
) -> Score:
    """Invalid claims over claims of the answer; lower is better (source: Globant Enterprise AI, Evaluation Metrics, 2025-04).

    A claim is valid if the contexts support it and the reference does not contradict it; `consistency="supported"` is
    strict and asks that the reference support it too. Undefined where the answer makes no claims.
    """
    claims, contexts, reference = await _against_both(record, ask)
    if not claims:
        return no_claims(refusals, 1.0)
    kinds = _kinds(contexts, reference)
    valid = {"supported by both"} | ({"off-reference"} if consistency == "not_contradicted" else set())
    value = sum(kind not in valid for kind in kinds) / len(kinds)
    return Score(value, tally(kinds, "claim"), _noise_details(claims, contexts, reference, kinds))


@metric(
    needs=("answer", "contexts", "reference"),
    range=(0, 1),
    higher_is_better=False,
    asks=(ExtractClaims, CheckClaims),
)
async def noise_share(record: Record, ask: Ask, *, refusals: Refusals = "exclude") -> Score:
    """The share of claims that a context supports and the reference does not know: what was copied from beside the point.

    It asks nothing that `noise_sensitivity` does not ask. 0 to 1, lower is better, no threshold; undefined where the
    answer makes no claims.
    """
    claims, contexts, reference = await _against_both(record, ask)
    if not claims:
        return no_claims(refusals, 1.0)
    kinds = _kinds(contexts, reference)
    value = kinds.count("off-reference") / len(kinds)
    return Score(value, tally(kinds, "claim"), _noise_details(claims, contexts, reference, kinds))


async def _rated(record: Record, ask: Ask) -> Sequence[DocumentRating]:
    return await ask(RateDocuments(record.question or "", record.reference or "", record.contexts))


def _documents(ratings: Sequence[DocumentRating]) -> tuple[str, dict[str, Any]]:
    listed = ", ".join(f"document {rating.doc + 1}: {rating.value:g}" for rating in ratings)
    found = [{"doc": rating.doc + 1, "relevance": rating.value, "found": rating.found} for rating in ratings]
    return listed, {"documents": found}


@metric(needs=("question", "contexts", "reference"), range=(0, 1), threshold=0.5, asks=(RateDocuments,))
async def context_precision(record: Record, ask: Ask) -> Score:
    """The mean relevance of the retrieved documents, equal weights.

    Source: Globant Enterprise AI, Evaluation Metrics, 2025-04.

    The answer plays no part. It is not average precision: that is `context_average_precision`, which asks nothing more.
    """
    ratings = await _rated(record, ask)
    listed, details = _documents(ratings)
    return Score(sum(rating.value for rating in ratings) / len(ratings), listed, details)


@metric(needs=("question", "contexts", "reference"), range=(0, 1), threshold=0.5, asks=(RateDocuments,))
async def context_average_precision(record: Record, ask: Ask) -> Score:
    """Average precision of the ranking of the documents: precision at the rank of each relevant one (rated at least .5),
    averaged over the relevant ones; 0 where none is relevant (Manning, Raghavan, Schuetze 2008, section 8.4)."""
    ratings = await _rated(record, ask)
    listed, details = _documents(ratings)
    relevant = [rating.value >= RELEVANT for rating in ratings]
    precisions = [sum(relevant[:rank]) / rank for rank, hit in enumerate(relevant, 1) if hit]
    return Score(sum(precisions) / len(precisions) if precisions else 0.0, listed, details)
