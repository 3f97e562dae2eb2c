"""One attempt at a chat endpoint: what a good reply, a cut-off one and a refusal become, over real sockets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jurimetrics.judges.judge import JudgeError, Request, Usage
from rated import GOOD, Rate, Write, failure, judge_at, opened, tries
from scripted_server import ABSENT, Answer, Call, ScriptedServer, body, error, reply

# --- good replies ---


async def test_the_request_and_the_trace() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    answer = reply(GOOD, usage=usage, model="m-2031", fingerprint="fp")
    with ScriptedServer(lambda call: answer) as server:
        judge = judge_at(server, seed=7, max_tokens=200, price=(1, 2, 0.5), extra_body={"top_p": 0.5})
        async with opened() as session:
            given = await judge.attempt(Request(Rate(), repeat=2, reason_language="French"), session)
    [call] = server.requests
    assert given.answer == 4
    assert given.data == json.loads(GOOD)
    assert call.body["temperature"] == 0.0
    assert call.body["seed"] == 9
    assert call.body["max_tokens"] == 200
    assert call.body["top_p"] == 0.5
    assert call.format == "json_schema"
    assert call.body["response_format"]["json_schema"]["strict"] is True
    assert call.schema == Rate().schema
    assert call.body["messages"] == Rate().messages("French")
    trace = given.trace
    assert trace.usage == Usage(100, 20, 60, 5)
    assert (trace.model, trace.fingerprint, trace.finish_reason) == ("m-2031", "fp", "stop")
    assert (trace.format, trace.refused_parameters, trace.raw) == ("json_schema", (), GOOD)
    assert trace.cost_usd == pytest.approx((40 * 1 + 60 * 0.5 + 20 * 2) / 1e6)
    assert 0 < trace.latency_s < 5


@pytest.mark.parametrize("finish_reason", ["eos", "end_turn", "STOP", "stop", None, ABSENT, "error", 7])
async def test_j04_finish_reasons(finish_reason: Any) -> None:
    with ScriptedServer(lambda call: reply(GOOD, finish_reason=finish_reason)) as server:
        async with opened() as session:
            assert (await judge_at(server).attempt(Request(Rate()), session)).answer == 4


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"total_tokens": 12}, Usage()),
        ({"prompt_tokens": None, "completion_tokens": 3}, Usage(None, 3)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": None}, Usage(3, 4)),
        ({"prompt_tokens": 3.0, "completion_tokens": -1}, Usage(3, None)),
        ({"prompt_tokens": True, "completion_tokens": "4"}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Usage(9, 1, 4)),
        ({"prompt_tokens": 2**63, "completion_tokens": 1e30}, Usage()),
        ({"prompt_tokens": 2**63 - 1, "completion_tokens": 1}, Usage(2**63 - 1, 1)),
        ("many", Usage()),
    ],
)
async def test_k09_usage(usage: Any, expected: Usage) -> None:
    with ScriptedServer(lambda call: reply(GOOD, extra={"usage": usage})) as server:
        async with opened() as session:
            given = await judge_at(server, price=(1, 1)).attempt(Request(Rate()), session)
    assert given.trace.usage == expected
    assert (given.trace.cost_usd is None) == (expected.prompt is None or expected.completion is None)


async def test_e09_schema_ignored() -> None:
    content = iter(["I think it is rather good.", f"Well: {GOOD} as I said"])
    with ScriptedServer(lambda call: reply(next(content))) as server:
        async with opened() as session:
            assert (await tries(judge_at(server), Request(Rate()), session)).answer == 4
    assert server.count == 2


async def test_parts_of_a_content() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": '{"score": 1}'}]},
        {"type": "text", "text": GOOD},
    ]
    with ScriptedServer(lambda call: reply(None, message={"content": parts})) as server:
        async with opened() as session:
            assert (await judge_at(server).attempt(Request(Rate()), session)).answer == 4


async def test_a_task_without_schema_is_text() -> None:
    with ScriptedServer(lambda call: reply("Madrid, {not JSON}.")) as server:
        async with opened() as session:
            given = await judge_at(server).attempt(Request(Write()), session)
    assert given.answer == "Madrid, {not JSON}."
    assert "response_format" not in server.requests[0].body


async def test_lone_surrogates_are_sent_as_replacement() -> None:
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        async with opened() as session:
            await judge_at(server).attempt(Request(Rate("half \ud83d a pair, ü")), session)
    assert "half \ufffd a pair, ü" in server.requests[0].prompt


async def test_a_seed_only_where_one_is_given() -> None:
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        async with opened() as session:
            for repeat in (0, 1):
                await judge_at(server, temperature=None).attempt(Request(Rate(), repeat=repeat), session)
    assert [set(call.body) for call in server.requests] == [{"model", "messages", "response_format"}] * 2


# --- cut off, filtered, refused ---


async def test_j03_truncated_then_more_room() -> None:
    cut = reply('{"reason":"...","score":1', finish_reason="length", usage=(50, 100))

    def handler(call: Call) -> Answer:
        return cut if call.body["max_tokens"] == 100 else reply(GOOD)

    with ScriptedServer(handler) as server:
        async with opened() as session:
            judge = judge_at(server, max_tokens=100)
            first = await failure(judge, Request(Rate()), session)
            assert first.kind == "truncated"
            assert "100 tokens" in first.message
            assert first.trace.usage.completion == 100
            assert isinstance(first.retry, Request)
            assert first.retry.room == 2
            assert (await judge.attempt(first.retry, session)).answer == 4
            assert [call.body["max_tokens"] for call in server.requests] == [100, 200]


async def test_e07_hidden_reasoning_is_named() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 16, "completion_tokens_details": {"reasoning_tokens": 16}}
    with ScriptedServer(lambda call: reply("", finish_reason="length", usage=usage)) as server:
        first = await failure(judge_at(server, max_tokens=16), Request(Rate()))
        final = await failure(judge_at(server, max_tokens=16), Request(Rate(), room=2))
    assert "16 of them hidden reasoning" in first.message
    assert "the limit is 16" in first.message
    assert "the limit is 32" in final.message
    assert final.retry == "no"


async def test_truncated_by_the_endpoints_own_limit() -> None:
    with ScriptedServer(
        lambda call: reply(GOOD, finish_reason="length" if "max_tokens" not in call.body else "stop")
    ) as server:
        async with opened() as session:
            assert (await tries(judge_at(server), Request(Rate()), session)).answer == 4
    assert [call.body.get("max_tokens") for call in server.requests] == [None, 8192]


async def test_more_room_refused_is_still_truncated() -> None:
    def handler(call: Call) -> Answer:
        if "max_tokens" in call.body or "max_completion_tokens" in call.body:
            return error(400, message="max_tokens is too large: maximum context length is 4096")
        return reply("{", finish_reason="length")

    with ScriptedServer(handler) as server:
        async with opened() as session:
            with pytest.raises(JudgeError) as caught:
                await tries(judge_at(server), Request(Rate()), session)
    assert caught.value.kind == "truncated"
    assert server.count == 2


async def test_e01_filter_is_final() -> None:
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
    fault = {"error": {"message": "filtered", "code": "content_filter", "param": "prompt", "innererror": inner}}
    with ScriptedServer(lambda call: body(json.dumps(fault), 400, "application/json")) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("filtered", "no", False)
    assert "(hate)" in failed.message
    assert failed.trace.cost_usd is None


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "content_filter"),
        error(400, "content_policy_violation"),
        error(400, "invalid_request", "The response was filtered by Azure OpenAI's content management policy."),
        reply(None, finish_reason="content_filter"),
        reply('{"reason": "half', finish_reason="content_filter"),
        body(
            '{"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}',
            403,
            "application/json",
        ),
    ],
)
async def test_filters(answer: Answer) -> None:
    with ScriptedServer(lambda call: answer) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("filtered", "no", False)


@pytest.mark.parametrize(
    "answer",
    [reply(None, refusal="I cannot rate this."), reply("I can't help with that"), reply("很抱歉，我无法提供帮助。")],
)
async def test_j15_refusals(answer: Answer) -> None:
    with ScriptedServer(lambda call: answer) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry) == ("refused", "no")
    assert failed.trace.raw


# --- parameters and formats ---
