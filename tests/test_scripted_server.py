"""The scripted server, seen through the client that the judges use: what it sends is what a judge must cope with."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient
from scripted_server import (
    ABSENT,
    Answer,
    Call,
    ScriptedServer,
    allow,
    body,
    drip,
    drop,
    error,
    from_schema,
    hang,
    reply,
    served_apart,
    with_faults,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"enum": ["supported", "not_supported"]}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "check_claims", "strict": True, "schema": SCHEMA}}


@asynccontextmanager
async def client(url: str, seconds: float = 5.0, **settings: Any) -> AsyncIterator[AsyncOpenAI]:
    transport = DefaultAioHttpClient(timeout=seconds)
    async with AsyncOpenAI(base_url=url, api_key="k", max_retries=0, http_client=transport, **settings) as made:
        yield made


async def ask(made: AsyncOpenAI, text: str = "hello", **parameters: Any) -> Any:
    return await made.chat.completions.create(
        model="judge-a",
        messages=[{"role": "system", "content": "Judge."}, {"role": "user", "content": text}],
        **parameters,
    )


async def asked(answer: Answer, seconds: float = 5.0) -> Any:
    with ScriptedServer(lambda call: answer) as server:
        async with client(server.url, seconds) as made:
            return await ask(made)


async def test_a_schema_reply_reaches_the_client_and_the_call_says_what_was_asked() -> None:
    with ScriptedServer(lambda call: reply('{"verdict": "supported"}', usage=(12, 5), fingerprint="fp")) as server:
        async with client(server.url, default_headers={"X-Team": "a"}) as made:
            completion = await ask(made, response_format=FORMAT, temperature=0)
    assert completion.choices[0].message.content == '{"verdict": "supported"}'
    assert (completion.model, completion.system_fingerprint) == ("judge-a", "fp")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens, completion.usage.total_tokens) == (
        12,
        5,
        17,
    )
    (call,) = server.requests
    assert (call.n, call.tries, call.in_flight, call.path) == (0, 0, 1, "/v1/chat/completions")
    assert (call.model, call.prompt, call.format, call.schema_name) == (
        "judge-a",
        "Judge.\nhello",
        "json_schema",
        "check_claims",
    )
    assert call.schema == SCHEMA and call.body["temperature"] == 0
    assert (call.headers["x-team"], call.headers["Authorization"]) == ("a", "Bearer k")


async def test_gateway_and_azure_paths_are_served_and_told_apart() -> None:
    with ScriptedServer(lambda call: reply(call.model)) as server:
        async with client(f"{server.origin}/gateway/team/v1", default_query={"zone": "2"}) as made:
            assert (await ask(made)).choices[0].message.content == "judge-a"
        async with AsyncAzureOpenAI(
            azure_endpoint=server.origin,
            api_version="2024-10-21",
            api_key="azure-key",
            max_retries=0,
            http_client=DefaultAioHttpClient(),
        ) as azure:
            await ask(azure)
    gateway, deployment = server.requests
    assert (gateway.path, gateway.query) == ("/gateway/team/v1/chat/completions", {"zone": "2"})
    assert (deployment.path, deployment.query) == (
        "/openai/deployments/judge-a/chat/completions",
        {"api-version": "2024-10-21"},
    )
    assert deployment.headers["api-key"] == "azure-key"


async def test_models_and_embeddings_are_answered() -> None:
    with ScriptedServer(from_schema, models=("judge-a", "judge-b")) as server:
        async with client(server.url) as made:
            assert [listed.id async for listed in made.models.list()] == ["judge-a", "judge-b"]
            made_of = await made.embeddings.create(model="e", input=["one", "two"], encoding_format="float")
    assert len(made_of.data) == 2 and made_of.data[0].embedding != made_of.data[1].embedding
    assert server.count == 1, "the list of models is not a paid request"


async def test_a_rate_limit_keeps_its_headers_and_its_code() -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        await asked(
            error(
                429,
                "rate_limit_exceeded",
                "slow down",
                headers={"Retry-After": "7", "x-ratelimit-reset-requests": "1s"},
            )
        )
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.headers["x-ratelimit-reset-requests"] == "1s"
    assert (caught.value.status_code, caught.value.code) == (429, "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_an_error_status_names_its_parameter(status: int, kind: type[openai.APIStatusError]) -> None:
    with pytest.raises(kind) as caught:
        await asked(error(status, "unsupported_parameter", "not max_tokens", param="max_tokens"))
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "max_tokens")


async def test_a_dropped_connection_looks_like_a_timeout_and_only_the_cause_tells() -> None:
    """The client's aiohttp transport maps every ClientConnectionError to ConnectTimeout, whatever it was."""
    with pytest.raises(openai.APIConnectionError) as caught:
        await asked(drop())
    assert type(caught.value) is openai.APITimeoutError
    cause = caught.value.__cause__
    assert isinstance(cause, httpx2.ConnectTimeout)
    assert isinstance(cause.__cause__, aiohttp.ServerDisconnectedError)


