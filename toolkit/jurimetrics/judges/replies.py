"""From the text of a judge's reply to an answer, or to a typed fault; nothing is guessed on the way.

The text is whatever a model wrote, and the model has read other people's text: an object that it repeats from an answer
must not become its verdict. So the object that counts is the last one at the outermost level, numbers are never looked
for in prose, and a reply that was cut off is never completed.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from jurimetrics.errors import ReplyError
from jurimetrics.tasks.items import is_numeral

T = TypeVar("T")

LONGEST_REPAIR = 100_000
"""Characters up to which a broken object is repaired; the time of a repair grows faster than the text."""

_CUT = "the JSON is cut off: a bracket or a quotation mark is never closed"


def parse_reply(
    text: str,
    read: Callable[[Any], T],
    keys: Collection[str] = (),
    echoed: Callable[[dict[str, Any]], bool] = lambda entry: False,
) -> tuple[dict[str, Any], T]:
    """The object in a reply and the answer that `read` makes of it. Raises `ReplyError`.

    The whole text as JSON; else the last of the outermost objects in it that `read` accepts, outside of thinking blocks,
    whatever fences and prose stand around. A list that holds one object is that object; a JSON string that holds JSON is
    what it holds. Wrong quotation marks and commas are mended where nothing else changes by it; fullwidth and non-Latin
    digits and signs outside of strings count as the ASCII ones. Refused: NaN, infinities, a key twice with different
    values, several objects in one list, an object never closed.

    If the last object that is meant as the answer (it holds one of `keys`, the fields of the asked object) is faulty,
    that is the fault of the reply: an earlier object, which may be a quotation, is not taken in its stead. The error
    has the kind `refused` where nothing parses and the text opens by declining, else `unparsed` or what `read` raised;
    a fault found here never quotes the reply.

    >>> parse_reply('<think>{"score": 5}</think>Verdict: ```json\\n{"score": 3,}\\n```', lambda data: data["score"])
    ({'score': 3}, 3)
    >>> parse_reply("I give 4 of 5.", lambda data: data["score"])
    Traceback (most recent call last):
    jurimetrics.errors.ReplyError: unparsed: there is no JSON object in the reply
    """
    text = text.lstrip("\ufeff").strip()
    if not text:
        raise ReplyError("unparsed", "the reply is empty")
    if text[0] in '{["':
        found = _strict(text)
        if isinstance(found, str):
            found = _strict(found.strip())
        if found is not None and not isinstance(found, str):
            return _taken([_object(found)], read, keys, echoed)
    found_in_prose = objects_in(text)
    if not any(isinstance(entry, dict) for entry in found_in_prose):
        plain = _plain(text)
        found_in_prose = (objects_in(plain) if plain != text else []) or found_in_prose
    if not found_in_prose and declines(text):
        raise ReplyError("refused", "the judge declined to answer")
    return _taken(found_in_prose, read, keys, echoed)


@dataclass(frozen=True, slots=True)
class _Fault:
    """An object that is there and cannot be used."""

    what: str


class _NotAllowedError(ValueError):
    """JSON in form that is not taken as an answer."""


def _taken(
    entries: list[dict[str, Any] | _Fault],
    read: Callable[[Any], T],
    keys: Collection[str],
    echoed: Callable[[dict[str, Any]], bool],
) -> tuple[dict[str, Any], T]:
    first: ReplyError | None = None
    for entry in reversed(entries):
        if isinstance(entry, _Fault):
            raise first or ReplyError("unparsed", entry.what)
        if echoed(entry):
            raise first or ReplyError("unparsed", "the last object only repeats one of the texts that were shown")
        try:
            return entry, read(entry)
        except ReplyError as error:
            if error.kind != "unparsed" or not entry.keys().isdisjoint(keys):
                raise
            first = first or error
    raise first or ReplyError("unparsed", "there is no JSON object in the reply")


def _object(value: Any) -> dict[str, Any] | _Fault:
    if isinstance(value, _Fault | dict):
        return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        return value[0]
    held = f"a list of {len(value)}" if isinstance(value, list) else "a bare value"
    return _Fault(f"the reply is {held} where one JSON object is asked")


# --- strict JSON ---


def _refuse_constant(name: str) -> NoReturn:
    raise _NotAllowedError(f"{name} is not a number in JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _NotAllowedError("a number is too large")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        for key, value in pairs:
            if json.dumps(made[key]) != json.dumps(value):
                raise _NotAllowedError("a key stands twice in one object, with different values")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant)


def _strict(text: str) -> Any:
    """The JSON value that the whole text is; None where it is none, a `_Fault` where it is refused."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError:
        return None
    except _NotAllowedError as refused:
        return _Fault(str(refused))
    except (ValueError, RecursionError):  # digits beyond what int() takes; nesting beyond the stack
        return _Fault("the JSON holds a number too long or is nested too deeply")
    return _well_formed(value) if "\\u" in text or not text.isascii() else value


