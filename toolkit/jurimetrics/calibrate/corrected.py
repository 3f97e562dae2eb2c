"""What people would have said of all records, for every metric, judge and variant, when they labelled only some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.applied import CALIBRATED
from jurimetrics.calibrate.drawing import check_random, check_verdicts
from jurimetrics.calibrate.external import external_pass_rates
from jurimetrics.calibrate.labelled import people_pass
from jurimetrics.calibrate.labels import join
from jurimetrics.calibrate.reuse import refuse_shaped_threshold, shaped_scores
from jurimetrics.errors import InputError
from jurimetrics.stats.corrected import TARGETS, Target, corrected_mean
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.folds import fold_codes
from jurimetrics.stats.maps import fit_map
from jurimetrics.stats.rogan_gladen import corrected_pass_rate

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]
Of = Literal["mean", "pass rate"]
_DECLARE = (
    "corrected_means: how the labelled records were chosen is not declared, and the estimate depends on it. Say so when "
    'reading them: load_labels(..., selection="random") for a random subset of the records, "probabilities" where each '
    'was drawn with a known probability (a column "probability"), "by_label" where they were chosen by what people said '
    "of them, or come from elsewhere"
)


def corrected_means(
    results: Results,
    labels: pd.DataFrame,
    target: Target = "population",
    *,
    of: Of = "mean",
    level: float = 0.95,
    external: Results | None = None,
) -> pd.DataFrame:
    """What people would have said of *all* records, of which they labelled some; one row per metric, judge and variant.

    The estimator follows how the labelled records were chosen, which `labels` says (`load_labels(selection=...)`):
    "random": PPI++, labels and judge weighed by how well the judge follows people; "probabilities": PPI++ with each
    label counted 1 / probability times; "by_label": Rogan-Gladen on pass and fail, from the judge's pass rate and how
    often it errs on labelled passes and fails. Groups of records are heeded throughout.

    `target`: the "population" that the records stand for, or "these records" alone, whose mean is known better the more
    of them are labelled (for "by_label" the interval is that for the population, a little too wide). `of`: the "mean" of
    the scores, or the "pass rate" under the metric's threshold; for "by_label" always the latter.

    `external`: another set that the same judges scored under the same metrics and thresholds, where `labels` are of its
    records and not of these; they are then "by_label", or a "random" subset of that set. The pass rate of all records here
    is corrected by how the judge errs there, which is right only as far as it errs on both alike: the same kind of
    questions, documents and answers. What settings can tell of that is checked, the rest is for the caller to know.

    A judge that a `Calibration` made out of the same labels is fitted anew for every fold of groups, so that no label
    corrects what it shaped. The same is refused for a threshold, and by Rogan-Gladen, where pass and fail are what is
    corrected.

    Columns: `metric`, `judge`, `variant`; `of` ("mean" or "pass rate"); `raw`, that of the judge's scores as they are
    (NaN: none); `corrected` and `labels_only`, Estimates (the latter of the labelled records alone; without a value for
    "by_label", where they stand for nobody); `value`, `low`, `high` of `corrected` as numbers (NaN: none); `n` labelled
    and scored `records`; `unscored` records that the judge gave no score, for which nothing is said; `selection`,
    `target` and `method`. Where one judge allows no value `method` says why.

    Raises `InputError` where `labels` do not say how they were chosen, where they say random and the judges' scores of
    labelled and other records plainly differ, where probabilities are missing, and where no row allows a value.
    Sources: see `corrected_mean` and `rogan_gladen`.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": range(200), "metric": "ok", "judge": "ann", "score": [0.9, 0.8, 0.3, 0.6] * 50})
    >>> people = [{"id": at, "metric": "ok", "label": [1, 1, 0, at % 3 > 0][at % 4]} for at in range(0, 200, 3)]
    >>> results = Results.from_frame(scores, {"ok": {"range": (0, 1)}})
    >>> found = corrected_means(results, load_labels(people, selection="random"))
    >>> found[["judge", "raw", "n", "records"]].values.tolist()
    [['ann', 0.65, 67, 200]]
    """
    if target not in TARGETS:
        raise InputError(f'target: expected "population" or "these records", found {target!r}')
    if of not in ("mean", "pass rate"):
        raise InputError(f'of: expected "mean" or "pass rate", found {of!r}')
    if external is not None:
        told = {"selection": labels.attrs.get("selection"), "target": target}
        return _frame([one.line(told) for one in external_pass_rates(results, external, labels, level)])
    rows = join(results, labels)
    selection = rows.attrs["selection"]
    if selection is None:
        raise InputError(_DECLARE)
    settings = results.settings
    if selection == "random":
        check_random(rows)
    of = "pass rate" if selection == "by_label" else of
    if of == "pass rate":
        _refuse_without_threshold(settings, rows)
    chosen = _Chosen(selection, target, of, level, settings)
    lines, refused = [], []
    for (metric, judge, variant), mine in rows.groupby(["metric", "judge", "variant"], sort=False):
        try:
            lines.append(_line(chosen, mine, rows, str(metric), str(judge), str(variant)))
        except _Undefined as fault:
            refused.append(fault)
            lines.append(fault.line)
    if refused and len(refused) == len(lines):
        raise InputError(str(refused[0]))
    return _frame(lines)


class _Chosen(NamedTuple):
    selection: str
    target: Target
    of: Of
    level: float
    settings: Mapping[str, Any]


class _Undefined(Exception):  # noqa: N818 - one judge allows no value, others may
    def __init__(self, reason: str, line: dict[str, Any]) -> None:
        super().__init__(reason)
        self.line = line


def _line(
    chosen: _Chosen, mine: pd.DataFrame, rows: pd.DataFrame, metric: str, judge: str, variant: str
) -> dict[str, Any]:
    there = mine["passed" if chosen.of == "pass rate" else "score"].notna()
    scored = mine[there]
    line = {
        "metric": metric, "judge": judge, "variant": variant,
        "of": chosen.of,
        "n": int((scored["raters"] > 0).sum()), "records": len(scored), "unscored": int((~there).sum()),
        "selection": chosen.selection, "target": chosen.target,
    }  # fmt: skip
    if scored.empty:
        none = Estimate(None, None, None, chosen.level, 0, "no scored records")
        return {**line, "raw": np.nan, "corrected": none, "labels_only": none}
    if chosen.of == "pass rate":
        refuse_shaped_threshold(chosen.settings, rows, metric)
    if chosen.selection == "by_label":
        return {**line, **_by_label(chosen, scored, metric, line)}
    return {**line, **_by_draw(chosen, scored, rows, metric, judge)}


def _by_draw(chosen: _Chosen, scored: pd.DataFrame, rows: pd.DataFrame, metric: str, judge: str) -> dict[str, Any]:
    declared = chosen.settings["metrics"][metric]
    columns = ("passed", "label_passed") if chosen.of == "pass rate" else ("score", "label")
    scores, given = (scored[name].to_numpy(dtype=np.float64) for name in columns)
    limits = (0.0, 1.0) if chosen.of == "pass rate" else tuple(declared["range"])
    common: dict[str, Any] = {
        "probabilities": _chances(scored) if chosen.selection == "probabilities" else None,
        "groups": scored["group"].to_numpy(dtype=object),
        "target": chosen.target,
        "level": chosen.level,
        "bounds": None if declared.get("range_from_data") and chosen.of == "mean" else limits,
    }
    alone = corrected_mean(scores, given, lam=0, **common)
    reused = _reused(chosen.settings, scored, rows[rows["metric"] == metric], metric, judge)
    if reused is None:
        found = corrected_mean(scores, given, **common)
    else:
        if chosen.of == "pass rate":
            raise InputError(
                f"{metric} by {judge}: these labels shaped its scores; correct its mean, or use other labels"
            )
        table, folds = _anew(reused, scored, rows, chosen.selection == "probabilities")
        found = corrected_mean(table, given, folds=folds, **common)
        method = f"{found.method}; the calibration used these labels, so its map is fitted anew on other folds"
        found = Estimate(found.value, found.low, found.high, found.level, found.n, method)
    return {"raw": float(scores.mean()), "corrected": found, "labels_only": alone}


def _chances(scored: pd.DataFrame) -> Numbers:
    lacking = scored[(scored["raters"] > 0) & scored["probability"].isna()]
    if len(lacking):
        row = lacking.iloc[0]
        raise InputError(
            f"labels: id {row['id']!r}, metric {row['metric']!r} has no probability of having been drawn; each labelled "
            'record needs one in the column "probability"'
        )
    return scored["probability"].to_numpy(dtype=np.float64)


def _reused(
    settings: Mapping[str, Any], scored: pd.DataFrame, rows: pd.DataFrame, metric: str, judge: str
) -> Mapping[str, Any] | None:
    """The calibration that made this judge's scores, where it used labels of any group whose labels are at hand."""
    if settings.get("judges", {}).get(judge, {}).get("kind") != CALIBRATED:
        return None
    at_hand = set(scored.loc[scored["raters"] > 0, "group"])
    for one in settings.get("calibrations", ()):
        if one["map"] is None or one["target"] != metric or judge != f"{one['judge']} (calibrated)":
            continue
        mine = rows[rows["judge"] == judge].set_index(["id", "variant"])["group"]
        used = [key for key in map(tuple, one["labels_used"]) if key in mine.index]
        if at_hand & set(mine.loc[used]):
            found: Mapping[str, Any] = one
            return found
    return None


