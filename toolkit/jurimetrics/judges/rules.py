"""The rules on top of copying: a number, a name, a negation or an addition that the evidence does not bear out.

Each rule looks at the place: a number that occurs somewhere else in the documents does not support a claim about these
words. Only numbers, names and negation make a claim `contradicted`, and only where the evidence covers the rest of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from jurimetrics.judges import lexicon
from jurimetrics.judges.passages import Match, Passages
from jurimetrics.judges.reading import Reading, Token, read

# How much of the rest of a claim its best passage must cover for a difference to be a contradiction.
_OTHERWISE_COVERED = 0.5
# A number or name stands in its place if a passage holds it whose share of the words around it is near the best share.
_NEAR_BEST = 0.6
_AROUND = 4
_DEMONYM = re.compile(r"(?:n|an|ian|s|ese|i|ish|er|ers|r)")


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that fires: what it makes of the claim, and the reason with the words it acts on."""

    label: Literal["contradicted", "unknown"]
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of the claim that stands otherwise in a passage: token positions `[a, b)` and `[c, d)`."""

    a: int
    b: int
    c: int
    d: int


class Comparison:
    """One claim beside the passages: alignments are made once and shared by the rules."""

    def __init__(self, passages: Passages, reading: Reading, match: Match, copied: float) -> None:
        self.passages = passages
        self.reading = reading
        self.tokens = reading.tokens
        self.match = match
        self.copied = copied
        self.keys = [passages.key_of(t) for t in self.tokens]
        self._changes: dict[int, list[Change]] = {}

    def changes(self, at: int) -> list[Change]:
        """Where the claim and a passage differ, by the longest common stretches of their content."""
        if at not in self._changes:
            theirs = [t.key for t in self.passages.items[at].reading.tokens]
            steps = SequenceMatcher(None, self.keys, theirs, autojunk=False).get_opcodes()
            self._changes[at] = [Change(a, b, c, d) for step, a, b, c, d in steps if step != "equal"]
        return self._changes[at]

    def around(self, at: int) -> dict[str, float]:
        """The words around a token of the claim, weighted by rarity and nearness."""
        weights: dict[str, float] = {}
        for distance in range(1, _AROUND + 1):
            for near in (at - distance, at + distance):
                if 0 <= near < len(self.keys) and self.keys[near] != self.keys[at]:
                    key = self.keys[near]
                    weights[key] = max(weights.get(key, 0.0), self.passages.weight(key) / distance)
        return weights

    def covered_without(self, at: int) -> bool:
        """Whether the best passage covers the claim apart from one token."""
        weights = {k: self.passages.weight(k) for i, k in enumerate(self.keys) if i != at and k != self.keys[at]}
        return max(self.passages.shares(weights).values(), default=0.0) >= _OTHERWISE_COVERED


def first_problem(comparison: Comparison) -> Problem | None:
    """The first rule that fires: contradictions by number, name and negation before what is merely not there."""
    found = [
        *_negation(comparison),
        *_items(comparison),
        *_additions(comparison),
    ]
    return next((p for p in found if p.label == "contradicted"), found[0] if found else None)


def _items(comparison: Comparison) -> Iterator[Problem]:
    for at, token in enumerate(comparison.tokens):
        if token.kind == "number":
            problem = _misplaced(comparison, at, "number")
        elif comparison.passages.is_name(comparison.tokens, at):
            problem = _misplaced(comparison, at, "name")
        elif token.capital and token.kind == "word":
            problem = _opening_name(comparison, at)
        else:
            continue
        if problem is not None:
            yield problem


def _misplaced(comparison: Comparison, at: int, kind: str) -> Problem | None:
    passages, token = comparison.passages, comparison.tokens[at]
    hosts = _hosts(comparison, at, kind)
    local = passages.shares(comparison.around(at))
    best = max(local, key=lambda p: (round(local[p], 9), hosts.get(p, 0.0) == 1.0, -p), default=None)
    instead = _instead(comparison, at, best, kind) if best is not None else None
    where = f'"{passages.items[best].text}"' if best is not None else "the documents"
    if instead is not None and not _rounded(token, instead):
        label: Literal["contradicted", "unknown"] = "contradicted" if comparison.covered_without(at) else "unknown"
        if not token.soft or label == "contradicted":
            return Problem(label, f"{kind} {token.shown!r}, where the evidence says {instead.shown!r}: {where}")
    if token.soft or (instead is not None and _rounded(token, instead)):
        return None
    if not hosts:
        return Problem("unknown", f"{kind} {token.shown!r} is not in the documents")
    if best is None:
        return None
    host = max(local.get(p, 0.0) * nearness for p, nearness in hosts.items())
    if host >= _NEAR_BEST * local[best] or (local[best] < 0.2):
        return None
    return Problem("unknown", f"{kind} {token.shown!r} is in the documents, but not beside these words")


def _hosts(comparison: Comparison, at: int, kind: str) -> dict[int, float]:
    """The passages that hold a number or name (1), and their neighbours, which may speak of it (less)."""
    passages = comparison.passages
    token = comparison.tokens[at]
    keys = [comparison.keys[at]] if kind == "number" else _same_name(passages, token)
    found: dict[int, float] = {}
    reach = ((0, 1.0), (1, 0.8), (-1, 0.8)) if kind == "number" else ((0, 1.0), (1, 0.95), (2, 0.9), (3, 0.8), (-1, 0.8))
    for key in keys:
        for holder in passages.holding(key):
            for step, nearness in reach:
                near = holder + step
                if 0 <= near < len(passages.items) and passages.distance(holder, near) == abs(step):
                    found[near] = max(found.get(near, 0.0), nearness)
    return found


def _same_name(passages: Passages, token: Token) -> list[str]:
    """A name's keys in the documents: itself, its demonym, or its initials ("World Health Organization", WHO)."""
    if passages.holding(token.key):
        return [token.key]
    return sorted(n for n in passages.names if _akin(n, token.key))


