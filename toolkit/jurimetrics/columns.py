"""What the columns of somebody's table mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jurimetrics.errors import InputError

RECORD_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "item", "row_id"),
    "question": ("question", "query", "user_input", "input"),
    "answer": ("answer", "response", "output", "prediction"),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieval_context", "documents"),
    "reference": (
        "reference",
        "ground_truth",
        "ground_truth_answer",
        "expected_answer",
        "expected_output",
        "expected_response",
    ),
    "variant": ("variant", "system"),
    "group": ("group",),
    "answer_model": ("answer_model", "model"),
    "answer_latency_s": ("answer_latency_s", "latency_s"),
    "answer_prompt_tokens": ("answer_prompt_tokens", "prompt_tokens"),
    "answer_completion_tokens": ("answer_completion_tokens", "completion_tokens"),
    "answer_cost_usd": ("answer_cost_usd", "cost_usd"),
    "answer_error": ("answer_error",),
    "metadata": ("metadata",),
}
"""The names under which other tools store the fields of a record; compared without case and surrounding spaces."""

LABEL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": RECORD_COLUMNS["id"],
    "variant": RECORD_COLUMNS["variant"],
    "metric": ("metric",),
    "rater": ("rater",),
    "label": ("label",),
    "probability": ("probability",),
    "rationale": ("rationale",),
}
"""The names of the columns of a table of labels."""


def listed(names: Iterable[str]) -> str:
    """Column names as errors list them.

    >>> listed(["id", "text"])
    '"id", "text"'
    """
    return ", ".join(f'"{name}"' for name in names) or "none"


class Layout(NamedTuple):
    """Which column holds which field, and the columns that hold none."""

    fields: dict[str, str]
    others: tuple[str, ...]


@dataclass(slots=True)
class Columns:
    """What the columns of one source mean, gathered while its rows pass (JSON lines may differ in theirs).

    ``known`` gives for each field the names that are understood, compared without case and surrounding spaces;
    ``chosen`` maps a field to the caller's own column and goes before the known names.
    """

    table: str
    known: Mapping[str, Sequence[str]]
    chosen: Mapping[str, str]
    found: dict[str, None] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    layouts: dict[tuple[str, ...], Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.chosen, Mapping):
            raise InputError(f"columns: expected a mapping such as {{'answer': 'my_output'}}, found {self.chosen!r}")
        # A frame may name its columns with numbers.
        self.chosen = {meaning: str(name) for meaning, name in self.chosen.items()}
        unknown = [name for name in self.chosen if name not in self.known]
        if unknown:
            raise InputError(f"columns: {listed(unknown)} means nothing here; expected some of {listed(self.known)}")
        taken = [_folded(name) for name in self.chosen.values()]
        if len(set(taken)) != len(taken):
            raise InputError(f"columns: one column is given two meanings: {dict(self.chosen)}")

    def layout(self, names: tuple[str, ...]) -> Layout:
        """The layout of a row with these columns. Raises :class:`InputError` where two columns mean the same."""
        if names not in self.layouts:
            self.layouts[names] = self._lay_out(names)
        return self.layouts[names]

    def _lay_out(self, names: tuple[str, ...]) -> Layout:
        self.found.update(dict.fromkeys(names))
        meanings = {alias: name for name, aliases in self.known.items() if name not in self.chosen for alias in aliases}
        meanings.update({_folded(name): meaning for meaning, name in self.chosen.items()})
        others: dict[str, str] = {}
        fields: dict[str, str] = {}
        for name in names:
            meaning = meanings.get(_folded(name))
            if meaning is None:
                if name.strip() in others:
                    raise InputError(f"{self.table}: two columns are named {name.strip()!r}; found {listed(names)}")
                others[name.strip()] = name
            else:
                self._refuse_two(fields.get(meaning, self.holders.get(meaning, name)), name, meaning)
                fields[meaning] = self.holders[meaning] = name
        return Layout(fields, tuple(others.values()))

    def _refuse_two(self, earlier: str, name: str, meaning: str) -> None:
        if earlier != name:
            raise InputError(
                f"{self.table}: the columns {listed((earlier, name))} mean the same ({meaning}); keep one, or say "
                f"columns={{{meaning!r}: {name!r}}}; found {listed(self.found)}"
            )

    def require_chosen(self) -> None:
        """Raise :class:`InputError` unless every column that the caller chose has been seen."""
        absent = [name for meaning, name in self.chosen.items() if meaning not in self.holders]
        if absent:
            raise InputError(f"{self.table}: there is no column {listed(absent)}; found {listed(self.found)}")

    def require_any(self, *meanings: str) -> None:
        """Raise :class:`InputError` unless a column of one of these meanings has been seen, and all chosen ones."""
        self.require_chosen()
        if any(meaning in self.holders for meaning in meanings):
            return
        apart = len(self.found) == 1 and any(mark in next(iter(self.found)) for mark in ";\t|")
        raise InputError(
            f"{self.table}: expected a column for {' or '.join(meanings)}, found {listed(self.found)}; "
            f"other names can be mapped, as in columns={{{meanings[0]!r}: ...}}"
            + ("; is the file separated by something other than commas?" if apart else "")
        )


def _folded(name: str) -> str:
    return name.strip().casefold()
