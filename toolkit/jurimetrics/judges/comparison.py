"""One claim laid beside the passages that match it: what is aligned, what differs, and where."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from jurimetrics.judges.passages import Passages
from jurimetrics.judges.reading import read

# How much of the rest of a claim its best passage must cover for a difference to be a contradiction.
OTHERWISE_COVERED = 0.5
_AROUND = 4


Rule = Literal["number", "name", "negation", "opposite", "addition", "question"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that fires: what it makes of the claim, and the reason with the words it acts on.

    >>> Problem("unknown", "number '12' is not in the documents", "number").label
    'unknown'
    """

    label: Literal["contradicted", "unknown"]
    reason: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of the claim, token positions `[a, b)`, that stands otherwise in a passage, there `[c, d)`.

    >>> Change(2, 3, 2, 4).d
    4
    """

    a: int
    b: int
    c: int
    d: int


class Comparison:
    """One claim beside the passages: alignments are made once and shared by the rules.

    >>> beside = Comparison(Passages(("Snow fell in Bergen.",), "en"), "Snow fell in Oslo.")
    >>> beside.changes(0), beside.aligned(0)
    ([Change(a=2, b=3, c=2, d=3)], {0: 0, 1: 1})
    """

    def __init__(self, passages: Passages, claim: str, question: str = "") -> None:
        self.passages = passages
        self.claim = claim
        self.question = question
        self.reading = reading = read(claim, passages.language)
        self.tokens = reading.tokens
        self.match = passages.match(reading.tokens)
        self.cased = claim != claim.lower()
        self.keys = [passages.key_of(t) for t in self.tokens]
        self._changes: dict[int, list[Change]] = {}
        self._aligned: dict[int, dict[int, int]] = {}

    def changes(self, at: int) -> list[Change]:
        """Where the claim and a passage differ, by the longest common stretches of their content."""
        if at not in self._changes:
            theirs = [t.key for t in self.passages.items[at].reading.tokens]
            steps = SequenceMatcher(None, self.keys, theirs, autojunk=False).get_opcodes()
            self._changes[at] = [Change(a, b, c, d) for step, a, b, c, d in steps if step != "equal"]
        return self._changes[at]

    def aligned(self, at: int) -> dict[int, int]:
        """A passage's token positions that the claim has in the same order, to the claim's positions."""
        if at in self._aligned:
            return self._aligned[at]
        mine = set(range(len(self.tokens)))
        theirs = set(range(len(self.passages.items[at].reading.tokens)))
        for change in self.changes(at):
            mine -= set(range(change.a, change.b))
            theirs -= set(range(change.c, change.d))
        self._aligned[at] = dict(zip(sorted(theirs), sorted(mine), strict=True))
        return self._aligned[at]

    def phrase(self, at: int) -> tuple[int, int]:
        """The range of a token with the names directly beside it: "Joan Price" is one name."""
        first, end = at, at + 1
        if self.tokens[at].kind == "number" or not self.is_name(at):
            return first, end
        while first > 0 and self.tokens[first].adjacent and self.is_name(first - 1):
            first -= 1
        while end < len(self.tokens) and self.tokens[end].adjacent and self.is_name(end):
            end += 1
        return first, end

    def around(self, at: int) -> dict[str, float]:
        """The words around a token of the claim (around all its name), weighted by rarity and nearness."""
        weights: dict[str, float] = {}
        first, end = self.phrase(at)
        for distance in range(1, _AROUND + 1):
            for near in (first - distance, end - 1 + distance):
                if 0 <= near < len(self.keys) and self.keys[near] not in self.keys[first:end]:
                    key = self.keys[near]
                    weights[key] = max(weights.get(key, 0.0), self.passages.weight(key) / distance)
        return weights

    def is_name(self, at: int) -> bool:
        """Whether a token of the claim is a name; in a claim without capitals, what the documents know as one."""
        if self.cased:
            return self.passages.is_name(self.tokens, at)
        return self.keys[at] in self.passages.names and self.tokens[at].shown.casefold() not in self.passages.lower

    def covered_without(self, at: int) -> bool:
        """Whether the best passage covers the claim apart from one token."""
        weights = {k: self.passages.weight(k) for i, k in enumerate(self.keys) if i != at and k != self.keys[at]}
        return max(self.passages.shares(weights).values(), default=0.0) >= OTHERWISE_COVERED
