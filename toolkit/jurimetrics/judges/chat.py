"""A judge behind an OpenAI-compatible chat endpoint: one attempt is one HTTP request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from jurimetrics.errors import InputError
from jurimetrics.judges.bodies import request_body
from jurimetrics.judges.exchange import post
from jurimetrics.judges.judge import JudgeError, Reply, Request, Usage
from jurimetrics.judges.outcomes import outcome_of
from jurimetrics.judges.prices import Price, check_price, price_call
from jurimetrics.judges.secret import SHOWN, Secret
from jurimetrics.judges.session import AZURE_HOSTS, OPENAI_URL, Endpoint, Session, hidden
from jurimetrics.tasks.task import fingerprint

AZURE_API_VERSION = "2024-10-21"
"""The version of Azure's interface where none is given: the first stable one with strict schemas."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A key without a hyphen would pass as a name, and the message that it is not set would show it.
_KEY = re.compile(r"(?=.*\d)(?=.*[a-z]).{20}")
_KEYLIKE = re.compile(r"key|secret|password|auth|(?<!max_)token(?!s)", re.IGNORECASE)
_OURS = ("model", "messages", "stream", "n", "response_format")


@dataclass(frozen=True, slots=True)
class ChatJudge:
    """A language model behind any OpenAI-compatible chat endpoint, as a judge. A frozen configuration without state.

    Parameters
    ----------
    model : the model's name there; on Azure the deployment's.
    name : the name in the frames (default: the model).
    base_url : the address up to `/v1` (default: OpenAI's). A user part and a query are sent and never shown.
    family : whose model it is, for the reader; nothing is derived from it.
    temperature, seed : sampling; None sends none. Repeat `r` is sent `seed + r`.
    max_tokens : limit of the output in tokens, hidden reasoning included; None leaves it to the endpoint.
    max_input_tokens : evidence beyond this is split and asked in parts.
    timeout : seconds for one attempt as a whole.
    api_key_env : the *name* of the environment variable with the key. None: `OPENAI_API_KEY` at OpenAI,
        `AZURE_OPENAI_API_KEY` at Azure, no key elsewhere.
    max_concurrency, requests_per_minute, tokens_per_minute : limits of the endpoint, shared by all who ask there.
    price : US dollars per million tokens as (prompt, completion[, cached]); 0 is free. None: by the price list.
    price_as : the model of the price list whose price holds, for deployments and local names.
    logprobs : ask for log-probabilities with ratings on scales of single digits, each rubric in a call of its own: the value
        is then the expectation over the probabilities of the scores, flagged `logprob_score`, and need be no level. Where
        they cannot be had for certain the score in the text counts, flagged `text_score`.
    extra_headers, extra_body : sent with each request as they are; the values of headers are never shown.
    azure_endpoint, api_version : Azure's address, instead of `base_url`, and version.

    Raises `InputError` for what cannot be sent; `check` does for what the environment or the price list lack.
    Parameters and formats that the endpoint refuses are renamed, dropped or stepped down one by one, remembered in the
    session, and listed in the call frame.

    >>> judge = ChatJudge("gpt-4.1-mini", base_url="https://me:canary@gateway.example/v1?key=canary")
    >>> judge
    ChatJudge('gpt-4.1-mini', name='gpt-4.1-mini', address='https://gateway.example/v1')
    >>> judge.endpoint.key_variable is None
    True
    """

    model: str
    _: KW_ONLY
    name: str = cast("str", None)  # None stands for the model's name, and is replaced by it
    base_url: str | None = None
    family: str | None = None
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    max_input_tokens: int | None = None
    timeout: float = 60.0
    api_key_env: str | None = None
    max_concurrency: int | None = None
    price: Price | None = None
    price_as: str | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    logprobs: bool = False
    extra_headers: Mapping[str, str] | None = field(default=None, hash=False)
    extra_body: Mapping[str, Any] | None = field(default=None, hash=False)
    azure_endpoint: str | None = None
    api_version: str | None = None
    endpoint: Endpoint = field(init=False, compare=False)
    reply_key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check_fields(self)
        check_price(self.price, None)
        headers = {name: Secret(value) for name, value in (self.extra_headers or {}).items()}
        shaped: dict[str, Any] = {
            "name": self.name or self.model,
            "base_url": self.base_url and hidden(self.base_url),
            "azure_endpoint": self.azure_endpoint and hidden(self.azure_endpoint),
            "extra_headers": headers or None,
            "extra_body": dict(self.extra_body) if self.extra_body else None,
        }
        for name, value in shaped.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "endpoint", _endpoint(self))
        object.__setattr__(self, "reply_key", _reply_key(self))

    def __repr__(self) -> str:
        return f"ChatJudge({self.model!r}, name={self.name!r}, address={self.endpoint.address!r})"

    def check(self) -> None:
        """Raise `InputError` where the key is not in the environment or `price_as` not in the price list.

        >>> ChatJudge("m", base_url="http://127.0.0.1:1/v1", price_as="no-such-model").check()
        Traceback (most recent call last):
        jurimetrics.errors.InputError: judge 'm': price_as: no prices are known for 'no-such-model'
        """
        try:
            held = (self.endpoint.base_url, *(value for _, value in self.endpoint.extra_headers))
            if any(Secret(value).reveal() == SHOWN for value in held):
                raise InputError("its secrets were taken out, as by a pickle; make it anew")
            self.endpoint.read_key()
            check_price(self.price, self.price_as)
        except InputError as error:
            raise InputError(f"judge {self.name!r}: {error}") from None

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float | None:
        """US dollars for one request's usage (`model`: as the endpoint returned it); None where unknown. Never raises."""
        return price_call(
            usage,
            self.model,
            model,
            price=self.price,
            price_as=self.price_as,
            when=when,
            base_url=self.endpoint.address,
        )

    def settings(self) -> dict[str, Any]:
        """What the results keep of the judge, JSON-able and without secrets; prices in US dollars per million tokens.

        >>> ChatJudge("m", base_url="http://me:canary@host/v1", extra_body={"api_key": "canary"}).settings()["extra_body"]
        {'api_key': '***'}
        """
        declared = self.extra_body or {}
        return {
            "kind": "chat",
            "model": self.model,
            "address": self.endpoint.address,
            "family": self.family,
            "reply_key": self.reply_key,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "max_input_tokens": self.max_input_tokens,
            "logprobs": self.logprobs,
            "extra_body": _without_keys(declared),
            "api_key_env": self.endpoint.key_variable,
            "api_version": self.endpoint.api_version,
            "price": list(self.price) if isinstance(self.price, tuple) else self.price,
            "price_as": self.price_as,
        }

    async def attempt(self, request: Request, session: Session) -> Reply:
        """Send one request and read what comes back. Raises `JudgeError`, or `InputError` where the key is missing."""
        learned = session.learned_of(self.endpoint, self.model)
        body, format_ = request_body(self, request, learned)
        exchange = await post(session.client(self.endpoint), body, self.timeout, learned.settled)
        outcome = outcome_of(self, request, session, exchange, format_)
        # Raised here, where no error of the client, with its headers, is at hand to be chained to it.
        if isinstance(outcome, JudgeError):
            raise outcome
        return outcome


