"""A loop in a thread of its own, so that whoever calls may be in a script, a cell, under a running loop or a web handler."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Interruptible(Protocol[T_co]):
    """Work that can be told to end early."""

    def run(self) -> Coroutine[Any, Any, T_co]:
        """All of it; after an interrupt what is done until then, or `KeyboardInterrupt`."""
        ...

    def interrupt(self) -> None:
        """End early; called from another thread."""
        ...


@dataclass
class Brake:
    """Ends the work of a loop early, from another thread. What is `connected` is called in the loop, once it is pulled.

    >>> brake = Brake()
    >>> brake.pull()
    >>> brake.pulled
    True
    """

    pulled: bool = False
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: Callable[[], None] | None = None

    def connect(self, stop: Callable[[], None]) -> None:
        """Call `stop` in the running loop when the brake is pulled, or at once where it was."""
        self._loop, self._stop = asyncio.get_running_loop(), stop
        if self.pulled:
            stop()

    def pull(self) -> None:
        """End early: calls in flight are dropped, all that is done is kept."""
        self.pulled = True
        if self._loop is not None and self._stop is not None:
            # A loop that has just closed has nothing left to stop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop)


def in_own_thread(work: Interruptible[T], name: str) -> T:
    """What `work.run()` gives, run in a loop and a thread of its own; nothing of the caller's loop is touched.

    The caller's context variables are seen there, as an open trace is one. The first Ctrl-C ends the work early, the
    second one at once.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(work.run()))
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread, where it is raised
            outcome.set_exception(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name=f"jurimetrics-{name}", daemon=True)
    begun, interrupts = False, 0
    while True:
        try:
            if not begun:
                begun = True
                thread.start()
            # In short waits, because some systems deliver Ctrl-C only between them.
            result = outcome.result(timeout=0.5)
            thread.join()
        except TimeoutError:
            if outcome.done():
                raise
        except KeyboardInterrupt as interrupt:
            interrupts += 1
            # One that was raised inside the work is no Ctrl-C of the user's.
            own = outcome.done() and outcome.exception() is interrupt
            if own or interrupts > 1:
                raise
            work.interrupt()
        else:
            return result
