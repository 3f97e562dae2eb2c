"""Reading numbers, labels and numbered items out of a judge's reply: the one place where replies are taken apart.

Nothing is guessed, clamped or defaulted. A reply is JSON that somebody else has parsed; strings are compared after
NFKC.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jurimetrics.errors import FailureKind, ReplyError

T = TypeVar("T")

_WHOLE = re.compile(r"[+-]?\d{1,15}(?:\.0+)?")
_COUNTED = re.compile(r"(.+):(\d+)")
_SHOWN_FAULTS = 5


def normal(value: str) -> str:
    """NFKC without outer white space.

    >>> normal(" ４ ")
    '4'
    """
    return unicodedata.normalize("NFKC", value).strip()


def is_numeral(character: str) -> bool:
    """Whether a character stands for a number without being a digit of one: raised, lowered, circled, a fraction.

    NFKC makes plain digits of them, and then a footnote's mark is one more digit of the number before it.

    >>> [is_numeral(character) for character in "²①½４٤4"]
    [True, True, True, False, False, False]
    """
    return character.isnumeric() and not character.isdecimal()


def is_whole(value: Any) -> int | None:
    """The integer that a reply's value is, or None: `4`, `4.0` and `"4"` in any script are 4.

    True, 4.5, NaN, "4/5", "four" and null are no integers; nor is "1²", which NFKC alone would make 12.

    >>> [is_whole(value) for value in (4, 4.0, "４", "٤", True, 4.5, "4/5", "1²", None)]
    [4, 4, 4, 4, None, None, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, str) and not any(map(is_numeral, value)) and _WHOLE.fullmatch(normal(value)):
        return int(normal(value).partition(".")[0])
    return None


def whole(value: Any, low: int, high: int, field: str) -> int:
    """The integer in a reply's `field`, from `low` to `high`.

    Raises `ReplyError`: `unparsed` where it is no integer, `out_of_range` where it lies outside.

    >>> whole(9, 0, 5, "score")
    Traceback (most recent call last):
    jurimetrics.errors.ReplyError: out_of_range: score is 9, outside 0 to 5
    """
    number = is_whole(value)
    if number is None:
        raise ReplyError("unparsed", f"{field} must be an integer from {low} to {high}, not {_shown(value)}")
    if not low <= number <= high:
        raise ReplyError("out_of_range", f"{field} is {number}, outside {low} to {high}")
    return number


def label(value: Any, options: Sequence[str], field: str) -> str:
    """The one of `options` that a reply's `field` names, apart from case, width and outer white space.

    Raises `ReplyError` (`unparsed`) for everything else: labels are read, never interpreted.

    >>> label("Supported ", ("supported", "unknown"), "verdict")
    'supported'
    """
    if isinstance(value, str):
        named = re.sub(r"[\s-]+", "_", normal(value).casefold())
        if named in options:
            return named
    raise ReplyError("unparsed", f"{field} must be one of {', '.join(options)}, not {_shown(value)}")


def text(value: Any, field: str) -> str:
    """The text in a reply's `field`, without outer white space. Raises `ReplyError` (`unparsed`) where it is none.

    >>> text(" because ", "reason")
    'because'
    """
    if not isinstance(value, str):
        raise ReplyError("unparsed", f"{field} must be a text, not {_shown(value)}")
    return value.strip()


def truth(value: Any, field: str) -> bool:
    """The boolean in a reply's `field`. Raises `ReplyError` (`unparsed`) for all else, `"false"` included.

    >>> truth(False, "sources_conflict")
    False
    """
    if not isinstance(value, bool):
        raise ReplyError("unparsed", f"{field} must be true or false, not {_shown(value)}")
    return value


def listed(item: Mapping[str, Any], field: str) -> list[Any]:
    """The list in an item's `field`; null stands for an empty one. Raises `ReplyError` (`unparsed`) otherwise.

    >>> listed({"evidence": None}, "evidence")
    []
    """
    value = item.get(field, "missing")
    if value is None:
        return []
    if not isinstance(value, list):
        raise ReplyError("unparsed", f"{field} must be a list, not {_shown(value)}")
    return value


