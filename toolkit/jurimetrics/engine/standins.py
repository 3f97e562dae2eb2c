"""Answers that cost nothing in place of a judge's, so that what would be asked can be counted before it is.

The engine runs as it always does (shared, split, stored, voted on); only the one place that would send a request is
replaced: it notes the request and answers with the baseline's reply, or with a placeholder where the baseline has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jurimetrics.engine.calls import Caller, Query
from jurimetrics.engine.planned import SPANS, Span
from jurimetrics.engine.store import Store
from jurimetrics.judges.baseline import BaselineJudge
from jurimetrics.judges.judge import Judge, JudgeError, Reply, Request, Trace, Usage
from jurimetrics.metrics.prompts import stand_in
from jurimetrics.tasks.criteria import Ratings
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.tasks.task import Items, Task
from jurimetrics.tasks.write import WriteAnswer

ASCII_BYTES = (5.0, 3.0)
"""Bytes to a token of ASCII text, at most and at least. Measured with a small English vocabulary: 3.9 for the
instructions, 4.2 for English documents; larger ones reach 4.7."""
OTHER_BYTES = (8.0, 1.3)
"""The same for all other text: from Cyrillic in a large vocabulary to scripts that a small one spells byte by byte (1.6
measured)."""
SCHEMA_BYTES = 2.5
"""Bytes to a token of a reply schema, at least; some endpoints count it as a part of the prompt, some do not."""
AROUND_MESSAGE = 8
"""Tokens that a chat template adds to a message, at most."""
REPLY_BYTES = (7.0, 2.0)
"""Bytes of the stand-in reply to a token of the judge's, at most and at least: it may be more or less verbose."""
PLACEHOLDER_TOKENS = (20.0, 120.0)
"""Completion tokens of one item where there is no reply to measure."""
WRITTEN_TOKENS = (20.0, 800.0)
"""Completion tokens of a written answer of which nothing is known and no limit declared: a sentence to a page and a half."""
SEEN, ENOUGH = 1000, 5
"""How many stored answers of a judge are looked at to learn its habits, and how many of a kind say something."""


@dataclass(frozen=True, slots=True)
class Habit:
    """What a judge's stored answers of one kind took on average: completion tokens (None: not counted), seconds."""

    completion: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Expected:
    """One request that would be sent; `usd` is None where no price is known."""

    judge: str
    prompt: Span
    completion: Span
    usd: Span | None
    seconds: Span


@dataclass(frozen=True, slots=True)
class Kept:
    """One answer that the store already has; `usd` is what it was paid, None where that is not known."""

    judge: str
    usd: float | None


@dataclass
class StandIns(Caller):
    """Answers in place of judges and notes what would be sent, by ask. It never sends and never writes to the store."""

    habits: Mapping[tuple[str, str], Habit] = field(default_factory=dict)
    expected: dict[str, Expected] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    failed_before: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    """Kinds of tasks that nothing can stand in for: what a metric would ask after one is not known."""
    _replies: dict[str, Reply | None] = field(default_factory=dict)
    _prompts: dict[str, Span] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop the replies of the records that are done with."""
        self._replies.clear()
        self._prompts.clear()

    def stored(self, query: Query) -> Reply | None:
        """As in an evaluation, which would not ask again what failed for good."""
        try:
            return super().stored(query)
        except JudgeError:
            self.failed_before.add(query.key)
            raise

    def count_stored(self, query: Query, reply: Reply) -> None:
        """Note an answer that would be taken from the store."""
        self.kept[query.key] = Kept(query.judge.name, reply.trace.cost_usd)

    async def call(self, query: Query) -> Reply:
        """The stand-in's reply. Raises `JudgeError` of kind `unsupported` where there is none."""
        if query.task_key not in self._replies:
            self._replies[query.task_key] = await _answered(query.task)
        reply = self._replies[query.task_key]
        if query.judge.endpoint is not None:
            self.expected[query.key] = self.expect(query, reply)
        if reply is None:
            self.unanswered.add(query.task.kind)
            raise JudgeError("unsupported", f"nothing stands in for tasks of kind {query.task.kind}")
        return reply

    def told(self, ask: str) -> tuple[str, dict[str, float]]:
        """Who is asked and what a plan's columns say of one ask; {} where nothing would be sent and nothing is stored."""
        expected, kept = self.expected.get(ask), self.kept.get(ask)
        if expected is not None:
            usd = expected.usd or Span(math.nan, math.nan)
            spans = zip(SPANS, (expected.prompt, expected.completion, usd, expected.seconds), strict=True)
            ends = {f"{name}_{end}": value for name, span in spans for end, value in span._asdict().items()}
            return expected.judge, {"calls": 1.0, **ends}
        if kept is not None:
            return kept.judge, {"stored": 1.0, "saved_usd": kept.usd or 0.0}
        return "", {}

    def expect(self, query: Query, reply: Reply | None) -> Expected:
        """What one request would take, where `reply` stands in for its reply."""
        judge, habit = query.judge, self.habits.get((query.judge.reply_key, query.task.kind))
        prompt = self._prompts.get(query.task_key)
        if prompt is None:
            prompt = self._prompts[query.task_key] = prompt_tokens(query.task, self.reason_language)
        completion = _completion(query.task, reply, habit, getattr(judge, "max_tokens", None))
        return Expected(judge.name, prompt, completion, _cost(judge, prompt, completion), _seconds(completion, habit))


