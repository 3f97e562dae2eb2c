"""A sentence read by the baseline: its content words, numbers, names and negations in order. Pure, deterministic."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from jurimetrics.judges import lexicon
from jurimetrics.text import STOPWORDS

_NUMBER = r"(?<![\d.,])\d{1,3}(?:(?: ?, ?|[.' ])\d{3})+(?:[.,]\d{1,2})?(?![\d])(?![.,]\d)|\d+(?:[.,:]\d+)*"
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER})|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*[^\W_]*)|(?P<percent>%)|(?P<end>[.!?:;\"]+)"
)
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b")
_PERCENT = re.compile(
    r"\b(?:per ?cent|percentage|prozent|pour cent|por ciento|por cento|per cento|procent|pct)\b", re.I
)
_ELIDED = re.compile(r"^(?:l|d|qu|c|j|n|s|m|t|un|dell|all|nell|dall|sull|jusqu|lorsqu|puisqu)'(?=\w)", re.I)
_SAME_SHAPE = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
)


@dataclass(frozen=True, slots=True)
class Token:
    """One content word, number or name: `key` to compare by, `shown` as written, `other` further readings of a number.

    >>> Token("number", "#3000", "3, 000", other=("#3", "#0")).key
    '#3000'
    """

    kind: Literal["word", "name", "number"]
    key: str
    shown: str
    other: tuple[str, ...] = ()
    soft: bool = False  # a number word that is often no number ("one", "first"): its absence says nothing
    about: bool = False  # "about 3,000"
    capital: bool = False
    initial: bool = False
    adjacent: bool = False  # the content token before stands directly before it
    preposition: bool = False  # a preposition leads to it


@dataclass(frozen=True, slots=True)
class Reading:
    """The content tokens of a text in order, and its negations as `(word, index of the next content token)`.

    >>> read("It did not rain.", "en").negations
    (('not', 0),)
    """

    tokens: tuple[Token, ...]
    negations: tuple[tuple[str, int], ...]
    keys: frozenset[str] = field(default=frozenset())


_SHORT_ENDINGS = ("ing", "ed", "s")
_VOWEL = re.compile("[aeiouy]")


@lru_cache(maxsize=8192)
def stem(word: str, language: str) -> str:
    """A word without its ending, by the lists of `lexicon`; four letters are left, three before -ing, -ed and -s.

    >>> stem("elections", "en"), stem("won", "en"), stem("Wahlen".casefold(), "de")
    ('elect', 'win', 'wahl')
    """
    if language == "en":
        word = lexicon.IRREGULAR.get(word, word)
    for ending in lexicon.ENDINGS.get(language, ()):
        rest = word[: -len(ending)]
        if word.endswith(ending) and (
            len(rest) >= 4 or (len(rest) == 3 and ending in _SHORT_ENDINGS and _VOWEL.search(rest))
        ):
            word = rest
            break
    # planned, plan: a doubled last consonant is one.
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


def number_keys(raw: str, language: str) -> tuple[str, ...]:
    """The readings of a number as written, the likeliest first, as plain decimals.

    >>> number_keys("3, 000", "en"), number_keys("1,5", "de"), number_keys("3.000", "de"), number_keys("3.50", "en")
    (('3000', '3', '0'), ('1.5',), ('3000',), ('3.5',))
    """
    together = re.sub("[ ']", "", raw)
    parts = tuple(_one_number(part, language) for part in re.split(" ?, ?| ", raw)) if " " in raw else ()
    return tuple(dict.fromkeys((_one_number(together, language), *parts)))


def _one_number(raw: str, language: str) -> str:
    comma = language in lexicon.DECIMAL_COMMA
    thousands, point = (".", ",") if comma else (",", ".")
    grouped = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+(?:{re.escape(point)}\d+)?"
    if re.fullmatch(grouped, raw):
        raw = raw.replace(thousands, "").replace(point, ".")
    elif re.fullmatch(r"\d{1,3}(?:,\d{3}){2,}|\d{1,3}(?:\.\d{3}){2,}", raw):
        raw = raw.replace(",", "").replace(".", "")
    elif re.fullmatch(r"\d+[.,]\d+", raw):
        raw = raw.replace(",", ".")
    elif not raw.isdecimal():
        return raw
    return _plain(Decimal(raw))


def _plain(value: Decimal) -> str:
    shown = format(value, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _normal(text: str) -> str:
    shown = unicodedata.normalize("NFKC", text).translate(_SAME_SHAPE)
    shown = (
        "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in shown) if not shown.isascii() else shown
    )
    shown = _ISO_DATE.sub(lambda m: f"{int(m[3])} {_month(int(m[2]))} {m[1]}", shown)
    shown = re.sub(r"\b(?:[A-Z]\.){2,}", lambda m: m[0].replace(".", "") + " ", shown)
    return _PERCENT.sub("%", shown)


def _month(number: int) -> str:
    return next(name for name, key in lexicon.CALENDAR["en"].items() if key == f"month {number}").capitalize()


@lru_cache(maxsize=16384)
def read(text: str, language: str) -> Reading:
    """Read a text: content tokens in order and negations. `language` is one of `lexicon.LANGUAGES`, or "und" (no lists).

    Names are words with a capital that do not open a sentence; in German, where nouns have capitals too, only those that no
    article, adjective or number precedes. A word that opens the text is a name only before another name: the rest is for
    the evidence to say.

    >>> [(t.kind, t.key) for t in read("Marie Curie was not born on 7 May 1,867.", "en").tokens]
    [('word', 'mari'), ('name', 'curi'), ('word', 'born'), ('number', '#7'), ('name', 'month 5'), ('number', '#1867')]
    """
    return _Reader(language).read(_normal(text))


class _Reader:
    def __init__(self, language: str) -> None:
        self.language = language
        self.light = STOPWORDS.get(language, frozenset()) | lexicon.LIGHT.get(language, frozenset())
        self.negating = lexicon.NEGATIONS.get(language) or frozenset().union(*lexicon.NEGATIONS.values())
        self.tokens: list[Token] = []
        self.negations: list[tuple[str, int]] = []
        self.initial = True
        self.previous = ""  # the word before, content or not
        self.denied = 0  # how many more words a French "ne" may wait for its "plus"
        self.preposition = False  # whether there was one since the last content token
        self.adjacent = False  # whether the last content token is the word before

    def read(self, text: str) -> Reading:
        for match in _TOKEN.finditer(text):
            if match["end"]:
                self.initial = self.initial or match["end"][0] in '.!?:"'
                self.adjacent = False
            elif match["number"]:
                self._number(match["number"], text[match.end() : match.end() + 2])
            elif match["percent"]:
                self._add(Token("word", "%", "%"))
            else:
                self._word(match["word"], text[match.end() : match.end() + 12])
        tokens = tuple(self.tokens)
        keys = frozenset(k for t in tokens for k in (t.key, *t.other))
        return Reading(tokens, tuple(self.negations), keys)

    def _add(self, token: Token) -> None:
        place = replace(token, initial=self.initial, adjacent=self.adjacent, preposition=self.preposition)
        self.tokens.append(place)
        self.preposition = False
        self.previous, self.initial, self.adjacent = token.shown.casefold(), False, True

    def _skip(self, word: str) -> None:
        self.preposition = self.preposition or word in lexicon.PREPOSITIONS
        self.previous, self.initial, self.adjacent = word, False, False

    def _number(self, raw: str, after: str) -> None:
        keys = number_keys(raw, self.language)
        if re.match(r"(?:st|nd|rd|th)\b", after):
            keys = tuple(f"{key}th" for key in keys)
        about = self.previous in lexicon.ABOUT
        self._add(Token("number", f"#{keys[0]}", raw, tuple(f"#{key}" for key in keys[1:]), about=about))

    def _word(self, raw: str, after: str) -> None:
        self.denied = 4 if re.match(r"(?:ne$|n')", raw, re.I) and self.language == "fr" else max(self.denied - 1, 0)
        word = _ELIDED.sub("", raw) if self.language in ("fr", "it") else raw
        folded = word.casefold()
        if self.language == "en":
            if folded.endswith("n't") or folded in ("cannot", "dont", "didnt", "isnt", "wasnt", "wont", "cant"):
                self.negations.append((folded, len(self.tokens)))
                return self._skip(folded)
            folded = re.sub(r"'(?:s|re|ve|ll|d|m)?$", "", folded)
        folded = folded.replace("'", "")
        if (
            re.fullmatch(r"(?:st|nd|rd|th|s)", folded)
            and self.adjacent
            and self.tokens[-1].kind == "number"
            and raw.islower()
        ):
            return None
        if self._is_negation(folded, after):
            self.negations.append((folded, len(self.tokens)))
            return self._skip(folded)
        if self._number_word(folded) or self._calendar(folded, word):
            return None
        if len(folded) == 1 and folded.isascii() and not (raw.isupper() and not self.initial):
            return self._skip(folded)
        if folded in self.light and not (word.isupper() and len(word) == 2 and not self.initial):
            return self._skip(folded)
        return self._content(word, folded)

    def _is_negation(self, folded: str, after: str) -> bool:
        if folded == "false" and self.previous == "or":
            return False
        if self.initial and re.match(r"[,.!;:]", after):
            return False  # "No, it is closed." answers somebody, and denies nothing of the sentence
        if folded in self.negating:
            # "not only" affirms, and "No. 5" is a number.
            return not re.match(r" (?:only|nur|solo|sólo|só|alleen|seulement)\b|\. \d", after)
        if self.language == "fr" and folded == "plus":
            return self.denied > 0
        return self.language == "en" and folded in lexicon.DENYING_VERBS and bool(re.match(r" (?:to|that) ", after))

    def _number_word(self, folded: str) -> bool:
        value = lexicon.NUMBER_WORDS.get(self.language, {}).get(folded)
        last = self.tokens[-1] if self.tokens and self.adjacent and self.tokens[-1].kind == "number" else None
        if folded in lexicon.MAGNITUDES and last is not None and re.fullmatch(r"#[\d.]+", last.key):
            scaled = f"#{_plain(Decimal(last.key[1:]) * lexicon.MAGNITUDES[folded])}"
            self.tokens[-1] = Token("number", scaled, f"{last.shown} {folded}", about=last.about)
            self.previous = folded
            return True
        if value is not None:
            if (
                last is not None
                and last.shown in ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
                and 0 < value < 10
            ):
                self.tokens[-1] = Token(
                    "number", f"#{int(last.key[1:]) + value}", f"{last.shown}-{folded}", about=last.about
                )
                return True
            self._add(Token("number", f"#{value}", folded, soft=value <= 1, about=self.previous in lexicon.ABOUT))
            return True
        if self.language == "en" and folded in lexicon.ORDINALS:
            n = lexicon.ORDINALS[folded]
            self._add(Token("number", f"#{n}th", folded, soft=n <= 2))
            return True
        return False

    def _calendar(self, folded: str, word: str) -> bool:
        key = lexicon.CALENDAR.get(self.language, {}).get(folded)
        if key is None or (folded in lexicon.CALENDAR_WITH_CAPITAL and not word[0].isupper()):
            return False
        if folded == "may" and self.initial:
            return False
        self._add(Token("name", key, word))
        return True

    def _content(self, word: str, folded: str) -> None:
        capital = word[0].isupper()
        named = capital and not self.initial and folded not in lexicon.TITLES
        if named and self.language == "de":
            named = self._german_name(word)
        key = stem(folded, self.language)
        self._add(Token("name" if named else "word", key, word, capital=capital))

    def _german_name(self, word: str) -> bool:
        if re.search(r"(?:ung|ungen|heit|keit|schaft|tion|tionen|tät|ismus|nis|chen|ment)$", word):
            return False
        last = self.tokens[-1] if self.tokens and self.adjacent else None
        determined = self.previous in _GERMAN_DETERMINERS or (last is not None and not last.capital)
        return not determined


_GERMAN_DETERMINERS = lexicon.words_of(
    "der die das den dem des ein eine einen einem einer eines kein keine keinen im am zum zur vom beim ins ans seine seinen"
    " seiner seinem sein ihre ihren ihrer ihrem ihr unser unsere diese dieser dieses diesen mehr viele alle einige"
)
