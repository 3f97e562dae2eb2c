"""The baseline's checker: does a claim stand in these documents? Deterministic, offline, and it says why.

What carries such a checker is copying: the mean of the IDF-weighted share of the claim's content words in the best
matching sentences, and of the share of the claim's character 10-grams that occur in the documents. On top stand rules
(`jurimetrics.judges.rules`) for numbers, names, negation and additions, each of which names the words it acts on.
It knows nothing of meaning: a good paraphrase can be `unknown`, and a false claim in the documents' own words `supported`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from jurimetrics.judges import lexicon
from jurimetrics.judges.comparison import Comparison, Rule
from jurimetrics.judges.passages import Passages
from jurimetrics.judges.rules import first_problem
from jurimetrics.text import FOILS, is_blank, language_of

SUPPORTED_FROM = 0.5
_GRAM = 10
# What a rule that fires leaves of the score, so that the score orders claims as the labels do.
_KEPT = {"contradicted": 0.25, "unknown": 0.45}
# From this share of copied 10-grams on, a claim is taken to be in the documents' language.
_COPIES = 0.3
# Texts too short to show their language are checked by the rules that hold in every Latin-script language.
_SHORT = 12


class UnsupportedLanguage(ValueError):  # noqa: N818 - named as the failure kind is
    """The rules do not hold in this language, or claim and evidence are in different ones.

    >>> Evidence(("東京は日本の首都です。",)).check("東京は日本の首都です。")
    Traceback (most recent call last):
    jurimetrics.judges.evidence.UnsupportedLanguage: no rules for 'ja'; there are for de, en, es, fr, it, nl, pt
    """


def _no_rules(language: str) -> UnsupportedLanguage:
    return UnsupportedLanguage(f"no rules for {language!r}; there are for {', '.join(lexicon.LANGUAGES)}")


def supported_language(*texts: str) -> str:
    """The language of the first text that shows one, "und" where all are too short to; else UnsupportedLanguage.

    "und" means: only rules that hold in every language of Latin script (copying, numbers, names, marks).

    >>> supported_language("Madrid.", "What is the capital of Spain?"), supported_language("Madrid.")
    ('en', 'und')
    """
    said = [(language_of(text), _is_short(text)) for text in texts]
    known = [language for language, _ in said if language in lexicon.LANGUAGES]
    for language, short in said:
        if language in lexicon.LANGUAGES:
            return language
        # A few words may look like another language of Latin script; where a further text is known, that one counts.
        if language != "und" and not (short and known and language in FOILS):
            raise _no_rules(language)
    if not all(map(_is_short, texts)) or not re.search(r"[A-Za-z\d]", texts[0] if texts else ""):
        raise UnsupportedLanguage("the language is not recognised, so no rules are known to hold")
    return "und"


def _is_short(text: str) -> bool:
    # No further than need be: each sentence of a long text asks this of the whole text.
    return len(text.split(None, _SHORT)) <= _SHORT


@dataclass(frozen=True, slots=True)
class Finding:
    """What the checker found: `score` 0-1 (0.5 and more is supported), the rule behind it, and verbatim evidence.

    `evidence` holds `(index of the document, sentence of it)`, best first, at most two; empty where nothing matches.
    `rule` is the rule that fired: number, name, negation, opposite, addition or question; None where none did.

    >>> Finding("unknown", 0.1, "nothing matches", ()).label
    'unknown'
    """

    label: Literal["supported", "contradicted", "unknown"]
    score: float
    reason: str
    evidence: tuple[tuple[int, str], ...]
    rule: Rule | None = None


class Evidence:
    """Documents prepared for checking. Blank ones are passed over; indices stay those given.

    `language` is that of the documents, "und" where they are too short to tell.

    >>> found = Evidence(("The bridge opened in 1932. It cost 4,200 pounds.",)).check("The bridge cost 4200 pounds.")
    >>> found.label, found.evidence[0]
    ('supported', (0, 'It cost 4,200 pounds.'))
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self.language = language_of("\n".join(documents)[:20_000])
        self._documents = tuple(documents)
        self._grams = frozenset(gram for d in documents for gram in _grams(_copied(d), _GRAM))
        self._texts = tuple(_copied(d) for d in documents)
        self._passages: dict[str, Passages] = {}

    def check(self, claim: str, question: str = "") -> Finding:
        """Check one claim. Raises UnsupportedLanguage, and ValueError for a blank claim.

        A fragment ("Madrid.") is checked by itself: it is supported where the documents hold it. With the `question` it
        answers, it must also stand in or beside the sentences that match the question best.
        """
        if is_blank(claim):
            raise ValueError("the claim is blank")
        passages = self._in(self._language_for(claim, question))
        for passage in passages.items if self._copied_share(claim) == 1.0 else ():
            if _copied(passage.text) == _copied(claim):
                at = (passage.document, passage.text)
                return Finding("supported", 1.0, "it stands in the documents word for word", (at,))
        comparison = Comparison(passages, claim, question)
        copied = self._copied_share(claim)
        covered = comparison.match.coverage
        score = (covered + copied) / 2 if comparison.tokens else copied
        quotes = tuple((passages.items[p].document, passages.items[p].text) for p in comparison.match.passages)
        problem = first_problem(comparison)
        if problem is not None:
            return Finding(problem.label, score * _KEPT[problem.label], problem.reason, quotes, problem.rule)
        reason = f"content words covered {covered:.2f}, 10-grams copied {copied:.2f}, mean {score:.2f}"
        if score >= SUPPORTED_FROM:
            return Finding("supported", score, f"{reason}; numbers, names and negation agree", quotes)
        new = [t.shown for t in comparison.tokens if not passages.holding(passages.key_of(t))]
        reason = f"{reason}, below {SUPPORTED_FROM}; not in the documents: {', '.join(dict.fromkeys(new)) or '-'}"
        return Finding("unknown", score, reason, quotes)

    def _in(self, language: str) -> Passages:
        if language not in self._passages:
            self._passages[language] = Passages(self._documents, language)
        return self._passages[language]

    def _language_for(self, claim: str, question: str) -> str:
        said = language_of(claim)
        if said in FOILS and self.language in lexicon.LANGUAGES and len(claim.split()) <= _SHORT:
            said = "und"
        known = {self.language, said} - {"und"}
        for language in sorted(known - set(lexicon.LANGUAGES)):
            raise _no_rules(language)
        if len(known) == 2:
            # A short text shows its language badly; a claim that copies the evidence is not in another.
            if len(claim.split()) > 4 and self._copied_share(claim) < _COPIES:
                raise UnsupportedLanguage(f"the claim is in {said!r}, the documents are in {self.language!r}")
            both = language_of("\n".join((*self._documents, claim))[:20_000])
            return both if both in lexicon.LANGUAGES else self.language
        return supported_language(claim, *self._documents, question)

    def _copied_share(self, claim: str) -> float:
        shown = _copied(claim)
        if len(shown) < _GRAM:
            return float(any(re.search(rf"(?<!\w){re.escape(shown)}(?!\w)", text) for text in self._texts))
        grams = _grams(shown, _GRAM)
        return sum(gram in self._grams for gram in grams) / len(grams)


@lru_cache(maxsize=64)
def evidence_for(documents: tuple[str, ...]) -> Evidence:
    """The checker over these documents, built once and kept while it is in use.

    >>> evidence_for(("Marie Curie was born in Warsaw.",)).check("Marie Curie was born in Paris.").label
    'contradicted'
    """
    return Evidence(documents)


def _copied(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split()).strip(" .!?\"'")


def _grams(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(len(text) - size + 1)]