def _without_keys(value: Any) -> Any:
    """JSON without what stands under a name that speaks of a secret, at any depth."""
    if isinstance(value, Mapping):
        return {name: SHOWN if _KEYLIKE.search(str(name)) else _without_keys(inner) for name, inner in value.items()}
    return [_without_keys(inner) for inner in value] if isinstance(value, list | tuple) else value


def _endpoint(judge: ChatJudge) -> Endpoint:
    azure = judge.azure_endpoint is not None
    url = judge.azure_endpoint or judge.base_url or OPENAI_URL
    made = Endpoint(
        url,
        api_version=(judge.api_version or AZURE_API_VERSION) if azure else None,
        azure=azure,
        extra_headers=tuple((name, Secret(value)) for name, value in (judge.extra_headers or {}).items()),
        max_concurrency=judge.max_concurrency,
        requests_per_minute=judge.requests_per_minute,
        tokens_per_minute=judge.tokens_per_minute,
    )
    variable = judge.api_key_env
    if variable is None and (azure or made.host.endswith(AZURE_HOSTS)):
        variable = "AZURE_OPENAI_API_KEY"
    elif variable is None and made.host == urlsplit(OPENAI_URL).hostname:
        variable = "OPENAI_API_KEY"
    return replace(made, key_variable=variable)


