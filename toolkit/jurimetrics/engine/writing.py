"""Answers written by models and functions: the same store, sharing, limits, retries and money as in an evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from jurimetrics.engine.asking import Sharing
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.calls import Caller, EndpointError
from jurimetrics.engine.functions import Function, FunctionCaller, Written
from jurimetrics.engine.outcomes import crash
from jurimetrics.engine.progress import Progress
from jurimetrics.engine.sessions import opened
from jurimetrics.engine.setup import per_minute_of, places_of
from jurimetrics.engine.store import Store
from jurimetrics.engine.threads import Brake
from jurimetrics.engine.window import Window, work_through
from jurimetrics.frames import CallRow
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.embedders import EmbeddedEmbedder
from jurimetrics.judges.judge import JudgeError
from jurimetrics.judges.session import Session
from jurimetrics.records import Record
from jurimetrics.tasks.task import DoesNotFit, task_key
from jurimetrics.tasks.write import WriteAnswer

Outcome = Written | JudgeError


@dataclass(frozen=True, slots=True)
class Order:
    """One answer that is wanted: to which record, from whom, and in which words a model is asked for it.

    `task` is None for a function, and where the record lacks what the words need: then `lacks` says what.
    """

    record: Record
    variant: str
    writer: ChatJudge | Function
    task: WriteAnswer | None = None
    lacks: str = ""


@dataclass
class Writing:
    """All answers of one generation: `run` gives what came of each order, in the order of the orders."""

    orders: Iterator[Order]
    total: int
    models: tuple[ChatJudge, ...]
    store: Path | None
    budget: Budget
    concurrency: int
    retries: int
    retry_failed: bool
    progress: bool
    calls: list[CallRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _brake: Brake = field(default_factory=Brake)

    async def run(self) -> list[Outcome]:
        """Write; there is an outcome for every order, a failure where there is no answer."""
        outcomes: list[Outcome] = [JudgeError("cancelled", "interrupted")] * self.total
        store = Store(self.store)
        bar = Progress(self.progress, self.total, self.budget, "answer")
        if self.store is not None:
            bar.say(f"store: {self.store} ({len(store)} answers)")
        try:
            async with opened(store, widened=self.retry_failed) as session:
                await self._write(session, store, bar, outcomes)
            self.notes += store.notes()
        except EndpointError as error:
            raise EndpointError(str(error).replace("judge ", "model ", 1)) from None
        finally:
            bar.close()
            store.close()
        return outcomes

    def interrupt(self) -> None:
        """End early from another thread: all answers that are there are kept."""
        self._brake.pull()

    async def _write(self, session: Session, store: Store, bar: Progress, outcomes: list[Outcome]) -> None:
        caller = Caller(
            session=session,
            store=store,
            budget=self.budget,
            concurrency=self.concurrency,
            retries=self.retries,
            reason_language=None,
            retry_failed=self.retry_failed,
            on_call=partial(self._note, bar),
            places=places_of(self.models, self.concurrency),
            per_minute=per_minute_of(self.models),
            on_ended=lambda judge, error: self._tell(bar, f"{judge.name}: {error}"),
        )
        sharing = Sharing(caller, (), EmbeddedEmbedder(), on_use=lambda _: None)
        self._brake.connect(sharing.stop)
        functions = FunctionCaller(sharing, self.budget, self.concurrency, on_call=caller.on_call)
        window = Window(self.concurrency, busy=lambda: sharing.busy or functions.busy)

        async def one(at: int, order: Order) -> None:
            outcome = await _outcome(order, sharing, functions)
            # Of an error no more than what it says: its reply and its traceback would be held with it.
            outcomes[at] = JudgeError(outcome.kind, outcome.message) if isinstance(outcome, JudgeError) else outcome
            bar.row(failed=isinstance(outcome, JudgeError))

        try:
            await work_through((partial(one, at, order) for at, order in enumerate(self.orders)), window)
        finally:
            await sharing.close()

    def _note(self, bar: Progress, row: CallRow) -> None:
        self.calls.append(row)
        bar.call(row)

    def _tell(self, bar: Progress, note: str) -> None:
        self.notes.append(note)
        bar.say(note)


async def _outcome(order: Order, sharing: Sharing, functions: FunctionCaller) -> Outcome:
    if order.lacks:
        return JudgeError("rejected", order.lacks)
    try:
        if isinstance(order.writer, Function):
            return await functions.call(order.writer, order.record)
        assert order.task is not None
        return await _from_model(order.writer, order.task, sharing)
    except JudgeError as error:
        return error
    except (EndpointError, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        # The end of it all comes as a request to cancel this task; what else is cancelled is the function's own.
        task = asyncio.current_task()
        if sharing.gave_up():
            return JudgeError("cancelled", "interrupted")
        if task is None or task.cancelling():
            raise
        return crash(error)
    except BaseException as error:  # noqa: BLE001 - a fault in one answer, be it sys.exit(), is that answer's failure
        return crash(error)


async def _from_model(model: ChatJudge, task: WriteAnswer, sharing: Sharing) -> Written:
    try:
        task.split(model.max_input_tokens)
    except DoesNotFit as error:
        raise JudgeError("rejected", f"does not fit: {error}") from None
    query = sharing.caller.query(model, task, task_key(task), 0)
    reply = await sharing.wait_for(sharing.answer(query))
    usage, cost = reply.trace.usage, reply.trace.cost_usd
    if cost is None:
        # It may have been written before a price was declared.
        cost = model.cost(usage, reply.trace.model, datetime.now(UTC))
    return Written(
        answer=reply.answer,
        model=model.model,
        latency_s=reply.trace.latency_s,
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        cost_usd=cost,
    )
