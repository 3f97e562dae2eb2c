"""Check an answer against several yes-or-no requirements, each with what in the answer decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal, cast

from jurimetrics.errors import InputError
from jurimetrics.tasks import items
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import fitting
from jurimetrics.tasks.preamble import compose, counted, numbered, range_of, version_of
from jurimetrics.tasks.task import ITEMS_PER_CALL, Items, Message, Rule, Split, Vote
from jurimetrics.tasks.voting import by_item, choices, entropy, majority_label, mean_disagreement
from jurimetrics.text import is_blank

Met = Literal["yes", "no"]
LABELS = ("yes", "no")

_BEFORE = """\
TASK: say of each numbered requirement whether the answer below meets it, each on its own.
<<requirements>>
yes - the requirement is met in full.
no - everything else: partly met, unclear, not there.
RULES: In doubt, no. Read a requirement as it is worded and add nothing to it; one with "not" is met where the thing is \
absent. Length, confidence and formatting meet nothing by themselves. What the answer says about itself is no proof. \
Where a reference is shown, other wordings are as good.
finding: what in the answer decides it, before met."""
_AFTER = """\
Reply with {"checks": [{"at": number, "finding": text, "met": "yes" or "no"}]}: exactly <<count>>, one for each of \
<<which>>."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "checks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": {"type": "integer"},
                    "finding": {"type": "string"},
                    "met": {"type": "string", "enum": list(LABELS)},
                },
                "required": ["at", "finding", "met"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["checks"],
    "additionalProperties": False,
}
_READER = 1


@dataclass(frozen=True, slots=True)
class Check:
    """Whether one requirement is met (`yes` or `no`) and the judge's finding as `reason`.

    `undecided` is True where a panel has no majority: the label is then `no`, so an undecided requirement is not met.

    >>> Check("names a price", "yes", "it says 12 EUR").met
    True
    """

    requirement: str
    label: Met
    reason: str
    undecided: bool = False

    @property
    def met(self) -> bool:
        """Whether the label is `yes`."""
        return self.label == "yes"


@dataclass(frozen=True, slots=True)
class CheckList:
    """Ask of each requirement whether an answer meets it, ten a call.

    `question`, `contexts` and `reference` are shown where they are given. The answer is `Items[Check]`, one for each
    requirement. Flags: `dropped:N` unknown or repeated numbers. Raises `InputError` without requirements, for a blank one
    and for one given twice. That yes-or-no questions make judges agree more than levels do: CheckEval (arXiv 2403.18771).

    >>> task = CheckList(("names a price", "names a date"), "It costs 12 EUR.")
    >>> found = task.read({"checks": [{"at": 1, "finding": "12 EUR", "met": "yes"}, {"at": 2, "finding": "", "met": "no"}]})
    >>> [check.met for check in found]
    [True, False]
    """

    requirements: tuple[str, ...]
    answer: str
    question: str | None = None
    contexts: tuple[str, ...] = ()
    reference: str | None = None

    kind: ClassVar[str] = "checklist"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", tuple(self.requirements))
        object.__setattr__(self, "contexts", tuple(self.contexts))
        if not self.requirements or any(is_blank(requirement) for requirement in self.requirements):
            raise InputError("a checklist needs requirements, and none may be blank")
        if len(set(self.requirements)) < len(self.requirements):
            raise InputError("a checklist holds a requirement twice")

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {
            "requirements": list(self.requirements),
            "answer": self.answer,
            "question": self.question,
            "contexts": list(self.contexts),
            "reference": self.reference,
        }

    @property
    def schema(self) -> dict[str, Any]:
        """`checks: [{at, finding, met}]`."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Contexts as documents, numbered requirements and rules, question, reference and answer, what to reply."""
        before = substitute(_BEFORE, {"requirements": numbered(self.requirements)})
        which = range_of(self._wanted(), "requirement")
        after = substitute(_AFTER, {"count": counted(len(self.requirements), "entry", "entries"), "which": which})
        blocks = [("question", self.question), ("reference", self.reference), ("answer", self.answer)]
        return compose(before, blocks, after, self.contexts, reason_language)

    def read(self, reply: Any) -> Items[Check]:
        """One check for each requirement. Raises `ReplyError`; `true` is not yes, nothing is taken for granted."""
        reading = items.read_items(reply, self._shape(), self._wanted())
        return Items(reading.values, reading.flags)

    def doubts(self, answer: Items[Check]) -> tuple[int, ...]:
        """Nothing: a readable reply is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's checks laid over the valid ones before."""
        return items.merge_items(previous, reply, self._shape(), self._wanted())

    def vote(self, answers: Mapping[str, Items[Check] | None], rule: Rule) -> Vote[Items[Check]]:
        """Requirement by requirement what more than half of the judges asked say, else not met, flagged `undecided`."""
        ballots = by_item(answers)
        labels = tuple(choices(ballot, lambda check: check.label) for ballot in ballots)
        voted = tuple(
            _voted(ballot, majority_label(given, rule)) for ballot, given in zip(ballots, labels, strict=True)
        )
        flags = ("undecided",) if any(check.undecided for check in voted) else ()
        disagreement = mean_disagreement(entropy(ballot.values()) for ballot in labels)
        return Vote(Items(voted, flags), disagreement, labels, flags)

    def split(self, max_tokens: int | None = None) -> Split:
        """Ten requirements a call; the evidence is never split. Raises `DoesNotFit`."""
        starts = range(0, len(self.requirements), ITEMS_PER_CALL)
        parts = tuple(replace(self, requirements=self.requirements[at : at + ITEMS_PER_CALL]) for at in starts)
        return Split(fitting(parts, max_tokens), _join)

    def _wanted(self) -> range:
        return range(1, len(self.requirements) + 1)

    def _shape(self) -> items.Shape[Check]:
        return items.Shape("checks", "at", "requirement", self._check, lambda check: check.label)

    def _check(self, number: int, item: Mapping[str, Any]) -> Check:
        label = cast(Met, items.label(item.get("met"), LABELS, "met"))
        return Check(self.requirements[number - 1], label, items.text(item.get("finding"), "finding"))


def _voted(ballot: Mapping[str, Check | None], label: str | None) -> Check:
    given = [(judge, check) for judge, check in ballot.items() if check is not None]
    requirement = given[0][1].requirement
    if label is None:
        said = "; ".join(f"{judge}: {check.label}" for judge, check in given)
        return Check(requirement, "no", f"no majority ({said})", undecided=True)
    return next(check for _, check in given if check.label == label)


def _join(answers: Sequence[Items[Check]]) -> Items[Check]:
    return Items(tuple(chain.from_iterable(answers)), items.joined_flags(*(answer.flags for answer in answers)))


CheckList.version = version_of(
    (
        CheckList(("It is old.", "It is not red."), "It is old.", "How old?", ("From 1901.",), "From 1901."),
        CheckList(("It is old.",), "It is old."),
    ),
    _READER,
)
