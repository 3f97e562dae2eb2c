"""Surface-fault checks for rubrics: what can be seen on a text's surface, and no more. Each reason names the features.

A text without a fault gets the highest value, because nothing here can tell good from merely clean. The checks
read no meaning: a well-formed lie is fluent, and an answer in the words of its reference is accurate.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from jurimetrics.judges import lexicon
from jurimetrics.judges.evidence import Finding, evidence_for, supported_language
from jurimetrics.judges.passages import Passages
from jurimetrics.judges.reading import read
from jurimetrics.text import STOPWORDS, is_blank, sentences, words

WHOLE = 0.8
"""From this share of its content words on a sentence counts as wholly said."""
_REPEATABLE = lexicon.words_of(
    "had that very so no bye ha die der das nous vous se es si poco muy tan molto più zij sie"
)
_AGREEMENT = re.compile(
    r"\b(?:(?i:(?:he|she|it) (?:are|were|have|do|go|give|make|say)|(?:they|we|you) (?:is|was|has|does)"
    r"|(?:these|those) (?:is|was)|more better|most best|is are|are is|did [a-z]+ed)|I (?:is|are|has)"
    r"|[Aa]n [bcdfgjklmnpqrstvwxyz][a-z]+|[Aa] (?!eu|on[ce])[aeio][a-z]{3})\b",
)
_UNFINISHED = lexicon.words_of(
    "the a an of and or but is are was were to with from than no because und der die le la les de et el y"
)
_DOUBLED = re.compile(r",\s*,|;\s*;|(?<!\.)\.\.(?!\.)|\.\s+\.|[,;:]\s*[.!?]|\?\s*\.|[!?]{3,}")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
_STRETCHED = re.compile(r"([^\W\d_])\1\1", re.I)
_LINKS = lexicon.words_of(
    "he she they it its his her their this that these those there then therefore thus however also but and so since when"
    " er sie es dies diese dieser dort dann daher auch aber und il elle ils elles ce cette ces alors donc mais aussi y"
    " él ella ellos esto este esta entonces también pero lui lei essi questo questa quindi anche ma ele ela isto então"
    " também mas hij zij ze dit deze dan dus ook maar each both another such one all most some"
)


@dataclass(frozen=True, slots=True)
class Surface:
    """A value in the range the check declares, and the features that made it.

    >>> Surface(5.0, "no surface fault found").score
    5.0
    """

    score: float
    reason: str


def fluency_faults(text: str) -> Surface:
    """Fluency as an integer 1-5: five less one point for each surface fault, never below one.

    Faults: repeated words (one each, at most three), English agreement and articles (at most two), no end mark, a small
    letter at the start, doubled or spaced-off marks, open brackets, sentences over sixty words or that end in a function
    word (at most two), stretched or vowelless words, and a share of function words far from the usual (two points).
    Raises UnsupportedLanguage; a text too short to show its language is checked for what holds in every Latin script.

    >>> fluency_faults("The lock was opened in 1889.").score
    5.0
    >>> fluency_faults("lock it are open open in 1889").reason
    "surface faults only: word repeated: 'open'; agreement or article: 'it are'; no end mark; starts with a small letter"
    """
    language = supported_language(text)
    faults = [fault for fault in _faults(text, language) if fault[0]]
    points = sum(n for n, _ in faults)
    said = "; ".join(shown for _, shown in faults) or "none found, and nothing else is looked at"
    return Surface(float(max(1, 5 - points)), f"surface faults only: {said}")


def _faults(text: str, language: str) -> list[tuple[int, str]]:
    pieces = [s.text for s in sentences(text, None if language == "und" else language)]
    plain = [w.casefold() for w in re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text)]
    prose = len(plain) > 3
    repeated = [m[1] for m in re.finditer(r"\b([^\W\d_]+)\s+\1\b", text, re.I) if m[1].casefold() not in _REPEATABLE]
    agreement = [m[0] for m in _AGREEMENT.finditer(text)] if language == "en" else []
    spaced = re.search(r"\w\s+[,.]" if language == "fr" else r"\w\s+[,.;:!?](?:\s|$)", text)
    long = [p for p in pieces if len(p.split()) > 60]
    unfinished = [p for p in pieces if len(p.split()) > 4 and (words(p) or [""])[-1] in _UNFINISHED]
    odd = [
        w
        for w in plain
        if _STRETCHED.search(w) or (len(w) > 4 and not re.search("[aeiouyäöüáàâéèêëíìîïóòôúùûãõœæ']", w))
    ]
    return [
        (min(len(repeated), 3), f"word repeated: {_shown(repeated)}"),
        (min(len(agreement), 2), f"agreement or article: {_shown(agreement)}"),
        (int(prose and not re.search(r"[.!?…:][\"'”’»)\]]*$", text.strip())), "no end mark"),
        (int(prose and _starts_small(text)), "starts with a small letter"),
        (int(bool(_DOUBLED.search(text))), "doubled marks"),
        (int(bool(spaced)), "space before a mark"),
        (int(any(text.count(a) != text.count(b) for a, b in _PAIRS)), "brackets or quotes left open"),
        (int(bool(long)), "a sentence over 60 words"),
        (min(len(unfinished), 2), f"a sentence that ends in {_shown([words(p)[-1] for p in unfinished])}"),
        (min(len(odd), 2), f"odd words: {_shown(odd)}"),
        _function_words(plain, language),
    ]


def _shown(found: list[str]) -> str:
    return ", ".join(repr(word) for word in list(dict.fromkeys(found))[:4])


def _starts_small(text: str) -> bool:
    first = next((c for c in text if c.isalnum()), "")
    return first.islower()


def _function_words(plain: list[str], language: str) -> tuple[int, str]:
    listed = STOPWORDS.get(language)
    if listed is None or len(plain) < 15:
        return 0, ""
    share = sum(word in listed for word in plain) / len(plain)
    return (0, "") if 0.2 <= share <= 0.75 else (2, f"function words make up {share:.2f} of the text")


def coherence_faults(question: str | None, text: str) -> Surface:
    """Coherence as an integer 1-5: five, less what is missing of lexical thread.

    Two points for a text of five or more content words that shares none with the question (None or blank: not
    looked at), one where it has most of its neighbouring sentences without a shared word, name or link
    word, one for a sentence said twice, one for three or more points of fluency faults. Raises UnsupportedLanguage.

    >>> coherence_faults("When was the lock opened?", "The lock was opened in 1889. It lifts boats.").score
    5.0
    >>> coherence_faults("When was the lock opened?", "Tomatoes grow best in full sun and drained soil.").score
    3.0
    """
    asked = "" if question is None or is_blank(question) else question
    language = supported_language(text, asked)
    pieces = [s.text for s in sentences(text, None if language == "und" else language)]
    said = read(text, language)
    lost = []
    if asked and len(said.tokens) >= 5 and not said.keys & read(asked, language).keys:
        lost.append((2, "no content word shared with the question"))
    loose = [b for a, b in pairwise(pieces) if not linked(a, b, asked, language)]
    if loose and len(loose) * 2 > len(pieces) - 1:
        lost.append((1, f"{len(loose)} of {len(pieces) - 1} neighbouring sentences share no word or link"))
    if any(n > 1 for n in Counter(" ".join(words(p)) for p in pieces if words(p)).values()):
        lost.append((1, "a sentence said twice"))
    if sum(n for n, _ in _faults(text, language)) >= 3:
        lost.append((1, "many fluency faults"))
    seen = "; ".join(shown for _, shown in lost) or "words shared with the question and between sentences"
    return Surface(float(max(1, 5 - sum(n for n, _ in lost))), f"surface faults only: {seen}")


def linked(before: str, after: str, question: str, language: str) -> bool:
    """Whether a sentence shares a content word with the one before or the question, or opens with a link word.

    >>> linked("The lock is old.", "It lifts boats.", "", "en"), linked("The lock is old.", "Bread is baked.", "", "en")
    (True, False)
    """
    mine, theirs = read(after, language), read(f"{before} {question}", language)
    return bool(mine.keys & theirs.keys) or not _LINKS.isdisjoint(words(after)[:4])


def accuracy_clarity(reference: str, text: str) -> Surface:
    """Accuracy and clarity together, 0-1 in tenths: how much of the reference stands in the text, less surface faults.

    Accuracy is the mean over the reference's sentences of the weighted share of their content words in the text (from
    80 % on it counts as whole); one that a sentence of the text contradicts by a number, name, negation or opposite
    counts nothing. Clarity is the fluency check. Value = accuracy x (0.7 + 0.3 x clarity). Raises UnsupportedLanguage.

    >>> accuracy_clarity("The lock was opened in 1889.", "It was opened in 1889, the lock.").score
    1.0
    >>> accuracy_clarity("The lock was opened in 1889.", "The lock was opened in 1898.").score
    0.0
    """
    found = reference_covered(reference, text)
    fluent = fluency_faults(text)
    clarity = (fluent.score - 1) / 4
    covered = f"content of the reference covered: {found.shown}"
    reason = "; ".join([covered, *(f.reason for f in found.wrong), f"clarity {clarity:.2f} ({fluent.reason})"])
    return Surface(round(found.mean * (0.7 + 0.3 * clarity), 1), reason)


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of each sentence of a text stands in another, 0-1, and what of the other speaks against it.

    >>> Covered((1.0, 0.5), ()).mean
    0.75
    """

    shares: tuple[float, ...]
    wrong: tuple[Finding, ...]

    @property
    def mean(self) -> float:
        """The mean share; 0 where there is no sentence with content."""
        return math.fsum(self.shares) / len(self.shares) if self.shares else 0.0

    @property
    def shown(self) -> str:
        """The shares as text."""
        return ", ".join(f"{share:.2f}" for share in self.shares)


