"""A judge whose replies a test writes: it goes through the same seam as every judge, and sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jurimetrics.judges.judge import JudgeError, Reply, Request, Trace, Usage
from jurimetrics.judges.session import Endpoint, Session
from jurimetrics.tasks.task import Task, fingerprint

Script = Callable[[Task[Any], int], Any]
"""Task and repeat in; the JSON of the reply out, or a JudgeError to raise."""


@dataclass(frozen=True)
class ScriptedJudge:
    """Answers every task with what `script` says; counts its requests in `asked`."""

    name: str
    script: Script
    url: str = "http://127.0.0.1:9/v1"
    usd: float | None = 0.001
    delay: float = 0.0
    model: str = "scripted"
    max_input_tokens: int | None = None
    asked: list[Request] = field(default_factory=list, compare=False)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.url)

    @property
    def reply_key(self) -> str:
        return fingerprint([self.model, self.url, self.name])

    def check(self) -> None:
        """There is nothing to check."""

    def settings(self) -> dict[str, Any]:
        return {"kind": "scripted", "model": self.model, "reply_key": self.reply_key}

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float | None:
        return self.usd

    async def attempt(self, request: Request, session: Session) -> Reply:
        self.asked.append(request)
        await asyncio.sleep(self.delay)
        trace = Trace(usage=Usage(100, 10), latency_s=self.delay, model=self.model, cost_usd=self.usd)
        said = self.script(request.task, request.repeat)
        if isinstance(said, JudgeError):
            said.trace = trace
            raise said
        return Reply(request.task.read(said), said, trace)


def one_claim_each(task: Any) -> dict[str, Any]:
    """The reply to a claims task that takes every sentence as one claim."""
    from jurimetrics.text import sentences

    pieces = sentences(task.text)
    wanted = range(len(pieces)) if task.window is None else range(*task.window)
    return {"sentences": [{"at": at + 1, "check": "factual", "claims": [pieces[at].text]} for at in wanted]}


def verdicts(task: Any, label: Callable[[str], str]) -> dict[str, Any]:
    """The reply to a check: each claim labelled by a function of its text, quoting the first document."""
    return {
        "verdicts": [
            {
                "claim": number,
                "evidence": [{"doc": 1, "quote": task.documents[0].split(".")[0]}],
                "reason": f"as scripted: {label(claim)}",
                "sources_conflict": False,
                "verdict": label(claim),
            }
            for number, claim in enumerate(task.claims, 1)
        ]
    }


def sentence_labels(task: Any, label: Callable[[str], str]) -> dict[str, Any]:
    """The reply to a search for unsupported sentences: each labelled by a function of its text."""
    from jurimetrics.text import sentences

    found = []
    pieces = sentences(task.answer)
    wanted = range(len(pieces)) if task.window is None else range(*task.window)
    for at in wanted:
        said = label(pieces[at].text)
        spans = [{"quote": pieces[at].text, "type": "extrinsic"}] if said == "unsupported" else []
        found.append({"at": at + 1, "evidence": [], "reason": "as scripted", "spans": spans, "verdict": said})
    return {"sentences": found}


def ratings(task: Any, *scores: int) -> dict[str, Any]:
    """The reply to a rating of documents, in tenths."""
    given = scores or (5,) * len(task.documents)
    return {"ratings": [{"doc": at, "found": "as scripted", "score": score} for at, score in enumerate(given, 1)]}


def answer_all(task: Any, repeat: int = 0, *, label: str = "supported", score: int = 4) -> dict[str, Any]:
    """A plain reply to any task: everything supported, everything rated alike."""
    if task.kind == "claims":
        return one_claim_each(task)
    if task.kind == "check":
        return verdicts(task, lambda claim: label)
    if task.kind == "sentences":
        return sentence_labels(task, lambda text: "supported" if label == "supported" else "unsupported")
    if task.kind == "documents":
        return ratings(task)
    return {"findings": "as scripted", "score": score}