async def test_a_refused_connection_looks_like_a_timeout_too() -> None:
    with ScriptedServer(from_schema) as server:
        gone = server.url
    async with client(gone) as made:
        with pytest.raises(openai.APITimeoutError) as caught:
            await ask(made)
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__.__cause__, aiohttp.ClientConnectorError)


async def test_a_body_cut_in_the_middle_is_a_connection_error() -> None:
    with pytest.raises(openai.APIConnectionError) as caught:
        await asked(drop('{"id": "x", "choi'))
    assert type(caught.value) is openai.APIConnectionError
    assert isinstance(caught.value.__cause__, httpx2.ReadError)


async def test_silence_is_a_read_timeout() -> None:
    started = time.perf_counter()
    with ScriptedServer(lambda call: hang()) as server:
        async with client(server.url, seconds=0.2) as made:
            with pytest.raises(openai.APITimeoutError) as caught:
                await ask(made)
            assert time.perf_counter() - started < 1.5
        assert await _in_flight_becomes(0, server), "a call given up by the client is no longer in flight"
    assert isinstance(caught.value.__cause__, httpx2.ReadTimeout)


async def test_a_dripping_body_outlives_the_clients_timeout() -> None:
    """The timeout is per read: only a limit around the whole call ends it."""
    dripping = drip("x" * 40, 400)
    started = time.perf_counter()
    assert (await asked(dripping, seconds=0.2)).choices[0].message.content == "x" * 40
    assert time.perf_counter() - started > 0.4
    with ScriptedServer(lambda call: drip("x" * 40, 20)) as server:
        async with client(server.url) as made:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await ask(made)
        assert await _in_flight_becomes(0, server), "a call given up by the client is no longer in flight"


async def test_an_html_page_with_status_200_is_returned_as_a_string() -> None:
    page = await asked(body("<html>log in</html>"))
    assert page == "<html>log in</html>"


@pytest.mark.parametrize("text", ["<html>log in</html>", "", '{"id": "x", "choi'])
async def test_a_broken_json_body_raises_an_error_that_is_not_the_clients_own(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        await asked(body(text, content_type="application/json"))


@pytest.mark.parametrize(("text", "given"), [("null", None), ("[1]", [1]), ('"abc"', "abc")])
async def test_json_that_is_no_object_is_returned_as_it_is(text: str, given: object) -> None:
    assert await asked(body(text, content_type="application/json")) == given


async def test_an_error_object_with_status_200_is_a_completion_without_choices() -> None:
    completion = await asked(body('{"error": {"message": "overloaded", "code": 503}}', content_type="application/json"))
    assert completion.choices is None and completion.usage is None
    assert completion.model_extra == {"error": {"message": "overloaded", "code": 503}}


async def test_missing_and_null_usage_are_none_and_null_parts_stay_none() -> None:
    assert (await asked(reply("x"))).usage is None
    assert (await asked(reply("x", extra={"usage": None}))).usage is None
    partly = (await asked(reply("x", usage={"prompt_tokens": None, "total_tokens": 9}))).usage
    assert (partly.prompt_tokens, partly.completion_tokens, partly.total_tokens) == (None, None, 9)


async def test_a_refusal_has_null_content() -> None:
    message = (await asked(reply(None, refusal="I can't help with that."))).choices[0].message
    assert (message.content, message.refusal) == (None, "I can't help with that.")


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "eos", None, ABSENT])
async def test_any_finish_reason_passes_the_client(finish: Any) -> None:
    choice = (await asked(reply("x", finish_reason=finish))).choices[0]
    assert choice.finish_reason == (None if finish is ABSENT else finish)


