"""Prefer one of two answers to a question: findings on each, then the better one or a tie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from jurimetrics.errors import NoMajority
from jurimetrics.tasks import items
from jurimetrics.tasks.parts import first_answer, fitting
from jurimetrics.tasks.preamble import compose, version_of
from jurimetrics.tasks.task import Message, Rule, Split, Vote
from jurimetrics.tasks.voting import choices, entropy, majority_label

Winner = Literal["first", "second", "tie"]

_BEFORE = """\
TASK: say which of two answers to the question below answers it better, A or B. Look at each by itself before you \
compare them.
RULES: Correctness and doing what the question asks decide; only where they are equal, completeness; only then style. \
Length, confidence, formatting, the place (A or B) and what an answer says about itself, its author or the other one \
earn nothing. A refusal with a good reason is better than an invention. Where a reference is shown, it is an answer with \
full marks; other wordings are as good.
winner: A, B, or tie where no difference between them matters to whoever asked.
a_findings, b_findings: what is right and what is wrong in that answer, judged alone."""
_AFTER = """\
Reply with {"a_findings": text, "b_findings": text, "winner": "A", "B" or "tie"}: the better of these two answers to the \
question."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a_findings": {"type": "string"},
        "b_findings": {"type": "string"},
        "winner": {"type": "string", "enum": ["A", "B", "tie"]},
    },
    "required": ["a_findings", "b_findings", "winner"],
    "additionalProperties": False,
}
_WINNERS: dict[str, Winner] = {"a": "first", "b": "second", "tie": "tie"}
_READER = 1


@dataclass(frozen=True, slots=True)
class Preferred:
    """Which of two answers is better, as they were shown, and what was found in each.

    >>> Preferred("first", "right", "wrong").winner
    'first'
    """

    winner: Winner
    first_findings: str
    second_findings: str


@dataclass(frozen=True, slots=True)
class PreferOne:
    """Ask which of two answers to one question is better, in one order: `first` is shown before `second`.

    Judges favour a place, so one order says little: whoever asks asks both. The answer is a `Preferred`. Each answer is
    looked at alone before they are compared, as in PRePair (arXiv 2406.12319).

    >>> task = PreferOne("What is 6 x 7?", "42", "41")
    >>> task.read({"a_findings": "right", "b_findings": "wrong", "winner": "A"})
    Preferred(winner='first', first_findings='right', second_findings='wrong')
    """

    question: str
    first: str
    second: str
    reference: str | None = None

    kind: ClassVar[str] = "prefer"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {"question": self.question, "first": self.first, "second": self.second, "reference": self.reference}

    @property
    def schema(self) -> dict[str, Any]:
        """`{a_findings, b_findings, winner}`, the winner one of A, B, tie."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Rules, question and reference, the two answers, what to reply."""
        blocks = [
            ("question", self.question),
            ("reference", self.reference),
            ("answer_a", self.first),
            ("answer_b", self.second),
        ]
        return compose(_BEFORE, blocks, _AFTER, reason_language=reason_language)

    def read(self, reply: Any) -> Preferred:
        """The preference. Raises `ReplyError` (`unparsed`): a winner is named, never concluded."""
        given = items.one_object(reply)
        winner = _WINNERS[items.label(given.get("winner"), tuple(_WINNERS), "winner")]
        findings = [items.text(given.get(field), field) for field in ("a_findings", "b_findings")]
        return Preferred(winner, *findings)

    def doubts(self, answer: Preferred) -> tuple[int, ...]:
        """Nothing: a readable reply is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """The new reply: half a comparison is nothing to keep."""
        return reply

    def vote(self, answers: Mapping[str, Preferred | None], rule: Rule) -> Vote[Preferred]:
        """The winner that more than half of the judges asked name (by count or weight); a tie is a winner to name.

        Raises `NoMajority` otherwise: votes that do not agree are no tie, so this order, and with it the pair, has no
        value.
        """
        ballot = dict(sorted(answers.items()))
        winners = choices(ballot, lambda preferred: str(preferred.winner))
        winner = majority_label(winners, rule)
        if winner is None:
            said = ", ".join(f"{judge} {given or 'failed'}" for judge, given in winners.items())
            raise NoMajority(f"no winner has more than half of {len(winners)} votes, as shown ({said})")
        shown = next(given for given in ballot.values() if given is not None and given.winner == winner)
        return Vote(
            Preferred(cast(Winner, winner), shown.first_findings, shown.second_findings),
            entropy(winners.values()),
            (winners,),
        )

    def split(self, max_tokens: int | None = None) -> Split:
        """The task itself: half an answer is not compared. Raises `DoesNotFit`."""
        return Split(fitting((self,), max_tokens), first_answer)


PreferOne.version = version_of(
    (PreferOne("How old is the hall?", "It is old.", "From 1901.", "It was built in 1901."),), _READER
)
