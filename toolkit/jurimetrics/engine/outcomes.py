"""What came of one row, and one outcome made of several."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jurimetrics.errors import NoMajority
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.panel import Panel
from jurimetrics.metrics.metric import Metric, Score
from jurimetrics.records import Record
from jurimetrics.tasks.task import DoesNotFit, Rule
from jurimetrics.tasks.voting import combine, spread

LONGEST_FAULT = 2_000
"""Characters of an exception's text that a row keeps."""
Outcome = Score | JudgeError
"""What came of one row: a score (with a value or without) or a typed failure."""


@dataclass
class Made:
    """The outcomes of one metric, judge and repeat, by variant, with what was noticed on the way."""

    outcomes: dict[str, Outcome]
    flags: set[str] = field(default_factory=set)
    extractor: str | None = None
    disagreement: dict[str, float | None] = field(default_factory=dict)
    panel: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def failure(error: BaseException) -> Outcome:
    """The outcome of a row in which an exception was raised: typed where its cause is known, else a crash."""
    if isinstance(error, JudgeError):
        return error
    if isinstance(error, NoMajority):
        return Score.undefined(str(error))
    if isinstance(error, DoesNotFit):
        return Score.not_applicable(f"does not fit: {error}")
    return crash(error)


def crash(error: BaseException) -> JudgeError:
    """The failure that is an exception of somebody's own code: what it said, and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return JudgeError("crash", f"{type(error).__name__}: {_said(error)} ({where.name}, line {where.lineno})")


def _said(error: BaseException) -> str:
    try:
        said = " ".join(str(error).splitlines())
    except Exception as fault:  # noqa: BLE001 - an exception that cannot even say what it is ends one row like any other
        return f"(its text raises {type(fault).__name__})"
    return said if len(said) <= LONGEST_FAULT else f"{said[:LONGEST_FAULT]}... ({len(said)} characters)"


def checked(metric: Metric, score: Any) -> Outcome:
    """What a metric returned, or the failure that it is no score or lies outside the range."""
    if not isinstance(score, Score):
        return JudgeError("crash", f"{metric.name} returned {type(score).__name__}, not a Score")
    try:
        return metric.check(score)
    except ValueError as error:
        return JudgeError("out_of_range", str(error))


def vote_on_scores(
    panel: Panel, metric: Metric, records: Sequence[Record], made: Mapping[tuple[str, int], Made], repeat: int
) -> Made:
    """The panel's outcomes from its members' final scores."""
    result = Made({})
    for record in records:
        members = {}
        for judge in panel.judges:
            of_member = made[judge.name, repeat if judge.endpoint is not None else 0]
            members[judge.name] = of_member.outcomes[record.variant]
        result.outcomes[record.variant] = vote(metric, members, panel.needed, panel.voting)
        values = {name: one.value if isinstance(one, Score) else None for name, one in members.items()}
        result.disagreement[record.variant] = spread(values.values())
        result.panel[record.variant] = {"votes": [{"kind": "score", "votes": [values]}]}
    return result


def vote(metric: Metric, members: Mapping[str, Outcome], needed: int, rule: Rule) -> Outcome:
    """One outcome from those of several by name, of which `needed` must have a score."""
    scores = {name: one for name, one in members.items() if isinstance(one, Score)}
    beside = {name: score for name, score in scores.items() if score.status == "not_applicable"}
    if len(beside) == len(members):
        return next(iter(beside.values()))
    # What does not fit one member is no answer of that member, as it is where verdicts are voted on.
    failed: dict[str, Any] = {name: one for name, one in members.items() if isinstance(one, JudgeError)}
    failed |= {name: score.reason for name, score in beside.items()}
    scores = {name: score for name, score in scores.items() if name not in beside}
    if len(scores) < needed:
        why = "; ".join(f"{name} {error}" for name, error in failed.items())
        return JudgeError("quorum", f"{len(scores)} of {len(members)} judges answered, {needed} needed ({why})")
    valued = {name: score.value for name, score in scores.items() if score.value is not None}
    if len(valued) < needed:
        return Score.undefined(f"{len(scores) - len(valued)} of {len(members)} judges found no value")
    asked = {name: valued.get(name) for name in members}
    said = ", ".join(f"{name} {score:g}" for name, score in valued.items())
    flags = ("member_failed",) if failed else ()
    try:
        value = combine(asked, rule, metric.levels)
        return checked(metric, Score(value, f"{rule.name} of {said}", flags=flags))
    except Exception as error:  # noqa: BLE001 - the rule may be a function of the user's
        return failure(error)
