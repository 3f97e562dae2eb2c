"""One attempt at a chat endpoint: what its statuses and broken lines become."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.faults import retry_after_s
from jurimetrics.judges.judge import Request
from rated import CANARY, GOOD, Rate, failure, judge_at, opened
from scripted_server import Answer, ScriptedServer, body, drip, drop, error, hang, reply


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
