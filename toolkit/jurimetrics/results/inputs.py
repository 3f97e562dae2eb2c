"""Whether two results are about the same records: what was put in is compared, never what was answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.display import count, one_line
from jurimetrics.results.reading import read_parts

if TYPE_CHECKING:
    from jurimetrics.results.view import Results

FIELDS = ("question", "contexts", "reference", "group")
CONTEXTS = FIELDS.index("contexts")
EXAMPLES = 3


def inputs_of(results: Results) -> Mapping[str, tuple[str, ...]]:
    """Id -> a digest of each of `FIELDS`; of a record with several variants, of all that they were given. Read once.

    >>> import pandas as pd
    >>> from jurimetrics import Results
    >>> results = Results.from_frame(pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": 0.5}))
    >>> [len(one) for one in inputs_of(results).values()]
    [4, 4]
    """
    return results._kept("inputs", lambda: _read(results.folder))


def _read(folder: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[set[str]]] = {}
    for part in read_parts(folder, "records", ["id", *FIELDS]).to_batches(max_chunksize=5_000):
        for row in part.to_pylist():
            fields = found.setdefault(row["id"], [set() for _ in FIELDS])
            for kept, name in zip(fields, FIELDS, strict=True):
                kept.add(_digest([row[name]]))
    return {name: tuple(_digest(sorted(one)) for one in fields) for name, fields in found.items()}


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Shared:
    """How the records of two results lie to each other: ids with the same inputs in both (`alike`), those in one alone,
    and for each field the ids where it differs.

    Where contexts are part of what a system gave, they are no inputs: then `retrieved` are those of the alike whose
    contexts differ.

    >>> one, other = {"1": ("a", "b", "c", "1")}, {"1": ("a", "x", "c", "1"), "2": ("a", "b", "c", "2")}
    >>> Shared.of(one, other).changed, Shared.of(one, other, same_contexts=False).retrieved
    ({'contexts': ['1']}, ('1',))
    """

    alike: tuple[str, ...]
    only_one: tuple[str, ...]
    only_other: tuple[str, ...]
    changed: Mapping[str, Sequence[str]]
    retrieved: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]], *, same_contexts: bool = True
    ) -> Shared:
        """Lay the inputs of two results, as `inputs_of` gives them, beside each other."""
        common = [name for name in one if name in other]
        alike = tuple(common_ids([one, other], same_contexts=same_contexts))
        changed = {
            field: [name for name in common if one[name][at] != other[name][at]]
            for at, field in enumerate(FIELDS)
            if same_contexts or at != CONTEXTS
        }
        return cls(
            alike=alike,
            only_one=tuple(name for name in one if name not in other),
            only_other=tuple(name for name in other if name not in one),
            changed={field: names for field, names in changed.items() if names},
            retrieved=tuple(name for name in alike if one[name] != other[name]),
        )

    @property
    def by_contexts_alone(self) -> tuple[str, ...]:
        """The ids that only their contexts keep from being alike."""
        others = {name for field, names in self.changed.items() if field != FIELDS[CONTEXTS] for name in names}
        return tuple(name for name in self.changed.get(FIELDS[CONTEXTS], ()) if name not in others)

    def said(self, names: tuple[str, str]) -> list[str]:
        """In words what differs; [] where nothing does.

        >>> Shared((), ("1",), (), {"reference": ["2", "3"]}).said(("A", "B"))
        ["1 record is in A alone ('1')", "2 records have another reference ('2', '3')"]
        """
        found = []
        for alone, name in ((self.only_one, names[0]), (self.only_other, names[1])):
            if alone:
                verb = "is" if len(alone) == 1 else "are"
                found.append(f"{count(len(alone), 'record')} {verb} in {name} alone ({examples(alone)})")
        for field, ids in self.changed.items():
            verb = "has" if len(ids) == 1 else "have"
            which = "other contexts" if field == "contexts" else f"another {field}"
            found.append(f"{count(len(ids), 'record')} {verb} {which} ({examples(ids)})")
        return found


def examples(names: Collection[str]) -> str:
    """The first names, quoted and cut.

    >>> examples(["a", "b", "c", "d"])
    "'a', 'b', 'c', ..."
    """
    shown = [repr(one_line(name, 40)) for name in list(names)[:EXAMPLES]]
    return ", ".join([*shown, *(["..."] if len(names) > EXAMPLES else [])])


def common_ids(inputs: Iterable[Mapping[str, tuple[str, ...]]], *, same_contexts: bool = True) -> list[str]:
    """The ids that have the same inputs everywhere, in the order of the first; without `same_contexts` whatever their
    contexts are.

    >>> one, other = ({"1": ("a", found, "c", "1"), "2": ("a", "b", "c", "2")} for found in ("b", "x"))
    >>> common_ids([one, other]), common_ids([one, other], same_contexts=False)
    (['2'], ['1', '2'])
    """
    first, *others = inputs
    compared = [at for at in range(len(FIELDS)) if same_contexts or at != CONTEXTS]
    return [
        name
        for name, kept in first.items()
        if all(name in other and all(other[name][at] == kept[at] for at in compared) for other in others)
    ]
