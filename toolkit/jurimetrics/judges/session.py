"""Where requests go, the clients that carry them, and what was learned of each endpoint on the way.

A `Session` is the only thing here with a state. The engine makes one for each evaluation, inside its running loop, and
keeps what it learned.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import parse_qsl, unquote, urlsplit

from jurimetrics.errors import InputError
from jurimetrics.judges.secret import Redactor, Secret
from jurimetrics.tasks.task import fingerprint

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

Format = Literal["json_schema", "json_object", "plain"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""The rungs of the ladder, the strictest first."""

OPENAI_URL = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
_NO_KEY = "no-key"
_POOL = 100_000
"""Connections that a client may hold: the limiter bounds what is in flight, a smaller pool would only make it wait."""
_IDLE_S = 4.0
"""Seconds after which an idle connection is closed here: usual servers close it after 5, and a request that meets the
closing is lost."""
# What the values of these headers and query fields say is no secret, and may stand in any reply.
_OPEN_HEADERS = frozenset("accept accept-language content-type http-referer origin referer user-agent x-title".split())  # noqa: SIM905
_OPEN_FIELDS = frozenset(("api-version", "version"))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and how fast; nothing of it prints a secret.

    `base_url` may hold a user part and a query: they are sent (as a Basic header, and with each request) and never
    shown. `key_variable` names the environment variable that holds the key, read when a session opens a client; None:
    no key. `azure` asks for Azure's paths below `base_url`, with `api_version`. `address` is printable; `key` is the
    same for all endpoints at one address with one key, whatever their limits, and shared limits go by it.

    >>> Endpoint("https://me:canary@gateway.example/llm/v1/?key=canary").address
    'https://gateway.example/llm/v1'
    """

    base_url: str
    key_variable: str | None = None
    api_key: Secret | None = None
    azure: bool = False
    api_version: str | None = None
    extra_headers: tuple[tuple[str, Secret], ...] = ()
    max_concurrency: int | None = field(default=None, compare=False)
    requests_per_minute: float | None = field(default=None, compare=False)
    tokens_per_minute: float | None = field(default=None, compare=False)
    address: str = field(init=False, compare=False)
    key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        url = Secret(self.base_url)
        parts = urlsplit(url.reveal())
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise InputError("base_url must be an address such as https://host/v1")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        shown = f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
        object.__setattr__(self, "base_url", hidden(url))
        object.__setattr__(self, "address", shown)
        object.__setattr__(self, "key", fingerprint([shown, self.key_variable, self.azure])[:16])

    @property
    def host(self) -> str:
        """The host's name alone."""
        return urlsplit(self.address).hostname or ""

    def read_key(self) -> Secret | None:
        """The key, or None where none is needed. Raises `InputError` that names the variable where it is not set."""
        if self.api_key is not None or self.key_variable is None:
            return self.api_key
        value = os.environ.get(self.key_variable, "").strip()
        if not value:
            raise InputError(
                f"{self.address}: the environment variable {self.key_variable}, which holds the key, is not set"
            )
        return Secret(value)

    def secrets(self) -> list[Secret]:
        """All that must not be printed: the key, user part and query of the address, values of headers."""
        parts = urlsplit(Secret(self.base_url).reveal())
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        found = [parts.netloc.rpartition("@")[0], user, password, unquote(user), unquote(password)]
        if password:
            found.append(f"{unquote(user)}:{unquote(password)}")
        found += [value for name, value in parse_qsl(parts.query) if name.lower() not in _OPEN_FIELDS]
        for name, header in self.extra_headers:
            if name.lower() not in _OPEN_HEADERS:
                found += [header.reveal(), header.reveal().rpartition(" ")[2]]
        key = self.read_key()
        return [Secret(value) for value in found if value] + ([key] if key is not None else [])


@dataclass(frozen=True, slots=True)
class Learned:
    """What an endpoint's answers have shown of one model.

    `format` is the strictest reply format it has not refused; `renamed` holds (name, name used instead); `dropped` are
    parameters no longer sent; `settled` is True once a request in this form was answered. `narrowed` are limits of a
    prompt in estimated tokens, each learned from a prompt that was too long, falling: the last one holds.

    >>> Learned(renamed=(("max_tokens", "max_completion_tokens"),)).refused
    ('max_tokens',)
    """

    format: Format = "json_schema"
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    settled: bool = False
    narrowed: tuple[int, ...] = ()

    @property
    def refused(self) -> tuple[str, ...]:
        """The parameters refused so far, in alphabetical order; `response_format` where a format was."""
        formats = ("response_format",) if self.format != "json_schema" else ()
        return tuple(sorted({*(name for name, _ in self.renamed), *self.dropped, *formats}))

    @classmethod
    def loaded(cls, facts: Any) -> Learned | None:
        """From plain JSON; None where it is not of this shape: then it is learned anew."""
        try:
            made = cls(
                facts["format"],
                tuple((str(old), str(new)) for old, new in facts["renamed"]),
                tuple(str(name) for name in facts["dropped"]),
                facts["settled"] is True,
                tuple(int(limit) for limit in facts.get("narrowed", ())),
            )
        except (TypeError, KeyError, ValueError, AttributeError):
            return None
        return made if made.format in FORMATS else None


