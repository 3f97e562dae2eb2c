"""Word-for-word quotes in a reply, and whether the documents really hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jurimetrics.tasks.items import is_whole
from jurimetrics.text import find_quote

QUOTES_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"doc": {"type": "integer"}, "quote": {"type": "string"}},
        "required": ["doc", "quote"],
        "additionalProperties": False,
    },
}
"""The shape of an `evidence` field; `doc` counts from 1 as the prompt shows the documents."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that a judge quoted and that was found: `documents[doc][start:end]` is it, `quote` as in the document.

    `doc` counts from 0, offsets are code points.

    >>> Quote(0, "in Paris", 9, 17).end
    17
    """

    doc: int
    quote: str
    start: int
    end: int


def verified(entries: Iterable[Any], documents: Sequence[str]) -> tuple[Quote, ...]:
    """The quotes of an `evidence` list that stand in the documents, each once, in order of the reply.

    An entry is `{"doc": 1, "quote": "..."}`; it is looked for in the document it names, then in the others (exact, then
    folded: `find_quote`). What is found nowhere is left out: it proves nothing.

    >>> verified([{"doc": 2, "quote": "WAS built"}, {"doc": 1, "quote": "made up"}], ["A tower.", "It was built."])
    (Quote(doc=1, quote='was built', start=3, end=12),)
    """
    found = (_locate(entry, documents) for entry in entries)
    return tuple(dict.fromkeys(quote for quote in found if quote is not None))


def _locate(entry: Any, documents: Sequence[str]) -> Quote | None:
    wanted = entry.get("quote") if isinstance(entry, dict) else entry
    # A full stop stands in every document and proves nothing.
    if not isinstance(wanted, str) or not any(character.isalnum() for character in wanted):
        return None
    named = (is_whole(entry.get("doc")) or 0) - 1 if isinstance(entry, dict) else -1
    for doc in sorted(range(len(documents)), key=lambda doc: (doc != named, doc)):
        place = find_quote(wanted, documents[doc])
        if place is not None:
            return Quote(doc, documents[doc][place[0] : place[1]], *place)
    return None
