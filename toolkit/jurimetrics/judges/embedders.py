"""Who turns texts into vectors: an OpenAI-compatible embeddings endpoint, or the vectors that come with the toolkit."""

from __future__ import annotations

import base64
import binascii
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from jurimetrics.errors import InputError, ReplyError
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.exchange import Exchange, post
from jurimetrics.judges.judge import JudgeError, ReAsk, Reply, Request, Trace, Usage
from jurimetrics.judges.outcomes import no_reply, trace_of
from jurimetrics.judges.session import Endpoint, Session
from jurimetrics.tasks.embed import EmbedTexts, packed
from jurimetrics.tasks.task import fingerprint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_OURS = ("input", "dimensions")


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """A model behind any OpenAI-compatible `/embeddings` endpoint, as the `embedder` of an evaluation. Frozen, no state.

    Parameters
    ----------
    model : the model's name there; on Azure the deployment's.
    name : the name in the call frame's `judge` column (default: the model).
    base_url : the address up to `/v1` (default: OpenAI's). A user part and a query are sent and never shown.
    dimensions : numbers in a vector, for models that can shorten theirs; None leaves it to the model. A reply of another
        length fails, so an endpoint that ignores the wish is noticed.
    max_input_tokens : what one text may have, by the estimate of UTF-8 bytes over 4; rows with a longer one are
        `not_applicable`. None: the endpoint says so itself, and the row fails.
    timeout : seconds for one request as a whole.
    api_key_env : the *name* of the environment variable with the key. None: `OPENAI_API_KEY` at OpenAI,
        `AZURE_OPENAI_API_KEY` at Azure, no key elsewhere.
    max_concurrency : requests in flight; shared by all who ask there, the smallest wins.
    price : US dollars per million tokens; 0 is free. None: by the price list.
    price_as : the model of the price list whose price holds.
    extra_headers, extra_body : sent with each request as they are; the values of headers are never shown.
    azure_endpoint, api_version : Azure's address, instead of `base_url`, and version.

    Raises `InputError` for what cannot be sent; `check` does for what the environment or the price list lack.

    >>> EndpointEmbedder("text-embedding-3-small", base_url="https://me:canary@gateway.example/v1", dimensions=256)
    EndpointEmbedder('text-embedding-3-small', name='text-embedding-3-small', address='https://gateway.example/v1')
    """

    model: str
    _: KW_ONLY
    name: str = cast("str", None)  # None stands for the model's name, and is replaced by it
    base_url: str | None = None
    dimensions: int | None = None
    max_input_tokens: int | None = None
    timeout: float = 60.0
    api_key_env: str | None = None
    max_concurrency: int | None = None
    price: float | None = None
    price_as: str | None = None
    extra_headers: Mapping[str, str] | None = field(default=None, hash=False)
    extra_body: Mapping[str, Any] | None = field(default=None, hash=False)
    azure_endpoint: str | None = None
    api_version: str | None = None
    endpoint: Endpoint = field(init=False, compare=False)
    reply_key: str = field(init=False, compare=False)
    _declared: ChatJudge = field(init=False, compare=False)

    def __post_init__(self) -> None:
        name = self.name or self.model
        for fault, found in (
            ("dimensions must be an integer, 1 or more, or None", not _is_count(self.dimensions)),
            ("price must be US dollars per million tokens, 0 or more, or None", not _is_price(self.price)),
            ("extra_body cannot set " + " or ".join(_OURS), bool(set(self.extra_body or {}) & set(_OURS))),
        ):
            if found:
                raise InputError(f"embedder {name!r}: {fault}")
        # What is declared of an endpoint (address, key, headers, limits, price) is the same for chat and checked there.
        try:
            declared = ChatJudge(
                self.model,
                name=self.name,
                base_url=self.base_url,
                temperature=None,
                max_input_tokens=self.max_input_tokens,
                timeout=self.timeout,
                api_key_env=self.api_key_env,
                max_concurrency=self.max_concurrency,
                price=None if self.price is None else (self.price, 0.0),
                price_as=self.price_as,
                extra_headers=self.extra_headers,
                extra_body=self.extra_body,
                azure_endpoint=self.azure_endpoint,
                api_version=self.api_version,
            )
        except InputError as error:
            raise _of_embedder(name, error) from None
        for shown in ("name", "base_url", "azure_endpoint", "extra_headers", "extra_body", "endpoint"):
            object.__setattr__(self, shown, getattr(declared, shown))
        # The limit decides which texts are asked, and changes no vector.
        unlimited = replace(declared, max_input_tokens=None)
        object.__setattr__(self, "reply_key", fingerprint(["embeddings", unlimited.reply_key, self.dimensions]))
        object.__setattr__(self, "_declared", declared)

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.model!r}, name={self.name!r}, address={self.endpoint.address!r})"

    def check(self) -> None:
        """Raise `InputError` where the key is not in the environment or `price_as` not in the price list.

        >>> EndpointEmbedder("m", base_url="http://127.0.0.1:1/v1", price_as="no-such-model").check()
        Traceback (most recent call last):
        jurimetrics.errors.InputError: embedder 'm': price_as: no prices are known for 'no-such-model'
        """
        try:
            self._declared.check()
        except InputError as error:
            raise _of_embedder(self.name, error) from None

    def settings(self) -> dict[str, Any]:
        """What the results keep of the embedder, JSON-able and without secrets; price in US dollars per million tokens.

        >>> EndpointEmbedder("m", base_url="http://me:canary@host/v1").settings()["address"]
        'http://host/v1'
        """
        declared = self._declared.settings()
        shared = ("model", "address", "max_input_tokens", "extra_body", "api_key_env", "api_version", "price_as")
        return {
            "kind": "embeddings",
            "name": self.name,
            **{name: declared[name] for name in shared},
            "dimensions": self.dimensions,
            "price": self.price,
            "reply_key": self.reply_key,
        }

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float | None:
        """US dollars for one request's usage (`model`: as the endpoint returned it); None where unknown. Never raises."""
        return self._declared.cost(usage, model, when)

    async def attempt(self, request: Request, session: Session) -> Reply:
        """Send one request and read what comes back. Raises `JudgeError`, or `InputError` where the key is missing."""
        task = _embed_task(request)
        body: dict[str, Any] = {"model": self.model, "input": task.sent, **(self.extra_body or {})}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        client = session.client(self.endpoint)
        exchange = _counted(await post(client, body, self.timeout, True, path="/embeddings", holds="data"))
        if exchange.fault is not None:
            raise no_reply(self, session, exchange, exchange.fault, "")
        # Vectors are kept in the answer alone: as text they would be many times what they are read from.
        trace = trace_of(self, session, exchange, "", None)
        try:
            data = packed(_in_order(exchange.payload["data"], len(task.texts)))
            if self.dimensions not in (None, data["dimension"]):
                raise ReplyError("unparsed", f"vectors of {data['dimension']} numbers, asked for {self.dimensions}")
            return Reply(task.read(data), data, trace)
        except ReplyError as error:
            outcome = _unusable(request, error, trace)
        raise outcome


