"""How probable each score of a rating was, read from the log-probabilities of the token that holds the score."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

_SCORE = re.compile(rb'"score"\s*:\s*(\d)\s*[,}]')


def label_probabilities(choice: Mapping[str, Any], labels: Collection[str]) -> dict[str, float] | None:
    """The probabilities of the labels at the score's token, scaled to a sum of 1; those not listed are 0 and left out.

    `choice` is one choice of a chat completion, `labels` the digits that a score can be. None wherever it is not certain
    which token holds the score and nothing else: no log-probabilities or no alternatives among them, tokens that are not
    the text of the message, more than one score in it, a token that holds more than the digit. Tokens of a code fence that
    the server took out of the text may stand around it.

    >>> tokens = [{"token": '{"score": ', "logprob": 0.0}, {"token": "4", "logprob": -0.1, "top_logprobs": [
    ...     {"token": "4", "logprob": math.log(0.6)}, {"token": "5", "logprob": math.log(0.2)},
    ...     {"token": "x", "logprob": math.log(0.1)}]}, {"token": "}", "logprob": 0.0}]
    >>> found = label_probabilities(
    ...     {"message": {"content": '{"score": 4}'}, "logprobs": {"content": tokens}}, ("1", "2", "3", "4", "5"))
    >>> {label: round(p, 6) for label, p in found.items()}
    {'4': 0.75, '5': 0.25}
    """
    message, given = choice.get("message"), choice.get("logprobs")
    content = message.get("content") if isinstance(message, Mapping) else None
    tokens = given.get("content") if isinstance(given, Mapping) else None
    if not isinstance(content, str) or not isinstance(tokens, list):
        return None
    texts = [_bytes(token) for token in tokens]
    known = [text for text in texts if text is not None]
    text, whole = content.encode("utf-8", "surrogatepass"), b"".join(known)
    scores = list(_SCORE.finditer(text))
    if len(known) < len(texts) or len(scores) != 1 or whole.count(text) != 1:
        return None
    at, start = whole.index(text) + scores[0].start(1), 0
    for token, own in zip(tokens, known, strict=True):
        if start <= at < start + len(own):
            digit = scores[0][1].decode("ascii")
            return _shares(token, labels) if own.strip() == scores[0][1] and digit in labels else None
        start += len(own)
    return None


def _shares(token: Mapping[str, Any], labels: Collection[str]) -> dict[str, float] | None:
    """The labels' probabilities among the alternatives of a token; with and without a blank before it is one label."""
    alternatives = token.get("top_logprobs")
    if not isinstance(alternatives, list) or len(alternatives) < 2:
        return None
    found: dict[str, float] = {}
    for one in alternatives:
        text, chance = _bytes(one), one.get("logprob") if isinstance(one, Mapping) else None
        if text is None or isinstance(chance, bool) or not isinstance(chance, int | float) or not chance <= 1e-3:
            return None
        label = text.strip().decode("utf-8", "replace")
        if label in labels:
            found[label] = found.get(label, 0.0) + math.exp(chance)
    total = math.fsum(found.values())
    own = (_bytes(token) or b"").strip().decode("utf-8", "replace")
    if own not in found or not total > 0:
        return None
    return {label: p / total for label, p in sorted(found.items())}


def _bytes(token: Any) -> bytes | None:
    """The bytes of a token: a letter may be spread over several tokens, whose texts are not to be had then."""
    if not isinstance(token, Mapping):
        return None
    given, text = token.get("bytes"), token.get("token")
    if isinstance(given, list):
        try:
            return bytes(given)
        except (TypeError, ValueError):
            return None
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None