def one_object(reply: Any) -> Mapping[str, Any]:
    """The object that a reply is; a list of one object counts. Raises `ReplyError` (`unparsed`) otherwise.

    >>> one_object([{"score": 4}])
    {'score': 4}
    """
    if isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    if not isinstance(reply, Mapping):
        raise ReplyError("unparsed", f"the reply must be one JSON object, not {_shown(reply)}")
    return reply


def _shown(value: Any) -> str:
    shown = "missing" if value is None else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """How one task's numbered items stand in a reply: under `key`, numbered in the field `index`, called `noun`.

    `read` makes an item's value (raises `ReplyError`); `choice` is what of it is decided: two items with the same
    number and the same choice are a repetition, with different choices they contradict each other.

    >>> shape = Shape("words", "n", "word", lambda number, item: text(item.get("word"), "word"), str.casefold)
    >>> read_items({"words": [{"n": 2, "word": "b"}, {"n": 1, "word": "a"}]}, shape, (1, 2)).values
    ('a', 'b')
    """

    key: str
    index: str
    noun: str
    read: Callable[[int, Mapping[str, Any]], T]
    choice: Callable[[T], Any]


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """The values of all wanted items in order of their numbers, and how many unknown or repeated ones were dropped.

    >>> Reading(("yes",), 2).flags
    ('dropped:2',)
    """

    values: tuple[T, ...]
    dropped: int

    @property
    def flags(self) -> tuple[str, ...]:
        """`dropped:N`, if there were any."""
        return (f"dropped:{self.dropped}",) if self.dropped else ()


def read_items(reply: Any, shape: Shape[T], wanted: Sequence[int]) -> Reading[T]:
    """The items of a reply, every wanted number exactly once.

    Unknown and repeated numbers are dropped and counted; a number repeated with different choices counts as missing.
    Raises `ReplyError` where an item is missing (`incomplete`), unreadable (`unparsed`) or off its scale
    (`out_of_range`); it carries the valid items and the numbers to ask again.

    >>> shape = Shape("words", "n", "word", lambda number, item: text(item.get("word"), "word"), str.casefold)
    >>> read_items({"words": [{"n": 1, "word": "a"}]}, shape, (1, 2))
    Traceback (most recent call last):
    jurimetrics.errors.ReplyError: incomplete: word 2 is missing
    """
    sorting = _sort(reply, shape, wanted)
    if sorting.faults:
        faults = list(sorting.faults.values())
        kinds = {fault.kind for fault in faults}
        kind: FailureKind = next((k for k in ("out_of_range", "unparsed") if k in kinds), "incomplete")
        said = "; ".join(fault.fault for fault in faults[:_SHOWN_FAULTS])
        more = f"; and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
        raise ReplyError(kind, said + more, sorting.kept(shape, wanted), tuple(sorting.faults))
    return Reading(tuple(sorting.values[number][1] for number in wanted), sorting.dropped)


def merge_items(previous: Mapping[str, Any], reply: Any, shape: Shape[T], wanted: Sequence[int]) -> Any:
    """A re-ask's reply laid over the reply before it: its valid items replace or add, earlier valid ones stay.

    Where the first reply had nothing to keep, the new one stands alone. Items of the new reply that cannot be read stay
    only where there is no valid earlier one, so that reading the merged reply names their fault.

    >>> shape = Shape("words", "n", "word", lambda number, item: text(item.get("word"), "word"), str.casefold)
    >>> merged = merge_items({"words": [{"n": 1, "word": "a"}]}, {"words": [{"n": 2, "word": "b"}]}, shape, (1, 2))
    >>> read_items(merged, shape, (1, 2)).values
    ('a', 'b')
    """
    if not previous:
        return reply
    before = _sort(previous, shape, wanted)
    if not before.values:
        return reply
    try:
        after = _sort(reply, shape, wanted)
    except ReplyError:
        return before.kept(shape, wanted)
    raw = [
        entry
        for number in wanted
        for entry in (
            [after.values[number][0]]
            if number in after.values
            else [before.values[number][0]]
            if number in before.values
            else after.unread.get(number, [])
        )
    ]
    return {shape.key: raw, "dropped": before.dropped + after.dropped}


