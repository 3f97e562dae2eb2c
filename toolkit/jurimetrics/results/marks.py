"""Text with stretches of it marked, as HTML: everything escaped, and marks told apart by words and not by colour alone."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jurimetrics.display import plain_text
from jurimetrics.text import find_quote

# Which mark is seen where several lie over each other.
KINDS = ("intrinsic", "extrinsic", "unsupported", "undecided", "quote")
_AROUND = 160


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch `text[start:end]` and what is said of it: `kind`, one of `KINDS`, and a `label` that is shown behind it.

    >>> Mark(0, 4, "intrinsic", "contradicted").end
    4
    """

    start: int
    end: int
    kind: str
    label: str


def mark_quote(quote: str, text: str, kind: str, label: str, at: int | None = None) -> Mark | None:
    """The mark of `quote` in `text`: at the offset where it is said to stand, else where it is found; None if nowhere.

    >>> mark_quote("in 1901", "It was built in 1901.", "quote", "1")
    Mark(start=13, end=20, kind='quote', label='1')
    """
    if at is not None and quote and at >= 0 and text[at : at + len(quote)] == quote:
        return Mark(at, at + len(quote), kind, label)
    place = find_quote(quote, text) if quote.strip() else None
    return None if place is None else Mark(*place, kind, label)


def marked(text: str, marks: Sequence[Mark], longest: int) -> str:
    """`text` as HTML with its marks; of a text longer than `longest` the marks with what stands around them, or its
    beginning. The only tags are `mark`, `sup` and `span`, with a class.

    >>> marked("Built in <1898>.", [Mark(9, 15, "intrinsic", "contradicted")], 100)
    'Built in <mark class="jm-intrinsic">&lt;1898&gt;</mark><sup>contradicted</sup>.'
    """
    united = _united(marks)
    cuts = sorted({0, len(text), *(place for mark in united for place in (mark.start, mark.end))})
    shown: list[str] = []
    for start, end in pairwise(cuts):
        over = [mark for mark in united if mark.start <= start and end <= mark.end]
        if over:
            top = min(over, key=lambda mark: (KINDS.index(mark.kind), mark.start, mark.end))
            ending = [mark.label for mark in over if mark.end == end and mark.label]
            label = f"<sup>{_escaped(', '.join(ending))}</sup>" if ending else ""
            shown.append(f'<mark class="jm-{top.kind}">{_escaped(text[start:end])}</mark>{label}')
        else:
            shown.append(_between(text, start, end, longest, bool(united)))
    return "".join(shown)


def _united(marks: Sequence[Mark]) -> list[Mark]:
    """Marks in order; those of the same stretch and kind are one, with all their labels."""
    labels: dict[tuple[int, int, str], list[str]] = {}
    for mark in marks:
        said = labels.setdefault((mark.start, mark.end, mark.kind), [])
        if mark.label not in said:
            said.append(mark.label)
    return [Mark(*place, ", ".join(said)) for place, said in sorted(labels.items())]


def _between(text: str, start: int, end: int, longest: int, any_marks: bool) -> str:
    """Text without a mark, cut where the whole is too long to be shown."""
    if len(text) <= longest:
        return _escaped(text[start:end])
    before = 0 if start == 0 else _AROUND
    after = 0 if end == len(text) else _AROUND
    if not any_marks:
        before, after = longest, 0
    if end - start <= before + after:
        return _escaped(text[start:end])
    left_out = f"{end - start - before - after:,} characters left out"
    gap = f'<span class="jm-gap"> … {left_out} … </span>'
    return _escaped(text[start : start + before]) + gap + _escaped(text[end - after : end] if after else "")


def _escaped(text: str) -> str:
    return html.escape(plain_text(text), quote=True)
