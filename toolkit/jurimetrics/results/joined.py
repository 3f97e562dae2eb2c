"""Several evaluations as one: refused where their scores must not stand side by side, and it says so."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jurimetrics.errors import InputError
from jurimetrics.frames import write_part, write_settings
from jurimetrics.results.differences import differences
from jurimetrics.results.inputs import common_ids, inputs_of
from jurimetrics.results.merged import merged
from jurimetrics.results.parts import calls_and_uses, reference_models, row_parts, rows_of
from jurimetrics.results.reading import read_parts
from jurimetrics.results.view import Results


def joined(
    results: Sequence[Results],
    names: Sequence[str] | None = None,
    *,
    shared_only: bool = False,
    same_contexts: bool = True,
    metrics: Collection[str] | None = None,
) -> Results:
    """One `Results` of several, in which their variants can be compared; the given ones stay as they are.

    Evaluations are refused whose scores must not be compared (`differences` says what is looked at); variants of one
    evaluation, such as its MLflow runs, always go together. `shared_only`: only records with the same inputs everywhere
    are taken, whatever else differs. `same_contexts`: False where contexts are part of what each system gave, such as
    what another retriever found; they are then no inputs, and a note says in how many records they differ. `metrics`:
    only these.

    `names` are what the results are called (default: #1, #2, ...). A variant keeps its name unless several have it; then
    each is called "variant (name)", or by the name alone where the variant has none. Costs and tokens of each row stay
    what they were, and a call that rows of several results used is paid once.

    `settings` are what all agree on; metrics, judges and prompts are those of all; a threshold is that of the first where
    they differ; `joined` tells for each what it was called, when it was made and how its variants are called here; what
    must be read beside it is in `notes`.

    Raises `InputError`, one line that names what differs, where they must not stand side by side, the same variant of the
    same evaluation is given twice, or names are not one for each and different.

    >>> import pandas as pd
    >>> old = pd.DataFrame({"id": ["1", "2"], "metric": "grade", "judge": "ann", "score": [0.5, 1.0]})
    >>> both = joined([Results.from_frame(old), Results.from_frame(old.assign(score=0.75))], ["old", "new"])
    >>> both.scores.pivot(index="id", columns="variant", values="score").loc["1"].to_dict()
    {'new': 0.75, 'old': 0.5}
    """
    if isinstance(metrics, str):
        raise InputError(f"metrics: expected a list of metrics, found {metrics!r}")
    sources = _sources(results, names)
    notes = _compared(sources, shared_only, same_contexts, metrics)
    ids = _shared_ids(sources, same_contexts) if shared_only else None
    folder = Path(tempfile.mkdtemp(prefix="jurimetrics-"))
    try:
        written = _write(folder, sources, ids, metrics)
        write_settings(folder, _settings(folder, sources, notes, metrics) | {"rows": written})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Results(folder, temporary=True)


def _settings(
    folder: Path, sources: Sequence[_Source], notes: Sequence[str], metrics: Collection[str] | None
) -> dict[str, Any]:
    settings = merged([one.results.settings for one in sources], [one.renamed for one in sources])
    if metrics is not None:
        settings["metrics"] = {name: one for name, one in settings["metrics"].items() if name in metrics}
    if any("reference_models" in one.results.settings for one in sources):
        settings["reference_models"] = reference_models(row_parts(folder, "records"))
    return {
        **settings,
        "created": datetime.now(UTC).isoformat(),
        "data_digest": hashlib.sha256("\0".join(one.key for one in sources).encode()).hexdigest(),
        "records": read_parts(folder, "records", ["id"]).num_rows,
        "joined": [one.origin() for one in sources],
        "notes": list(dict.fromkeys([*notes, *_renamings(sources), *_notes(sources)])),
    }


@dataclass(frozen=True, slots=True)
class _Source:
    """Results that are joined: what they are called, the key of their evaluation, their variants by the names here."""

    results: Results
    name: str
    key: str
    variants: tuple[str, ...]
    renamed: dict[str, str] = field(default_factory=dict)

    def origin(self) -> dict[str, Any]:
        """What the settings keep of it."""
        settings = self.results.settings
        made = {name: settings.get(name) for name in ("created", "started", "data_digest", "store")}
        return {"name": self.name, **made, "variants": self.renamed}


def _sources(results: Sequence[Results], names: Sequence[str] | None) -> list[_Source]:
    if isinstance(results, Results) or not all(isinstance(one, Results) for one in results):
        raise InputError("joined: expected a list of Results")
    if len(results) < 2:
        raise InputError(f"joined: two results or more are needed, found {len(results)}")
    called = [f"#{at}" for at in range(1, len(results) + 1)] if names is None else [str(name) for name in names]
    if len(called) != len(results) or len(set(called)) < len(called) or not all(name.strip() for name in called):
        raise InputError(f"joined: names must be one for each of the {len(results)} results and different: {called}")
    found = [_Source(one, name, _key(one), _variants(one)) for one, name in zip(results, called, strict=True)]
    for one, other in combinations(found, 2):
        if one.key == other.key and (twice := set(one.variants) & set(other.variants)):
            raise InputError(f"{one.name} and {other.name} are the same evaluation of variant {sorted(twice)[0]!r}")
    _rename(found)
    return found


def _key(results: Results) -> str:
    """The same for all parts of one evaluation: when it was made, and of what. Scores from elsewhere have their folder."""
    settings = results.settings
    marks = [str(settings.get(name) or "") for name in ("created", "started", "data_digest")]
    known = "\0".join(marks) if all(marks) else str(results.folder.resolve())
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _variants(results: Results) -> tuple[str, ...]:
    there = read_parts(results.folder, "records", ["variant"]).column("variant").unique().to_pylist()
    declared = results.settings.get("variants") or ()
    return tuple(dict.fromkeys([*(name for name in declared if name in there), *there]))


def _rename(sources: Sequence[_Source]) -> None:
    often = Counter(name for one in sources for name in one.variants)
    for one in sources:
        for name in one.variants:
            fresh = name if often[name] == 1 else f"{name} ({one.name})" if name else one.name
            one.renamed[name] = fresh
    taken = Counter(name for one in sources for name in one.renamed.values())
    if twice := [name for name, number in taken.items() if number > 1]:
        raise InputError(f"joined: two variants would be called {twice[0]!r}; give other names")


def _renamings(sources: Sequence[_Source]) -> Iterator[str]:
    for one in sources:
        for old, new in one.renamed.items():
            if old != new:
                yield f"Variant {old!r} of {one.name} is called {new!r}, since several results have one of that name."


def _notes(sources: Sequence[_Source]) -> Iterator[str]:
    """What is to be read beside each, with whose it is unless it is of all."""
    own = [list(one.results.settings.get("notes") or ()) for one in sources]
    for one, said in zip(sources, own, strict=True):
        yield from (note if all(note in each for each in own) else f"{one.name}: {note}" for note in said)


def _shared_ids(sources: Sequence[_Source], same_contexts: bool) -> list[str] | None:
    """The records whose inputs are the same wherever evaluations differ; None where there is but one."""
    pairs = [(one, other) for one, other in combinations(sources, 2) if one.key != other.key]
    if not pairs:
        return None
    found = [
        set(common_ids([inputs_of(one.results), inputs_of(other.results)], same_contexts=same_contexts))
        for one, other in pairs
    ]
    alike = set.intersection(*found)
    if not alike:
        raise InputError(f"no record has the same inputs in all of {', '.join(one.name for one in sources)}")
    return sorted(alike)


def _compared(
    sources: Sequence[_Source], shared_only: bool, same_contexts: bool, metrics: Collection[str] | None
) -> list[str]:
    """The notes on what differs. Raises `InputError` where it speaks against standing side by side."""
    notes: list[str] = []
    for one, other in combinations(sources, 2):
        if one.key != other.key:
            names = (one.name, other.name)
            found = differences(
                one.results, other.results, names, shared_only=shared_only, same_contexts=same_contexts, metrics=metrics
            )
            if found.reasons:
                raise InputError(f"{one.name} and {other.name} must not be compared: {'; '.join(found.reasons)}")
            notes += found.notes
    return notes


def _write(
    folder: Path, sources: Sequence[_Source], ids: Sequence[str] | None, metrics: Collection[str] | None
) -> dict[str, int]:
    """Write the parts of all; how many rows of each table."""
    written, parts = Counter[str](), Counter[str]()
    seen: dict[str, set[str]] = {}
    chosen = None if metrics is None else list(metrics)

    def keep(name: str, table: pa.Table) -> None:
        write_part(table, folder / name / f"part-{parts[name]:05d}.parquet")
        parts[name] += 1
        written[name] += table.num_rows

    for one in sources:
        others = {name: new for each in sources if each.key == one.key for name, new in each.renamed.items()}
        for name, of_metrics in (("records", None), ("scores", chosen)):
            for part in row_parts(one.results.folder, name, rows_of(one.variants, ids, of_metrics)):
                keep(name, _called(part, others, one.key))
        calls, uses = calls_and_uses(one.results.folder, rows_of(one.variants, ids, chosen))
        known = seen.setdefault(one.key, set())
        # A call that an earlier part of the same evaluation used, too, is there already with all its uses.
        fresh = [name not in known for name in calls.column("ask").to_pylist()]
        keep("calls", _asks(calls.filter(pa.array(fresh, pa.bool_())), one.key))
        fresh = [name not in known for name in uses.column("ask").to_pylist()]
        keep("uses", _called(_asks(uses.filter(pa.array(fresh, pa.bool_())), one.key), others, one.key))
        known.update(calls.column("ask").to_pylist(), uses.column("ask").to_pylist())
    return {name: written[name] for name in ("records", "scores", "calls", "uses")}


def _called(table: pa.Table, renamed: Mapping[str, str], key: str) -> pa.Table:
    """The rows under the new names of their variants; a use by a variant that is not here is that of nobody here."""
    names = [renamed.get(name, f"{name} (not here, {key})") for name in table.column("variant").to_pylist()]
    return table.set_column(table.column_names.index("variant"), "variant", pa.array(names, pa.string()))


def _asks(table: pa.Table, key: str) -> pa.Table:
    """The same call of two evaluations was made twice: each keeps its own rows and is split over its own."""
    asks = pc.binary_join_element_wise(table.column("ask"), pa.scalar(f"@{key}"), "")
    return table.set_column(table.column_names.index("ask"), "ask", asks)