def reference_covered(reference: str, text: str) -> Covered:
    """How much of the content words of each sentence of the reference stands in `text`, from 80 % on as much as whole.

    A sentence of the reference that a sentence of the text contradicts by a number, name, negation or opposite counts
    nothing. Raises UnsupportedLanguage.

    >>> reference_covered("The lock was opened in 1889. It is deep.", "The lock was opened in 1898.").shares
    (0.0, 0.0)
    """
    language = supported_language(text, reference)
    answer, wanted = Passages((text,), language), Passages((reference,), language)
    against = evidence_for((reference,))
    found = [against.check(piece.text, reference) for piece in answer.items]
    wrong = [f for f in found if f.label == "contradicted" or f.rule == "opposite"]
    contradicted = {quote for f in wrong for _, quote in f.evidence[:1]}
    for piece in wanted.items:
        # A negation that the text lacks may be said otherwise; another number or name in the same place may not.
        back = evidence_for((text,)).check(piece.text, text)
        if back.label == "contradicted" and back.rule in ("number", "name") and piece.text not in contradicted:
            wrong.append(back)
            contradicted.add(piece.text)
    shares = tuple(
        0.0 if piece.text in contradicted else min(answer.match(piece.reading.tokens).coverage / WHOLE, 1.0)
        for piece in wanted.items
        if piece.reading.tokens
    )
    return Covered(shares, tuple(wrong))


