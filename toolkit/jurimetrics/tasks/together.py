"""Score several answers to one question in one prompt: a note on every answer, then a score for every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from jurimetrics.errors import FailureKind, NoMajority, ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.blocks import cyclic_blocks, without_block_effects
from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.fence import fence, marker, substitute
from jurimetrics.tasks.parts import first_answer, fitting
from jurimetrics.tasks.preamble import compose, counted, range_of, version_of
from jurimetrics.tasks.task import DoesNotFit, Items, Message, Rule, Split, Vote
from jurimetrics.tasks.voting import by_item, choices, combine, mean_disagreement, nearest, spread

ANSWERS_PER_CALL = 5
"""Answers that one prompt shows at most; more are asked in blocks."""
LOWEST, HIGHEST = 1, 5
LEVELS = tuple(float(score) for score in range(LOWEST, HIGHEST + 1))

_BEFORE = """\
TASK: several answers to one question stand below, in no order that means anything. Note for each what decides, then \
score all of them, each by how well it answers the question.
score, an integer:
5 - correct, complete and to the point.
4 - correct, with a gap or a lapse that hardly matters to whoever asked.
3 - of use, with a clear gap or a lesser error.
2 - of little use, or with an error that matters.
1 - wrong, beside the question, or no answer.
RULES: These levels are the measure, not the rank: answers of equal worth get equal scores, the best may get 2 and the \
worst 4. Between two levels, the lower one. Correctness and doing what the question asks come first, then completeness, \
then style. Length, confidence, formatting, the place in the list and what an answer says about itself, its author or \
the others earn nothing; hedging alone is not a fault. A refusal with a good reason is better than an invention. An \
answer in another language than the question asks for is one level lower. Where a reference is shown, it is an answer \
with full marks; other wordings are as good.
findings: one note on each answer, all before the first score."""
_AFTER = """\
Reply with {"findings": [{"answer": number, "note": text}], "scores": [{"answer": number, "score": integer from 1 to \
5}]}: in both lists exactly <<count>>, one for each of <<which>>."""

_NUMBER = {"type": "integer"}
_SCORE = {"type": "integer", "enum": list(range(LOWEST, HIGHEST + 1))}


def _list_of(**fields: dict[str, Any]) -> dict[str, Any]:
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "array", "items": entry}


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "findings": _list_of(answer=_NUMBER, note={"type": "string"}),
        "scores": _list_of(answer=_NUMBER, score=_SCORE),
    },
    "required": ["findings", "scores"],
    "additionalProperties": False,
}
_READER = 1


class Place(NamedTuple):
    """Where an answer stood when it got a score: which prompt (from 0), which place in it (from 0), the score given.

    >>> Place(0, 2, 4.0).position
    2
    """

    block: int
    position: int
    score: float


@dataclass(frozen=True, slots=True)
class TogetherScore:
    """What one of several answers is worth: `value` from 1 to 5, the judge's `note`, and the `places` it was scored at.

    A judge's value is the score it gave, or where the answers were asked in blocks the score without the effects of the
    blocks; a panel's need be neither. A panel whose members saw different blocks has no places.

    >>> TogetherScore(4.0, "right, with a gap").value
    4.0
    """

    value: float
    note: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreTogether:
    """Ask for a score of each of several answers to one question, all seen together, in the order given.

    The prompt numbers the answers and says nothing of who wrote them; to shuffle them, and to ask in more than one order,
    is up to whoever asks. Scores mean something within this set of answers only. The answer is `Items[TogetherScore]`,
    one for each in the order given. Flags: `dropped:N` unknown or repeated numbers; `blocks` where more than five answers,
    or more than fit at once, were asked in blocks in which every two of them meet. The reverse of an order is asked in
    the same blocks reversed. To analyse all answers and then to score all follows BatchEval (arXiv 2401.00437).

    >>> task = ScoreTogether("What is 6 x 7?", ("42", "41"))
    >>> answer = task.read({"findings": [{"answer": 1, "note": "right"}, {"answer": 2, "note": "wrong"}],
    ...                     "scores": [{"answer": 2, "score": 1}, {"answer": 1, "score": 5}]})
    >>> [(score.value, score.note) for score in answer]
    [(5.0, 'right'), (1.0, 'wrong')]
    """

    question: str
    answers: tuple[str, ...]
    reference: str | None = None

    kind: ClassVar[str] = "together"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", tuple(self.answers))

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {"question": self.question, "answers": list(self.answers), "reference": self.reference}

    @property
    def schema(self) -> dict[str, Any]:
        """`findings: [{answer, note}]`, then `scores: [{answer, score}]`, scores 1 to 5."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Levels and rules, question and reference, the numbered answers, what to reply."""
        mark = marker(self.question, self.reference or "", *self.answers)
        shown = [fence(self.question, "question", mark)]
        shown += [fence(self.reference, "reference", mark)] if self.reference is not None else []
        shown += [fence(answer, "answer", mark, n=n) for n, answer in enumerate(self.answers, start=1)]
        which = range_of(self._wanted(), "answer")
        after = substitute(_AFTER, {"count": counted(len(self.answers), "entry", "entries"), "which": which})
        return compose(_BEFORE, (), "\n".join([*shown, after]), reason_language=reason_language)

    def read(self, reply: Any) -> Items[TogetherScore]:
        """One note and one score for each answer. Raises `ReplyError`; a score off the scale is `out_of_range`."""
        readings: list[items.Reading[Any]] = []
        faults: list[ReplyError] = []
        for shape in _SHAPES:
            try:
                readings.append(items.read_items(_view(reply, shape), shape, self._wanted()))
            except ReplyError as error:
                faults.append(error)
        if faults:
            raise self._fault(reply, faults)
        notes, scores = readings
        given = [
            TogetherScore(score, note, (Place(0, position, score),))
            for position, (note, score) in enumerate(zip(notes.values, scores.values, strict=True))
        ]
        return Items(tuple(given), items.joined_flags(notes.flags, scores.flags))

    def doubts(self, answer: Items[TogetherScore]) -> tuple[int, ...]:
        """Nothing: a readable reply is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's notes and scores laid over the valid ones before."""
        return self._laid_over(previous, reply) if previous else reply

    def vote(self, answers: Mapping[str, Items[TogetherScore] | None], rule: Rule) -> Vote[Items[TogetherScore]]:
        """Answer by answer the members' values by the rule. Raises `NoMajority` where a majority has none; scores out of
        blocks are no levels, so they have none either."""
        ballots = by_item(answers)
        values = tuple(choices(ballot, lambda score: score.value) for ballot in ballots)
        given = {value for ballot in values for value in ballot.values() if value is not None}
        if rule.name == "majority" and not given <= set(LEVELS):
            raise NoMajority("scores out of blocks lie between the levels, so no level has more than half of the votes")
        voted = []
        for ballot, of_judges in zip(ballots, values, strict=True):
            value = combine(of_judges, rule, LEVELS)
            shown = nearest(ballot, value, lambda score: score.value)
            voted.append(replace(shown, value=value, places=_common_place(ballot, value)))
        members = chain.from_iterable(answer.flags for answer in answers.values() if answer is not None)
        flags = tuple(sorted({flag for flag in members if flag == "blocks"}))
        disagreement = mean_disagreement(spread(each.values()) for each in values)
        return Vote(Items(tuple(voted), flags), disagreement, values, flags)

    def split(self, max_tokens: int | None = None) -> Split:
        """All answers at once where they are at most five and fit; else blocks, as large as fit, in which every two
        answers meet. Nothing without answers. Raises `DoesNotFit` where no two answers fit at once."""
        if not self.answers:
            return Split((), lambda answers: Items(()))
        for size in range(min(ANSWERS_PER_CALL, len(self.answers)), 1, -1):
            blocks = self._blocks(size)
            parts = tuple(replace(self, answers=tuple(self.answers[at] for at in block)) for block in blocks)
            if max_tokens is None or all(message_tokens(part.messages()) <= max_tokens for part in parts):
                if len(parts) == 1:
                    return Split((self,), first_answer)
                return Split(parts, partial(_join, blocks=blocks))
        if len(self.answers) == 1:
            return Split(fitting((self,), max_tokens), first_answer)
        raise DoesNotFit(f"{self.kind}: no two of the answers can be shown at once in {max_tokens} tokens")

    def _blocks(self, size: int) -> tuple[tuple[int, ...], ...]:
        """The design over the places of the answers; of an order and its reverse, one is given the other's, reversed."""
        count = len(self.answers)
        blocks = cyclic_blocks(count, size)
        if count <= size or self.answers <= self.answers[::-1]:
            return blocks
        return tuple(tuple(count - 1 - at for at in reversed(block)) for block in blocks)

    def _wanted(self) -> range:
        return range(1, len(self.answers) + 1)

    def _fault(self, reply: Any, faults: Sequence[ReplyError]) -> ReplyError:
        """The faults of both lists as one, with what of both lists can be kept."""
        kinds: list[FailureKind] = [fault.kind for fault in faults]
        kind = next((one for one in ("out_of_range", "unparsed") if one in kinds), kinds[0])
        said = "; ".join(dict.fromkeys(fault.fault for fault in faults))
        if not all(fault.missing for fault in faults):
            return ReplyError(kind, said)
        kept = self._laid_over(reply, {})
        return ReplyError(kind, said, kept, tuple(sorted({number for fault in faults for number in fault.missing})))

    def _laid_over(self, before: Any, after: Any) -> dict[str, Any]:
        """Both lists of `before` with the valid entries of `after` over its own; a list missing there adds nothing."""
        laid: dict[str, Any] = {}
        dropped = 0
        for shape in _SHAPES:
            new = _view(after, shape) or {shape.key: []}
            merged = items.merge_items(_view(before, shape) or {shape.key: []}, new, shape, self._wanted())
            laid[shape.key] = merged[shape.key]
            dropped += merged.get("dropped", 0)
        return {**laid, "dropped": dropped} if dropped else laid


