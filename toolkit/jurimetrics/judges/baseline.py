"""The baseline judge: deterministic, offline and transparent; the floor that every paid judge must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jurimetrics.judges.evidence import Finding, UnsupportedLanguage, evidence_for
from jurimetrics.judges.judge import JudgeError, Reply, Request, Trace, Usage
from jurimetrics.judges.session import Session
from jurimetrics.judges.surface import claims, document_relevance
from jurimetrics.judges.surface_ratings import rate
from jurimetrics.tasks.check import CheckClaims
from jurimetrics.tasks.claims import ExtractClaims
from jurimetrics.tasks.documents import RateDocuments
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.tasks.sentences import FindUnsupported
from jurimetrics.tasks.task import fingerprint
from jurimetrics.text import sentences

_VERSION = 2


@dataclass(frozen=True, slots=True)
class BaselineJudge:
    """Answers without any model, by rules that its reasons name; runs offline, at once and always the same.

    Sentences count as claims. A claim is checked by how much of it the documents hold word for word and by rules for
    numbers, names and negation; `contradicted` comes from these rules only. Documents are rated by the words they share
    with question and reference. The built-in rubrics are rated from surface features that the reason names; correctness
    and comprehensiveness need a reference for it. Any other rubric is `failed: unsupported`, under whatever name, and so
    is a language in which the rules do not hold (there are rules for English, German, French, Spanish, Italian,
    Portuguese and Dutch).

    It reads no meaning: a good paraphrase can be unsupported and a false claim in the documents' own words supported.
    It is the floor for paid judges and what runs without a key, and claims nothing more.

    >>> from jurimetrics import evaluate
    >>> record = {"answer": "The lock opened in 1898.", "contexts": ["The lock opened in 1889."]}
    >>> evaluate([record], ["faithfulness"], BaselineJudge(), store=None).scores["reason"].tolist()[0][:26]
    '1 claim: 1 contradicted. n'
    """

    name: str = "baseline"

    @property
    def endpoint(self) -> None:
        """None: nothing is sent anywhere."""
        return None

    @property
    def reply_key(self) -> str:
        """The same for every baseline judge of this version."""
        return fingerprint(["baseline", _VERSION])

    @property
    def max_input_tokens(self) -> None:
        """None: texts of any length."""
        return None

    def check(self) -> None:
        """There is nothing that could be missing."""

    def settings(self) -> dict[str, Any]:
        """What the results keep of it."""
        return {"kind": "baseline", "model": "rules", "address": None, "family": None, "reply_key": self.reply_key}

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float:
        """Always 0."""
        return 0.0

    async def attempt(self, request: Request, session: Session) -> Reply:
        """The reply, read like that of any judge. Raises `JudgeError` of kind `unsupported`."""
        try:
            data = _reply(request.task)
        except UnsupportedLanguage as error:
            raise JudgeError("unsupported", f"language: {error}") from None
        return Reply(request.task.read(data), data, Trace(cost_usd=0.0))


def _reply(task: Any) -> Any:
    match task:
        case ExtractClaims():
            return _claims(task)
        case CheckClaims():
            return _verdicts(task)
        case FindUnsupported():
            return _sentences(task)
        case RateDocuments():
            return _ratings(task)
        case RateRubric():
            return _rating(task)
    raise JudgeError("unsupported", f"the baseline has no rules for tasks of kind {task.kind}")


def _claims(task: ExtractClaims) -> dict[str, Any]:
    pieces = sentences(task.text)
    found = []
    for at in range(len(pieces)) if task.window is None else range(*task.window):
        stated = claims(pieces[at].text, task.question or task.text)
        found.append({"at": at + 1, "check": "factual" if stated else "non_factual", "claims": stated})
    return {"sentences": found}


def _verdicts(task: CheckClaims) -> dict[str, Any]:
    evidence = evidence_for(task.documents)
    found = [evidence.check(claim, task.question or "") for claim in task.claims]
    return {"verdicts": [_verdict(number, finding) for number, finding in enumerate(found, 1)]}


def _verdict(number: int, finding: Finding) -> dict[str, Any]:
    return {
        "claim": number,
        "evidence": _quotes(finding),
        "reason": finding.reason,
        "sources_conflict": False,
        "verdict": finding.label,
    }


def _quotes(finding: Finding) -> list[dict[str, Any]]:
    return [{"doc": document + 1, "quote": quote} for document, quote in finding.evidence]


def _sentences(task: FindUnsupported) -> dict[str, Any]:
    pieces = sentences(task.answer)
    window = range(len(pieces)) if task.window is None else range(*task.window)
    return {"sentences": [_sentence(at + 1, pieces[at].text, task.answer, task.documents) for at in window]}


def _sentence(number: int, text: str, answer: str, documents: Sequence[str]) -> dict[str, Any]:
    if not claims(text, answer):
        return {"at": number, "evidence": [], "reason": "states nothing", "spans": [], "verdict": "no_check"}
    finding = evidence_for(tuple(documents)).check(text)
    supported = finding.label == "supported"
    kind = "intrinsic" if finding.label == "contradicted" else "extrinsic"
    return {
        "at": number,
        "evidence": _quotes(finding),
        "reason": finding.reason,
        "spans": [] if supported else [{"quote": text, "type": kind}],
        "verdict": "supported" if supported else "unsupported",
    }


def _ratings(task: RateDocuments) -> dict[str, Any]:
    rated = [document_relevance(task.question, task.reference, document, task.documents) for document in task.documents]
    found = [
        {"doc": number, "found": surface.reason, "score": round(surface.score * 10)}
        for number, surface in enumerate(rated, 1)
    ]
    return {"ratings": found}


def _rating(task: RateRubric) -> dict[str, Any]:
    found = rate(task)
    if isinstance(found, str):
        raise JudgeError("unsupported", f"the baseline has no rules for {found}")
    asked = found.score if task.step == 1 else found.score / task.step
    return {"findings": found.reason, "score": round(asked)}
