"""The scores that are compared: one judge for each metric, repeats averaged, one line for each record and variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results.reading import headline_judge
from jurimetrics.stats.resampling import Numbers

if TYPE_CHECKING:
    from jurimetrics.results import Results

COMPUTED = "computed"
_COLUMNS = ["id", "variant", "metric", "judge", "repeat", "group", "score", "passed", "status"]


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """One metric as one judge scored it: records x variants, in an order that the caller's order does not decide.

    `scores` (NaN: no score) and `passes` (share of a record's repeats that pass, NaN without threshold or score) are
    n x V; `asked` says which were asked for at all, `applicable` which variants have any row that is not
    `not_applicable`. `ids` and `groups` are n names.
    """

    metric: str
    judge: str
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    variants: tuple[str, ...]
    scores: Numbers
    passes: Numbers
    asked: Any
    applicable: Any
    declared: Mapping[str, Any]

    @property
    def higher_is_better(self) -> bool:
        return bool(self.declared.get("higher_is_better", True))

    def only(self, ids: set[str]) -> Sheet:
        """The same of some records alone."""
        at = [place for place, name in enumerate(self.ids) if name in ids]
        return Sheet(
            self.metric, self.judge, tuple(self.ids[i] for i in at), tuple(self.groups[i] for i in at), self.variants,
            self.scores[at], self.passes[at], self.asked[at], self.applicable, self.declared,
        )  # fmt: skip


def sheets(results: Results, judge: str | None = None, metrics: Sequence[str] | None = None) -> list[Sheet]:
    """One sheet for each metric that the chosen judge scored: `judge`, else the panel or the only judge.

    A metric that is computed has its own. Raises `InputError` where several judges leave no choice, `judge` scored
    nothing, a metric is not there, there are fewer than two variants, or a record's group differs between variants.
    """
    settings = results.settings
    rows = results.scores[_COLUMNS]
    for name in metrics or ():
        if name not in settings["metrics"]:
            raise InputError(f"compare: no metric {name!r}; metrics: {', '.join(settings['metrics'])}")
    there = set(rows["variant"])
    variants = [name for name in settings.get("variants") or () if name in there]
    variants += sorted(there - set(variants))
    if len(variants) < 2:
        raise InputError(f"compare: two variants are needed, found {len(variants)}: {', '.join(map(repr, variants))}")
    _same_groups(rows)
    chosen = _judges(rows, settings, judge)
    found = [
        _sheet(rows[(rows["metric"] == metric) & (rows["judge"] == who)], metric, who, variants, settings)
        for metric, who in chosen.items()
        if not metrics or metric in metrics
    ]
    if lacking := [name for name in metrics or () if name not in chosen]:
        raise InputError(f"compare: judge {judge!r} has no rows of {lacking[0]!r}")
    return found


def _judges(rows: pd.DataFrame, settings: Mapping[str, Any], judge: str | None) -> dict[str, str]:
    """The judge of each metric."""
    by_metric = {str(name): sorted(set(mine.astype(str))) for name, mine in rows.groupby("metric", sort=False)["judge"]}
    names = sorted({name for judges in by_metric.values() for name in judges})
    if judge is not None and judge not in names:
        raise InputError(f"compare: no rows of a judge {judge!r}; judges: {', '.join(names)}")
    chosen: dict[str, str] = {}
    for metric in [*settings["metrics"], *sorted(set(by_metric) - set(settings["metrics"]))]:
        judges = by_metric.get(metric, [])
        if judges == [COMPUTED] or judge in judges:
            chosen[metric] = judges[0] if judges == [COMPUTED] else str(judge)
        elif judges and judge is None:
            headline = headline_judge(judges, settings)
            if headline is None:
                raise InputError(f"compare: {metric} has no panel; choose a judge: {', '.join(judges)}")
            chosen[metric] = headline
    return chosen


def _same_groups(rows: pd.DataFrame) -> None:
    kinds = rows[["id", "group"]].drop_duplicates()
    double = kinds[kinds["id"].duplicated(keep=False)].sort_values(["id", "group"])
    if len(double):
        name, groups = double["id"].iloc[0], double["group"].tolist()[:2]
        raise InputError(f"compare: {name!r} has two groups, {groups[0]!r} and {groups[1]!r}: one source, one group")


def _sheet(rows: pd.DataFrame, metric: str, judge: str, variants: list[str], settings: Mapping[str, Any]) -> Sheet:
    rows = rows.assign(passed=rows["passed"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    means = rows.groupby(["id", "variant"], sort=True).agg(
        group=("group", "first"), score=("score", "mean"), passed=("passed", "mean"), rows=("score", "size")
    )
    groups = means.reset_index().groupby("id", sort=True)["group"].first()

    def table(column: str) -> pd.DataFrame:
        return means[column].unstack("variant").reindex(index=groups.index, columns=variants)

    applies = rows[rows["status"] != "not_applicable"]["variant"]
    return Sheet(
        metric=metric,
        judge=judge,
        ids=tuple(groups.index),
        groups=tuple(groups),
        variants=tuple(variants),
        scores=table("score").to_numpy(dtype=np.float64),
        passes=table("passed").to_numpy(dtype=np.float64),
        asked=table("rows").notna().to_numpy(),
        applicable=np.isin(variants, list(set(applies))),
        declared=settings["metrics"].get(metric, {}),
    )
