"""The only loop around a judge: places, tries, waiting, money, the store, and a row for every request."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from jurimetrics.engine.budget import Budget
from jurimetrics.engine.limits import Limiter
from jurimetrics.engine.store import FINAL_KINDS, Store
from jurimetrics.errors import InputError
from jurimetrics.frames import CallRow
from jurimetrics.judges.judge import Judge, JudgeError, Reply, Request, Trace, standing_reply
from jurimetrics.judges.session import Endpoint, Session
from jurimetrics.tasks.task import Task

LIMITED_TRIES = 25
"""Tries of one call that the endpoint keeps refusing for speed; each waits, so this is minutes, not a flood."""
AMENDMENTS = 12
"""Amended requests for one call: formats, parameters, one re-ask, more room. More than that is a loop."""
OPENING_S = 10.0
"""How long further calls wait for the first one of an endpoint, which finds out what it supports."""


class EndpointError(InputError):
    """An endpoint cannot be used at all: nobody listens, the key is wrong, the model is not there.

    >>> raise EndpointError("judge 'a' at http://127.0.0.1:9: nobody listens there")
    Traceback (most recent call last):
    jurimetrics.engine.calls.EndpointError: judge 'a' at http://127.0.0.1:9: nobody listens there
    """


@dataclass(frozen=True, slots=True)
class Query:
    """One undivided task for one judge: what is looked up, asked, kept and counted under one key."""

    judge: Judge
    task: Task[Any]
    task_key: str
    repeat: int
    key: str


@dataclass
class Opening:
    """The first call to a model of an endpoint goes alone: what it learns spares all others a refused request."""

    begun: bool = False
    dead: EndpointError | None = None
    open: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Caller:
    """Asks one judge one task until there is an answer or a final failure. One for each evaluation."""

    session: Session
    store: Store
    budget: Budget
    concurrency: int
    retries: int
    reason_language: str | None
    retry_failed: bool
    on_call: Callable[[CallRow], None]
    places: dict[str, int]
    _limiters: dict[str, Limiter] = field(default_factory=dict)
    _openings: dict[tuple[str, str], Opening] = field(default_factory=dict)

    def query(self, judge: Judge, task: Task[Any], task_key: str, repeat: int) -> Query:
        """A query under its key: the task, all of the judge that can change a reply, the repeat."""
        parts = (task_key, judge.reply_key, self.reason_language or "", str(repeat))
        return Query(judge, task, task_key, repeat, hashlib.sha256("\0".join(parts).encode()).hexdigest())

    def stored(self, query: Query) -> Reply | None:
        """The answer in the store, or None. Raises the `JudgeError` of a final failure that is kept there."""
        kept = self.store.answer(query.key)
        if kept is None:
            failure = None if self.retry_failed else self.store.failure(query.key)
            if failure is not None:
                raise failure
            return None
        return Reply(query.task.read(kept.data), kept.data, kept.trace)

    def count_stored(self, query: Query, reply: Reply) -> None:
        """A row in the call frame for an answer taken from the store."""
        self._row(query, reply.trace, attempt=0, from_store=True)

    async def call(self, query: Query) -> Reply:
        """A fresh answer. Raises `JudgeError` (final) or `EndpointError` (the endpoint cannot be used at all)."""
        judge, endpoint = query.judge, query.judge.endpoint
        if endpoint is None:
            return await judge.attempt(Request(query.task, query.repeat, self.reason_language), self.session)
        opening = self._openings.setdefault((endpoint.key, judge.reply_key), Opening())
        first = not opening.begun
        opening.begun = True
        if not first:
            await self._wait_open(opening)
            if opening.dead is not None:
                raise opening.dead
        try:
            reply = await self._tries(query, endpoint)
        except JudgeError as error:
            if first and error.fatal:
                opening.dead = EndpointError(f"judge {judge.name!r}: {error.message}")
                raise opening.dead from None
            if error.kind in FINAL_KINDS and not error.fatal:
                self.store.keep_failure(query.key, judge.name, query.task.kind, error)
            raise
        finally:
            opening.open.set()
        if not getattr(reply.answer, "complete", True):
            # What a batched reply lacks even after the re-ask fails alone, and is asked again another time.
            return reply
        self.store.keep(
            query.key,
            judge_key=judge.reply_key,
            judge=judge.name,
            kind=query.task.kind,
            data=reply.data,
            trace=reply.trace,
        )
        return reply

    @staticmethod
    async def _wait_open(opening: Opening) -> None:
        try:
            await asyncio.wait_for(opening.open.wait(), OPENING_S)
        except TimeoutError:
            opening.open.set()

    async def _tries(self, query: Query, endpoint: Endpoint) -> Reply:
        request = Request(query.task, query.repeat, self.reason_language)
        attempt = failed = limited = amended = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(query, endpoint, request, attempt)
            except JudgeError as error:
                if isinstance(error.retry, Request):
                    amended += 1
                    if amended > AMENDMENTS:
                        raise replace(error, retry="no") from None
                    request = error.retry
                    continue
                failed += not error.limited
                limited += error.limited
                # A call that nobody takes is told soon; a crowded endpoint is given time.
                tries = min(self.retries, 2) if error.fatal else self.retries
                if error.retry == "no" or failed > tries or limited > max(self.retries, LIMITED_TRIES):
                    # The answer before a re-ask stands, if it could be used: it is paid.
                    standing = standing_reply(request)
                    if standing is None:
                        raise
                    return Reply(*standing, error.trace)
                await Limiter.wait(failed + limited, error.after_s)

    async def _attempt(self, query: Query, endpoint: Endpoint, request: Request, attempt: int) -> Reply:
        limiter = self._limiters.get(endpoint.key)
        if limiter is None:
            limiter = self._limiters[endpoint.key] = Limiter(self.places.get(endpoint.key, self.concurrency))
        async with limiter.place():
            reached = self.budget.spent_out()
            if reached is not None:
                raise JudgeError("budget", reached)
            self.budget.start_call()
            try:
                reply = await query.judge.attempt(request, self.session)
            except JudgeError as error:
                self.budget.spend(error.trace)
                limiter.answered(error.limited)
                self._row(query, error.trace, attempt=attempt, error=error)
                raise
        self.budget.spend(reply.trace)
        limiter.answered(False)
        self._row(query, reply.trace, attempt=attempt)
        return reply

    def _row(
        self, query: Query, trace: Trace, *, attempt: int, error: JudgeError | None = None, from_store: bool = False
    ) -> None:
        usage = trace.usage
        self.on_call(
            CallRow(
                ask=query.key,
                judge=query.judge.name,
                kind=query.task.kind,
                task_key=query.task_key,
                repeat=query.repeat,
                attempt=attempt,
                status="ok" if error is None else error.kind,
                error="" if error is None else error.message,
                model=getattr(query.judge, "model", query.judge.name),
                model_returned=trace.model,
                fingerprint=trace.fingerprint,
                prompt_tokens=usage.prompt,
                cached_prompt_tokens=usage.cached,
                completion_tokens=usage.completion,
                reasoning_tokens=usage.reasoning,
                cost_usd=0.0 if from_store else trace.cost_usd,
                saved_usd=trace.cost_usd if from_store else None,
                latency_s=0.0 if from_store else trace.latency_s,
                finish_reason=trace.finish_reason,
                format=trace.format,
                refused_parameters=trace.refused_parameters,
                from_store=from_store,
                at=datetime.now(UTC),
            )
        )
