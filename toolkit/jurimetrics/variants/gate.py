"""A gate: is a new run worse than an old one by a margin or more, and if nobody can tell, how many records would tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from jurimetrics.display import count
from jurimetrics.errors import InputError
from jurimetrics.results.differences import differences
from jurimetrics.results.inputs import common_ids, inputs_of
from jurimetrics.stats.flips import FLIPS
from jurimetrics.stats.margin import lower_bounds, records_to_decide, upper_bounds
from jurimetrics.stats.paired import outcome
from jurimetrics.stats.resampling import Numbers
from jurimetrics.variants.matched import Matched, matched

if TYPE_CHECKING:
    from jurimetrics.results import Results

Outcome = Literal["passed", "failed", "inconclusive"]
_WORDS: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
_MOST_REASONS = 5
COLUMNS = (
    "metric", "judge", "variant_old", "variant_new", "higher_is_better", "n", "groups", "lost", "gained", "coverage_old",
    "coverage_new", "mean_old", "mean_new", "difference", "low", "high", "margin", "outcome", "needed", "why",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """What `gate` found: `frame`, one line for each metric and variant (columns there); `outcome` of all of them,
    "passed", "failed" or "inconclusive"; `notes`, what must be read beside it; `level` and `power`. Shown as a table by a
    notebook and by `print`.

    >>> from jurimetrics import Results
    >>> scores = pd.DataFrame({"id": range(60), "metric": "grade", "judge": "ann", "score": [0.5, 0.9, 0.7] * 20})
    >>> results = Results.from_frame(scores, {"grade": {"range": (0, 1)}})
    >>> gate(results, results, margin=0.1).outcome
    'passed'
    """

    frame: pd.DataFrame
    outcome: Outcome
    notes: tuple[str, ...]
    level: float
    power: float

    @property
    def needed(self) -> float:
        """Records after which all lines that are undecided would be; NaN where nothing is, or where no number would do.

        >>> from jurimetrics import Results
        >>> scores = pd.DataFrame({"id": range(60), "metric": "grade", "judge": "ann", "score": [0.5, 0.9, 0.7] * 20})
        >>> results = Results.from_frame(scores, {"grade": {"range": (0, 1)}})
        >>> math.ceil(gate(results, results, margin=0.05).needed)
        72
        """
        open_lines = self.frame.loc[self.frame["outcome"] == "inconclusive", "needed"]
        return float(open_lines.max()) if len(open_lines) and open_lines.notna().all() else math.nan

    @property
    def verdict(self) -> str:
        """The outcome in one sentence.

        >>> from jurimetrics import Results
        >>> scores = pd.DataFrame({"id": range(300), "metric": "grade", "judge": "ann", "score": [0.5, 0.9, 0.7] * 100})
        >>> results = Results.from_frame(scores, {"grade": {"range": (0, 1)}})
        >>> gate(results, results, margin=0.05).verdict
        'passed: nothing is worse by its margin or more'
        """
        from jurimetrics.variants.gate_show import gate_verdict

        return gate_verdict(self)

    def junit(self, name: str = "gate") -> str:
        """The outcome as JUnit XML: a test suite called `name` with one test case for each line.

        A line that failed is a `failure`. One that is inconclusive is an `error` of type "inconclusive", since a gate that
        could not tell has not let anything through. Names are other people's text: escaped, and what XML cannot hold becomes
        U+FFFD.

        >>> from jurimetrics import Results
        >>> scores = pd.DataFrame({"id": range(60), "metric": "grade", "judge": "ann", "score": [0.5, 0.9, 0.7] * 20})
        >>> results = Results.from_frame(scores, {"grade": {"range": (0, 1)}})
        >>> 'tests="1" failures="0" errors="1"' in gate(results, results, margin=0.05).junit()
        True
        """
        from jurimetrics.variants.junit import junit

        return junit(self, name)

    def __str__(self) -> str:
        from jurimetrics.variants.gate_show import gate_text

        return gate_text(self)

    def __repr__(self) -> str:
        return f"Gate({self.verdict})"

    def _repr_html_(self) -> str:
        from jurimetrics.variants.gate_show import gate_html

        return gate_html(self)


def gate(
    new: Results,
    old: Results,
    *,
    margin: float | Mapping[str, float],
    metrics: Sequence[str] | None = None,
    judge: str | None = None,
    level: float = 0.95,
    power: float = 0.8,
    max_missing: float = 0.0,
    shared_only: bool = False,
    same_contexts: bool = True,
) -> Gate:
    """Is `new` worse than `old` by a margin or more, under any metric?

    Records are paired by id, the only variant of each run or variants of equal names; repeats are averaged first. The
    difference is new - old, turned where lower is better, so that above 0 is always better. `margin`: in the metric's own
    unit, one number from 0 for all, or by metric, which then are those that are gated. `metrics`: only these; by default
    all of which both runs have scores. `judge`: whose scores (default: the panel, or the only judge). Runs whose records,
    metrics or judges differ are refused (see `differences`); `shared_only` takes the records that are alike.
    `same_contexts`: False gates a system that retrieves otherwise: contexts are then part of what a run gave, as its answers
    are, and a note says in how many records they differ.

    A line passes only if its lower bound is above -margin, fails if its upper bound is below it, and is else inconclusive.
    The gate passes if every line does, fails if any does, and is else inconclusive. What that guarantees, groups heeded:

    * a gate passes with a chance of at most (1 - `level`) / 2 where any metric is truly worse by its margin or more. All
      lines must pass, so each may be tested at its own level, however many they are (intersection-union test);
    * a gate fails with a chance of at most (1 - `level`) / 2 where no metric is. Any line makes it fail, so upper bounds
      hold for all lines at once, each at (1 - `level`) / 2 divided by their number (Bonferroni).

    The interval of a line is from the one to the other bound: see `lower_bounds` and `upper_bounds`. No bound and no decision
    below 8 groups.

    A run cannot pass by losing its bad rows. Where the old run has a score and the new one none (failed, undefined, no
    answer), the lower bound takes the worst score that the metric has and the upper bound the best. `max_missing`: up to
    this share of such records (0 to 1) they are taken as lost by chance and left out instead.
    Records that only the new run scored say nothing of a change and are left out.

    `needed`: how many records would decide a line, with the chance `power`; see `records_to_decide`.

    Columns of `frame`: `metric`, `judge`, `variant_old`, `variant_new`, `higher_is_better`; `n` records with both scores
    in so many `groups`; `lost` and `gained`, records with a score in the old or the new run alone, `coverage_old` and
    `coverage_new`, the share of records that have one; `mean_old` and `mean_new` over the n; `difference`, turned, with
    `low` and `high` (NaN: none); `margin`; `outcome`; `needed` (NaN: decided, or no number would do); `why`, in words.

    Raises `InputError` for runs that must not be compared, for a margin that is no number from 0 or not smaller than the
    metric's range, and where nothing can be paired (see `matched`).

    Sources: Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982); for the worst case
    Horowitz and Manski, JASA 95 (2000).

    >>> from jurimetrics import Results
    >>> def run(lower: float) -> Results:
    ...     scores = [(5 + at % 4) / 10 - lower * (at % 3) for at in range(60)]
    ...     frame = pd.DataFrame({"id": range(60), "metric": "grade", "judge": "ann", "score": scores})
    ...     return Results.from_frame(frame, {"grade": {"range": (0, 1)}})
    >>> [gate(run(lower), run(0), margin=0.05).outcome for lower in (0.01, 0.05, 0.1)]
    ['passed', 'inconclusive', 'failed']
    """
    for name, value in (("level", level), ("power", power)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1, not {value!r}")
    if not 0 <= max_missing <= 1:
        raise InputError(f"max_missing must lie between 0 and 1, not {max_missing!r}")
    chosen = list(margin) if isinstance(margin, Mapping) and metrics is None else metrics
    _check_metrics(chosen, new, old)
    told = _comparable(new, old, chosen, shared_only, same_contexts)
    ids = common_ids([inputs_of(old), inputs_of(new)], same_contexts=same_contexts) if shared_only else None
    pairs, notes = matched(new, old, chosen, judge, ids)
    margins = [_margin(pair, margin) for pair in pairs]
    frame = pd.DataFrame(lines_of(pairs, margins, level, power, max_missing))[[*COLUMNS]]
    notes += told
    notes += _notes(frame, pairs, level, max_missing, (new, old))
    outcomes = set(frame["outcome"])
    whole: Outcome = "failed" if "failed" in outcomes else "passed" if outcomes == {"passed"} else "inconclusive"
    return Gate(frame, whole, tuple(notes), level, power)


def _check_metrics(metrics: Sequence[str] | None, new: Results, old: Results) -> None:
    if isinstance(metrics, str):
        raise InputError(f"metrics: expected a list of metrics, found {metrics!r}")
    for which, run in (("new", new), ("old", old)):
        there = run.settings["metrics"]
        for name in metrics or ():
            if name not in there:
                raise InputError(f"gate: no metric {name!r} in the {which} run; metrics: {', '.join(there)}")


def _comparable(
    new: Results, old: Results, metrics: Sequence[str] | None, shared_only: bool, same_contexts: bool
) -> list[str]:
    """What must be read beside a gate of these runs. Raises `InputError` where they must not be compared."""
    # No threshold has a part in a difference of means, so another one is none of its reasons or notes.
    plain = [run.with_thresholds(dict.fromkeys(run.settings["metrics"])) for run in (old, new)]
    names = ("the old run", "the new run")
    found = differences(
        plain[0], plain[1], names, shared_only=shared_only, same_contexts=same_contexts, metrics=metrics
    )
    if found.reasons:
        more = len(found.reasons) - _MOST_REASONS
        said = [*found.reasons[:_MOST_REASONS], *([f"and {more} more"] if more > 0 else [])]
        raise InputError(f"gate: the runs must not be compared: {'; '.join(said)}")
    return list(found.notes)


def lines_of(
    pairs: Sequence[Matched],
    margins: Sequence[float],
    level: float,
    power: float,
    max_missing: float = 0.0,
    *,
    flips: int = FLIPS,
) -> list[dict[str, Any]]:
    """The lines of a gate in the order of `pairs`."""
    bounds = _bounds(pairs, level, max_missing, flips)
    found = []
    for pair, margin, (low, high, alone, why) in zip(pairs, margins, bounds, strict=True):
        seen = pair.differences()
        there = ~np.isnan(seen)
        decided = _WORDS[outcome(low, high, margin)]
        groups = [name for name, here in zip(pair.groups, there, strict=True) if here]
        line = {
            "metric": pair.metric, "judge": pair.judge, "variant_old": pair.variants[0], "variant_new": pair.variants[1],
            "higher_is_better": pair.higher_is_better, "n": int(there.sum()), "groups": len(set(groups)),
            "lost": pair.lost, "gained": pair.gained,
            "coverage_old": _share(pair.old), "coverage_new": _share(pair.new),
            "mean_old": _mean(pair.old[there]), "mean_new": _mean(pair.new[there]), "difference": _mean(seen[there]),
            "low": low, "high": high, "margin": margin, "outcome": decided, "needed": math.nan, "why": why,
        }  # fmt: skip
        if decided == "inconclusive":
            line |= _open(pair, margin, alone, why, level, power)
        found.append(line)
    return found


def _bounds(
    pairs: Sequence[Matched], level: float, max_missing: float, flips: int
) -> list[tuple[float, float, float, str]]:
    """For each pair its lower bound, its upper bound, the lower bound without what was lost, and what they rest on."""
    found = []
    # Each pair has records of its own, so bounds are found one by one; those above share their level.
    family = 1 - (1 - level) / len(pairs)
    for pair in pairs:
        tables = [pair.differences()]
        if pair.lost and pair.lost_share > max_missing:
            tables += [pair.differences(end) for end in pair.ends]
        spans = [pair.span] * len(tables)
        table = np.column_stack(tables)
        lows = lower_bounds(table, pair.groups, spans, level, flips=flips)
        # One column at a time: here they are versions of the same line, not lines of a family.
        highs = [upper_bounds(column, pair.groups, [pair.span], family, flips=flips).value[0] for column in table.T]
        # Where no pair says anything, neither does what one might put in the place of what was lost.
        nothing = math.isnan(float(lows.value[0]))
        low, high = (math.nan, math.nan) if nothing else (float(np.min(lows.value)), float(np.max(highs)))
        found.append((low, high, float(lows.value[0]), lows.why[0]))
    return found


def _open(pair: Matched, margin: float, alone: float, why: str, level: float, power: float) -> dict[str, Any]:
    """Why a line is undecided and what would decide it."""
    if math.isnan(alone):
        return {"why": why}
    if pair.lost and outcome(alone, math.inf, margin) == "pass":
        return {"why": f"{count(pair.lost, 'score')} missing in the new run could turn it; without them it passes"}
    needed = records_to_decide(pair.differences(), pair.groups, pair.span, margin, level=level, power=power)
    if math.isnan(needed.records):
        return {"why": "the difference lies at the margin; more records would hardly tell"}
    supposing = "were the difference as seen" if needed.supposing == "as seen" else "were there no difference"
    return {"needed": needed.records, "why": f"about {rounded(needed.records)} records would decide, {supposing}"}


def rounded(records: float) -> str:
    """A number of records, rounded up to two digits that tell something.

    >>> rounded(337.2), rounded(12.1), rounded(12345)
    ('340', '13', '13,000')
    """
    whole = math.ceil(records)
    step = 10 ** max(0, len(str(whole)) - 2)
    return f"{math.ceil(whole / step) * step:,}"


def _margin(pair: Matched, margin: float | Mapping[str, float]) -> float:
    if isinstance(margin, Mapping) and pair.metric not in margin:
        raise InputError(f"margin: none given for {pair.metric}")
    given = margin[pair.metric] if isinstance(margin, Mapping) else margin
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not 0 <= given < math.inf:
        raise InputError(f"margin: {pair.metric} needs a number from 0, not {given!r}")
    if given >= pair.span:
        raise InputError(
            f"margin: {given:g} is no margin for {pair.metric}, which lies between {pair.limits[0]:g} and {pair.limits[1]:g}"
        )
    return float(given)


def _notes(
    frame: pd.DataFrame, pairs: Sequence[Matched], level: float, max_missing: float, runs: tuple[Results, Results]
) -> list[str]:
    found = []
    if turned := list(dict.fromkeys(frame.loc[~frame["higher_is_better"], "metric"])):
        found.append(f"Lower is better: {', '.join(turned)}; the difference is turned, so that above 0 is better.")
    each = f"{(1 - level) / 2:.3g}"
    found.append(
        f"Error: at most {each} to pass where a metric is worse by its margin or more, at most {each} to fail where none is "
        f"({'lower bounds by line, upper bounds for all lines at once' if len(frame) > 1 else 'bounds by group'})."
    )
    worst = [pair for pair in pairs if pair.lost and pair.lost_share > max_missing]
    if worst:
        most = max(worst, key=lambda pair: pair.lost)
        found.append(
            f"Scores missing in the new run count as the worst and the best there can be, up to {most.lost} ({most.metric}); "
            "ask again what failed, or allow a share of them."
        )
    if left := [pair for pair in pairs if pair.lost and pair.lost_share <= max_missing]:
        most = max(left, key=lambda pair: pair.lost)
        found.append(f"Up to {most.lost} scores missing in the new run ({most.metric}) are taken as lost by chance.")
    for which, run in zip(("new", "old"), runs, strict=True):
        if run.settings.get("interrupted"):
            found.append(f"The {which} run was interrupted; what was done until then is compared.")
    return found


def _share(scores: Numbers) -> float:
    return float((~np.isnan(scores)).mean()) if len(scores) else math.nan


def _mean(values: Numbers) -> float:
    return math.fsum(values) / len(values) if len(values) else math.nan
