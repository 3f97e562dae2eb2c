"""What a person sees while an evaluation runs: rows, calls, failures, money; at most twice a second, in plain text."""

from __future__ import annotations

import sys
from typing import Any

from jurimetrics.engine.budget import Budget
from jurimetrics.frames import CallRow, ScoreRow


def watched() -> bool:
    """Whether somebody is looking: a terminal or a notebook. A log file gets no bar."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    # Asking for the module, not importing it: a script must not pay for IPython.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """A bar of rows with calls, failures and money beside it; says nothing where `show` is False."""

    def __init__(self, show: bool, rows: int | None, budget: Budget) -> None:
        self._budget = budget
        self._failed = self._calls = self._cached = 0
        self._bar: Any = None
        if show and watched():
            from tqdm import tqdm

            self._bar = tqdm(total=rows, unit="row", mininterval=0.5, file=sys.stderr, dynamic_ncols=True)

    def say(self, text: str) -> None:
        """One line for whoever is looking."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)

    def call(self, row: CallRow) -> None:
        """Count a request, or an answer from the store."""
        self._calls += not row.from_store
        self._cached += row.from_store

    def row(self, row: ScoreRow) -> None:
        """Count a row and, when the bar is due, say how things stand."""
        self._failed += row.status == "failed"
        if self._bar is None:
            return
        if self._bar.update(1):
            self._bar.set_postfix_str(self._standing(), refresh=False)

    def _standing(self) -> str:
        unknown = "at least " if self._budget.unpriced_calls else ""
        stored = f", {self._cached} from the store" if self._cached else ""
        return f"{self._calls} calls{stored}, {self._failed} failed rows, {unknown}{self._budget.spent_usd:.4f} USD"

    def close(self) -> None:
        """End the bar with its last count."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._standing(), refresh=False)
            self._bar.close()
