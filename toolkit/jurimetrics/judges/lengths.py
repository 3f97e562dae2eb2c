"""How long a prompt was and may be, as servers say it when they refuse one that is too long."""

from __future__ import annotations

import re
from typing import Any

from jurimetrics.judges.judge import TooLong

_NUMBER = r"\(?(\d[\d,]*)"
_ALLOWED = (
    rf"context (?:length|size|window)(?: is| of)?(?: only)?:? {_NUMBER}",
    rf"> {_NUMBER} maximum",
    rf"maximum number of (?:input )?tokens(?: allowed)?(?: is| of)? {_NUMBER}",
)
# The prompt's own count before a total, which holds the room for the reply too.
_COUNTED = (
    rf"{_NUMBER} in (?:the |your )?(?:messages|prompt)",
    rf"(?:messages|prompt|input|request) (?:resulted in|contains|has)(?: at least)? {_NUMBER} (?:input )?token",
    rf"input token count {_NUMBER}",
    r"request \((\d[\d,]*) tokens\)",
    rf"too long: {_NUMBER}",
    rf"requested(?: about)? {_NUMBER} tokens",
)
_REPLY = (
    rf"{_NUMBER} (?:in|for) (?:the |your )?(?:completion|output)",
    rf"{_NUMBER} output tokens",
    rf"too large: {_NUMBER}",
)


def too_long(message: str, body: Any = None) -> TooLong | None:
    """The numbers in a server's refusal of a long prompt; None where it is the asked reply that is too long.

    `body` is the error object, which may hold `n_prompt_tokens` and `n_ctx`. Where the message tells how many tokens are
    kept for the reply, they are taken off what is allowed.

    >>> too_long("This model's maximum context length is 4096 tokens. However, your messages resulted in 5210 tokens.")
    TooLong(counted=5210, allowed=4096)
    >>> too_long("the prompt is too long")
    TooLong(counted=None, allowed=None)
    >>> too_long("max_tokens is too large: 5000. The maximum context length is 4096 tokens, your request has 97 input tokens")
    """
    fields = body if isinstance(body, dict) else {}
    allowed = _whole(fields.get("n_ctx")) or _found(_ALLOWED, message)
    counted = _whole(fields.get("n_prompt_tokens")) or _found(_COUNTED, message)
    if allowed is None or counted is None:
        return TooLong()
    allowed -= _found(_REPLY, message) or 0
    if allowed <= 0:
        return None
    return TooLong(counted, allowed) if counted > allowed else TooLong()


def _found(patterns: tuple[str, ...], message: str) -> int | None:
    for pattern in patterns:
        found = re.search(pattern, message, re.IGNORECASE)
        if found:
            return int(found[1].replace(",", ""))
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