def _well_formed(value: Any) -> Any:
    """Half of a surrogate pair, which no file can hold, becomes the replacement character."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(part) for key, part in value.items()}
    return [_well_formed(part) for part in value] if isinstance(value, list) else value


# --- objects within other text ---

_MARK = re.compile(
    r"<(?P<slash>/?)(?P<tag>think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>"
    r"|◁(?P<slash2>/?)think▷|\[(?P<slash3>/?)THINK\]|<\|channel\|>\s*(?P<channel>\w+)|[{\[]",
    re.IGNORECASE,
)
_LOOKS_LIKE_JSON = re.compile(r"[{\[]\s*(?:\{\s*)?(?:[\"'“”‘’＂{}]|\\\"|\w+\s*[:：])")
_STRING = r'"(?:[^"\\]|\\.)*+"'
_BRACKET = re.compile(rf'{_STRING}|[{{}}\[\]]|"', re.DOTALL)


def objects_in(text: str) -> list[dict[str, Any] | _Fault]:
    """The outermost objects of a text in order, outside of thinking blocks; faults for those that cannot be used."""
    found: list[dict[str, Any] | _Fault] = []
    at = 0
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark.group() in "{[":
            if not _LOOKS_LIKE_JSON.match(text, mark.start()):
                continue
            entry, at = _outermost(text, mark.start())
            if entry is not None:
                found.append(entry)
        elif mark["channel"]:
            # Everything before the final channel was thinking, and so is every channel that is not the final one.
            found.clear()
            if not mark["channel"].lower().startswith("final"):
                at = _after(text, at, re.compile(r"(?=<\|channel\|>)"))
        elif mark["slash"] or mark["slash2"] or mark["slash3"]:
            # A closing mark whose opening one stood in the prompt: all before it was thinking.
            found.clear()
        else:
            closing = mark.group().replace("<", "</", 1).replace("◁", "◁/", 1).replace("[", "[/", 1)
            at = _after(text, at, re.compile(re.escape(closing), re.IGNORECASE))
    return found


def _after(text: str, at: int, closing: re.Pattern[str]) -> int:
    closed = closing.search(text, at)
    return closed.end() if closed else len(text)


def _outermost(text: str, start: int) -> tuple[dict[str, Any] | _Fault | None, int]:
    """The object (or list of one) that opens at `start`, and where to go on; None for what is no JSON after all."""
    end = _closed(text, start)
    if end is None:
        return _Fault(_CUT), len(text)
    # Only its own stretch is looked at, or the time for many objects would grow with the square of the text.
    span = text[start:end]
    value = _strict(span)
    if value is None:
        value = _mended(span)
    return (_Fault("the JSON is not valid") if value is None else _object(value)), end


def _closed(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed, every bracket by its own kind; None where it never is."""
    open_: list[str] = []
    for match in _BRACKET.finditer(text, start):
        bracket = match.group()
        if bracket in "{[":
            open_.append("}" if bracket == "{" else "]")
        elif bracket in "}]":
            if open_.pop() != bracket:
                return None
            if not open_:
                return match.end()
        elif bracket == '"':
            return None
    return None


# --- mending ---

