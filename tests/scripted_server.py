"""A real OpenAI-compatible HTTP server on loopback whose every answer is chosen by the test.

In a test, beside the code under test::

    with ScriptedServer(lambda call: reply('{"verdict": "supported"}', usage=(120, 9))) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="unused", max_retries=0)
        ...
    assert server.repeats == 0

As a process of its own, for benchmarks and kill tests (see ``served_apart``)::

    python tests/scripted_server.py --latency 0.05 --handler package.module:function

It prints its URL as one line; ``GET /stats`` gives the counts as JSON. Paths are matched by their end, so that gateways
with sub-paths and Azure deployments work: ``.../chat/completions``, ``.../embeddings``, ``.../models``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import json
import logging
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal

from aiohttp import web

LARGEST_BODY = 256 * 1024 * 1024


class Absent(Enum):
    """Tells a key that is left out from one that is null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the server saw it.

    ``n`` counts POSTs from 0; ``tries`` counts earlier requests with the same path and the same bytes; ``key`` names
    those two (32 hex digits, the same in every run); ``in_flight`` includes this one; ``at`` is ``time.monotonic()``.
    """

    n: int
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: dict[str, Any]
    key: str
    tries: int
    in_flight: int
    at: float

    @property
    def model(self) -> str:
        """The body's model, else the deployment in an Azure path, else ''."""
        deployment = self.path.partition("/deployments/")[2].partition("/")[0]
        return str(self.body.get("model") or deployment)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages") or [])

    @property
    def prompt(self) -> str:
        """All message text, system first as sent, joined by line ends; text parts of a list content count."""
        return "\n".join(text for message in self.messages for text in _texts(message.get("content")))

    @property
    def format(self) -> Literal["json_schema", "json_object", "plain"]:
        kind = (self.body.get("response_format") or {}).get("type")
        return kind if kind in ("json_schema", "json_object") else "plain"

    @property
    def schema(self) -> dict[str, Any] | None:
        return (self._json_schema() or {}).get("schema")

    @property
    def schema_name(self) -> str | None:
        return (self._json_schema() or {}).get("name")

    def _json_schema(self) -> dict[str, Any] | None:
        return (self.body.get("response_format") or {}).get("json_schema")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request; built by ``reply``, ``error``, ``body``, ``drop``, ``hang``, ``drip``."""

    way: Literal["send", "drip", "drop", "hang"]
    payload: dict[str, Any] | str = ""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    rate: float = 0.0


Handler = Callable[[Call], Answer]


def reply(
    content: str | None,
    *,
    finish_reason: str | Absent | None = "stop",
    usage: tuple[int, int] | Mapping[str, Any] | None = None,
    model: str | None = None,
    refusal: str | None = None,
    fingerprint: str | None = None,
    headers: Mapping[str, str] | None = None,
    latency: float = 0.0,
    message: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Answer:
    """A chat completion. ``usage`` is (prompt, completion) tokens, a mapping sent as it is, or None: left out.

    ``model`` None echoes the request's. ``message`` adds keys to the message (``reasoning_content``), ``extra`` adds or
    replaces keys of the whole body (``{"usage": None}``, ``{"choices": []}``). ``latency`` is in seconds.
    """
    spoken: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        spoken["refusal"] = refusal
    choice: dict[str, Any] = {"index": 0, "message": spoken | dict(message or {})}
    if finish_reason is not ABSENT:
        choice["finish_reason"] = finish_reason
    payload: dict[str, Any] = {"object": "chat.completion", "created": 0, "choices": [choice]}
    if isinstance(usage, tuple):
        prompt, completion = usage
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if usage is not None:
        payload["usage"] = dict(usage)
    if model is not None:
        payload["model"] = model
    if fingerprint is not None:
        payload["system_fingerprint"] = fingerprint
    return Answer("send", payload | dict(extra or {}), headers=dict(headers or {}), seconds=latency)


def error(
    status: int,
    code: str | None = None,
    message: str = "scripted error",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
    type: str | None = None,  # noqa: A002 - the field's name in the protocol
) -> Answer:
    """An error of the OpenAI shape: ``{"error": {"message", "type", "param", "code"}}``."""
    fault = {"message": message, "type": type, "param": param, "code": code}
    return Answer("send", {"error": fault}, status=status, headers=dict(headers or {}))


def body(
    text: str, status: int = 200, content_type: str = "text/html", headers: Mapping[str, str] | None = None
) -> Answer:
    """Any text with any status, e.g. a proxy's HTML page."""
    return Answer("send", text, status=status, content_type=content_type, headers=dict(headers or {}))


