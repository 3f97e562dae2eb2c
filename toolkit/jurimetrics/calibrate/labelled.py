"""The labelled records of one metric and judge, as arrays, and which records and labels they were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.labels import join
from jurimetrics.errors import InputError
from jurimetrics.results.reading import headline_judge
from jurimetrics.stats.maps import MapKind

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labelled:
    """n records that one judge scored and people labelled under one metric.

    `scores` the judge's, `labels` the mean of the raters', `passes` people's majority of pass (1) and fail (0), NaN where
    they are split or where nothing says what passes; `group` names; `weights` how many records each stands for, None
    unless probabilities are known; `keys` id and variant; `unscored` labelled records that the judge did not score.
    """

    metric: str
    judge: str
    range: tuple[float, float]
    higher_is_better: bool
    scores: Numbers
    labels: Numbers
    passes: Numbers
    group: npt.NDArray[Any]
    weights: Numbers | None
    keys: tuple[tuple[str, str], ...]
    selection: str | None
    unscored: int

    @property
    def has_passes(self) -> bool:
        """Whether what people pass is known of any record."""
        return not bool(np.isnan(self.passes).all())

    @property
    def groups(self) -> int:
        """How many groups the records come from."""
        return len(np.unique(self.group))

    @property
    def labels_digest(self) -> str:
        """Of which records were labelled and what was said of them."""
        return _digest([[*key, label] for key, label in zip(self.keys, self.labels.tolist(), strict=True)])

    @property
    def data_digest(self) -> str:
        """Of the same with the judge's scores."""
        rows = zip(self.keys, self.labels.tolist(), self.scores.tolist(), strict=True)
        return _digest([self.metric, self.judge, [[*key, label, score] for key, label, score in rows]])


def labelled(results: Results, labels: pd.DataFrame, metric: str | None, judge: str | None) -> Labelled:
    """The labelled records of `metric` (default: the only one labelled) and `judge` (default: panel or only judge).

    Raises `InputError` where a choice is left, a name is not there, no labelled record was scored, or labels drawn with
    probabilities lack one.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": [1, 2, 3], "metric": "grade", "judge": "ann", "score": [2, 5, 4]})
    >>> people = load_labels([{"id": 1, "metric": "grade", "label": 3}, {"id": 2, "metric": "grade", "label": 5}])
    >>> found = labelled(Results.from_frame(scores), people, None, None)
    >>> found.scores.tolist(), found.labels.tolist(), found.keys
    ([2.0, 5.0], [3.0, 5.0], (('1', ''), ('2', '')))
    """
    settings = results.settings
    rows = join(results, labels)
    selection = rows.attrs["selection"]
    name = _only("metric", metric, list(dict.fromkeys(rows.loc[rows["raters"] > 0, "metric"])))
    rows = rows[rows["metric"] == name]
    judges = list(dict.fromkeys(rows["judge"]))
    by = _only("judge", judge or headline_judge(judges, settings), judges)
    rows = rows[(rows["judge"] == by) & (rows["raters"] > 0)]
    there = rows["score"].notna()
    unscored, rows = int((~there).sum()), rows[there].sort_values(["id", "variant"], kind="stable")
    if rows.empty:
        raise InputError(f"{name} by {by}: no labelled record has a score")
    declared = settings["metrics"][name]
    given = rows["label"].to_numpy(dtype=np.float64)
    low, high = declared["range"]
    if declared.get("range_from_data"):
        low, high = min(low, float(given.min())), max(high, float(given.max()))
    higher = bool(declared.get("higher_is_better", True))
    return Labelled(
        name, by, (float(low), float(high)), higher, rows["score"].to_numpy(dtype=np.float64), given,
        people_pass(rows, higher), rows["group"].to_numpy(dtype=object), _weights(rows, selection),
        tuple(zip(rows["id"], rows["variant"], strict=True)), selection, unscored,
    )  # fmt: skip


def people_pass(rows: pd.DataFrame, higher_is_better: bool) -> Numbers:
    """People's majority of pass (1) and fail (0) for rows of one metric that `join` gave; NaN where they are split, where
    nobody labelled, and where the metric has no threshold and labels are not all 0 and 1.

    >>> people_pass(pd.DataFrame({"label": [1.0, 0.5], "label_passed": [1.0, 0.5]}), True).tolist()
    [1.0, nan]
    """
    share = rows["label_passed"].to_numpy(dtype=np.float64)
    given = rows["label"].to_numpy(dtype=np.float64)
    if np.isnan(share).all() and is_binary(rows):
        # Without a threshold 1 is the better end where higher is better.
        share = given if higher_is_better else 1 - given
    return np.where(np.isnan(share) | (share == 0.5), np.nan, (share > 0.5).astype(np.float64))


def is_binary(rows: pd.DataFrame) -> bool:
    """Whether every label of every rater is 0 or 1."""
    columns = [name for name in rows.columns if name.startswith("rater:")] or ["label"]
    given = rows[columns].to_numpy(dtype=np.float64)
    return bool(np.isin(given[~np.isnan(given)], (0.0, 1.0)).all())


def map_target(rows: Labelled, kind: MapKind) -> tuple[Numbers, str, tuple[float, float]]:
    """What a map of this kind is fitted to (NaN: not used), the metric its values belong to, and their range.

    A Platt map gives a probability: of the label where labels are 0 and 1 on a metric from 0 to 1, else of passing,
    which is a metric of its own.
    """
    if kind != "platt" or (rows.range == (0.0, 1.0) and np.isin(rows.labels, (0.0, 1.0)).all()):
        return rows.labels, rows.metric, rows.range
    return rows.passes, f"{rows.metric} passed", (0.0, 1.0)


def _weights(rows: pd.DataFrame, selection: str | None) -> Numbers | None:
    if selection != "probabilities":
        return None
    chance = rows["probability"].to_numpy(dtype=np.float64)
    if np.isnan(chance).any():
        row = rows[np.isnan(chance)].iloc[0]
        raise InputError(f"labels: id {row['id']!r}, metric {row['metric']!r} has no probability of having been drawn")
    # Only their ratios matter to a fit; the sum stays the number of labels there are.
    return np.asarray(len(chance) / chance / (1 / chance).sum())


def _only(what: str, chosen: str | None, there: list[str]) -> str:
    if chosen is None:
        if len(there) != 1:
            raise InputError(f"which {what}? say {what}=...; there are: {', '.join(there) or 'none'}")
        return there[0]
    if chosen not in there:
        raise InputError(f"no labelled {what} {chosen!r}; there are: {', '.join(there) or 'none'}")
    return chosen


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