def _reply_key(judge: ChatJudge) -> str:
    """What is declared and can change a reply. Of a query only the fields that are no secret; headers not at all."""
    query = parse_qsl(urlsplit(Secret(judge.endpoint.base_url).reveal()).query)
    declared = {
        "model": judge.model,
        "address": judge.endpoint.address,
        "api_version": [judge.endpoint.api_version, *(value for name, value in query if name == "api-version")],
        "temperature": judge.temperature,
        "seed": judge.seed,
        "max_tokens": judge.max_tokens,
        "max_input_tokens": judge.max_input_tokens,
        "extra_body": judge.extra_body,
        # Only where it is asked for, so that it leaves the answers of all other judges under their keys.
        **({"logprobs": True} if judge.logprobs else {}),
    }
    try:
        return fingerprint(["chat", declared])
    except (TypeError, ValueError):
        raise InputError(f"judge {judge.name!r}: extra_body must be plain JSON") from None


def _check_fields(judge: ChatJudge) -> None:
    """Raise `InputError` for values that cannot be meant; no value that may be a secret is repeated."""
    fault = next((fault for fault, found in _faults(judge) if found), None)
    if fault is not None:
        raise InputError(f"judge {judge.name or judge.model!r}: {fault}")


def _faults(judge: ChatJudge) -> Iterator[tuple[str, bool]]:
    yield "model must be a name", not isinstance(judge.model, str) or not judge.model.strip()
    yield "name must be a text or None", not (judge.name is None or isinstance(judge.name, str))
    # A blank address, as of a variable that is not set, is not the wish to send everything to OpenAI.
    for name in ("base_url", "azure_endpoint", "api_version", "api_key_env", "family", "price_as"):
        value = getattr(judge, name)
        yield f"{name} must be a text that is not blank, or None", not (value is None or _is_filled(value))
    for name in ("extra_headers", "extra_body"):
        value = getattr(judge, name)
        yield f"{name} must be a dictionary or None", not (value is None or isinstance(value, Mapping))
    yield "base_url and azure_endpoint exclude each other", bool(judge.base_url and judge.azure_endpoint)
    yield "temperature must be a number, 0 or more, or None", not _is_number(judge.temperature, 0)
    yield "seed must be an integer or None", judge.seed is not None and type(judge.seed) is not int
    yield "logprobs must be True or False", not isinstance(judge.logprobs, bool)
    for name in ("max_tokens", "max_input_tokens", "max_concurrency"):
        value = getattr(judge, name)
        yield (
            f"{name} must be an integer, 1 or more, or None",
            value is not None and (type(value) is not int or value < 1),
        )
    for name in ("requests_per_minute", "tokens_per_minute"):
        value = getattr(judge, name)
        yield f"{name} must be a number above 0 or None", not _is_number(value, 0) or value == 0
    yield "timeout must be a number of seconds above 0", judge.timeout is None or not _is_number(judge.timeout, 1e-9)
    named = judge.api_key_env is None or (_VARIABLE.fullmatch(judge.api_key_env) and not _KEY.search(judge.api_key_env))
    yield "api_key_env is the name of an environment variable, never a key", not named
    for name, value in (judge.extra_headers or {}).items():
        text = Secret(value).reveal() if isinstance(value, str) else "\n"
        good = isinstance(name, str) and name.isascii() and not any(c in text for c in "\r\n\0")
        yield f"the header {name!r} must be one line of text", not good
    ours = sorted(set(judge.extra_body or {}) & set(_OURS))
    yield f"extra_body cannot set {', '.join(ours)}", bool(ours)


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any, least: float) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= least
