"""The one seam to the outside world: a judge makes one attempt at a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jurimetrics.errors import FailureKind, ReplyError
from jurimetrics.judges.headroom import UNSAID, Headroom
from jurimetrics.tasks.task import Task

if TYPE_CHECKING:
    from datetime import datetime

    from jurimetrics.judges.session import Endpoint, Session


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request as the endpoint counted them; None where it did not say (unknown is not zero).

    `cached` is a part of `prompt`, `reasoning` a part of `completion` (the OpenAI shape).
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class ReAsk:
    """The one second question after a reply that could not be used whole.

    `fault` names what was wrong; `previous` is the reply reduced to what can be kept; `missing` are the item numbers
    (from 1) wanted now, () for the whole reply.
    """

    fault: str
    previous: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One question to one judge. `repeat` counts independent samples from 0; `room` multiplies the output limit after a
    reply that was cut off (1 or 2)."""

    task: Task[Any]
    repeat: int = 0
    reason_language: str | None = None
    reask: ReAsk | None = None
    room: int = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """What one HTTP request looked like from outside, whatever came of it; it fills a row of the call frame.

    `latency_s` in seconds; `format` is `json_schema`, `json_object` or `plain` ("" for a judge that sends nothing);
    `refused_parameters` are those the endpoint has refused so far; `model` and `fingerprint` as the endpoint returned them.
    `headroom` is what the answer said of the endpoint's limits.
    """

    usage: Usage = Usage()
    latency_s: float = 0.0
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    format: str = ""
    refused_parameters: tuple[str, ...] = ()
    raw: str | None = None
    cost_usd: float | None = None
    headroom: Headroom = UNSAID


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete, valid reply: `answer` is what `task.read(data)` gave, `data` the JSON it was read from."""

    answer: Any
    data: Any
    trace: Trace


@dataclass(frozen=True, slots=True)
class TooLong:
    """What an endpoint said of a prompt that its model does not hold: `counted` tokens where `allowed` are; both in its
    own tokens, and both None where it named no numbers.

    >>> TooLong(counted=8000, allowed=4000).fitting(6000)
    2550
    >>> TooLong().fitting(6000)
    4500
    """

    counted: int | None = None
    allowed: int | None = None

    def fitting(self, estimate: int) -> int:
        """What a prompt may take, by our estimate, where one of `estimate` tokens was too long; below `estimate`.

        The estimate times allowed / counted, less 15 %: texts differ in bytes for a token, and many endpoints count the
        reply too. Three quarters of the estimate where no numbers are known.
        """
        share = 0.75 if self.counted is None or self.allowed is None else 0.85 * self.allowed / self.counted
        return max(0, min(int(estimate * share), estimate - 1))


@dataclass
class JudgeError(Exception):
    """One attempt that gave no answer.

    `kind` is one of the failure kinds. `retry` is "no" (final), "later" (the same request again after a wait,
    `after_s` seconds where the endpoint said so) or an amended `Request` to be sent at once. `limited` is True where
    the endpoint said that it is being asked too fast; `fatal` where every further request must fail alike (wrong key,
    unknown model, nobody listening). `too_long` is set where the prompt does not fit the model.

    >>> str(JudgeError("timeout", "no answer within 60 s"))
    'timeout: no answer within 60 s'
    """

    kind: FailureKind
    message: str
    retry: Literal["no", "later"] | Request = "no"
    after_s: float | None = None
    limited: bool = False
    fatal: bool = False
    trace: Trace = field(default_factory=Trace)
    too_long: TooLong | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def standing_reply(request: Request) -> tuple[Any, Any] | None:
    """The answer and data of the reply before a re-ask, where that can be read whole; else None.

    A re-ask for the sake of doubts is asked of a usable answer, which stands when nothing better comes of it.
    """
    if request.reask is None or not request.reask.previous:
        return None
    data = dict(request.reask.previous)
    try:
        return request.task.read(data), data
    except ReplyError:
        return None


class Judge(Protocol):
    """Whoever answers tasks. A frozen configuration without state; clients live in the session."""

    @property
    def name(self) -> str:
        """The name in the frame's `judge` column; unique within one evaluation."""
        ...

    @property
    def endpoint(self) -> Endpoint | None:
        """Where requests go; None for a judge that computes its answers here."""
        ...

    @property
    def reply_key(self) -> str:
        """Hash of all that is declared of the judge and can change a reply; never name, price, timeout, limits, keys."""
        ...

    @property
    def max_input_tokens(self) -> int | None:
        """What fits into one request, in estimated tokens; None for no limit."""
        ...

    def check(self) -> None:
        """Raise `InputError` where the judge cannot be asked as it is configured; sends nothing."""
        ...

    def settings(self) -> dict[str, Any]:
        """What the results keep of the judge, JSON-able and without secrets: model, address, kind, ..."""
        ...

    async def attempt(self, request: Request, session: Session) -> Reply:
        """One HTTP request at most. Raises `JudgeError`."""
        ...

    def cost(self, usage: Usage, model: str | None, when: datetime) -> float | None:
        """US dollars for one request's usage; None where unknown. Never raises."""
        ...
