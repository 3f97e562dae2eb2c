"""Sentences, words, folding and language of a text, for every script.

Nothing here drops text: sentences cover their input up to white space, and what a rule cannot decide it says ("und").
Offsets count code points of the original string, so `text[start:end]` is always the piece itself.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

# Scripts written without spaces, and Hangul: one character is one token (KorQuAD counts Korean the same way).
_BY_CHARACTER = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\uac00-\ud7af"  # Hangul, kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_TOKEN = re.compile(
    rf"[{_BY_CHARACTER}][\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u3099\u309a]*|[^\s{_BY_CHARACTER}]+"
)
_APOSTROPHES = "'\u2019\u02bc\uff07`\u00b4"
_LIST_MARK = re.compile(r"(?:[(\[]?(?:\d{1,3}|[a-zA-Z])[.)\]]|[-*+\u2022\u2023\u25aa\u25cf\u25e6\u2013\u2014])")
# End marks that need no space behind them, with what closes after them. The splitter knows them only in some languages.
_CLOSERS = r"\u300d\u300f\uff09\u201d\u2019\u3011\u300b\u3009\u3015\u3017\uff63\u00bb)\]\"'"
_UNSPACED_END = re.compile(rf"[\u3002\uff01\uff1f\uff61]+[{_CLOSERS}]*")
# Words that the splitter takes for abbreviations (no., mar.): before a capital they are the end of a sentence.
_PLAIN_END = re.compile(
    r"(?<![\w.])(?:al|art|contra|dat|entre|fa|ha|mar|may|me|min|no|nos|si|so|sobre|su|tras|u)\.(?=\s+[A-ZÀ-Þ][a-zß-ÿ])"
)
_SPACED_END = re.compile(r"[\u0964\u0965\u061f\u06d4\u0589\u1362\u104b\u17d4]+[\"'\u201d\u2019)\]\u00bb]*(?=\s)")

# Function words, by which a Latin-script language is recognised and which are not content. Own, short, stated lists.
STOPWORDS: dict[str, frozenset[str]] = {
    language: frozenset(listed.split())
    for language, listed in {
        "en": "the of and a an to in is was were are be been being for on with as by at from that this these those"
        " it its he she they them his her their we you i my your our who which what when where why how will"
        " would can could should may might must shall has have had having do does did done but or if than then"
        " so such there here also into over about after before between during through under against out up"
        " down off again more most some any each other own same too very just only both all while because"
        " until since upon within whom whose me him us am not no nor said says",
        "de": "der die das den dem des ein eine einen einem einer eines und in im ist war waren sind sein wird"
        " werden wurde wurden auf mit als von vom zu zum zur für aus bei beim nach an am dass daß es er sie"
        " ihr ihre ihren seine seinen seiner ihm ihn wir ich du nicht kein keine auch noch nur sich hat haben"
        " hatte hatten oder aber wenn wie was wer wo über unter vor durch um bis seit gegen ohne so dann denn"
        " diese dieser dieses man mehr sehr schon kann können soll muss einem dort hier sowie welche welcher"
        " ihrer seinem worden",
        "fr": "le la les l un une des du de d et à au aux en est sont était étaient a ont avait été être avoir pour"
        " par sur dans avec sans que qu qui quoi dont où ce cet cette ces il elle ils elles on nous vous je tu"
        " se s sa son ses leur leurs mais ou donc ni ne n pas plus très aussi comme si y même entre depuis"
        " après avant sous chez lors pendant selon tout tous toute toutes fait sera seront fut furent c j m t"
        " lui moins",
        "es": "el la los las lo un una unos unas de del y e a al en es son era eran fue fueron ser está están"
        " estaba ha han había haber por para con sin que quien quienes cuyo donde cuando como se su sus le les"
        " me te nos mi tu él ella ellos ellas este esta estos estas ese esa eso esto pero o u ni no sí si más"
        " muy también ya entre sobre desde hasta tras durante según contra porque todo todos toda todas qué"
        " cuál hay tiene tienen será serán",
        "it": "il lo la i gli le l un uno una di del dello della dei degli delle e ed a al allo alla ai agli alle"
        " in nel nello nella nei negli nelle è sono era erano fu furono essere stato stata stati state ha"
        " hanno aveva avere per con su sul sulla da dal dalla dai che chi cui dove quando come si suo sua suoi"
        " sue loro lui lei noi voi io mi ci ma o né non più molto anche tra fra dopo prima questo questa"
        " questi queste quello quella c d sarà nell dell all dall",
        "pt": "o a os as um uma uns umas de do da dos das e em no na nos nas é são era eram foi foram ser está"
        " estão estava há tem têm tinha ter por pelo pela pelos pelas para com sem que quem cujo onde quando"
        " como se seu sua seus suas lhe ele ela eles elas este esta esse essa isso isto mas ou nem não mais"
        " muito também já entre sobre desde até após durante segundo contra porque todo todos toda todas ao"
        " aos à às num numa será qual",
        "nl": "de het een en van in op is was waren zijn wordt worden werd werden met voor door bij aan uit naar om"
        " te dat die dit deze er hij zij ze hun haar zijn wij we ik je jij niet geen ook nog maar of als dan"
        " wie wat waar wanneer hoe over onder tussen tegen tot na sinds zonder heeft hebben had hadden kan"
        " kunnen zal zou moet meer zeer al alle veel volgens tijdens omdat ten ter hem mij u",
    }.items()
}
# Languages that the lists above would be mistaken for: recognised so that they are told apart, nothing more.
FOILS: dict[str, frozenset[str]] = {
    language: frozenset(listed.split())
    for language, listed in {
        "sv": "och att det som är av för den till inte med har på var ett om han hon de en i",
        "da": "og at det som er af for den til ikke med har på var et om han hun de en i jeg blev",
        "pl": "i w z na się nie jest to że do o jak za od po przez był była są oraz który dla",
        "tr": "ve bir bu da de için ile olarak olan en daha gibi çok ne var değil sonra kadar",
        "ro": "și în de la a cu pe din nu este că un o care mai au fost pentru sunt al ale",
        "ca": "el la els les de del i a en és són va per amb que no un una els dels al ha més com aquest",
        "fi": "ja on ei se että oli hän mutta myös kun ovat joka tai kuin ole sen",
        "cs": "a v na je se že z do to s by byl byla jsou pro jako od po při který ve",
        "hu": "a az és hogy nem is egy volt van meg ez de csak már mint el",
        "id": "yang dan di ke dari ini itu untuk dengan tidak pada adalah dalam akan oleh juga",
        "vi": "và của là có không được cho trong một người những với các đã này khi",
    }.items()
}
# Frequent words that are content, elided and contracted forms: they say the language, and are no stop words.
_HINTS: dict[str, frozenset[str]] = {
    language: frozenset(listed.split())
    for language, listed in {
        "en": "'s 't 're 've 'll 'd 'm born people year years first new two three one city yes know made",
        "de": "geboren jahr jahre jahren stadt hauptstadt neue zwei drei leute ja weiß",
        "fr": "l' d' qu' c' j' n' s' né née ans année ville deux trois premier première oui hier",
        "es": "nació años año ciudad dos tres primer primera nueva",
        "it": "l' un' d' c' dell' all' nell' dall' sull' nato nata anni anno città due tre primo prima",
        "pt": "nasceu anos ano cidade dois duas três primeiro primeira sei",
        "nl": "geboren jaar stad hoofdstad mensen twee drie nieuwe eerste weet ja",
    }.items()
}
# Endings of longer words that hardly occur in the other languages; each counts a quarter of a word.
_ENDINGS = {
    "en": ("ed", "ly", "ity", "ness", "ght"),
    "de": ("ung", "ungen", "heit", "keit", "schaft", "lich"),
    "nl": ("heid", "ijk", "isch", "aar"),
    "fr": ("eux", "euse", "é", "ées", "ement"),
    "es": ("ción", "iones", "ado", "aron"),
    "it": ("zione", "zioni", "ità", "ato"),
    "pt": ("ção", "ções", "dade", "aram"),
}
_SCRIPTS = (
    ("kana", re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")),
    ("ko", re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")),
    ("th", re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e]")),
    ("ar", re.compile("[\u0620-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff]+")),
    ("he", re.compile("[\u05d0-\u05ea]+")),
    ("hi", re.compile("[\u0900-\u097f]+")),
    ("bn", re.compile("[\u0980-\u09ff]+")),
    ("ta", re.compile("[\u0b80-\u0bff]+")),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]+")),
    ("ru", re.compile("[\u0400-\u052f]+")),
    ("hy", re.compile("[\u0531-\u058a]+")),
    ("ka", re.compile("[\u10a0-\u10ff]+")),
    ("latin", re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]+")),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One piece of a text: `text == original[start:end]`, without outer white space; offsets in code points.

    >>> Sentence("Hi.", 0, 3).end
    3
    """

    text: str
    start: int
    end: int