async def _answered(task: Task[Any]) -> Reply | None:
    if isinstance(task, EmbedTexts):
        import numpy as np

        # All in one direction: no metric asks anything after it has its vectors.
        return Reply(np.ones((len(task.texts), 1)), None, Trace())
    try:
        return await BaselineJudge().attempt(Request(task), None)  # type: ignore[arg-type] # it sends nothing
    except JudgeError:
        # It has no rules for this kind or language; what has the right shape serves as well, as nobody sees it.
        try:
            return Reply(stand_in(task), None, Trace())
        except TypeError:
            return None


def prompt_tokens(task: Task[Any], reason_language: str | None = None) -> Span:
    """The tokens of a task's messages, by bytes; at most with the reply schema, which some endpoints count too.

    >>> from jurimetrics.tasks.embed import EmbedTexts
    >>> prompt_tokens(EmbedTexts(("x" * 300, "y" * 300)))
    Span(low=120.0, high=200.0)
    """
    if isinstance(task, EmbedTexts):
        return _tokens(task.sent)
    messages = task.messages(reason_language)
    span = _tokens([message["content"] for message in messages])
    schema = len(json.dumps(task.schema)) / SCHEMA_BYTES
    return Span(span.low, span.high + schema + AROUND_MESSAGE * len(messages))


def _tokens(texts: Iterable[str]) -> Span:
    low = high = 0.0
    for text in texts:
        size = len(text.encode("utf-8", "surrogatepass"))
        ascii_ = size if size == len(text) else sum(map(str.isascii, text))
        low += ascii_ / ASCII_BYTES[0] + (size - ascii_) / OTHER_BYTES[0]
        high += ascii_ / ASCII_BYTES[1] + (size - ascii_) / OTHER_BYTES[1]
    return Span(low, high)


def _completion(task: Task[Any], reply: Reply | None, habit: Habit | None, limit: int | None) -> Span:
    if isinstance(task, EmbedTexts):
        return Span(0.0, 0.0)
    if habit is not None and habit.completion is not None:
        span = Span(0.8 * habit.completion, 1.25 * habit.completion)
    elif isinstance(task, WriteAnswer):
        span = Span(WRITTEN_TOKENS[0], WRITTEN_TOKENS[1] if limit is None else limit)
    elif reply is not None and reply.data is not None:
        size = len(json.dumps(reply.data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        span = Span(size / REPLY_BYTES[0], size / REPLY_BYTES[1])
    else:
        answer = None if reply is None else reply.answer
        parts = answer.entries if isinstance(answer, Ratings) else answer if isinstance(answer, Items) else ()
        span = Span(*PLACEHOLDER_TOKENS).times(max(1, len(parts)))
    return span if limit is None else Span(min(span.low, limit), min(span.high, limit))


def _cost(judge: Judge, prompt: Span, completion: Span) -> Span | None:
    ends = []
    for tokens, written in zip(prompt, completion, strict=True):
        cost = judge.cost(Usage(round(tokens), round(written)), None, datetime.now(UTC))
        if cost is None:
            return None
        ends.append(cost)
    return Span(*ends)


def _seconds(completion: Span, habit: Habit | None) -> Span:
    """Learned where there is something to learn from; else assumed: 200 to 40 tokens a second after 0.3 to 2 s."""
    if habit is not None:
        return Span(0.7 * habit.seconds, 1.5 * habit.seconds)
    return Span(0.3 + completion.low / 200, 2.0 + completion.high / 40)


def learned_habits(store: Store, judges: Iterable[Judge]) -> dict[tuple[str, str], Habit]:
    """What the answers in a store show of judges, by reply key and kind of task; {} where it holds too few.

    >>> learned_habits(Store(None), [])
    {}
    """
    habits: dict[tuple[str, str], Habit] = {}
    for judge in judges:
        found: dict[str, list[Trace]] = {}
        for kind, trace in store.traces(judge.reply_key, SEEN):
            found.setdefault(kind, []).append(trace)
        habits |= {(judge.reply_key, kind): _habit(traces) for kind, traces in found.items() if len(traces) >= ENOUGH}
    return habits


def _habit(traces: list[Trace]) -> Habit:
    counted = [trace.usage.completion for trace in traces if trace.usage.completion is not None]
    seconds = sum(trace.latency_s for trace in traces) / len(traces)
    return Habit(sum(counted) / len(counted) if counted else None, seconds)
