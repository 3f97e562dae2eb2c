"""One attempt at a chat endpoint: every behaviour of real servers, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
import logging
import pickle
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, ClassVar

import pytest
from jurimetrics.errors import InputError, ReplyError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.faults import retry_after_s
from jurimetrics.judges.judge import JudgeError, ReAsk, Reply, Request, Usage
from jurimetrics.judges.session import Endpoint, Session
from jurimetrics.tasks.check import CheckClaims
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.tasks.task import Rule, Split, Vote
from scripted_server import ABSENT, Answer, Call, ScriptedServer, body, drip, drop, error, hang, reply

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


# --- statuses ---


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 520])
async def test_servers_in_trouble(status: int) -> None:
    with ScriptedServer(lambda call: error(status, message="trouble")) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.limited, failed.fatal) == ("transport", "later", False, False)
    assert (failed.after_s, failed.trace.cost_usd) == (None, 0.0)
    assert f"HTTP {status}: trouble" in failed.message
    assert server.count == 1


async def test_503_with_retry_after_is_a_limit() -> None:
    with ScriptedServer(lambda call: error(503, headers={"Retry-After": "3"})) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.limited, failed.after_s) == ("transport", "later", True, 3.0)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "1"}, 1.0),
        ({"Retry-After": "61"}, 61.0),
        ({"Retry-After": "600"}, 600.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "abc"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "9", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "9", "retry-after-ms": "soon"}, 9.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
async def test_e13_retry_after(headers: dict[str, str], expected: float | None) -> None:
    with ScriptedServer(lambda call: error(429, "rate_limit_exceeded", headers=headers)) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.limited) == ("rate_limited", "later", True)
    assert failed.after_s == expected


def test_e13_retry_after_a_date() -> None:
    now = datetime(2031, 1, 1, tzinfo=UTC)
    then = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert retry_after_s({"retry-after": then}, now) == 90.0
    assert retry_after_s({"retry-after": "Mon, 99 Foo 2031 99:99:99 GMT"}, now) is None


@pytest.mark.parametrize("status", [401, 403, 404, 402])
async def test_fatal_refusals_name_address_and_variable(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", CANARY)
    with ScriptedServer(lambda call: error(status, "x", f"no: {CANARY}")) as server:
        failed = await failure(judge_at(server, api_key_env="HOUSE_KEY"), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("rejected", "no", True)
    assert server.url in failed.message
    assert "HOUSE_KEY" in failed.message
    assert "'m'" in failed.message
    assert CANARY not in failed.message


async def test_a_key_masked_by_the_server_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", CANARY)
    with ScriptedServer(
        lambda call: error(401, message="Incorrect API key provided: sk-CANA********+/=. See")
    ) as server:
        failed = await failure(judge_at(server, api_key_env="HOUSE_KEY"), Request(Rate()))
    assert "CANA" not in str(failed)
    assert "CANA" not in str(failed.trace)


async def test_spent_quota_is_fatal_and_no_limit() -> None:
    with ScriptedServer(lambda call: error(429, "insufficient_quota", "pay first")) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.limited, failed.fatal) == ("rejected", "no", False, True)


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens", param="messages"),
        error(400, message="the request exceeds the available context size", type="exceed_context_size_error"),
        error(413, message="too large"),
    ],
)
async def test_what_does_not_fit(answer: Answer) -> None:
    with ScriptedServer(lambda call: answer) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("rejected", "no", False)
    assert "does not fit" in failed.message
    assert "max_input_tokens" in failed.message


async def test_a_redirect_is_named_and_not_followed() -> None:
    moved = body("", 302, "text/plain", {"Location": "/elsewhere"})
    with ScriptedServer(lambda call: moved) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.fatal, server.count) == ("rejected", True, 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (body("<!DOCTYPE html><html><body>Sign in</body></html>"), "HTML instead of JSON"),
        (body("<html>", content_type="application/json"), "HTML instead of JSON"),
        (body("", content_type="application/json"), "no JSON object"),
        (body("[]", content_type="application/json"), "no JSON object"),
        (body("null", content_type="application/json"), "no JSON object"),
        (body('{"choices": []}', content_type="application/json"), "no choices"),
        (body('{"choices": null}', content_type="application/json"), "no choices"),
        (body('{"ok": true}', content_type="application/json"), "no choices"),
        (body('{"choices": [{"mess', content_type="application/json"), "no JSON object"),
        (
            body('{"error": {"message": "upstream down", "code": 502}}', content_type="application/json"),
            "upstream down",
        ),
        (body('{"error": "overloaded"}', content_type="application/json"), "overloaded"),
    ],
)
async def test_200_without_a_reply(answer: Answer, said: str) -> None:
    with ScriptedServer(lambda call: answer) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("transport", "later", False)
    assert said in failed.message


async def test_200_with_an_error_that_is_a_limit() -> None:
    limited = body('{"error": {"message": "slow down", "code": 429}}', content_type="application/json")
    with ScriptedServer(lambda call: limited) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.limited) == ("rate_limited", True)


@pytest.mark.parametrize(
    "extra", [{"choices": [{"message": None}]}, {"choices": [{}]}, {"choices": [{"message": {"content": 7}}]}]
)
async def test_a_choice_without_text_is_unparsed(extra: dict[str, Any]) -> None:
    with ScriptedServer(lambda call: reply(None, extra=extra)) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert failed.kind == "unparsed"


# --- lines ---


async def test_dropped_connection() -> None:
    with ScriptedServer(lambda call: drop()) as server:
        failed = await failure(judge_at(server), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("transport", "later", False)
    assert failed.trace.cost_usd is None
    assert server.count == 1


async def test_nobody_listens() -> None:
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        judge = judge_at(server)
    failed = await failure(judge, Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("transport", "later", True)
    assert "nobody listens" in failed.message
    assert "no key configured" in failed.message
    assert judge.endpoint.address in failed.message


async def test_a_host_without_a_name() -> None:
    failed = await failure(ChatJudge("m", base_url="http://no-such-host.invalid/v1", timeout=5), Request(Rate()))
    assert (failed.kind, failed.retry, failed.fatal) == ("transport", "later", True)


@pytest.mark.parametrize("answer", [hang(), drip(GOOD, 20)])
async def test_e14_the_attempt_is_bounded_as_a_whole(answer: Answer) -> None:
    with ScriptedServer(lambda call: answer) as server:
        started = time.monotonic()
        failed = await failure(judge_at(server, timeout=0.4), Request(Rate()))
        assert time.monotonic() - started < 5
    assert (failed.kind, failed.retry, failed.fatal) == ("timeout", "later", False)
    assert failed.trace.cost_usd is None
    assert failed.trace.latency_s >= 0.4


async def test_cancelling_passes_through() -> None:
    with ScriptedServer(lambda call: hang()) as server:
        async with opened() as session:
            attempt = asyncio.create_task(judge_at(server).attempt(Request(Rate()), session))
            for _ in range(200):
                if server.count:
                    break
                await asyncio.sleep(0.01)
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt


# --- asking again ---


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


# --- addresses and keys ---


async def test_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", CANARY)
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        judge = ChatJudge("team-judge-7", azure_endpoint=server.origin + "/", api_version="2025-01-01")
        async with opened() as session:
            assert (await judge.attempt(Request(Rate()), session)).answer == 4
    [call] = server.requests
    assert call.path == "/openai/deployments/team-judge-7/chat/completions"
    assert call.query == {"api-version": "2025-01-01"}
    assert call.headers["api-key"] == CANARY
    assert judge.endpoint.azure


async def test_gateway_with_path_user_query_and_headers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        url = server.origin.replace("http://", "http://me:pass%40word-1@") + "/team/llm/v1/?key=CANARY-in-query&x=1"
        judge = ChatJudge("m", base_url=url, extra_headers={"X-Team": "CANARY-in-header"})
        async with opened() as session:
            await judge.attempt(Request(Rate()), session)
    [call] = server.requests
    assert call.path == "/team/llm/v1/chat/completions"
    assert call.query == {"key": "CANARY-in-query", "x": "1"}
    assert call.headers["Authorization"] == "Basic " + base64.b64encode(b"me:pass@word-1").decode()
    assert call.headers["X-Team"] == "CANARY-in-header"
    assert judge.endpoint.address == server.origin + "/team/llm/v1"
    assert "CANARY" not in caplog.text
    assert "word-1" not in caplog.text


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("place", ["key", "header", "bearer", "user", "password", "query"])
async def test_x02_canary(
    status: int, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    canary = "CANARY-0123456789"
    pair = base64.b64encode(f"me:{canary}".encode()).decode()
    monkeypatch.setenv("HOUSE_KEY", canary)

    def handler(call: Call) -> Answer:
        seen = f"{canary} {dict(call.headers)} {call.query} {pair} key={canary}"
        if status == 200:
            return reply(json.dumps({"reason": seen, "score": 4}), model=seen, fingerprint=seen)
        return error(status, "x", f"bad credentials: {seen}", headers={"x-echo": canary})

    with ScriptedServer(handler) as server:
        user = {"user": f"{canary}@", "password": f"me:{canary}@"}.get(place, "")
        query = f"?key={canary}" if place == "query" else ""
        url = server.origin.replace("://", f"://{user}") + "/v1" + query
        headers = {"header": {"X-Key": canary}, "bearer": {"X-Auth": f"Bearer {canary}"}}.get(place)
        judge = ChatJudge("m", base_url=url, api_key_env="HOUSE_KEY" if place == "key" else None, extra_headers=headers)
        async with opened() as session:
            shown: list[str] = []
            try:
                given = await judge.attempt(Request(Rate()), session)
                shown.append(repr(given))
                assert "***" in given.data["reason"]
            except JudgeError as failed:
                shown += [str(failed), repr(failed), "".join(traceback.format_exception(failed))]
                shown += [repr(failed.trace), repr(failed.__context__)]
            shown += [
                repr(judge),
                str(dataclasses.asdict(judge)),
                repr(judge.endpoint),
                judge.reply_key,
                judge.endpoint.key,
            ]
            shown += [
                json.dumps(dataclasses.asdict(judge), default=str),
                str(session.learned),
                repr(replace(judge, name="n")),
            ]
            shown += [pickle.dumps(judge).decode("latin-1"), caplog.text]
    everything = "\n".join(shown)
    assert server.count == 1
    assert canary not in everything
    assert pair not in everything


async def test_a_missing_key_is_said_at_check_and_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "HOUSE_KEY"):
        monkeypatch.delenv(variable, raising=False)
    for judge, variable in (
        (ChatJudge("m"), "OPENAI_API_KEY"),
        (ChatJudge("m", azure_endpoint="https://house.openai.azure.com"), "AZURE_OPENAI_API_KEY"),
        (ChatJudge("m", base_url="https://house.openai.azure.com/openai/v1"), "AZURE_OPENAI_API_KEY"),
        (ChatJudge("m", base_url="http://127.0.0.1:1/v1", api_key_env="HOUSE_KEY"), "HOUSE_KEY"),
    ):
        with pytest.raises(InputError, match=variable):
            judge.check()
    ChatJudge("m", base_url="http://127.0.0.1:1/v1").check()
    monkeypatch.setenv("OPENAI_API_KEY", "later")
    ChatJudge("m").check()


async def test_openais_own_key_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "OPENAI_API_KEY",
        "OPENAI_ADMIN_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "AZURE_OPENAI_API_KEY",
    ):
        monkeypatch.setenv(variable, CANARY)
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        async with opened() as session:
            await judge_at(server).attempt(Request(Rate()), session)
    assert CANARY not in str(dict(server.requests[0].headers))


def test_keys_do_not_depend_on_what_cannot_change_a_reply() -> None:
    judge = ChatJudge("m", base_url="https://host/v1")
    same = [
        {"name": "other"}, {"price": (1, 2)}, {"price_as": "gpt-4o"}, {"timeout": 1.0}, {"max_concurrency": 2},
        {"requests_per_minute": 5}, {"tokens_per_minute": 5}, {"api_key_env": "HOUSE_KEY"}, {"family": "f"},
        {"base_url": "https://me:canary@host/v1/?key=canary"}, {"extra_headers": {"X": "y"}},
    ]  # fmt: skip
    changed = [
        {"model": "n"}, {"base_url": "https://other/v1"}, {"temperature": 1.0}, {"temperature": None}, {"seed": 1},
        {"max_tokens": 5}, {"max_input_tokens": 5}, {"extra_body": {"top_p": 1}}, {"base_url": "https://host/v1?api-version=2"},
    ]  # fmt: skip
    assert {replace(judge, **change).reply_key for change in same} == {judge.reply_key}
    assert len({judge.reply_key, *(replace(judge, **change).reply_key for change in changed)}) == len(changed) + 1


def test_settings_are_plain_and_say_what_can_change_a_reply() -> None:
    body = {"reasoning_effort": "low", "max_completion_tokens": 5, "auth_token": "canary"}
    judge = ChatJudge("m", family="f", base_url="http://me:canary@127.0.0.1:1/v1", price=(1, 2), extra_body=body)
    kept = json.loads(json.dumps(judge.settings()))
    assert kept["extra_body"] == {**body, "auth_token": "***"}
    assert {name: kept[name] for name in ("kind", "model", "address", "family", "price")} == {
        "kind": "chat", "model": "m", "address": "http://127.0.0.1:1/v1", "family": "f", "price": [1, 2],
    }  # fmt: skip
    assert kept["reply_key"] == judge.reply_key


def test_one_limiter_for_one_address_and_key() -> None:
    first = Endpoint("https://host/v1/", "A_KEY", max_concurrency=3)
    assert first.key == Endpoint("https://HOST/v1", "A_KEY").key == Endpoint("https://me:x@host/v1?q=1", "A_KEY").key
    assert first.key != Endpoint("https://host/v1", "B_KEY").key
    assert first.key != Endpoint("https://host/v2", "A_KEY").key
    assert Endpoint("http://[::1]:80/v1").address == "http://[::1]:80/v1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": ""}, "model"),
        ({"base_url": "host/v1"}, "base_url"),
        ({"base_url": "ftp://host"}, "base_url"),
        ({"base_url": "https://host:99999/"}, "base_url"),
        ({"base_url": "https://a", "azure_endpoint": "https://b"}, "exclude"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"seed": 1.5}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_input_tokens": 1.5}, "max_input_tokens"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": None}, "timeout"),
        ({"api_key_env": "sk-CANARY"}, "api_key_env"),
        ({"api_key_env": "CANARYabcdef0123456789abcdef"}, "api_key_env"),
        ({"extra_headers": {"X": "CANARY\nY: z"}}, "header"),
        ({"extra_headers": {"X": 5}}, "header"),
        ({"extra_body": {"model": "x"}}, "extra_body"),
        ({"extra_body": {"x": object()}}, "extra_body"),
        ({"price": 5}, "price"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        ChatJudge(**{"model": "m", **given})
    assert "CANARY" not in str(caught.value)


def test_a_pickled_judge_keeps_no_secret_and_says_so() -> None:
    plain = ChatJudge("m", base_url="http://127.0.0.1:1/v1")
    assert pickle.loads(pickle.dumps(plain)) == plain
    pickle.loads(pickle.dumps(plain)).check()
    for secret in ({"base_url": "http://me:canary@127.0.0.1:1/v1"}, {"extra_headers": {"X-Key": "canary"}}):
        with pytest.raises(InputError, match="make it anew"):
            pickle.loads(pickle.dumps(replace(plain, **secret))).check()


async def test_what_was_learned_survives_and_nonsense_does_not() -> None:
    facts = {"format": "plain", "renamed": [["a", "b"]], "dropped": ["seed"], "settled": True, "narrowed": [900, 400]}
    bad = {
        "x": {"format": "xml", **{k: facts[k] for k in ("renamed", "dropped", "settled")}},
        "y": 5,
        "z": {"format": "plain"},
    }
    assert Session({"e:m": facts, **bad}).learned == {"e:m": facts}


async def test_one_client_for_one_endpoint_whatever_its_limits() -> None:
    async with opened() as session:
        endpoint = Endpoint("http://127.0.0.1:1/v1")
        assert session.client(endpoint) is session.client(replace(endpoint, max_concurrency=3))
        assert session.client(endpoint) is not session.client(Endpoint("http://127.0.0.1:2/v1"))


def test_importing_loads_no_client() -> None:
    import subprocess
    import sys

    heavy = ("openai", "httpx2", "aiohttp", "genai_prices", "json_repair")
    code = f"import sys, jurimetrics.judges.chat as c; c.ChatJudge('m'); print(sys.modules.keys() & {set(heavy)})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "set()"
