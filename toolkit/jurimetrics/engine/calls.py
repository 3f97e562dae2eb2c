"""The only loop around a judge: places, tries, waiting, money, the store, and a row for every request."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from jurimetrics.engine.alike import Streak
from jurimetrics.engine.budget import Budget
from jurimetrics.engine.limits import LONGEST_CALL_S, Limiter, PerMinute, Started, TooLate
from jurimetrics.engine.store import FINAL_KINDS, Store
from jurimetrics.errors import InputError, ReplyError
from jurimetrics.frames import CallRow
from jurimetrics.judges.judge import Judge, JudgeError, Reply, Request, TooLong, Trace, standing_reply
from jurimetrics.judges.session import Endpoint, Session
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.task import Task
from jurimetrics.tasks.write import WriteAnswer
from jurimetrics.text import estimate_tokens

LIMITED_TRIES = 25
"""Tries of one call that the endpoint keeps refusing for speed; each waits, so this is minutes, not a flood."""
GARBLED_TRIES = 3
"""Further tries after a re-ask that brought something unreadable from a judge whose replies can mostly be read: it is an
accident on the way then. Any other judge is asked again once and no more."""
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
class Tries:
    """How often one call was tried and why; `until` is the moment of the loop's clock after which it is given up."""

    request: Request
    attempt: int = 0
    failed: int = 0
    limited: int = 0
    amended: int = 0
    garbled: int = 0
    until: float | None = None
    last: JudgeError | None = None


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
    per_minute: Mapping[str, PerMinute] = field(default_factory=dict)
    on_ended: Callable[[Judge, JudgeError], None] | None = None
    """Told, once for each streak, that a judge is not asked any more because its last calls failed alike."""
    _limiters: dict[str, Limiter] = field(default_factory=dict)
    _openings: dict[tuple[str, str], Opening] = field(default_factory=dict)
    _streaks: dict[tuple[str, ...], Streak] = field(default_factory=dict)

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
        try:
            return Reply(query.task.read(kept.data), kept.data, kept.trace)
        except ReplyError as error:
            self.store.refuse(query.key, error.fault)
            return None

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
            outcome = await self._tries(query, endpoint)
        finally:
            opening.open.set()
        if isinstance(outcome, JudgeError) and outcome.too_long is not None:
            # Not counted against the judge: what is asked next is shorter, where it can be asked in parts.
            if isinstance(query.task, WriteAnswer):
                self.store.keep_failure(query.key, judge.name, query.task.kind, outcome)
            else:
                self._narrow(query, endpoint, outcome.too_long)
            raise outcome
        self._count_alike(query, endpoint, outcome)
        if isinstance(outcome, JudgeError):
            if first and outcome.fatal:
                opening.dead = EndpointError(f"judge {judge.name!r}: {outcome.message}")
                raise opening.dead
            if outcome.kind in FINAL_KINDS and not outcome.fatal:
                self.store.keep_failure(query.key, judge.name, query.task.kind, outcome)
            raise outcome
        if not getattr(outcome.answer, "complete", True):
            # What a batched reply lacks even after the re-ask fails alone, and is asked again another time.
            return outcome
        self.store.keep(
            query.key,
            judge_key=judge.reply_key,
            judge=judge.name,
            kind=query.task.kind,
            data=outcome.data,
            trace=outcome.trace,
        )
        return outcome

    @staticmethod
    async def _wait_open(opening: Opening) -> None:
        try:
            await asyncio.wait_for(opening.open.wait(), OPENING_S)
        except TimeoutError:
            opening.open.set()

    # --- what fits into a prompt ---

    def limits(self, judge: Judge) -> tuple[int | None, ...]:
        """What a prompt may take, in estimated tokens: as declared (None: no limit), then as the endpoint taught, falling."""
        if judge.endpoint is None:
            return (judge.max_input_tokens,)
        declared = judge.max_input_tokens
        learned = self.session.learned_of(judge.endpoint, _model(judge)).narrowed
        return (declared, *(limit for limit in learned if declared is None or limit < declared))

    def _narrow(self, query: Query, endpoint: Endpoint, told: TooLong) -> None:
        limit = told.fitting(message_tokens(query.task.messages()))
        known = self.session.learned_of(endpoint, _model(query.judge)).narrowed
        if not known or limit < known[-1]:
            self.session.learn(endpoint, _model(query.judge), narrowed=(*known, limit))

    def _check_fits(self, query: Query) -> None:
        """Raise the `JudgeError` of a prompt that became too long for what was learned while it waited for its place."""
        limit = self.limits(query.judge)[-1]
        whole = isinstance(query.task, EmbedTexts | WriteAnswer)
        if limit != query.judge.max_input_tokens and limit is not None and not whole:
            taken = message_tokens(query.task.messages())
            if taken > limit:
                raise JudgeError(
                    "rejected", f"about {taken} tokens do not fit the model, {limit} would", too_long=TooLong()
                )

    # --- tries of one call ---

    async def _tries(self, query: Query, endpoint: Endpoint) -> Reply | JudgeError:
        """What came of a call after all its tries. Raises the `JudgeError` of a call that was not asked at all."""
        limiter = self._limiter(endpoint)
        tries = Tries(Request(query.task, query.repeat, self.reason_language))
        while True:
            try:
                async with limiter.place(self._tokens(limiter, query), until=tries.until) as started:
                    self._check_open(query, endpoint)
                    if not tries.attempt:
                        self._check_fits(query)
                    if tries.until is None:
                        tries.until = started.begun + LONGEST_CALL_S
                    outcome = await self._attempt(query, limiter, started, tries)
            except TooLate:
                assert tries.last is not None
                return _standing(tries, tries.last)
            except JudgeError as not_asked:
                standing = _standing(tries, not_asked)
                if standing is not_asked:
                    raise
                return standing
            if isinstance(outcome, Reply):
                self._streaks_of(query, endpoint)[1].read += 1
                return outcome
            tries.last = outcome
            if self._is_accident(query, endpoint, tries, outcome):
                continue
            if not await self._goes_on(tries, outcome):
                return _standing(tries, replace(outcome, retry="no"))

    async def _goes_on(self, tries: Tries, error: JudgeError) -> bool:
        """Whether there is another try, after the wait that it needs."""
        if isinstance(error.retry, Request):
            tries.amended += 1
            tries.request = error.retry
            return tries.amended <= AMENDMENTS
        tries.failed += not error.limited
        tries.limited += error.limited
        # A call that nobody takes is told soon; a crowded endpoint is given time.
        most = min(self.retries, 2) if error.fatal else self.retries
        if error.retry == "no" or tries.failed > most or tries.limited > max(self.retries, LIMITED_TRIES):
            return False
        assert tries.until is not None
        return await Limiter.wait(tries.failed + tries.limited, error.after_s, tries.until)

    def _is_accident(self, query: Query, endpoint: Endpoint, tries: Tries, error: JudgeError) -> bool:
        """Whether a reply is unreadable that the same request would hardly bring again."""
        if error.kind != "unparsed":
            return False
        _, own = self._streaks_of(query, endpoint)
        own.unread += 1
        if error.retry != "no" or tries.garbled >= GARBLED_TRIES or not own.mostly_read:
            return False
        tries.garbled += 1
        return True

    def _check_open(self, query: Query, endpoint: Endpoint) -> None:
        """Raise the `JudgeError` of a call that must not be sent any more."""
        reached = self.budget.spent_out()
        if reached is not None:
            raise JudgeError("budget", reached)
        for streak in self._streaks_of(query, endpoint):
            ended = streak.ended()
            if ended is not None:
                raise ended

    async def _attempt(self, query: Query, limiter: Limiter, started: Started, tries: Tries) -> Reply | JudgeError:
        """One request, counted and paid for, whatever comes of it."""
        tries.attempt += 1
        self.budget.start_call()
        try:
            outcome: Reply | JudgeError = await query.judge.attempt(tries.request, self.session)
        except JudgeError as error:
            outcome = error
        except SystemExit as error:
            # A judge of the user's may call what calls sys.exit(); that must not take the event loop along.
            outcome = JudgeError("crash", f"SystemExit: {error}")
        failed = isinstance(outcome, JudgeError)
        trace = outcome.trace
        self.budget.spend(trace)
        headroom = trace.headroom
        if isinstance(outcome, JudgeError) and outcome.kind == "rate_limited" and not headroom.crowded:
            headroom = replace(headroom, crowded=True)
        limiter.answered(started, not failed, headroom, query.judge.reply_key, trace.usage)
        self._row(query, trace, attempt=tries.attempt, error=outcome if isinstance(outcome, JudgeError) else None)
        return outcome

    def _limiter(self, endpoint: Endpoint) -> Limiter:
        limiter = self._limiters.get(endpoint.key)
        if limiter is None:
            places = self.places.get(endpoint.key, self.concurrency)
            limiter = self._limiters[endpoint.key] = Limiter(places, self.per_minute.get(endpoint.key))
        return limiter

    def _tokens(self, limiter: Limiter, query: Query) -> float:
        """The tokens that a request is reckoned with; 0 where the endpoint declares no limit on them."""
        if not limiter.counts_tokens:
            return 0.0
        task = query.task
        if isinstance(task, EmbedTexts):
            return float(sum(map(estimate_tokens, task.sent)))
        prompt = sum(estimate_tokens(message["content"]) for message in task.messages(self.reason_language))
        return limiter.estimate(query.judge.reply_key, prompt)

    # --- failures that are all alike ---

    def _streaks_of(self, query: Query, endpoint: Endpoint) -> tuple[Streak, Streak]:
        """The streaks of a judge as a whole, and of the question put to it: the prompt itself may be at fault."""
        judge = (endpoint.key, query.judge.reply_key)
        question = (*judge, query.task.kind, str(getattr(query.task, "criterion", "")))
        whole, own = (self._streaks.get(key) for key in (judge, question))
        if whole is None:
            whole = self._streaks[judge] = Streak()
        if own is None:
            own = self._streaks[question] = Streak()
        return whole, own

    def _count_alike(self, query: Query, endpoint: Endpoint, outcome: Reply | JudgeError) -> None:
        whole, own = self._streaks_of(query, endpoint)
        if isinstance(outcome, Reply):
            whole.answered()
            own.answered()
            return
        # What every request must meet ends all questions at once, anything else the question that met it.
        streak = whole if outcome.fatal else own
        before = streak.ended()
        streak.failed(outcome)
        ended = streak.ended()
        if before is None and ended is not None and self.on_ended is not None:
            self.on_ended(query.judge, ended)

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
                model=_model(query.judge),
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


def _model(judge: Judge) -> str:
    return str(getattr(judge, "model", judge.name))


def _standing(tries: Tries, error: JudgeError) -> Reply | JudgeError:
    """The answer before a re-ask, where that could be used: it is paid; else the error."""
    standing = standing_reply(tries.request)
    return error if standing is None else Reply(*standing, (tries.last or error).trace)