def _anew(
    calibration: Mapping[str, Any], scored: pd.DataFrame, rows: pd.DataFrame, weighted: bool
) -> tuple[Numbers, npt.NDArray[np.intp]]:
    """The judge's scores under the map of each fold (folds x N), fitted on the labels outside it, and the folds.

    The map is fitted over all variants, as the calibration was; a group is in one fold with all its variants.
    """
    metric, judge = calibration["metric"], calibration["judge"]
    if calibration["target"] != metric:
        raise InputError(
            f"{calibration['target']}: the labels at hand may have shaped these scores by way of {metric}; correct them "
            "with labels of other records"
        )
    raw = rows[(rows["metric"] == metric) & (rows["judge"] == judge)].set_index(["id", "variant"])
    mine = raw["score"].reindex(pd.MultiIndex.from_frame(scored[["id", "variant"]])).to_numpy(dtype=np.float64)
    if np.isnan(mine).any():
        raise InputError(
            f"{metric}: the scores of {judge} that the calibration maps are no longer in the results, so it cannot be "
            "fitted anew; correct with labels of other records"
        )
    fitted = raw[(raw["raters"] > 0) & raw["score"].notna()]
    x, y = (fitted[name].to_numpy(dtype=np.float64) for name in ("score", "label"))
    weights = 1 / _chances(fitted.reset_index()) if weighted else np.ones(len(x))
    fold = fold_codes(fitted["group"].to_numpy(dtype=object))
    made = []
    for one in range(int(fold.max()) + 1):
        others = fold != one
        told = weights[others] * others.sum() / weights[others].sum()
        made.append(fit_map(calibration["method"], x[others], y[others], told, tuple(calibration["range"]))(mine))
    of_group = dict(zip(fitted["group"], fold.tolist(), strict=True))
    # Groups without a label fit nothing, so their fold decides nothing.
    return np.stack(made), np.array([of_group.get(name, 0) for name in scored["group"]], dtype=np.intp)


