"""What the judges said of the same row, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from jurimetrics.errors import InputError

_ROW = ["id", "variant", "metric", "repeat"]


def side_by_side(scores: pd.DataFrame, panel: Sequence[str]) -> pd.DataFrame:
    """Rows by disagreement, the largest first; see `Results.disagreements`.

    `scores` is a score frame, `panel` the names in `judge` that stand for a panel. Raises `InputError` where there is
    nothing to disagree: one judge alone.

    >>> frame = pd.DataFrame({"id": ["1", "1"], "variant": "", "metric": "m", "repeat": 0, "judge": ["a", "b"],
    ...                       "score": [0.2, 0.9], "reason": ["no", "yes"], "error": "", "disagreement": None})
    >>> side_by_side(frame, [])[["disagreement", "reason:a", "reason:b"]].values.tolist()
    [[0.7, 'no', 'yes']]
    """
    members = scores[~scores["judge"].isin(panel)]
    names = list(dict.fromkeys(members["judge"]))
    if not panel and len(names) < 2:
        raise InputError("disagreements need a panel or at least two judges")
    wide = _base(scores, members, panel)
    for name in names:
        said = members[members["judge"] == name]
        # A judge that computes exists once, as repeat 0, and stands beside every repeat.
        on = _ROW if (said["repeat"] != 0).any() else _ROW[:3]
        mine = said[on].assign(
            **{
                f"score:{name}": said["score"],
                f"reason:{name}": said["reason"].where(said["error"] == "", said["error"]),
            }
        )
        wide = wide.merge(mine, on=on, how="left")
    if not panel:
        given = wide[[f"score:{name}" for name in names]]
        wide["disagreement"] = (given.max(axis=1) - given.min(axis=1)).where(given.notna().sum(axis=1) > 1)
    # The key settles ties, so the order of judges and rows never shows.
    place = [*_ROW[2:3], "id", "variant", "repeat"]
    ordered = wide.sort_values(["disagreement", *place], ascending=[False, True, True, True, True], na_position="last")
    return ordered.reset_index(drop=True)


def _base(scores: pd.DataFrame, members: pd.DataFrame, panel: Sequence[str]) -> pd.DataFrame:
    """The rows of the panel, or the rows that the judges have in common."""
    if panel:
        return scores.loc[scores["judge"].isin(panel), [*_ROW, "disagreement", "score", "reason"]].reset_index(
            drop=True
        )
    rows = members[_ROW].drop_duplicates().reset_index(drop=True)
    return rows.assign(disagreement=float("nan"), score=float("nan"), reason="")