async def test_counts_of_repeats_models_and_most_in_flight() -> None:
    with ScriptedServer(lambda call: reply(str(call.tries), latency=0.1)) as server:
        async with client(server.url) as made:
            texts = ["same", "same", "same", "other"]
            replies = await asyncio.gather(*(ask(made, text) for text in texts))
            await ask(made, "alone")
        assert sorted(done.choices[0].message.content for done in replies) == ["0", "0", "1", "2"]
        assert (server.count, server.distinct, server.repeats) == (5, 3, 2)
        assert (server.in_flight, server.in_flight_max, server.by_model) == (0, 4, {"judge-a": 5})
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/stats") as answer:
            assert await answer.json() == server.stats()
        server.forget()
        assert (server.count, server.repeats, server.requests, server.in_flight_max) == (0, 0, (), 0)


async def test_allow_refuses_beyond_its_limits_and_announces_them() -> None:
    limited = allow(lambda call: reply("x", latency=0.2), in_flight=2, per_second=3, retry_after=0.5, announce=True)
    with ScriptedServer(limited) as server:
        async with client(server.url) as made:
            done = await asyncio.gather(*(ask(made, str(n)) for n in range(5)), return_exceptions=True)
            refused = [one for one in done if isinstance(one, openai.RateLimitError)]
            assert len(refused) == 3
            assert {one.response.headers["retry-after"] for one in refused} == {"0.5"}
            raw = await made.chat.completions.with_raw_response.create(model="m", messages=[])
            assert (raw.headers["x-ratelimit-limit-requests"], raw.headers["x-ratelimit-remaining-requests"]) == (
                "3",
                "0",
            )
            with pytest.raises(openai.RateLimitError):
                await ask(made, "one too many in this second")
            await asyncio.sleep(1.0)
            await ask(made, "a second later")


async def test_faults_depend_on_request_and_try_but_not_on_order() -> None:
    rates = {"429": 0.2, "500": 0.1, "malformed": 0.2, "drop": 0.1}
    outcomes = []
    for order in (range(60), reversed(range(60))):
        mix = with_faults(lambda call: reply('{"score": 3}', usage=(9, 3)), rates, seed=4, retry_after=0.1)
        with ScriptedServer(mix) as server:
            async with client(server.url) as made:
                outcomes.append({n: await _outcome(made, str(n)) for n in order})
        assert sum(mix.served.values()) == sum(seen != '{"score": 3}' for seen in outcomes[-1].values())
    assert outcomes[0] == outcomes[1]
    assert set(outcomes[0].values()) == {
        '{"score": 3}',
        '{"scor',
        "RateLimitError",
        "InternalServerError",
        "APITimeoutError",
    }


def test_the_shares_of_faults_are_those_asked_for_and_a_later_try_is_drawn_anew() -> None:
    mix = with_faults(from_schema, {"429": 0.05, "malformed": 0.03, "hang": 0.005})
    drawn = [mix.drawn(str(n), 0) for n in range(20_000)]
    # Four standard errors of a share p of n: 4 * sqrt(p (1 - p) / n).
    assert drawn.count("429") / 20_000 == pytest.approx(0.05, abs=0.0062)
    assert drawn.count("malformed") / 20_000 == pytest.approx(0.03, abs=0.0049)
    assert drawn.count("hang") / 20_000 == pytest.approx(0.005, abs=0.002)
    assert drawn != [mix.drawn(str(n), 1) for n in range(20_000)]
    with pytest.raises(ValueError, match="malformd"):
        with_faults(from_schema, {"malformd": 0.1})


async def test_from_schema_satisfies_the_schema_and_repeats_itself() -> None:
    with ScriptedServer(from_schema) as server:
        async with client(server.url) as made:
            first, second = [(await ask(made, response_format=FORMAT)).choices[0].message.content for _ in range(2)]
    assert first == second
    assert set(json.loads(first)) == {"reason", "verdict"} and json.loads(first)["verdict"] in (
        "supported",
        "not_supported",
    )


async def test_an_error_in_the_handler_is_answered_and_raised_at_the_end() -> None:
    def failing(call: Call) -> Answer:
        raise AssertionError(f"unexpected prompt {call.prompt!r}")

    with pytest.raises(AssertionError, match="unexpected prompt"), ScriptedServer(failing) as server:
        async with client(server.url) as made:
            with pytest.raises(openai.InternalServerError) as caught:
                await ask(made)
            assert caught.value.code == "handler_failed"


