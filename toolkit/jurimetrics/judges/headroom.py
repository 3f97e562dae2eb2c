"""What an answer says of the room left at its endpoint: refusals for speed, and the usual rate-limit headers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

CROWDED_STATUSES = (429, 503, 529)
_LIMITED = ("requests", "tokens")
_SPAN = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in ("d", "h", "m", "s", "ms")))
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_EPOCH = 1e9
"""A plain number above this is a moment (seconds since 1970), not a span."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """`crowded`: the endpoint turned the request away because it is asked too fast. `empty_s`: nothing is left of a limit
    for so many seconds; None where something is left or the endpoint does not say."""

    crowded: bool = False
    empty_s: float | None = None


UNSAID = Headroom()


def headroom_of(status: int, headers: Mapping[str, str], now: datetime | None = None) -> Headroom:
    """The headroom that a status and the `x-ratelimit-remaining-*` and `x-ratelimit-reset-*` headers show.

    >>> headroom_of(200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m1.5s"})
    Headroom(crowded=False, empty_s=61.5)
    >>> headroom_of(200, {"x-ratelimit-remaining-tokens": "12"}) is UNSAID, headroom_of(429, {}).crowded
    (True, True)
    """
    empty: float | None = None
    for what in _LIMITED:
        left = headers.get(f"x-ratelimit-remaining-{what}")
        if left is not None and _is_nothing(left):
            reset = reset_s(headers.get(f"x-ratelimit-reset-{what}"), now)
            empty = reset if empty is None else max(empty, reset or 0.0)
    crowded = status in CROWDED_STATUSES
    return Headroom(crowded, empty) if crowded or empty is not None else UNSAID


def _is_nothing(left: str) -> bool:
    try:
        return float(left) <= 0
    except ValueError:
        return False


def reset_s(reset: str | None, now: datetime | None = None) -> float | None:
    """Seconds until a limit is refilled: a span (`6m0s`, `120ms`, `1.5`), a moment (since 1970, or ISO); None for junk.

    >>> reset_s("6m0s"), reset_s("120ms"), reset_s("1.5"), reset_s("soon"), reset_s("-3"), reset_s("")
    (360.0, 0.12, 1.5, None, None, None)
    """
    text = (reset or "").strip()
    if not text:
        return None
    now = now or datetime.now(UTC)
    try:
        number = float(text)
    except ValueError:
        return _span_s(text) if _SPAN.fullmatch(text) else _until_s(text, now)
    if not math.isfinite(number) or number < 0:
        return None
    return max(0.0, number - now.timestamp()) if number > _EPOCH else number


def _span_s(text: str) -> float | None:
    found = _SPAN.fullmatch(text)
    assert found is not None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS_S, strict=True) if part is not None)


def _until_s(text: str, now: datetime) -> float | None:
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())
