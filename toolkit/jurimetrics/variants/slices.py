"""The same comparison within parts of the records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.flips import FLIPS
from jurimetrics.stats.multiple import adjust
from jurimetrics.variants.compare import COLUMNS, lines_of
from jurimetrics.variants.pairs import pairs_of
from jurimetrics.variants.serving import Serving, pair_serving, serving_notes, serving_of
from jurimetrics.variants.sheets import sheets
from jurimetrics.variants.words import verdict

if TYPE_CHECKING:
    from jurimetrics.results import Results

MOST_SLICES = 20
_NONE = "(none)"
_LEFT_OUT = ("needed", "own_family", "corrected", "corrected_low", "corrected_high", "labelled", "corrected_method",
             "simultaneous_low", "simultaneous_high", "p_adjusted")  # fmt: skip


def slices(
    results: Results,
    by: str,
    baseline: str | None = None,
    *,
    judge: str | None = None,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
    flips: int = FLIPS,
    seed: int = 0,
) -> pd.DataFrame:
    """The variants compared within each value of a metadata column. Exploratory: a place to look, never a finding.

    `by`: a key of the records' metadata; records without it are the slice "(none)". Other arguments as for `compare`.
    Columns: `slice`, those of `compare` that need neither labels nor a family (every line is judged alone, and says so),
    and `p_fdr`, p adjusted over all lines here by Benjamini and Yekutieli (at most so large a share of those at or
    below it are false); NaN where a line has no p. As in `compare` there is no verdict where another model answered for the
    judge with each variant within a slice, and `attrs["notes"]` says so.

    Raises `InputError` where no record has that key, it has more than 20 values (make classes of it first), the variants
    of a record differ in it, and as `compare` does.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> records = [{"id": i, "variant": v, "answer": "It is 4.", "contexts": [f"It is {4 + (i % 2) * (v == 'B')}."],
    ...             "metadata": {"kind": "odd" if i % 2 else "even"}} for i in range(20) for v in "AB"]
    >>> found = slices(evaluate(records, ["faithfulness"], BaselineJudge(), store=None), "kind")
    >>> found[["slice", "n", "difference"]].values.tolist()
    [['even', 10, 0.0], ['odd', 10, -1.0]]
    """
    value_of = _values(results, by)
    compared = sheets(results, judge, metrics)
    if baseline is not None and baseline not in compared[0].variants:
        raise InputError(f"slices: no variant {baseline!r}; variants: {', '.join(map(repr, compared[0].variants))}")
    panel = (results.settings.get("panel") or {}).get("name")
    found: list[dict[str, Any]] = []
    served: list[Serving] = []
    for value in sorted(set(value_of.values()), key=lambda name: (name == _NONE, name)):
        mine = {name for name, its in value_of.items() if its == value}
        pairs = [pair for sheet in compared for pair in pairs_of(sheet.only(mine), baseline, primary=False)]
        several = serving_of(results, compared, mine)
        here = [pair_serving(several.get((pair.sheet.metric, pair.sheet.judge), []), *pair.names) for pair in pairs]
        for line, one in zip(lines_of(pairs, level, flips, seed), here, strict=True):
            said = verdict({**line, "refused": one.refused, "flagged": one.flagged}, panel)
            found.append({"slice": value, **line, "verdict": said})
        served += here
    frame = pd.DataFrame(found)[["slice", *(name for name in COLUMNS if name not in _LEFT_OUT)]]
    frame.insert(list(frame.columns).index("p") + 1, "p_fdr", adjust(frame["p"].to_numpy(), "fdr_by").p)
    frame.attrs["notes"] = serving_notes(served)
    return frame


def _values(results: Results, by: str) -> dict[str, str]:
    """The slice of each record."""
    found: dict[str, str] = {}
    names: set[str] = set()
    for name, text in results.records[["id", "metadata"]].itertuples(index=False):
        metadata = json.loads(text) if text else {}
        names |= set(metadata)
        value = _NONE if metadata.get(by) is None else str(metadata[by])
        if found.setdefault(name, value) != value:
            raise InputError(
                f"slices: {name!r} is {found[name]!r} and {value!r} in {by!r}; variants must not differ in it"
            )
    if by not in names:
        raise InputError(
            f"slices: no record has {by!r} in its metadata; there are: {', '.join(sorted(names)) or 'none'}"
        )
    if (many := len(set(found.values()))) > MOST_SLICES:
        raise InputError(
            f"slices: {by!r} has {many:,} values, at most {MOST_SLICES} can be told apart; make classes of it"
        )
    return found