def drop(partial: str = "") -> Answer:
    """Close the connection without a byte of answer, or after a good header and ``partial`` of a longer body."""
    return Answer("drop", partial)


def hang(seconds: float = 3600.0) -> Answer:
    """Take the request and say nothing; after ``seconds`` the connection is closed."""
    return Answer("hang", seconds=seconds)


def drip(content: str, bytes_per_second: float, *, usage: tuple[int, int] | None = None) -> Answer:
    """A good reply whose headers come at once and whose body then comes at ``bytes_per_second``."""
    return replace(reply(content, usage=usage), way="drip", rate=bytes_per_second)


def allow(
    handler: Handler, *, in_flight: int = 5, per_second: float = 20, retry_after: float = 1, announce: bool = False
) -> Handler:
    """Answers 429 with Retry-After beyond ``in_flight`` at once, or ``per_second`` admitted in any one second.

    ``announce`` adds ``x-ratelimit-limit-requests`` and ``x-ratelimit-remaining-requests`` to every answer.
    """
    admitted: deque[float] = deque()

    def limited(call: Call) -> Answer:
        while admitted and admitted[0] <= call.at - 1:
            admitted.popleft()
        if call.in_flight > in_flight or len(admitted) >= per_second:
            answer = error(429, "rate_limit_exceeded", "slow down", headers={"Retry-After": f"{retry_after:g}"})
        else:
            admitted.append(call.at)
            answer = handler(call)
        if announce:
            left = max(0, int(per_second) - len(admitted))
            limits = {"x-ratelimit-limit-requests": f"{per_second:g}", "x-ratelimit-remaining-requests": str(left)}
            answer = replace(answer, headers={**answer.headers, **limits})
        return answer

    return limited


FAULTS: Final = ("429", "500", "503", "malformed", "drop", "hang")


class FaultMix:
    """A handler that fails some requests; the draw depends on seed, request and try alone, never on order.

    ``served`` counts the faults given so far by name.
    """

    def __init__(
        self, handler: Handler, rates: Mapping[str, float], seed: int, retry_after: float, hang_seconds: float
    ) -> None:
        unknown = set(rates) - set(FAULTS)
        if unknown or sum(rates.values()) > 1:
            raise ValueError(f"rates must be shares of {', '.join(FAULTS)} that sum to at most 1, got {dict(rates)}")
        self.handler, self.rates, self.seed = handler, dict(rates), seed
        self.retry_after, self.hang_seconds = retry_after, hang_seconds
        self.served: Counter[str] = Counter()

    def drawn(self, key: str, tries: int) -> str | None:
        """The fault that this request gets at this try, or None."""
        digest = hashlib.blake2b(f"{self.seed}|{key}|{tries}".encode(), digest_size=8).digest()
        left = int.from_bytes(digest, "big") / 2**64
        for fault in sorted(self.rates):
            left -= self.rates[fault]
            if left < 0:
                return fault
        return None

    def __call__(self, call: Call) -> Answer:
        fault = self.drawn(call.key, call.tries)
        if fault is None:
            return self.handler(call)
        self.served[fault] += 1
        if fault == "malformed":
            return _garbled(self.handler(call))
        if fault == "429":
            return error(429, "rate_limit_exceeded", "slow down", headers={"Retry-After": f"{self.retry_after:g}"})
        if fault == "drop":
            return drop()
        return hang(self.hang_seconds) if fault == "hang" else error(int(fault), "server_error", "scripted fault")


def with_faults(
    handler: Handler,
    rates: Mapping[str, float],
    seed: int = 0,
    *,
    retry_after: float = 1,
    hang_seconds: float = 3600.0,
) -> FaultMix:
    """Fails the given shares of requests, e.g. ``{"429": .05, "malformed": .03, "drop": .01, "hang": .005}``."""
    return FaultMix(handler, rates, seed, retry_after, hang_seconds)


