"""The rules on top of copying: a number, a name, a negation or an addition that the evidence does not bear out.

Each rule looks at the place: a number that occurs somewhere else in the documents does not support a claim about these
words. Only numbers, names and negation make a claim `contradicted`, and only where the evidence covers the rest of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from jurimetrics.judges import lexicon
from jurimetrics.judges.comparison import Change, Comparison, Problem
from jurimetrics.judges.negation import negation_problems
from jurimetrics.judges.passages import Passages, in_calendar
from jurimetrics.judges.places import wrong_places
from jurimetrics.judges.reading import Token, read

# A number or name stands in its place if a passage holds it whose share of the words around it is near the best share.
_NEAR_BEST = 0.6
_REACH = 5
# A passage speaks of the same matter if it has this share of the words around a number or name.
_SAME_MATTER = 0.4
_DEMONYM = re.compile(r"(?:n|an|ian|s|ese|i|ish|er|ers|r)")


def first_problem(comparison: Comparison) -> Problem | None:
    """The first rule that fires, contradictions before what is merely not there; None where none does.

    >>> from jurimetrics.judges.passages import Passages
    >>> first_problem(Comparison(Passages(("Snow fell in Bergen.",), "en"), "Snow fell in Oslo.")).label
    'contradicted'
    """
    found = [
        *negation_problems(comparison),
        *_items(comparison),
        *wrong_places(comparison),
        *_additions(comparison),
        *_off_question(comparison),
    ]
    return next((p for p in found if p.label == "contradicted"), found[0] if found else None)


def _items(comparison: Comparison) -> Iterator[Problem]:
    for at, token in enumerate(comparison.tokens):
        if token.kind == "number":
            problem = _misplaced(comparison, at, "number")
        elif comparison.is_name(at):
            problem = _misplaced(comparison, at, "name")
        elif token.capital and token.kind == "word":
            problem = _opening_name(comparison, at)
        else:
            continue
        if problem is not None:
            yield problem


def _misplaced(comparison: Comparison, at: int, kind: Literal["number", "name"]) -> Problem | None:
    passages, token = comparison.passages, comparison.tokens[at]
    hosts = _hosts(comparison, at, kind)
    local = passages.shares(comparison.around(at))
    best = max(local, key=lambda p: (round(local[p], 9), hosts.get(p, 0.0) == 1.0, -p), default=None)
    instead = None
    if best is not None and local[best] >= _SAME_MATTER:
        instead = _instead(comparison, at, best, kind) or (_same_role(comparison, at, best) if kind == "name" else None)
    where = f'"{passages.items[best].text}"' if best is not None else "the documents"
    if instead is not None and not _rounded(token, instead):
        label: Literal["contradicted", "unknown"] = "contradicted" if comparison.covered_without(at) else "unknown"
        if not token.soft or label == "contradicted":
            return Problem(label, f"{kind} {token.shown!r}, where the evidence says {instead.shown!r}: {where}", kind)
    if token.soft or (instead is not None and _rounded(token, instead)):
        return None
    if not hosts:
        return Problem("unknown", f"{kind} {token.shown!r} is not in the documents", kind)
    if best is None:
        return None
    host = max(local.get(p, 0.0) * nearness for p, nearness in hosts.items())
    if host >= _NEAR_BEST * local[best] or (local[best] < 0.2):
        return None
    return Problem("unknown", f"{kind} {token.shown!r} is in the documents, but not beside these words", kind)


def _hosts(comparison: Comparison, at: int, kind: str) -> dict[int, float]:
    """The passages that hold a number or name (1), and their neighbours, which may speak of it (less)."""
    passages = comparison.passages
    token = comparison.tokens[at]
    keys = [comparison.keys[at]] if kind == "number" else _same_name(passages, token)
    found: dict[int, float] = {}
    reach = (
        ((0, 1.0), (1, 0.8), (-1, 0.8)) if kind == "number" else ((0, 1.0), (1, 0.95), (2, 0.9), (3, 0.8), (-1, 0.8))
    )
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
    passages, mine = comparison.passages, comparison.tokens
    theirs = passages.items[best].reading.tokens
    for change in comparison.changes(best):
        if not change.a <= at < change.b or change.c == change.d or change.b - change.a > 4:
            continue
        if _moved(comparison, at, best, change) or (kind == "name" and _pronoun(comparison, at, best, change)):
            continue
        there = _beside_flanks(comparison, change)
        if kind == "number":
            ordinal = comparison.keys[at].endswith("th")
            rivals = [i for i in there if theirs[i].kind == "number" and theirs[i].key.endswith("th") == ordinal]
        else:
            calendar = in_calendar(mine[at])
            rivals = [i for i in there if passages.is_name(theirs, i) and in_calendar(theirs[i]) == calendar]
            rivals = [i for i in rivals if _same_phrase(comparison, at, best, i) and _led_alike(mine, at, theirs, i)]
        own = {t.key for t in mine[change.a : change.b]}
        rivals = [i for i in rivals if not any(_akin(theirs[i].key, k) for k in own)]
        if rivals and not _initials(mine[change.a : change.b], [theirs[i] for i in there]):
            return theirs[rivals[0]]
    return None


def _beside_flanks(comparison: Comparison, change: Change) -> list[int]:
    """The positions of a passage's stretch that are near a word which it shares with the claim."""
    left = (
        range(change.c, min(change.d, change.c + _REACH)) if change.a > 0 or change.d - change.c <= _REACH else range(0)
    )
    right = range(max(change.c, change.d - _REACH), change.d) if change.b < len(comparison.tokens) else range(0)
    return sorted({*left, *right})


