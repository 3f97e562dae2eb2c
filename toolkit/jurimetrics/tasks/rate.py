"""Rate an answer on one rubric: findings first, then one number of the declared scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jurimetrics.errors import InputError, NoMajority, ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import first_answer, fitting
from jurimetrics.tasks.preamble import compose, version_of
from jurimetrics.tasks.task import Message, Rule, Split, Vote
from jurimetrics.tasks.voting import choices, combine, nearest, spread

_MOST_LEVELS = 101
PROBABILITIES = "label_probabilities"
"""The key under which whoever asks keeps beside a reply how probable each score was, as `{"4": 0.9, "5": 0.1}`, or None
where that was asked for and not to be had. Never taken from a judge's own words."""

_BEFORE = """\
TASK: rate the answer below on one criterion, <<criterion>>, and on nothing else.
CRITERION: <<text>>
score, an integer from <<low>> to <<high>>; the higher, the more the criterion is met:
<<levels>>
RULES: Between two levels, the lower one. Length, confidence and formatting earn nothing by themselves; hedging alone \
is not a fault. An empty answer gets <<low>>. A refusal is rated like any answer: what it leaves out is left out. An \
answer in another language than the question asks for is one level lower. Where a reference is shown, it is an answer \
with full marks; other wordings are as good.
findings: what in the answer decides, before the score."""
_AFTER = """\
Reply with {"findings": text, "score": integer from <<low>> to <<high>>}: one score for <<criterion>> alone."""

_READER = 1


