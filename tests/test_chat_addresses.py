"""One attempt at a chat endpoint: addresses and keys."""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from jurimetrics.errors import InputError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import JudgeError, Request
from jurimetrics.judges.session import Endpoint, Session
from rated import CANARY, GOOD, Rate, judge_at, opened
from scripted_server import Answer, Call, ScriptedServer, error, reply


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


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def name(address: str) -> None:
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, address)

    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    return name


@pytest.mark.parametrize("query", ["", "?key=x"])
async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(query: str, proxy: Callable[[str], None]) -> None:
    proxy("http://127.0.0.1:9")
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        for origin in (server.origin, server.origin.replace("127.0.0.1", "localhost")):
            async with opened() as session:
                judge = ChatJudge("m", base_url=f"{origin}/v1{query}")
                assert (await judge.attempt(Request(Rate()), session)).answer == 4
        assert server.count == 2 and {call.query.get("key") for call in server.requests} == {"x" if query else None}


async def test_a_proxy_is_asked_for_all_others_and_said_where_it_is_not_there(proxy: Callable[[str], None]) -> None:
    judge = ChatJudge("m", base_url="http://judge.example/v1")
    with ScriptedServer(lambda call: reply(GOOD)) as server:
        proxy(server.origin)
        async with opened() as session:
            assert (await judge.attempt(Request(Rate()), session)).answer == 4
        assert server.requests[0].headers["Host"] == "judge.example"
    proxy("http://127.0.0.1:9")
    async with opened() as session:
        with pytest.raises(JudgeError, match=r"the proxy that the environment names .* cannot be reached") as refused:
            await judge.attempt(Request(Rate()), session)
    assert refused.value.fatal and refused.value.kind == "transport"


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