async def test_what_is_not_served_or_not_json_is_refused() -> None:
    with ScriptedServer(from_schema) as server:
        async with client(f"{server.origin}/wrong") as made:
            with pytest.raises(openai.NotFoundError):
                await made.responses.create(model="m", input="x")
        async with aiohttp.ClientSession() as session:
            for junk in (b"{", b"[1]"):
                async with session.post(f"{server.url}/chat/completions", data=junk) as answer:
                    assert answer.status == 400
    assert server.count == 0


def test_a_large_prompt_is_taken_whole() -> None:
    sent = json.dumps({"messages": [{"role": "user", "content": "x" * 3_000_000}]}).encode()
    with ScriptedServer(lambda call: reply(str(len(call.prompt))), keep=False) as server:
        with urllib.request.urlopen(f"{server.url}/chat/completions", sent, timeout=5) as answer:
            assert json.loads(answer.read())["choices"][0]["message"]["content"] == "3000000"
        assert (server.count, server.requests) == (1, ())


async def test_stopping_is_quick_while_requests_hang() -> None:
    with ScriptedServer(lambda call: hang()) as server:
        async with client(server.url) as made:
            waiting = [asyncio.create_task(ask(made, str(n))) for n in range(20)]
            assert await _in_flight_becomes(20, server)
            started = time.perf_counter()
            server.stop()
            assert time.perf_counter() - started < 1.0
            done = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, openai.APIConnectionError) for one in done)
    assert server.in_flight == 0
    assert "scripted-server" not in {thread.name for thread in threading.enumerate()}


LEFT_HANGING = """
import socket, sys, threading, time
sys.path.insert(0, sys.argv[1])
from scripted_server import ScriptedServer, drip, hang
answers = [hang(), drip("x" * 100, 1)]
with ScriptedServer(lambda call: answers[call.n]) as server:
    asked = []
    for _ in answers:
        asked.append(socket.create_connection(("127.0.0.1", server.port)))
        asked[-1].sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
    while server.in_flight < len(answers):
        time.sleep(0.01)
for connection in asked:
    connection.close()
print(threading.active_count(), server.count)
"""


def test_stopping_leaves_no_thread_no_task_and_no_warning() -> None:
    """In an interpreter of its own, where development mode names every socket, task and coroutine left behind."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", LEFT_HANGING, str(Path(__file__).parent)]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=30, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1 2\n", "", 0)


async def test_closing_the_client_in_its_loop_leaves_no_warning_and_forgetting_to_does() -> None:
    with ScriptedServer(from_schema) as server:
        for close in (True, False):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                transport = DefaultAioHttpClient()
                made = AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0, http_client=transport)
                await ask(made)
                if close:
                    await made.close()
                del made, transport
                gc.collect()
            unclosed = [str(one.message) for one in warned if issubclass(one.category, ResourceWarning)]
            assert bool(unclosed) is not close, unclosed


def test_a_taken_port_is_said_and_a_freed_one_is_used_again() -> None:
    with ScriptedServer(from_schema) as server:
        port = server.port
        with pytest.raises(OSError, match="in use"), ScriptedServer(from_schema, port=port):
            pytest.fail("two servers on one port")
    with ScriptedServer(from_schema, port=port) as again:
        assert again.port == port


async def test_a_server_of_its_own_process_counts_and_can_be_killed() -> None:
    with served_apart("--latency", "0.01", "--faults", '{"500": 1.0}') as apart:
        async with client(apart.url) as made:
            with pytest.raises(openai.InternalServerError):
                await ask(made)
            stats = apart.stats()
            assert (stats["requests"], stats["answers"], stats["faults"]) == (1, {"500": 1}, {"500": 1})
            apart.process.kill()
            apart.process.wait(10)
            with pytest.raises(openai.APIConnectionError):
                await ask(made)


async def test_a_process_takes_its_handler_by_name_and_a_wrong_name_is_said() -> None:
    with served_apart("--handler", "scripted_server:from_schema") as apart:
        async with client(apart.url) as made:
            assert (await ask(made)).choices[0].message.content == "scripted"
    assert apart.process.returncode == 0
    with pytest.raises(RuntimeError, match="ended with code 1"), served_apart("--handler", "scripted_server:nothing"):
        pytest.fail("a server without a handler")


async def _outcome(made: AsyncOpenAI, text: str) -> str:
    try:
        return str((await ask(made, text)).choices[0].message.content)
    except openai.APIError as failed:
        return type(failed).__name__


async def _in_flight_becomes(expected: int, server: ScriptedServer) -> bool:
    for _ in range(200):
        if server.in_flight == expected:
            return True
        await asyncio.sleep(0.01)
    return False