def _by_label(chosen: _Chosen, scored: pd.DataFrame, metric: str, line: dict[str, Any]) -> dict[str, Any]:
    declared = chosen.settings["metrics"][metric]
    passed = scored["passed"].to_numpy(dtype=np.float64)
    people = people_pass(scored, bool(declared.get("higher_is_better", True)))
    nobody = "no value: labels chosen by what people said of them stand for no one but themselves"
    alone = Estimate(None, None, None, chosen.level, line["n"], nobody)
    made = {"raw": float(passed.mean()), "labels_only": alone}
    try:
        if why := shaped_scores(chosen.settings, scored, metric, line["judge"]):
            raise InputError(f"{metric} by {line['judge']}: {why}")
        check_verdicts(passed, people, metric)
        found = corrected_pass_rate(passed, people, scored["group"].to_numpy(dtype=object), chosen.level)
    except InputError as fault:
        none = Estimate(None, None, None, chosen.level, line["n"], str(fault))
        raise _Undefined(str(fault), {**line, **made, "corrected": none}) from None
    return {**made, "corrected": found}


def _refuse_without_threshold(settings: Mapping[str, Any], rows: pd.DataFrame) -> None:
    for metric in dict.fromkeys(rows["metric"]):
        if settings["metrics"][metric].get("threshold") is None:
            raise InputError(
                f"{metric}: labels chosen by what people said correct a pass rate, and nothing says what passes; declare "
                f"a threshold, as in results.with_thresholds({{{metric!r}: ...}})"
            )


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    for line in lines:
        found: Estimate = line["corrected"]
        line |= {name: getattr(found, name) for name in ("value", "low", "high", "method")}
    columns = [
        "metric", "judge", "variant", "of", "raw", "corrected", "labels_only", "value", "low", "high", "n", "records",
        "unscored", "selection", "target", "method",
    ]  # fmt: skip
    frame = pd.DataFrame(lines, columns=columns)
    return frame.astype(dict.fromkeys(["raw", "value", "low", "high"], "float64"))
