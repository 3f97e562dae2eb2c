"""One attempt at a chat endpoint: parameters and formats that it refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jurimetrics.judges.judge import JudgeError, Request
from rated import GOOD, Rate, failure, judge_at, opened, tries
from scripted_server import Answer, Call, ScriptedServer, body, error, reply


def refusing(*names: str, message: str = "Unsupported parameter: '{}' is not supported", param: bool = True) -> Any:
    def handler(call: Call) -> Answer:
        for name in names:
            if name in call.body:
                return error(400, "unsupported_parameter", message.format(name), param=name if param else None)
        return reply(GOOD)

    return handler


@pytest.mark.parametrize("param", [True, False])
async def test_e04_max_tokens_renamed_once(param: bool) -> None:
    with ScriptedServer(refusing("max_tokens", param=param)) as server:
        async with opened() as session:
            judge = judge_at(server, max_tokens=50)
            for _ in range(3):
                given = await tries(judge, Request(Rate()), session)
    assert server.count == 4
    assert all(call.body["max_completion_tokens"] == 50 for call in server.requests[1:])
    assert given.trace.refused_parameters == ("max_tokens",)


async def test_e05_several_parameters_one_by_one() -> None:
    names = ("temperature", "max_tokens", "max_completion_tokens", "seed", "top_k", "response_format")
    with ScriptedServer(refusing(*names)) as server:
        async with opened() as session:
            judge = judge_at(server, max_tokens=50, seed=1, extra_body={"top_k": 5, "user": "u"})
            assert (await tries(judge, Request(Rate()), session)).answer == 4
            given = await judge.attempt(Request(Rate()), session)
            stored = json.loads(json.dumps(session.learned))
        assert server.count == 9  # six names, response_format on two rungs, then two good ones
        async with opened(stored) as session:
            await judge.attempt(Request(Rate()), session)
    assert server.count == 10
    assert set(server.requests[-1].body) == {"model", "messages", "user"}
    assert given.trace.refused_parameters == tuple(sorted(names))
    assert given.trace.format == "plain"


@pytest.mark.parametrize(
    "answer",
    [
        error(
            400, message="Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
        ),
        error(400, message="json_schema is not supported"),
        error(400, message="nope", param="response_format.type"),
        error(400, message="bad request"),
        error(422, message="bad request"),
        error(500, message="Failed to parse grammar"),
        body(
            '{"detail": [{"loc": ["body", "response_format"], "msg": "extra fields not permitted"}]}',
            422,
            "application/json",
        ),
        body('{"object": "error", "message": "guided_json is off", "code": 400}', 400, "application/json"),
        body('[{"error": {"message": "JSON mode is not enabled", "code": 400}}]', 400, "application/json"),
        body("response_format is not supported", 400, "text/plain"),
    ],
)
async def test_e08_steps_down_to_plain(answer: Answer) -> None:
    with ScriptedServer(lambda call: reply(GOOD) if call.format == "plain" else answer) as server:
        async with opened() as session:
            for _ in range(3):
                given = await tries(judge_at(server), Request(Rate()), session)
    assert [call.format for call in server.requests] == ["json_schema", "json_object", "plain", "plain", "plain"]
    assert given.trace.format == "plain"
    assert given.trace.refused_parameters == ("response_format",)
    assert '"enum":[1,2,3,4,5]' in server.requests[-1].prompt
    assert '"enum":[1,2,3,4,5]' not in server.requests[0].prompt


async def test_json_mode_is_told_the_shape() -> None:
    refused = error(400, message="json_schema is not supported")
    with ScriptedServer(lambda call: refused if call.format == "json_schema" else reply(GOOD)) as server:
        async with opened() as session:
            given = await tries(judge_at(server), Request(Rate()), session)
    assert given.trace.format == "json_object"
    assert "JSON" in server.requests[-1].prompt


async def test_unclear_refusals_teach_nothing() -> None:
    bad = Rate("bad row")
    with ScriptedServer(
        lambda call: error(400, message="bad request") if "bad row" in call.prompt else reply(GOOD)
    ) as server:
        async with opened() as session:
            judge = judge_at(server)
            with pytest.raises(JudgeError) as caught:
                await tries(judge, Request(bad), session)
            assert (caught.value.kind, caught.value.fatal) == ("rejected", False)
            given = await judge.attempt(Request(Rate()), session)
            assert given.trace.format == "json_schema"
            before = server.count
            await failure(judge, Request(bad), session)
            assert server.count == before + 1


async def test_e10_house_names_are_learned_alike() -> None:
    with ScriptedServer(refusing("max_tokens", "temperature")) as server:
        async with opened() as session:
            for family in (None, "gpt-5"):
                await tries(
                    judge_at(server, model="team-judge-7", family=family, max_tokens=9), Request(Rate()), session
                )
    assert server.count == 4
    assert server.requests[2].body == server.requests[3].body


async def test_many_at_once_learn_the_same() -> None:
    with ScriptedServer(refusing("max_tokens", "temperature", "response_format"), latency=0.02) as server:
        async with opened() as session:
            judge = judge_at(server, max_tokens=9)
            await asyncio.gather(*(tries(judge, Request(Rate(str(n))), session) for n in range(16)))
            [facts] = session.learned.values()
    assert facts["dropped"] == ["temperature"]
    assert facts["renamed"] == [["max_tokens", "max_completion_tokens"]]
    assert (facts["format"], facts["settled"]) == ("plain", True)
