"""From what an endpoint sent to an answer or a typed failure, with what is to be done next."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from jurimetrics.errors import ReplyError
from jurimetrics.judges.bodies import limit_of
from jurimetrics.judges.exchange import Exchange
from jurimetrics.judges.faults import Fault, categories
from jurimetrics.judges.judge import JudgeError, ReAsk, Reply, Request, Trace, standing_reply
from jurimetrics.judges.probabilities import label_probabilities
from jurimetrics.judges.replies import objects_in, parse_reply
from jurimetrics.judges.session import FORMATS, Format, Session
from jurimetrics.tasks.rate import PROBABILITIES, RateRubric

if TYPE_CHECKING:
    from jurimetrics.judges.chat import ChatJudge
    from jurimetrics.judges.embedders import EndpointEmbedder

_MASKED = re.compile(r"[^\s\"']*\*{3,}[^\s\"']*")
_THOUGHTS = ("reasoning_content", "reasoning")
_LIMITS = ("max_tokens", "max_completion_tokens")


def outcome_of(
    judge: ChatJudge, request: Request, session: Session, exchange: Exchange, format_: Format
) -> Reply | JudgeError:
    """The reply, or the error to raise. Where a re-ask fails for good, the reply before it stands if it can be read."""
    if exchange.fault is not None:
        outcome: Reply | JudgeError = _failed(judge, request, session, exchange, exchange.fault, format_)
    else:
        if not session.learned_of(judge.endpoint, judge.model).settled:
            session.learn(judge.endpoint, judge.model, settled=True)
        outcome = _read(judge, request, session, exchange, format_)
    if isinstance(outcome, JudgeError) and outcome.retry == "no" and not outcome.fatal:
        standing = standing_reply(request)
        if standing is not None:
            return Reply(standing[0], standing[1], outcome.trace)
    return outcome


def trace_of(
    judge: ChatJudge | EndpointEmbedder, session: Session, exchange: Exchange, format_: str, raw: str | None
) -> Trace:
    """What one request looked like and cost; `raw` is what is kept of the reply, without secrets."""
    payload, usage = exchange.payload, exchange.usage
    model, mark = (_text(payload.get(name), session) for name in ("model", "system_fingerprint"))
    cost = judge.cost(usage, model, datetime.now(UTC))
    if exchange.fault is not None and not exchange.fault.billed:
        cost = 0.0
    return Trace(
        usage=usage,
        latency_s=exchange.latency_s,
        model=model,
        fingerprint=mark,
        finish_reason=_text(_choice(exchange).get("finish_reason"), session),
        format=format_,
        refused_parameters=session.learned_of(judge.endpoint, judge.model).refused,
        raw=raw,
        cost_usd=cost,
        headroom=exchange.headroom,
    )


def _text(value: Any, session: Session) -> str | None:
    return session.redact(value) if isinstance(value, str) else None


def _choice(exchange: Exchange) -> Mapping[str, Any]:
    choices = exchange.payload.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


# --- no reply ---


def _failed(
    judge: ChatJudge, request: Request, session: Session, exchange: Exchange, fault: Fault, format_: Format
) -> JudgeError:
    amended = fault.kind == "rejected" and _amended(judge, request, session, fault, format_)
    error = replace(no_reply(judge, session, exchange, fault, format_), too_long=fault.too_long)
    if amended:
        return replace(error, retry=request, fatal=False)
    if fault.kind == "rejected" and request.room > 1 and not fault.fatal:
        message = f"the reply was cut off, and a larger limit was refused ({error.message})"
        return replace(error, kind="truncated", message=message, too_long=None)
    return error


def no_reply(
    judge: ChatJudge | EndpointEmbedder, session: Session, exchange: Exchange, fault: Fault, format_: str
) -> JudgeError:
    """The error of a request that was answered with a fault, for the same request later or for none."""
    message = f"{judge.endpoint.address}: {_safe(session, fault.message)}"
    if fault.fatal:
        message = f"{message} - model {judge.model!r}, {_key_source(judge)}"
    retry: Literal["no", "later"] = "later" if fault.later else "no"
    trace = trace_of(judge, session, exchange, format_, None if exchange.raw is None else _safe(session, exchange.raw))
    return JudgeError(fault.kind, message, retry, fault.after_s, fault.limited, fault.fatal, trace)


def _safe(session: Session, text: str) -> str:
    """A server's message without secrets, and without what a server leaves of a key when it masks it itself."""
    return _MASKED.sub("***", session.redact(text))


def _key_source(judge: ChatJudge | EndpointEmbedder) -> str:
    variable = judge.endpoint.key_variable
    return f"key from the environment variable {variable}" if variable else "no key configured (api_key_env)"