def _akin(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=lambda n: (len(n), n))
    return a == b or (len(short) >= 4 and long.startswith(short) and bool(_DEMONYM.fullmatch(long[len(short) :])))


def _instead(comparison: Comparison, at: int, best: int, kind: str) -> Token | None:
    """The other number or name that a passage has in the place of this one, if it has one."""
    passages = comparison.passages
    theirs = passages.items[best].reading.tokens
    for change in comparison.changes(best):
        if not change.a <= at < change.b or change.c == change.d or change.b - change.a > 4 or change.d - change.c > 5:
            continue
        there = range(change.c, change.d)
        mine = comparison.tokens[change.a : change.b]
        if kind == "number":
            rivals = [theirs[i] for i in there if theirs[i].kind == "number" and theirs[i].key.endswith("th") == comparison.keys[at].endswith("th")]
        else:
            rivals = [theirs[i] for i in there if passages.is_name(theirs, i) and _calendar(theirs[i]) == _calendar(comparison.tokens[at])]
        own = {t.key for t in mine}
        rivals = [r for r in rivals if r.key not in own and not any(_akin(r.key, k) for k in own)]
        if rivals and not _initials(mine, [theirs[i] for i in there]):
            return rivals[0]
    return None


def _calendar(token: Token) -> bool:
    return token.key.startswith(("month ", "day "))


