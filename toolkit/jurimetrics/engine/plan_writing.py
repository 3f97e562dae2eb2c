"""What a generation would ask and cost, said before anything is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from jurimetrics.display import count
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.functions import Function
from jurimetrics.engine.planned import COLUMNS, Plan, totals_of
from jurimetrics.engine.standins import StandIns, learned_habits
from jurimetrics.engine.store import Store
from jurimetrics.engine.timing import timed, walls_of
from jurimetrics.engine.writing import Order
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.session import Session
from jurimetrics.project import is_there
from jurimetrics.tasks.task import DoesNotFit, task_key

ANSWER = "answer"
"""What stands in the column `metric` of such a plan."""


@dataclass
class Rehearsal:
    """The orders of a generation gone through without asking anybody."""

    models: Mapping[str, ChatJudge]
    """Who writes, by variant, as far as it is a model."""
    concurrency: int
    standins: StandIns
    uses: dict[str, Counter[str]] = field(default_factory=dict)
    functions: Counter[str] = field(default_factory=Counter)
    lacking: int = 0
    too_long: int = 0

    def go_through(self, orders: Iterable[Order]) -> None:
        """Note what each order would ask; what is asked for twice is sent once."""
        for order in orders:
            if order.lacks:
                self.lacking += 1
            elif isinstance(order.writer, Function):
                self.functions[order.variant] += 1
            else:
                self._ask(order, order.writer)

    def _ask(self, order: Order, model: ChatJudge) -> None:
        assert order.task is not None
        try:
            order.task.split(model.max_input_tokens)
        except DoesNotFit:
            self.too_long += 1
            return
        query = self.standins.query(model, order.task, task_key(order.task), 0)
        users = self.uses.get(query.key)
        if users is None:
            users = self.uses[query.key] = Counter()
            try:
                stored = self.standins.stored(query)
            except JudgeError:
                stored = None
            else:
                if stored is None:
                    self.standins.expected[query.key] = self.standins.expect(query, None)
                else:
                    self.standins.count_stored(query, stored)
            self.standins.forget()
        users[order.variant] += 1

    def plan(self, records: int) -> Plan:
        """A line for each variant with a model; an answer that several variants share is split equally over them."""
        lines = {name: dict.fromkeys(COLUMNS[2:], 0.0) for name in self.models}
        for ask, users in self.uses.items():
            _, one = self.standins.told(ask)
            for name, number in users.items():
                for column, value in one.items():
                    lines[name][column] += value * number / users.total()
        frame = pd.DataFrame([[name, ANSWER, *line.values()] for name, line in lines.items()], columns=list(COLUMNS))
        frame = timed(frame, self.models, self.concurrency)
        return Plan(frame, totals_of(frame, walls_of(frame, self.models)), tuple(self._notes()), records, "variant")

    def _notes(self) -> Iterator[str]:
        for name, number in self.functions.items():
            yield f"{name} is a function, called {count(number, 'time')}; what that takes is not known here."
        unknown = [name for name, model in self.models.items() if self._assumed(name, model)]
        if unknown:
            yield (
                f"Of {', '.join(unknown)} the store holds too few answers to tell how long they are, and no max_tokens is "
                "declared: a range is assumed."
            )
        if self.standins.expected:
            yield (
                "Replies that must be asked for again and hidden reasoning of a model come on top; discounts for cached "
                "prompts are left out."
            )
        if self.standins.failed_before:
            failed = count(len(self.standins.failed_before), "ask")
            yield f"{failed} failed for good before, not asked again (retry_failed=True does)."
        if self.lacking:
            yield f"{count(self.lacking, 'answer')} cannot be asked for: the record lacks what the prompt needs."
        if self.too_long:
            yield f"{count(self.too_long, 'prompt')} longer than max_input_tokens, not sent."

    def _assumed(self, name: str, model: ChatJudge) -> bool:
        known = (model.reply_key, "write") in self.standins.habits
        asked = any(name in users and ask in self.standins.expected for ask, users in self.uses.items())
        return asked and not known and model.max_tokens is None


def plan_writing(
    orders: Iterable[Order],
    models: Mapping[str, ChatJudge],
    records: int,
    *,
    store: Path | None,
    concurrency: int,
    retry_failed: bool,
) -> Plan:
    """The plan of a generation; nothing is sent, and a store that is not there yet is not made."""
    held = Store(store if store is not None and is_there(store) else None)
    try:
        standins = StandIns(
            session=Session(held.learned(), widened=retry_failed),
            store=held,
            budget=Budget(),
            concurrency=concurrency,
            retries=0,
            reason_language=None,
            retry_failed=retry_failed,
            on_call=lambda _: None,
            places={},
            habits=learned_habits(held, models.values()),
        )
        rehearsal = Rehearsal(models, concurrency, standins)
        rehearsal.go_through(orders)
        return rehearsal.plan(records)
    finally:
        held.close()
