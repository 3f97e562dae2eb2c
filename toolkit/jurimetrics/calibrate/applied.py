"""A calibration applied: its scores as further rows of the results, and the labels it used kept beside them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.frames import SCORE_SCHEMA, ScoreRow, to_json, to_table, write_part, write_settings
from jurimetrics.results.view import Results

if TYPE_CHECKING:
    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.stats.maps import ScoreMap

CALIBRATED = "calibrated"
"""The kind of a judge whose scores are another's, mapped."""


def applied(calibration: Calibration, results: Results) -> Results:
    """A copy of `results` with what the calibration makes of the judge's scores.

    With a map: one further row for each record, judge `calibration.name`, metric `calibration.target`, from the mean of
    the repeats' scores; records without a score keep their status and error. Nobody is asked and nothing is paid. Without
    a map: the metric's threshold becomes the calibrated one. Either way `settings["calibrations"]` says which labels were
    used, so that they are not used again unawares.

    Raises `InputError` where metric or judge are not in the results, or such rows are there already.
    """
    settings = results.settings
    settings["calibrations"] = [*settings.get("calibrations", []), calibration.to_dict()]
    scores = results.scores
    rows = scores[(scores["metric"] == calibration.metric) & (scores["judge"] == calibration.judge)]
    if rows.empty:
        raise InputError(f"the results hold no scores of {calibration.metric} by {calibration.judge}")
    here = settings["metrics"]
    if calibration.threshold is not None and calibration.map is None:
        here[calibration.metric]["threshold"] = calibration.threshold.value
    elif ((scores["metric"] == calibration.target) & (scores["judge"] == calibration.name)).any():
        raise InputError(f"the results hold {calibration.target} by {calibration.name} already")
    else:
        settings.setdefault("judges", {}).setdefault(calibration.name, {"kind": CALIBRATED, "of": calibration.judge})
        if calibration.target not in here:
            here[calibration.target] = _passing(here[calibration.metric], calibration)
    folder = Path(tempfile.mkdtemp(prefix="jurimetrics-"))
    try:
        results.save(folder)
        if calibration.map is not None:
            _append(folder, _mapped_rows(calibration, calibration.map, rows), settings)
        write_settings(folder, settings)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Results(folder, temporary=True)


def _passing(metric: dict[str, Any], calibration: Calibration) -> dict[str, Any]:
    """The settings of the metric "how likely people let it pass"."""
    return {
        **metric, "range": list(calibration.range), "higher_is_better": True, "threshold": 0.5, "levels": None,
        "asks_claims": False, "needs": [], "range_from_data": False,
    }  # fmt: skip


def _mapped_rows(calibration: Calibration, fitted: ScoreMap, rows: pd.DataFrame) -> list[ScoreRow]:
    by_record = rows.sort_values("repeat", kind="stable").groupby(["id", "variant"], sort=False)
    means = by_record["score"].mean().to_numpy(dtype=np.float64)
    # Of a record without any score the first repeat says why.
    first = by_record[["group", "status", "reason", "error", "flags"]].first().reset_index()
    told = f"{calibration.method} map of {calibration.n} labels"
    made = []
    for row, raw, value in zip(first.to_dict("records"), means.tolist(), fitted(means).tolist(), strict=True):
        scored = raw == raw
        told_of = f"{calibration.judge} scored {raw:.4g}; {told}"
        made.append(
            ScoreRow(
                id=row["id"],
                variant=row["variant"],
                metric=calibration.target,
                judge=calibration.name,
                repeat=0,
                group=row["group"],
                score=value if scored else None,
                status="ok" if scored else row["status"],
                reason=told_of if scored else row["reason"],
                error="" if scored else row["error"],
                flags=tuple(row["flags"]),
                details={"raw": raw if scored else None, "labels_digest": calibration.labels_digest},
            )
        )
    return made


def _append(folder: Path, rows: list[ScoreRow], settings: dict[str, Any]) -> None:
    names = SCORE_SCHEMA.names
    table = [
        tuple(to_json(row.details) if name == "details" else list(row.flags) if name == "flags" else getattr(row, name)
              for name in names)
        for row in rows
    ]  # fmt: skip
    parts = len(list((folder / "scores").glob("part-*.parquet")))
    write_part(to_table("scores", table), folder / "scores" / f"part-{parts:05d}.parquet")
    if "rows" in settings:
        settings["rows"] = {**settings["rows"], "scores": settings["rows"]["scores"] + len(rows)}
