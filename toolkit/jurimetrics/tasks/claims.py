"""Split a text into claims: short, self-contained, factual statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jurimetrics.errors import InputError, ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import first_answer, wanted_numbers, windows
from jurimetrics.tasks.preamble import compose, counted, numbered, range_of, version_of
from jurimetrics.tasks.task import Items, Message, Rule, Split, Vote
from jurimetrics.text import fold, is_blank, sentences

CHECKS = ("factual", "non_factual", "unclear")

_BEFORE = """\
TASK: list the claims made by <<which>> of the text below.
A claim is the smallest statement that could be found true or false, readable on its own: replace pronouns, and add \
only the context that identifies what is meant, from the text<<or_question>>.
check, for each sentence:
factual - it makes at least one claim.
non_factual - opinion, advice, question, hypothetical, greeting, refusal, or a remark that information is missing.
unclear - what it refers to cannot be resolved.
RULES: Only factual sentences have claims. Leave no claim out, add nothing, repeat none. Keep negations, hedges, \
numbers, units, dates, conditions and comparisons inside their claim; do not split causes or conditionals. \
"X said Y" stays an attribution. List items inherit their heading or stem. A table makes one claim per meaningful cell, \
with its header. Code makes none, only statements about it do. Claims keep the language of the text."""
_QUESTION = """
The text answers the question below: complete fragments from it ("Rome." can be a claim), but the question itself \
makes no claims."""
_AFTER = """\
Reply with {"sentences": [{"at": number, "check": ..., "claims": [texts]}]}: exactly <<count>>, one for each of \
<<which>>."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sentences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": {"type": "integer"},
                    "check": {"type": "string", "enum": list(CHECKS)},
                    "claims": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["at", "check", "claims"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["sentences"],
    "additionalProperties": False,
}
_READER = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and the number (from 0) of the sentence of the whole text that makes it.

    >>> Claim("The tower is 324 metres tall.", 0).sentence
    0
    """

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class _Sentence:
    check: str
    claims: tuple[str, ...]
    blank: int


@dataclass(frozen=True, slots=True)
class ExtractClaims:
    """Ask for the claims of a text, sentence by sentence; `question` is what the text answers.

    The answer is `Items[Claim]` in order of the text, each claim once. Flags: `dropped:N` unknown or repeated sentence
    numbers and blank claims; `duplicate_claims:N`; `unclear_sentences:N`. A blank text asks nothing and has no claims.
    `window` (start and stop, from 0) is set by `split`: which sentences one call asks about. The rules follow Claimify
    (arXiv 2502.10855), VeriScore (2406.19276) and molecular facts (2406.20079) in our words.

    >>> task = ExtractClaims("It opened in 1889. Lovely!", "When did it open?")
    >>> reply = {"sentences": [{"at": 1, "check": "factual", "claims": ["The tower opened in 1889."]},
    ...                        {"at": 2, "check": "non_factual", "claims": []}]}
    >>> task.read(reply).items
    (Claim(text='The tower opened in 1889.', sentence=0),)
    """

    text: str
    question: str | None = None
    window: tuple[int, int] | None = None

    kind: ClassVar[str] = "claims"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = True

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        window = None if self.window is None else list(self.window)
        return {"text": self.text, "question": self.question, "window": window}

    @property
    def schema(self) -> dict[str, Any]:
        """`sentences: [{at, check, claims}]`."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """The whole text with numbered sentences, of which the window's are asked."""
        wanted = self._wanted()
        which = range_of(wanted, "sentence")
        question = self.question if self.question and not is_blank(self.question) else None
        before = substitute(_BEFORE, {"which": which, "or_question": " or the question" if question else ""})
        after = substitute(_AFTER, {"count": counted(len(wanted), "entry", "entries"), "which": which})
        text = numbered(sentence.text for sentence in sentences(self.text))
        blocks = [("question", question), ("text", text)]
        return compose(before + (_QUESTION if question else ""), blocks, after, (), reason_language)

    def read(self, reply: Any) -> Items[Claim]:
        """The claims of the sentences asked. Raises `ReplyError`; sentences count from 1 as in the prompt."""
        wanted = self._wanted()
        reading = items.read_items(reply, _SHAPE, wanted)
        pairs = zip(wanted, reading.values, strict=True)
        claims = [Claim(claim, number - 1) for number, sentence in pairs for claim in sentence.claims]
        unclear = sum(sentence.check == "unclear" for sentence in reading.values)
        dropped = reading.dropped + sum(sentence.blank for sentence in reading.values)
        flags = [f"{name}:{n}" for name, n in (("dropped", dropped), ("unclear_sentences", unclear)) if n]
        return _distinct(claims, tuple(flags))

    def doubts(self, answer: Items[Claim]) -> tuple[int, ...]:
        """Nothing: a readable reply is taken as it is."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's sentences laid over the valid ones before."""
        return items.merge_items(previous, reply, _SHAPE, self._wanted())

    def vote(self, answers: Mapping[str, Items[Claim] | None], rule: Rule) -> Vote[Items[Claim]]:
        """The answer that all members who answered share. Raises `InputError` where they differ.

        Claims of different judges are different texts: a panel shares one extractor, or votes on scores.
        """
        given = [answer for _, answer in sorted(answers.items()) if answer is not None]
        if not given or any(answer != given[0] for answer in given):
            raise InputError('a panel cannot vote on claims: share one extractor, or use vote_on="scores"')
        return Vote(given[0], None)

    def split(self, max_tokens: int | None = None) -> Split:
        """Ten sentences a call, each with the whole text; nothing for a blank text."""
        parts = () if is_blank(self.text) else windows(self, len(sentences(self.text)), max_tokens)
        return Split(parts, _join if len(parts) != 1 else first_answer)

    def _wanted(self) -> range:
        return wanted_numbers(self.window, sentences(self.text))


def _read_sentence(number: int, item: Mapping[str, Any]) -> _Sentence:
    check = items.label(item.get("check"), CHECKS, "check")
    found = [items.text(claim, "each claim") for claim in items.listed(item, "claims")]
    claims = tuple(" ".join(claim.split()) for claim in found if not is_blank(claim))
    if claims and check != "factual":
        raise ReplyError("unparsed", f"a {check} sentence cannot have claims")
    return _Sentence(check, claims, len(found) - len(claims))


_SHAPE = items.Shape("sentences", "at", "sentence", _read_sentence, lambda read: (read.check, read.claims))


def _distinct(claims: Sequence[Claim], flags: tuple[str, ...]) -> Items[Claim]:
    kept: dict[str, Claim] = {}
    for claim in claims:
        kept.setdefault(fold(claim.text), claim)
    removed = len(claims) - len(kept)
    return Items(tuple(kept.values()), items.joined_flags(flags, [f"duplicate_claims:{removed}"] if removed else []))


def _join(answers: Sequence[Items[Claim]]) -> Items[Claim]:
    claims = [claim for answer in answers for claim in answer]
    return _distinct(claims, items.joined_flags(*(answer.flags for answer in answers)))


_SPECIMEN = "The hall is old. It was built in 1901, they say."
ExtractClaims.version = version_of((ExtractClaims(_SPECIMEN), ExtractClaims(_SPECIMEN, "How old?", (1, 2))), _READER)
