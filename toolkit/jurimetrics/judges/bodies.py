"""The body of one chat request: the task's messages, the format, and the parameters that the endpoint takes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jurimetrics.judges.judge import ReAsk, Request
from jurimetrics.judges.session import Format, Learned
from jurimetrics.tasks.rate import RateRubric

if TYPE_CHECKING:
    from jurimetrics.judges.chat import ChatJudge

ROOM = 8192
"""The output limit of a second try after a cut-off reply where none is declared: the cut was the endpoint's default."""

ALTERNATIVES = 20
"""Tokens whose log-probabilities are asked for beside the chosen one: the most that OpenAI gives."""

_FAULT_SHOWN = 300
_SURROGATE = re.compile("[\ud800-\udfff]")


def request_body(judge: ChatJudge, request: Request, learned: Learned) -> tuple[dict[str, Any], Format]:
    """The JSON body and the reply format that it asks for."""
    schema = request.task.schema
    format_: Format = learned.format if schema else "plain"
    body: dict[str, Any] = {"model": judge.model, "messages": _messages(request, schema, format_)}
    if judge.temperature is not None:
        body["temperature"] = judge.temperature
    if judge.seed is not None:
        body["seed"] = judge.seed + request.repeat
    limit = limit_of(judge, request)
    if limit is not None:
        body["max_tokens"] = limit
    if schema and format_ == "json_schema":
        name = re.sub(r"[^A-Za-z0-9_-]", "_", request.task.kind)[:64] or "reply"
        described = {"name": name, "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    elif format_ == "json_object":
        body["response_format"] = {"type": "json_object"}
    if judge.logprobs and isinstance(request.task, RateRubric) and request.task.labels:
        body |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
    if judge.extra_body:
        body.update(judge.extra_body)
    for old, new in learned.renamed:
        if old in body:
            body.setdefault(new, body.pop(old))
    for name in learned.dropped:
        body.pop(name, None)
    if "logprobs" in learned.dropped:
        # Alternatives alone mean nothing, and endpoints refuse them.
        body.pop("top_logprobs", None)
    return body, format_


def limit_of(judge: ChatJudge, request: Request) -> int | None:
    """The output limit in tokens that a request is sent with; None where the endpoint's own holds."""
    if judge.max_tokens is not None:
        return judge.max_tokens * request.room
    return ROOM if request.room > 1 else None


def _messages(request: Request, schema: dict[str, Any], format_: Format) -> list[dict[str, str]]:
    messages = request.task.messages(request.reason_language)
    # At the end of the last message, so that what providers cache of a prompt is the same in every format.
    added = [_shape(schema)] if schema and format_ != "json_schema" else []
    # What is written without a schema is asked for again in the same words: others would be another prompt's answer.
    if request.reask is not None and schema:
        added.append(_reask(request.reask))
    if added:
        last = messages[-1]
        messages = [*messages[:-1], {**last, "content": "\n\n".join([last["content"], *added])}]
    return [_sendable(message) for message in messages]


def _shape(schema: dict[str, Any]) -> str:
    described = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Reply with one JSON object and nothing else, valid under this JSON schema:\n{described}"


def _reask(reask: ReAsk) -> str:
    """What was wrong, in our words: whatever stands in quotation marks came out of the reply and is left out."""
    fault = re.sub(r"'[^']*'?|\"[^\"]*\"?", "[...]", " ".join(reask.fault.split()))[:_FAULT_SHOWN]
    told = f"A reply to this was given before and could not be used as it was: {fault}."
    if not reask.missing:
        return f"{told} Reply again with the whole JSON object."
    numbers = ", ".join(map(str, reask.missing))
    wanted = f"an entry for number {numbers}" if len(reask.missing) == 1 else f"entries for the numbers {numbers}"
    return f"{told} Reply again in the same form with {wanted} only; all other entries are kept."


def _sendable(message: dict[str, str]) -> dict[str, str]:
    """Half of a surrogate pair cannot be sent; it becomes the replacement character."""
    content = message["content"]
    if content.isascii() or not _SURROGATE.search(content):
        return message
    return {**message, "content": _SURROGATE.sub("\ufffd", content)}