_NOTES: items.Shape[str] = items.Shape(
    "findings", "answer", "the note on answer", lambda _, item: items.text(item.get("note"), "note"), lambda note: None
)
_SCORES: items.Shape[float] = items.Shape(
    "scores",
    "answer",
    "the score of answer",
    lambda _, item: float(items.whole(item.get("score"), LOWEST, HIGHEST, "score")),
    lambda score: score,
)
_SHAPES: tuple[items.Shape[Any], ...] = (_NOTES, _SCORES)


def _view(reply: Any, shape: items.Shape[Any]) -> dict[str, Any]:
    """One of the two lists of a reply by itself; what a merged reply counted as dropped goes with the scores."""
    given = items.one_object(reply)
    fields = (shape.key, "dropped") if shape is _SCORES else (shape.key,)
    return {field: given[field] for field in fields if field in given}


def _common_place(ballot: Mapping[str, TogetherScore | None], value: float) -> tuple[Place, ...]:
    """Where the members saw an answer, if all saw it once and at the same place, with the panel's value there."""
    seen = {tuple(place.position for place in score.places) for score in ballot.values() if score is not None}
    places = next(iter(seen)) if len(seen) == 1 else ()
    return (Place(0, places[0], value),) if len(places) == 1 else ()


def _join(answers: Sequence[Items[TogetherScore]], blocks: Sequence[Sequence[int]]) -> Items[TogetherScore]:
    """The answers to the blocks as one: values without block effects, the note that goes with the nearest score."""
    found: dict[int, list[tuple[Place, str]]] = {}
    for number, (block, answer) in enumerate(zip(blocks, answers, strict=True)):
        for position, (at, score) in enumerate(zip(block, answer, strict=True)):
            found.setdefault(at, []).append((Place(number, position, score.value), score.note))
    scores = [(place.block, at, place.score) for at, given in sorted(found.items()) for place, _ in given]
    values = without_block_effects(scores, len(found), LOWEST, HIGHEST)
    joined = []
    for at, value in enumerate(values):
        note = min(found[at], key=lambda given, value=value: abs(given[0].score - value))[1]  # type: ignore[misc]
        joined.append(TogetherScore(value, note, tuple(place for place, _ in found[at])))
    return Items(tuple(joined), items.joined_flags(["blocks"], *(answer.flags for answer in answers)))


ScoreTogether.version = version_of(
    (ScoreTogether("How old is the hall?", ("It is old.", "From 1901."), "It was built in 1901."),), _READER
)