def document_relevance(question: str, reference: str, document: str, among: tuple[str, ...] = ()) -> Surface:
    """How much a document contributes, 0-1 in tenths: words of the question and reference that it has, rare ones more.

    0.3 x the share of the question's content words + 0.7 x the share of what the reference adds to the question, by the
    best two sentences. At most 0.4 gets a document that has none of what the reference adds, or less than a third of
    the question's words and less than 0.6 of what the reference adds. `among`: all documents of the record, which say
    what is rare. Raises UnsupportedLanguage.

    >>> lock = "The lock was opened in 1889."
    >>> [document_relevance("When was the lock opened?", lock, d).score for d in (lock, "Peat was cut on the moors.")]
    [1.0, 0.0]
    """
    language = supported_language(document, reference, question)
    weights = Passages((*(among or (document,)), reference), language)
    own = Passages((document,), language)
    asked = {t.key: weights.weight(t.key) for t in read(question, language).tokens}
    added = {t.key: weights.weight(t.key) for t in read(reference, language).tokens if t.key not in asked}
    topic = _held(own, asked, _everywhere(own))
    facts = _held(own, added, _best_two(own, {**asked, **added}))
    value = 0.3 * topic + 0.7 * facts if added else topic
    capped = (topic < 1 / 3 and facts < 0.6) or (bool(added) and facts == 0)
    value = min(value, 0.4) if capped else value
    held = f"words of the question {topic:.2f}, of what the reference adds {facts:.2f}"
    reason = f"{held}, capped at 0.4" if capped else held
    return Surface(round(value, 1), reason)


def _held(passages: Passages, weights: dict[str, float], where: frozenset[int]) -> float:
    total = math.fsum(weights.values())
    held = math.fsum(weight for key, weight in weights.items() if where & set(passages.holding(key)))
    return held / total if total else 0.0


def _everywhere(passages: Passages) -> frozenset[int]:
    return frozenset(range(len(passages.items)))


