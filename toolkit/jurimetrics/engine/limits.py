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

from jurimetrics.judges.headroom import UNSAID, Headroom
from jurimetrics.judges.judge import Usage

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
"""The longest wait for one try, whatever an endpoint asks for (with up to a tenth more, so that a crowd spreads)."""
LONGEST_CALL_S = 900.0
"""No further try of a call is begun so long after its first request: it then fails as it last failed. With the time limit
of one attempt this bounds a call as a whole."""
LOOK_BACK = 100
CROWDED = 0.15
"""Where more than this share of the last `LOOK_BACK` answers were refusals for speed the rate is cut; fewer delay only
their own calls (cutting on each of 6 % failures was simulated to cost 14 times the ideal time)."""
WINDOW_S = 1.0
"""What was served in this time is the best guess at what an endpoint bears."""
SLOWEST = 1.0
"""Requests a second below which no cut goes."""
SLACK_S = 0.02
"""How much a start that came late may be caught up: a sleep ends a little late each time."""
FIRST_REPLY_TOKENS = 200.0
"""What a reply is taken to be while a model has given none."""


def wait_before_retry(tries: int, after_s: float | None, draw: float) -> float:
    """Seconds to wait after the `tries`-th failure in a row (from 1): what the endpoint asked for, within bounds, else
    exponential with jitter. `draw` is uniform in 0 to 1.

    >>> wait_before_retry(1, None, 1.0), wait_before_retry(3, None, 0.0), wait_before_retry(1, 600.0, 0.5) <= 66
    (0.5, 1.0, True)
    """
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 30))
    if after_s is not None:
        # An endpoint that asks for no wait at all, over and over, is not asked without any.
        return min(max(after_s, 0.1 * longest), LONGEST_WAIT_S) * (1 + 0.1 * draw)
    return longest * (0.5 + 0.5 * draw)


@dataclass(frozen=True, slots=True)
class PerMinute:
    """What may be sent to one endpoint in a minute; None: not declared.

    >>> PerMinute(requests=600).meet(PerMinute(requests=60, tokens=9000))
    PerMinute(requests=60, tokens=9000)
    """

    requests: float | None = None
    tokens: float | None = None

    def meet(self, other: PerMinute) -> PerMinute:
        """The stricter of each limit."""
        return PerMinute(_least(self.requests, other.requests), _least(self.tokens, other.tokens))


class TooLate(Exception):  # noqa: N818 - not an error: the call is given up as it last failed
    """A further try did not get a place before its call had to be given up."""


def _least(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)


@dataclass
class Pace:
    """When the next request may start.

    The rate (requests a second) is unlimited until the endpoint shows a limit; then it is cut at most once in a window,
    to less than what was served, and grows by a constant amount per second. A window ends when answers come to requests
    that were sent after the cut: those sent before it say nothing of the new rate. Declared limits per minute are spread
    evenly, because many endpoints apply them by the second.

    >>> pace = Pace(PerMinute(requests=60))
    >>> pace.start(0.0), pace.delay(0.25)
    (None, 0.75)
    """

    declared: PerMinute = PerMinute()
    rate: float | None = None
    step: float = 1.0
    cuts: int = 0
    _crowded: deque[bool] = field(default_factory=lambda: deque(maxlen=LOOK_BACK))
    _refused: int = 0
    _served: deque[float] = field(default_factory=deque)
    _next: float = float("-inf")
    _next_by_tokens: float = float("-inf")
    _empty_until: float = float("-inf")
    _cut_at: float = float("-inf")
    _emptied_at: float = float("-inf")

    def delay(self, now: float) -> float:
        """Seconds until a request may start; 0 for now."""
        return max(0.0, self._next - now, self._next_by_tokens - now, self._empty_until - now)

    def start(self, now: float, tokens: float = 0.0) -> None:
        """Take note that a request of about so many tokens starts."""
        spacing = 0.0 if self.rate is None else 1.0 / self.rate
        if self.declared.requests is not None:
            spacing = max(spacing, 60.0 / self.declared.requests)
        if spacing:
            late = now - self._next
            self._next = (self._next if late <= SLACK_S else now) + spacing
        if self.declared.tokens is not None:
            self._next_by_tokens = max(self._next_by_tokens, now) + tokens * 60.0 / self.declared.tokens

    def correct(self, tokens: float) -> None:
        """Take note that a request took so many tokens more (or fewer, below 0) than it was started with."""
        if self.declared.tokens is not None:
            self._next_by_tokens += tokens * 60.0 / self.declared.tokens

    def answered(self, now: float, begun: float, served: bool, headroom: Headroom = UNSAID) -> None:
        """Take note of an answer to a request that was begun at `begun`; `served` is False for one without a reply."""
        if headroom.empty_s is not None and begun >= self._emptied_at:
            self._emptied_at = now
            self._empty_until = max(self._empty_until, now + min(headroom.empty_s, LONGEST_WAIT_S))
        if served:
            self._served.append(now)
        while self._served and self._served[0] <= now - WINDOW_S:
            self._served.popleft()
        if begun < self._cut_at:
            return
        if len(self._crowded) == LOOK_BACK:
            self._refused -= self._crowded[0]
        self._crowded.append(headroom.crowded)
        self._refused += headroom.crowded
        if headroom.crowded and self._refused > CROWDED * LOOK_BACK:
            self._cut(now)
        elif served and self.rate is not None:
            # `step` requests a second more for each second of answers at the present rate.
            self.rate += self.step / self.rate

    def _cut(self, now: float) -> None:
        borne = len(self._served) / WINDOW_S
        if self.rate is not None:
            borne = min(borne, self.rate)
        self.rate = max(SLOWEST, 0.8 * borne)
        self.step = max(1.0, 0.1 * self.rate)
        self.cuts += 1
        self._cut_at = now
        self._next = max(self._next, now)
        self._crowded.clear()
        self._refused = 0


