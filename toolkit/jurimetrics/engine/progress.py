"""What a person sees while an evaluation runs: rows, calls, failures, money; at most twice a second, in plain text."""

from __future__ import annotations

import sys
from typing import Any

from jurimetrics.engine.budget import Budget
from jurimetrics.frames import CallRow

_COLUMNS = 100


def watched() -> bool:
    """Whether somebody is looking: a terminal or a notebook. A log file gets no bar."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    return _in_notebook()


def _in_notebook() -> bool:
    # Asking for the module, not importing it: a script must not pay for IPython.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Cell:
    """A stream whose last line is one output of a notebook's cell, renewed in place: standard error looks like a fault."""

    def __init__(self) -> None:
        self._handle: Any = None

    def write(self, text: str) -> None:
        line = text.replace("\r", "").rstrip()
        if not line:
            return
        if self._handle is None:
            from IPython import display

            shown: Any = display.display
            self._handle = shown({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)

    def flush(self) -> None:
        """Nothing is held back."""


class Progress:
    """A bar of rows with calls, failures and money beside it; says nothing where `show` is False.

    `unit` is what is counted, if not rows.
    """

    def __init__(self, show: bool, rows: int | None, budget: Budget, unit: str = "row") -> None:
        self._budget, self._unit = budget, unit
        self._failed = self._calls = self._cached = 0
        self._bar: Any = None
        if show and watched():
            from tqdm import tqdm

            stream: Any = _Cell() if _in_notebook() else sys.stderr
            width = {"ncols": _COLUMNS} if _in_notebook() else {"dynamic_ncols": True}
            self._bar = tqdm(total=rows, unit=unit, mininterval=0.5, file=stream, **width)

    def say(self, text: str) -> None:
        """One line for whoever is looking."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)

    def call(self, row: CallRow) -> None:
        """Count a request, or an answer from the store."""
        self._calls += not row.from_store
        self._cached += row.from_store

    def row(self, *, failed: bool) -> None:
        """Count a row and, when the bar is due, say how things stand."""
        self._failed += failed
        if self._bar is None:
            return
        if self._bar.update(1):
            self._bar.set_postfix_str(self._standing(), refresh=False)

    def _standing(self) -> str:
        unknown = "at least " if self._budget.unpriced_calls else ""
        stored = f", {self._cached} from the store" if self._cached else ""
        return f"{self._calls} calls{stored}, {self._failed} failed {self._unit}s, {unknown}{self._budget.spent_usd:.4f} USD"

    def close(self) -> None:
        """End the bar with its last count."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._standing(), refresh=False)
            if _in_notebook():
                # What stays in the notebook says what was done, not how fast this machine was.
                self._bar.bar_format = f"{{n_fmt}} of {{total_fmt}} {self._unit}s{{postfix}}"
            self._bar.close()
