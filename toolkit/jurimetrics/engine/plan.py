"""What an evaluation would ask and cost, said before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from jurimetrics.display import count
from jurimetrics.engine.asking import Sharing
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.options import StoreChoice, check_whole, store_path
from jurimetrics.engine.planned import COLUMNS, Plan, totals_of
from jurimetrics.engine.rows import RecordRun
from jurimetrics.engine.setup import Judges, Metrics, Setup, set_up
from jurimetrics.engine.standins import StandIns, learned_habits
from jurimetrics.engine.store import Store
from jurimetrics.engine.threads import in_own_thread
from jurimetrics.engine.timing import timed, walls_of
from jurimetrics.judges.judge import Judge
from jurimetrics.judges.session import Session
from jurimetrics.project import is_there
from jurimetrics.records import Record, iter_records

SAMPLE = 1_000


def plan(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    store: StoreChoice = "auto",
    repeats: int = 1,
    embedder: Judge | None = None,
    concurrency: int = 64,
    reason_language: str | None = None,
    retry_failed: bool = False,
    sample: int = SAMPLE,
) -> Plan:
    """Say what `evaluate` with the same arguments would ask and cost; nothing is sent and nothing is written.

    The metrics are run with the answers in the store, else with the baseline's as stand-ins (and with placeholders where
    it has none), so what is shared, split and stored is counted as the evaluation counts it. Of what depends on the
    judge's own answers (how many claims it finds, replies that must be asked for again) a plan knows nothing.

    Parameters
    ----------
    records : as `evaluate` takes them; an iterator is used up.
    sample : records to plan on; beyond these the figures are those of the first ones, scaled up, and `notes` say so.

    Returns
    -------
    Plan : its `frame` has a line for each judge and metric, its `totals` the sums. Ranges are the least and the most
        expected: tokens by bytes of the prompt, time by concurrency and by the latency that the judge's stored answers
        show (else an assumed one).

    Raises
    ------
    InputError : what `evaluate` would refuse before it starts.

    Examples
    --------
    >>> from jurimetrics import ChatJudge, plan
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    >>> judge = ChatJudge("gpt-4.1-mini", base_url="http://127.0.0.1:9/v1")
    >>> planned = plan([record], ["faithfulness", "fluency"], judge, store=None)
    >>> planned.frame[["judge", "metric", "calls"]].values.tolist()
    [['gpt-4.1-mini', 'faithfulness', 2.0], ['gpt-4.1-mini', 'fluency', 1.0]]
    """
    check_whole("concurrency", concurrency, 1)
    check_whole("sample", sample, 1)
    setup = _to_the_end(set_up(metrics, judges, repeats, embedder, sends=False))
    held, total = _sampled(iter_records(records), sample)
    rehearsal = _Rehearsal(setup, held, total, store_path(store), concurrency, reason_language, retry_failed)
    return in_own_thread(rehearsal, "plan")


def _to_the_end(setup: Setup) -> Setup:
    """With a cascade that is never sure: stand-ins always agree, and the most that it can take must be known beforehand."""
    cascade = setup.plan.cascade
    if cascade is None:
        return setup
    return replace(setup, plan=replace(setup.plan, cascade=replace(cascade, confidence=lambda _: -math.inf)))


def _sampled(records: Iterator[Record], sample: int) -> tuple[list[Record], int]:
    """All records of as many ids as bring about `sample` records, and how many there are in all.

    Variants of an id stay together wherever they stand, as what they share is asked once.
    """
    held: list[Record] = []
    ids: set[str] = set()
    total = 0
    for record in records:
        total += 1
        if record.id in ids or len(held) < sample:
            ids.add(record.id)
            held.append(record)
    return held, total


@dataclass
class _Rehearsal:
    """One evaluation with stand-ins for judges."""

    setup: Setup
    records: Sequence[Record]
    total: int
    store: Path | None
    concurrency: int
    reason_language: str | None
    retry_failed: bool
    interrupted: bool = False

    def interrupt(self) -> None:
        """End at the next record; nothing is worth keeping of a plan."""
        self.interrupted = True

    async def run(self) -> Plan:
        # A store that is not there yet is not made for a plan.
        exists = self.store is not None and is_there(self.store)
        store = Store(self.store if exists else None)
        try:
            standins = StandIns(
                session=Session(store.learned(), widened=self.retry_failed),
                store=store,
                budget=Budget(),
                concurrency=self.concurrency,
                retries=0,
                reason_language=self.reason_language,
                retry_failed=self.retry_failed,
                on_call=lambda _: None,
                places={},
                habits=learned_habits(store, self._asked()),
            )
            uses = await self._rehearse(standins)
        finally:
            store.close()
        frame = self._frame(standins, uses)
        walls = walls_of(frame, {judge.name: judge for judge in self._asked()})
        return Plan(frame, totals_of(frame, walls), tuple(self._notes(standins)), self.total)

    def _asked(self) -> list[Judge]:
        asked = [*self.setup.judges(), *([self.setup.embedder] if self.setup.embeds else [])]
        return [judge for judge in asked if judge.endpoint is not None]

    async def _rehearse(self, standins: StandIns) -> dict[str, Counter[str]]:
        """Run all metrics; which metrics' rows used each ask."""
        uses: dict[str, Counter[str]] = {}
        sharing = Sharing(
            standins,
            self.setup.extractors,
            self.setup.embedder,
            on_use=lambda use: uses.setdefault(use.ask, Counter()).update((use.metric,)),
        )
        for group in self._groups():
            if self.interrupted:
                raise KeyboardInterrupt
            await RecordRun(self.setup.plan, group, sharing, lambda _: None).run()
            standins.forget()
        await sharing.close()
        return uses

    def _groups(self) -> Iterable[list[Record]]:
        if not any(metric.together for metric in self.setup.plan.metrics):
            return [[record] for record in self.records]
        by_id: dict[str, list[Record]] = {}
        for record in self.records:
            by_id.setdefault(record.id, []).append(record)
        return by_id.values()

    def _frame(self, standins: StandIns, uses: dict[str, Counter[str]]) -> pd.DataFrame:
        scale = self.total / max(1, len(self.records))
        lines: dict[tuple[str, str], dict[str, float]] = {}
        for judge in self._asked():
            for metric in self.setup.plan.metrics if judge in self.setup.plan.judges else ():
                if metric.judged:
                    lines[judge.name, metric.name] = dict.fromkeys(COLUMNS[2:], 0.0)
        for ask, rows in uses.items():
            name, one = standins.told(ask)
            for metric_name, number in rows.items() if one else ():
                line = lines.setdefault((name, metric_name), dict.fromkeys(COLUMNS[2:], 0.0))
                for column, value in one.items():
                    line[column] += value * scale * number / rows.total()
        order = {name: at for at, name in enumerate([*(judge.name for judge in self._asked())])}
        places = {metric.name: at for at, metric in enumerate(self.setup.plan.metrics)}
        ordered = sorted(lines, key=lambda key: (order[key[0]], places[key[1]]))
        frame = pd.DataFrame([[*key, *lines[key].values()] for key in ordered], columns=list(COLUMNS))
        return timed(frame, {judge.name: judge for judge in self._asked()}, self.concurrency)

    def _notes(self, standins: StandIns) -> Iterator[str]:
        here = [judge.name for judge in self.setup.plan.judges if judge.endpoint is None]
        if here:
            alone = "Nothing is sent: " if not self._asked() else ""
            verb = "computes its" if len(here) == 1 else "compute their"
            yield f"{alone}{' and '.join(here)} {verb} answers here."
        if self.total > len(self.records):
            yield f"Planned on the first {len(self.records):,} of {self.total:,} records and scaled up."
        if standins.expected:
            yield (
                "Counted with stand-ins for answers that are not there yet: a judge that finds another number of claims, "
                "and replies that must be asked for again, change the figures. Hidden reasoning of a model comes on top "
                "where the store holds no answers of it; discounts for cached prompts are left out."
            )
        panel = self.setup.plan.panel
        if panel is not None and panel.vote_on == "verdicts" and standins.expected:
            yield "Stand-ins agree, so calls that a panel needs for voted answers alone are not in it."
        if self.setup.plan.cascade is not None and standins.expected:
            yield (
                "Planned as if every record went through all judges of the cascade, which is the most that it can take: "
                "the first judge that is sure enough ends it."
            )
        if standins.failed_before:
            failed = count(len(standins.failed_before), "ask")
            yield f"{failed} failed for good before, not asked again (retry_failed=True does)."
        if standins.unanswered:
            kinds = ", ".join(sorted(standins.unanswered))
            yield f"Nothing can stand in for tasks of kind {kinds}: what a metric asks after one is not counted."
