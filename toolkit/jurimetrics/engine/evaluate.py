"""The main job: records, metrics and judges in, results out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from jurimetrics.engine.asking import Sharing
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.calls import Caller
from jurimetrics.engine.outlets import Outlets
from jurimetrics.engine.progress import Progress
from jurimetrics.engine.rows import RecordRun
from jurimetrics.engine.setup import Judges, Metrics, Setup, set_up
from jurimetrics.engine.store import Store
from jurimetrics.engine.window import Window
from jurimetrics.errors import InputError
from jurimetrics.frames import RowWriter
from jurimetrics.judges.judge import Judge
from jurimetrics.judges.session import Session
from jurimetrics.metrics.prompts import prompts_of
from jurimetrics.project import project_folder
from jurimetrics.records import Record, iter_records, scan_duplicates
from jurimetrics.results import Results
from jurimetrics.version import VERSION

StoreChoice = Path | str | None
"""A path, "auto" for the project's own store, or None to keep answers in memory only."""


def evaluate(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    store: StoreChoice = "auto",
    concurrency: int = 64,
    retries: int = 4,
    retry_failed: bool = False,
    budget: float | Mapping[str, float] | None = None,
    repeats: int = 1,
    embedder: Judge | None = None,
    out: str | Path | None = None,
    reason_language: str | None = None,
    progress: bool = True,
) -> Results:
    """Score every record under every metric by every judge, and the panel if there is one.

    Parameters
    ----------
    records : a list of `Record` or dictionaries, a DataFrame, a path (CSV, JSONL, Parquet; streamed), or an iterator.
    metrics : metrics, their names, or names of groups ("rag", "quality", "all").
    judges : one judge, a list (rows of each), a `Panel` (rows of each and of the panel), or a `Cascade` (cheap to strong).
    store : where answers are kept, so that running the same call again asks nobody: "auto" is `.jurimetrics/store.db`
        in the project, None keeps them in memory.
    concurrency : requests in flight at one endpoint, at most.
    retries : further tries of a call after a timeout or a broken connection.
    retry_failed : ask again what failed for good before (filtered, refused, rejected), and try prompts again that were
        too long for an endpoint's model.
    budget : US dollars, or `{"usd": , "tokens": , "calls": }`; when it is spent the rest fails as `budget`.
    repeats : independent samples of each judge.
    embedder : who turns texts into vectors for the metrics that compare meanings: an `EndpointEmbedder`; None is the
        `EmbeddedEmbedder`, which needs no network. Its cost stands in the rows of those metrics.
    out : a folder for the rows, where earlier results are replaced; None keeps them in a temporary one that lives as
        long as the results.
    reason_language : the language of the reasons, such as "German"; None is the language of the answer.
    progress : a bar on a terminal or in a notebook.

    Returns
    -------
    Results : one row per record, metric, judge and repeat. A row that failed says why; it never ends the run. Ctrl-C
        returns what is done, the rest as `failed: cancelled`.

    Raises
    ------
    InputError : something given cannot be used, or an endpoint cannot be reached at all; said before money is spent.

    Examples
    --------
    >>> from jurimetrics import BaselineJudge, evaluate
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain. It has 3 million inhabitants."]}
    >>> evaluate([record], ["faithfulness"], BaselineJudge(), store=None).scores["score"].tolist()
    [1.0]
    """
    return _in_own_thread(_prepare(**locals()))


async def aevaluate(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    store: StoreChoice = "auto",
    concurrency: int = 64,
    retries: int = 4,
    retry_failed: bool = False,
    budget: float | Mapping[str, float] | None = None,
    repeats: int = 1,
    embedder: Judge | None = None,
    out: str | Path | None = None,
    reason_language: str | None = None,
    progress: bool = True,
) -> Results:
    """`evaluate` for `await`: the same parameters, results and errors, in the caller's own event loop.

    >>> import asyncio
    >>> from jurimetrics import BaselineJudge, aevaluate
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    >>> results = asyncio.run(aevaluate([record], ["faithfulness"], BaselineJudge(), store=None))
    >>> results.scores["status"].tolist()
    ['ok']
    """
    return await _prepare(**locals()).run()


