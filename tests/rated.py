"""The smallest task and a judge that is asked it, for the tests of one attempt."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from jurimetrics.errors import ReplyError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import JudgeError, Reply, Request
from jurimetrics.judges.session import Session
from jurimetrics.tasks.task import Rule, Split, Vote
from scripted_server import ScriptedServer

GOOD = '{"reason": "clear", "score": 4}'
CANARY = "sk-CANARY-0123456789/+="


@dataclass(frozen=True)
class Rate:
    """The smallest task: a reason and a score from 1 to 5."""

    text: str = "It is clear."
    kind: ClassVar[str] = "rate"
    version: ClassVar[str] = "1"
    shared: ClassVar[bool] = False

    @property
    def data(self) -> Mapping[str, Any]:
        return {"text": self.text}

    def messages(self, reason_language: str | None = None) -> list[dict[str, str]]:
        return [{"role": "system", "content": "Rate."}, {"role": "user", "content": f"{self.text} {reason_language}"}]

    @property
    def schema(self) -> dict[str, Any]:
        properties = {"reason": {"type": "string"}, "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}}
        return {
            "type": "object",
            "properties": properties,
            "required": ["reason", "score"],
            "additionalProperties": False,
        }

    def read(self, reply: Any) -> int:
        score = reply.get("score")
        if not isinstance(score, int) or isinstance(score, bool) or not isinstance(reply.get("reason"), str):
            raise ReplyError("unparsed", f"score must be an integer, not {score!r}")
        if not 1 <= score <= 5:
            raise ReplyError("out_of_range", f"score is {score}, outside 1 to 5")
        return score

    def doubts(self, answer: int) -> tuple[int, ...]:
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        return reply

    def vote(self, answers: Mapping[str, int | None], rule: Rule) -> Vote[int]:
        raise NotImplementedError

    def split(self, max_tokens: int | None = None) -> Split:
        return Split((self,), lambda answers: answers[0])


@dataclass(frozen=True)
class Write(Rate):
    """A task without a schema: the text is the answer."""

    kind: ClassVar[str] = "write"

    @property
    def schema(self) -> dict[str, Any]:
        return {}

    def read(self, reply: Any) -> Any:
        return reply


async def tries(judge: ChatJudge, request: Request, session: Session, most: int = 12) -> Reply:
    """What an engine does with amended requests, without the waiting."""
    for _ in range(most):
        try:
            return await judge.attempt(request, session)
        except JudgeError as failed:
            if not isinstance(failed.retry, Request):
                raise
            request = failed.retry
    raise AssertionError("amended without an end")


async def failure(judge: ChatJudge, request: Request, session: Session | None = None) -> JudgeError:
    own = session or Session()
    try:
        with pytest.raises(JudgeError) as caught:
            await judge.attempt(request, own)
    finally:
        if session is None:
            await own.close()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


@contextlib.asynccontextmanager
async def opened(learned: Mapping[str, Any] | None = None):  # type: ignore[no-untyped-def]
    session = Session(learned)
    try:
        yield session
    finally:
        await session.close()


def judge_at(server: ScriptedServer, **more: Any) -> ChatJudge:
    return ChatJudge(**{"model": "m", "base_url": server.url, "timeout": 5.0, **more})
