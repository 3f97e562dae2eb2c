"""Pairs of answers as a judge preferred them, with what people preferred, both lengths and both authors."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jurimetrics.probes.families import own_answers
from jurimetrics.probes.report import ProbeLine
from jurimetrics.probes.scored import KEY, lengths_of, scored
from jurimetrics.results import Results
from jurimetrics.stats.lengths import verbosity
from jurimetrics.stats.probes import self_preference

PREFERENCE = "preference("
"""What the names of metrics that compare two variants begin with."""


def duels(results: Results, labels: pd.DataFrame | None) -> pd.DataFrame:
    """One row for each metric, judge and id whose two answers were compared: metric, judge, id, group; `judge_says` and
    `people_say` of the first variant by name (1 won, 0 lost, .5 neither; NaN: no label on either side), `gap` (its
    characters less the other's), `own` and `other_own` (whether they are of the judge's family; NA unknown)."""
    rows = scored(results, None)
    rows = rows[rows["metric"].str.startswith(PREFERENCE)].reset_index(drop=True)
    rows["length"], rows["own"] = lengths_of(results, rows), own_answers(results, rows)
    rows["label"] = np.nan
    if labels is not None:
        people = labels.groupby(KEY)["label"].mean()
        rows["label"] = people.reindex(pd.MultiIndex.from_frame(rows[KEY])).to_numpy(dtype=np.float64)
    rows = rows.sort_values(["metric", "judge", "id", "variant"], kind="stable")
    keys = ["metric", "judge", "id"]
    rows = rows[rows.groupby(keys)["variant"].transform("size") == 2]
    one, other = rows.iloc[::2].reset_index(drop=True), rows.iloc[1::2].reset_index(drop=True)
    found = one[[*keys, "group"]].copy()
    found["judge_says"] = _settled(one["score"])
    found["people_say"] = _settled(one["label"].fillna(1 - other["label"]))
    found["gap"] = one["length"] - other["length"]
    found["own"], found["other_own"] = one["own"], other["own"]
    return found


def length_lines(results: Results, labels: pd.DataFrame | None, level: float) -> list[ProbeLine]:
    """How often the longer of two answers is preferred: beside people on the same pairs, or bare."""
    lines = []
    for (metric, judge), here in duels(results, labels).groupby(["metric", "judge"], sort=False):
        people = None if labels is None else here["people_say"].to_numpy(dtype=np.float64)
        found = verbosity(
            here["judge_says"].to_numpy(dtype=np.float64), here["gap"].to_numpy(dtype=np.float64), people,
            here["group"].to_numpy(), level=level,
        )  # fmt: skip
        key, groups = (str(metric), str(judge)), int(here["group"].nunique())
        lines.append(ProbeLine("longer preferred", *key, found.judge, None, groups, found.left_out))
        if people is not None:
            lines.append(ProbeLine("longer preferred by people", *key, found.people, None, groups, found.left_out))
            lines.append(
                ProbeLine("longer preferred: judge - people", *key, found.excess, found.p, groups, found.left_out)
            )
    return lines


def own_lines(results: Results, labels: pd.DataFrame, level: float) -> list[ProbeLine]:
    """The equal opportunity difference of judges over the pairs of an answer of their own family and another one."""
    lines = []
    for (metric, judge), here in duels(results, labels).groupby(["metric", "judge"], sort=False):
        pairs = here[(here["own"] ^ here["other_own"]).eq(True)]
        if pairs.empty:
            continue
        first = pairs["own"].to_numpy(dtype=bool)
        judged, people = (
            np.where(first, said, 1 - said)
            for said in (pairs[name].to_numpy(dtype=np.float64) for name in ("judge_says", "people_say"))
        )
        found = self_preference(judged, people, pairs["group"].to_numpy(), level=level)
        key, groups = (str(metric), str(judge)), int(pairs["group"].nunique())
        effect = "equal opportunity difference"
        lines.append(ProbeLine(effect, *key, found.difference, found.p, groups, found.left_out))
    return lines


def _settled(scores: pd.Series[float]) -> pd.Series[float]:
    """Mean preferences as 1, 0 or .5: on which side of the middle they lie."""
    return pd.Series(np.sign(scores - 0.5) / 2 + 0.5, index=scores.index)