def _initials(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    for short, long in ((mine, theirs), (theirs, mine)):
        letters = "".join(t.shown[0] for t in long if t.capital or t.kind == "name")
        if any(t.shown.isupper() and 1 < len(t.shown) <= 5 and t.shown in letters for t in short):
            return True
    return False


def _opening_name(comparison: Comparison, at: int) -> Problem | None:
    """A capital that opens a sentence is taken for a name only where the evidence has another name in its place."""
    token = comparison.tokens[at]
    if comparison.passages.holding(token.key) or not comparison.match.passages or comparison.passages.language == "de":
        return None
    instead = _instead(comparison, at, comparison.match.passages[0], "name")
    if instead is None or instead.capital is False and not instead.kind == "name":
        return None
    return Problem("unknown", f"{token.shown!r} is not in the documents, which have {instead.shown!r} in its place")


def _rounded(token: Token, other: Token) -> bool:
    if not token.about or token.kind != "number" or other.kind != "number":
        return False
    try:
        mine, theirs = float(token.key.strip("#th")), float(other.key.strip("#th"))
    except ValueError:
        return False
    return theirs >= 10 and abs(mine - theirs) <= 0.05 * theirs


def _scope(reading: Reading, index: int, reach: int) -> frozenset[str]:
    return frozenset(t.key for t in reading.tokens[max(index - reach, 0) : index + reach])


def _negation(comparison: Comparison) -> Iterator[Problem]:
    passages, mine = comparison.passages, comparison.reading
    near = comparison.match.passages
    for word, index in mine.negations:
        scope = _scope(mine, index, 2)
        met = any(
            scope & _scope(passages.items[p].reading, i, 3) for p in near for _, i in passages.items[p].reading.negations
        )
        if not met and near:
            yield _negated(comparison, f"negation {word!r}, which the evidence does not have there", near[0])
    for p in near[:1]:
        theirs = passages.items[p].reading
        for word, index in theirs.negations:
            following = theirs.tokens[index : index + 1] or theirs.tokens[-1:]
            if not following or following[0].key not in mine.keys:
                continue
            if not any(_scope(mine, i, 3) & _scope(theirs, index, 2) for _, i in mine.negations):
                yield _negated(comparison, f"the evidence has the negation {word!r} there", p)
    yield from _prefixed(comparison)


def _prefixed(comparison: Comparison) -> Iterator[Problem]:
    for p in comparison.match.passages[:1]:
        theirs = comparison.passages.items[p].reading.tokens
        for change in comparison.changes(p):
            for a in comparison.tokens[change.a : change.b]:
                for b in theirs[change.c : change.d]:
                    short, long = sorted((a.key, b.key), key=lambda k: (len(k), k))
                    if len(short) >= 4 and any(long == prefix + short for prefix in lexicon.NEGATING_PREFIXES):
                        yield _negated(comparison, f"{a.shown!r}, where the evidence says {b.shown!r}", p)
                    elif (a.key, b.key) in lexicon.OPPOSITES and a.key not in comparison.passages.items[p].reading.keys:
                        yield Problem("unknown", f"{a.shown!r}, where the evidence says the opposite, {b.shown!r}")


def _negated(comparison: Comparison, reason: str, at: int) -> Problem:
    weights = {k: comparison.passages.weight(k) for k in dict.fromkeys(comparison.keys)}
    covered = comparison.passages.shares(weights).get(at, 0.0) >= _OTHERWISE_COVERED
    return Problem("contradicted" if covered else "unknown", f'{reason}: "{comparison.passages.items[at].text}"')


def _additions(comparison: Comparison) -> Iterator[Problem]:
    """Stretches of the claim that no passage has: two new words in a row that stand for nothing in the evidence."""
    passages = comparison.passages
    if not comparison.match.passages:
        return
    best = comparison.match.passages[0]
    theirs = passages.items[best].reading.tokens
    for change in comparison.changes(best):
        stretch = range(change.a, change.b)
        new = [i for i in stretch if not passages.holding(comparison.keys[i]) and comparison.tokens[i].kind == "word"]
        run = _longest_run(new)
        spare = sum(t.key not in comparison.reading.keys for t in theirs[change.c : change.d])
        if len(run) >= (2 if spare == 0 else 3):
            shown = " ".join(comparison.tokens[i].shown for i in run)
            yield Problem("unknown", f"an addition that is not in the documents: {shown!r}")
        elif len(stretch) >= 3 and len(new) < 2:
            weights = {comparison.keys[i]: passages.weight(comparison.keys[i]) for i in stretch}
            if max(passages.shares(weights).values(), default=0.0) < 0.5:
                shown = " ".join(comparison.tokens[i].shown for i in stretch)
                yield Problem("unknown", f"words that the documents do not have together: {shown!r}")


def _longest_run(positions: list[int]) -> list[int]:
    best: list[int] = []
    run: list[int] = []
    for at in positions:
        run = [*run, at] if run and at == run[-1] + 1 else [at]
        best = run if len(run) > len(best) else best
    return best
