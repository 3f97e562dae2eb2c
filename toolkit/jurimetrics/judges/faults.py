"""What it means when an endpoint does not answer with a reply: one reading of statuses, error bodies and broken lines."""

from __future__ import annotations

import errno
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from jurimetrics.errors import FailureKind
from jurimetrics.judges.judge import TooLong
from jurimetrics.judges.lengths import too_long

SHOWN = 300
"""Characters of a server's own message that are repeated in ours."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no reply. `message` is what the server said, in one line, unredacted.

    `later`: the same request may succeed after a wait, `after_s` seconds where the endpoint said so. `limited`: it is
    asked too fast. `fatal`: every further request must fail alike. `parameter` is the sent parameter that it refused;
    `unclear` is True where it refused the request without saying what for. `billed` is False where the request cost
    nothing because the endpoint answered it with an error. `too_long` is set where the prompt does not fit the model.
    """

    kind: FailureKind
    message: str
    later: bool = False
    after_s: float | None = None
    limited: bool = False
    fatal: bool = False
    parameter: str | None = None
    unclear: bool = False
    billed: bool = False
    too_long: TooLong | None = None


def status_fault(
    status: int, headers: Mapping[str, str], body: Any, sent: Collection[str], *, settled: bool = True
) -> Fault:
    """The meaning of an error status; `body` is the parsed JSON or the text, `sent` the parameters of the request.

    >>> body = {"error": {"message": "Unsupported parameter: 'max_tokens'", "param": "max_tokens", "code": None}}
    >>> status_fault(400, {}, body, ("model", "messages", "max_tokens")).parameter
    'max_tokens'
    >>> status_fault(429, {"retry-after": "2"}, "slow down", ()).after_s
    2.0
    """
    error = _ErrorBody.of(body)
    said = f"HTTP {status}: {error.message}" if error.message else f"HTTP {status}"
    category = _filtered(error)
    if 400 <= status < 500 and category is not None:
        return Fault("filtered", f"content filter{category}: {said}", billed=True)
    if status == 429:
        if error.code in _QUOTA or error.type in _QUOTA:
            return Fault("rejected", said, fatal=True)
        return Fault("rate_limited", said, later=True, after_s=retry_after_s(headers), limited=True)
    if _TOO_LONG.search(f"{error.code} {error.type} {error.message}") or status == 413:
        told = too_long(error.message, error.whole)
        return Fault("rejected", f"the request does not fit the model; set max_input_tokens ({said})", too_long=told)
    parameter = _named(error, sent) if status in (400, 404, 422, 500, 501) else None
    if parameter is not None and (status < 500 or parameter == "response_format"):
        return Fault("rejected", said, parameter=parameter)
    if status in (400, 422):
        return Fault("rejected", said, unclear=not settled, fatal=error.code in _NO_MODEL)
    if status in (408, 409, 425) or (status >= 500 and status not in (501, 505)):
        after_s = retry_after_s(headers)
        return Fault("transport", said, later=True, after_s=after_s, limited=status == 529 or after_s is not None)
    if 300 <= status < 400:
        return Fault("rejected", f"{said}: the address sends on to another one; give that one as base_url", fatal=True)
    return Fault("rejected", said, fatal=status in (401, 402, 403, 404, 405))


