"""What a probe found: one line for each effect, metric and judge, tested together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from jurimetrics.display import count, dollars, html_table, one_line
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.multiple import Procedure, adjust

if TYPE_CHECKING:
    from jurimetrics.results import Results

_COLUMNS = ("probe", "effect", "metric", "judge", "value", "low", "high", "n", "groups", "missing", "p", "p_adjusted",
            "higher_is_better", "method")  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """One effect on the scores of one judge under one metric.

    `effect` says what is compared with what; `estimate` is in the unit of the metric unless `effect` says otherwise. `p` is
    two-sided for no effect, alone, and `p_adjusted` beside the other lines (None: not tested). `groups` independent
    sources; `missing` records without a score that is needed. `higher_is_better` is the metric's direction.

    >>> ProbeLine("padded - as it was", "fluency", "ann", Estimate(0.5, 0.2, 0.8, 0.95, 40, "mean"), 0.01, 40).p_adjusted
    """

    effect: str
    metric: str
    judge: str
    estimate: Estimate
    p: float | None
    groups: int
    missing: int = 0
    higher_is_better: bool = True
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What one probe found, shown as a table in a notebook and by `print`.

    `lines` hold the effects, their p adjusted by `method` for all lines of the report; `notes` what must be read beside
    them. `left_out` counts the records that could not be probed, by the reason. `calls` requests sent, `cost_usd` their
    price in US dollars (None where one is unknown, `at_least_usd` the known part); 0 for probes that ask nobody.
    `results` are those of the changed records (None for probes that ask nobody).
    """

    probe: str
    lines: tuple[ProbeLine, ...]
    notes: tuple[str, ...]
    method: Procedure
    left_out: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    cost_usd: float | None = 0.0
    at_least_usd: float = 0.0
    results: Results | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each line. Columns: `probe`, `effect`, `metric`, `judge`; `value` with `low` and `high` (NaN where
        there is none; `method` says why); `n`, `groups`, `missing`; `p`, `p_adjusted` (NaN: not tested);
        `higher_is_better`; `method`."""
        rows = [
            {
                "probe": self.probe,
                "effect": line.effect,
                "metric": line.metric,
                "judge": line.judge,
                "value": _nan(line.estimate.value),
                "low": _nan(line.estimate.low),
                "high": _nan(line.estimate.high),
                "n": line.estimate.n,
                "groups": line.groups,
                "missing": line.missing,
                "p": _nan(line.p),
                "p_adjusted": _nan(line.p_adjusted),
                "higher_is_better": line.higher_is_better,
                "method": line.estimate.method,
            }
            for line in self.lines
        ]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def line(self, metric: str | None = None, judge: str | None = None, effect: str | None = None) -> ProbeLine:
        """One line by what it is of; what there is only one of may be left out. Raises `InputError` otherwise."""
        wanted = {"metric": metric, "judge": judge, "effect": effect}
        found = [
            one for one in self.lines if all(value in (None, getattr(one, name)) for name, value in wanted.items())
        ]
        if len(found) != 1:
            known = "; ".join(f"{one.effect}, {one.metric} by {one.judge}" for one in self.lines)
            raise InputError(f"{len(found)} lines for {wanted}; there are: {known}")
        return found[0]

    def found(self, alpha: float = 0.05) -> tuple[ProbeLine, ...]:
        """The lines whose adjusted p is at most `alpha`."""
        return tuple(line for line in self.lines if line.p_adjusted is not None and line.p_adjusted <= alpha)

    def __str__(self) -> str:
        headings, lines = self._shown()
        widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
        drawn = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [headings, *lines]
        ]
        return "\n".join([*drawn, *(f"* {one_line(note, 500)}" for note in self._all_notes())])

    def _repr_html_(self) -> str:
        headings, lines = self._shown()
        return html_table(headings, lines, self._all_notes(), start=("effect", "metric", "judge"))

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        lines = [
            [line.effect, line.metric, line.judge, _interval(line.estimate), str(line.estimate.n), _p(line.p_adjusted)]
            for line in self.lines
        ]
        return ["effect", "metric", "judge", f"{self.probe}", "n", f"p ({self.method})"], lines

    def _all_notes(self) -> list[str]:
        out = [f"Left out: {count(number, 'record')} ({reason})." for reason, number in self.left_out.items()]
        if not self.calls and self.results is None:
            return [*self.notes, *out]
        cost = dollars(self.cost_usd) if self.cost_usd is not None else f"at least {dollars(self.at_least_usd)}"
        return [*self.notes, *out, f"Took {count(self.calls, 'call')}, {cost}."]


def report(
    probe: str, lines: Sequence[ProbeLine], notes: Iterable[str], method: Procedure, **told: object
) -> ProbeReport:
    """A report whose p are adjusted for all of its lines; `told` are further fields of it."""
    return ProbeReport(probe, _adjusted(lines, method), tuple(notes), method, **told)  # type: ignore[arg-type]


def family(*reports: ProbeReport, method: Procedure = "holm") -> pd.DataFrame:
    """The frames of several reports below each other, with `p_adjusted` for all their lines together.

    Whoever looks at many probes finds something by chance; this is the p to go by then. `method` as in `adjust`: "holm",
    "fdr_bh", "fdr_by". Lines without a test are in the frame and not among the tested.

    >>> line = ProbeLine("padded", "fluency", "ann", Estimate(0.5, 0.2, 0.8, 0.95, 40, "mean"), 0.03, 40)
    >>> one, other = (report(name, [line], [], "holm") for name in ("verbosity", "format"))
    >>> family(one, other)["p_adjusted"].tolist()
    [0.06, 0.06]
    """
    if not reports:
        raise InputError("family: no reports given")
    frame = pd.concat([one.frame for one in reports], ignore_index=True)
    frame["p_adjusted"] = adjust(frame["p"].to_numpy(dtype=np.float64), method).p
    return frame


def _adjusted(lines: Sequence[ProbeLine], method: Procedure) -> tuple[ProbeLine, ...]:
    p = adjust([math.nan if line.p is None else line.p for line in lines], method).p
    return tuple(
        replace(line, p_adjusted=None if math.isnan(value) else float(value))
        for line, value in zip(lines, p, strict=True)
    )


def _interval(found: Estimate) -> str:
    if found.value is None:
        return "undefined"
    if found.low is None or found.high is None:
        return f"{found.value:+.3g}"
    return f"{found.value:+.3g} [{found.low:.3g}, {found.high:.3g}]"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
