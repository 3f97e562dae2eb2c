"""Tasks over numbered sentences as parts of ten, and whether a part fits into a judge's input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jurimetrics.tasks.evidence import message_tokens
from jurimetrics.tasks.task import ITEMS_PER_CALL, DoesNotFit
from jurimetrics.text import Sentence


def windows(task: Any, count: int, max_tokens: int | None) -> tuple[Any, ...]:
    """A task over `count` sentences as parts of at most ten; the task itself where one part is enough.

    Raises `DoesNotFit` where one part takes more than `max_tokens`.

    >>> from jurimetrics.tasks.claims import ExtractClaims
    >>> [part.window for part in windows(ExtractClaims("One. " * 12), 12, None)]
    [(0, 10), (10, 12)]
    """
    if task.window is not None or 0 < count <= ITEMS_PER_CALL:
        parts: tuple[Any, ...] = (task,)
    else:
        starts = range(0, count, ITEMS_PER_CALL)
        parts = tuple(replace(task, window=(start, min(start + ITEMS_PER_CALL, count))) for start in starts)
    return fitting(parts, max_tokens)


def fitting(parts: tuple[Any, ...], max_tokens: int | None) -> tuple[Any, ...]:
    """`parts` if the messages of each take at most `max_tokens` (None: no bound). Raises `DoesNotFit`.

    >>> fitting((), 100)
    ()
    """
    for part in parts if max_tokens is not None else ():
        taken = message_tokens(part.messages())
        if max_tokens is not None and taken > max_tokens:
            raise DoesNotFit(f"{part.kind}: about {taken} tokens must be shown at once, {max_tokens} are allowed")
    return parts


def wanted_numbers(window: tuple[int, int] | None, pieces: Sequence[Sentence]) -> range:
    """The numbers (from 1) of the sentences that one call asks about.

    >>> list(wanted_numbers((1, 3), []))
    [2, 3]
    """
    return range(1, len(pieces) + 1) if window is None else range(window[0] + 1, window[1] + 1)


def first_answer(answers: Sequence[Any]) -> Any:
    """The join of a task that is asked in one part: its answer as it is.

    >>> first_answer(["as it is"])
    'as it is'
    """
    return answers[0]
