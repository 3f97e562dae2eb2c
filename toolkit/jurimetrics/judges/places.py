"""Numbers and names that the best passage has, but in another place of it: exchanged, repeated or mistaken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from jurimetrics.judges.comparison import Comparison, Problem
from jurimetrics.judges.passages import in_calendar
from jurimetrics.judges.reading import Token

# A table in one sentence must not cost every pair of its numbers.
_MOST_ITEMS = 8
# A range or a score: the order of its two numbers says something, that of a list does not.
_BETWEEN = r"(?<!\w){}\s*(?:-|–|to|bis|à|a|al|até|tot)\s*{}(?!\w)"
# "by" turns who did what around, so exchanged names may be right.
_PASSIVE = re.compile(r"\b(?:by|von|vom|par|por|da|dal|dalla|pelo|pela|door)\b")
# Word order is freer there, and nouns have capitals in German.
_FREE_ORDER = ("de", "nl")

Span = tuple[int, int]


def wrong_places(comparison: Comparison) -> Iterator[Problem]:
    """Numbers or names in a wrong place of the best passage: put right, the claim follows the passage better.

    >>> from jurimetrics.judges.passages import Passages
    >>> beside = Comparison(Passages(("Smith beat Jones in the final.",), "en"), "Jones beat Smith in the final.")
    >>> [problem.label for problem in wrong_places(beside)]
    ['contradicted']
    """
    if not comparison.match.passages:
        return
    passage = comparison.passages.items[comparison.match.passages[0]]
    theirs = [t.key for t in passage.reading.tokens]
    in_order = _in_order(comparison.keys, theirs)
    turned = bool(_PASSIVE.search(comparison.claim)) != bool(_PASSIVE.search(passage.text))
    if in_order == len(comparison.keys) or turned:
        return
    spans = _spans(comparison.tokens, [comparison.is_name(i) for i in range(len(comparison.tokens))])
    known = [(a, b) for a, b in spans if set(comparison.keys[a:b]) <= set(theirs)][:_MOST_ITEMS]
    for problem in (*_exchanged(comparison, known, in_order), *_mistaken(comparison, known, in_order)):
        yield Problem(problem.label, f'{problem.reason}: "{passage.text}"', problem.rule)
        return


def _exchanged(comparison: Comparison, known: list[Span], in_order: int) -> Iterator[Problem]:
    tokens, keys = comparison.tokens, comparison.keys
    theirs = comparison.passages.items[comparison.match.passages[0]].reading.tokens
    order = [t.key for t in theirs]
    for at, (a, b) in enumerate(known):
        for c, d in known[at + 1 :]:
            first, second = keys[a:b], keys[c:d]
            if not _alike(tokens[a], tokens[c]) or first == second:
                continue
            if comparison.passages.language in _FREE_ORDER and tokens[a].kind != "number":
                continue
            shown = [_shown(tokens, span) for span in ((a, b), (c, d))]
            if b == c and not re.search(_BETWEEN.format(*map(re.escape, shown)), comparison.claim):
                continue
            # "Toole, head of Hollins" is not "Hollins head Toole" with its names exchanged.
            there = [theirs[order.index(keys[i])].preposition for i in (c, a)]
            if tokens[a].kind != "number" and [tokens[a].preposition, tokens[c].preposition] != there:
                continue
            back = [*keys[:a], *second, *keys[b:c], *first, *keys[d:]]
            if _in_order(back, order) - in_order >= (1 if b == c else 2):
                said = f"{shown[0]!r} and {shown[1]!r} stand in each other's place"
                yield Problem("contradicted", said, _rule(tokens[a]))


def _mistaken(comparison: Comparison, known: list[Span], in_order: int) -> Iterator[Problem]:
    tokens, keys = comparison.tokens, comparison.keys
    theirs = comparison.passages.items[comparison.match.passages[0]].reading.tokens
    order = [t.key for t in theirs]
    spans = _spans(theirs, [comparison.passages.is_name(theirs, i) for i in range(len(theirs))])
    rivals = [(c, d) for c, d in spans if set(order[c:d]).isdisjoint(keys)][:_MOST_ITEMS]
    for a, b in known:
        own = [(i, i + b - a) for i in range(len(order)) if order[i : i + b - a] == keys[a:b]]
        at_home = max((_neighbours(keys, (a, b), order, span) for span in own), default=0)
        for c, d in rivals:
            if not _alike(tokens[a], theirs[c]):
                continue
            gain = _in_order([*keys[:a], *order[c:d], *keys[b:]], order) - in_order
            closer = gain >= 1 and at_home < 2 == _neighbours(keys, (a, b), order, (c, d))
            if closer or gain >= 2 + max(d - c - (b - a), 0):
                said = f"{_shown(tokens, (a, b))!r}, where the evidence says {_shown(theirs, (c, d))!r}"
                yield Problem("contradicted", said, _rule(tokens[a]))


def _neighbours(mine: Sequence[str], span: Span, theirs: Sequence[str], there: Span) -> int:
    """How many of the two words beside a stretch of the claim stand beside one of the passage; both may open."""
    (a, b), (c, d) = span, there
    before = (a == 0 and c == 0) or (a > 0 and c > 0 and mine[a - 1] == theirs[c - 1])
    after = b < len(mine) and d < len(theirs) and mine[b] == theirs[d]
    return before + after


def _in_order(mine: list[str], theirs: list[str]) -> int:
    return sum(b.size for b in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks())


def _spans(tokens: Sequence[Token], names: Sequence[bool]) -> list[Span]:
    """The numbers, and the names with all their words, as position ranges; the calendar is left out."""
    found: list[Span] = []
    for i, token in enumerate(tokens):
        if token.kind == "number":
            # The day of a date goes with its month, and comes before or behind it.
            if not any(in_calendar(near) for near in tokens[max(i - 1, 0) : i + 2]):
                found.append((i, i + 1))
        elif names[i] and not in_calendar(token):
            if found and found[-1][1] == i and token.adjacent and names[i - 1]:
                found[-1] = (found[-1][0], i + 1)
            else:
                found.append((i, i + 1))
    return found


def _shown(tokens: Sequence[Token], span: Span) -> str:
    return " ".join(token.shown for token in tokens[slice(*span)])


def _rule(token: Token) -> Literal["number", "name"]:
    return "number" if token.kind == "number" else "name"


def _alike(a: Token, b: Token) -> bool:
    return (a.kind == "number") == (b.kind == "number")