@dataclass(frozen=True, slots=True)
class _Sorting(Generic[T]):
    values: dict[int, tuple[Mapping[str, Any], T]]
    unread: dict[int, list[Mapping[str, Any]]]
    faults: dict[int, ReplyError]
    dropped: int

    def kept(self, shape: Shape[T], wanted: Sequence[int]) -> dict[str, Any]:
        if not self.values:
            return {}
        kept: dict[str, Any] = {shape.key: [self.values[number][0] for number in wanted if number in self.values]}
        return {**kept, "dropped": self.dropped} if self.dropped else kept


def _sort(reply: Any, shape: Shape[T], wanted: Sequence[int]) -> _Sorting[T]:
    entries, dropped = _entries(reply, shape)
    groups: dict[int, list[Mapping[str, Any]]] = {}
    allowed = set(wanted)
    for entry in entries:
        number = is_whole(entry.get(shape.index)) if isinstance(entry, Mapping) else None
        if number in allowed and number is not None:
            groups.setdefault(number, []).append(entry)
        else:
            dropped += 1
    sorting: _Sorting[T] = _Sorting({}, {}, {}, dropped)
    for number in wanted:
        group = groups.get(number, [])
        dropped += max(0, len(group) - 1)
        try:
            sorting.values[number] = (group[0] if group else {}, _agreed(number, group, shape))
        except ReplyError as error:
            sorting.faults[number] = error
            sorting.unread[number] = group
    return _Sorting(sorting.values, sorting.unread, sorting.faults, dropped)


def _agreed(number: int, group: list[Mapping[str, Any]], shape: Shape[T]) -> T:
    name = f"{shape.noun} {number}"
    if not group:
        raise ReplyError("incomplete", f"{name} is missing")
    try:
        values = [shape.read(number, entry) for entry in group]
    except ReplyError as error:
        raise ReplyError(error.kind, f"{name}: {error.fault}") from error
    if any(shape.choice(value) != shape.choice(values[0]) for value in values):
        raise ReplyError("incomplete", f"{name} is given {len(values)} times with different answers")
    return values[0]


def _entries(reply: Any, shape: Shape[T]) -> tuple[list[Any], int]:
    """The raw items and how many were dropped before (a merged reply remembers)."""
    if isinstance(reply, list):
        if len(reply) == 1 and isinstance(reply[0], Mapping) and shape.key in reply[0]:
            reply = reply[0]
        elif all(isinstance(entry, Mapping) and shape.index in entry for entry in reply):
            return reply, 0
    if isinstance(reply, Mapping):
        inner = reply.get(shape.key)
        if isinstance(inner, list):
            return inner, max(0, is_whole(reply.get("dropped")) or 0)
        if shape.key not in reply and shape.index in reply:
            return [reply], 0
    raise ReplyError("unparsed", f'the reply must be an object with the list "{shape.key}", not {_shown(reply)}')


def joined_flags(*flags: Iterable[str]) -> tuple[str, ...]:
    """Flags of several answers as those of one: each once, sorted; counts (`dropped:2`) are added.

    >>> joined_flags(("dropped:1", "split"), ("dropped:2",), ("split",))
    ('dropped:3', 'split')
    """
    plain: set[str] = set()
    counts: dict[str, int] = {}
    for flag in (flag for some in flags for flag in some):
        counted = _COUNTED.fullmatch(flag)
        if counted:
            counts[counted.group(1)] = counts.get(counted.group(1), 0) + int(counted.group(2))
        else:
            plain.add(flag)
    return tuple(sorted([*plain, *(f"{name}:{count}" for name, count in counts.items())]))
