"""The metric protocol: a small program over a record and `ask` that returns a `Score`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from jurimetrics.cells import clean_text
from jurimetrics.errors import InputError
from jurimetrics.records import Record
from jurimetrics.tasks.task import Task
from jurimetrics.text import is_blank

A = TypeVar("A")
NEEDS = ("question", "answer", "contexts", "reference")
STATUSES = ("ok", "undefined", "not_applicable")


class Ask(Protocol):
    """What a metric is given to ask with: the same task asked twice is one call.

    Raises whatever ends the row: a failure of the judge, a panel without quorum or majority. A metric lets it pass.
    """

    async def __call__(self, task: Task[A]) -> A: ...


@dataclass(frozen=True, slots=True)
class Score:
    """A value in the metric's own range, why, and what stands behind it.

    `value` is None exactly where `status` is not `ok`. `details` is JSON-able (claims and verdicts, spans, ...); a list
    stands under the name `items`. `flags` are short words that end in the frame's `flags` column. Raises `ValueError`
    where value and status contradict each other and `TypeError` for a reason, details or flags of another type; what a
    metric raises becomes the failure of its row.

    >>> Score(0.5, "1 of 2 claims is supported", details=["yes", "no"]).details
    {'items': ['yes', 'no']}
    >>> Score.undefined("the answer makes no claims").value is None
    True
    """

    value: float | None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    status: Literal["ok", "undefined", "not_applicable"] = "ok"

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"the status of a score is one of {', '.join(STATUSES)}, not {self.status!r}")
        if (self.value is None) == (self.status == "ok"):
            raise ValueError(f"a score with status {self.status!r} cannot have the value {self.value!r}")
        if not isinstance(self.reason, str):
            raise TypeError(f"the reason of a score is a text, not {type(self.reason).__name__}")
        if not isinstance(self.details, Mapping):
            object.__setattr__(self, "details", {"items": list(_sequence(self.details, "details"))})
        flags = tuple(_sequence(self.flags, "flags"))
        if not all(isinstance(flag, str) for flag in flags):
            raise TypeError("the flags of a score are texts")
        object.__setattr__(self, "flags", flags)

    @classmethod
    def undefined(cls, reason: str, *, details: Mapping[str, Any] | None = None, flags: tuple[str, ...] = ()) -> Score:
        """The metric has no value here (no claims, nothing to compare): neither a number nor a failure."""
        return cls(None, reason, details or {}, flags, "undefined")

    @classmethod
    def not_applicable(cls, reason: str) -> Score:
        """The record lacks what the metric needs."""
        return cls(None, reason, status="not_applicable")


def _sequence(given: Any, name: str) -> Sequence[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"the {name} of a score cannot be {type(given).__name__}")
    return given


@dataclass(frozen=True)
class Metric:
    """A metric with everything that is declared of it; made by `@metric`, called by the engine.

    `asks` names the task classes it asks, () where it computes without a judge and `judged` is False. `levels` are the
    values a score can take where they are few and declared (a Likert rubric), else None. `variants` are those that a
    `together` metric is about, () for all: the records of others are `not_applicable` and have no part in its calls.
    `asks_elsewhere`: it may ask by itself, so what its rows took is unknown, not 0.
    """

    name: str
    function: Callable[..., Awaitable[Any]]
    needs: tuple[str, ...]
    range: tuple[float, float]
    higher_is_better: bool
    threshold: float | None
    judged: bool = True
    together: bool = False
    asks: tuple[type, ...] = ()
    levels: tuple[float, ...] | None = None
    version: str = "1"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    variants: tuple[str, ...] = ()
    asks_elsewhere: bool = False

    def __call__(self, record: Any, ask: Ask) -> Awaitable[Any]:
        """The score of one record; for a `together` metric a score for each variant of the records given."""
        return self.function(record, ask, **self.options)

    def using(self, **options: Any) -> Metric:
        """The same metric under other options, which enter its name and version.

        Raises `InputError` for an option that the metric does not have, or a value that it does not name.

        >>> from jurimetrics.metrics import faithfulness
        >>> faithfulness.using(refusals="best")
        Traceback (most recent call last):
        jurimetrics.errors.InputError: faithfulness: refusals is one of 'exclude', 'worst', not 'best'
        """
        known = {p.name for p in inspect.signature(self.function).parameters.values() if p.kind is p.KEYWORD_ONLY}
        for option in options:
            if option not in known:
                raise InputError(f"{self.name} has no option {option!r}; it has: {', '.join(sorted(known)) or 'none'}")
            self._check_option(option, options[option])
        merged = {**self.options, **options}
        suffix = ",".join(f"{key}={merged[key]}" for key in sorted(merged))
        base = self.name.partition("(")[0]
        return replace(
            self, name=f"{base}({suffix})", options=merged, version=f"{self.version.partition('+')[0]}+{suffix}"
        )

    def _check_option(self, option: str, value: Any) -> None:
        try:
            hint = get_type_hints(self.function).get(option)
        except NameError:
            # A function of the user's may be annotated with names that only its own scope knows.
            return
        if get_origin(hint) is Literal and value not in get_args(hint):
            named = ", ".join(repr(each) for each in get_args(hint))
            raise InputError(f"{self.name}: {option} is one of {named}, not {value!r}")

    def missing(self, record: Record) -> tuple[str, ...]:
        """The needed fields that a record lacks, in the order they are declared."""
        return tuple(name for name in self.needs if not record.has(name))

    def check_threshold(self, threshold: float) -> float:
        """`threshold` if it lies in the range. Raises `InputError` otherwise."""
        low, high = self.range
        if not low <= threshold <= high:
            raise InputError(f"{self.name}: threshold {threshold:g} is outside the range {low:g} to {high:g}")
        return threshold

    def check(self, score: Score) -> Score:
        """`score` if its value is a finite number within the range. Raises `ValueError` otherwise (a fault of the metric)."""
        low, high = self.range
        if score.value is not None and not (math.isfinite(score.value) and low <= score.value <= high):
            raise ValueError(f"{self.name} gave {score.value!r}, outside its range {low:g} to {high:g}")
        return score


def passes(value: float, threshold: float, higher_is_better: bool) -> bool:
    """Whether a score passes: at least the threshold, or at most where lower is better; equality passes.

    >>> passes(0.5, 0.5, True), passes(0.5, 0.5, False), passes(0.4, 0.5, True)
    (True, True, False)
    """
    return value >= threshold if higher_is_better else value <= threshold


def is_number(value: object) -> bool:
    """Whether a value that somebody declared is a finite number; a truth value and a text are none.

    >>> is_number(0.5), is_number("0.5"), is_number(float("nan"))
    (True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def number_range(what: str, given: Any) -> tuple[float, float]:
    """A declared range as two finite numbers, the lower first. Raises `InputError` for anything else.

    >>> number_range("metric", (0, 1))
    (0.0, 1.0)
    """
    pair = tuple(given) if isinstance(given, Sequence) else ()
    if len(pair) != 2 or not all(map(is_number, pair)):
        raise InputError(f"{what}: expected two numbers, the lower first, not {given!r}")
    if not pair[0] < pair[1]:
        raise InputError(f"{what} {pair[0]:g} to {pair[1]:g} is empty")
    return float(pair[0]), float(pair[1])


def named(what: str, name: Any) -> str:
    """A name that a frame and a file can hold. Raises `InputError` for a blank one, and for what is no text.

    >>> named("metric", "clear")
    'clear'
    """
    if not isinstance(name, str) or is_blank(name) or clean_text(name) != name:
        raise InputError(f"{what}: a name is a text that is not blank and can be written, not {name!r}")
    return name


def metric(
    *,
    needs: Sequence[str],
    range: tuple[float, float],  # noqa: A002 - the field's own word
    higher_is_better: bool = True,
    threshold: float | None = None,
    judged: bool = True,
    together: bool = False,
    asks: Sequence[type] = (),
    levels: Sequence[float] | None = None,
    version: str = "1",
    name: str | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Metric]:
    """Make a metric of an async function of `(record, ask)`; keyword-only parameters become options.

    `needs` are fields of the record ("question", "answer", "contexts", "reference"): a record that lacks one is
    `not_applicable` and nothing is asked. Raises `InputError` for an unknown need or a threshold outside the range.

    >>> @metric(needs=["answer"], range=(0, 1), judged=False)
    ... async def short(record, ask, *, limit=20):
    ...     return Score(float(len(record.answer) <= limit), f"{len(record.answer)} characters")
    >>> short.name, short.using(limit=5).name
    ('short', 'short(limit=5)')
    """
    for need in needs:
        if need not in NEEDS:
            raise InputError(f"a metric cannot need {need!r}; it can need {', '.join(NEEDS)}")
    low, high = number_range("metric", range)
    if threshold is not None and not is_number(threshold):
        raise InputError(f"metric: a threshold is a number, not {threshold!r}")

    def decorate(function: Callable[..., Awaitable[Any]]) -> Metric:
        if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
            shown = getattr(function, "__name__", type(function).__name__)
            raise InputError(f"{shown}: a metric is an async function (write: async def {shown}(record, ask))")
        made = Metric(
            name=named("metric", function.__name__ if name is None else name),
            function=function,
            needs=tuple(needs),
            range=(low, high),
            higher_is_better=higher_is_better,
            threshold=None if threshold is None else float(threshold),
            judged=judged,
            together=together,
            asks=tuple(asks),
            levels=None if levels is None else tuple(float(level) for level in levels),
            version=version,
        )
        if made.threshold is not None:
            made.check_threshold(made.threshold)
        return made

    return decorate
