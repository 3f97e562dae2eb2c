"""What people said of both variants, and the difference it corrects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.corrected import corrected_mean
from jurimetrics.stats.resampling import Numbers
from jurimetrics.variants.sheets import Sheet

_NEEDED = ("id", "variant", "metric", "label")
NOT_LABELLED = {"corrected": math.nan, "corrected_low": math.nan, "corrected_high": math.nan, "labelled": 0,
                "corrected_method": ""}  # fmt: skip


def check_labels(labels: Any) -> pd.DataFrame:
    """Refuse labels from which no difference can be corrected. Raises `InputError`."""
    if not isinstance(labels, pd.DataFrame):
        raise InputError(f"labels: expected the frame that load_labels gives, found {type(labels).__name__}")
    if lacking := [name for name in _NEEDED if name not in labels.columns]:
        raise InputError(f"labels: no column {lacking[0]!r}; read them with load_labels")
    match labels.attrs.get("selection"):
        case None:
            raise InputError(
                'labels: how were they chosen? A corrected difference needs load_labels(..., selection="random")'
            )
        case "by_label":
            raise InputError("labels chosen by their own value cannot correct a difference; compare without labels")
        case "probabilities" if "probability" not in labels.columns:
            raise InputError("labels: selection by probabilities needs the column 'probability'")
    return labels


def corrected(sheet: Sheet, labels: pd.DataFrame, a: int, b: int, level: float) -> dict[str, Any]:
    """The mean of b - a that people would have given, from the labels that records have under both variants.

    The judge's differences of all pairs and people's of the labelled pairs go into `corrected_mean`, by group. Raises
    `InputError` for a label outside the metric's range, and for a record whose two variants were chosen for labelling
    with different probabilities.
    """
    mine = labels[labels["metric"] == sheet.metric]
    low, high = sheet.declared["range"]
    outside = mine[(mine["label"] < low) | (mine["label"] > high)]
    if len(outside) and not sheet.declared.get("range_from_data"):
        raise InputError(f"labels: {outside['label'].iloc[0]:g} of {sheet.metric} is outside {low:g} to {high:g}")
    people = _wide(mine, sheet, "label")
    pairs = ~np.isnan(sheet.scores[:, [a, b]]).any(axis=1)
    said = (people[:, b] - people[:, a])[pairs]
    if np.isnan(said).all():
        return NOT_LABELLED | {"corrected_method": "no labels of both variants"}
    judged = (sheet.scores[:, b] - sheet.scores[:, a])[pairs]
    groups = [sheet.groups[at] for at in np.flatnonzero(pairs).tolist()]
    chances = None
    if labels.attrs.get("selection") == "probabilities":
        given = _wide(mine, sheet, "probability")[pairs][:, [a, b]]
        both = ~np.isnan(said)
        if (np.isnan(given[both]) | (np.abs(given[both] - given[both, :1]) > 1e-12)).any():
            raise InputError(f"labels of {sheet.metric}: both variants of a record need one probability, the same")
        chances = given[:, 0]
    found = corrected_mean(
        judged, said, probabilities=chances, groups=groups, level=level, bounds=(low - high, high - low)
    )
    return {
        "corrected": math.nan if found.value is None else found.value,
        "corrected_low": math.nan if found.low is None else found.low,
        "corrected_high": math.nan if found.high is None else found.high,
        "labelled": found.n,
        "corrected_method": found.method,
    }


def _wide(labels: pd.DataFrame, sheet: Sheet, column: str) -> Numbers:
    """Means over raters, records x variants."""
    means = labels.groupby(["id", "variant"])[column].mean().unstack("variant")
    table: Numbers = means.reindex(index=list(sheet.ids), columns=list(sheet.variants)).to_numpy(dtype=np.float64)
    return table
