"""What asking several criteria in one call does to their ratings."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.halo import halo_of

if TYPE_CHECKING:
    from jurimetrics.results.view import Results

_BATCHED = "(batched)"
_KEY = ["judge", "id", "variant"]


def halo(
    results: Results, batched_results: Results, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How much closer criteria go together when they are asked in one call than when each is asked alone.

    `results` hold scores of criteria asked one by one, `batched_results` those of the same criteria asked with
    `metrics.batched`, of the same records by judges of the same names (both may be one evaluation). `coherence` is
    matched with `coherence(batched)`. One line for each judge (and panel) and pair of criteria, over the records that
    both criteria scored both ways; repeats are averaged first. Columns:

    `judge`, `first`, `second`; `n` records; for each of Pearson's and Spearman's correlation `<kind>_separate` and
    `<kind>_batched` (-1 to 1, NaN where a criterion does not vary), `<kind>_difference` (batched minus separate: above 0
    is halo) with `<kind>_low`, `<kind>_high` (NaN where no interval can be defended) and `<kind>_method`, which says how
    or why not. Intervals come from a seeded bootstrap over groups of records: the same input gives the same numbers.

    A difference says that one call moves ratings together, not which of the two ways is right.

    Raises `InputError` where fewer than two criteria, no judge or no record were scored both ways.
    Source: Thorndike, "A constant error in psychological ratings" (1920); for judges asked about several criteria at
    once arXiv 2405.01724.

    >>> from jurimetrics.results import Results
    >>> def scored(ending, fluency):
    ...     ratings = {"coherence": [1, 2, 3, 4, 5] * 2, "fluency": fluency}
    ...     return Results.from_frame(pd.concat(
    ...         pd.DataFrame({"id": range(10), "metric": name + ending, "judge": "ann", "score": scores})
    ...         for name, scores in ratings.items()))
    >>> found = halo(scored("", [2, 1, 4, 3, 5] * 2), scored("(batched)", [1, 2, 3, 4, 5] * 2))
    >>> found[["first", "second", "n", "pearson_separate", "pearson_batched"]].round(2).values.tolist()
    [['coherence', 'fluency', 10, 0.8, 1.0]]
    """
    names = _both_ways(results, batched_results)
    apart = _wide(results, names)
    together = _wide(batched_results, [f"{name}{_BATCHED}" for name in names])
    groups = _groups(results)
    lines = []
    # A record counts where it was rated under both criteria both ways.
    rated = apart.join(together, how="inner")
    for judge in sorted(rated.index.unique("judge")):
        for pair in combinations(names, 2):
            both = rated.loc[[judge], [*pair, *(f"{name}{_BATCHED}" for name in pair)]].dropna()
            if not both.empty:
                line = _line(both, groups, level, resamples, seed)
                lines.append({"judge": judge, "first": pair[0], "second": pair[1]} | line)
    if not lines:
        raise InputError("halo: no judge scored the same records under the same two criteria both ways")
    return pd.DataFrame(lines)


def _line(
    both: pd.DataFrame, groups: dict[tuple[str, str], str], level: float, resamples: int, seed: int
) -> dict[str, object]:
    columns = [both.iloc[:, at].to_numpy(dtype=np.float64) for at in range(4)]
    of_record = [groups[record] for record in zip(*(both.index.get_level_values(at) for at in (1, 2)), strict=True)]
    line: dict[str, object] = {"n": len(both)}
    for kind in ("pearson", "spearman"):
        found = halo_of(
            (columns[0], columns[1]),
            (columns[2], columns[3]),
            of_record,
            kind,
            level=level,
            resamples=resamples,
            seed=seed,
        )
        numbers = {
            "separate": found.separate,
            "batched": found.batched,
            "difference": found.difference.value,
            "low": found.difference.low,
            "high": found.difference.high,
        }
        line |= {f"{kind}_{name}": np.nan if number is None else number for name, number in numbers.items()}
        line[f"{kind}_method"] = found.difference.method
    return line


def _both_ways(results: Results, batched_results: Results) -> list[str]:
    apart, together = (list(one.settings["metrics"]) for one in (results, batched_results))
    names = [name for name in apart if f"{name}{_BATCHED}" in together]
    if len(names) < 2:
        raise InputError(
            f"halo: needs two criteria asked both ways; asked alone: {', '.join(apart)}; together: {', '.join(together)}"
        )
    return names


def _wide(results: Results, metrics: list[str]) -> pd.DataFrame:
    """One row for each judge and record, one column for each metric: the mean of the repeats, NaN without a score."""
    scores = results.scores
    mine = scores[scores["metric"].isin(metrics)]
    means = mine.groupby([*_KEY, "metric"], sort=False)["score"].mean()
    return means.unstack("metric").reindex(columns=metrics)


def _groups(results: Results) -> dict[tuple[str, str], str]:
    rows = results.records
    return dict(zip(zip(rows["id"], rows["variant"], strict=True), rows["group"], strict=True))
