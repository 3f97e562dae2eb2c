"""Corrected pass rates of records that nobody labelled, by how the same judges err on another, labelled set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics.calibrate.applied import CALIBRATED
from jurimetrics.calibrate.drawing import check_verdicts
from jurimetrics.calibrate.labelled import people_pass
from jurimetrics.calibrate.labels import join, judged
from jurimetrics.calibrate.reuse import shaped_scores, shaped_threshold
from jurimetrics.display import count
from jurimetrics.errors import InputError
from jurimetrics.results.differences import of_set_ups, of_versions
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.rogan_gladen import transported_pass_rate

if TYPE_CHECKING:
    from jurimetrics.results import Results

_NAMES = ("the results", "the external set")
_NOBODY = "no value: the labels are of other records"


class Corrected(NamedTuple):
    """What is found of one metric, judge and variant: the judge's pass rate (NaN: none), the estimate, how many records it
    is of, how many have no score, and how many labelled ones tell of the judge's errors."""

    metric: str
    judge: str
    variant: str
    raw: float
    estimate: Estimate
    records: int
    unscored: int
    n: int

    def line(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """As a line of `corrected_means`."""
        none = Estimate(None, None, None, self.estimate.level, self.n, _NOBODY)
        return {
            "metric": self.metric, "judge": self.judge, "variant": self.variant, "of": "pass rate", "raw": self.raw,
            "corrected": self.estimate, "labels_only": none, "n": self.n, "records": self.records,
            "unscored": self.unscored, **common,
        }  # fmt: skip


def external_pass_rates(results: Results, external: Results, labels: pd.DataFrame, level: float) -> list[Corrected]:
    """The pass rate that people would have found in `results`, for each metric that `labels` are of, judge and variant.

    `labels` are of the records of `external`, which the same judges scored under the same metrics. Where it holds labelled
    records of a variant the judge's errors are taken from those, else from all of them. Where a judge allows no value the
    estimate has none and says why.

    Raises `InputError` where labels do not say how they were chosen, or were drawn with unequal probabilities; where
    metrics or judges differ between the two sets; where there is no threshold; and where no line has a value.
    """
    rows = join(external, labels)
    _check_selection(rows.attrs["selection"])
    here, there = results.settings, external.settings
    metrics = [name for name in dict.fromkeys(rows["metric"]) if name in here["metrics"]]
    if not metrics:
        raise InputError(f"labels: of {', '.join(dict.fromkeys(rows['metric']))}, which the results do not hold")
    if unlike := list(_unlike(here, there, metrics)):
        raise InputError(f"external: the sets must not be put together: {'; '.join(unlike)}")
    mine = judged(results, set(metrics), here)
    found = []
    for (metric, judge, variant), scored in mine.groupby(["metric", "judge", "variant"], sort=False):
        labelled = rows[(rows["metric"] == metric) & (rows["judge"] == judge)]
        found.append(_corrected(str(metric), str(judge), str(variant), scored, labelled, (here, there), level))
    if all(one.estimate.value is None for one in found):
        raise InputError(found[0].estimate.method)
    return found


def _corrected(
    metric: str,
    judge: str,
    variant: str,
    scored: pd.DataFrame,
    labelled: pd.DataFrame,
    settings: tuple[Mapping[str, Any], Mapping[str, Any]],
    level: float,
) -> Corrected:
    known = scored[scored["passed"].notna()]
    told = labelled[labelled["passed"].notna()]
    of_variant = told[(told["variant"] == variant) & (told["raters"] > 0)]
    others = of_variant.empty and bool(variant or (told["variant"] != "").any())
    told = told if of_variant.empty else told[told["variant"] == variant]
    people = people_pass(told, bool(settings[1]["metrics"][metric].get("higher_is_better", True)))
    passed = known["passed"].to_numpy(dtype=np.float64)
    n = int((~np.isnan(people)).sum())
    raw = float(passed.mean()) if len(known) else np.nan
    try:
        _refuse(known, told, labelled, metric, judge, settings)
        check_verdicts(told["passed"].to_numpy(dtype=np.float64), people, metric)
        estimate = transported_pass_rate(
            passed, told["passed"].to_numpy(dtype=np.float64), people, known["group"].to_numpy(dtype=object),
            told["group"].to_numpy(dtype=object), level,
        )  # fmt: skip
    except InputError as fault:
        estimate = Estimate(None, None, None, level, n, str(fault))
    else:
        of = " of all its variants" if others else ""
        method = f"{estimate.method}; the judge's errors are those on the external set{of}, if they carry over"
        estimate = Estimate(estimate.value, estimate.low, estimate.high, level, estimate.n, method)
    return Corrected(metric, judge, variant, raw, estimate, len(known), len(scored) - len(known), n)


def _refuse(
    known: pd.DataFrame,
    told: pd.DataFrame,
    labelled: pd.DataFrame,
    metric: str,
    judge: str,
    settings: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> None:
    """Raise `InputError`, in words, where this judge allows no value."""
    if known.empty:
        raise InputError("no scored records")
    if labelled.empty:
        raise InputError(f"{judge} scored no {metric} of the external set")
    if told.empty:
        raise InputError(f"{judge} scored none of the {count(len(labelled), 'record')} of the external set")
    for each in settings:
        if why := shaped_scores(each, labelled, metric, judge) or shaped_threshold(each, labelled, metric):
            raise InputError(f"{metric} by {judge}: {why}")


def _check_selection(selection: str | None) -> None:
    if selection is None:
        raise InputError(
            "corrected_means: how the labelled records of the external set were chosen is not declared; say so when reading "
            'them: load_labels(..., selection="by_label") where they were chosen by what people said of them, "random" for '
            "a random subset of that set"
        )
    if selection == "probabilities":
        raise InputError(
            "corrected_means: labels of an external set that were drawn with unequal probabilities tell how often a judge "
            "errs on what was drawn, not on all; take a random subset, or records chosen by what people said of them"
        )


def _unlike(here: Mapping[str, Any], there: Mapping[str, Any], metrics: list[str]) -> Iterator[str]:
    """Why errors in one set are not those in the other, as far as settings tell."""
    for name in metrics:
        one, other = here["metrics"][name], there["metrics"][name]
        if one.get("threshold") is None:
            raise InputError(
                f"{name}: a pass rate is corrected, and nothing says what passes; declare a threshold, as in "
                f"results.with_thresholds({{{name!r}: ...}})"
            )
        for what in ("threshold", "higher_is_better"):
            if one.get(what) != other.get(what):
                yield f"metric {name} has {what} {one.get(what)} in {_NAMES[0]} and {other.get(what)} in {_NAMES[1]}"
        declared = not (one.get("range_from_data") or other.get("range_from_data"))
        if declared and one["range"] != other["range"]:
            yield f"metric {name} has the range {one['range']} in {_NAMES[0]} and {other['range']} in {_NAMES[1]}"
    yield from of_versions(here, there, _NAMES, metrics)
    yield from of_set_ups(here, there, _NAMES)
    panels = [settings.get("panel") for settings in (here, there)]
    if panels[0] and panels[1] and panels[0] != panels[1]:
        yield f"the panel is {panels[0]} in {_NAMES[0]} and {panels[1]} in {_NAMES[1]}"
    mapped = {name for name, one in here.get("judges", {}).items() if one.get("kind") == CALIBRATED}
    if mapped & set(there.get("judges", {})) and here.get("calibrations") != there.get("calibrations"):
        yield f"the scores of {', '.join(sorted(mapped))} are mapped otherwise"
