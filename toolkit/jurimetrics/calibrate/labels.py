"""Labels joined to results: for every record, metric and judge what the judge said and what people said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.results import Results

KEY = ["id", "variant", "metric"]
RATER = "rater:"
"""What the columns of single raters begin with."""
_LABELS = (*KEY, "rater", "label")


def join(results: Results, labels: pd.DataFrame) -> pd.DataFrame:
    """Every record under every metric and judge, with the judge's score and, where there are any, the labels of people.

    `labels` is what :func:`load_labels` gives; they are joined by id, variant and metric. One row for each id, variant,
    metric and judge of `results`, labelled or not, in the order of `results.scores`; only metrics that somebody
    labelled. Columns:

    `id`, `variant`, `group`, `metric`, `judge`, `panel` (whether the judge is the panel);
    `score` the mean of the repeats that have a score, in the metric's range (NaN: none has), `passed` the share of them
    that pass (0 to 1, NaN also without a threshold), `repeats` how many they are;
    `label` the mean of the raters' labels (NaN: nobody labelled it), `label_passed` the mean of the raters' passes under
    the metric's threshold (NaN also without a threshold), `raters` how many labelled it;
    `majority` the label that most raters gave, `tied` whether no label is the most frequent one (`majority` is NaN then);
    `probability` with which the record was chosen for labelling (NaN where the labels do not say);
    `rater:<name>` the label of each rater (NaN: not rated).

    `attrs`: `selection` as in the labels; `raters`, their names; `unmatched`, the labels that met no row of the results,
    as a frame; `scale_from_data`, the metrics whose range nobody declared.

    Raises `InputError` where labels lack a column, are given twice, lie outside the metric's declared range, give one
    record two probabilities under a metric, or where no label meets a row.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": [1, 2, 3], "metric": "grade", "judge": "ann", "score": [2, 5, 4]})
    >>> people = load_labels([{"id": 1, "metric": "grade", "label": 3}, {"id": 2, "metric": "grade", "label": 5}])
    >>> join(Results.from_frame(scores), people)[["id", "score", "label", "raters"]].values.tolist()
    [['1', 2.0, 3.0, 1], ['2', 5.0, 5.0, 1], ['3', 4.0, nan, 0]]
    """
    settings = require_results(results).settings
    _check(labels, settings["metrics"])
    people = _people(labels, settings["metrics"])
    rows = judged(results, set(labels["metric"]), settings)
    met = pd.MultiIndex.from_frame(labels[KEY]).isin(pd.MultiIndex.from_frame(rows[KEY]))
    if not met.any():
        raise InputError(_nothing_met(rows, labels, settings["metrics"]))
    joined = rows.merge(people, on=KEY, how="left", sort=False, validate="many_to_one")
    joined["raters"] = joined["raters"].fillna(0).astype("int64")
    joined["tied"] = joined["tied"].eq(True)
    joined.attrs = {
        "selection": labels.attrs.get("selection"),
        "raters": sorted(labels["rater"].unique()),
        "unmatched": labels.loc[~met, list(_LABELS)].reset_index(drop=True),
        "scale_from_data": [name for name, one in settings["metrics"].items() if one.get("range_from_data")],
    }
    return joined


def require_results(given: Any) -> Results:
    """`given` if it is Results. Raises `InputError` otherwise.

    >>> require_results("results/")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: results: expected Results (Results.load reads a folder), found str
    """
    from jurimetrics.results import Results

    if not isinstance(given, Results):
        raise InputError(f"results: expected Results (Results.load reads a folder), found {type(given).__name__}")
    return given


def _check(labels: pd.DataFrame, declared: dict[str, Any]) -> None:
    if not isinstance(labels, pd.DataFrame):
        raise InputError(f"labels: expected the frame that load_labels gives, found {type(labels).__name__}")
    if lacking := [name for name in _LABELS if name not in labels.columns]:
        found = ", ".join(map(str, labels.columns)) or "none"
        raise InputError(f"labels: no column {lacking[0]!r}; read them with load_labels (found: {found})")
    double = labels.duplicated([*KEY, "rater"])
    if double.any():
        raise InputError(f"labels: {_place(labels, int(np.flatnonzero(double)[0]))} is given twice")
    values = labels["label"].to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"labels: {_place(labels, int(np.flatnonzero(~np.isfinite(values))[0]))} is no finite number")
    for at, (metric, value) in enumerate(zip(labels["metric"], values, strict=True)):
        one = declared.get(metric)
        # A range taken from the scores alone says nothing of what people may give.
        if one is None or one.get("range_from_data"):
            continue
        low, high = one["range"]
        if not low <= value <= high:
            raise InputError(
                f"labels: {_place(labels, at)} is {value:g}, outside the declared range {low:g} to {high:g}"
            )


def _place(labels: pd.DataFrame, at: int) -> str:
    row = labels.iloc[at]
    told = ", ".join(f"{name} {row[name]!r}" for name in (*KEY, "rater") if row[name] != "")
    return f"row {at + 1} ({told})"


def _people(labels: pd.DataFrame, declared: dict[str, Any]) -> pd.DataFrame:
    """One row for each labelled record and metric: what its raters said together and one by one."""
    values = labels[[*KEY, "rater", "label"]].assign(label=labels["label"].astype(np.float64))
    # A rater's name decides the order, so that the order of the rows never shows.
    wide = values.pivot(index=KEY, columns="rater", values="label").sort_index(axis=1)
    given = wide.to_numpy(dtype=np.float64)
    people = pd.DataFrame(index=wide.index)
    people["label"] = np.nanmean(given, axis=1)
    people["label_passed"] = _passes(wide.index.get_level_values("metric"), given, declared)
    people["raters"] = (~np.isnan(given)).sum(axis=1)
    people["majority"], people["tied"] = majorities(given)
    people["probability"] = _probabilities(labels).reindex(wide.index)
    wide.columns = pd.Index([f"{RATER}{name}" for name in wide.columns])
    return people.join(wide).reset_index()


def _passes(metrics: pd.Index[Any], given: Any, declared: dict[str, Any]) -> Any:
    thresholds = [declared.get(name, {}).get("threshold") for name in metrics]
    higher = np.array([bool(declared.get(name, {}).get("higher_is_better", True)) for name in metrics])
    limit = np.array([np.nan if one is None else one for one in thresholds], dtype=np.float64)[:, None]
    reached = np.where(higher[:, None], given >= limit, given <= limit)
    there = ~np.isnan(given)
    share = (reached & there).sum(axis=1) / there.sum(axis=1)
    return np.where(np.isnan(limit[:, 0]), np.nan, share)


def majorities(given: Any) -> tuple[Any, Any]:
    """The most frequent label of each row of `given` (rows x raters, NaN not rated), and whether none is alone in that.

    The label is NaN where it is tied and where nobody rated.

    >>> majorities(np.array([[1.0, 1.0, 2.0], [1.0, 2.0, np.nan], [np.nan, 3.0, np.nan]]))
    (array([ 1., nan,  3.]), array([False,  True, False]))
    """
    same = (given[:, :, None] == given[:, None, :]).sum(axis=2).astype(np.float64)
    most = same.max(axis=1, initial=0.0)
    top = (same == most[:, None]) & (most[:, None] > 0)
    low = np.where(top, given, np.inf).min(axis=1, initial=np.inf)
    high = np.where(top, given, -np.inf).max(axis=1, initial=-np.inf)
    tied = (most > 0) & (low != high)
    return np.where((most > 0) & ~tied, high, np.nan), tied


def _probabilities(labels: pd.DataFrame) -> pd.Series[Any]:
    if "probability" not in labels.columns:
        return pd.Series(np.nan, index=pd.MultiIndex.from_frame(labels[KEY].drop_duplicates()))
    by_record = labels.groupby(KEY, sort=False)["probability"]
    if (by_record.nunique() > 1).any():
        row = labels[by_record.transform("nunique") > 1].iloc[0]
        raise InputError(f"labels: id {row['id']!r}, metric {row['metric']!r} has two probabilities of being chosen")
    return by_record.first()


def judged(results: Results, metrics: set[str], settings: Mapping[str, Any]) -> pd.DataFrame:
    """The scores under `metrics`, repeats averaged and the panel marked: what `join` gives, but for all that is people's.

    >>> from jurimetrics import Results
    >>> scores = pd.DataFrame({"id": [1, 1], "metric": "grade", "judge": "ann", "repeat": [0, 1], "score": [2, 4]})
    >>> results = Results.from_frame(scores)
    >>> judged(results, {"grade"}, results.settings)[["judge", "score", "repeats"]].values.tolist()
    [['ann', 3.0, 2]]
    """
    scores = results.scores
    scores = scores.loc[scores["metric"].isin(metrics), [*KEY, "judge", "group", "score", "passed"]]
    scores["passed"] = scores["passed"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    rows = scores.groupby([*KEY, "judge"], sort=False, as_index=False).agg(
        group=("group", "first"), score=("score", "mean"), passed=("passed", "mean"), repeats=("score", "count")
    )
    name = (settings.get("panel") or {}).get("name")
    rows["panel"] = rows["judge"] == name
    return rows[["id", "variant", "group", "metric", "judge", "panel", "score", "passed", "repeats"]]


def _nothing_met(rows: pd.DataFrame, labels: pd.DataFrame, declared: dict[str, Any]) -> str:
    if rows.empty:
        return f"labels: of {', '.join(sorted(set(labels['metric'])))}, but the results hold {', '.join(declared)}"
    mine, theirs = labels.iloc[0], rows.iloc[0]
    return (
        f"labels: none meets a row of the results by id, variant and metric; the first label is of id {mine['id']!r}, "
        f"variant {mine['variant']!r}, the first row of id {theirs['id']!r}, variant {theirs['variant']!r}"
    )
