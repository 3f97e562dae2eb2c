"""A cascade under one metric: stage after stage is asked, until the voices of one agree well enough."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jurimetrics.engine.outcomes import Made, Outcome, failure, vote
from jurimetrics.errors import InputError
from jurimetrics.judges.cascade import Cascade, agreement_confidence, members_of
from jurimetrics.judges.judge import Judge, JudgeError
from jurimetrics.judges.panel import Panel
from jurimetrics.metrics.metric import Metric, Score, passes
from jurimetrics.records import Record
from jurimetrics.tasks.task import Rule
from jurimetrics.tasks.voting import spread

Voice = tuple[Judge, int]
"""A judge and one of its repeats."""
STOPPED = "not asked: the cascade stopped before"


def voices(cascade: Cascade, repeats: int) -> tuple[tuple[Voice, ...], ...]:
    """Who speaks in each stage: a judge as often as `repeats`, the members of a panel once; once, too, where nothing hangs
    on how far the voices agree: a last stage without a threshold, and a judge that is computed here."""
    last = len(cascade.judges) - 1
    given = cascade.thresholds.values() if isinstance(cascade.thresholds, Mapping) else [cascade.thresholds]
    open_end = all(len(one) == last for one in given)
    found = []
    for at, stage in enumerate(cascade.judges):
        once = isinstance(stage, Panel) or (at == last and open_end)
        found.append(
            tuple(
                (judge, repeat)
                for judge in members_of(stage)
                for repeat in range(1 if once or judge.endpoint is None else repeats)
            )
        )
    return tuple(found)


def check_cascade(cascade: Cascade, metrics: Sequence[Metric], repeats: int) -> None:
    """Raise `InputError` where a metric has no thresholds, or a stage has one voice and so nothing to agree with."""
    spoken = voices(cascade, repeats)
    for metric in metrics:
        for at, stage in enumerate(cascade.judges if metric.judged else ()):
            threshold = cascade.threshold(metric.name, at)
            alone = cascade.confidence is None and len(spoken[at]) < 2
            if threshold is not None and threshold > -math.inf and alone:
                raise InputError(
                    f"cascade: {stage.name} speaks once, so how sure it is cannot be told from agreement; ask for "
                    "repeats=3 or more, make the stage a Panel of several judges, or give confidence="
                )


@dataclass
class Stages:
    """What came of a cascade: of each voice that was asked, and `decided`, the outcomes of the cascade itself."""

    asked: dict[tuple[str, int], Made] = field(default_factory=dict)
    decided: Made = field(default_factory=lambda: Made({}))


async def run_stages(
    cascade: Cascade,
    metric: Metric,
    records: Sequence[Record],
    spoken: Sequence[Sequence[Voice]],
    ask: Callable[[Judge, int], Awaitable[Made]],
) -> Stages:
    """Ask stage after stage about records that hold what the metric needs, until each has an outcome that stands."""
    found = Stages()
    waiting = [record.variant for record in records]
    votes: dict[str, list[dict[str, Any]]] = {variant: [] for variant in waiting}
    for at, stage in enumerate(cascade.judges):
        threshold = cascade.threshold(metric.name, at)
        if not waiting or threshold is None:
            continue
        made = await _together([partial(ask, *voice) for voice in spoken[at]])
        by_name = {(judge.name, repeat): one for (judge, repeat), one in zip(spoken[at], made, strict=True)}
        found.asked |= by_name
        still = []
        for variant in waiting:
            outcomes = {_called(name, len(members_of(stage)), repeat, len(by_name)): one.outcomes[variant]
                        for (name, repeat), one in by_name.items()}  # fmt: skip
            said, sure = _heard(cascade, metric, stage, outcomes, threshold)
            values = {name: _value(one) for name, one in outcomes.items()}
            told = sure if sure is not None and math.isfinite(sure) else None
            votes[variant].append({"kind": "score", "stage": stage.name, "confidence": told, "votes": [values]})
            found.decided.outcomes[variant] = said
            found.decided.disagreement[variant] = spread(values.values())
            split_by = next((one.extractor for one in made if one.extractor is not None), None)
            found.decided.extractor = split_by or found.decided.extractor
            if threshold > -math.inf and (sure is None or sure < threshold):
                still.append(variant)
        found.decided.flags.update(*(one.flags for one in made))
        waiting = still
    _close(found.decided, waiting, votes)
    return found


async def _together(jobs: Sequence[Callable[[], Awaitable[Made]]]) -> list[Made]:
    async def run(job: Callable[[], Awaitable[Made]]) -> Made:
        return await job()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(job)) for job in jobs]
    return [task.result() for task in tasks]


def _called(judge: str, members: int, repeat: int, voices_: int) -> str:
    return judge if voices_ == members else f"{judge} {repeat + 1}"


def _value(outcome: Outcome) -> float | None:
    return outcome.value if isinstance(outcome, Score) else None


def _heard(
    cascade: Cascade, metric: Metric, stage: Judge | Panel, outcomes: Mapping[str, Outcome], threshold: float
) -> tuple[Outcome, float | None]:
    """What a stage says and how sure it is; None where it says nothing that could stand, or nobody asks how sure."""
    if isinstance(stage, Panel):
        said = vote(metric, outcomes, stage.needed, stage.voting)
    elif len(outcomes) == 1:
        said = next(iter(outcomes.values()))
    else:
        said = vote(metric, outcomes, len(outcomes) // 2 + 1, Rule("mean"))
    if isinstance(said, JudgeError) or said.status == "not_applicable" or threshold == -math.inf:
        return said, None
    if said.value is None:
        alike = sum(isinstance(one, Score) and one.status == said.status for one in outcomes.values())
        return said, alike / len(outcomes)
    values = [_value(one) for one in outcomes.values()]
    if cascade.confidence is None:
        limit, higher = metric.threshold, metric.higher_is_better
        sides = None if limit is None else partial(passes, threshold=limit, higher_is_better=higher)
        return said, agreement_confidence(values, said.value, sides, metric.range[1] - metric.range[0])
    try:
        sure = float(cascade.confidence([one for one in values if one is not None]))
    except Exception as error:  # noqa: BLE001 - a fault in the user's function is seen in its row, not asked away
        return failure(error), math.inf
    if math.isnan(sure):
        return JudgeError("crash", "the confidence of the cascade is no number"), math.inf
    return said, sure


def _close(decided: Made, unsure: Sequence[str], votes: Mapping[str, list[dict[str, Any]]]) -> None:
    """Where no stage was sure enough to the end, a value becomes an abstention; failures stay what they are."""
    for variant, stages in votes.items():
        decided.panel[variant] = {"votes": stages}
        said = decided.outcomes[variant]
        if variant in unsure and isinstance(said, Score) and said.status != "not_applicable":
            told = ", ".join(f"{one['stage']} {_told(one['confidence'])}" for one in stages)
            decided.outcomes[variant] = Score.undefined(f"no judge was sure enough: {told}", flags=("abstained",))
        elif isinstance(said, Score):
            flags = ("escalated",) if len(stages) > 1 else ()
            answered = f"{stages[-1]['stage']} answered; " if len(stages) > 1 else ""
            decided.outcomes[variant] = Score(
                said.value, answered + said.reason, said.details, (*said.flags, *flags), said.status
            )


def _told(confidence: float | None) -> str:
    return "failed" if confidence is None else f"{confidence:.2f}"
