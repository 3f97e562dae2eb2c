"""The built-in rubrics rated by what can be seen on a text's surface, and which rubrics those are.

Each reason begins with "surface features only" or "surface faults only" and names the features. The levels stand for
ranges of those features and read no meaning: see what each function says it cannot see.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from jurimetrics.judges.evidence import Finding, evidence_for, supported_language
from jurimetrics.judges.passages import Passages
from jurimetrics.judges.reading import read
from jurimetrics.judges.surface import (
    WHOLE,
    Surface,
    accuracy_clarity,
    claims,
    coherence_faults,
    fluency_faults,
    linked,
    reference_covered,
)
from jurimetrics.tasks.rate import RateRubric
from jurimetrics.tasks.task import fingerprint
from jurimetrics.text import is_blank, sentences

_LONG_WORD = {"de": 18, "nl": 18}


def groundedness(contexts: tuple[str, ...], text: str, question: str = "") -> Surface:
    """Groundedness as an integer 1-5, from the share of the stating sentences that the checker supports.

    1: none; 2: fewer than half; 3: half and more; 4: nine tenths and more; 5: all, or nothing is stated. Where one is
    contradicted, 3 at most. It cannot see which statement is the main one, nor a paraphrase. Raises UnsupportedLanguage.

    >>> lock = ("The lock was opened in 1889. It lifts boats by four metres.",)
    >>> [groundedness(lock, text).score for text in (lock[0], "The lock was opened in 1898.")]
    [5.0, 1.0]
    """
    found = [evidence_for(contexts).check(piece) for piece in claims(text, question)]
    if not found:
        return _rated(5, "no sentence states anything, so none is without backing")
    supported, contradicted = _share(found, "supported"), _count(found, "contradicted")
    level = _level(supported, (0.01, 0.5, 0.9, 1.0))
    said = f"{_count(found, 'supported')} of {len(found)} sentences found in the documents, {contradicted} contradicted"
    return _rated(min(level, 3) if contradicted else level, said)


def similarity(reference: str, text: str, question: str = "") -> Surface:
    """Similarity as an integer 1-5, from how much content of reference and answer each has in the other.

    The harmonic mean of both shares gives 2 from 0.15, 3 from 0.45, 4 from 0.7, 5 from 0.9 on; what is contradicted counts
    nothing. It cannot see that other words say the same. Raises UnsupportedLanguage.

    >>> lock = "The lock was opened in 1889."
    >>> longer, wrong = f"{lock} Peat was cut on the moors.", "The lock was opened in 1898."
    >>> [similarity(lock, text).score for text in (lock, longer, wrong)]
    [5.0, 3.0, 1.0]
    """
    stated = claims(text, question or reference)
    if not stated:
        return _rated(1, "no sentence states anything")
    language = supported_language(text, reference)
    there, back = reference_covered(reference, text), Passages((reference,), language)
    against = evidence_for((reference,))
    shares = [
        0.0
        if against.check(piece, reference).label == "contradicted"
        else min(back.match(read(piece, language).tokens).coverage / WHOLE, 1.0)
        for piece in stated
    ]
    own = math.fsum(shares) / len(shares)
    both = 2 * there.mean * own / (there.mean + own) if there.mean + own else 0.0
    said = f"of the reference's content in the answer {there.mean:.2f}, of the answer's in the reference {own:.2f}"
    return _rated(_level(both, (0.15, 0.45, 0.7, 0.9)), "; ".join([said, *(f.reason for f in there.wrong)]))


def correctness(reference: str, text: str, question: str = "") -> Surface:
    """Correctness as an integer 1-5, from the sentences that the reference contradicts.

    5: none, or nothing is stated; 3: none, but none agrees either; else 4, 3 or 2 up to a fifth, a half or all but one
    contradicted, and 1 for all. It cannot see an invention that the reference says nothing of. Raises UnsupportedLanguage.

    >>> lock = "The lock was opened in 1889."
    >>> [correctness(lock, text).score for text in (lock, "The lock was opened in 1898.", "Peat was cut on the moors.")]
    [5.0, 1.0, 3.0]
    """
    found = [evidence_for((reference,)).check(piece, question) for piece in claims(text, question or reference)]
    if not found:
        return _rated(5, "no sentence states anything, so none is wrong")
    wrong, right = _share(found, "contradicted"), _count(found, "supported")
    level = 5 if right else 3
    if wrong:
        level = 4 - sum(wrong > bound for bound in (0.2, 0.5, 0.99))
    said = (
        f"{_count(found, 'contradicted')} of {len(found)} sentences contradicted by the reference, {right} found in it"
    )
    reasons = [f.reason for f in found if f.label == "contradicted"]
    return _rated(level, "; ".join([said, *reasons]))


def comprehensiveness(reference: str, text: str, question: str = "") -> Surface:
    """Comprehensiveness as an integer 1-5, from the share of what the reference adds to the question that the answer has.

    The mean over the reference's sentences gives 2 from 0.1, 3 from 0.5, 4 from 0.75, 5 from 0.95 on, whether it is true
    or not. It cannot see that other words say the same. Raises UnsupportedLanguage.

    >>> lock = "The lock was opened in 1889. Boats are lifted by four metres."
    >>> [comprehensiveness(lock, text).score for text in (lock, "The lock was opened in 1889.", "Bread is baked.")]
    [5.0, 3.0, 1.0]
    """
    language = supported_language(text, reference)
    answer, wanted = Passages((text,), language), Passages((reference,), language)
    asked = read(question, language).keys
    # What the question names an answer need not repeat: "It opened in 1889."
    adds = [[t for t in one.reading.tokens if t.key not in asked] or one.reading.tokens for one in wanted.items]
    shares = [min(answer.match(tokens).coverage / WHOLE, 1.0) for tokens in adds if tokens]
    covered = math.fsum(shares) / len(shares) if shares else 0.0
    shown = ", ".join(f"{share:.2f}" for share in shares)
    return _rated(
        _level(covered, (0.1, 0.5, 0.75, 0.95)), f"of what the reference's sentences add, in the answer {shown}"
    )


def relevance(question: str, text: str) -> Surface:
    """Relevance as an integer 1-5, from words shared with the question and threads between the answer's sentences.

    1: nothing is stated, or five or more content words and none of the question's; 2: nothing is stated, in words of the
    question. Else 5, less one where a sentence and two where more than half share no word or link with the question or the
    sentence before. It cannot see whether what is asked is answered. Raises UnsupportedLanguage.

    >>> asked = "When was the lock opened?"
    >>> [relevance(asked, text).score for text in ("The lock was opened in 1889.", "In 1889.", "I don't know.")]
    [5.0, 5.0, 1.0]
    """
    language = supported_language(text, question)
    mine, theirs = read(text, language), read(question, language)
    shared = mine.keys & theirs.keys
    if not claims(text, question):
        return _rated(2 if shared else 1, f"no sentence states anything; words shared with the question: {len(shared)}")
    if len(mine.tokens) >= 5 and not shared:
        return _rated(1, "no content word shared with the question")
    pieces = [piece.text for piece in sentences(text, None if language == "und" else language)]
    loose = sum(not linked(before, after, question, language) for before, after in pairwise(pieces))
    said = f"words shared with the question: {len(shared)}; sentences without a link to it or the one before: {loose}"
    return _rated(5 if not loose else 4 if loose * 2 <= len(pieces) - 1 else 3, f"{said} of {len(pieces)}")


def readability(text: str) -> Surface:
    """Readability as an integer 1-5: five less one point for each thing that makes a text hard to take in, at least 1.

    Sentences of more than 25 words on average (two points from 35 on); a sentence of more than 45 words; a tenth or more
    of the words long (13 letters, in German and Dutch 18); more than 150 words without a line break; three or more points
    of fluency faults. It cannot see whether a term is explained or the form suits. Raises UnsupportedLanguage.

    >>> readability("The lock was opened in 1889. It lifts boats.").score
    5.0
    >>> readability("The lock " + "which was old and deep and wide and grey " * 6 + "was opened.").score
    2.0
    """
    language = supported_language(text)
    pieces = [piece.text for piece in sentences(text, None if language == "und" else language)]
    lengths = [len(piece.split()) for piece in pieces]
    letters = [len(word) for word in re.findall(r"[^\W\d_]+", text)]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    long_words = sum(length >= _LONG_WORD.get(language, 13) for length in letters) / max(len(letters), 1)
    block = max((len(part.split()) for part in text.splitlines()), default=0)
    faults = 5 - fluency_faults(text).score
    lost = [
        2 if mean >= 35 else int(mean > 25),
        int(max(lengths, default=0) > 45),
        int(long_words >= 0.1),
        int(block > 150),
        int(faults >= 3),
    ]
    said = (
        f"words a sentence {mean:.0f}, at most {max(lengths, default=0)}; long words {long_words:.2f}; "
        f"words without a line break {block}; fluency faults {faults:.0f}"
    )
    return _rated(max(1, 5 - sum(lost)), said)


def rate(task: RateRubric) -> Surface | str:
    """What the surface gives for a built-in rubric, or why it gives nothing. Raises UnsupportedLanguage.

    A rubric is known by its whole wording and scale, not by its name: one's own "relevance" is another question.

    >>> rate(RateRubric("relevance", "Is it dear to me?", "It is old.", "How old is it?"))
    "the rubric 'relevance' in this wording or on this scale"
    """
    rule = RULES.get(wording(task))
    if rule is None:
        named = any(name == task.criterion for name, _ in WORDINGS)
        return f"the rubric {task.criterion!r}" + (" in this wording or on this scale" if named else "")
    if task.criterion in _NEED_REFERENCE and is_blank(task.reference or ""):
        return f"the rubric {task.criterion!r} without a reference"
    return rule(task)


def wording(task: RateRubric) -> str:
    """What tells a rubric from any other: a hash of name, text, scale, step and levels.

    >>> len(wording(RateRubric("relevance", "Is it dear to me?", "It is old.")))
    16
    """
    levels = [[value, description] for value, description in task.levels]
    return fingerprint([task.criterion, task.text, list(task.scale), task.step, levels])[:16]


_NEED_REFERENCE = ("correctness", "comprehensiveness", "similarity", "accuracy_clarity")
Rule = Callable[[RateRubric], Surface]
_BY_NAME: Mapping[str, Rule] = {
    "coherence": lambda task: coherence_faults(task.question, task.answer),
    "fluency": lambda task: fluency_faults(task.answer),
    "accuracy_clarity": lambda task: accuracy_clarity(task.reference or "", task.answer),
    "relevance": lambda task: relevance(task.question or "", task.answer),
    "groundedness": lambda task: groundedness(task.contexts, task.answer, task.question or ""),
    "similarity": lambda task: similarity(task.reference or "", task.answer, task.question or ""),
    "correctness": lambda task: correctness(task.reference or "", task.answer, task.question or ""),
    "comprehensiveness": lambda task: comprehensiveness(task.reference or "", task.answer, task.question or ""),
    "readability": lambda task: readability(task.answer),
}
# The wordings that the rules were written for. Whoever changes a rubric looks whether its rule still fits, then puts the
# new hash here; a test compares them with the rubrics as they are.
WORDINGS: tuple[tuple[str, str], ...] = (
    ("coherence", "cbffeeda9b302f4d"),
    ("fluency", "adf20b1f587f57ed"),
    ("accuracy_clarity", "11d7729aa62dcf8e"),
    ("relevance", "53abd298fc3536e6"),
    ("groundedness", "185d0cf97a5ab7e4"),
    ("similarity", "33b4881d83f10b22"),
    ("correctness", "94fb8c89f3bdc0d4"),
    ("comprehensiveness", "23195466a80af587"),
    ("readability", "a5e8fd7a3e8e4e22"),
)
RULES: Mapping[str, Rule] = {mark: _BY_NAME[name] for name, mark in WORDINGS}


def _rated(level: int, said: str) -> Surface:
    return Surface(float(level), f"surface features only: {said}")


def _level(value: float, floors: tuple[float, ...]) -> int:
    """1, and one more for each floor that is reached (sums of shares are a little off)."""
    return 1 + sum(value >= floor - 1e-9 for floor in floors)


def _count(found: list[Finding], label: str) -> int:
    return sum(finding.label == label for finding in found)


def _share(found: list[Finding], label: str) -> float:
    return _count(found, label) / len(found)