def connection_fault(error: BaseException) -> Fault:
    """The meaning of a line that broke, by the error at its root: the client wraps a closed one as a timeout.

    >>> connection_fault(ConnectionRefusedError("no")).fatal
    True
    """
    import aiohttp

    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    if any(isinstance(cause, aiohttp.ClientProxyConnectionError) for cause in chain):
        said = "the proxy that the environment names (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) cannot be reached"
        return Fault("transport", said, later=True, fatal=True)
    for cause in reversed(chain):
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            return Fault("transport", "the host's name is not known", later=True, fatal=True)
        if isinstance(cause, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return Fault(
                "transport", "no secure connection: the certificate or the protocol does not match", True, fatal=True
            )
        if isinstance(cause, ConnectionRefusedError) or (isinstance(cause, OSError) and cause.errno in _NOBODY):
            return Fault("transport", "nobody listens there", later=True, fatal=True)
        if isinstance(cause, aiohttp.ClientConnectorError):
            return Fault("transport", "no connection", later=True)
    return Fault("transport", "the connection was dropped before the reply was whole", later=True, billed=True)


_NOBODY = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that an endpoint asks to wait; None where it does not say or says nonsense.

    `retry-after-ms`, else `retry-after` as seconds or as an HTTP date (a date gone by is 0).

    >>> retry_after_s({"retry-after": "1.5"}), retry_after_s({"retry-after": "soon"}), retry_after_s({})
    (1.5, None, None)
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _seconds(asked)
    if seconds is not None or asked is None:
        return seconds
    try:
        until = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


# --- error bodies ---

_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated")
_NO_MODEL = ("model_not_found", "invalid_model", "DeploymentNotFound")
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|string_above_max_length|context (?:window|size|length)"
    r"|prompt is too long|input is too long|too many (?:input )?tokens|reduce the length"
    r"|token count.{0,40} exceeds",
    re.IGNORECASE,
)
_FILTER_CODES = re.compile(
    r"content_filter|content_policy_violation|content_management_policy|ResponsibleAIPolicyViolation|moderation_blocked"
    r"|data_inspection_failed|content management policy",
    re.IGNORECASE,
)
_FORMAT_WORDS = re.compile(
    r"response[_ ]format|json[_ ]schema|json[_ ]object|json mode|structured output|guided[_ ](?:json|decoding)|grammar",
    re.IGNORECASE,
)
_ESSENTIAL = ("model", "messages", "stream")
_PLAIN_WORDS = ("temperature", "seed")


@dataclass(frozen=True, slots=True)
class _ErrorBody:
    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""
    whole: Any = None

    @classmethod
    def of(cls, body: Any) -> _ErrorBody:
        if isinstance(body, list) and body:
            body = body[0]
        if not isinstance(body, dict):
            text = "HTML instead of JSON" if is_html(str(body)) else str(body or "")
            return cls(_one_line(text))
        error = body.get("error", body)
        if not isinstance(error, dict):
            return cls(_one_line(str(error)), whole=body)
        message = error.get("message") or error.get("detail") or error.get("msg") or body.get("detail") or ""
        shown = message if isinstance(message, str) else json.dumps(message, default=str)
        code, kind, param = (str(error.get(name) or "") for name in ("code", "type", "param"))
        return cls(_one_line(shown), code, kind, param, error)


def is_html(text: str) -> bool:
    """Whether a body is a web page."""
    return text.lstrip("\ufeff \r\n\t")[:200].lower().startswith(("<!doctype", "<html", "<head", "<body", "<?xml"))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."


def _named(error: _ErrorBody, sent: Collection[str]) -> str | None:
    """The sent parameter that an error is about; None where it names none."""
    optional = sorted((name for name in sent if name not in _ESSENTIAL), key=len, reverse=True)
    root = re.split(r"[.\[]", error.param)[0]
    if root:
        return root if root in optional else None
    for name in optional:
        bounded = rf"(?<![\w.]){re.escape(name)}(?!\w)"
        if "_" not in name and name not in _PLAIN_WORDS:
            bounded = rf"['\"`]{re.escape(name)}['\"`]"
        if re.search(bounded, error.message):
            return name
    return "response_format" if "response_format" in optional and _FORMAT_WORDS.search(error.message) else None


def _filtered(error: _ErrorBody) -> str | None:
    """The filter's categories in brackets ("" where it names none); None where no filter is at work."""
    inner = error.whole.get("innererror") if isinstance(error.whole, dict) else None
    inner = inner if isinstance(inner, dict) else {}
    if not _FILTER_CODES.search(f"{error.code} {error.type} {inner.get('code', '')} {error.message}"):
        metadata = error.whole.get("metadata") if isinstance(error.whole, dict) else None
        reasons = metadata.get("reasons") if isinstance(metadata, dict) else None
        return f" ({_one_line(', '.join(map(str, reasons)))})" if isinstance(reasons, list) and reasons else None
    return categories(inner.get("content_filter_result") or inner.get("content_filter_results"))


def categories(results: Any) -> str:
    """The categories for which a filter's results say that it filtered, in brackets; "" where none is named.

    >>> categories({"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False}})
    ' (hate)'
    """
    if not isinstance(results, dict):
        return ""
    named = sorted(name for name, found in results.items() if isinstance(found, dict) and found.get("filtered") is True)
    return f" ({_one_line(', '.join(named))})" if named else ""