def _in_own_thread(run: Run) -> Results:
    """Run in a loop and a thread of its own: so `evaluate` works in a cell, under a running loop and in a web handler
    alike, and nothing of the caller's loop is touched. The first Ctrl-C ends the run early, the second one at once."""
    outcome: Future[Results] = Future()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(run.run()))
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread, where it is raised
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="jurimetrics-evaluate", daemon=True)
    begun, interrupts = False, 0
    while True:
        try:
            if not begun:
                begun = True
                thread.start()
            # In short waits, because some systems deliver Ctrl-C only between them.
            result = outcome.result(timeout=0.5)
            thread.join()
        except TimeoutError:
            if outcome.done():
                raise
        except KeyboardInterrupt as interrupt:
            interrupts += 1
            # One that was raised inside the evaluation is no Ctrl-C of the user's.
            own = outcome.done() and outcome.exception() is interrupt
            if own or interrupts > 1:
                raise
            run.interrupt()
        else:
            return result


def _prepare(
    records: Any,
    metrics: Metrics,
    judges: Judges,
    *,
    store: StoreChoice,
    concurrency: int,
    retries: int,
    retry_failed: bool,
    budget: float | Mapping[str, float] | None,
    repeats: int,
    embedder: Judge | None,
    out: str | Path | None,
    reason_language: str | None,
    progress: bool,
) -> Run:
    for name, value, least in (("concurrency", concurrency, 1), ("retries", retries, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be a whole number from {least}, not {value!r}")
    _check_language(reason_language)
    setup = set_up(metrics, judges, repeats, embedder)
    limits = Budget.of(budget)
    limits.check_prices([*setup.judges(), *([setup.embedder] if setup.embeds else [])])
    groups, total = _groups(records, together=any(metric.together for metric in setup.plan.metrics))
    path = project_folder() / ".jurimetrics" / "store.db" if store == "auto" else _path("store", store)
    return Run(
        setup=setup,
        groups=groups,
        total=total,
        store=path,
        budget=limits,
        concurrency=concurrency,
        retries=retries,
        retry_failed=retry_failed,
        reason_language=reason_language,
        out=_path("out", out),
        progress=progress,
    )


def _check_language(language: Any) -> None:
    if language is None:
        return
    if not isinstance(language, str) or not language.strip() or not language.isprintable():
        raise InputError(f'reason_language is the name of a language, such as "German", not {language!r}')


def _path(name: str, given: Any) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str | PathLike) or "\0" in fspath(given) or not fspath(given):
        raise InputError(f"{name} must be a path or None, not {given!r}")
    return Path(given)


def _groups(records: Any, *, together: bool) -> tuple[Iterator[list[Record]], int | None]:
    """The records that are worked on together, and how many records there are where that is known."""
    if isinstance(records, str | Path):
        # The whole file is gone through first: a duplicate at its end must not cost what comes before it.
        total: int | None = scan_duplicates(records)
        each: Iterable[Record] = iter_records(records)
    elif isinstance(records, Iterator):
        each, total = iter_records(records), None
    else:
        each = list(iter_records(records))
        total = len(each)
        if together:
            by_id: dict[str, list[Record]] = {}
            for record in each:
                by_id.setdefault(record.id, []).append(record)
            return iter(by_id.values()), total
    if together:
        return _side_by_side(each), total
    return ([record] for record in each), total


def _side_by_side(records: Iterable[Record]) -> Iterator[list[Record]]:
    done: set[str] = set()
    for one, group in groupby(records, key=lambda record: record.id):
        if one in done:
            raise InputError(
                f"records: the variants of {one!r} must stand side by side for metrics that compare them: "
                "sort the file by id, or give load_records(path) instead of the path"
            )
        done.add(one)
        yield list(group)


@dataclass
class Run:
    """One evaluation, from its first record to its results."""

    setup: Setup
    groups: Iterator[list[Record]]
    total: int | None
    store: Path | None
    budget: Budget
    concurrency: int
    retries: int
    retry_failed: bool
    reason_language: str | None
    out: Path | None
    progress: bool
    _loop: asyncio.AbstractEventLoop | None = None
    _sharing: Sharing | None = None
    _interrupted: bool = False
    _count: int = 0
    _variants: dict[str, None] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _digest: Any = field(default_factory=hashlib.sha256)

    async def run(self) -> Results:
        """Evaluate; the results hold a row for all that was asked for."""
        self._loop = asyncio.get_running_loop()
        started, clock = datetime.now(UTC), time.monotonic()
        store = Store(self.store)
        try:
            return await self._with_store(store, started, clock)
        finally:
            store.close()

    def interrupt(self) -> None:
        """End early from another thread: calls in flight are dropped, all rows that are done are kept."""
        self._interrupted = True
        if self._loop is not None and self._sharing is not None:
            # A loop that has just closed has nothing left to stop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._sharing.stop)

    async def _with_store(self, store: Store, started: datetime, clock: float) -> Results:
        writer = RowWriter(self.out, settings=self._settings(started, 0.0), replace=True)
        bar = Progress(self.progress, self._rows(), self.budget)
        if self.store is not None:
            bar.say(f"store: {self.store} ({len(store)} answers)")
        try:
            async with self._session(store) as session:
                await self._records(session, store, writer, bar)
        except BaseException:
            # What could not be written before cannot be now; the error that is under way says so.
            with suppress(OSError):
                writer.abandon()
            raise
        finally:
            bar.close()
        self._notes += store.notes()
        settings = self._settings(started, time.monotonic() - clock)
        try:
            writer.close(settings)
        except OSError as error:
            raise Outlets(writer, bar, self.store).unwritable(error) from None
        return Results(writer.folder, temporary=writer.temporary)

    @asynccontextmanager
    async def _session(self, store: Store) -> AsyncIterator[Session]:
        session = Session(store.learned(), widened=self.retry_failed)
        try:
            yield session
        finally:
            store.keep_learned(session.learned)
            await session.close()

    async def _records(self, session: Session, store: Store, writer: RowWriter, bar: Progress) -> None:
        outlets = Outlets(writer, bar, self.store)
        caller = Caller(
            session=session,
            store=store,
            budget=self.budget,
            concurrency=self.concurrency,
            retries=self.retries,
            reason_language=self.reason_language,
            retry_failed=self.retry_failed,
            on_call=outlets.call,
            places=self.setup.places(self.concurrency),
            per_minute=self.setup.per_minute(),
            on_ended=lambda judge, error: self._tell(bar, f"{judge.name}: {error}"),
        )
        self._sharing = sharing = Sharing(
            caller, self.setup.extractors, self.setup.embedder, on_use=outlets.use, stopping=self._interrupted
        )
        window = Window(self.concurrency, busy=lambda: sharing.busy)
        try:
            async with asyncio.TaskGroup() as tasks:
                for group in self.groups:
                    # What has no end would go on for ever; what has one gets a row for all that was asked for.
                    if self._interrupted and self.total is None:
                        break
                    await window.enter()
                    for record in group:
                        self._note(record)
                        outlets.record(record)
                    task = tasks.create_task(RecordRun(self.setup.plan, group, sharing, outlets.score).run())
                    task.add_done_callback(window.leave)
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            await sharing.close()

    def _note(self, record: Record) -> None:
        self._count += 1
        self._variants.setdefault(record.variant)
        # The digest says whether two evaluations saw the same data.
        self._digest.update(json.dumps(record.as_dict(), sort_keys=True, default=str).encode("utf-8", "replace"))

    def _tell(self, bar: Progress, note: str) -> None:
        """Say something that must not go unseen: at once where somebody looks, and with the results."""
        self._notes.append(note)
        bar.say(note)

    def _rows(self) -> int | None:
        plan = self.setup.plan
        each = sum(plan.judged_rows() if metric.judged else 1 for metric in plan.metrics)
        return None if self.total is None else self.total * each

    def _settings(self, started: datetime, seconds: float) -> dict[str, Any]:
        return {
            "jurimetrics": VERSION,
            "created": datetime.now(UTC).isoformat(),
            "started": started.isoformat(),
            "seconds": round(seconds, 3),
            **self.setup.settings(),
            "prompts": prompts_of(self.setup.plan.metrics, self.reason_language),
            "reason_language": self.reason_language,
            "store": None if self.store is None else str(self.store),
            "interrupted": self._interrupted,
            "data_digest": self._digest.hexdigest(),
            "records": self._count,
            "variants": list(self._variants),
            "notes": self._notes,
        }


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error to show of several that came at once; each group holds at least one."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
