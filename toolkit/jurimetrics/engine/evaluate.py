"""The main job: records, metrics and judges in, results out."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from jurimetrics.answers import Answers
from jurimetrics.engine.asking import Sharing
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.calls import Caller
from jurimetrics.engine.options import StoreChoice, check_language, check_whole, path_of, store_path
from jurimetrics.engine.outlets import Outlets
from jurimetrics.engine.progress import Progress
from jurimetrics.engine.rows import RecordRun, reference_model
from jurimetrics.engine.sessions import opened
from jurimetrics.engine.setup import Judges, Metrics, Setup, set_up
from jurimetrics.engine.store import Store
from jurimetrics.engine.threads import Brake, in_own_thread
from jurimetrics.engine.window import Window, work_through
from jurimetrics.errors import InputError
from jurimetrics.frames import RowWriter
from jurimetrics.judges.judge import Judge
from jurimetrics.judges.session import Session
from jurimetrics.metrics.prompts import prompts_of
from jurimetrics.records import Record, iter_records, scan_duplicates
from jurimetrics.results import Results
from jurimetrics.version import VERSION


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
        Of `Answers` the results keep what wrote them. What could not be written is `not_applicable` and says why.
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
    return in_own_thread(_prepare(**locals()), "evaluate")


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
    check_whole("concurrency", concurrency, 1)
    check_whole("retries", retries, 0)
    check_language(reason_language)
    setup = set_up(metrics, judges, repeats, embedder)
    limits = Budget.of(budget)
    limits.check_prices([*setup.judges(), *([setup.embedder] if setup.embeds else [])])
    groups, total = _groups(records, together=any(metric.together for metric in setup.plan.metrics))
    return Run(
        setup=setup,
        groups=groups,
        total=total,
        store=store_path(store),
        budget=limits,
        concurrency=concurrency,
        retries=retries,
        retry_failed=retry_failed,
        reason_language=reason_language,
        out=path_of("out", out),
        progress=progress,
        written_by=records.written_by if isinstance(records, Answers) else {},
    )


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
    written_by: Mapping[str, Any]
    """What wrote the answers, by variant, where `generate` did."""
    _brake: Brake = field(default_factory=Brake)
    _count: int = 0
    _variants: dict[str, None] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _reference_models: Counter[str] = field(default_factory=Counter)
    _digest: Any = field(default_factory=hashlib.sha256)

    async def run(self) -> Results:
        """Evaluate; the results hold a row for all that was asked for."""
        started, clock = datetime.now(UTC), time.monotonic()
        store = Store(self.store)
        try:
            return await self._with_store(store, started, clock)
        finally:
            store.close()

    def interrupt(self) -> None:
        """End early from another thread: calls in flight are dropped, all rows that are done are kept."""
        self._brake.pull()

    async def _with_store(self, store: Store, started: datetime, clock: float) -> Results:
        writer = RowWriter(self.out, settings=self._settings(started, 0.0), replace=True)
        bar = Progress(self.progress, self._rows(), self.budget)
        if self.store is not None:
            bar.say(f"store: {self.store} ({len(store)} answers)")
        try:
            async with opened(store, widened=self.retry_failed) as session:
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
        sharing = Sharing(caller, self.setup.extractors, self.setup.embedder, on_use=outlets.use)
        self._brake.connect(sharing.stop)
        window = Window(self.concurrency, busy=lambda: sharing.busy)
        try:
            await work_through((partial(self._begin, group, sharing, outlets) for group in self._open_groups()), window)
        finally:
            await sharing.close()

    def _open_groups(self) -> Iterator[list[Record]]:
        for group in self.groups:
            # What has no end would go on for ever; what has one gets a row for all that was asked for.
            if self._brake.pulled and self.total is None:
                break
            yield group

    def _begin(self, group: list[Record], sharing: Sharing, outlets: Outlets) -> Coroutine[Any, Any, None]:
        for record in group:
            self._note(record)
            outlets.record(record)
        return RecordRun(self.setup.plan, group, sharing, outlets.score).run()

    def _note(self, record: Record) -> None:
        self._count += 1
        self._variants.setdefault(record.variant)
        if model := reference_model(record):
            self._reference_models[model] += 1
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
            "interrupted": self._brake.pulled,
            "data_digest": self._digest.hexdigest(),
            "records": self._count,
            "variants": list(self._variants),
            "written_by": self.written_by,
            "reference_models": dict(sorted(self._reference_models.items())),
            "notes": self._notes,
        }
