"""From a metric's `ask(task)` to answers: every distinct task once per judge, panels that vote on their members' answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jurimetrics.engine.calls import Caller, Query
from jurimetrics.errors import FailureKind, ReplyError
from jurimetrics.frames import UseRow
from jurimetrics.judges.judge import Judge, JudgeError, Reply, TooLong
from jurimetrics.judges.panel import Panel
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.tasks.task import DoesNotFit, Split, Task, task_key

GRACE_S = 2.0
"""How long a metric may go on with its own business after an interrupt."""
STOPPING: tuple[FailureKind, ...] = ("budget", "cancelled")
"""Failures of the whole evaluation: another judge would meet them too."""
NARROWINGS = 8
"""How often one task is split anew because a part was too long for the model; more is an endpoint that refuses anything."""


class RowKey(NamedTuple):
    """The key of a row in the score frame."""

    id: str
    variant: str
    metric: str
    judge: str
    repeat: int


@dataclass
class Sharing:
    """All asks of one evaluation: what is under way is joined, what failed is not tried again."""

    caller: Caller
    extractors: tuple[Judge, ...]
    """Who splits claims for all, in order; () where each judge does so for itself."""
    embedder: Judge
    """Who turns texts into vectors, whoever asks."""
    on_use: Callable[[UseRow], None]
    stopping: bool = False
    _running: set[asyncio.Task[Any]] = field(default_factory=set)
    _given_up: set[asyncio.Task[Any]] = field(default_factory=set)
    _pending: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)
    _failures: dict[bytes, tuple[FailureKind, str, TooLong | None]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a metric's own code, which an interrupt gives `GRACE_S` seconds to end."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    def gave_up(self) -> bool:
        """Whether the running metric was cancelled by an interrupt; it is not asked to cancel any more then."""
        task = asyncio.current_task()
        if task is None or task not in self._given_up:
            return False
        self._given_up.discard(task)
        task.uncancel()
        return True

    def _give_up(self) -> None:
        self._given_up |= self._running
        for task in list(self._running):
            task.cancel()

    def stop(self) -> None:
        """End the evaluation: calls in flight are dropped, whoever asks from now on gets `cancelled`."""
        self.stopping = True
        asyncio.get_running_loop().call_later(GRACE_S, self._give_up)
        for future in list(self._pending.values()):
            future.cancel()

    async def close(self) -> None:
        """Leave nothing running: calls that nobody waits for any more are dropped."""
        pending = list(self._pending.values())
        for future in pending:
            future.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    @property
    def busy(self) -> bool:
        """Whether an answer is waited for."""
        return bool(self._pending)

    def answer(self, query: Query) -> asyncio.Future[Reply]:
        """The reply to a query: under way, failed before, from the store, or fresh."""
        pending = self._pending.get(query.key)
        if pending is not None:
            return pending
        failed = self._failures.get(_short(query.key))
        if failed is None and self.stopping:
            failed = ("cancelled", "interrupted", None)
        if failed is not None:
            kind, message, too_long = failed
            return _settled(JudgeError(kind, message, too_long=too_long))
        if query.judge.endpoint is not None:
            try:
                stored = self.caller.stored(query)
            except JudgeError as error:
                self._fail(query.key, error)
                return _settled(error)
            first = self._first(query.key)
            if stored is not None:
                if first:
                    self.caller.count_stored(query, stored)
                return _settled(stored)
        fresh = asyncio.get_running_loop().create_task(self.caller.call(query))
        self._pending[query.key] = fresh
        fresh.add_done_callback(lambda future: self._settle(query.key, future))
        return fresh

    async def wait_for(self, reply: asyncio.Future[Reply]) -> Reply:
        """The reply of an `answer`, which others may wait for too. Raises `JudgeError`, `cancelled` after an interrupt."""
        try:
            return await asyncio.shield(reply)
        except asyncio.CancelledError:
            if reply.cancelled() and self.stopping:
                raise JudgeError("cancelled", "interrupted") from None
            raise

    def _first(self, key: str) -> bool:
        # An answer taken from the store is counted once, and not at all where it was fresh in this evaluation; a part of
        # the hash keeps this small for many rows.
        short = int(key[:16], 16)
        if short in self._seen:
            return False
        self._seen.add(short)
        return True

    def _settle(self, key: str, future: asyncio.Future[Reply]) -> None:
        del self._pending[key]
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, JudgeError):
            self._fail(key, error)

    def _fail(self, key: str, error: JudgeError) -> None:
        # Not the error itself: its reply and its traceback would be held, with all that was in reach of them.
        self._failures[_short(key)] = (error.kind, error.message, error.too_long)


def _short(key: str) -> bytes:
    return bytes.fromhex(key[:32])


def _settled(outcome: Reply | JudgeError) -> asyncio.Future[Reply]:
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    if isinstance(outcome, JudgeError):
        future.set_exception(outcome)
        # Looked at once, so that a row which never waits for it leaves no warning behind.
        future.exception()
    else:
        future.set_result(outcome)
    return future


@dataclass
class Scope:
    """The asks about one record (or about the variants of one id): answers are kept while it is worked on."""

    sharing: Sharing
    _keys: dict[Task[Any], str] = field(default_factory=dict)
    _splits: dict[tuple[Task[Any], int | None], Split] = field(default_factory=dict)
    _extractors: dict[Task[Any], Sequence[Judge]] = field(default_factory=dict)
    _queries: dict[tuple[Task[Any], str, int], Query] = field(default_factory=dict)
    _answers: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)
    _used: set[tuple[str, RowKey]] = field(default_factory=set)

    async def ask(self, judge: Judge, task: Task[Any], repeat: int, users: Sequence[RowKey]) -> Any:
        """A judge's answer to a task, asked in parts where it is long and joined again. Raises `JudgeError`, `DoesNotFit`.

        Where the endpoint says that a part is too long for its model, the parts become shorter.
        """
        for _ in range(NARROWINGS):
            try:
                return await self._asked(self._split(task, judge, repeat), judge, repeat, users)
            except JudgeError as error:
                if error.too_long is None:
                    raise
                failed = error
        raise failed

    async def _asked(self, split: Split, judge: Judge, repeat: int, users: Sequence[RowKey]) -> Any:
        if len(split.parts) == 1:
            return _joined(split, [await self._part(judge, split.parts[0], repeat, users)])
        parts = [self._part(judge, part, repeat, users) for part in split.parts]
        answers = await asyncio.gather(*parts, return_exceptions=True)
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        if failed:
            # What is more than a part too long would be so in shorter parts, too.
            raise next((error for error in failed if getattr(error, "too_long", None) is None), failed[0])
        return _joined(split, answers)

    async def _part(self, judge: Judge, task: Task[Any], repeat: int, users: Sequence[RowKey]) -> Any:
        query = self._query(judge, task, 0 if judge.endpoint is None else repeat)
        if judge.endpoint is not None:
            self._use(query.key, users)
        reply = self._answers.get(query.key)
        if reply is None:
            reply = self._answers[query.key] = self.sharing.answer(query)
        return (await self.sharing.wait_for(reply)).answer

    def _query(self, judge: Judge, task: Task[Any], repeat: int) -> Query:
        query = self._queries.get((task, judge.name, repeat))
        if query is None:
            key = self._keys.get(task)
            if key is None:
                key = self._keys[task] = task_key(task)
            query = self._queries[task, judge.name, repeat] = self.sharing.caller.query(judge, task, key, repeat)
        return query

    def _use(self, ask: str, users: Sequence[RowKey]) -> None:
        for user in users:
            if (ask, user) not in self._used:
                self._used.add((ask, user))
                self.sharing.on_use(UseRow(ask, *user))

    async def extract(self, task: Task[Any], users: Sequence[RowKey], own: Judge) -> tuple[Any, str]:
        """The answer of the extractor that all judges share, and its name; `own` where each has its own."""
        candidates = self.sharing.extractors
        if not candidates:
            return await self.ask(own, task, 0, users), own.name
        failed: JudgeError | DoesNotFit | None = None
        for judge in self._in_turn(task, candidates):
            try:
                return await self.ask(judge, task, 0, users), judge.name
            except (JudgeError, DoesNotFit) as error:
                if isinstance(error, JudgeError) and error.kind in STOPPING:
                    raise
                failed = failed or error
        assert failed is not None
        raise failed

    def _in_turn(self, task: Task[Any], candidates: Sequence[Judge]) -> Sequence[Judge]:
        """The extractors, those first whose answer is in the store; found once for all the metrics of a record."""
        found = self._extractors.get(task)
        if found is None:
            stored = [judge for judge in candidates if self._is_stored(judge, task)]
            found = self._extractors[task] = [*stored, *(judge for judge in candidates if judge not in stored)]
        return found

    def _split(self, task: Task[Any], judge: Judge, repeat: int) -> Split:
        """The parts to ask: by the tightest limit, or as they were answered before that was known. Raises `DoesNotFit`."""
        *before, last = self.sharing.caller.limits(judge)
        for limit in before:
            try:
                split = self._split_by(task, limit)
            except DoesNotFit:
                continue
            if all(self._holds(judge, part, repeat) for part in split.parts):
                return split
        return self._split_by(task, last)

    def _split_by(self, task: Task[Any], limit: int | None) -> Split:
        split = self._splits.get((task, limit))
        if split is None:
            split = self._splits[task, limit] = task.split(limit)
        return split

    def _holds(self, judge: Judge, part: Task[Any], repeat: int) -> bool:
        return judge.endpoint is not None and self.sharing.caller.store.holds(self._query(judge, part, repeat).key)

    async def embed(self, task: EmbedTexts, users: Sequence[RowKey]) -> Any:
        """The vectors of texts: no judge has them, so repeats and members share them."""
        return await self.ask(self.sharing.embedder, task, 0, users)

    def _is_stored(self, judge: Judge, task: Task[Any]) -> bool:
        try:
            parts = self._split(task, judge, 0).parts
        except DoesNotFit:
            return False
        return all(self._holds(judge, part, 0) for part in parts)


@dataclass
class ComputedAsk:
    """What a metric asks with that is declared `judged=False`: texts are embedded, and no judge is asked."""

    scope: Scope
    metric: str
    users: Sequence[RowKey]

    async def __call__(self, task: Task[Any]) -> Any:
        if not isinstance(task, EmbedTexts):
            raise TypeError(f"{self.metric} is declared judged=False, so it cannot ask a judge")
        return await self.scope.embed(task, self.users)


def _joined(split: Split, answers: Sequence[Any]) -> Any:
    try:
        return split.join(answers)
    except ReplyError as error:
        raise JudgeError(error.kind, error.fault) from None


@dataclass
class MemberAsk:
    """What a metric asks with when one judge answers; gathers flags and who extracted the claims."""

    scope: Scope
    judge: Judge
    repeat: int
    users: Sequence[RowKey]
    flags: set[str] = field(default_factory=set)
    extractor: str | None = None

    async def __call__(self, task: Task[Any]) -> Any:
        if isinstance(task, EmbedTexts):
            return await self.scope.embed(task, self.users)
        if task.shared:
            answer, self.extractor = await self.scope.extract(task, self.users, self.judge)
        else:
            answer = await self.scope.ask(self.judge, task, self.repeat, self.users)
        self.flags.update(getattr(answer, "flags", ()))
        return answer


@dataclass
class PanelAsk:
    """What a metric asks with when a panel answers: the members' answers to the same task, and a vote on them.

    `users` gives the row of each member: should the panel need an answer that its member did not need itself, the call
    is that member's.
    """

    scope: Scope
    panel: Panel
    repeat: int
    users: Callable[[Judge], Sequence[RowKey]]
    flags: set[str] = field(default_factory=set)
    extractor: str | None = None
    disagreements: list[float] = field(default_factory=list)
    ballots: list[Mapping[str, Any]] = field(default_factory=list)

    async def __call__(self, task: Task[Any]) -> Any:
        first = self.panel.judges[0]
        if isinstance(task, EmbedTexts):
            return await self.scope.embed(task, self.users(first))
        if task.shared:
            answer, self.extractor = await self.scope.extract(task, self.users(first), first)
            self.flags.update(getattr(answer, "flags", ()))
            return answer
        gathered = await asyncio.gather(*(self._member(judge, task) for judge in self.panel.judges))
        replies = dict(zip((judge.name for judge in self.panel.judges), gathered, strict=True))
        answers = {name: None if isinstance(reply, JudgeError) else reply for name, reply in replies.items()}
        self._check_quorum(task, replies)
        vote = task.vote(answers, self.panel.voting)
        self.flags.update(vote.flags, getattr(vote.answer, "flags", ()))
        if any(isinstance(reply, JudgeError) for reply in replies.values()):
            self.flags.add("member_failed")
        if vote.disagreement is not None:
            self.disagreements.append(vote.disagreement)
        self.ballots.append({"kind": task.kind, "votes": [dict(ballot) for ballot in vote.ballots]})
        return vote.answer

    async def _member(self, judge: Judge, task: Task[Any]) -> Any:
        try:
            return await self.scope.ask(judge, task, self.repeat, self.users(judge))
        except DoesNotFit as error:
            return JudgeError("rejected", f"does not fit: {error}")
        except JudgeError as error:
            if error.kind in STOPPING:
                raise
            return error

    def _check_quorum(self, task: Task[Any], replies: Mapping[str, Any]) -> None:
        failed = {name: reply for name, reply in replies.items() if isinstance(reply, JudgeError)}
        answered = len(replies) - len(failed)
        if answered < self.panel.needed:
            why = "; ".join(f"{name} {error}" for name, error in failed.items())
            raise JudgeError(
                "quorum",
                f"{answered} of {len(replies)} judges answered {task.kind}, {self.panel.needed} needed ({why})",
            )