@dataclass(frozen=True, slots=True)
class EmbeddedEmbedder:
    """The vectors that come with the toolkit's requirements: no network, no key, no cost, the same on every machine.

    WordLlama's `l2_supercat_256` (16 MB within its wheel, MIT licence): one fixed vector of 256 numbers for each of
    32,000 word pieces, learned from the token tables of large language models; the vector of a text is the mean over its
    pieces. So it knows words and no order: "dog bites man" and "man bites dog" are the same to it, "not" is one word
    among others. It knows English best: of one triple of sentences in six languages, the two of one meaning had cosines of
    .69 to .91, but the two that have nothing to do with each other .05 in English, .23 in French, .27 in German, .43 in
    Chinese, .68 in Japanese and .79 in Arabic, so values of different languages do not compare. It is a floor, as the
    baseline judge is: for figures that matter take an `EndpointEmbedder`. Loading takes about half a second, once.

    >>> from jurimetrics import BaselineJudge, EmbeddedEmbedder, evaluate
    >>> records = [{"answer": "a red car", "reference": text} for text in ("a red vehicle", "tax law")]
    >>> results = evaluate(records, ["similarity_score"], BaselineJudge(), embedder=EmbeddedEmbedder(), store=None)
    >>> results.scores["score"].round(2).tolist()
    [0.85, 0.05]
    """

    name: str = "embedded"

    @property
    def endpoint(self) -> None:
        """Nowhere: it is computed here."""
        return None

    @property
    def max_input_tokens(self) -> None:
        """No limit."""
        return None

    @property
    def reply_key(self) -> str:
        """Hash of the vectors' name and of the release that holds them."""
        return fingerprint(["embedded", _release()])

    def check(self) -> None:
        """Load the vectors. Raises `InputError` where the installed `wordllama` does not hold them."""
        _word_vectors()

    def settings(self) -> dict[str, Any]:
        """What the results keep of the embedder, JSON-able.

        >>> EmbeddedEmbedder().settings()["kind"]
        'embedded'
        """
        return {
            "kind": "embedded",
            "name": self.name,
            "model": _release(),
            "address": None,
            "reply_key": self.reply_key,
        }

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float | None:
        """Nothing."""
        return 0.0

    async def attempt(self, request: Request, session: Session) -> Reply:
        """Compute the vectors. Raises `JudgeError`: `out_of_range` for a text without a word piece (an empty one)."""
        task = _embed_task(request)
        vectors = _word_vectors()
        trace = Trace(model=_release(), cost_usd=0.0)
        try:
            data = packed([vectors.mean(text) for text in task.sent])
            return Reply(task.read(data), data, trace)
        except ReplyError as error:
            outcome = JudgeError(error.kind, error.fault, trace=trace)
        raise outcome


