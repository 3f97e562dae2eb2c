"""What a real model server, written by nobody here, answers; the judges are held against these facts."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from local_model import CONTEXT_TOKENS, MODEL, start_local_model
from openai import AsyncOpenAI, DefaultAioHttpClient

pytestmark = pytest.mark.local_model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 60},
        "verdict": {"type": "string", "enum": ["supported", "not_supported"]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "check", "strict": True, "schema": SCHEMA}}
QUESTION = "Paris is in France. Claim: Paris is in Spain. Is it supported? Reply in JSON with reason and verdict."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with start_local_model() as started:
        yield started


@asynccontextmanager
async def client(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=url, api_key="unused", max_retries=0, http_client=DefaultAioHttpClient(timeout=60)
    ) as made:
        yield made


async def ask(url: str, text: str = QUESTION, **parameters: Any) -> Any:
    settings = {"temperature": 0, "max_tokens": 60, **parameters}
    async with client(url) as made:
        return await made.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}], **settings)


async def test_it_lists_its_model_by_name(url: str) -> None:
    async with client(url) as made:
        assert [listed.id async for listed in made.models.list()] == [MODEL]


async def test_a_schema_binds_the_reply_and_usage_is_counted(url: str) -> None:
    completion = await ask(url, response_format=FORMAT)
    content = json.loads(completion.choices[0].message.content)
    assert set(content) == {"reason", "verdict"} and content["verdict"] in ("supported", "not_supported")
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == MODEL and completion.system_fingerprint
    usage = completion.usage
    assert usage.prompt_tokens > 20 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 <= usage.prompt_tokens_details.cached_tokens <= usage.prompt_tokens


async def test_the_second_time_the_prompt_comes_from_the_servers_cache(url: str) -> None:
    await ask(url, max_tokens=1)
    usage = (await ask(url, max_tokens=1)).usage
    assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1


async def test_json_mode_gives_an_object(url: str) -> None:
    completion = await ask(url, response_format={"type": "json_object"})
    assert isinstance(json.loads(completion.choices[0].message.content), dict)


async def test_a_reply_that_reaches_the_limit_says_so(url: str) -> None:
    for limit in ({"max_tokens": 5}, {"max_tokens": openai.omit, "max_completion_tokens": 5}):
        completion = await ask(url, response_format=FORMAT, **limit)
        assert (completion.choices[0].finish_reason, completion.usage.completion_tokens) == ("length", 5)


async def test_a_seed_repeats_a_reply_and_another_seed_changes_it(url: str) -> None:
    drawn = [(await ask(url, seed=seed, temperature=1, max_tokens=12)).choices[0].message.content for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_log_probabilities_are_given_for_each_token(url: str) -> None:
    tokens = (await ask(url, max_tokens=3, logprobs=True, top_logprobs=2)).choices[0].logprobs.content
    assert len(tokens) == 3
    assert all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in tokens)


async def test_a_prompt_beyond_the_context_is_refused_with_its_size(url: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(url, "word " * (CONTEXT_TOKENS + 500))
    # Its code is the number 400, not the "context_length_exceeded" of OpenAI: the type is what tells.
    assert (caught.value.code, caught.value.type) == ("400", "exceed_context_size_error")
    assert isinstance(caught.value.body, dict) and caught.value.body["n_ctx"] == CONTEXT_TOKENS


async def test_a_schema_it_cannot_read_is_refused(url: str) -> None:
    junk: Any = {"type": "json_schema", "json_schema": {"name": "junk", "schema": {"type": "flubber"}}}
    with pytest.raises(openai.BadRequestError, match="unrecognized type flubber"):
        await ask(url, response_format=junk)


def test_the_server_is_gone_when_its_block_ends() -> None:
    with start_local_model() as started:
        port = int(started.split(":")[2].split("/")[0])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
