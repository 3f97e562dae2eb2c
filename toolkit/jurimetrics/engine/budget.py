"""What an evaluation may spend, and what it has spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Trace

UNITS = ("usd", "tokens", "calls")


@dataclass
class Budget:
    """Limits in US dollars, tokens and calls (None: no limit) and what was spent so far.

    The limits are hard within the calls in flight: what is under way when a limit is reached is still paid.

    >>> budget = Budget.of({"calls": 2})
    >>> budget.spent_out() is None
    True
    """

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    spent_usd: float = 0.0
    spent_tokens: int = 0
    spent_calls: int = 0
    unpriced_calls: int = 0

    @classmethod
    def of(cls, budget: float | Mapping[str, float] | None) -> Budget:
        """A budget from what `evaluate` takes: a number of dollars, or a mapping of unit to limit.

        Raises `InputError` for another unit or a limit that is not above 0.
        """
        limits = {} if budget is None else dict(budget) if isinstance(budget, Mapping) else {"usd": budget}
        for unit, limit in limits.items():
            if unit not in UNITS:
                raise InputError(f"budget: no unit {unit!r}; units: {', '.join(UNITS)}")
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
                raise InputError(f"budget: {unit} must be a number above 0, not {limit!r}")
        usd, tokens, calls = (limits.get(unit) for unit in UNITS)
        return cls(
            None if usd is None else float(usd),
            None if tokens is None else int(tokens),
            None if calls is None else int(calls),
        )

    def spent_out(self) -> str | None:
        """Which limit is reached, in words; None while there is room."""
        if self.usd is not None and self.spent_usd >= self.usd:
            return f"{self.spent_usd:.4f} of {self.usd:g} USD are spent"
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            return f"{self.spent_tokens} of {self.tokens} tokens are spent"
        if self.calls is not None and self.spent_calls >= self.calls:
            return f"{self.spent_calls} of {self.calls} calls are made"
        return None

    def start_call(self) -> None:
        """Count a call when it goes out, so that calls in flight count towards the limit on calls."""
        self.spent_calls += 1

    def spend(self, trace: Trace) -> None:
        """Count what a call cost, whatever came of it."""
        self.spent_tokens += (trace.usage.prompt or 0) + (trace.usage.completion or 0)
        if trace.cost_usd is None:
            self.unpriced_calls += 1
        else:
            self.spent_usd += trace.cost_usd
