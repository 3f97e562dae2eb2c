"""What an evaluation may spend, and what it has spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Judge, Trace, Usage

UNITS = ("usd", "tokens", "calls")


@dataclass
class Budget:
    """Limits in US dollars, tokens and calls (None: no limit) and what was spent so far.

    The limits are hard within the calls in flight: what is under way when a limit is reached is still paid. A call of
    which the cost or the tokens stay unknown (a reply that never came, an endpoint that counts now and then) is charged
    against the limit like the dearest one known; where an endpoint counts nothing at all, a limit that needs its count
    is reached with its first reply. `spent_usd` and `spent_tokens` are what is known, without these charges.

    >>> budget = Budget.of({"calls": 2})
    >>> budget.spent_out() is None
    True
    >>> budget.start_call(); budget.start_call(); budget.spent_out()
    '2 of 2 calls are made'
    """

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    spent_usd: float = 0.0
    spent_tokens: int = 0
    spent_calls: int = 0
    unpriced_calls: int = 0
    uncounted_calls: int = 0
    _dearest_usd: float = 0.0
    _most_tokens: int = 0
    _silent: bool = False
    """Whether a reply came without the count that a limit needs, and none with it so far."""

    @classmethod
    def of(cls, budget: Budget | float | Mapping[str, float] | None) -> Budget:
        """A budget from what `evaluate` takes: a number of dollars, or a mapping of unit to limit.

        A budget itself is taken as it is, with what was spent of it: so several pieces of work share one. Raises
        `InputError` for another unit or a limit that is not above 0.
        """
        if isinstance(budget, Budget):
            return budget
        limits = {} if budget is None else dict(budget) if isinstance(budget, Mapping) else {"usd": budget}
        for unit, limit in limits.items():
            if unit not in UNITS:
                raise InputError(f"budget: no unit {unit!r}; units: {', '.join(UNITS)}")
            number = isinstance(limit, int | float) and not isinstance(limit, bool) and math.isfinite(limit)
            if not number or not limit > 0:
                raise InputError(f"budget: {unit} must be a number above 0, not {limit!r}")
            if unit != "usd" and limit != int(limit):
                raise InputError(f"budget: {unit} must be a whole number, not {limit!r}")
        usd, tokens, calls = (limits.get(unit) for unit in UNITS)
        return cls(
            None if usd is None else float(usd),
            None if tokens is None else int(tokens),
            None if calls is None else int(calls),
        )

    def check_prices(self, asked: Iterable[Judge]) -> None:
        """Raise `InputError` where dollars are limited and somebody who is asked has no known price.

        `asked` are the judges and, where texts are embedded, the embedder; who computes here costs nothing.
        """
        for judge in asked if self.usd is not None else ():
            if judge.endpoint is not None and not is_priced(judge):
                model = getattr(judge, "model", judge.name)
                raise InputError(
                    f"budget: {self.usd:g} USD cannot be kept, no price is known for {judge.name!r} (model {model!r}); "
                    "give it price= (US dollars per million tokens, 0 for free) or price_as= (a model of the price "
                    'list), or limit {"calls": } or {"tokens": }'
                )

    def spent_out(self) -> str | None:
        """Which limit is reached, in words; None while there is room."""
        if self._silent and (self.usd is not None or self.tokens is not None):
            return "the endpoint sends no usage, so only a budget of calls can be kept"
        if self.usd is not None:
            charged = self.spent_usd + self.unpriced_calls * self._dearest_usd
            if charged >= self.usd:
                extra = _assumed(self.unpriced_calls) if charged > self.spent_usd else ""
                return f"{charged:.4f} of {self.usd:g} USD are spent{extra}"
        if self.tokens is not None:
            used = self.spent_tokens + self.uncounted_calls * self._most_tokens
            if used >= self.tokens:
                extra = _assumed(self.uncounted_calls) if used > self.spent_tokens else ""
                return f"{used} of {self.tokens} tokens are spent{extra}"
        if self.calls is not None and self.spent_calls >= self.calls:
            return f"{self.spent_calls} of {self.calls} calls are made"
        return None

    def start_call(self) -> None:
        """Count a call when it goes out, so that calls in flight count towards the limit on calls."""
        self.spent_calls += 1

    def spend(self, trace: Trace) -> None:
        """Count what a call cost, whatever came of it."""
        tokens = (trace.usage.prompt or 0) + (trace.usage.completion or 0)
        counted = trace.usage.prompt is not None and trace.usage.completion is not None
        # What an endpoint answers with an error costs nothing and is not counted by anyone.
        counted = counted or (trace.cost_usd == 0.0 and trace.finish_reason is None)
        self.spent_tokens += tokens
        self.uncounted_calls += not counted
        self._most_tokens = max(self._most_tokens, tokens)
        if trace.cost_usd is None:
            self.unpriced_calls += 1
        else:
            self.spent_usd += trace.cost_usd
            self._dearest_usd = max(self._dearest_usd, trace.cost_usd)
        unknown = (self.usd is not None and trace.cost_usd is None and self._dearest_usd == 0.0) or (
            self.tokens is not None and not counted and self._most_tokens == 0
        )
        # A finish reason stands in a reply alone: a call that timed out says nothing of how the endpoint counts.
        self._silent = unknown and (self._silent or trace.finish_reason is not None)


def is_priced(judge: Judge) -> bool:
    """Whether the cost of a call to a judge or an embedder is known once its tokens are.

    >>> from jurimetrics.judges.chat import ChatJudge
    >>> is_priced(ChatJudge("m", base_url="http://host/v1")), is_priced(ChatJudge("m", base_url="http://host/v1", price=0))
    (False, True)
    """
    return judge.cost(Usage(prompt=1000, completion=0), None, datetime.now(UTC)) is not None


def _assumed(calls: int) -> str:
    return f" ({calls} calls of unknown cost taken for as dear as the dearest known)"
