"""MLflow kept to itself while it is called from here: no notices, no bars, no report of its use to its makers.

Variables and loggers belong to the whole process. Whatever is set here is put back as it was found when the last of the
calls that run at the same time has ended.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from types import TracebackType

SWITCHES = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}
"""MLflow's own switches, set for as long as it is called, each only where its owner has not said otherwise."""
_LOGGERS = ("mlflow", "alembic", "sqlalchemy.engine")


def quiet_mlflow() -> AbstractContextManager[None]:
    """Import MLflow, if that has not happened, and keep it quiet until the block ends.

    Its loggers and those of its libraries tell from warnings upwards only. Loggers, their handlers and the environment
    are then as they were before; threads may overlap. MLflow decides when it is first imported whether it reports its
    use at all, so a first import in here decides that it does not for the rest of the process, also for the caller's
    own use of it; `MLFLOW_DISABLE_TELEMETRY=false` in the environment lets it.

    >>> before = dict(os.environ)
    >>> with quiet_mlflow():
    ...     logging.getLogger("mlflow").isEnabledFor(logging.INFO), os.environ["MLFLOW_DISABLE_TELEMETRY"]
    (False, 'true')
    >>> dict(os.environ) == before
    True
    """
    return _QUIET


@contextmanager
def _quiet() -> Iterator[None]:
    with _switched():
        _import_bars()
        import mlflow  # noqa: F401 - it sets up its loggers when it is imported, so their state is taken after

        with _calmed():
            yield


def _import_bars() -> None:
    """Import what MLflow imports for its bars; in a notebook without widgets that warns, though no bar is wanted."""
    if "tqdm.auto" not in sys.modules:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IProgress not found")
            import tqdm.auto  # noqa: F401


@contextmanager
def _switched() -> Iterator[None]:
    ours = {name: value for name, value in SWITCHES.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextmanager
def _calmed() -> Iterator[None]:
    # Making a new database may set up the root logger too.
    loggers = [logging.getLogger(), *map(logging.getLogger, _LOGGERS)]
    found = [
        (each, each.level, list(each.handlers), list(each.filters), each.propagate, each.disabled) for each in loggers
    ]
    for each in loggers[1:]:
        each.setLevel(max(each.getEffectiveLevel(), logging.WARNING))
    try:
        yield
    finally:
        for each, level, handlers, filters, propagate, disabled in found:
            each.setLevel(level)
            each.handlers[:], each.filters[:] = handlers, filters
            each.propagate, each.disabled = propagate, disabled


class _Shared(AbstractContextManager[None]):
    """A context that the first of several threads enters and the last of them leaves."""

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make, self._lock, self._inside = make, Lock(), 0
        self._entered: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._entered is None:
                entered = self._make()
                entered.__enter__()
                self._entered = entered
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._entered is not None:
                entered, self._entered = self._entered, None
                entered.__exit__(None, None, None)


# One for the process, as what it keeps is the process's.
_QUIET = _Shared(_quiet)
