"""Which claims of two lists say the same: one to one, by their text, then by the words they share."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.judges.lexicon import NEGATIONS
from jurimetrics.text import STOPWORDS, fold, language_of, words

Numbers = npt.NDArray[np.float64]
Similarity = Callable[[str, str], float]
THRESHOLD = 0.5
"""From which share of common words on two claims can be the same."""
_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d[\d.,]*")
_CONTRACTED = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should|must|need)nt")


class Match(NamedTuple):
    """Two claims that say the same: their places in the lists, how like they are (0 to 1), and whether that was seen by
    their whole "text" or by their "words"."""

    first: int
    second: int
    similarity: float
    by: str


def match_claims(
    first: Sequence[str], second: Sequence[str], threshold: float = THRESHOLD, similarity: Similarity | None = None
) -> list[Match]:
    """Pair the claims of two lists, each with one of the other at most; pairs in the order of `first`.

    Claims with the same text (`fold`, without punctuation at the ends) are pairs, in order. Of the others those pairs are
    taken whose similarities have the largest sum and are `threshold` (above 0, up to 1) or more: of `similarity`, a
    function of two texts that gives 0 to 1, or the words they share (`word_overlap`). Two claims are never the same where
    one has a number that the other lacks while lacking one of its own, or where one denies and the other does not (the
    negations that the baseline judge knows).

    Raises `InputError` for a threshold outside that range and a similarity outside 0 to 1.

    >>> mine = ["The tower opened in 1889.", "The tower is 330 metres tall."]
    >>> theirs = ["It is made of iron.", "The tower was opened to the public in 1889"]
    >>> match_claims(mine, theirs)
    [Match(first=0, second=1, similarity=0.8571428571428571, by='words')]
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise InputError(f"threshold lies above 0 and up to 1, not {threshold!r}")
    same = _same_texts(first, second)
    mine = [at for at in range(len(first)) if at not in same]
    taken = set(same.values())
    theirs = [at for at in range(len(second)) if at not in taken]
    found = [Match(one, other, 1.0, "text") for one, other in same.items()]
    if mine and theirs:
        from scipy.optimize import linear_sum_assignment

        language = _language([*first, *second])
        texts, others = [first[at] for at in mine], [second[at] for at in theirs]
        like = similarities(texts, others, similarity, language)
        allowed = (like >= threshold) & _compatible(texts, others, language)
        rows, columns = linear_sum_assignment(np.where(allowed, like, 0.0), maximize=True)
        for row, column in zip(rows, columns, strict=True):
            if allowed[row, column]:
                found.append(Match(mine[row], theirs[column], float(like[row, column]), "words"))
    return sorted(found)


def similarities(
    first: Sequence[str], second: Sequence[str], similarity: Similarity | None = None, language: str | None = None
) -> Numbers:
    """How like each claim of `first` (rows) is to each of `second` (columns), 0 to 1; arguments as `match_claims`.

    >>> similarities(["The hall is old."], ["The old hall", "A bridge"]).tolist()
    [[1.0, 0.0]]
    """
    if similarity is None:
        of = language or _language([*first, *second])
        bags = [[_content(text, of) for text in side] for side in (first, second)]
        return np.array([[_shared(one, other) for other in bags[1]] for one in bags[0]]).reshape(
            len(first), len(second)
        )
    try:
        found = np.array([[float(similarity(one, other)) for other in second] for one in first])
    except (TypeError, ValueError) as fault:
        raise InputError(
            f"similarity must be a function of two texts that gives a number from 0 to 1: {fault}"
        ) from fault
    if not bool(((found >= 0) & (found <= 1)).all()):
        raise InputError("similarity must give a number from 0 to 1 for two texts")
    return found.reshape(len(first), len(second))


def word_overlap(one: str, other: str) -> float:
    """Twice the words that two claims share over all words of both (0 to 1), function words left out.

    >>> word_overlap("The lock was opened in May 1898.", "It was opened in 1898")
    0.8
    """
    return float(similarities([one], [other])[0, 0])


def _same_texts(first: Sequence[str], second: Sequence[str]) -> dict[int, int]:
    waiting: dict[str, list[int]] = {}
    for at, text in enumerate(second):
        waiting.setdefault(bare(text), []).append(at)
    found = {}
    for at, text in enumerate(first):
        if there := waiting.get(bare(text)):
            found[at] = there.pop(0)
    return found


def bare(text: str) -> str:
    """A text folded, without punctuation and spaces at its ends: claims of which this is equal are the same.

    >>> bare(" The Hall is old!"), bare("-3 degrees")
    ('the hall is old', '-3 degrees')
    """
    shown = fold(text)
    start, end = 0, len(shown)
    while end > start and _is_edge(shown[end - 1]):
        end -= 1
    while start < end and _is_edge(shown[start]) and shown[start] != "-":
        start += 1
    return shown[start:end] or shown


def _is_edge(character: str) -> bool:
    return character.isspace() or unicodedata.category(character).startswith("P")


def _language(texts: Sequence[str]) -> str:
    return language_of("\n".join(texts))


def _content(text: str, language: str) -> Counter[str]:
    found = words(text)
    plain = STOPWORDS.get(language, frozenset())
    return Counter([word for word in found if word not in plain] or found)


def _shared(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _compatible(first: Sequence[str], second: Sequence[str], language: str) -> npt.NDArray[np.bool_]:
    """Whether neither numbers nor negation forbid that two claims say the same."""
    numbers = [[_numbers(text) for text in side] for side in (first, second)]
    denials = [[_denies(text, language) for text in side] for side in (first, second)]
    nested = [[one <= other or other <= one for other in numbers[1]] for one in numbers[0]]
    alike = [[mine == theirs for theirs in denials[1]] for mine in denials[0]]
    return np.array(nested, dtype=np.bool_) & np.array(alike, dtype=np.bool_)


def _numbers(text: str) -> frozenset[str]:
    shown = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    found = (number.rstrip(".,") for number in _NUMBER.findall(shown))
    # A mark before three digits groups them, any other begins the decimals: 3.000,5 and 3,000.5 are one number.
    return frozenset(re.sub(r"[.,](?=\d{3}(?!\d))", "", number).replace(",", ".") for number in found)


def _denies(text: str, language: str) -> bool:
    known = NEGATIONS.get(language, NEGATIONS["en"] if language == "und" else frozenset())
    return any(word in known or _CONTRACTED.fullmatch(word) for word in words(text))
