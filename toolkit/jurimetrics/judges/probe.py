"""What an endpoint supports, found out with a few tiny requests, sent and read as an evaluation would."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from jurimetrics.errors import InputError
from jurimetrics.judges.bodies import request_body
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import JudgeError, Reply, Request, Trace, Usage
from jurimetrics.judges.session import FORMATS, Format, Learned, Session
from jurimetrics.tasks import items
from jurimetrics.tasks.task import Message, Rule, Split, Vote

LIMIT = 512
"""Output tokens allowed where the judge declares no limit: hidden reasoning counts, even for a reply of ten."""
LATER, LONGEST_WAIT_S, AMENDMENTS = 2, 10.0, 12
SILENT = 599
_MINERAL = "quartz"
_ASK = "This is a test of the connection."
_SHAPE = f'Reply with {{"mineral": "{_MINERAL}"}} and nothing else.'
_HEADERS = re.compile(r"ratelimit|rate-limit|^retry-after", re.IGNORECASE)
_MOST_HEADERS, _LONGEST = 12, 80


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """A question of a few tokens. Unless `told`, only the schema says what the reply must hold: so a reply that holds it
    shows that the endpoint goes by the schema.

    >>> ProbeTask().read({"mineral": "quartz"})
    'quartz'
    """

    told: bool = True

    kind: ClassVar[str] = "probe"
    version: ClassVar[str] = "1"
    shared: ClassVar[bool] = False

    @property
    def data(self) -> Mapping[str, Any]:
        """What distinguishes the two questions."""
        return {"told": self.told}

    @property
    def schema(self) -> dict[str, Any]:
        """One field with one value."""
        return {
            "type": "object",
            "properties": {"mineral": {"type": "string", "enum": [_MINERAL]}},
            "required": ["mineral"],
            "additionalProperties": False,
        }

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """One message."""
        return [{"role": "user", "content": f"{_ASK} {_SHAPE if self.told else 'Reply with a JSON object.'}"}]

    def read(self, reply: Any) -> str:
        """The one value. Raises `ReplyError` for any other reply."""
        return items.label(items.one_object(reply).get("mineral"), (_MINERAL,), "mineral")

    def doubts(self, answer: str) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """The new reply."""
        return reply

    def vote(self, answers: Mapping[str, str | None], rule: Rule) -> Vote[str]:
        """Never: nobody votes on a test. Raises `TypeError`."""
        raise TypeError("a probe is not voted on")

    def split(self, max_tokens: int | None = None) -> Split:
        """The task itself."""
        return Split((self,), lambda answers: answers[0])


@dataclass
class Findings:
    """What was found of a judge's endpoint; printed by `jurimetrics doctor`.

    `problem` says why no usable reply came, "" where one did. `formats` says of each reply format in words what came of
    it. `refused` are parameters that the endpoint refuses, `renamed` those it takes under another name, `taken` the
    others that were tried. `logprobs`, `headers` (rate limits) and `usage` are of one plain reply; tokens None where the
    endpoint does not tell. `cost_usd` is None where the price is unknown; `priced_as` is the name that has one.
    """

    judge: ChatJudge
    problem: str = ""
    formats: dict[Format, str] = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    taken: tuple[str, ...] = ()
    logprobs: str = "not tried"
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    fingerprint: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    traces: list[Trace] = field(default_factory=list)
    priced_as: str | None = None

    @property
    def cost_usd(self) -> float | None:
        """What the probe was billed."""
        costs = [trace.cost_usd for trace in self.traces]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def per_million(self) -> tuple[float, float] | None:
        """US dollars per million prompt and completion tokens, for short prompts; None where unknown."""
        ends = [self._cost(usage) for usage in (Usage(1000, 0), Usage(0, 1000))]
        return None if ends[0] is None or ends[1] is None else (ends[0] * 1000, ends[1] * 1000)

    def _cost(self, usage: Usage) -> float | None:
        return self.judge.cost(usage, self.model, datetime.now(UTC))


async def probe(judge: ChatJudge) -> Findings:
    """Ask an endpoint what it supports, in about five requests of some ten tokens.

    The first goes out with every parameter that an evaluation may send, and what is refused is dropped or renamed as there;
    then each reply format has its turn. Raises `InputError` in one line where the endpoint cannot be asked at all: nobody
    listens, the key is wrong, the model is not there, it stays overloaded.
    """
    judge.check()
    findings = Findings(judge)
    loaded = replace(
        judge,
        temperature=0.0 if judge.temperature is None else judge.temperature,
        seed=0 if judge.seed is None else judge.seed,
        max_tokens=judge.max_tokens or LIMIT,
    )
    session = Session()
    try:
        outcome = await _asked(loaded, Request(ProbeTask()), session, findings)
        findings.learned = session.learned_of(judge.endpoint, judge.model)
        _note(findings, loaded, outcome)
        for name in FORMATS:
            findings.formats[name] = await _format(loaded, name, session, findings)
        await _logprobs(loaded, session, findings)
    finally:
        await session.close()
    return findings


def _note(findings: Findings, loaded: ChatJudge, outcome: Reply | JudgeError) -> None:
    """What the first answer shows."""
    if isinstance(outcome, JudgeError):
        findings.problem = str(outcome)
    trace = outcome.trace
    findings.usage, findings.model, findings.fingerprint = trace.usage, trace.model, trace.fingerprint
    tried = ("temperature", "seed", "max_tokens", *(loaded.extra_body or {}))
    findings.taken = tuple(name for name in tried if name not in findings.learned.refused)
    for name in (loaded.model, findings.model):
        if findings.priced_as is None and name is not None:
            usage = Usage(1000, 0)
            found = loaded.cost(usage, None if name == loaded.model else name, datetime.now(UTC))
            findings.priced_as = None if found is None else loaded.price_as or name


async def _asked(judge: ChatJudge, request: Request, session: Session, findings: Findings) -> Reply | JudgeError:
    """One question with all that the endpoint must be asked for it. Raises `InputError` where nothing can be asked."""
    later = 0
    for _ in range(AMENDMENTS):
        try:
            reply = await judge.attempt(request, session)
        except JudgeError as error:
            findings.traces.append(error.trace)
            if isinstance(error.retry, Request):
                request = error.retry
                continue
            later += 1
            if error.retry == "later" and later <= LATER:
                await asyncio.sleep(min(LONGEST_WAIT_S, 0.5 * later if error.after_s is None else error.after_s))
                continue
            if error.fatal or error.kind in ("transport", "timeout", "rate_limited"):
                raise InputError(f"judge {judge.name!r}: {error.message}") from None
            return error
        findings.traces.append(reply.trace)
        return reply
    return JudgeError("rejected", f"{judge.endpoint.address}: refused in {AMENDMENTS} forms")


async def _format(judge: ChatJudge, name: Format, known: Session, findings: Findings) -> str:
    """What comes of one reply format, in words."""
    settled = known.learned_of(judge.endpoint, judge.model)
    if FORMATS.index(settled.format) > FORMATS.index(name):
        return "refused"
    # A session of its own: what is tried here is nothing to be remembered.
    session = Session()
    session.learn(judge.endpoint, judge.model, format=name, renamed=settled.renamed, dropped=settled.dropped)
    try:
        # The schema is the last to be believed: a reply in its form must not come from what is said in words.
        request = Request(ProbeTask(told=name != "json_schema"))
        try:
            reply = await judge.attempt(request, session)
        except JudgeError as error:
            findings.traces.append(error.trace)
            return _said(error, session.learned_of(judge.endpoint, judge.model).format != name)
        findings.traces.append(reply.trace)
    finally:
        await session.close()
    return "works: the reply goes by the schema" if name == "json_schema" else "works"


def _said(error: JudgeError, stepped_down: bool) -> str:
    if stepped_down:
        return "refused"
    if error.kind in ("unparsed", "incomplete", "out_of_range"):
        return "taken, but the reply does not keep to it (each reply is checked all the same)"
    return f"no reply ({error})"


async def _logprobs(judge: ChatJudge, session: Session, findings: Findings) -> None:
    """A request past the ladder: whether log-probabilities come, and the headers that tell of rate limits."""
    refused = 0
    for more in ({"logprobs": True}, {}):
        status, headers, payload = await _bare(judge, session, more)
        given = payload.get("usage")
        told = given if isinstance(given, dict) else {}
        spent = Usage(told.get("prompt_tokens"), told.get("completion_tokens"))
        cost = None if status == SILENT else 0.0
        if status < 300:
            cost = judge.cost(spent, findings.model, datetime.now(UTC))
        findings.traces.append(Trace(usage=spent, cost_usd=cost))
        for name, value in headers.items():
            if _HEADERS.search(name) and len(findings.headers) < _MOST_HEADERS:
                findings.headers[session.redact(name.lower())] = session.redact(value)[:_LONGEST]
        if status >= 300 and more:
            # Its headers are those of an error: one more request shows the usual ones.
            refused = status
            continue
        choices = payload.get("choices")
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        found = "returned" if first.get("logprobs") else "taken, but none came"
        refusal = "no reply" if refused == SILENT else f"refused (HTTP {refused})"
        findings.logprobs = refusal if refused else found
        return


async def _bare(
    judge: ChatJudge, session: Session, more: Mapping[str, Any]
) -> tuple[int, Mapping[str, str], Mapping[str, Any]]:
    """Status (`SILENT`: no answer), headers and body of one request in the form that was learned."""
    import httpx2
    from openai import APIStatusError, OpenAIError

    body, _ = request_body(judge, Request(ProbeTask()), session.learned_of(judge.endpoint, judge.model))
    try:
        async with asyncio.timeout(judge.timeout):
            client = session.client(judge.endpoint)
            response = await client.post("/chat/completions", cast_to=httpx2.Response, body={**body, **more})
    except APIStatusError as error:
        response = error.response
    except (OpenAIError, httpx2.HTTPError, TimeoutError):
        return SILENT, {}, {}
    try:
        payload = json.loads(response.content)
    except (ValueError, RecursionError):
        payload = {}
    return response.status_code, response.headers, payload if isinstance(payload, dict) else {}
