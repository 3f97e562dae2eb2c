"""The records of two runs side by side, under one metric and one judge: the same ids, one score of each run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results.reading import headline_judge
from jurimetrics.stats.resampling import Numbers
from jurimetrics.variants.sheets import COMPUTED

if TYPE_CHECKING:
    from jurimetrics.results import Results

_COLUMNS = ["id", "variant", "metric", "judge", "group", "score", "status"]


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """n records of one metric: `old` and `new` are their scores (NaN: none), repeats averaged, `groups` n names.

    `variants` are the names in the old and the new run. `limits` the ends of the metric's range. Differences are turned
    so that above 0 is better under every metric.
    """

    metric: str
    judge: str
    variants: tuple[str, str]
    groups: tuple[str, ...]
    old: Numbers
    new: Numbers
    higher_is_better: bool
    limits: tuple[float, float]

    @property
    def span(self) -> float:
        """The width of the metric's range, which no difference can pass."""
        return self.limits[1] - self.limits[0]

    @property
    def lost(self) -> int:
        """Records that the old run scored and the new one did not."""
        return int((~np.isnan(self.old) & np.isnan(self.new)).sum())

    @property
    def gained(self) -> int:
        """Records that the new run scored and the old one did not."""
        return int((np.isnan(self.old) & ~np.isnan(self.new)).sum())

    @property
    def lost_share(self) -> float:
        """`lost` as a share of the records that the old run scored."""
        return self.lost / max(1, int((~np.isnan(self.old)).sum()))

    def differences(self, instead: float | None = None) -> Numbers:
        """New minus old, turned (NaN: no pair), with `instead` as the score of what the new run lost."""
        new = self.new if instead is None else np.where(np.isnan(self.new) & ~np.isnan(self.old), instead, self.new)
        found: Numbers = (new - self.old) * (1.0 if self.higher_is_better else -1.0)
        return found

    @property
    def ends(self) -> tuple[float, float]:
        """The worst and the best score that the metric has."""
        return self.limits if self.higher_is_better else (self.limits[1], self.limits[0])


def matched(
    new: Results, old: Results, metrics: Sequence[str] | None, judge: str | None, ids: Collection[str] | None = None
) -> tuple[list[Matched], list[str]]:
    """One entry for each metric and variant of both runs, and what is not among them in words.

    `metrics`: these; by default all that both runs have and of which the old one has a score; `ids`: only these records.
    Raises `InputError` where a metric of `metrics` was never scored, no record or variant is in both runs, a judge has to
    be chosen or is not the same.
    """
    settings = new.settings["metrics"], old.settings["metrics"]
    rows = [one.scores[_COLUMNS] for one in (new, old)]
    if ids is not None:
        rows = [one[one["id"].isin(ids)] for one in rows]
    notes: list[str] = []
    names = [list(dict.fromkeys(one["variant"])) for one in rows]
    pairs = _variants(names[0], names[1], notes)
    found, silent = [], []
    for metric in metrics or [name for name in settings[0] if name in settings[1]]:
        mine = rows[0][rows[0]["metric"] == metric], rows[1][rows[1]["metric"] == metric]
        if not mine[1]["score"].notna().any():
            silent.append(metric)
            continue
        who = _judge(metric, judge, (mine[0], new.settings), (mine[1], old.settings))
        scale = _scale(settings[0][metric], settings[1][metric])
        mine = mine[0][mine[0]["judge"] == who], mine[1][mine[1]["judge"] == who]
        made = [_matched(metric, who, pair, *mine, scale) for pair in pairs]
        found += [one for one in made if not np.isnan(one.old).all()]
    if silent and (metrics or not found):
        raise InputError(f"gate: the old run has no score of {', '.join(silent)}, so nothing can be worse")
    if silent:
        notes.append(f"Not gated, since the old run has no score of them: {', '.join(silent)}.")
    return found, notes


def _variants(new: Sequence[str], old: Sequence[str], notes: list[str]) -> list[tuple[str, str]]:
    """Which variant of the old run is held against which of the new: the only ones, else those of one name."""
    if len(new) == len(old) == 1:
        return [(old[0], new[0])]
    both = [name for name in new if name in old]
    if not both:
        told = "; ".join(f"{side}: {', '.join(map(repr, names))}" for side, names in (("old", old), ("new", new)))
        raise InputError(f"gate: no variant has the same name in both runs ({told})")
    for side, names in (("old", old), ("new", new)):
        if alone := [name or "(no name)" for name in names if name not in both]:
            notes.append(f"Not gated, since only the {side} run has them: the variants {', '.join(alone)}.")
    return [(name, name) for name in both]


def _judge(
    metric: str,
    judge: str | None,
    new: tuple[pd.DataFrame, Mapping[str, Any]],
    old: tuple[pd.DataFrame, Mapping[str, Any]],
) -> str:
    chosen = []
    for which, (rows, settings) in (("new", new), ("old", old)):
        names = sorted(set(rows["judge"].astype(str)))
        one = names[0] if names == [COMPUTED] else judge if judge in names else None
        if one is None and judge is None:
            one = headline_judge(names, settings) if names else None
        if one is None:
            wanted = (
                "choose one with judge=" if judge is None and names else f"none of {judge!r}" if judge else "no rows"
            )
            raise InputError(f"gate: {metric} in the {which} run: {wanted}; judges: {', '.join(names) or 'none'}")
        chosen.append(one)
    if chosen[0] != chosen[1]:
        raise InputError(
            f"gate: {metric} is scored by {chosen[0]} in the new run and by {chosen[1]} in the old one; a difference would "
            "be one of judges (choose one that both have with judge=)"
        )
    return chosen[0]


def _scale(new: Mapping[str, Any], old: Mapping[str, Any]) -> tuple[bool, tuple[float, float]]:
    """Whether higher is better, and the range: that of both runs together, since one may be taken from its scores."""
    ranges = [tuple(map(float, one["range"])) for one in (new, old)]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    # All scores of both runs are equal: any width will do for differences of 0.
    return bool(new.get("higher_is_better", True)), (low, high) if high > low else (low, low + 1.0)


def _matched(
    metric: str,
    judge: str,
    pair: tuple[str, str],
    new: pd.DataFrame,
    old: pd.DataFrame,
    scale: tuple[bool, tuple[float, float]],
) -> Matched:
    sides = [
        one[one["variant"] == name].groupby("id", sort=True).agg(group=("group", "first"), score=("score", "mean"))
        for one, name in zip((old, new), pair, strict=True)
    ]
    ids = sides[0].index.union(sides[1].index)
    if not len(sides[0].index.intersection(sides[1].index)):
        raise InputError(f"gate: no record of {metric} is in both runs, by id")
    groups = sides[0]["group"].reindex(ids).fillna(sides[1]["group"].reindex(ids))
    scores = [side["score"].reindex(ids).to_numpy(dtype=np.float64) for side in sides]
    return Matched(metric, judge, pair, tuple(groups), scores[0], scores[1], *scale)
