"""Whether a judge is still the judge it was: a frozen anchor set judged again, and what must not be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.display import html_table, one_line
from jurimetrics.errors import InputError
from jurimetrics.probes.scored import KEY, scored
from jurimetrics.results import Results
from jurimetrics.results.differences import of_set_ups, of_versions
from jurimetrics.results.served import served_anew
from jurimetrics.stats.finding import without_dust
from jurimetrics.stats.flips import Flipped, sign_flips

_STEADY = "no record moved"


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What changed between two evaluations of one anchor set.

    `shifts` has one row for each metric and judge: `metric`, `judge`, `shift` (mean of after - before, in the metric's
    unit), `low`, `high` (for all rows at once, at `level`; NaN where there is none), `p` (for all rows at once), `n`
    records, `groups`, `alarm`, `method`. `alarms` says in words what has changed, `undecided` what could not be told,
    `notes` what must be read beside it.
    """

    shifts: pd.DataFrame
    alarms: tuple[str, ...]
    undecided: tuple[str, ...]
    notes: tuple[str, ...]
    level: float

    @property
    def steady(self) -> bool:
        """No alarm, and nothing that could not be told."""
        return not self.alarms and not self.undecided

    def __str__(self) -> str:
        said = [
            *(f"ALARM: {one}" for one in self.alarms),
            *(f"undecided: {one}" for one in self.undecided),
            *self.notes,
        ]
        table = self.shifts.drop(columns="method").to_string(index=False, float_format=lambda value: f"{value:.3g}")
        return "\n".join([table, *(f"* {one_line(one, 500)}" for one in said or ["no drift"])])

    def _repr_html_(self) -> str:
        lines = [
            [row["metric"], row["judge"], f"{row['shift']:+.3g} [{row['low']:.3g}, {row['high']:.3g}]", str(row["n"]),
             "alarm" if row["alarm"] else ""]
            for row in self.shifts.to_dict("records")
        ]  # fmt: skip
        said = [
            *(f"Alarm: {one}." for one in self.alarms),
            *(f"Undecided: {one}." for one in self.undecided),
            *self.notes,
        ]
        return html_table(["metric", "judge", "shift", "n", ""], lines, said, start=("metric", "judge"))


def drift(before: Results, after: Results, *, margin: float | None = None, level: float = 0.95) -> DriftReport:
    """Hold an anchor set that was judged again against how it was judged before.

    An alarm is given for a metric and judge where the interval of the mean paired difference leaves 0 out (by sign flips
    of groups, for all metrics and judges at once), where all records moved alike, or, with a `margin` in the metric's
    unit, where the mean moved further than that; and for a judge that was served by a model or under a fingerprint that
    was not there before. Undecided: fewer than 8 groups, answers of a judge that all came from the store (judge again with
    `store=None`), endpoints that name no model.

    The anchors are the records that both hold; answers must be the same. Repeats are averaged. Raises `InputError` where
    nothing is common to both, an anchor's answer has changed, or `margin` is below 0.

    >>> frame = pd.DataFrame({"id": range(12), "metric": "grade", "judge": "ann", "score": [1, 2, 3, 4] * 3})
    >>> moved = frame.assign(score=frame["score"] + [0, 1, 1, 1] * 3)
    >>> found = drift(Results.from_frame(frame), Results.from_frame(moved))
    >>> found.alarms
    ('grade by ann moved by +0.75 [0.5, 1] over 12 records',)
    """
    if margin is not None and not margin >= 0:
        raise InputError(f"margin is a number from 0, not {margin!r}")
    _same_answers(before, after)
    pairs = scored(before, None).merge(scored(after, None), on=[*KEY, "judge"], suffixes=("", "_after"), sort=False)
    if pairs.empty:
        raise InputError("drift: no record, metric and judge is scored in both")
    pairs["difference"] = without_dust((pairs["score_after"] - pairs["score"]).to_numpy(dtype=np.float64))
    wide = pairs.pivot(index=["id", "variant"], columns=["metric", "judge"], values="difference")
    lines = list(dict.fromkeys(zip(pairs["metric"], pairs["judge"], strict=True)))
    group = pairs.drop_duplicates(["id", "variant"]).set_index(["id", "variant"])["group"].reindex(wide.index)
    found = sign_flips(wide[lines].to_numpy(dtype=np.float64), group.to_numpy(), level)
    shifts = pd.DataFrame([_shift(found, at, line, wide, margin) for at, line in enumerate(lines)])
    unmatched = max(len(scored(one, None)) for one in (before, after)) - len(pairs)
    notes = [f"{unmatched} scored rows are in one of both only and say nothing."] if unmatched else []
    served_alarms, unknown = served_anew(before, after)
    alarms = [_said(row, margin) for row in shifts.to_dict("records") if row["alarm"]] + served_alarms
    undecided = [
        f"{row['metric']} by {row['judge']}: {row['method']}"
        for row in shifts.to_dict("records")
        if not row["alarm"] and math.isnan(row["low"]) and row["method"] != _STEADY
    ]
    return DriftReport(shifts, tuple(alarms), (*undecided, *unknown), tuple(notes), level)


