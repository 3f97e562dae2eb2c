"""Rate an answer on several rubrics in one call: cheaper than a call each, while the ratings may colour each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jurimetrics.errors import InputError, ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import first_answer, fitting
from jurimetrics.tasks.preamble import compose, counted, version_of
from jurimetrics.tasks.rate import RateRubric, Rating
from jurimetrics.tasks.task import ITEMS_PER_CALL, Message, Rule, Split, Vote

_BEFORE = """\
TASK: rate the answer below on <<count>>, each on its own: a fault under one criterion costs nothing under another.
<<criteria>>
RULES: Between two levels, the lower one. Length, confidence and formatting earn nothing by themselves; hedging alone \
is not a fault. An empty answer gets the lowest score. A refusal is rated like any answer: what it leaves out is left \
out. An answer in another language than the question asks for is one level lower. Where a reference is shown, it is an \
answer with full marks; other wordings are as good. Use what is shown beside the answer only where a criterion speaks \
of it.
findings: what in the answer decides this criterion, before its score."""
_CRITERION = """\
CRITERION <<number>>, <<criterion>>: <<text>>
score, an integer from <<low>> to <<high>>:
<<levels>>"""
_AFTER = """\
Reply with {"ratings": [{"criterion": number, "findings": text, "score": integer}]}: exactly <<count>>, one for each of \
<<which>>."""
_READER = 1
_SECOND = "asked_again"
"""Stands in the valid part of a reply that went out again: what is missing then stays missing, the rest counts."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """One entry for each rubric: its `Rating`, or the `ReplyError` of one that the judge left out or put off its scale.

    `complete` is False where any is missing.

    >>> Ratings((Rating(4.0, "clear"), ReplyError("incomplete", "criterion 2 is missing"))).complete
    False
    """

    entries: tuple[Rating | ReplyError, ...]
    flags: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every rubric has its rating."""
        return all(isinstance(entry, Rating) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class RateCriteria:
    """Ask for one rating under each of several rubrics, at most ten, all of the same answer.

    `rubrics` are the tasks that would ask one by one; each brings its scale and levels, and what any of them shows
    (question, contexts, reference) is shown once, to all. A metric asks for its own rating with `RateOneOf`.

    The answer is `Ratings`. A reply that lacks some is asked for them once more; what is then still missing or off its
    scale is missing for that rubric alone. Flags: `dropped:N` unknown or repeated numbers. Raises `InputError` where the
    rubrics do not go together. That several criteria in one reply lean on each other: arXiv 2405.01724.

    >>> clear, kind = (RateRubric(name, f"Is it {name}?", "It is old.") for name in ("clear", "kind"))
    >>> reply = {"ratings": [{"criterion": 2, "findings": "plain", "score": 3}]}
    >>> RateCriteria((clear, kind)).read(reply)
    Traceback (most recent call last):
    jurimetrics.errors.ReplyError: incomplete: criterion 1 is missing
    """

    rubrics: tuple[RateRubric, ...]

    kind: ClassVar[str] = "criteria"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rubrics", tuple(self.rubrics))
        names = [rubric.criterion for rubric in self.rubrics]
        if not 1 <= len(names) <= ITEMS_PER_CALL:
            raise InputError(f"one call rates 1 to {ITEMS_PER_CALL} criteria, not {len(names)}")
        if len(set(names)) < len(names):
            raise InputError(f"two criteria of one call have one name: {', '.join(names)}")
        for shown in ("answer", "question", "contexts", "reference"):
            given = {value for rubric in self.rubrics if (value := getattr(rubric, shown))}
            if len(given) > 1:
                raise InputError(f"criteria of one call must rate one answer: they differ in {shown}")

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {"rubrics": [dict(rubric.data) for rubric in self.rubrics]}

    @property
    def schema(self) -> dict[str, Any]:
        """`ratings: [{criterion, findings, score}]`; the scores are those of any of the scales."""
        scores = {score for rubric in self.rubrics for score in range(rubric.asked[0], rubric.asked[1] + 1)}
        entry = {
            "type": "object",
            "properties": {
                "criterion": {"type": "integer"},
                "findings": {"type": "string"},
                "score": {"type": "integer", "enum": sorted(scores)},
            },
            "required": ["criterion", "findings", "score"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {"ratings": {"type": "array", "items": entry}},
            "required": ["ratings"],
            "additionalProperties": False,
        }

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Contexts as documents, all criteria with their levels, question, reference and answer, what to reply."""
        described = "\n".join(_described(number, rubric) for number, rubric in enumerate(self.rubrics, start=1))
        count = counted(len(self.rubrics), "criterion", "criteria")
        before = substitute(_BEFORE, {"count": count, "criteria": described})
        which = "criterion 1" if len(self.rubrics) == 1 else f"criteria 1 to {len(self.rubrics)}"
        after = substitute(_AFTER, {"count": counted(len(self.rubrics), "entry", "entries"), "which": which})
        blocks = [(name, self._shown(name)) for name in ("question", "reference", "answer")]
        return compose(before, blocks, after, self._shown("contexts") or (), reason_language)

    def read(self, reply: Any) -> Ratings:
        """The ratings. Raises `ReplyError` where one is missing and was not asked for a second time, or all are."""
        wanted = self._wanted()
        try:
            reading = items.read_items(reply, self._shape(), wanted)
        except ReplyError as fault:
            if not fault.valid:
                raise
            if not (isinstance(reply, Mapping) and reply.get(_SECOND) is True):
                fault.valid = {**fault.valid, _SECOND: True}
                raise
            return self._incomplete(reply, fault)
        return Ratings(reading.values, reading.flags)

    def doubts(self, answer: Ratings) -> tuple[int, ...]:
        """Nothing: what is missing is asked again as a fault of the reply."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's ratings laid over the valid ones before."""
        merged = items.merge_items(previous, reply, self._shape(), self._wanted())
        return {**merged, _SECOND: True} if previous.get(_SECOND) is True and isinstance(merged, Mapping) else merged

    def vote(self, answers: Mapping[str, Ratings | None], rule: Rule) -> Vote[Ratings]:
        """Raises `InputError`: a panel votes on one criterion at a time, with `RateOneOf`."""
        raise InputError("a panel votes on one criterion at a time: ask RateOneOf")

    def split(self, max_tokens: int | None = None) -> Split:
        """The task itself: half of the evidence gives no rating. Raises `DoesNotFit`."""
        return Split(fitting((self,), max_tokens), first_answer)

    def _incomplete(self, reply: Any, fault: ReplyError) -> Ratings:
        kept = [number for number in self._wanted() if number not in fault.missing]
        reading = items.read_items(fault.valid, self._shape(), kept)
        entries: dict[int, Rating | ReplyError] = dict(zip(kept, reading.values, strict=True))
        for number in fault.missing:
            try:
                items.read_items(reply, self._shape(), (number,))
            except ReplyError as own:
                entries[number] = ReplyError(own.kind, f"{own.fault} ({self.rubrics[number - 1].criterion})")
        return Ratings(tuple(entries[number] for number in self._wanted()), reading.flags)

    def _wanted(self) -> range:
        return range(1, len(self.rubrics) + 1)

    def _shown(self, field_: str) -> Any:
        return next((value for rubric in self.rubrics if (value := getattr(rubric, field_))), None)

    def _shape(self) -> items.Shape[Rating]:
        return items.Shape("ratings", "criterion", "criterion", self._rating, lambda rating: rating.value)

    def _rating(self, number: int, item: Mapping[str, Any]) -> Rating:
        return self.rubrics[number - 1].read(item)


@dataclass(frozen=True, slots=True)
class RateOneOf:
    """One rubric's rating out of a call that asks for several: what goes out is `batch`, the same for all its rubrics.

    `criterion` is the name of the rubric wanted. The answer is its `Rating`; `ReplyError` is raised where the judge gave
    none, as for a reply to that rubric alone, so that its row fails and no other. A panel votes on this criterion only.

    >>> clear, kind = (RateRubric(name, f"Is it {name}?", "It is old.") for name in ("clear", "kind"))
    >>> one = RateOneOf(RateCriteria((clear, kind)), "kind")
    >>> reply = {"ratings": [{"criterion": at, "findings": "plain", "score": at} for at in (1, 2)]}
    >>> one.read(reply).value, one.split().parts == (one.batch,)
    (2.0, True)
    """

    batch: RateCriteria
    criterion: str
    _at: int = field(init=False, repr=False, compare=False)

    kind: ClassVar[str] = "criteria"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        names = [rubric.criterion for rubric in self.batch.rubrics]
        if self.criterion not in names:
            raise InputError(f"no criterion {self.criterion!r} in this call; there are: {', '.join(names)}")
        object.__setattr__(self, "_at", names.index(self.criterion))

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {**self.batch.data, "criterion": self.criterion}

    @property
    def schema(self) -> dict[str, Any]:
        """That of the whole call."""
        return self.batch.schema

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Those of the whole call."""
        return self.batch.messages(reason_language)

    def read(self, reply: Any) -> Rating:
        """The rating of this criterion. Raises `ReplyError` where there is none."""
        return self._picked((self.batch.read(reply),))

    def doubts(self, answer: Rating) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """As the whole call merges."""
        return self.batch.merge(previous, reply)

    def vote(self, answers: Mapping[str, Rating | None], rule: Rule) -> Vote[Rating]:
        """The members' values by the rule, as for the rubric alone. Raises `NoMajority` where a majority has none."""
        return self.batch.rubrics[self._at].vote(answers, rule)

    def split(self, max_tokens: int | None = None) -> Split:
        """The whole call, and how this rating is picked out of its answer. Raises `DoesNotFit`."""
        return Split(fitting((self.batch,), max_tokens), self._picked)

    def _picked(self, answers: Sequence[Ratings]) -> Rating:
        entry = answers[0].entries[self._at]
        if isinstance(entry, ReplyError):
            raise ReplyError(entry.kind, entry.fault)
        return Rating(entry.value, entry.reason, answers[0].flags)


def _described(number: int, rubric: RateRubric) -> str:
    low, high = rubric.asked
    levels = (f"{round(value / rubric.step)} - {description}" for value, description in reversed(rubric.levels))
    shown = {"number": number, "criterion": rubric.criterion, "text": rubric.text, "low": low, "high": high}
    return substitute(_CRITERION, {**shown, "levels": "\n".join(levels)}).rstrip()


_LEVELS = ((1, "hard to follow"), (5, "easy to follow"))
RateCriteria.version = version_of(
    (
        RateCriteria(
            (
                RateRubric("clarity", "Is it clear?", "It is old.", "How old?", levels=_LEVELS),
                RateRubric("support", "Is it so?", "It is old.", contexts=("1901.",), scale=(0, 1), step=0.1),
            )
        ),
    ),
    _READER,
)
RateOneOf.version = RateCriteria.version