def _amended(judge: ChatJudge, request: Request, session: Session, fault: Fault, format_: Format) -> bool:
    """Learn from a refusal what to send instead; False where there is nothing else to try."""
    name, endpoint = fault.parameter, judge.endpoint
    known = session.learned_of(endpoint, judge.model)
    if name == "response_format" or (name is None and fault.unclear):
        below = FORMATS.index(format_) + 1
        if not request.task.schema or below == len(FORMATS):
            if name is None and known.format != FORMATS[0]:
                # No format was at fault: the next request starts from the top again.
                session.learn(endpoint, judge.model, format=FORMATS[0])
            return False
        if FORMATS.index(known.format) < below:
            session.learn(endpoint, judge.model, format=FORMATS[below], settled=False)
        return True
    if name is None:
        return False
    renamed = dict(known.renamed)
    if name in _LIMITS and request.room > 1 and judge.max_tokens is None and name != "max_tokens":
        return False
    if name == "max_tokens" and name not in renamed:
        session.learn(endpoint, judge.model, renamed=(*known.renamed, (name, _LIMITS[1])), settled=False)
    elif name not in renamed and name not in known.dropped:
        session.learn(endpoint, judge.model, dropped=(*known.dropped, name), settled=False)
    return True


# --- a reply ---


def _read(
    judge: ChatJudge, request: Request, session: Session, exchange: Exchange, format_: Format
) -> Reply | JudgeError:
    choice = _choice(exchange)
    given = choice.get("message")
    message: Mapping[str, Any] = given if isinstance(given, dict) else {}
    text = session.redact(_content(message.get("content")))
    trace = trace_of(judge, session, exchange, format_, text)
    if trace.finish_reason == "length":
        # A text is written within the limit that is part of what is tested; more room would be another variant.
        more = request.room == 1 and bool(request.task.schema)
        retry: Literal["no"] | Request = replace(request, room=2) if more else "no"
        return JudgeError("truncated", _cut_off(judge, request, trace), retry, trace=trace)
    if trace.finish_reason == "content_filter":
        named = session.redact(categories(choice.get("content_filter_results")))
        return JudgeError("filtered", f"content filter{named}: the endpoint withheld the reply", trace=trace)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        said = " ".join(session.redact(refusal).split())[:200]
        who = "judge" if request.task.schema else "model"
        return JudgeError("refused", f"the {who} declined: {said}", trace=replace(trace, raw=text or said))
    try:
        data, answer = _answer(request, text)
        if judge.logprobs and isinstance(request.task, RateRubric):
            data = {**data, PROBABILITIES: label_probabilities(choice, request.task.labels)}
            answer = request.task.read(data)
    except ReplyError as error:
        return _unusable(request, error, trace, "" if text.strip() else _instead(message))
    doubted = request.task.doubts(answer) if request.reask is None else ()
    if doubted:
        numbers = ", ".join(map(str, doubted))
        fault = f"what is quoted for number {numbers} does not stand word for word in the text"
        reask = ReAsk(fault, data, tuple(doubted))
        return JudgeError("incomplete", f"{fault}; asked again", replace(request, reask=reask), trace=trace)
    return Reply(answer, data, trace)


def _content(content: Any) -> str:
    """The text of a message; of a list of parts the text parts, thinking left out."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _answer(request: Request, text: str) -> tuple[Any, Any]:
    task, reask = request.task, request.reask
    schema = task.schema
    if not schema:
        return text, task.read(text)
    keys = schema.get("properties", {}).keys()
    if reask is None or not reask.previous:
        data, answer = parse_reply(text, lambda data: task.read(_own(data)), keys, lambda entry: _echoed(task, entry))
        return _own(data), answer
    previous = reask.previous

    def laid_over(data: Any) -> tuple[Any, Any]:
        merged = task.merge(previous, _own(data))
        return merged, task.read(merged)

    return parse_reply(text, laid_over, keys, lambda entry: _echoed(task, entry))[1]


def _echoed(task: Any, entry: dict[str, Any]) -> bool:
    """Whether an object stands as it is in a text that the judge was shown: then it is somebody else's, not its verdict."""
    shown = "\n".join(_strings(dict(task.data)))
    said = list(_strings(entry))
    # Quick for all but echoes: a judge's own words do not stand in what it judges.
    if not said or not all(text in shown or json.dumps(text)[1:-1] in shown for text in said):
        return False
    return entry in [found for found in objects_in(shown) if isinstance(found, dict)]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _own(data: Any) -> Any:
    """A judge's object without the key that only we may set."""
    return {key: value for key, value in data.items() if key != PROBABILITIES} if isinstance(data, dict) else data


def _instead(message: Mapping[str, Any]) -> str:
    """What a message holds in place of a text, as far as that explains why it has none."""
    if message.get("tool_calls") or message.get("function_call"):
        return "; the model called a tool instead of answering"
    if any(isinstance(message.get(name), str) and message[name].strip() for name in _THOUGHTS):
        return "; the model reasoned and then said nothing"
    return ""


def _unusable(request: Request, error: ReplyError, trace: Trace, instead: str) -> JudgeError:
    message = f"{error.fault}{instead}"
    if request.reask is not None or error.kind == "refused":
        return JudgeError(error.kind, message, trace=trace)
    again = ReAsk(error.fault, dict(error.valid), error.missing)
    return JudgeError(error.kind, message, replace(request, reask=again), trace=trace)


def _cut_off(judge: ChatJudge, request: Request, trace: Trace) -> str:
    spent, limit = trace.usage.completion, limit_of(judge, request)
    at = "" if spent is None else f" after {spent} tokens"
    if trace.usage.reasoning:
        at += f", {trace.usage.reasoning} of them hidden reasoning"
    bound = f"the limit is {limit}" if limit is not None else "the endpoint's own limit"
    return f"the reply was cut off{at}; {bound}: raise max_tokens"
