"""Labels that already made a score or a threshold, and so cannot judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from jurimetrics.calibrate.applied import CALIBRATED
from jurimetrics.errors import InputError


def shaped_scores(settings: Mapping[str, Any], rows: pd.DataFrame, metric: str, judge: str) -> str:
    """In words why the labels at hand cannot judge this judge's scores; blank where they can.

    `rows` is a joined frame, of which `id`, `variant`, `metric`, `group` and `raters` are read. A calibrated judge is
    refused where its map was fitted on labels of any group that is labelled here.

    >>> shaped_scores({"judges": {"ann": {"kind": "chat"}}}, pd.DataFrame(), "grade", "ann")
    ''
    """
    if settings.get("judges", {}).get(judge, {}).get("kind") != CALIBRATED:
        return ""
    for one in settings.get("calibrations", ()):
        made = one["map"] is not None and one["target"] == metric and judge == f"{one['judge']} (calibrated)"
        if made and _share_groups(rows, one["labels_used"], metric):
            return (
                "the map that made these scores was fitted on labels of the same groups, which flatters them; take labels "
                "of other groups"
            )
    return ""


def shaped_threshold(settings: Mapping[str, Any], rows: pd.DataFrame, metric: str) -> str:
    """In words why the labels at hand cannot judge pass and fail under the metric's threshold; blank where they can."""
    limit = settings["metrics"][metric].get("threshold")
    for one in settings.get("calibrations", ()):
        chosen = one["threshold"]
        same = chosen is not None and one["map"] is None and one["metric"] == metric and chosen["value"] == limit
        if same and _share_groups(rows, one["labels_used"], metric):
            return (
                f"the threshold {limit:g} was chosen on labels of the same groups, which flatters the judge; take labels "
                "of other groups, or a threshold set beforehand"
            )
    return ""


def refuse_shaped_threshold(settings: Mapping[str, Any], rows: pd.DataFrame, metric: str) -> None:
    """Raise `InputError` where `shaped_threshold` has a reason."""
    if why := shaped_threshold(settings, rows, metric):
        raise InputError(f"{metric}: {why}")


def refuse_fitted(settings: Mapping[str, Any], rows: pd.DataFrame, metric: str) -> None:
    """Raise `InputError` where any calibration of the metric used labels of a group that is labelled here."""
    for one in settings.get("calibrations", ()):
        if one["metric"] == metric and _share_groups(rows, one["labels_used"], metric):
            raise InputError(
                f"{metric}: a calibration of {one['judge']} used labels of the same groups; a guarantee needs labels that "
                "nothing was fitted on"
            )


def _share_groups(rows: pd.DataFrame, used: list[Any], metric: str) -> bool:
    """Whether any of the records `used` (id and variant) is of a group that is labelled here for this metric."""
    keys, mine = set(map(tuple, used)), rows[rows["metric"] == metric]
    theirs = [key in keys for key in zip(mine["id"], mine["variant"], strict=True)]
    return bool(set(mine.loc[theirs, "group"]) & set(mine.loc[mine["raters"] > 0, "group"]))
