"""What every task has in common: the protocol, the answers, splitting and the key under which answers are stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, overload

A = TypeVar("A")
T_co = TypeVar("T_co", covariant=True)
Message = dict[str, str]

ITEMS_PER_CALL = 10
"""Items (sentences, claims, documents) that one call asks about; longer lists go out in chunks.

Ten is the size from which published batches begin to lose accuracy (arXiv 2301.08721, 2309.00384)."""


@dataclass(frozen=True)
class Items(Sequence[T_co], Generic[T_co]):
    """The answer to a task over numbered items: one item each, in order, with what was noticed while reading.

    `flags` are short words that end in the row, e.g. `quote_not_found` or `dropped:2`.

    >>> answer = Items(("a", "b"), flags=("dropped:1",))
    >>> len(answer), list(answer), bool(Items(()))
    (2, ['a', 'b'], False)
    """

    items: tuple[T_co, ...]
    flags: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    @overload
    def __getitem__(self, at: int) -> T_co: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, at: int | slice) -> T_co | tuple[T_co, ...]:
        return self.items[at]


@dataclass(frozen=True)
class Vote(Generic[A]):
    """What a panel makes of its members' answers to one task.

    `answer` is of the same type as a single judge's answer. `disagreement` is at least 0: for labels the mean entropy
    in bits over the items, for numbers the mean spread (largest minus smallest, in the unit of the rating); None where
    there is nothing to disagree on. `ballots` says who said what: per item a mapping of judge name to label or number,
    None for a judge that failed.
    """

    answer: A
    disagreement: float | None
    ballots: tuple[Mapping[str, Any], ...] = ()
    flags: tuple[str, ...] = ()


class Split(NamedTuple):
    """A task as the parts that are really asked, and how their answers become one again."""

    parts: tuple[Task[Any], ...]
    join: Callable[[Sequence[Any]], Any]


class DoesNotFit(Exception):  # noqa: N818 - not an error: the judge cannot be asked this
    """What must be shown to a judge at once is more than its input holds, and splitting the evidence cannot help.

    >>> raise DoesNotFit("the answer alone takes about 900 tokens, 500 are allowed")
    Traceback (most recent call last):
    jurimetrics.tasks.task.DoesNotFit: the answer alone takes about 900 tokens, 500 are allowed
    """


class Task(Protocol[A]):
    """One thing that can be asked of a judge. Implementations are frozen dataclasses whose fields are the task's data.

    A task is data: it knows its wording, the shape of a reply, how to read one, how members' answers become one. It
    never asks; that is the engine's job.
    """

    kind: ClassVar[str]
    """The kind of question: `claims`, `check`, `sentences`, `documents`, `rate`, ..."""
    version: ClassVar[str]
    """Changes whenever wording, schema or reader change; part of the key, so a stale answer can never be replayed."""
    shared: ClassVar[bool]
    """True where one judge (the extractor) answers for all members of a panel."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields that make this task what it is, JSON-able."""
        ...

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """The chat messages: a shared preamble, documents first, then the rest."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """The strict JSON schema of the reply (an object without further properties)."""
        ...

    def read(self, reply: Any) -> A:
        """The answer in a parsed reply. Raises `ReplyError` where the reply is not what was asked."""
        ...

    def doubts(self, answer: A) -> tuple[int, ...]:
        """Numbers (from 1) of the items worth one re-ask although the answer is usable; () for none."""
        ...

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """`reply` to a re-ask laid over the valid part of the reply before it."""
        ...

    def vote(self, answers: Mapping[str, A | None], rule: Rule) -> Vote[A]:
        """One answer from the members' answers (None: failed). Raises `NoMajority` where the rule gives no value."""
        ...

    def split(self, max_tokens: int | None = None) -> Split:
        """The parts that are asked one by one: at most `ITEMS_PER_CALL` items each; none if nothing is to ask.

        `max_tokens` is what the messages of one part may take, by `estimate_tokens`; evidence that is longer is split by
        document, then by passage, and the joined answer is flagged `split`. Raises `DoesNotFit` where that cannot help.
        """
        ...


@dataclass(frozen=True)
class Rule:
    """How a panel makes one number or label of several: a name, and weights or a function where the name needs them.

    `name` is one of mean, median, trimmed_mean, majority, weighted, min, max, callable. `weights` maps judge name to a
    weight above 0 and is set exactly for `weighted`. `function` (for `callable`) takes the list of numbers, in the
    order of the judges' names, and returns one.
    """

    name: str = "median"
    weights: Mapping[str, float] | None = field(default=None, hash=False)
    function: Callable[[list[float]], float] | None = None


def fingerprint(value: Any) -> str:
    """SHA-256 (64 hex digits) of a JSON-able value in one canonical spelling.

    >>> fingerprint({"b": 1, "a": "é"}) == fingerprint({"a": "é", "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def task_key(task: Task[Any]) -> str:
    """The key of a task: what is asked and in which wording, nothing of who is asked."""
    return fingerprint([task.kind, task.version, dict(task.data)])