def _led_alike(mine: Sequence[Token], at: int, theirs: Sequence[Token], rival: int) -> bool:
    while at > 0 and mine[at].adjacent and mine[at - 1].kind == "name":
        at -= 1
    while rival > 0 and theirs[rival].adjacent and theirs[rival - 1].kind == "name":
        rival -= 1
    return mine[at].preposition == theirs[rival].preposition


def _pronoun(comparison: Comparison, at: int, best: int, change: Change) -> bool:
    """Whether the claim opens with a name where the passage opens with a pronoun, and names it up to three before."""
    passages = comparison.passages
    opens = re.match(r"\W*(\w+)", passages.items[best].text)
    if change.a > 0 or opens is None or opens[1].casefold() not in lexicon.PRONOUNS:
        return False
    named = passages.holding(comparison.keys[at])
    return any(0 < best - p <= 3 and passages.distance(p, best) == best - p for p in named)


def _same_role(comparison: Comparison, at: int, best: int) -> Token | None:
    """Whom a passage gives the word before a name: "Sheriff Dale" for "Sheriff Ramon", whom the documents never call so."""
    passages, role = comparison.passages, comparison.keys[at - 1]
    if at == 0 or not comparison.tokens[at].adjacent or comparison.tokens[at - 1].kind == "number":
        return None

    def called(p: int) -> list[Token]:
        theirs = passages.items[p].reading.tokens
        pairs = [i for i in range(1, len(theirs)) if theirs[i].adjacent and theirs[i - 1].key == role]
        return [theirs[i] for i in pairs if passages.is_name(theirs, i)]

    if any(t.key == comparison.keys[at] for p in passages.holding(comparison.keys[at]) for t in called(p)):
        return None
    others = [t for t in called(best) if not any(_akin(t.key, key) for key in comparison.keys)]
    return others[0] if others else None


def _moved(comparison: Comparison, at: int, best: int, change: Change) -> bool:
    """Whether the passage has this word elsewhere and the place is not plainly this one: moved, and not replaced."""
    key, mine = comparison.keys[at], comparison.keys
    theirs = [t.key for t in comparison.passages.items[best].reading.tokens]
    if mine.count(key) > theirs.count(key):
        return False
    starts, ends = change.a == 0 and change.c == 0, change.b == len(mine) and change.d == len(theirs)
    left = change.a > 0 and change.c > 0 and mine[change.a - 1] == theirs[change.c - 1]
    right = change.b < len(mine) and change.d < len(theirs) and mine[change.b] == theirs[change.d]
    flanked = (left or starts) and (right or ends) and (left or right)
    return not (flanked and change.b - change.a == change.d - change.c <= 2)


