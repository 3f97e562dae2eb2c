"""One attempt at a chat endpoint: what is asked again, and how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jurimetrics.judges.judge import JudgeError, ReAsk, Request
from jurimetrics.tasks.check import CheckClaims
from jurimetrics.tasks.rate import RateRubric
from rated import GOOD, Rate, failure, judge_at, opened, tries
from scripted_server import Answer, Call, ScriptedServer, error, reply


async def test_one_reask_that_names_the_fault() -> None:
    with ScriptedServer(lambda call: reply('{"reason": "CANARY", "score": "CANARY five"}')) as server:
        async with opened() as session:
            first = await failure(judge_at(server), Request(Rate()), session)
            assert first.kind == "unparsed"
            assert isinstance(first.retry, Request)
            second = await failure(judge_at(server), first.retry, session)
    assert second.retry == "no"
    assert "CANARY" in (second.trace.raw or "")
    assert "score must be an integer" in server.requests[1].prompt
    assert "CANARY" not in server.requests[1].prompt
    assert server.requests[1].prompt.startswith(server.requests[0].prompt)


async def test_out_of_range_is_asked_again_and_then_final() -> None:
    with ScriptedServer(lambda call: reply('{"reason": "great", "score": 85}')) as server:
        async with opened() as session:
            with pytest.raises(JudgeError) as caught:
                await tries(judge_at(server), Request(Rate()), session)
    assert (caught.value.kind, server.count) == ("out_of_range", 2)


CHECK = CheckClaims(("It is old.", "It is red.", "It is tall."), ("It is old, red and tall.",))


def verdict(claim: int, label: str = "supported", quote: str | None = "old, red") -> dict[str, Any]:
    evidence = [{"doc": 1, "quote": quote}] if quote else []
    return {"claim": claim, "evidence": evidence, "reason": "r", "sources_conflict": False, "verdict": label}


def verdicts(*entries: dict[str, Any]) -> Answer:
    return reply(json.dumps({"verdicts": entries}))


async def test_only_missing_items_are_asked_again() -> None:
    def handler(call: Call) -> Answer:
        return verdicts(verdict(1), verdict(3)) if call.n == 0 else verdicts(verdict(2, "unknown"))

    with ScriptedServer(handler) as server:
        async with opened() as session:
            given = await tries(judge_at(server), Request(CHECK), session)
    assert [item.label for item in given.answer] == ["supported", "unknown", "supported"]
    assert CHECK.read(given.data) == given.answer
    assert "number 2 only" in server.requests[1].prompt


async def test_items_missing_after_the_reask_are_incomplete() -> None:
    with ScriptedServer(lambda call: verdicts(verdict(1), verdict(3))) as server:
        async with opened() as session:
            with pytest.raises(JudgeError) as caught:
                await tries(judge_at(server), Request(CHECK), session)
    assert (caught.value.kind, server.count) == ("incomplete", 2)


@pytest.mark.parametrize(
    "second",
    [
        verdicts(verdict(2, quote="nowhere")),
        verdicts(verdict(9)),
        reply("sorry?"),
        reply(None, refusal="no"),
        reply("{", finish_reason="content_filter"),
        error(400, "content_filter"),
    ],
)
async def test_doubts_are_asked_once_and_then_the_answer_stands(second: Answer) -> None:
    def handler(call: Call) -> Answer:
        return verdicts(verdict(1), verdict(2, quote="nowhere"), verdict(3)) if call.n == 0 else second

    with ScriptedServer(handler) as server:
        async with opened() as session:
            given = await tries(judge_at(server), Request(CHECK), session)
    assert server.count == 2
    assert [item.label for item in given.answer] == ["supported"] * 3
    assert any("quote_not_found" in flag for flag in given.answer.flags)


async def test_doubts_put_right() -> None:
    def handler(call: Call) -> Answer:
        return verdicts(verdict(1), verdict(2, quote="nowhere"), verdict(3)) if call.n == 0 else verdicts(verdict(2))

    with ScriptedServer(handler) as server:
        async with opened() as session:
            given = await tries(judge_at(server), Request(CHECK), session)
    assert given.answer.flags == ()


async def test_a_reask_keeps_its_room_and_format() -> None:
    def handler(call: Call) -> Answer:
        return [reply("{", finish_reason="length"), reply('{"score": 9, "reason": ""}'), reply(GOOD)][call.n]

    with ScriptedServer(handler) as server:
        async with opened() as session:
            await tries(judge_at(server, max_tokens=10), Request(Rate()), session)
    assert [call.body["max_tokens"] for call in server.requests] == [10, 20, 20]


async def test_a_rubric_of_the_toolkit() -> None:
    task = RateRubric("clarity", "Is it easy to follow?", "It is 324 m tall.", scale=(0, 2))
    with ScriptedServer(
        lambda call: reply('{"findings": "plain", "score": 4}' if call.n == 0 else '{"findings": "", "score": 2}')
    ) as server:
        async with opened() as session:
            given = await tries(judge_at(server), Request(task), session)
    assert (given.answer.value, server.count) == (2.0, 2)
    assert ReAsk("x").previous == {}
