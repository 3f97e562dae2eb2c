"""A plan as a value: its lines, its sums, and how a terminal and a notebook show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from jurimetrics.display import count, dollars, fit, html_table, one_line

N = TypeVar("N", int, float)


class Span(NamedTuple):
    """What is expected, at least and at most."""

    low: float
    high: float

    def times(self, factor: float) -> Span:
        """Both ends multiplied."""
        return Span(self.low * factor, self.high * factor)


SPANS = ("prompt_tokens", "completion_tokens", "cost_usd", "seconds")
"""What is expected in a range; each has a column for both ends."""
COLUMNS = ("judge", "metric", "calls", "stored", "saved_usd", *(f"{n}_{end}" for n in SPANS for end in Span._fields))


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """What an evaluation would take as a whole; pairs are the least and the most expected.

    `calls` requests to be sent, `stored` answers that the store has, which cost `saved_usd` (as far as known). `cost_usd`
    is None where a judge's price is unknown (`unpriced` names them); `at_least_usd` leaves those out. `seconds` is the
    time of the slowest endpoint: they are asked side by side.

    >>> print(PlanTotals(9, 5, (80, 90), (8, 9), (0.01, 0.02), (0.01, 0.02), (), 0.005, (2.0, 30.0)))
    cost $0.01 to $0.02, saved $0.005; 9 calls, 5 from the store; 80 to 90 prompt and 8 to 9 completion tokens; 2 s to 30 s
    """

    calls: int
    stored: int
    prompt_tokens: tuple[int, int]
    completion_tokens: tuple[int, int]
    cost_usd: tuple[float, float] | None
    at_least_usd: tuple[float, float]
    unpriced: tuple[str, ...]
    saved_usd: float
    seconds: tuple[float, float]

    def __str__(self) -> str:
        cost = f"cost {_money(*self.at_least_usd)}"
        if self.cost_usd is None:
            known = f"at least {cost.removeprefix('cost ')}" if self.at_least_usd[1] else "unknown"
            cost = f"cost {known} (no price is known for {', '.join(self.unpriced)})"
        calls = f"{count(self.calls, 'call')}, {self.stored:,} from the store"
        tokens = f"{_tokens(*self.prompt_tokens)} prompt and {_tokens(*self.completion_tokens)} completion tokens"
        return f"{cost}, saved {dollars(self.saved_usd)}; {calls}; {tokens}; {_time(*self.seconds)}"


@dataclass(frozen=True)
class Plan:
    """What an evaluation would ask: shown as a table in a notebook (`plan(...)` as a cell's last value) and by `print`.

    `frame` has a line for each judge that is asked and each metric: `calls` to be sent and `stored` answers (a call that
    several metrics share is split equally over their rows, so the columns add up to the totals), then what is expected at
    least (`_low`) and at most (`_high`): `prompt_tokens`, `completion_tokens`, `cost_usd` (NaN where no price is known),
    `seconds` (of the whole time at that endpoint). `saved_usd` is what the stored answers were paid. `records` is how many
    there are; `asks` is who a line is of, in a word.

    >>> from jurimetrics import BaselineJudge, plan
    >>> planned = plan([{"answer": "It is so."}], ["fluency"], BaselineJudge(), store=None)
    >>> planned.totals.calls, planned.notes[0]
    (0, 'Nothing is sent: baseline computes its answers here.')
    """

    frame: pd.DataFrame
    totals: PlanTotals
    notes: tuple[str, ...]
    records: int
    asks: str = "judge"

    def __str__(self) -> str:
        headings, lines = _shown(self.frame, self.totals, self.asks)
        lines = [[one_line(cell, 40) for cell in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
        drawn = ["  ".join(fit(cell, widths[at], at < 2) for at, cell in enumerate(line)) for line in lines]
        head = "  ".join(fit(cell, widths[at], at < 2) for at, cell in enumerate(headings)).rstrip()
        rule = "-" * max(map(len, [head, *drawn]))
        notes = [f"* {one_line(note, 500)}" for note in self.notes]
        return "\n".join([head, rule, *(line.rstrip() for line in drawn), "", *notes, str(self.totals)])

    def _repr_html_(self) -> str:
        headings, lines = _shown(self.frame, self.totals, self.asks)
        return html_table(headings, lines, [*self.notes, f"Totals: {self.totals}."])


def totals_of(frame: pd.DataFrame, walls: Span) -> PlanTotals:
    """The sums of a plan's frame; `walls` is the time of the slowest endpoint."""

    def span(name: str) -> tuple[float, float]:
        return math.fsum(frame[f"{name}_low"].dropna()), math.fsum(frame[f"{name}_high"].dropna())

    prompt, completion, cost = (span(name) for name in SPANS[:3])
    unpriced = tuple(dict.fromkeys(frame.loc[frame["cost_usd_high"].isna(), "judge"]))
    return PlanTotals(
        calls=round(math.fsum(frame["calls"])),
        stored=round(math.fsum(frame["stored"])),
        prompt_tokens=(math.floor(prompt[0]), math.ceil(prompt[1])),
        completion_tokens=(math.floor(completion[0]), math.ceil(completion[1])),
        cost_usd=None if unpriced else cost,
        at_least_usd=cost,
        unpriced=unpriced,
        saved_usd=math.fsum(frame["saved_usd"]),
        seconds=(walls.low, walls.high),
    )


def summed(totals: Sequence[PlanTotals]) -> PlanTotals:
    """The sums of stages that follow each other.

    >>> one = PlanTotals(9, 5, (80, 90), (8, 9), (0.01, 0.02), (0.01, 0.02), (), 0.005, (2.0, 30.0))
    >>> both = summed([one, one])
    >>> both.calls, both.cost_usd, both.seconds
    (18, (0.02, 0.04), (4.0, 60.0))
    """
    known = [one.cost_usd for one in totals if one.cost_usd is not None]
    return PlanTotals(
        calls=sum(one.calls for one in totals),
        stored=sum(one.stored for one in totals),
        prompt_tokens=_both(one.prompt_tokens for one in totals),
        completion_tokens=_both(one.completion_tokens for one in totals),
        cost_usd=_both(known) if len(known) == len(totals) else None,
        at_least_usd=_both(one.at_least_usd for one in totals),
        unpriced=tuple(dict.fromkeys(name for one in totals for name in one.unpriced)),
        saved_usd=math.fsum(one.saved_usd for one in totals),
        seconds=_both(one.seconds for one in totals),
    )


def _both(spans: Iterable[tuple[N, N]]) -> tuple[N, N]:
    low, high = zip(*spans, strict=True)
    return sum(low), sum(high)


# --- shown ---


def _shown(frame: pd.DataFrame, totals: PlanTotals, asks: str) -> tuple[list[str], list[list[str]]]:
    headings = [asks, "metric", "calls", "stored", "prompt tokens", "completion tokens", "cost", "time"]
    lines = []
    for name, table in frame.groupby("judge", sort=False):
        lines += [_line(str(name), line["metric"], line) for line in table.to_dict("records")]
        if len(table) > 1:
            lines.append(_line(str(name), "all", table.drop(columns=["judge", "metric"]).sum(skipna=False).to_dict()))
    if frame["judge"].nunique() > 1:
        whole = frame.drop(columns=["judge", "metric"]).sum().to_dict()
        whole |= {"seconds_low": totals.seconds[0], "seconds_high": totals.seconds[1]}
        line = _line("all", "all", whole)
        lines.append([*line[:6], line[6] if totals.cost_usd is not None else f">= {line[6]}", line[7]])
    return headings, lines


def _line(judge: str, metric: str, sums: dict[Any, Any]) -> list[str]:
    spans = [(sums[f"{name}_low"], sums[f"{name}_high"]) for name in SPANS]
    cost = "unknown" if math.isnan(spans[2][1]) else _money(*spans[2])
    numbers = [_number(sums[name]) for name in ("calls", "stored")]
    return [judge, metric, *numbers, _tokens(*spans[0]), _tokens(*spans[1]), cost, _time(*spans[3])]


def _number(value: float) -> str:
    """Calls that are shared have parts; large numbers are told without.

    >>> _number(12.0), _number(2.5), _number(1234.5)
    ('12', '2.5', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _tokens(low: float, high: float) -> str:
    return _range(_rounded(low), _rounded(high))


def _rounded(value: float) -> str:
    """Three digits of a number of tokens.

    >>> _rounded(987), _rounded(12_345), _rounded(4_560_000)
    ('987', '12,300', '4,560,000')
    """
    digits = max(0, len(str(round(value))) - 3)
    return f"{round(value, -digits):,.0f}"


def _money(low: float, high: float) -> str:
    return _range(*(dollars(float(f"{end:.2g}")) for end in (low, high)))


def _time(low: float, high: float) -> str:
    return _range(_duration(low), _duration(high))


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(0.4), _duration(45), _duration(600), _duration(9000)
    ('0.4 s', '45 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 2 or seconds == 0 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
