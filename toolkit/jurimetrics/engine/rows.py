"""One record under one metric and one judge becomes one row; whatever goes wrong becomes a typed failure of that row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jurimetrics.engine.asking import ComputedAsk, MemberAsk, PanelAsk, RowKey, Scope, Sharing
from jurimetrics.engine.calls import EndpointError
from jurimetrics.engine.cascading import STOPPED, run_stages, voices
from jurimetrics.engine.outcomes import Made, Outcome, checked, failure, vote_on_scores
from jurimetrics.frames import ScoreRow
from jurimetrics.judges.cascade import Cascade
from jurimetrics.judges.judge import Judge, JudgeError
from jurimetrics.judges.panel import Panel
from jurimetrics.metrics.metric import Metric, Score, passes
from jurimetrics.records import Record
from jurimetrics.tasks.fence import verdict_shaped

COMPUTED = "computed"


@dataclass(frozen=True)
class Asked:
    """What is asked of every record."""

    metrics: tuple[Metric, ...]
    judges: tuple[Judge, ...]
    panel: Panel | None
    repeats: int
    cascade: Cascade | None = None

    def judged_rows(self) -> int:
        """How many rows a judged metric gives of a record."""
        if self.cascade is not None:
            return 1 + sum(len(stage) for stage in voices(self.cascade, self.repeats))
        members = sum(len(self.repeats_of(judge)) for judge in self.judges)
        return members + (len(self.panel_repeats()) if self.panel is not None else 0)

    def repeats_of(self, judge: Judge) -> range:
        """The repeats of a judge: what is computed here would only say the same again."""
        return range(self.repeats if judge.endpoint is not None else 1)

    def panel_repeats(self) -> range:
        """The repeats of the panel: as many as its most often asked member has."""
        return range(max(len(self.repeats_of(judge)) for judge in self.judges))


@dataclass
class RecordRun:
    """All rows of the records that are worked on together: one record, or the variants of one id."""

    plan: Asked
    records: Sequence[Record]
    sharing: Sharing
    on_row: Callable[[ScoreRow], None]
    _verdict_like: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Ask all metrics side by side and hand over the rows, in the order of metrics, judges and repeats."""
        scope = Scope(self.sharing)
        # Looked at once for all the rows of an answer.
        self._verdict_like = frozenset(
            record.variant for record in self.records if record.answer and verdict_shaped(record.answer)
        )
        jobs = [
            self._metric(scope, metric, part)
            for metric in self.plan.metrics
            for part in ([self.records] if metric.together else [[record] for record in self.records])
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
        for task in tasks:
            for row in task.result():
                self.on_row(row)

    async def _metric(self, scope: Scope, metric: Metric, records: Sequence[Record]) -> list[ScoreRow]:
        if not metric.judged:
            keys = _keys(_usable(metric, records), metric, COMPUTED, 0)
            made = await self._one(metric, records, ComputedAsk(scope, metric.name, keys))
            return self._rows(metric, records, COMPUTED, 0, made)
        if self.plan.cascade is not None:
            return await self._cascade(scope, metric, records, self.plan.cascade)
        members = [(judge, repeat) for judge in self.plan.judges for repeat in self.plan.repeats_of(judge)]
        jobs = [self._one(metric, records, self._member(scope, metric, records, *member)) for member in members]
        panel = self.plan.panel
        voting = panel is not None and panel.vote_on == "verdicts"
        if panel is not None and voting:
            jobs += [
                self._one(metric, records, self._panel(scope, metric, records, panel, repeat))
                for repeat in self.plan.panel_repeats()
            ]
        done = await _all(jobs)
        by_member = {(judge.name, repeat): done[at] for at, (judge, repeat) in enumerate(members)}
        rows: list[ScoreRow] = []
        for (name, repeat), of_member in by_member.items():
            rows += self._rows(metric, records, name, repeat, of_member)
        if panel is None:
            return rows
        for repeat in self.plan.panel_repeats():
            voted = done[len(members) + repeat] if voting else None
            of_panel = voted or vote_on_scores(panel, metric, records, by_member, repeat)
            rows += self._rows(metric, records, panel.name, repeat, of_panel, panel=True)
        return rows

    async def _cascade(
        self, scope: Scope, metric: Metric, records: Sequence[Record], cascade: Cascade
    ) -> list[ScoreRow]:
        usable, spoken = _usable(metric, records), voices(cascade, self.plan.repeats)

        async def ask(judge: Judge, repeat: int) -> Made:
            return await self._one(metric, usable, self._member(scope, metric, usable, judge, repeat))

        found = await run_stages(cascade, metric, usable, spoken, ask)
        lacking = {
            record.variant: Score.not_applicable(_lacks(metric, record)) for record in records if record not in usable
        }
        stopped = Made({record.variant: Score.not_applicable(STOPPED) for record in usable})
        rows: list[ScoreRow] = []
        for judge, repeat in (voice for stage in spoken for voice in stage):
            made = found.asked.get((judge.name, repeat), stopped)
            made = replace(made, outcomes={**made.outcomes, **lacking})
            rows += self._rows(metric, records, judge.name, repeat, made)
        decided = replace(found.decided, outcomes={**found.decided.outcomes, **lacking})
        return rows + self._rows(metric, records, cascade.name, 0, decided, panel=True)

    def _member(self, scope: Scope, metric: Metric, records: Sequence[Record], judge: Judge, repeat: int) -> MemberAsk:
        return MemberAsk(scope, judge, repeat, _keys(_usable(metric, records), metric, judge.name, repeat))

    def _panel(self, scope: Scope, metric: Metric, records: Sequence[Record], panel: Panel, repeat: int) -> PanelAsk:
        def users(judge: Judge) -> Sequence[RowKey]:
            return _keys(_usable(metric, records), metric, judge.name, repeat if judge.endpoint is not None else 0)

        return PanelAsk(scope, panel, repeat, users)

    async def _one(self, metric: Metric, records: Sequence[Record], ask: Any) -> Made:
        usable = _usable(metric, records)
        outcomes: dict[str, Outcome] = {
            record.variant: Score.not_applicable(_lacks(metric, record)) for record in records if record not in usable
        }
        if usable:
            outcomes |= await _scores(metric, usable, ask, self.sharing)
        made = Made(outcomes, flags=set(getattr(ask, "flags", ())), extractor=getattr(ask, "extractor", None))
        if isinstance(ask, PanelAsk):
            disagreement = sum(ask.disagreements) / len(ask.disagreements) if ask.disagreements else None
            made.disagreement = {record.variant: disagreement for record in usable}
            made.panel = {record.variant: {"votes": ask.ballots} for record in records}
        return made

    def _rows(
        self, metric: Metric, records: Sequence[Record], judge: str, repeat: int, made: Made, *, panel: bool = False
    ) -> list[ScoreRow]:
        rows = []
        for record in records:
            flags = {"verdict_like_text"} if metric.judged and record.variant in self._verdict_like else set()
            rows.append(_row(metric, record, judge, repeat, made, flags=flags, panel=panel))
        return rows


async def _all(jobs: Sequence[Any]) -> list[Made]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
    return [task.result() for task in tasks]


def _keys(records: Sequence[Record], metric: Metric, judge: str, repeat: int) -> list[RowKey]:
    return [RowKey(record.id, record.variant, metric.name, judge, repeat) for record in records]


def _usable(metric: Metric, records: Sequence[Record]) -> list[Record]:
    """The records that a metric is about and that hold what it needs."""
    concerned = [record for record in records if not metric.variants or record.variant in metric.variants]
    return [record for record in concerned if not metric.missing(record)]


def _lacks(metric: Metric, record: Record) -> str:
    if metric.variants and record.variant not in metric.variants:
        return f"{metric.name} is about {' and '.join(map(repr, metric.variants))}"
    missing = metric.missing(record)
    why = f" (the answer was not made: {record.answer_error})" if "answer" in missing and record.answer_error else ""
    return f"the record has no {' and no '.join(missing)}{why}"


async def _asked(metric: Metric, records: Sequence[Record], ask: Any) -> dict[str, Outcome]:
    if metric.together:
        scores = await metric(list(records), ask)
        return {record.variant: checked(metric, scores.get(record.variant)) for record in records}
    return {records[0].variant: checked(metric, await metric(records[0], ask))}


async def _scores(metric: Metric, records: Sequence[Record], ask: Any, sharing: Sharing) -> dict[str, Outcome]:
    if sharing.stopping:
        return {record.variant: JudgeError("cancelled", "interrupted") for record in records}
    try:
        with sharing.running():
            return await _asked(metric, records, ask)
    except (EndpointError, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        # The evaluation's own end comes as a request to cancel this task; what else is cancelled is the metric's own.
        task = asyncio.current_task()
        if sharing.gave_up():
            outcome: Outcome = JudgeError("cancelled", "interrupted")
        elif task is None or task.cancelling():
            raise
        else:
            outcome = failure(error)
    except BaseException as error:  # noqa: BLE001 - a fault in one row, be it sys.exit(), is that row's failure
        outcome = failure(error)
    return {record.variant: outcome for record in records}


def _contradicts(metric: Metric, outcome: Outcome, flags: set[str]) -> bool:
    """Whether a judge said pass or fail, unasked, and its score says the other."""
    said = flags & {"said_pass", "said_fail"}
    if not said or not isinstance(outcome, Score) or outcome.value is None or metric.threshold is None:
        return False
    passed = passes(outcome.value, metric.threshold, metric.higher_is_better)
    return said != {"said_pass" if passed else "said_fail"}


def reference_model(record: Record) -> str | None:
    """The model that wrote a record's reference, as `write_references` marks it; None where a person did.

    >>> reference_model(Record("7", reference="In 1780.", metadata={"reference_model": "gpt-4.1"}))
    'gpt-4.1'
    """
    model = record.metadata.get("reference_model")
    return str(model) if model and record.reference is not None else None


def _uses_it(outcome: Outcome) -> bool:
    return not (isinstance(outcome, Score) and outcome.status == "not_applicable")


def _row(
    metric: Metric, record: Record, judge: str, repeat: int, made: Made, *, flags: set[str], panel: bool
) -> ScoreRow:
    outcome = made.outcomes[record.variant]
    flags = flags | made.flags
    if _contradicts(metric, outcome, flags):
        flags.add("judge_disagreed_with_itself")
    if "reference" in metric.needs and reference_model(record) and _uses_it(outcome):
        flags.add("reference_by_model")
    details: dict[str, Any] = {}
    if isinstance(outcome, Score):
        flags |= set(outcome.flags)
        details |= outcome.details
    elif outcome.trace.raw:
        details["raw"] = outcome.trace.raw
    details |= {"extractor": made.extractor} if made.extractor is not None else {}
    details |= {"panel": dict(made.panel[record.variant])} if record.variant in made.panel else {}
    score = outcome if isinstance(outcome, Score) else None
    return ScoreRow(
        id=record.id,
        variant=record.variant,
        metric=metric.name,
        judge=judge,
        repeat=repeat,
        group=record.group,
        score=None if score is None else score.value,
        status="failed" if score is None else score.status,
        reason="" if score is None else score.reason,
        error=str(outcome) if score is None else "",
        flags=tuple(sorted(flags)),
        disagreement=made.disagreement.get(record.variant),
        details=details,
        panel=panel,
    )