def from_schema(call: Call) -> Answer:
    """A reply that satisfies the request's JSON schema, the same for the same request; 'scripted' without a schema."""
    content = "scripted"
    if call.schema is not None:
        content = json.dumps(_example(call.schema, call.schema, random.Random(call.key)))
    return reply(content, usage=(len(call.prompt) // 4, len(content) // 4))


class ScriptedServer:
    """Serves on 127.0.0.1 from a thread and event loop of its own, from ``with`` to the end of its block.

    ``handler`` runs on the server's thread for every chat completion (``embed`` for embeddings), may be exchanged at
    any time, and must not block. If it raises, that request gets a 500 and leaving the block raises the error again.
    ``latency`` (seconds) is added to every answer. ``keep`` False counts requests but does not keep them.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        embed: Handler | None = None,
        models: Sequence[str] = ("scripted",),
        latency: float = 0.0,
        keep: bool = True,
        port: int = 0,
    ) -> None:
        self.handler, self.embed, self.models = handler, embed or _hashed_vectors, tuple(models)
        self.latency, self.keep, self.port = latency, keep, port
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)
        self._refused: OSError | None = None
        self._errors: list[Exception] = []
        self.forget()

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        self._ready.wait()
        if self._refused is not None:
            self._thread.join()
            raise self._refused
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if self._errors and kind is None:
            raise self._errors[0]

    def stop(self) -> None:
        """Closes every connection, hanging ones too; for a server that goes down in mid-run. The counts stay."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._thread.is_alive():
            raise RuntimeError("the scripted server did not stop within 10 s")

    @property
    def origin(self) -> str:
        """Scheme, host and port, for Azure's endpoint or a gateway's own prefix."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def requests(self) -> tuple[Call, ...]:
        with self._lock:
            return tuple(self._calls)

    @property
    def count(self) -> int:
        """POSTs so far, embeddings too; GETs are never counted."""
        with self._lock:
            return self._n

    @property
    def distinct(self) -> int:
        with self._lock:
            return len(self._seen)

    @property
    def repeats(self) -> int:
        """Requests whose path and body had come before, byte for byte."""
        with self._lock:
            return self._n - len(self._seen)

    @property
    def in_flight(self) -> int:
        with self._lock:
            return self._now

    @property
    def in_flight_max(self) -> int:
        with self._lock:
            return self._most

    @property
    def by_model(self) -> dict[str, int]:
        with self._lock:
            return dict(self._by_model)

    def stats(self) -> dict[str, Any]:
        """What ``GET /stats`` gives: all counts, answers by status or way, and the faults served by a ``FaultMix``."""
        with self._lock:
            return {
                "requests": self._n,
                "distinct": len(self._seen),
                "repeats": self._n - len(self._seen),
                "in_flight": self._now,
                "in_flight_max": self._most,
                "by_model": dict(self._by_model),
                "answers": dict(self._answers),
                "faults": dict(getattr(self.handler, "served", {})),
            }

    def forget(self) -> None:
        """Sets every count back to nothing, tries too; what is in flight stays counted."""
        with self._lock:
            self._n, self._most = 0, getattr(self, "_now", 0)
            self._now = self._most
            self._calls: list[Call] = []
            self._seen: Counter[str] = Counter()
            self._by_model: Counter[str] = Counter()
            self._answers: Counter[str] = Counter()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as refused:  # the port is taken: for the thread that waits in __enter__
            self._refused = refused
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        # The bare server without router and middleware: half the cost per request of a web.Application.
        server = web.Server(self._respond, request_factory=_request, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.05)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024)
            await site.start()
            self.port = int(runner.addresses[0][1])
            self._ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method == "GET" and path.endswith("/stats"):
            return web.json_response(self.stats())
        if request.method == "GET" and path.endswith("/models"):
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
            return web.json_response({"object": "list", "data": listed})
        handlers = {"/chat/completions": self.handler, "/embeddings": self.embed}
        handler = next((handlers[end] for end in handlers if path.endswith(end)), None)
        if request.method != "POST" or handler is None:
            return _sent(error(404, "not_found", f"nothing at {request.method} {path}"), "", 0)
        raw = await request.read()
        try:
            asked = json.loads(raw)
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return _sent(error(400, "bad_json", "the body is not a JSON object"), "", 0)
        call = self._arrived(request, raw, asked)
        try:
            return await self._carried_out(self._chosen(handler, call), call, request)
        finally:
            with self._lock:
                self._now -= 1

    def _arrived(self, request: web.BaseRequest, raw: bytes, asked: dict[str, Any]) -> Call:
        key = hashlib.blake2b(request.path.encode() + b"\n" + raw, digest_size=16).hexdigest()
        query = dict(request.query) if request.query_string else {}
        with self._lock:
            self._now += 1
            self._most = max(self._most, self._now)
            n, tries = self._n, self._seen[key]
            call = Call(n, request.path, query, request.headers, asked, key, tries, self._now, time.monotonic())
            self._n += 1
            self._seen[key] += 1
            self._by_model[call.model] += 1
            if self.keep:
                self._calls.append(call)
        return call

    def _chosen(self, handler: Handler, call: Call) -> Answer:
        try:
            answer = handler(call)
        except Exception as failed:
            logging.getLogger(__name__).exception("the handler of a scripted server failed")
            self._errors.append(failed)
            answer = error(500, "handler_failed", f"the test's handler raised {failed!r}")
        with self._lock:
            self._answers[str(answer.status) if answer.way == "send" else answer.way] += 1
        return answer

    async def _carried_out(self, answer: Answer, call: Call, request: web.BaseRequest) -> web.StreamResponse:
        wait = answer.seconds + self.latency
        if wait > 0:
            await asyncio.sleep(wait)
        if answer.way in ("drop", "hang"):
            if answer.payload:
                await _begun(_text(answer, call.model, call.n).encode(), request)
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if answer.way == "drip":
            return await _dripped(_text(answer, call.model, call.n).encode(), answer.rate, request)
        return _sent(answer, call.model, call.n)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY)


def _text(answer: Answer, model: str, n: int) -> str:
    if isinstance(answer.payload, str):
        return answer.payload
    if "error" in answer.payload:
        return json.dumps(answer.payload)
    return json.dumps({"id": f"scripted-{n}", "model": model, **answer.payload})


def _sent(answer: Answer, model: str, n: int) -> web.Response:
    text = _text(answer, model, n)
    return web.Response(
        body=text.encode(),
        status=answer.status,
        headers={"Content-Type": f"{answer.content_type}; charset=utf-8", **answer.headers},
    )


async def _begun(part: bytes, request: web.BaseRequest) -> None:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(part) + 1000
    await response.prepare(request)
    await response.write(part)
    await asyncio.sleep(0.05)  # an abort throws away what the socket has not sent yet


async def _dripped(whole: bytes, rate: float, request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(whole)
    await response.prepare(request)
    step = max(1, int(rate / 20))
    for start in range(0, len(whole), step):
        await response.write(whole[start : start + step])
        await asyncio.sleep(step / rate)
    return response


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]


def _garbled(answer: Answer) -> Answer:
    """The same bill, but JSON content is cut in half though it claims to be complete; other content becomes prose."""
    if isinstance(answer.payload, str) or not answer.payload.get("choices"):
        return answer
    content = answer.payload["choices"][0]["message"]["content"] or ""
    broken = content[: len(content) // 2] if content.startswith(("{", "[")) else "I would rather talk about this."
    return replace(reply(broken, usage=answer.payload.get("usage")), seconds=answer.seconds)


def _hashed_vectors(call: Call) -> Answer:
    given = call.body.get("input", [])
    texts = [given] if isinstance(given, str) else list(given)
    vectors = [[byte / 255 for byte in hashlib.blake2b(str(t).encode(), digest_size=8).digest()] for t in texts]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    tokens = sum(len(str(t)) // 4 for t in texts)
    return Answer("send", {"object": "list", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})


def _example(schema: dict[str, Any], root: dict[str, Any], draw: random.Random) -> Any:
    if "$ref" in schema:
        return _example(root["$defs"][schema["$ref"].rpartition("/")[2]], root, draw)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], root, draw)
    kind = schema["type"] if isinstance(schema.get("type"), str) else schema["type"][0]
    if kind == "object":
        return {name: _example(part, root, draw) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_example(schema["items"], root, draw) for _ in range(max(1, schema.get("minItems", 1)))]
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        return draw.randint(int(low), int(schema.get("maximum", low + 4)))
    return {"boolean": draw.random() < 0.5, "null": None}.get(kind, "scripted words"[: schema.get("maxLength", 99)])


@dataclass(frozen=True, slots=True)
class Apart:
    """A scripted server in another process: its address, its counts, and the process for kill tests."""

    url: str
    process: subprocess.Popen[str]

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=10) as answer:
            counts: dict[str, Any] = json.loads(answer.read())
        return counts


@contextlib.contextmanager
def served_apart(*options: str) -> Iterator[Apart]:
    """Runs this file as a process with the given command-line options; it ends with the block or with this process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--until-eof", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8") as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the scripted server ended with code {process.wait(10)} before it gave its address")
            yield Apart(url, process)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _named(target: str) -> Handler:
    module, _, name = target.partition(":")
    handler: Handler = getattr(importlib.import_module(module), name)
    return handler


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible server on loopback")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument("--handler", help="module:function from Call to Answer; default: fills the request's schema")
    parser.add_argument("--faults", type=json.loads, default={}, help='JSON such as {"429": 0.05, "hang": 0.005}')
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--retry-after", type=float, default=1)
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends, not at a signal")
    options = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    handler = _named(options.handler) if options.handler else from_schema
    if options.faults:
        handler = with_faults(handler, options.faults, options.seed, retry_after=options.retry_after)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with ScriptedServer(handler, latency=options.latency, port=options.port, keep=False) as server:
        print(server.url, flush=True)
        if options.until_eof:
            sys.stdin.read()
        else:
            ended.wait()


if __name__ == "__main__":
    main()