# --- endpoint ---


def _embed_task(request: Request) -> EmbedTexts:
    if not isinstance(request.task, EmbedTexts):
        raise JudgeError("unsupported", f"an embedder answers embed tasks, not {request.task.kind}")
    return request.task


def _counted(exchange: Exchange) -> Exchange:
    """With the usage of an endpoint that counts nothing but the total: an embedding has no completion."""
    usage = exchange.payload.get("usage")
    if not isinstance(usage, dict):
        return exchange
    tokens = {"prompt_tokens": usage.get("prompt_tokens", usage.get("total_tokens")), "completion_tokens": 0}
    return replace(exchange, payload={**exchange.payload, "usage": {**usage, **tokens}})


def _in_order(entries: Sequence[Any], wanted: int) -> list[Any]:
    """The vectors by their index. Raises `ReplyError` where an index is missing, unknown or there twice."""
    by_index: dict[int, Any] = {}
    for entry in entries:
        index = entry.get("index") if isinstance(entry, dict) else None
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < wanted or index in by_index:
            raise ReplyError("incomplete", f"{len(entries)} vectors for {wanted} texts, one with a wrong index or none")
        by_index[index] = _numbers(entry.get("embedding"))
    if len(by_index) < wanted:
        raise ReplyError("incomplete", f"{len(by_index)} vectors for {wanted} texts")
    return [by_index[index] for index in range(wanted)]


def _numbers(embedding: Any) -> Any:
    """A vector as sent: a list of numbers, or base64 of little-endian float32."""
    if not isinstance(embedding, str):
        return embedding
    import numpy as np

    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise ReplyError("unparsed", "a vector is text and no base64 of float32") from None


def _unusable(request: Request, error: ReplyError, trace: Trace) -> JudgeError:
    """Once more, for servers that lose something now and then; the second time it is final."""
    if request.reask is not None:
        return JudgeError(error.kind, error.fault, trace=trace)
    return JudgeError(error.kind, error.fault, replace(request, reask=ReAsk(error.fault)), trace=trace)


def _of_embedder(name: str, error: InputError) -> InputError:
    return InputError(f"embedder {name!r}: {str(error).removeprefix(f'judge {name!r}: ')}")


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 1)


def _is_price(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9)


# --- embedded ---

_CONFIG = "l2_supercat"


@dataclass(frozen=True)
class _WordVectors:
    tokenizer: Any
    table: npt.NDArray[np.float32]

    def mean(self, text: str) -> npt.NDArray[np.float64]:
        """The mean over the pieces of a text; zeros where it has none.

        One text at a time: batches are padded to their longest text, which takes memory, and start threads.
        """
        import numpy as np

        pieces = self.tokenizer.encode(text, add_special_tokens=False).ids
        kinds, counts = np.unique(np.asarray(pieces, dtype=np.int64), return_counts=True)
        mean: npt.NDArray[np.float64] = counts @ self.table[kinds].astype(np.float64) / max(len(pieces), 1)
        return mean


@cache
def _word_vectors() -> _WordVectors:
    # Its import sets up the root logger where that has no handler yet (with one it keeps its hands off), and what it
    # imports for downloads, which are never made here, changes the filters of warnings.
    guard = logging.NullHandler()
    logging.root.addHandler(guard)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import wordllama
    finally:
        logging.root.removeHandler(guard)
    from pathlib import Path

    try:
        # The folder of the package stands for the cache: what is not in the wheel is not looked for elsewhere.
        loaded = wordllama.WordLlama.load(
            _CONFIG, cache_dir=Path(wordllama.__file__).parent, dim=256, disable_download=True
        )
    except (FileNotFoundError, OSError) as error:
        raise InputError(f"embedder 'embedded': the vectors within wordllama are not there ({error})") from None
    return _WordVectors(loaded.tokenizer, loaded.embedding)


@cache
def _release() -> str:
    from importlib.metadata import version

    return f"wordllama {version('wordllama')} {_CONFIG}_256"