_QUOTE = re.compile(r"[\"'`´“”„‟‘’‚‛«»‹›＂＇\\]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _mended(span: str) -> Any:
    """The value of a closed but faulty JSON text, if mending changed nothing but quotation marks and commas."""
    if len(span) > LONGEST_REPAIR:
        return None
    import json_repair

    for candidate in dict.fromkeys((span, _plain(span))):
        try:
            strict = _strict(candidate)
            value = json_repair.loads(candidate, skip_json_loads=True) if strict is None else strict
        except (ValueError, RecursionError, IndexError):
            continue
        if isinstance(value, dict | list) and (strict is not None or _letters(candidate) == _letters(_written(value))):
            return _well_formed(value)
    return None


def _letters(text: str) -> str:
    """What a mend must leave alone: all but quotation marks, commas not between digits, and space between words."""
    unescaped = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPED.get(m[2], m[2]), text)
    bare = _QUOTE.sub("", re.sub(r"\s*,\s*", ",", unescaped))
    spaced = re.sub(r"\s+", " ", re.sub(r"(?<!\d),|,(?!\d)", " ", bare))
    return re.sub(r" ?(?<=\W) | (?=\W)", "", spaced).strip().casefold()


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(part) for part in value) + "]"
    # The escaping of a backslash survives the unescaping that both sides go through.
    return value.replace("\\", "\\\\") if isinstance(value, str) else json.dumps(value)


def _plain(text: str) -> str:
    """The text with compatibility forms (NFKC) and decimal digits of any script as ASCII, outside of JSON strings."""
    if text.isascii():
        return text
    pieces: Iterable[str] = re.findall(rf'{_STRING}|[^"]+|"', text, re.DOTALL)
    return "".join(piece if piece[0] == '"' else _ascii_forms(piece) for piece in pieces)


def _ascii_forms(piece: str) -> str:
    # Raised and circled digits stay: after NFKC, the mark of a footnote would be one more digit of the score.
    shown = "".join(c if is_numeral(c) else unicodedata.normalize("NFKC", c) for c in piece)
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in shown)


# --- refusals ---

_DECLINES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:(?:very|so|really|truly)\s+)?(?:sorry|afraid)\W+(?:but\s+|that\s+)?"
        r"|(?:so\s+)?sorry\W+(?:but\s+)?|(?:my\s+|i\s+|we\s+)apolog\w+\W+(?:but\s+)?|unfortunately\W+"
        r"|as an? [^,.]{2,60},\s*)*"
        r"(?:i|we)\s*(?:can(?:['’]?t|\s?not)|could\s?n['’o]t|won['’]?t|will not|['’]?m (?:unable|not able)"
        r"|am (?:unable|not able)|are (?:unable|not able)|must decline|have to decline|decline)\b(?:\s+to)?(?:\s+\w+){0,2}?"
        r"\s*\b(?:help|assist|comply|fulfil|fulfill|provide|continue|engage|discuss|do (?:that|this)|answer|respond"
        r"|evaluate|rate|judge|assess|participate|decline|process|complete)\b",
        r"i (?:must|have to) (?:respectfully )?decline",
        r"(?:es tut mir leid|tut mir leid|leider|entschuldigung)\b.{0,80}\b(?:kann|darf|möchte)\b.{0,80}\bnicht\b",
        r"(?:je suis désolée?|désolée?|je regrette|malheureusement)\b.{0,80}\bje ne (?:peux|puis)\b",
        r"(?:lo siento|lamento|lo lamento|disculpa)\b.{0,80}\bno puedo\b",
        r"(?:desculpe|sinto muito|lamento|infelizmente)\b.{0,80}\bnão (?:posso|consigo)\b",
        r"(?:mi dispiace|spiacente|purtroppo)\b.{0,80}\bnon (?:posso|riesco)\b",
        r"(?:het spijt me|sorry|helaas)\b.{0,80}\bkan ik\b.{0,80}\bniet\b",
        r"(?:извините|простите|к сожалению)\b.{0,80}\bне (?:могу|можем)\b",
        r"(?:(?:很|非常)?抱歉|对不起|對不起).{0,40}(?:无法|無法|不能|不便)",
        r"我(?:无法|無法|不能)(?:提供|协助|協助|帮助|幫助|回答|满足|滿足)",
        r"(?:申し訳|すみません|恐れ入り|残念ながら).{0,60}(?:できません|できかね|いたしかね)",
        r"죄송.{0,60}(?:없습니다|어렵습니다)",
        r"(?:عذر|آسف|أعتذر|نأسف).{0,80}(?:لا أستطيع|لا يمكنني|لا نستطيع)",
    )
)


def declines(text: str) -> bool:
    """Whether a text opens by declining to answer (a short list of openings in a few languages).

    >>> declines("I'm sorry, but I can't help with that."), declines("The answer says: I can't help with that.")
    (True, False)
    """
    opening = text.lstrip("\ufeff \n\t\"'*_#>").replace("\n", " ")[:300]
    return any(pattern.match(opening) for pattern in _DECLINES)
