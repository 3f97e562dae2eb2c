"""Negation between a claim and its evidence: words that deny, and words that turn into their opposite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from jurimetrics.judges import lexicon
from jurimetrics.judges.comparison import OTHERWISE_COVERED, Comparison, Problem
from jurimetrics.judges.reading import stem


def negation_problems(comparison: Comparison) -> Iterator[Problem]:
    """Each negation of the claim must answer to one of the evidence at the same words, and the other way round.

    >>> from jurimetrics.judges.passages import Passages
    >>> beside = Comparison(Passages(("Snow fell in Bergen.",), "en"), "Snow did not fall in Bergen.")
    >>> [problem.label for problem in negation_problems(beside)]
    ['contradicted']
    """
    near = comparison.match.passages
    if not near:
        return
    unmet = list(range(len(comparison.reading.negations)))
    for p in near:
        theirs = comparison.passages.items[p].reading
        met = _answered(comparison, p, unmet)
        unmet = [mine for mine in unmet if mine not in met]
        # Two negations of the same words are one: "did not, and never will, agree".
        answered = {theirs.negations[n][1] for n in met.values()}
        best = comparison.passages.items[near[0]].reading.keys if p != near[0] else frozenset()
        for word, index in theirs.negations:
            at = comparison.aligned(p).get(min(index, len(theirs.tokens) - 1))
            if at is not None and index not in answered and comparison.keys[at] not in best:
                yield _negated(comparison, f"the evidence has the negation {word!r} there", p)
    for mine in unmet:
        word = comparison.reading.negations[mine][0]
        yield _negated(comparison, f"negation {word!r}, which the evidence does not have there", near[0])
    yield from _prefixed(comparison)


def _answered(comparison: Comparison, p: int, unmet: list[int]) -> dict[int, int]:
    """Which negation of the claim answers to which one of a passage: the same word first, then any in the place."""
    said, theirs = comparison.reading.negations, comparison.passages.items[p].reading.negations
    met: dict[int, int] = {}
    for same_word in (True, False):
        for mine in unmet:
            for n, (word, _) in enumerate(theirs):
                free = mine not in met and n not in met.values()
                if free and (word == said[mine][0] or not same_word) and _same_place(comparison, p, mine, n):
                    met[mine] = n
    return met


def _same_place(comparison: Comparison, p: int, mine: int, theirs: int) -> bool:
    """Whether two negations stand at the same words: the words next to them are aligned, or shared where none is."""
    reading = comparison.passages.items[p].reading
    i, k = comparison.reading.negations[mine][1], reading.negations[theirs][1]
    aligned = comparison.aligned(p)
    back = {a: e for e, a in aligned.items()}
    beside = [back[at] for at in (i, i - 1) if at in back]
    if beside:
        return any(k - 2 <= at <= k + 1 for at in beside)
    around = {t.key for t in comparison.tokens[max(i - 2, 0) : i + 2]}
    return any(t.key in around for t in reading.tokens[max(k - 3, 0) : k + 3])


@lru_cache(maxsize=8)
def _opposites(language: str) -> frozenset[frozenset[str]]:
    pairs = lexicon.OPPOSITES.get(language, ())
    return frozenset(frozenset((stem(a, language), stem(b, language))) for a, b in pairs)


def _prefixed(comparison: Comparison) -> Iterator[Problem]:
    opposites = _opposites(comparison.passages.language)
    for p in comparison.match.passages[:1]:
        theirs = comparison.passages.items[p].reading.tokens
        for change in comparison.changes(p):
            for a in comparison.tokens[change.a : change.b]:
                for b in theirs[change.c : change.d]:
                    short, long = sorted((a.shown.casefold(), b.shown.casefold()), key=lambda k: (len(k), k))
                    if len(short) >= 4 and any(long == prefix + short for prefix in lexicon.NEGATING_PREFIXES):
                        yield _negated(comparison, f"{a.shown!r}, where the evidence says {b.shown!r}", p)
                    elif (
                        frozenset((a.key, b.key)) in opposites
                        and a.key not in comparison.passages.items[p].reading.keys
                    ):
                        yield Problem(
                            "unknown", f"{a.shown!r}, where the evidence says the opposite, {b.shown!r}", "opposite"
                        )


def _negated(comparison: Comparison, reason: str, at: int) -> Problem:
    weights = {k: comparison.passages.weight(k) for k in dict.fromkeys(comparison.keys)}
    covered = comparison.passages.shares(weights).get(at, 0.0) >= OTHERWISE_COVERED
    return Problem(
        "contradicted" if covered else "unknown", f'{reason}: "{comparison.passages.items[at].text}"', "negation"
    )
