"""Variants in order, with how sure each place is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.strengths import bradley_terry, mean_ranks
from jurimetrics.variants.compare import Comparison, compare
from jurimetrics.variants.sheets import Sheet

if TYPE_CHECKING:
    from jurimetrics.results import Results

_PREFERENCE = re.compile(r"preference\(.*\)")
COLUMNS = (
    "metric", "judge", "rank", "variant", "best_rank", "worst_rank", "n", "mean", "mean_rank", "mean_rank_low",
    "mean_rank_high", "strength", "strength_low", "strength_high", "method",
)  # fmt: skip


def leaderboard(compared: Comparison | Results, *, judge: str | None = None, seed: int = 0) -> pd.DataFrame:
    """The variants in order under each metric, with the places that the comparison leaves open.

    `compared`: a comparison of all pairs, or results, which are then compared (all metrics one family). One line for each
    metric and variant that it applies to:

    `metric`, `judge`; `rank` (1 the best; equal means share a place) by `mean` over the `n` records that all have a score
    for; `best_rank` and `worst_rank`, the places not ruled out: one more than the variants decided to be ahead, and those
    not decided to be behind (verdicts of the comparison, so for primary metrics all hold at once; nothing is decided
    between two variants where another model answered for the judge with each of them);
    `mean_rank` of the records' own orders (ties share the mean) with its interval `mean_rank_low`, `mean_rank_high`, each
    for itself;
    all `preference(a,b)` together are one metric `preference`, ordered by `strength`, the Bradley-Terry log strengths
    (sum 0, ties half, records drawn anew) with `strength_low`, `strength_high`; NaN elsewhere, since scores are not
    independent duels; `method` of the interval. `attrs["notes"]` are those of the comparison.

    Raises `InputError` for a comparison with a baseline, where not all pairs were compared, and as `compare` does.

    >>> from jurimetrics import Results
    >>> rows = [{"id": i, "variant": v, "metric": "grade", "judge": "ann", "score": (3 + i % 3 + up) / 10}
    ...         for i in range(20) for v, up in (("A", 0), ("B", i % 4))]
    >>> leaderboard(Results.from_frame(pd.DataFrame(rows)))[["rank", "variant", "best_rank", "worst_rank"]].values.tolist()
    [[1, 'B', 1, 1], [2, 'A', 2, 2]]
    """
    found = compared if isinstance(compared, Comparison) else compare(compared, judge=judge, seed=seed)
    if found.baseline is not None:
        raise InputError("leaderboard: the comparison was with a baseline; compare all pairs")
    duels = [sheet for sheet in found.sheets if _PREFERENCE.fullmatch(sheet.metric)]
    others = [sheet for sheet in found.sheets if not _PREFERENCE.fullmatch(sheet.metric)]
    lines = [line for sheet in others for line in _of_scores(sheet, found)]
    lines += _of_duels(duels, found, seed) if duels else []
    board = pd.DataFrame(lines, columns=list(COLUMNS))
    board.attrs["notes"] = list(found.notes)
    return board


def _of_scores(sheet: Sheet, found: Comparison) -> list[dict[str, Any]]:
    at = [place for place in range(len(sheet.variants)) if sheet.applicable[place]]
    if len(at) < 2:
        return []
    scores = sheet.scores[:, at]
    whole = ~np.isnan(scores).any(axis=1)
    means = scores[whole].mean(axis=0) if whole.any() else np.full(len(at), math.nan)
    names = [sheet.variants[place] for place in at]
    ranks = mean_ranks(scores, sheet.groups, higher_is_better=sheet.higher_is_better, level=found.level)
    lines = []
    for name, mean, rank in zip(names, means, ranks, strict=True):
        ahead = means > mean + 1e-12 if sheet.higher_is_better else means < mean - 1e-12
        lines.append(
            _empty(sheet.metric, sheet.judge, name)
            | _places(found, [sheet.metric], name, len(names))
            | {
                "rank": 1 + int(ahead.sum()) if whole.any() else pd.NA, "n": rank.n, "mean": float(mean),
                "mean_rank": _nan(rank.value), "mean_rank_low": _nan(rank.low), "mean_rank_high": _nan(rank.high),
                "method": rank.method.replace("mean;", "mean rank;", 1),
            }
        )  # fmt: skip
    return sorted(lines, key=lambda line: (line["rank"] is pd.NA, line["rank"], line["variant"]))


def _of_duels(duels: Sequence[Sheet], found: Comparison, seed: int) -> list[dict[str, Any]]:
    first, second, share, group = [], [], [], []
    for sheet in duels:
        pair = [place for place in range(len(sheet.variants)) if sheet.applicable[place]]
        if len(pair) != 2:
            continue
        first += [sheet.variants[pair[0]]] * len(sheet.ids)
        second += [sheet.variants[pair[1]]] * len(sheet.ids)
        share += sheet.scores[:, pair[0]].tolist()
        group += list(sheet.groups)
    if not first:
        return []
    strengths = bradley_terry(first, second, share, group, level=found.level, seed=seed)
    values = np.array([_nan(one.value) for one in strengths.log_strengths])
    metrics = [sheet.metric for sheet in duels]
    lines = []
    for at, (name, one) in enumerate(zip(strengths.names, strengths.log_strengths, strict=True)):
        known = not np.isnan(values[at])
        lines.append(
            _empty("preference", duels[0].judge, name)
            | _places(found, metrics, name, len(values))
            | {
                "rank": 1 + int((values > values[at] + 1e-9).sum()) if known else pd.NA, "n": one.n,
                "strength": float(values[at]), "strength_low": _nan(one.low), "strength_high": _nan(one.high),
                "method": one.method,
            }
        )  # fmt: skip
    return sorted(lines, key=lambda line: (line["rank"] is pd.NA, line["rank"], line["variant"]))


def _empty(metric: str, judge: str, variant: str) -> dict[str, Any]:
    blank = dict.fromkeys(COLUMNS, math.nan)
    return blank | {"metric": metric, "judge": judge, "variant": variant}


def _places(found: Comparison, metrics: Sequence[str], name: str, variants: int) -> dict[str, int]:
    """The places of a variant that the decided lines of these metrics leave open."""
    ahead: set[str] = set()
    behind: set[str] = set()
    for line in found.frame[found.frame["metric"].isin(metrics)].to_dict("records"):
        primary = line["family"] == "primary"
        low = line["simultaneous_low" if primary else "low"]
        high = line["simultaneous_high" if primary else "high"]
        if name not in (line["a"], line["b"]) or not (low > 0 or high < 0):
            continue
        if (line["metric"], line["a"], line["b"]) in found.refused:
            continue
        b_ahead = (low > 0) == line["higher_is_better"]
        other = line["a"] if name == line["b"] else line["b"]
        (behind if b_ahead == (name == line["b"]) else ahead).add(other)
    return {"best_rank": 1 + len(ahead), "worst_rank": variants - len(behind)}


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