@dataclass
class _Replies:
    """How many tokens the replies of a model took."""

    count: int = 0
    mean: float = FIRST_REPLY_TOKENS

    def add(self, tokens: int) -> None:
        self.count += 1
        self.mean += (tokens - self.mean) / self.count


@dataclass
class Started:
    """A request that holds a place: since when, and with how many tokens it was reckoned."""

    begun: float
    tokens: float = 0.0


class Limiter:
    """At most `places` requests in flight at one endpoint, paced by what it declares and says of its limits.

    A second try waits for its place before all first ones, so that the time of a call stays bounded in a long run.
    """

    def __init__(self, places: int, per_minute: PerMinute | None = None) -> None:
        self._free = places
        self._again: deque[asyncio.Future[None]] = deque()
        self._fresh: deque[asyncio.Future[None]] = deque()
        self._gate = asyncio.Lock()
        self.pace = Pace(per_minute or PerMinute())
        self._replies: dict[str, _Replies] = {}

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, so that a request must be started with an estimate."""
        return self.pace.declared.tokens is not None

    @property
    def free(self) -> int:
        """Places that nobody holds."""
        return self._free

    def estimate(self, model: str, prompt_tokens: float) -> float:
        """The tokens that a request will take: its prompt and what the model's replies took on average."""
        return prompt_tokens + self._replies.get(model, _Replies()).mean

    @asynccontextmanager
    async def place(self, tokens: float = 0.0, *, until: float | None = None) -> AsyncIterator[Started]:
        """Hold one place in flight, from the moment that the pace allows.

        `until` is for a further try: it goes before first ones, and waits no longer than to that moment of the loop's
        clock; then `TooLate` is raised.
        """
        if until is None:
            started = await self._start(tokens, self._fresh)
        else:
            try:
                async with asyncio.timeout_at(until):
                    started = await self._start(tokens, self._again)
            except TimeoutError:
                raise TooLate from None
        try:
            yield started
        finally:
            self._leave()

    async def _start(self, tokens: float, queue: deque[asyncio.Future[None]]) -> Started:
        await self._take(queue)
        clock = asyncio.get_running_loop().time
        try:
            # One at a time waits for the pace; what it waits for may move meanwhile.
            async with self._gate:
                while (delay := self.pace.delay(clock())) > 0:  # noqa: ASYNC110 - it waits for a time, not for an event
                    await asyncio.sleep(delay)
                now = clock()
                self.pace.start(now, tokens)
                return Started(now, tokens)
        except BaseException:
            self._leave()
            raise

    async def _take(self, queue: deque[asyncio.Future[None]]) -> None:
        if self._free:
            self._free -= 1
            return
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                # The place came in the same moment.
                self._leave()
            raise

    def _leave(self) -> None:
        for queue in (self._again, self._fresh):
            while queue:
                waiting = queue.popleft()
                if not waiting.done():
                    waiting.set_result(None)
                    return
        self._free += 1

    def answered(self, started: Started, served: bool, headroom: Headroom, model: str, usage: Usage) -> None:
        """Take note of an answer, and of its tokens as far as the endpoint counted them."""
        self.pace.answered(asyncio.get_running_loop().time(), started.begun, served, headroom)
        if self.counts_tokens and usage.prompt is not None:
            written = usage.completion or 0
            self._replies.setdefault(model, _Replies()).add(written)
            self.pace.correct(usage.prompt + written - started.tokens)

    @staticmethod
    async def wait(tries: int, after_s: float | None, until: float) -> bool:
        """Wait before another try, without holding a place; False at once where that would end after `until`."""
        seconds = wait_before_retry(tries, after_s, random.random())
        if asyncio.get_running_loop().time() + seconds > until:
            return False
        await asyncio.sleep(seconds)
        return True