def _best_two(passages: Passages, weights: dict[str, float]) -> frozenset[int]:
    shares = passages.shares(weights)
    return frozenset(sorted(shares, key=lambda at: (-round(shares[at], 9), at))[:2])


_ASIDES = re.compile(
    r"(?:hello|hi|hey|dear|good (?:morning|afternoon|evening)|thanks?|thank you|you're welcome|sure|of course|certainly"
    r"|great question|please|i hope|let me know|feel free|sorry|hallo|guten (?:tag|morgen)|danke|gerne?|bitte|bonjour"
    r"|merci|volontiers|hola|gracias|por supuesto|ciao|grazie|certo|olá|obrigad[oa]|claro|dank(?: je| u)?|graag)\b",
    re.I,
)
_NO_ANSWER = (
    # English
    r"\bi(?:'m| am) (?:sorry|afraid|unable|not (?:able|sure))",
    r"\bi (?:do not|don't|cannot|can't|could not|couldn't|can not) (?:know|say|tell|answer|find|help|provide|assist)\b",
    r"\bi (?:do not|don't) have (?:any|enough|the|that|access)\b|\bi (?:cannot|can't|could not|couldn't) determine\b",
    r"\b(?:documents?|contexts?|texts?|sources?|passages?|material) (?:do|does|did)(?: not|n't) "
    r"(?:say|mention|contain|provide|include|state|give|specify)",
    r"\b(?:no|not enough|insufficient) (?:such )?information\b|\bcannot be (?:answered|determined)\b",
    r"^as an ai\b|^unfortunately,? i\b",
    # German
    r"\bich (?:weiß|kann) (?:es |das |dies |die frage |diese frage )*(?:leider )?nicht\b|\b(?:es )?tut mir leid\b",
    r"\b(?:dokumente|texte|unterlagen) (?:enthalten|nennen|sagen)\b.*\b(?:keine?|nicht|nichts)\b",
    r"\bweiß ich (?:es )?(?:leider )?nicht\b|\bkeine (?:angaben|informationen)\b",
    # French
    r"\bje n(?:e |')(?:sais|peux|trouve|dispose|ai)\b|\bdésolée?\b|\baucune information\b",
    r"\bdocuments ne (?:disent|mentionnent|contiennent|précisent)",
    # Spanish
    r"\blo siento\b|\bno (?:lo )?sé\b|\bdocumentos no (?:dicen|mencionan|contienen)",
    r"\bno (?:puedo|dispongo|tengo|encuentro|encontré)\b.*(?:respond|informaci|respuesta)",
    # Italian, Portuguese, Dutch
    r"\bmi dispiace\b|\bnon (?:lo )?so\b|\bnon (?:posso|riesco)\b.*(?:rispond|trov)",
    r"\b(?:sinto muito|desculpe|não sei|não (?:posso|consigo) (?:responder|dizer))\b",
    r"\bik weet (?:het )?niet\b|\bik kan .*niet beantwoorden\b|\bhet spijt me\b|\bgeen informatie\b",
)
_REFUSALS = re.compile("|".join(_NO_ANSWER), re.I)


def claims(text: str, question: str = "") -> list[str]:
    """The sentences of a text that state something, in order, verbatim; without questions, greetings and refusals.

    A fragment ("Madrid.") is a claim: it is checked by itself, beside its question. List marks are taken off, headings
    that end in a colon left out. Raises UnsupportedLanguage, for the greetings and refusals of other languages are not
    known; `question` tells the language of a text too short to show it.

    >>> claims("Hello! Madrid is large. Is it old? I don't know.")
    ['Madrid is large.']
    >>> claims("Madrid.", "What is the capital of Spain?"), claims("I cannot answer that.")
    (['Madrid.'], [])
    """
    if is_blank(text):
        return []
    language = supported_language(text, question)
    pieces = [s.text for s in sentences(text, None if language == "und" else language)]
    pieces = [re.sub(r"^(?:[-*•‣▪●◦–—+]|\(?\d{1,3}[.)])\s+", "", p) for p in pieces]
    return [p for p in pieces if words(p) and not _states_nothing(p)]


def _states_nothing(piece: str) -> bool:
    shown = piece.replace("’", "'").strip("\"'“”«» ")
    if re.search(r"\?[\"'”»)]*$", shown) or shown.endswith(":"):
        return True
    aside = _ASIDES.match(shown)
    return bool(_REFUSALS.search(shown)) or (
        aside is not None and not re.match(r"[,!]? [^.!]*\d", shown[aside.end() :])
    )
