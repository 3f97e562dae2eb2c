"""Documents prepared for checking in one language: their sentences as read, word weights, and what matches a claim."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jurimetrics.judges.reading import Reading, Token, read
from jurimetrics.text import is_blank, sentences

# What a second sentence adds to the coverage counts in full beside the best one, and less far from it.
_FAR = 0.7


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence of the evidence: which document it stands in, verbatim, and how it reads.

    >>> Passage(0, "It rained.", read("It rained.", "en")).document
    0
    """

    document: int
    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Match:
    """How passages cover a claim: the best one and the one that adds most (at most two), and the share covered, 0-1.

    >>> Match((3,), 0.8).coverage
    0.8
    """

    passages: tuple[int, ...]
    coverage: float


class Passages:
    """The sentences of documents, an index of their words, and weights `log(1 + n / df)` (df of a new word: 1/2).

    >>> passages = Passages(("Rain fell in Oslo. Snow fell in Bergen.",), "en")
    >>> passages.match(read("Snow fell in Bergen.", "en").tokens)
    Match(passages=(1,), coverage=1.0)
    """

    def __init__(self, documents: Sequence[str], language: str) -> None:
        self.language = language
        self.items = tuple(
            Passage(at, piece.text, read(piece.text, language))
            for at, document in enumerate(documents)
            for piece in sentences(_unwrapped(document), None if language == "und" else language)
            if not is_blank(piece.text)
        )
        where: dict[str, list[int]] = defaultdict(list)
        names: set[str] = set()
        lower: set[str] = set()
        for at, passage in enumerate(self.items):
            for key in sorted(passage.reading.keys):
                where[key].append(at)
            for token in passage.reading.tokens:
                if token.kind == "name":
                    names.add(token.key)
                elif token.kind == "word" and not token.capital:
                    lower.add(token.shown.casefold())
        self._where = dict(where)
        self.names = frozenset(names)
        self.lower = frozenset(lower)
        self._new_word = math.log(1 + 2 * max(len(self.items), 1))

    def holding(self, key: str) -> list[int]:
        """The passages that hold a key, in order."""
        return self._where.get(key, [])

    def weight(self, key: str) -> float:
        """The inverse document frequency of a key over the passages."""
        found = len(self.holding(key))
        return math.log(1 + len(self.items) / found) if found else self._new_word

    def shares(self, weights: dict[str, float]) -> dict[int, float]:
        """For each passage that holds any of the keys: the share of their weight that it holds."""
        total = math.fsum(weights.values())
        hits: dict[int, list[float]] = defaultdict(list)
        for key, weight in weights.items():
            for at in self.holding(key):
                hits[at].append(weight)
        return {at: math.fsum(found) / total for at, found in sorted(hits.items())} if total else {}

    def match(self, tokens: Iterable[Token]) -> Match:
        """The passage that covers most of the tokens' weight, and the one that adds most to it."""
        weights = {key: self.weight(key) for key in dict.fromkeys(self.key_of(t) for t in tokens)}
        shares = self.shares(weights)
        if not shares:
            return Match((), 0.0)
        best = max(shares, key=lambda at: (round(shares[at], 9), -at))
        rest = {key: weight for key, weight in weights.items() if best not in self.holding(key)}
        total, left = math.fsum(weights.values()), math.fsum(rest.values())
        gains = {
            at: share * left / total * (1.0 if self.distance(at, best) == 1 else _FAR)
            for at, share in self.shares(rest).items()
        }
        if not gains:
            return Match((best,), shares[best])
        second = max(gains, key=lambda at: (round(gains[at], 9), -at))
        return Match((best, second), shares[best] + gains[second])

    def key_of(self, token: Token) -> str:
        """The key under which the passages hold a token: of a number's readings, the first that they know."""
        known = [key for key in (token.key, *token.other) if key in self._where]
        return known[0] if known else token.key

    def distance(self, a: int, b: int) -> int:
        """How many passages lie from one to another; far where they are of different documents."""
        return abs(a - b) if self.items[a].document == self.items[b].document else len(self.items) + 1

    def is_name(self, tokens: Sequence[Token], at: int) -> bool:
        """Whether a token is a name: by its capital, unless the documents write it small and no name stands beside
        it; at the opening of a sentence by the documents' own use of it, or by the name that follows."""
        token = tokens[at]
        before = token.adjacent and at > 0 and tokens[at - 1].kind == "name"
        follows = at + 1 < len(tokens) and tokens[at + 1].adjacent and tokens[at + 1].kind == "name"
        if token.kind == "name":
            return token.key in self.names or token.shown.casefold() not in self.lower or before or follows
        if not (token.kind == "word" and token.capital) or token.shown.casefold() in self.lower:
            return False
        return token.key in self.names or (follows and not in_calendar(tokens[at + 1]))


def in_calendar(token: Token) -> bool:
    """Whether a token is a month or a weekday.

    >>> in_calendar(read("in May", "en").tokens[0])
    True
    """
    return token.key.startswith(("month ", "day "))


def _unwrapped(document: str) -> str:
    """Lines broken within a sentence (a long line without an end mark, then a small letter) are one, offsets kept."""
    return re.sub(
        r"(?<=[^\n]{50}[^\s.!?:;])[ \t]*\n(?=[^\W\dA-Z_])(?=[^A-Z\n]{2})", lambda m: " " * len(m[0]), document
    )
