"""One HTTP request and what came back, bounded in time as a whole."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jurimetrics.cells import COUNT_LIMIT
from jurimetrics.judges.faults import Fault, connection_fault, is_html, status_fault
from jurimetrics.judges.headroom import UNSAID, Headroom, headroom_of
from jurimetrics.judges.judge import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

RAW_SHOWN = 2_000
"""Characters kept of a body that is not a reply."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back for one request: a reply (`payload`, with at least one choice or vector) or a `fault`.

    `latency_s` is in seconds, from sending to the last byte; `raw` is the body where it is not a reply;
    `headroom` what it said of its limits.
    """

    latency_s: float
    payload: Mapping[str, Any]
    fault: Fault | None = None
    raw: str | None = None
    headroom: Headroom = UNSAID

    @property
    def usage(self) -> Usage:
        """The tokens counted by the endpoint; None for each number that it did not send.

        >>> Exchange(0.1, {"usage": {"prompt_tokens": 9, "completion_tokens": None}}).usage
        Usage(prompt=9, completion=None, cached=None, reasoning=None)
        """
        given = _mapping(self.payload.get("usage"))
        prompt, completion = (_mapping(given.get(f"{part}_tokens_details")) for part in ("prompt", "completion"))
        cached = prompt.get("cached_tokens", given.get("prompt_cache_hit_tokens"))
        return Usage(
            _count(given.get("prompt_tokens")),
            _count(given.get("completion_tokens")),
            _count(cached),
            _count(completion.get("reasoning_tokens")),
        )


async def post(
    client: AsyncOpenAI,
    body: Mapping[str, Any],
    seconds: float,
    settled: bool,
    *,
    path: str = "/chat/completions",
    holds: str = "choices",
) -> Exchange:
    """Send `body` to a path of the endpoint; at most `seconds` for all of it.

    `holds` names the list that a reply has, with at least one object in it. The response is read here rather than by the
    client's models: that is cheaper, and bodies of any shape come through.
    `settled`: whether a request in this form was answered before, so that an unclear refusal is of this request alone.
    """
    import aiohttp
    import httpx2
    from openai import APIStatusError, OpenAIError

    started = time.perf_counter()
    broken: Fault | None = None
    response: httpx2.Response | None = None
    try:
        async with asyncio.timeout(seconds):
            response = await client.post(path, cast_to=httpx2.Response, body=body)
    except TimeoutError:
        broken = Fault("timeout", f"no whole answer within {seconds:g} s", later=True, billed=True)
    except APIStatusError as error:
        response = error.response
    except (OpenAIError, aiohttp.ClientError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        broken = connection_fault(error)
    latency = time.perf_counter() - started
    if broken is not None or response is None:
        return Exchange(latency, {}, broken)
    try:
        payload = json.loads(response.content)
    except (ValueError, RecursionError):
        payload = response.text
    return _exchange(latency, response.status_code, response.headers, payload, body, settled, holds)


def _exchange(
    latency: float,
    status: int,
    headers: Mapping[str, str],
    payload: Any,
    body: Mapping[str, Any],
    settled: bool,
    holds: str,
) -> Exchange:
    given, headroom = _mapping(payload), headroom_of(status, headers)
    if status < 300:
        held = given.get(holds)
        if isinstance(held, list) and held and isinstance(held[0], dict):
            return Exchange(latency, given, headroom=headroom)
        fault = _no_reply(given, payload, headers, body, settled, holds)
    else:
        fault = status_fault(status, headers, payload, body, settled=settled)
    raw = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, default=str)
    return Exchange(latency, given, fault, raw[:RAW_SHOWN], headroom)


def _no_reply(
    given: Mapping[str, Any],
    payload: Any,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    settled: bool,
    holds: str,
) -> Fault:
    """A good status without a reply: some gateways send an error that way, some send a page of their own."""
    if given.get("error"):
        code = _mapping(given["error"]).get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        return status_fault(status, headers, payload, body, settled=settled)
    if isinstance(payload, str) and is_html(payload):
        said = "HTML instead of JSON, as a proxy or a login page sends it"
    else:
        said = f"a body without a reply in it (no {holds})" if given else "a body that is no JSON object"
    return Fault("transport", f"HTTP 200 with {said}", later=True, billed=True)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_LIMIT else None
