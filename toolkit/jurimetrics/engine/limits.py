"""How fast one endpoint is asked: places in flight, a rate that gives way to limits, waiting before another try.

All metrics and judges on an endpoint share one `Limiter`. `Pace` is its pure core: it is told the time and never waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
LOOK_BACK = 100
CROWDED = 0.15
"""Above this share of refusals for speed among the last answers the rate is cut; a lone one delays only its own call
(cutting on each of 6 % failures was simulated to cost 14 times the ideal time)."""
ENOUGH = 20


def wait_before_retry(tries: int, after_s: float | None, draw: float) -> float:
    """Seconds to wait after the `tries`-th failure in a row (from 1): what the endpoint asked for, within bounds, else
    exponential with jitter. `draw` is uniform in 0 to 1.

    >>> wait_before_retry(1, None, 1.0), wait_before_retry(3, None, 0.0), wait_before_retry(1, 600.0, 0.5) <= 66
    (0.5, 1.0, True)
    """
    if after_s is not None:
        # A little spread, so that calls told the same moment do not come back as one crowd.
        return min(max(after_s, 0.0), LONGEST_WAIT_S) * (1 + 0.1 * draw)
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (tries - 1))
    return longest * (0.5 + 0.5 * draw)


@dataclass
class Pace:
    """Additive increase, multiplicative decrease of the requests a second; no limit until the endpoint shows one."""

    rate: float | None = None
    _answers: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=LOOK_BACK))
    _next: float = 0.0
    _cut_at: float = float("-inf")

    def start(self, now: float) -> float:
        """When the next request may start (seconds on the same clock); takes that place."""
        begin = max(now, self._next)
        if self.rate is not None:
            self._next = begin + 1.0 / self.rate
        return begin

    def answered(self, now: float, limited: bool) -> None:
        """Take note of an answer: `limited` where the endpoint said that it is asked too fast."""
        self._answers.append((now, limited))
        if limited:
            self._cut(now)
        elif self.rate is not None:
            # One request a second more for each second of answers at the present rate.
            self.rate += 1.0 / self.rate

    def _cut(self, now: float) -> None:
        refused = sum(limited for _, limited in self._answers)
        if len(self._answers) < ENOUGH or refused <= CROWDED * len(self._answers) or now - self._cut_at < 1.0:
            return
        served = [at for at, limited in self._answers if not limited and at > now - 2.0]
        # What was served in the last two seconds is the best guess at what the endpoint bears.
        self.rate = max(1.0, 0.8 * len(served) / 2.0)
        self._next = max(self._next, now)
        self._cut_at = now


class Limiter:
    """At most `places` requests in flight at one endpoint, paced by what it says of its limits."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._pace = Pace()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one place in flight, from the moment that the pace allows."""
        async with self._places:
            clock = asyncio.get_running_loop().time
            delay = self._pace.start(clock()) - clock()
            if delay > 0:
                await asyncio.sleep(delay)
            yield

    def answered(self, limited: bool) -> None:
        """Take note of an answer for the pace."""
        self._pace.answered(asyncio.get_running_loop().time(), limited)

    @staticmethod
    async def wait(tries: int, after_s: float | None) -> None:
        """Wait before another try, without holding a place."""
        await asyncio.sleep(wait_before_retry(tries, after_s, random.random()))
