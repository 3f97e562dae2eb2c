"""By how much judges score above or below people, over all records and in slices of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.resampling import Statistic, estimate, group_codes

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]
_FEW = 8
"""Numbers with at most this many different values are slices of their own."""
_NONE = "(none)"


def bias_of(differences: Numbers, groups: Sequence[Any], weights: Numbers | None, level: float) -> Estimate:
    """The (weighted) mean of judge minus people with its interval by groups.

    >>> bias_of(np.array([1.0, 0.0, -1.0, 1.0]), ["a", "b", "c", "d"], None, 0.95).method
    'bias; no interval: 4 rows, 8 are needed'
    """
    if weights is None:
        found = mean_estimate(differences, groups, level)
        return Estimate(found.value, found.low, found.high, level, found.n, found.method.replace("mean;", "bias;", 1))
    codes, count = group_codes(groups, len(differences))
    sums = np.column_stack(
        [np.bincount(codes, weights=one, minlength=count) for one in (weights * differences, weights)]
    )

    def mean(times: Numbers) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(drawn[:, 0] / drawn[:, 1])

    statistic = Statistic(mean, 2)
    return estimate(statistic, count, len(differences), "bias", why="no rows", level=level, bounds=None, always_t=True)


def bias_slices(rows: pd.DataFrame, results: Results, column: str, level: float) -> pd.DataFrame:
    """Judge minus people in each slice; see `Agreement.bias_by`."""
    scored = rows[rows["score"].notna()]
    slices = _slices(results, scored, column)
    weighted = scored["weight"].nunique() > 1
    lines = []
    order = {name: at for at, name in enumerate(slices.cat.categories)}
    for (metric, judge, name), mine in scored.groupby(
        ["metric", "judge", slices.astype(str).rename("slice")], sort=False
    ):
        differences = (mine["score"] - mine["label"]).to_numpy(dtype=np.float64)
        weights = mine["weight"].to_numpy(dtype=np.float64) if weighted else None
        found = bias_of(differences, mine["group"].tolist(), weights, level)
        numbers = [np.nan if one is None else one for one in (found.value, found.low, found.high)]
        lines.append((metric, judge, name, found.n, *numbers, found.method))
    frame = pd.DataFrame(lines, columns=["metric", "judge", "slice", "n", "bias", "low", "high", "method"])
    keys = [pd.factorize(frame[name])[0] for name in ("judge", "metric")]
    place = np.lexsort((frame["slice"].map(order).to_numpy(), *keys))
    return frame.iloc[place].reset_index(drop=True)


def _slices(results: Results, scored: pd.DataFrame, column: str) -> pd.Series[Any]:
    """The slice of each row, as an ordered category."""
    values = scored[column] if column in ("variant", "group") else _of_records(results, scored, column)
    numbers = pd.to_numeric(values, errors="coerce") if column not in ("variant", "group", "language") else None
    if numbers is not None and numbers.notna().sum() == values.notna().sum() and numbers.nunique() > _FEW:
        return _thirds(numbers)
    text = values.map(lambda value: _NONE if value is None or value != value else _plain(value))
    return text.astype(pd.CategoricalDtype(sorted(set(text)), ordered=True))


def _of_records(results: Results, scored: pd.DataFrame, column: str) -> pd.Series[Any]:
    records = results.records.set_index(["id", "variant"])
    metadata = [json.loads(text) if isinstance(text, str) and text else {} for text in records["metadata"]]
    in_metadata = any(column in one for one in metadata)
    if column == "length" and not in_metadata:
        values: list[Any] = [None if text is None or text != text else len(text) for text in records["answer"]]
    elif in_metadata:
        values = [one.get(column) for one in metadata]
    elif column == "language":
        from jurimetrics.text import language_of

        values = [None if text is None or text != text else language_of(text) for text in records["answer"]]
    elif column in records.columns:
        values = records[column].tolist()
    else:
        known = sorted({key for one in metadata for key in one})
        raise InputError(
            f"no column {column!r}: records have {', '.join(records.columns)}; "
            f"their metadata {', '.join(known) or 'nothing'}"
        )
    if all(value is None or value is pd.NA or value != value for value in values):
        raise InputError(f"no record has a value for {column!r}")
    found = pd.Series(values, index=records.index, dtype=object)
    return pd.Series(
        found.reindex(pd.MultiIndex.from_frame(scored[["id", "variant"]])).to_numpy(), index=scored.index, dtype=object
    )


def _thirds(numbers: pd.Series[Any]) -> pd.Series[Any]:
    low, high = np.nanquantile(numbers.to_numpy(dtype=np.float64), [1 / 3, 2 / 3])
    names = [f"up to {low:g}", f"above {low:g}, up to {high:g}", f"above {high:g}", _NONE]
    place = np.where(numbers <= low, 0, np.where(numbers <= high, 1, np.where(numbers > high, 2, 3)))
    kept = [name for at, name in enumerate(names) if (place == at).any()]
    return pd.Series(np.array(names, dtype=object)[place], index=numbers.index).astype(
        pd.CategoricalDtype(kept, ordered=True)
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