def _same_phrase(comparison: Comparison, at: int, best: int, rival: int) -> bool:
    """ "Ana" of "Ana Sorel" has a rival only beside "Sorel": another name elsewhere is another person."""
    theirs = comparison.passages.items[best].reading.tokens
    back = {a: e for e, a in comparison.aligned(best).items()}
    after, before = back.get(at + 1), back.get(at - 1)
    if after is not None and comparison.tokens[at + 1].adjacent and comparison.is_name(at + 1):
        return rival < after and all(theirs[i].adjacent for i in range(rival + 1, after + 1))
    if before is not None and comparison.tokens[at].adjacent and comparison.is_name(at - 1):
        return rival > before and all(theirs[i].adjacent for i in range(before + 1, rival + 1))
    # The rest of a name that the claim has too ("Leo" of "Leo Marsh") is nobody else.
    aligned = comparison.aligned(best)
    joined = rival + 1 in aligned and theirs[rival + 1].adjacent and comparison.passages.is_name(theirs, rival + 1)
    return not joined and not (rival - 1 in aligned and theirs[rival].adjacent and theirs[rival - 1].kind == "name")


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
    if instead is None or (not instead.capital and instead.kind != "name"):
        return None
    return Problem(
        "unknown", f"{token.shown!r} is not in the documents, which have {instead.shown!r} in its place", "name"
    )


def _rounded(token: Token, other: Token) -> bool:
    if not token.about or token.kind != "number" or other.kind != "number":
        return False
    try:
        mine, theirs = float(token.key.strip("#th")), float(other.key.strip("#th"))
    except ValueError:
        return False
    return theirs >= 10 and abs(mine - theirs) <= 0.05 * theirs


def _additions(comparison: Comparison) -> Iterator[Problem]:
    """Stretches of the claim that no passage has: two new words in a row that stand for nothing in the evidence."""
    passages = comparison.passages
    if not comparison.match.passages:
        return
    best = comparison.match.passages[0]
    theirs = passages.items[best].reading.tokens
    for change in comparison.changes(best):
        stretch = range(change.a, change.b)
        new = [i for i in stretch if _is_new(comparison, i)]
        run = _longest_run(new)
        spare = sum(t.key not in comparison.reading.keys for t in theirs[change.c : change.d])
        if len(run) >= (2 if spare == 0 else 3):
            shown = " ".join(comparison.tokens[i].shown for i in run)
            yield Problem("unknown", f"an addition that is not in the documents: {shown!r}", "addition")
        elif len(stretch) >= 3 or (len(stretch) == 2 and new and change.c == change.d):
            weights = {comparison.keys[i]: passages.weight(comparison.keys[i]) for i in stretch}
            if max(passages.shares(weights).values(), default=0.0) < 0.5:
                shown = " ".join(comparison.tokens[i].shown for i in stretch)
                yield Problem("unknown", f"words that the documents do not have together: {shown!r}", "addition")


def _is_new(comparison: Comparison, at: int) -> bool:
    key = comparison.keys[at]
    bleached = comparison.passages.language == "en" and key in lexicon.BLEACHED
    return comparison.tokens[at].kind == "word" and not bleached and not comparison.passages.holding(key)


def _off_question(comparison: Comparison) -> Iterator[Problem]:
    """A fragment must stand in or beside the sentences that match its question best."""
    passages, mine = comparison.passages, set(comparison.keys)
    if not comparison.question or not comparison.tokens or len(comparison.claim.split()) > 3:
        return
    asked = {t.key: passages.weight(t.key) for t in read(comparison.question, passages.language).tokens}
    shares = passages.shares(
        {key: weight for key, weight in asked.items() if key not in mine and passages.holding(key)}
    )
    hosts = {near for key in sorted(mine) for held in passages.holding(key) for near in (held - 1, held, held + 1)}
    best = max(shares.values(), default=0.0)
    if hosts and best >= 0.5 and max(shares.get(h, 0.0) for h in hosts) < _NEAR_BEST * best:
        yield Problem("unknown", "it is in the documents, but not beside the words of the question", "question")


def _longest_run(positions: list[int]) -> list[int]:
    best: list[int] = []
    run: list[int] = []
    for at in positions:
        run = [*run, at] if run and at == run[-1] + 1 else [at]
        best = run if len(run) > len(best) else best
    return best