class Session:
    """Clients (one for each endpoint, opened at the first request within the running loop) and what was learned.

    `learned` is what an earlier session's `learned` gave; `widened` takes it over without the limits of prompts, so that
    what was too long is tried again. Use a session in one event loop, and close it there.

    >>> Session({"old": {"unknown": "shape"}}).learned
    {}
    """

    def __init__(self, learned: Mapping[str, Any] | None = None, *, widened: bool = False) -> None:
        self._clients: dict[Endpoint, AsyncOpenAI] = {}
        self._secrets: set[Secret] = set()
        self._redactor = Redactor()
        loaded = {name: Learned.loaded(facts) for name, facts in (learned or {}).items()}
        known = {name: facts for name, facts in loaded.items() if facts is not None}
        self._learned = {name: replace(facts, narrowed=()) if widened else facts for name, facts in known.items()}

    @property
    def learned(self) -> dict[str, dict[str, Any]]:
        """What was learned of each endpoint and model, as plain JSON, without addresses or keys of access."""
        return {
            name: {
                **asdict(facts),
                "renamed": [list(pair) for pair in facts.renamed],
                "dropped": list(facts.dropped),
                "narrowed": list(facts.narrowed),
            }
            for name, facts in sorted(self._learned.items())
        }

    def learned_of(self, endpoint: Endpoint, model: str) -> Learned:
        """What is known of a model at an endpoint so far."""
        return self._learned.get(f"{endpoint.key}:{model}") or Learned()

    def learn(self, endpoint: Endpoint, model: str, **facts: Any) -> None:
        """Note facts (fields of `Learned`) of a model at an endpoint."""
        self._learned[f"{endpoint.key}:{model}"] = replace(self.learned_of(endpoint, model), **facts)

    def redact(self, text: str) -> str:
        """`text` without any secret of the endpoints asked in this session."""
        return self._redactor.redact(text)

    def client(self, endpoint: Endpoint) -> AsyncOpenAI:
        """The endpoint's client. Raises `InputError` where its key is missing."""
        client = self._clients.get(endpoint)
        if client is None:
            self._secrets.update(endpoint.secrets())
            self._redactor = Redactor(self._secrets)
            client = self._clients[endpoint] = _opened(endpoint)
        return client

    async def close(self) -> None:
        """Close all clients; the session can be used again afterwards."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


def hidden(url: str) -> str:
    """An address as it is, or as a secret where it has a user part or a query.

    >>> hidden("https://host/v1"), hidden("https://host/v1?key=canary")
    ('https://host/v1', ***)
    """
    value = Secret(url).reveal()
    parts = urlsplit(value)
    return Secret(value) if "@" in parts.netloc or parts.query else value


def _opened(endpoint: Endpoint) -> AsyncOpenAI:
    from openai import AsyncAzureOpenAI, AsyncOpenAI

    key = endpoint.read_key()
    headers = {name: value.reveal() for name, value in endpoint.extra_headers}
    basic = _basic(Secret(endpoint.base_url))
    if basic is not None and key is None and not any(name.lower() == "authorization" for name in headers):
        headers["Authorization"] = basic
    given: dict[str, Any] = {
        "api_key": _NO_KEY if key is None else key.reveal(),
        "admin_api_key": "",
        "default_headers": headers,
        "max_retries": 0,
        "http_client": _transport(
            parse_qsl(urlsplit(Secret(endpoint.base_url).reveal()).query, keep_blank_values=True),
            # A proxy leads elsewhere: what it calls localhost is another machine.
            proxies=not _on_this_machine(endpoint.host),
        ),
    }
    if endpoint.azure:
        return AsyncAzureOpenAI(azure_endpoint=endpoint.address, api_version=endpoint.api_version, **given)
    client = AsyncOpenAI(base_url=endpoint.address, **given)
    if endpoint.address != OPENAI_URL:
        # The client takes these from the environment; they are OpenAI's business and nobody else's.
        client.organization = client.project = None
    return client


def _basic(url: Secret) -> str | None:
    userinfo = urlsplit(url.reveal()).netloc.rpartition("@")[0]
    user, _, password = userinfo.partition(":")
    pair = f"{unquote(user)}:{unquote(password)}".encode()
    return f"Basic {base64.b64encode(pair).decode('ascii')}" if userinfo else None


def _on_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _transport(query: Iterable[tuple[str, str]], proxies: bool) -> httpx2.AsyncClient:
    """An HTTP client on aiohttp without a time limit of its own: the attempt as a whole has one.

    The query of an address is added below the client, which logs the addresses that it asks. `proxies`: whether those of
    the environment are used.
    """
    import httpx2
    from openai import DefaultAioHttpClient

    limits = httpx2.Limits(max_connections=_POOL, max_keepalive_connections=_POOL, keepalive_expiry=_IDLE_S)
    plain = DefaultAioHttpClient(limits=limits, timeout=httpx2.Timeout(None), follow_redirects=False, trust_env=proxies)
    fields = list(query)
    if not fields:
        return plain

    class WithQuery(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url.copy_with(params=[*request.url.params.multi_items(), *fields])
            with_query = httpx2.Request(
                request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
            )
            inner: httpx2.AsyncBaseTransport = plain._transport
            return await inner.handle_async_request(with_query)

        async def aclose(self) -> None:
            await plain.aclose()

    return httpx2.AsyncClient(transport=WithQuery(), timeout=httpx2.Timeout(None), follow_redirects=False)
