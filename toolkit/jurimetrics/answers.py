"""Answers that were written here: records, what wrote them, and what the writing took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self, SupportsIndex, overload

import pandas as pd

from jurimetrics.display import count, dollars, html_table
from jurimetrics.errors import InputError
from jurimetrics.records import Record
from jurimetrics.results.reading import calls_frame
from jurimetrics.results.summary import Totals, count_kinds, total_up

_HEADINGS = ("variant", "model", "prompt", "answers", "failed", "seconds", "tokens", "cost")


class Answers(list[Record]):
    """A list of records with answers, which knows what wrote them; `evaluate` takes it and keeps that in its results.

    Attributes
    ----------
    written_by : variant name -> what wrote its answers, JSON-able and without secrets: `kind` ("chat" or "callable"),
        `prompt` (its name), `prompt_version`, `system`, `user`, `variables`, `tags`, `model`, `address`, `family`,
        `settings`; None where it has none.
    calls : the call frame of the writing, one row for each request or answer from the store; columns as
        `Results.calls`.
    notes : what must be read beside the answers, one sentence each.

    A slice keeps all three, and so do `first + second` (two sets of variants, or of records), `first += second`,
    `first.extend(second)` and `sum(several, [])`; any other list made of it is a plain list of records.

    >>> answers = Answers([Record("1", variant="a", answer="Yes."), Record("2", variant="a", answer_error="timeout: 60 s")])
    >>> answers
    Answers(2 answers by 1 variant to 2 records, 1 failed: timeout 1)
    >>> [record.id for record in answers.failed], len(answers[:1])
    (['2'], 1)
    """

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        written_by: Mapping[str, Mapping[str, Any]] | None = None,
        calls: pd.DataFrame | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        super().__init__(records)
        self.written_by: dict[str, dict[str, Any]] = {name: dict(one) for name, one in (written_by or {}).items()}
        self.calls: pd.DataFrame = calls_frame([]) if calls is None else calls
        self.notes: tuple[str, ...] = tuple(notes)

    @property
    def failed(self) -> list[Record]:
        """The records whose answer could not be written; `answer_error` says why."""
        return [record for record in self if record.answer_error is not None]

    def totals(self) -> Totals:
        """What the writing took, in words when printed; `failed_rows` are answers that could not be written.

        Answers that share one request are paid once here, while each of them says what it took by itself.

        >>> print(Answers([Record("1", answer="Yes.")]).totals())
        cost $0, saved $0; 0 calls, 0 from the store; 0 tokens; 0 rows failed
        """
        return total_up(self.calls, len(self.failed), recorded=False)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Answers: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Record | Answers:
        if isinstance(at, slice):
            return Answers(super().__getitem__(at), written_by=self.written_by, calls=self.calls, notes=self.notes)
        return super().__getitem__(at)

    def __add__(self, other: list[Any]) -> Any:
        if not isinstance(other, Answers):
            return super().__add__(other)
        for name in self.written_by.keys() & other.written_by.keys():
            if self.written_by[name] != other.written_by[name]:
                raise InputError(f"answers: two different variants are called {name!r}")
        return Answers(
            [*self, *other],
            written_by={**self.written_by, **other.written_by},
            calls=_joined(self.calls, other.calls),
            notes=dict.fromkeys([*self.notes, *other.notes]),
        )

    def __radd__(self, other: list[Any]) -> Answers:
        # Without this sum(several, []), which begins with a plain list, would forget what wrote the answers.
        return Answers([*other, *self], written_by=self.written_by, calls=self.calls, notes=self.notes)

    def __iadd__(self, other: Iterable[Any]) -> Self:  # type: ignore[override]  # a list's has overloads
        self.extend(other)
        return self

    def extend(self, records: Iterable[Record]) -> None:
        """Add records at the end; what wrote them and what that took, too, where they are `Answers`.

        Raises `InputError` where two different variants have one name.

        >>> answers = Answers([Record("1", variant="a", answer="Yes.")])
        >>> answers.extend(Answers([Record("1", variant="b", answer="No.")], written_by={"b": {"model": "m"}}))
        >>> len(answers), answers.written_by
        (2, {'b': {'model': 'm'}})
        """
        if isinstance(records, Answers):
            both = self + records
            self.written_by, self.calls, self.notes = both.written_by, both.calls, both.notes
        super().extend(records)

    def __repr__(self) -> str:
        variants, ids = (len({value(record) for record in self}) for value in (_variant, _id))
        kinds = self._kinds()
        failed = f", {len(self.failed):,} failed: {kinds}" if kinds else ""
        return (
            f"Answers({count(len(self), 'answer')} by {count(variants, 'variant')} to {count(ids, 'record')}{failed})"
        )

    def _repr_html_(self) -> str:
        lines = [_line(name, mine, self.written_by.get(name, {})) for name, mine in self._by_variant().items()]
        kinds = self._kinds()
        notes = [f"{count(len(self.failed), 'answer')} failed ({kinds}); .failed lists them."] if kinds else []
        return html_table(list(_HEADINGS), lines, [*notes, *self.notes, f"Totals: {self.totals()}."])

    def _kinds(self) -> str:
        kinds = Counter(count_kinds(record.answer_error or "" for record in self.failed))
        return ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items(), key=lambda one: (-one[1], one)))

    def _by_variant(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in self:
            found.setdefault(record.variant, []).append(record)
        return found


def _variant(record: Record) -> str:
    return record.variant


def _id(record: Record) -> str:
    return record.id


def _joined(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    filled = [frame for frame in (one, other) if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else one


def _line(name: str, records: list[Record], by: Mapping[str, Any]) -> list[str]:
    """One variant: means over the answers of which each figure is known, "-" where it is of none."""

    def mean(field: str) -> float | None:
        known = [value for record in records if (value := getattr(record, field)) is not None]
        return sum(known) / len(known) if known else None

    models = dict.fromkeys(record.answer_model for record in records if record.answer_model)
    seconds, tokens, cost = (mean(f"answer_{field}") for field in ("latency_s", "completion_tokens", "cost_usd"))
    return [
        name,
        ", ".join(models) or "-",
        str(by.get("prompt") or "-"),
        f"{sum(record.answer is not None for record in records):,}",
        f"{sum(record.answer_error is not None for record in records):,}",
        "-" if seconds is None else f"{seconds:.2f}",
        "-" if tokens is None else f"{tokens:.0f}",
        "-" if cost is None else dollars(cost),
    ]