def refuse_across(before: Results, after: Results, drifted: DriftReport | None = None) -> str:
    """Why scores of these two results must not be compared with each other; "" where nothing speaks against it.

    Looked at: judges of both that are set up otherwise or were served by another model or fingerprint, metrics of both in
    another version, and the alarms of `drifted`, if there is one. What only one of both has is no reason.

    >>> frame = pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]})
    >>> refuse_across(Results.from_frame(frame), Results.from_frame(frame))
    ''
    """
    one, other = before.settings, after.settings
    reasons = [*of_versions(one, other), *of_set_ups(one, other), *served_anew(before, after)[0]]
    reasons += list(drifted.alarms) if drifted is not None else []
    return "; ".join(dict.fromkeys(reasons))


def _shift(found: Flipped, at: int, line: tuple[str, str], wide: pd.DataFrame, margin: float | None) -> dict[str, Any]:
    mean, low, high = (float(part[at]) for part in (found.mean, found.family_low, found.family_high))
    differences = wide[line].dropna().to_numpy(dtype=np.float64)
    alike = bool(np.ptp(differences) <= 1e-12 and abs(mean) > 1e-12 and found.groups[at] >= 2)
    moved = (low > 0 or high < 0) or alike or (margin is not None and abs(mean) > margin)
    method = f"mean of after - before; {found.signs} over {found.groups[at]} groups, for all rows at once"
    if math.isnan(low):
        method = found.why[at] or "no interval: too few groups for so many metrics and judges at once"
    if not np.abs(differences).max() > 1e-12 and "needed" not in method:
        method = _STEADY
    return {
        "metric": line[0], "judge": line[1], "shift": mean, "low": low, "high": high,
        "p": float(found.p_family[at]), "n": len(differences), "groups": int(found.groups[at]), "alarm": moved,
        "method": "all records moved alike" if alike else method,
    }  # fmt: skip


def _said(row: dict[Any, Any], margin: float | None) -> str:
    said = f"{row['metric']} by {row['judge']} moved by {row['shift']:+.3g}"
    said += "" if math.isnan(row["low"]) else f" [{row['low']:.3g}, {row['high']:.3g}]"
    beyond = margin is not None and abs(row["shift"]) > margin
    return f"{said} over {row['n']} records" + (f", beyond the margin of {margin:g}" if beyond else "")


def _same_answers(before: Results, after: Results) -> None:
    columns = ["id", "variant", "answer"]
    both = before.records[columns].merge(after.records[columns], on=columns[:2], suffixes=("", "_after"))
    if both.empty:
        raise InputError("drift: no record is in both")
    changed = both[both["answer"].fillna("") != both["answer_after"].fillna("")]
    if len(changed):
        first = changed.iloc[0]
        raise InputError(
            f"drift: the anchors are not the same: {len(changed)} answers differ, first that of id {first['id']!r}, "
            f"variant {first['variant']!r}"
        )
