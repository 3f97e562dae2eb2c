"""Documents that do not fit into one prompt, as groups of documents and passages that do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar, cast

from jurimetrics.tasks.preamble import documents_block
from jurimetrics.tasks.quotes import Quote
from jurimetrics.tasks.task import DoesNotFit, Items, Message
from jurimetrics.text import estimate_tokens, sentences

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of document number `doc` (from 0): `text == documents[doc][start:start + len(text)]`.

    >>> Passage(0, 0, "A whole document.").start
    0
    """

    doc: int
    start: int
    text: str

    def restore(self, quote: Quote) -> Quote:
        """A quote from this passage, as a quote from its document."""
        return Quote(self.doc, quote.quote, self.start + quote.start, self.start + quote.end)


Group = tuple[Passage, ...]


def whole(documents: Sequence[str]) -> Group:
    """All documents as one group, uncut.

    >>> [passage.doc for passage in whole(["a", "b"])]
    [0, 1]
    """
    return tuple(Passage(doc, 0, text) for doc, text in enumerate(documents))


def message_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens messages take: UTF-8 bytes of their texts over 4.

    >>> message_tokens([{"role": "user", "content": "abcdefgh"}])
    2
    """
    return sum(estimate_tokens(message["content"]) for message in messages)


def groups(
    documents: Sequence[str], rest: int = 0, max_tokens: int | None = None, limit: int | None = None
) -> tuple[Group, ...]:
    """The documents in order as few groups that each fit: at most `limit` documents, `max_tokens` with the rest.

    `rest` is what the prompt takes without its documents. A document that does not fit alone is cut into passages at
    sentence ends. `max_tokens` None: no bound. Raises `DoesNotFit` where the rest leaves no room for a sentence.

    >>> [[(p.doc, p.text) for p in group] for group in groups(["One.", "Two.", "Three."], limit=2)]
    [[(0, 'One.'), (1, 'Two.')], [(2, 'Three.')]]
    """
    made: list[list[Passage]] = [[]]
    pieces = whole(documents) if max_tokens is None else _pieces(documents, max_tokens - rest, max_tokens)
    for piece in pieces:
        longer = [*made[-1], piece]
        full = max_tokens is not None and rest + _taken(longer) > max_tokens
        if made[-1] and (full or (limit is not None and len(longer) > limit)):
            made.append([piece])
        else:
            made[-1] = longer
    return tuple(tuple(group) for group in made)


def groups_for(chunks: Sequence[Any], documents: Sequence[str], max_tokens: int | None) -> tuple[Group, ...]:
    """One grouping of the documents for all chunks of a task's items, so that they share their prompts' beginning.

    One group of whole documents where every chunk fits with all of them. Chunks are tasks with a field `documents`.

    >>> len(groups_for([], ["One.", "Two."], None))
    1
    """
    if max_tokens is None or all(message_tokens(chunk.messages()) <= max_tokens for chunk in chunks):
        return (whole(documents),)
    rest = max(message_tokens(replace(chunk, documents=()).messages()) for chunk in chunks)
    return groups(documents, rest, max_tokens)


def shown_to(chunks: Sequence[T], evidence: Sequence[Group]) -> tuple[T, ...]:
    """The parts that are asked: every chunk over the first group of documents, then over the next, ...

    >>> from jurimetrics.tasks.check import CheckClaims
    >>> groups_of_one = [(Passage(0, 0, "One."),), (Passage(1, 0, "Two."),)]
    >>> [part.documents for part in shown_to([CheckClaims(("It is old.",), ("One.", "Two."))], groups_of_one)]
    [('One.',), ('Two.',)]
    """
    texts = [tuple(passage.text for passage in group) for group in evidence]
    return tuple(replace(cast(Any, chunk), documents=shown) for shown in texts for chunk in chunks)


def by_group(answers: Sequence[Items[T]], evidence: Sequence[Group]) -> list[tuple[T, ...]]:
    """The answers to the parts of `shown_to`, item by item: its value over each group, quotes in the whole documents.

    >>> from jurimetrics.tasks.check import Verdict
    >>> said = Items((Verdict("It is old.", "supported", "", (Quote(0, "old", 4, 7),)),))
    >>> by_group([said], [(Passage(3, 100, "The old hall."),)])[0][0].evidence
    (Quote(doc=3, quote='old', start=104, end=107),)
    """
    chunks = len(answers) // len(evidence)
    rounds = [answers[at * chunks : (at + 1) * chunks] for at in range(len(evidence))]
    values = [
        [_restored(value, group) for value in chain.from_iterable(answered)]
        for group, answered in zip(evidence, rounds, strict=True)
    ]
    return list(zip(*values, strict=True))


def _restored(value: T, group: Group) -> T:
    quotes = tuple(group[quote.doc].restore(quote) for quote in cast(Any, value).evidence)
    return cast(T, replace(cast(Any, value), evidence=quotes))


def _taken(group: Sequence[Passage]) -> int:
    return estimate_tokens(documents_block([passage.text for passage in group]))


def _pieces(documents: Sequence[str], room: int, max_tokens: int) -> Group:
    made: list[Passage] = []
    for passage in whole(documents):
        made.extend([passage] if _taken([passage]) <= room else _passages(passage, room, max_tokens))
    return tuple(made)


_FENCE = 40
"""Tokens kept free for the fence of a passage."""


def _passages(document: Passage, room: int, max_tokens: int) -> Group:
    if room - _FENCE < 25:
        raise DoesNotFit(f"of {max_tokens} tokens only {max(0, room)} are left for a document; a sentence needs more")
    # One code point is at most four bytes, so a piece of as many code points as there are tokens left always fits.
    pieces = sentences(document.text, limit=min(1000, room - _FENCE))
    made: list[Passage] = []
    start = 0
    for at, piece in enumerate(pieces):
        following = pieces[at + 1] if at + 1 < len(pieces) else None
        longer = document.text[pieces[start].start : following.end] if following else ""
        if following is None or _taken([Passage(document.doc, 0, longer)]) > room:
            first = pieces[start].start
            made.append(Passage(document.doc, first, document.text[first : piece.end]))
            start = at + 1
    return tuple(made)
