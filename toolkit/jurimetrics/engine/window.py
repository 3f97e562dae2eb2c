"""How many records are worked on at a time: enough to fill the endpoints, few enough that memory stays flat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

FEW = 8
"""Records side by side while nobody is asked: more would only keep more objects alive, and the collector busy."""
SPARE = 3
"""Records at a time for each place in flight: those that wait before another try must not leave places empty."""
TURNS = 50
"""Turns of the loop that a record is given to ask somebody; one that waits for something else is then not waited for."""


class Window:
    """Lets records in, at most `SPARE` for each of `places`; `busy` says whether any answer is waited for."""

    def __init__(self, places: int, busy: Callable[[], bool]) -> None:
        self._places = asyncio.Semaphore(max(SPARE * places, FEW))
        self._busy = busy
        self._inside = 0

    async def enter(self) -> None:
        """Wait until one more record may be worked on."""
        await self._places.acquire()
        for _ in range(TURNS):
            if self._inside < FEW or self._busy():
                break
            await asyncio.sleep(0)
        self._inside += 1

    def leave(self, _: object = None) -> None:
        """A record is done."""
        self._inside -= 1
        self._places.release()


async def work_through(jobs: Iterable[Callable[[], Coroutine[Any, Any, None]]], window: Window) -> None:
    """Do all jobs, each begun when there is room for it. The first exception ends them all and is raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for job in jobs:
                await window.enter()
                tasks.create_task(job()).add_done_callback(window.leave)
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error to show of several that came at once; each group holds at least one."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
