"""Probes of what was asked more than once: in another order, or just again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.probes.report import ProbeLine, ProbeReport, report
from jurimetrics.probes.scored import COMPUTED
from jurimetrics.results import Results
from jurimetrics.stats.finding import mean_differences
from jurimetrics.stats.multiple import Procedure
from jurimetrics.stats.probes import Position
from jurimetrics.stats.probes import position as position_bias
from jurimetrics.stats.ratings import whole_scale
from jurimetrics.stats.retest import retest as reliability

_RETESTED = {
    "flip_rate": "flip rate", "kappa": "kappa between runs", "alpha": "alpha over runs", "icc_single": "ICC(1,1)",
    "icc_mean": "ICC(1,K)", "within_sd": "within SD",
}  # fmt: skip


def position(results: Results, *, method: Procedure = "holm", level: float = 0.95) -> ProbeReport:
    """Whether judges go by the place at which an answer is shown, from rows of `preference` and `consensus`.

    Of `preference`, which asks in both orders, three lines: "first both times - second both times", the share of pairs
    in which the first shown won twice less that in which the second did (-1 to 1, tested); "consistency", the share with
    one winner; "first picks", the share of verdicts for the first shown (.5 without bias). Ties and pairs of which an
    order failed are counted in `notes`; low consistency alone is noise. Of `consensus` one line, "first place - last
    place": points that the same answers got more at the first place than at the last.

    p exact or by sign flips of groups, adjusted by `method`. Raises `InputError` where there are no such rows. Sources:
    as of `stats.probes.position`.
    """
    frame = results.scores
    lines: list[ProbeLine] = []
    notes: list[str] = []
    for (metric, judge), rows in frame.groupby(["metric", "judge"], sort=False, observed=True):
        name, who = str(metric), str(judge)
        if name.startswith("preference("):
            found, groups = _pairs(rows, level)
            if found is not None:
                lines += _position_lines(name, who, found, groups)
                notes += _position_notes(name, who, found)
        elif name.partition("(")[0] == "consensus":
            lines += _consensus_line(name, who, rows, level)
    if not lines:
        raise InputError("position: no rows of preference or consensus with details of their orders")
    return report("position", lines, notes, method)


def _pairs(rows: pd.DataFrame, level: float) -> tuple[Position | None, int]:
    """Position bias over the pairs of one metric and judge; each pair once, though it has a row for each variant."""
    a_first, b_first, groups = [], [], []
    for _, pair in rows.groupby(["id", "repeat"], sort=False):
        row = pair.iloc[0]
        if row["status"] == "failed":
            seen = (math.nan, math.nan)
        elif row["status"] == "ok" and "orders" in (details := json.loads(row["details"])):
            seen = _both(details["orders"])
        else:
            continue
        a_first.append(seen[0])
        b_first.append(seen[1])
        groups.append(row["group"])
    if not a_first:
        return None, 0
    return position_bias(a_first, b_first, groups, level=level), len(set(groups))


def _both(orders: list[Mapping[str, Any]]) -> tuple[float, float]:
    """What both orders said of the answer that the first one showed first: 1 won, 0 lost, .5 tie."""
    one = orders[0]["shown"][0]
    said = [0.5 if order["tie"] else float(order["winner"] == one) for order in orders]
    return said[0], said[1]


def _position_lines(metric: str, judge: str, found: Position, groups: int) -> list[ProbeLine]:
    tested = ProbeLine("first both times - second both times", metric, judge, found.preference, found.p, groups)
    told = (("consistency", found.consistency), ("first picks", found.first_pick_rate))
    return [tested, *(ProbeLine(effect, metric, judge, one, None, groups) for effect, one in told)]


def _position_notes(metric: str, judge: str, found: Position) -> Iterator[str]:
    yield (
        f"{metric} by {judge}: {found.n} pairs with a winner in both orders, of which {found.both_first} went to the "
        f"first shown both times and {found.both_second} to the second ({found.test}); {found.ties} pairs with a tie, "
        f"{found.unreadable} that failed."
    )


def _consensus_line(metric: str, judge: str, rows: pd.DataFrame, level: float) -> list[ProbeLine]:
    gaps, groups = [], []
    for _, here in rows[rows["status"] == "ok"].groupby(["id", "repeat"], sort=False):
        places = json.loads(here["details"].iloc[0]).get("mean_by_position") or []
        if len(places) > 1:
            gaps.append(float(places[0]) - float(places[-1]))
            groups.append(here["group"].iloc[0])
    if not gaps:
        return []
    found = mean_differences(gaps, groups, level)[0]
    return [ProbeLine("first place - last place", metric, judge, found.estimate, found.p, len(set(groups)))]


def retest(results: Results, *, method: Procedure = "holm", level: float = 0.95) -> ProbeReport:
    """How far judges agree with themselves over the repeats of an evaluation (`evaluate(..., repeats=K)`).

    Six lines for each metric and judge: flip rate (of pass and fail where there is a threshold, else of scores), Cohen's
    kappa between runs (scores that are steps of the metric's scale), Krippendorff's alpha over runs, one-way ICC(1,1)
    and ICC(1,K), within SD in the unit of the metric. No line is tested. `missing` counts records that lack a score in
    a run. Judges with one run (baseline) are not there. At temperature 0 this measures what the endpoint does by itself.

    Raises `InputError` where nothing was asked again. Sources: as of `stats.retest`.

    >>> frame = pd.DataFrame({"id": [*range(9)] * 2, "metric": "grade", "judge": "ann", "repeat": [0] * 9 + [1] * 9})
    >>> frame["score"] = [1, 2, 3, 4, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 4, 3, 2, 2]
    >>> found = retest(Results.from_frame(frame, {"grade": {"range": (1, 5)}}))
    >>> round(found.line(effect="flip rate").estimate.value, 3), round(found.line(effect="within SD").estimate.value, 3)
    (0.111, 0.236)
    """
    frame = results.scores
    frame = frame[(frame["judge"] != COMPUTED) & (frame["status"] != "not_applicable")]
    lines: list[ProbeLine] = []
    for (metric, judge), rows in frame.groupby(["metric", "judge"], sort=False, observed=True):
        if rows["repeat"].nunique() > 1 and (rows["status"] == "ok").any():
            lines += _retested(str(metric), str(judge), rows, results.settings["metrics"].get(metric, {}), level)
    if not lines:
        raise InputError("retest: nothing was asked again; evaluate with repeats=2 or more")
    return report("retest", lines, [], method)


def _retested(
    metric: str, judge: str, rows: pd.DataFrame, declared: Mapping[str, Any], level: float
) -> list[ProbeLine]:
    index = ["id", "variant"]
    wide = rows.assign(score=rows["score"].where(rows["status"] == "ok")).pivot(
        index=index, columns="repeat", values="score"
    )
    passed = rows.assign(passed=rows["passed"].to_numpy(dtype=np.float64, na_value=np.nan)).pivot(
        index=index, columns="repeat", values="passed"
    )
    groups = rows.drop_duplicates(index).set_index(index)["group"].reindex(wide.index).to_numpy()
    scale = (
        None
        if declared.get("range_from_data")
        else whole_scale((declared["range"][0], declared["range"][1]), declared.get("levels"))
    )
    verdicts = None if declared.get("threshold") is None else passed.to_numpy(dtype=np.float64)
    found = reliability(wide.to_numpy(dtype=np.float64), groups, scale=scale, verdicts=verdicts, level=level)
    higher = bool(declared.get("higher_is_better", True))
    return [
        ProbeLine(effect, metric, judge, getattr(found, name), None, len(set(groups)), found.incomplete, higher)
        for name, effect in _RETESTED.items()
    ]