@dataclass(frozen=True, slots=True)
class Rating:
    """A rating on a rubric: `value` on the declared scale, the judge's findings as `reason`.

    A panel's value need not be one of the levels.

    >>> Rating(4.0, "clear, with one gap").value
    4.0
    """

    value: float
    reason: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RateRubric:
    """Ask for one rating of an answer by one criterion.

    `criterion` is its name, `text` what is asked of the answer (any text: braces and the like stay as they are). `levels`
    describes values of the scale, as (value, description); two suffice, lowest and highest. `scale` is lowest and highest
    value; `step` is 1 or 0.1: a scale of 0 to 1 in tenths is asked as integers 0 to 10 and divided here. Prompt, schema
    and check come from this one range. `question`, `contexts` and `reference` are shown where they are given.

    The answer is a `Rating`; flags: `logprob_score` where its value is the expectation over the probabilities of the
    scores (G-Eval, arXiv 2303.16634), `text_score` where those were asked for and the score in the text counts. Raises
    `InputError` for a scale, step or level that does not fit. A better judge's reference
    as the full-mark answer, and findings before the score, follow Prometheus (arXiv 2310.08491).

    >>> task = RateRubric("clarity", "Is it easy to follow?", "It is 324 m tall.", scale=(0, 1), step=0.1)
    >>> task.asked, task.read({"findings": "plain", "score": 7})
    ((0, 10), Rating(value=0.7, reason='plain', flags=()))
    """

    criterion: str
    text: str
    answer: str
    question: str | None = None
    contexts: tuple[str, ...] = ()
    reference: str | None = None
    scale: tuple[float, float] = (1, 5)
    levels: tuple[tuple[float, str], ...] = ()
    step: float = 1

    kind: ClassVar[str] = "rate"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "contexts", tuple(self.contexts))
        low, high = self.scale
        if self.step not in (1, 0.1):
            raise InputError(f"rubric {self.criterion!r}: the step must be 1 or 0.1, not {self.step!r}")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(
                f"rubric {self.criterion!r}: the scale must rise from low to high, not {low!r} to {high!r}"
            )
        for value in (low, high, *(value for value, _ in self.levels)):
            if abs(value / self.step - round(value / self.step)) > 1e-9 or not low <= value <= high:
                said = f"{value!r} is no value of the scale {low:g} to {high:g} in steps of {self.step:g}"
                raise InputError(f"rubric {self.criterion!r}: {said}")
        if self.asked[1] - self.asked[0] >= _MOST_LEVELS:
            raise InputError(f"rubric {self.criterion!r}: a scale can have at most {_MOST_LEVELS} values")
        if len({value for value, _ in self.levels}) < len(self.levels):
            raise InputError(f"rubric {self.criterion!r}: a level is described twice")
        described = tuple(sorted((float(value), description) for value, description in self.levels))
        object.__setattr__(self, "scale", (float(low), float(high)))
        object.__setattr__(self, "levels", described)
        object.__setattr__(self, "step", float(self.step))

    @property
    def asked(self) -> tuple[int, int]:
        """The lowest and the highest integer that the judge can give."""
        return round(self.scale[0] / self.step), round(self.scale[1] / self.step)

    @property
    def labels(self) -> tuple[str, ...]:
        """The scores as texts where each is one digit, so that one token can hold it; else ()."""
        low, high = self.asked
        return tuple(map(str, range(low, high + 1))) if low >= 0 and high <= 9 else ()

    @property
    def values(self) -> tuple[float, ...]:
        """All values of the scale, from low to high."""
        return tuple(self._value(score) for score in range(self.asked[0], self.asked[1] + 1))

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {
            "criterion": self.criterion,
            "text": self.text,
            "answer": self.answer,
            "question": self.question,
            "contexts": list(self.contexts),
            "reference": self.reference,
            "scale": list(self.scale),
            "levels": [list(level) for level in self.levels],
            "step": self.step,
        }

    @property
    def schema(self) -> dict[str, Any]:
        """`{findings, score}` with the integers of the scale."""
        low, high = self.asked
        return {
            "type": "object",
            "properties": {
                "findings": {"type": "string"},
                "score": {"type": "integer", "enum": list(range(low, high + 1))},
            },
            "required": ["findings", "score"],
            "additionalProperties": False,
        }

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Contexts as documents, criterion and levels, question, reference and answer, what to reply."""
        low, high = self.asked
        levels = (f"{round(value / self.step)} - {description}" for value, description in reversed(self.levels))
        shown = {"criterion": self.criterion, "low": low, "high": high}
        before = substitute(_BEFORE, {**shown, "text": self.text, "levels": "\n".join(levels)})
        blocks = [("question", self.question), ("reference", self.reference), ("answer", self.answer)]
        return compose(before, blocks, substitute(_AFTER, shown), self.contexts, reason_language)

    def read(self, reply: Any) -> Rating:
        """The rating. Raises `ReplyError`: `out_of_range` off the scale, `unparsed` for all else that is not asked."""
        given = items.one_object(reply)
        score = items.whole(given.get("score"), *self.asked, "score")
        findings = items.text(given.get("findings"), "findings")
        passed = given.get("pass")
        # Unasked, and never the verdict, but where it contradicts the score a reader wants to know.
        said = (f"said_{'pass' if passed else 'fail'}",) if isinstance(passed, bool) else ()
        if PROBABILITIES not in given:
            return Rating(self._value(score), findings, said)
        probabilities = given[PROBABILITIES]
        if probabilities is None:
            return Rating(self._value(score), findings, (*said, "text_score"))
        return Rating(self._expected(probabilities), findings, (*said, "logprob_score"))

    def _expected(self, probabilities: Any) -> float:
        good = isinstance(probabilities, Mapping) and probabilities and set(probabilities) <= set(self.labels)
        if not good or not all(isinstance(p, float) and 0 <= p <= 1 for p in probabilities.values()):
            raise ReplyError("unparsed", "what is kept of the probabilities of the scores cannot be read")
        total = math.fsum(probabilities.values())
        if not total > 0:
            raise ReplyError("unparsed", "what is kept of the probabilities of the scores cannot be read")
        # Rounded, so that the last bit of a sum cannot lie outside of the scale.
        return round(math.fsum(self._value(int(label)) * p for label, p in probabilities.items()) / total, 9)

    def doubts(self, answer: Rating) -> tuple[int, ...]:
        """Nothing: a readable reply is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """The new reply: half a rating is nothing to keep."""
        return reply

    def vote(self, answers: Mapping[str, Rating | None], rule: Rule) -> Vote[Rating]:
        """The members' values by the rule. Raises `NoMajority` where a majority has none."""
        ballot = dict(sorted(answers.items()))
        values = choices(ballot, lambda rating: rating.value)
        given = {value for value in values.values() if value is not None}
        if rule.name == "majority" and not given <= set(self.values):
            raise NoMajority("expectations lie between the levels, so no level has more than half of the votes")
        value = combine(values, rule, self.values)
        shown = nearest(ballot, value, lambda rating: rating.value)
        return Vote(replace(shown, value=value), spread(values.values()), (values,))

    def split(self, max_tokens: int | None = None) -> Split:
        """The task itself: half of the evidence gives no rating. Raises `DoesNotFit`."""
        return Split(fitting((self,), max_tokens), first_answer)

    def _value(self, score: int) -> float:
        return score / 10 if self.step != 1 else float(score)


_LEVELS = ((1, "hard to follow"), (5, "easy to follow"))
RateRubric.version = version_of(
    (
        RateRubric("clarity", "Is it clear?", "It is old.", "How old?", ("From 1901.",), "From 1901.", levels=_LEVELS),
        RateRubric("clarity", "Is it clear?", "It is old.", scale=(0, 1), step=0.1),
    ),
    _READER,
)
