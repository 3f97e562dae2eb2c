"""Answers from a function of the user's: a pipeline, a chain, an agent, whatever takes a record and gives an answer."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

from jurimetrics.cells import is_missing, show
from jurimetrics.columns import RECORD_COLUMNS
from jurimetrics.engine.asking import Sharing
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.outcomes import crash
from jurimetrics.errors import FailureKind, InputError
from jurimetrics.frames import CallRow
from jurimetrics.judges.judge import JudgeError, Trace, Usage
from jurimetrics.records import Record, iter_records
from jurimetrics.tasks.task import fingerprint
from jurimetrics.tasks.write import WriteAnswer
from jurimetrics.text import is_blank

_GIVEN = frozenset(
    name for field in ("id", "question", "reference", "variant", "group") for name in RECORD_COLUMNS[field]
)
_MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Function:
    """A function that answers records, how many may run at once (None: as many as anywhere), and for how long each."""

    name: str
    function: Callable[[Record], Any] = field(repr=False)
    max_concurrency: int | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """An answer and what it took: seconds, tokens and US dollars are None where unknown, contexts where not changed."""

    answer: str
    contexts: tuple[str, ...] | None = None
    model: str | None = None
    latency_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class FunctionCaller:
    """Asks functions, as many at once as allowed, and counts each call; their answers are not kept."""

    sharing: Sharing
    budget: Budget
    concurrency: int
    on_call: Callable[[CallRow], None]
    _running: int = 0
    _places: dict[str, asyncio.Semaphore] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether a function is at work."""
        return self._running > 0

    async def call(self, writer: Function, record: Record) -> Written:
        """The answer of a function. Raises `JudgeError`, or the end of it all."""
        most = min(writer.max_concurrency or self.concurrency, self.concurrency)
        async with self._places.setdefault(writer.name, asyncio.Semaphore(most)):
            if self.sharing.stopping:
                raise JudgeError("cancelled", "interrupted")
            if reached := self.budget.spent_out():
                raise JudgeError("budget", reached)
            outcome: Written | JudgeError = JudgeError("cancelled", "interrupted")
            started = time.perf_counter()
            self.budget.start_call()
            self._running += 1
            try:
                with self.sharing.running():
                    outcome = await _attempt(writer, record)
            finally:
                self._running -= 1
                self._count(writer, record, outcome, time.perf_counter() - started)
        if isinstance(outcome, JudgeError):
            raise outcome
        return outcome

    def _count(self, writer: Function, record: Record, outcome: Written | JudgeError, seconds: float) -> None:
        trace, model, error = Trace(latency_s=seconds), writer.name, ("ok", "")
        if isinstance(outcome, JudgeError):
            error = (outcome.kind, outcome.message)
        else:
            usage = Usage(outcome.prompt_tokens, outcome.completion_tokens)
            trace = Trace(usage=usage, latency_s=outcome.latency_s or 0.0, cost_usd=outcome.cost_usd)
            model = outcome.model or model
        self.budget.spend(trace)
        self.on_call(
            CallRow(
                ask=fingerprint(["function", writer.name, record.id]),
                judge=writer.name,
                kind=WriteAnswer.kind,
                task_key="",
                repeat=0,
                attempt=1,
                status=error[0],
                error=error[1],
                model=model,
                model_returned=None,
                fingerprint=None,
                prompt_tokens=trace.usage.prompt,
                cached_prompt_tokens=None,
                completion_tokens=trace.usage.completion,
                reasoning_tokens=None,
                cost_usd=trace.cost_usd,
                saved_usd=None,
                latency_s=trace.latency_s,
                finish_reason=None,
                format="",
                refused_parameters=(),
                from_store=False,
                at=datetime.now(UTC),
            )
        )


async def _attempt(writer: Function, record: Record) -> Written | JudgeError:
    try:
        return await _in_time(writer, record)
    except JudgeError as error:
        return error
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a fault in one answer, be it sys.exit(), is that answer's failure
        return crash(error)


async def _in_time(writer: Function, record: Record) -> Written:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(writer.timeout) as limit:
            given = await _called(writer.function, record)
    except TimeoutError:
        if not limit.expired():
            raise
        raise JudgeError("timeout", f"{writer.name} gave no answer within {writer.timeout:g} s") from None
    return _written(given, record, time.perf_counter() - started)


async def _called(function: Callable[[Record], Any], record: Record) -> Any:
    awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    given = function(record) if awaited else await _in_a_thread(function, record)
    # A plain function may hand out the coroutine of another one.
    return await given if inspect.isawaitable(given) else given


async def _in_a_thread(function: Callable[[Record], Any], record: Record) -> Any:
    """In a thread for this call alone: none that hangs keeps others waiting, or the process from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        given: Any = None
        failed: JudgeError | None = None
        try:
            given = context.run(function, record)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it ends this one answer
            failed = error if isinstance(error, JudgeError) else crash(error)
        # A loop that has ended waits for nothing any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, outcome, given, failed)

    threading.Thread(target=work, name="jurimetrics-function", daemon=True).start()
    return await outcome


def _settle(outcome: asyncio.Future[Any], given: Any, failed: JudgeError | None) -> None:
    if outcome.done():
        return
    if failed is None:
        outcome.set_result(given)
    else:
        outcome.set_exception(failed)


def _written(given: Any, record: Record, seconds: float) -> Written:
    if isinstance(given, str):
        return Written(_answer(given), latency_s=seconds)
    if isinstance(given, Record):
        made = given
    elif isinstance(given, Mapping):
        made = _read(given, record)
    else:
        raise JudgeError("unparsed", f"the function returned {show(given)}, not a text, a dictionary or a record")
    if made.answer_error is not None and made.answer is None:
        raise _told(made.answer_error)
    return Written(
        answer=_answer(made.answer, list(given) if isinstance(given, Mapping) else []),
        contexts=made.contexts if isinstance(given, Record) or _gives_contexts(given) else None,
        model=made.answer_model,
        latency_s=seconds if made.answer_latency_s is None else made.answer_latency_s,
        prompt_tokens=made.answer_prompt_tokens,
        completion_tokens=made.answer_completion_tokens,
        cost_usd=made.answer_cost_usd,
        metadata=made.metadata,
    )


def _read(given: Mapping[Any, Any], record: Record) -> Record:
    """A dictionary as a record; what it repeats of the record that was given, under whatever names, is left out."""
    own = {name: value for name, value in given.items() if str(name).strip().casefold() not in _GIVEN}
    try:
        return next(iter_records([{**own, "id": record.id}]))
    except InputError as error:
        raise JudgeError("unparsed", f"what the function returned cannot be read: {error}") from None


def _answer(text: str | None, found: Sequence[Any] = ()) -> str:
    if text is None or is_blank(text):
        names = f"; found {', '.join(map(show, found[:_MOST_NAMES]))}" if found else ""
        raise JudgeError("unparsed", f"the function returned no answer, or a blank one{names}")
    return text


def _told(error: str) -> JudgeError:
    """A failure that the function reports itself, under its own kind where it names one of ours."""
    kind = next((kind for kind in get_args(FailureKind) if error.startswith(f"{kind}: ")), None)
    return JudgeError("crash", error) if kind is None else JudgeError(kind, error.removeprefix(f"{kind}: "))


def _gives_contexts(given: Mapping[Any, Any]) -> bool:
    """Whether the function says what it retrieved, be it nothing."""
    names = RECORD_COLUMNS["contexts"]
    return any(str(key).strip().casefold() in names and not is_missing(value) for key, value in given.items())