def sentences(text: str, language: str | None = None, *, limit: int = 1000) -> list[Sentence]:
    """Split a text into sentences; the pieces joined equal the text up to white space, in order.

    The splitter is `sentencex` in `language` (default: `language_of(text)`). Then: every line is at least one piece (a
    list without stops is split at its lines), CJK marks end a piece without a space behind them, a list mark ("2.")
    stays with its item, and a piece longer than `limit` code points is cut at its last white space within the limit,
    else at the limit. Thai has no end mark: it is split at lines and at the marks of other scripts only.
    Blank text gives no piece. Raises ValueError for a limit below 1.

    >>> [s.text for s in sentences("Dr. Smith left. 你好。再见！\\n- milk\\n- bread")]
    ['Dr. Smith left.', '你好。', '再见！', '- milk', '- bread']
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    return list(_split(text, language, limit))


# One text is split by every task and every judge that sees it.
@lru_cache(maxsize=512)
def _split(text: str, language: str | None, limit: int) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    for start, end in _joined_marks(text, _cuts(text, language)):
        found.extend(Sentence(text[a:b], a, b) for a, b in _limited(text, start, end, limit))
    return tuple(found)


def _cuts(text: str, language: str | None) -> Iterator[tuple[int, int]]:
    import sentencex

    # The splitter takes UTF-8 only: a lone surrogate is shown to it as one replacement character, so offsets stay.
    shown = re.sub("[\ud800-\udfff]", "\ufffd", text)
    edges = {0, len(text)}
    for piece in sentencex.get_sentence_boundaries(language or language_of(text), shown):
        edges.update((piece["start_index"], piece["end_index"]))
    edges.update(i + 1 for i, c in enumerate(text) if c in "\n\r\u0085\u2028\u2029\v\f")
    for found in _UNSPACED_END.finditer(text):
        # The splitter parts some brackets from the mark they close after; alone they would be a sentence.
        edges -= set(range(found.start() + 1, found.end()))
    for pattern in (_UNSPACED_END, _SPACED_END, _PLAIN_END):
        edges.update(m.end() for m in pattern.finditer(text))
    ordered = sorted(edges)
    for start, end in pairwise(ordered):
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _joined_marks(text: str, cuts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    waiting: tuple[int, int] | None = None
    for start, end in cuts:
        if waiting is not None:
            # Only on the same line, so that a lone mark at the end of a line stays where it is.
            if not re.search(r"[\n\r]", text[waiting[1] : start]):
                start = waiting[0]
            else:
                yield waiting
            waiting = None
        if _LIST_MARK.fullmatch(text, start, end):
            waiting = (start, end)
        else:
            yield start, end
    if waiting is not None:
        yield waiting


def _limited(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    while end - start > limit:
        spaces = [i for i in range(start + limit, start, -1) if text[i].isspace()]
        cut = spaces[0] if spaces else start + limit
        yield start, start + len(text[start:cut].rstrip())
        start = cut + len(text[cut:end]) - len(text[cut:end].lstrip())
    yield start, end


@lru_cache(maxsize=4096)
def language_of(text: str) -> str:
    """The language of a text by a small rule: an ISO 639-1 code, or "und" where the rule cannot tell.

    The script with the most words (characters, where words are not spaced) decides: kana among Han is "ja", Han "zh",
    Hangul "ko", Thai "th", Devanagari "hi", Greek "el", Hebrew "he", and so on; Arabic script is "fa" or "ur" by their
    own letters, else "ar"; Cyrillic "uk" by its own, else "ru" (other languages in these scripts are not told apart).
    Latin script is decided by `STOPWORDS` and a few hints (frequent words, elided forms, endings at a quarter): each
    listed word counts 1 over the number of lists that hold it; the best list must reach half a word, a tenth of the
    words, and lead the second by a tenth of its own count; else "und". Eleven further languages are told apart.

    >>> [language_of(text) for text in ("The house is old.", "Das Haus ist alt.", "东京是首都", "Madrid")]
    ['en', 'de', 'zh', 'und']
    """
    shown = unicodedata.normalize("NFKC", text)
    counts = {name: len(pattern.findall(shown)) for name, pattern in _SCRIPTS}
    kana = counts.pop("kana")
    # A kana or two in a Chinese text is a loan (の); Japanese has more.
    if kana * 10 > counts["zh"]:
        counts["ja"] = kana + counts.pop("zh")
    script = max(sorted(counts), key=lambda name: counts[name])
    if counts[script] == 0:
        return "und"
    if script == "latin":
        return _latin_language(shown)
    if script == "ar":
        if re.search("[\u0679\u0688\u0691\u06ba\u06d2]", shown):
            return "ur"
        return "fa" if re.search("[\u067e\u0686\u0698\u06af]", shown) else "ar"
    if script == "ru":
        return "uk" if re.search("[\u0456\u0457\u0454\u0491]", shown.casefold()) else "ru"
    return script


# An elided form before an apostrophe ("l'"), an English one behind it ("'s"), or a word.
_LATIN_WORD = re.compile(
    r"(?<![^\W_])[^\W\d_]{1,4}'(?=[^\W\d_]{3})|(?<=[^\W\d_])'[^\W\d_]{1,2}\b|[^\W\d_]+",
)


def _latin_language(shown: str) -> str:
    text = re.sub(f"[{_APOSTROPHES}]", "'", shown.casefold())
    tokens = _LATIN_WORD.findall(text)
    weights = _stopword_weights()
    scores = dict.fromkeys([*STOPWORDS, *FOILS], 0.0)
    for token in tokens:
        for language, weight in weights.get(token, ()):
            scores[language] += weight
        if len(token) > 4 and token not in weights:
            for language, endings in _ENDINGS.items():
                scores[language] += 0.25 * token.endswith(endings)
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    (best, first), (_, second) = ranked[0], ranked[1]
    sure = first >= 0.5 and first >= 0.1 * len(tokens) and first - second >= 0.1 * first
    return best if sure else "und"


@lru_cache(maxsize=1)
def _stopword_weights() -> dict[str, tuple[tuple[str, float], ...]]:
    own = {language: listed | _HINTS[language] for language, listed in STOPWORDS.items()}
    holders: dict[str, list[str]] = {}
    for language, listed in [*own.items(), *FOILS.items()]:
        for word in sorted(listed):
            holders.setdefault(word, []).append(language)
    # A foil shares its words with all lists, a known language only with its equals: foils win by words of their own.
    return {
        word: tuple((la, 1 / (len(las) if la in FOILS else sum(x in own for x in las))) for la in las)
        for word, las in holders.items()
    }


def words(text: str) -> list[str]:
    """The words of a text in order: NFKC, case-folded, without punctuation; characters for CJK, Hangul and Thai.

    Apostrophes, and points or commas between digits, are deleted; all other punctuation parts words.

    >>> words("The cat's well-known 3,000 naps… 東京。")
    ['the', 'cats', 'well', 'known', '3000', 'naps', '東', '京']
    """
    shown = re.sub(rf"[{_APOSTROPHES}]|(?<=\d)[.,](?=\d)", "", _folded(text))
    return _TOKEN.findall("".join(" " if _is_punctuation(c) else c for c in shown))


def f1_tokens(text: str, language: str | None = None) -> list[str]:
    """The tokens of token F1, in order, to be compared as a multiset.

    SQuAD's normalisation (Rajpurkar et al. 2016), made for every script: NFKC and case-folded; punctuation (Unicode's,
    and ASCII's symbols) deleted and not replaced by a space; the articles a, an, the dropped in English only
    (`language`, default `language_of`; "und" counts as English where "the" or "an" stands in it); split at white
    space; CJK, Hangul and Thai by character.

    >>> f1_tokens("the cat's"), f1_tokens("cats"), f1_tokens("Il a faim", "fr"), f1_tokens("東京。")
    (['cats'], ['cats'], ['il', 'a', 'faim'], ['東', '京'])
    """
    tokens = _TOKEN.findall("".join(c for c in _folded(text) if not _is_punctuation(c)))
    known = language or language_of(text)
    english = known == "en" or (known == "und" and not {"the", "an"}.isdisjoint(tokens))
    return [t for t in tokens if t not in _ARTICLES] if english else tokens


_ARTICLES = frozenset(("a", "an", "the"))


def _folded(text: str) -> str:
    once = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", once)


@lru_cache(maxsize=8192)
def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") or character in string.punctuation


# What belongs to the character before it when folding: combining marks, half-width voicing marks, conjoining jamo.
_CLUSTER = re.compile(
    r"[\u1100-\u115f\ua960-\ua97f]+[\u1160-\u11ff]*"
    r"|.[\u0300-\u036f\u3099\u309a\uff9e\uff9f\u1ab0-\u1aff\u20d0-\u20ff]*",
    re.S,
)


def fold(text: str) -> str:
    """A text for comparison: NFKC, case-folded, white space collapsed to single spaces, outer space removed.

    >>> fold("Ｓtraße  \\n 12")
    'strasse 12'
    """
    return _folded_with_offsets(text)[0]


# The quotes of one reply are looked for in the same few documents.
@lru_cache(maxsize=64)
def _folded_with_offsets(text: str) -> tuple[str, list[tuple[int, int]]]:
    pieces: list[str] = []
    offsets: list[tuple[int, int]] = []
    for match in _CLUSTER.finditer(text):
        folded = _folded(match.group())
        if not folded.strip():
            folded = " " if pieces and pieces[-1] != " " else ""
        for character in folded.replace("\u00a0", " "):
            pieces.append(character)
            offsets.append(match.span())
    if pieces and pieces[-1] == " ":
        del pieces[-1], offsets[-1]
    return "".join(pieces), offsets


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Where a quote stands in a text: `(start, end)` in the original text, or None.

    The first exact occurrence; else the first where both are folded (`fold`). Outer white space of the quote is
    ignored; a blank quote is nowhere.

    >>> text = "He said:  CAFÉ\\nnoir."
    >>> find_quote("café noir", text), find_quote("thé", text)
    ((10, 19), None)
    """
    wanted = quote.strip()
    if is_blank(wanted):
        return None
    at = text.find(wanted)
    if at >= 0:
        return at, at + len(wanted)
    folded, offsets = _folded_with_offsets(text)
    needle = fold(wanted)
    at = folded.find(needle) if needle else -1
    return None if at < 0 else (offsets[at][0], offsets[at + len(needle) - 1][1])


def is_blank(text: str) -> bool:
    """Whether nothing can be read in a text: only spaces, control and format characters (zero width, BOM).

    >>> is_blank(" \\u200b\\n"), is_blank("0")
    (True, False)
    """
    return all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp") for c in text)


def estimate_tokens(text: str) -> int:
    """A guess of the tokens in a text, before anything is sent: UTF-8 bytes over 4, rounded up.

    >>> estimate_tokens("token"), estimate_tokens("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
