"""A judge fitted to people: a threshold, a map to their scale, what both are worth on other records, and on which labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from jurimetrics.calibrate.labelled import Labelled, labelled, map_target
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import FEWEST_GROUPS, Estimate
from jurimetrics.stats.maps import (
    MapKind,
    Reliability,
    ScoreMap,
    calibration_error,
    fit_map,
    held_out,
    log_loss,
    mean_error,
    reliability_curve,
)
from jurimetrics.stats.thresholds import Objective, Threshold, Tie, choose_threshold, held_out_gain

if TYPE_CHECKING:
    from jurimetrics.results import Results

Method = Literal["threshold", "isotonic", "platt", "linear"]
METHODS: tuple[Method, ...] = ("threshold", "isotonic", "platt", "linear")
_ISOTONIC_NEEDS = 200
_WISHED_HALF = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """What `calibrate` found of one judge under one metric; never changed after it is made.

    `method`: "threshold", or the kind of `map`. `map`: from the judge's scores to people's labels (None for
    "threshold"). `threshold`: on the judge's own scores, from which a record passes as people pass it (None where the
    labels are not of pass and fail and the metric has no threshold). `held_out`: Estimates on records that were not
    fitted on, by name: "squared_error" and "absolute_error" of the map, "raw_squared_error" and "raw_absolute_error" of
    the judge as it is, the name of the objective for the threshold, and for probabilities "log_loss" and
    "calibration_error" ("squared_error" is the Brier score then). `reliability`: the curve of held-out probabilities.

    `target`: the metric of the calibrated rows, `range` theirs. `labels_used`: id and variant of the labelled records,
    `labels_digest` a digest of them and of what was said, `data_digest` one of the scores as well. `selection` as in the
    labels. `n` labelled records in `groups` groups. `notes`: what must be read beside it.

    >>> from jurimetrics import Results, load_labels
    >>> grades = [1, 2, 3, 4, 5] * 8
    >>> scores = pd.DataFrame({"id": range(40), "metric": "grade", "judge": "ann", "score": grades})
    >>> people = [{"id": at, "metric": "grade", "label": min(5, grade + at % 2)} for at, grade in enumerate(grades)]
    >>> found = calibrate(Results.from_frame(scores), load_labels(people, selection="random"))
    >>> isinstance(found, Calibration), found.name, found.n
    (True, 'ann (calibrated)', 40)
    """

    metric: str
    judge: str
    method: Method
    map: ScoreMap | None
    threshold: Threshold | None
    held_out: Mapping[str, Estimate]
    reliability: Reliability | None
    target: str
    range: tuple[float, float]
    n: int
    groups: int
    labels_used: tuple[tuple[str, str], ...]
    labels_digest: str
    data_digest: str
    selection: str | None
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The judge under whose name calibrated rows stand: "ann (calibrated)"."""
        return f"{self.judge} (calibrated)"

    @property
    def frame(self) -> pd.DataFrame:
        """The held-out figures, one row each: `figure`, `value`, `low`, `high` (NaN: none), `n`, `method`."""
        rows = [{"figure": name, **asdict(found)} for name, found in self.held_out.items()]
        columns = ["figure", "value", "low", "high", "n", "method"]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(["value", "low", "high"], "float64"))

    def apply(self, results: Results) -> Results:
        """The same results with the calibrated scores as further rows of the judge `name`; see `applied`."""
        from jurimetrics.calibrate.applied import applied

        return applied(self, results)

    def save(self, path: Path | str) -> Path:
        """Write it as JSON and give the path; the folder is made if need be."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=2), encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; infinite ends of a range are None."""
        plain = {name: getattr(self, name) for name in ("metric", "judge", "method", "target", "n", "groups")}
        plain |= {name: getattr(self, name) for name in ("labels_digest", "data_digest", "selection")}
        plain |= {
            "range": _ends(self.range),
            "notes": list(self.notes),
            "labels_used": list(map(list, self.labels_used)),
        }
        plain["map"] = None if self.map is None else {**asdict(self.map), "bounds": _ends(self.map.bounds)}
        plain["threshold"] = None if self.threshold is None else asdict(self.threshold)
        plain["held_out"] = {name: asdict(found) for name, found in self.held_out.items()}
        curve = self.reliability
        plain["reliability"] = curve and {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in curve._asdict().items()
        }
        return {"jurimetrics": "calibration", **plain}

    @classmethod
    def load(cls, path: Path | str) -> Calibration:
        """What `save` wrote. Raises `InputError` where the file is missing or is no calibration."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            raise InputError(f"{path}: is no saved calibration ({type(fault).__name__}: {fault})") from None

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Calibration:
        """The other way round than `to_dict`; raises `KeyError` or `TypeError` for anything else."""
        fields = {name: value for name, value in plain.items() if name != "jurimetrics"}
        fields["range"] = _limits(fields["range"])
        one = fields["map"]
        fields["map"] = one and ScoreMap(one["kind"], tuple(one["parameters"]), _limits(one["bounds"]))
        fields["threshold"] = fields["threshold"] and Threshold(**fields["threshold"])
        fields["held_out"] = {name: Estimate(**found) for name, found in fields["held_out"].items()}
        curve = fields["reliability"]
        fields["reliability"] = curve and Reliability(
            predicted=np.asarray(curve["predicted"]),
            observed=np.asarray(curve["observed"]),
            records=np.asarray(curve["records"]),
            share=np.asarray(curve["share"]),
            bins=curve["bins"],
            binning=curve["binning"],
        )
        fields["labels_used"] = tuple((one, two) for one, two in fields["labels_used"])
        fields["notes"] = tuple(fields["notes"])
        return cls(**fields)


def calibrate(
    results: Results,
    labels: pd.DataFrame,
    *,
    metric: str | None = None,
    judge: str | None = None,
    method: Method = "linear",
    objective: Objective = "youden",
    tie: Tie = "first",
    costs: tuple[float, float] = (1.0, 1.0),
    bins: int = 10,
    folds: int = 10,
) -> Calibration:
    """Fit one judge's scores under one metric to what people said, and say what the fit is worth on other records.

    `metric`: by default the only one that is labelled; `judge`: by default the panel or the only judge. `method`:
    "linear" or "isotonic" map a score to the label that people are expected to give, "platt" to the probability that
    they let the record pass, "threshold" fits no map. Wherever people's pass and fail is known (the metric's threshold,
    or labels that are all 0 and 1) a threshold for the judge is chosen too: `objective`, `tie` and `costs` as in
    `choose_threshold`.

    Every figure is held out by group (maps in `folds` folds, thresholds by repeated halves): no record is judged by a map
    or threshold that its own source was fitted on. Labels drawn with known probabilities are weighted by 1 / probability.
    Which labels were used is kept, so that `corrected_means` does not use them twice unawares.

    Raises `InputError` where metric or judge leave a choice, records come from fewer than 8 groups, the judge gives all
    the same score, or "platt" and "threshold" lack labels of pass and fail; it says how many labels would do.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": range(40), "metric": "ok", "judge": "ann", "score": [0.2, 0.4, 0.6, 0.8] * 10})
    >>> people = [{"id": at, "metric": "ok", "label": int(at % 4 > 1)} for at in range(40)]
    >>> found = calibrate(Results.from_frame(scores, {"ok": {"range": (0, 1)}}), load_labels(people, selection="random"))
    >>> found.threshold.value, round(float(found.map([0.8])[0]), 2)
    (0.6, 1.0)
    """
    if method not in METHODS:
        raise InputError(f"method: expected one of {', '.join(METHODS)}, found {method!r}")
    rows = labelled(results, labels, metric, judge)
    _check_enough(rows)
    if not rows.has_passes and method in ("platt", "threshold"):
        raise InputError(
            f"{rows.metric}: people's pass and fail are not known; declare a threshold, as in "
            f"results.with_thresholds({{{rows.metric!r}: ...}}), or give labels 0 and 1"
        )
    threshold: Threshold | None = None
    worth: dict[str, Estimate] = {}
    if rows.has_passes:
        threshold, worth = _threshold(rows, objective, tie, costs, needed=method == "threshold")
    mapped = _Mapped(None, {}, None, rows.metric, rows.range)
    if method != "threshold":
        mapped = _mapped(rows, method, bins, folds)
    figures = {**mapped.figures, **worth}
    return Calibration(
        rows.metric, rows.judge, method, mapped.map, threshold, figures, mapped.curve, mapped.target, mapped.range,
        len(rows.scores), rows.groups, rows.keys, rows.labels_digest, rows.data_digest, rows.selection,
        tuple(_notes(rows, method, threshold, figures)),
    )  # fmt: skip


class _Mapped(NamedTuple):
    """A fitted map with its held-out figures; `target` is the metric whose values it gives, `range` theirs."""

    map: ScoreMap | None
    figures: dict[str, Estimate]
    curve: Reliability | None
    target: str
    range: tuple[float, float]


def _check_enough(rows: Labelled) -> None:
    if rows.groups < FEWEST_GROUPS:
        raise InputError(
            f"{rows.metric} by {rows.judge}: {len(rows.scores)} labelled records of {rows.groups} groups are too few; "
            f"{FEWEST_GROUPS} groups are the least, about 100 records tell a threshold or a straight line, and an "
            f"isotonic map takes {_ISOTONIC_NEEDS}"
        )


def _threshold(
    rows: Labelled, objective: Objective, tie: Tie, costs: tuple[float, float], *, needed: bool
) -> tuple[Threshold | None, dict[str, Estimate]]:
    """The threshold and what choosing it so is worth; without labels of both kinds none, or an error where it is needed."""
    there = ~np.isnan(rows.passes)
    scores, passes = rows.scores[there], rows.passes[there]
    weights = None if rows.weights is None else rows.weights[there]
    if len(np.unique(passes)) < 2:
        if needed:
            raise InputError(
                f"{rows.metric}: people {'passed' if passes.any() else 'failed'} all {len(passes)} labelled records; a "
                "threshold needs some of both, at least 10 of the rarer kind"
            )
        return None, {}
    higher = rows.higher_is_better
    chosen = choose_threshold(
        scores, passes, objective=objective, tie=tie, costs=costs, higher_is_better=higher, weights=weights
    )
    worth = held_out_gain(
        scores, passes, rows.group[there], objective=objective, tie=tie, costs=costs, higher_is_better=higher,
        weights=weights,
    )  # fmt: skip
    return chosen, {objective: worth}


def _mapped(rows: Labelled, kind: MapKind, bins: int, folds: int) -> _Mapped:
    values, target, limits = map_target(rows, kind)
    there = ~np.isnan(values)
    y, x, group = values[there], rows.scores[there], rows.group[there]
    weights = None if rows.weights is None else rows.weights[there]
    fitted = fit_map(kind, x, y, weights, limits)
    tried = held_out(kind, x, y, group, weights=weights, bounds=limits, folds=folds)
    sides = {"": tried, "raw_": x} if target == rows.metric else {"": tried}
    figures = {}
    for prefix, predicted in sides.items():
        figures[f"{prefix}squared_error"] = mean_error(predicted, y, group, weights=weights, power=2)
        figures[f"{prefix}absolute_error"] = mean_error(predicted, y, group, weights=weights, power=1)
    known = ~np.isnan(tried)
    if limits != (0.0, 1.0) or not np.isin(y, (0.0, 1.0)).all() or not known.any():
        return _Mapped(fitted, figures, None, target, limits)
    told = None if weights is None else weights[known]
    figures["log_loss"] = log_loss(tried[known], y[known], group[known], weights=told)
    figures["calibration_error"] = calibration_error(tried[known], y[known], bins=bins, weights=told)
    curve = reliability_curve(tried[known], y[known], bins=bins, weights=told)
    return _Mapped(fitted, figures, curve, target, limits)


def _notes(
    rows: Labelled, method: Method, threshold: Threshold | None, figures: Mapping[str, Estimate]
) -> Iterator[str]:
    n = len(rows.scores)
    if rows.selection is None:
        yield (
            "How the labelled records were chosen is not declared: the figures hold for records chosen alike. Declare it "
            "with load_labels(..., selection=...)."
        )
    if rows.selection == "by_label":
        yield (
            "The labelled records were chosen by what people said of them, so theirs is not the share of passes "
            "among all records: sensitivity, specificity, youden and balanced_accuracy hold, a map, cost and kappa do not."
        )
    if rows.unscored:
        yield f"{rows.unscored} labelled records have no score of {rows.judge} and are left out."
    if method == "isotonic" and n < _ISOTONIC_NEEDS:
        yield f"An isotonic map overfits on {n} labels; about {_ISOTONIC_NEEDS} would do, or a linear one."
    if rows.has_passes and (split := int(np.isnan(rows.passes).sum())):
        yield f"{split} records are left out of the threshold: their raters are split evenly between pass and fail."
    if rows.has_passes and threshold is None:
        yield "No threshold: people passed all labelled records or failed all."
    for name, found in figures.items():
        if name in ("youden", "balanced_accuracy", "kappa") and found.low is not None and found.high is not None:
            half = (found.high - found.low) / 2
            if half > 2 * _WISHED_HALF:
                enough = math.ceil(n * (half / _WISHED_HALF) ** 2 / 10) * 10
                yield f"{name} is known to ±{half:.2f} only; about {enough:,} labels would tell it to ±{_WISHED_HALF}."


def _ends(limits: tuple[float, float]) -> list[float | None]:
    return [end if math.isfinite(end) else None for end in limits]


def _limits(ends: Any) -> tuple[float, float]:
    low, high = ends
    return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))
