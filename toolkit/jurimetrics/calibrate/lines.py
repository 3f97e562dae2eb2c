"""One line of agreement for each metric and judge: the joined rows as arrays, and all estimates of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.bias import bias_of
from jurimetrics.calibrate.labels import RATER
from jurimetrics.calibrate.majority import accuracy_parts, confusion, pass_parts
from jurimetrics.calibrate.reuse import shaped_scores, shaped_threshold
from jurimetrics.calibrate.sheet import (
    CORRELATIONS,
    PAIRWISE,
    Measure,
    Part,
    Sheet,
    human_pairs,
    judge_pairs,
    judge_with_gold,
    reliability,
    skipped_groups,
    united,
    why_off_scale,
    with_others,
)
from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.icc import of_the_mean
from jurimetrics.stats.ratings import whole_scale
from jurimetrics.stats.resampling import group_codes, minus, undefined

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """One metric and judge: counts, the estimates by name, the confusion table (None off the scale), and notes."""

    metric: str
    judge: str
    kind: str
    n: int
    missing: int
    groups: int
    raters: int
    tied: float
    used_groups: int
    skipped_groups: int
    constant: float
    version: str
    estimates: Mapping[str, Estimate]
    confusion: pd.DataFrame | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is the same for all lines: the results' settings and all their rows joined to labels, the judge to beat,
    whether rows are weighted, and how estimates are made."""

    settings: Mapping[str, Any]
    joined: pd.DataFrame
    baseline: str | None
    weighted: bool
    measure: Measure

    def baseline_of(self, judges: list[str]) -> str | None:
        """The judge to beat among `judges`. Raises `InputError` where one was named that is not there."""
        if self.baseline is not None:
            if self.baseline not in judges:
                raise InputError(f"baseline {self.baseline!r} is none of the judges: {', '.join(judges)}")
            return self.baseline
        kinds = self.settings.get("judges", {})
        return next((name for name in judges if kinds.get(name, {}).get("kind") == "baseline"), None)


def lines_of(rows: pd.DataFrame, plan: Plan) -> list[AgreementLine]:
    """The lines of all metrics and judges in `rows`, a joined frame of labelled rows with `settled` and `weight`."""
    lines = []
    for metric, of_metric in rows.groupby("metric", sort=False):
        judges = list(dict.fromkeys(of_metric["judge"]))
        floor = plan.baseline_of(judges)
        ceilings: dict[bytes, dict[str, Part]] = {}
        by_judge = {judge: of_metric[of_metric["judge"] == judge] for judge in judges}
        for judge in judges:
            beaten = by_judge[floor] if floor is not None and floor != judge else None
            lines.append(_line(str(metric), judge, by_judge[judge], beaten, floor, plan, ceilings))
    return lines


def _line(
    metric: str,
    judge: str,
    mine: pd.DataFrame,
    beaten: pd.DataFrame | None,
    floor: str | None,
    plan: Plan,
    ceilings: dict[bytes, dict[str, Part]],
) -> AgreementLine:
    scored = mine[mine["score"].notna()]
    kind = "panel" if mine["panel"].any() else "baseline" if judge == floor else "judge"
    why = "the judge scored none of the labelled rows" if scored.empty else ""
    if why := why or shaped_scores(plan.settings, plan.joined, metric, judge):
        return _empty(metric, judge, kind, mine, why, _version(plan, metric))
    sheet = _sheet(metric, scored, plan)
    key = pd.util.hash_pandas_object(scored[["id", "variant"]], index=False).to_numpy().tobytes()
    if key not in ceilings:
        ceilings[key] = _ceiling(sheet, plan)
    estimates, constant = _estimates(sheet, scored, ceilings[key], plan)
    estimates |= _over_baseline(metric, scored, beaten, plan)
    use = scored["settled"].to_numpy(dtype=np.float64)
    note = _no_better(estimates["accuracy_gain"], constant)
    used, skipped = skipped_groups(sheet)
    return AgreementLine(
        metric,
        judge,
        kind,
        len(scored),
        len(mine) - len(scored),
        sheet.groups[1],
        len(sheet.raters),
        float(scored["tied"].mean()),
        used,
        skipped,
        constant,
        _version(plan, metric),
        estimates,
        None if sheet.no_scale or sheet.scale is None else confusion(sheet.score, use, sheet.scale, sheet.weights),
        (note,) if note else (),
    )


def _sheet(metric: str, scored: pd.DataFrame, plan: Plan) -> Sheet:
    columns = [name for name in scored.columns if str(name).startswith(RATER)]
    raters = scored[columns].to_numpy(dtype=np.float64).T
    raters = raters[~np.isnan(raters).all(axis=1)]
    score = scored["score"].to_numpy(dtype=np.float64)
    scale = _scale(plan.settings["metrics"][metric], score, raters)
    weights = None
    if plan.weighted:
        given = scored["weight"].to_numpy(dtype=np.float64)
        weights = given / given.mean()
    return Sheet(
        score,
        raters,
        scored["label"].to_numpy(dtype=np.float64),
        group_codes(scored["group"].tolist(), len(scored)),
        group_codes(scored["variant"].tolist(), len(scored)),
        weights,
        scale,
        why_off_scale(score, raters, scale, bool((scored["repeats"] > 1).any())),
    )


def _scale(declared: Mapping[str, Any], score: Numbers, raters: Numbers) -> tuple[float, ...] | None:
    low, high = declared["range"]
    if declared.get("range_from_data"):
        low, high = min(low, float(np.nanmin(raters))), max(high, float(np.nanmax(raters)))
        return whole_scale((low, high)) if high > low else None
    return whole_scale((low, high), declared.get("levels"))


def _ceiling(sheet: Sheet, plan: Plan) -> dict[str, Part]:
    """What people reach among themselves, on the rows of this sheet."""
    found: dict[str, Part] = dict(human_pairs(sheet))
    for kind, part in with_others(sheet, plan.measure.level, judge=False).items():
        found[kind] = part
    return found


def _estimates(
    sheet: Sheet, scored: pd.DataFrame, ceiling: Mapping[str, Part], plan: Plan
) -> tuple[dict[str, Estimate], float]:
    measure = plan.measure
    found: dict[str, Estimate] = {}
    for name, part in judge_pairs(sheet).items():
        said = name.replace("_", " ")
        lowest = 0.0 if name == "raw_agreement" else -1.0
        found[name] = measure.estimate(sheet, part, said, (lowest, 1.0))
        found[f"human_{name}"] = measure.estimate(sheet, ceiling[name], f"{said} of people", (lowest, 1.0))
        found[f"{name}_gap"] = measure.estimate(sheet, _gap(part, ceiling[name]), f"{said}, judge minus people", None)
    gold = judge_with_gold(sheet, measure.level)
    others = with_others(sheet, measure.level, judge=True)
    for kind in CORRELATIONS:
        found[kind] = measure.correlation(sheet, gold[kind], kind)
        found[f"{kind}_others"] = measure.correlation(sheet, others[kind], f"{kind} with the other raters")
        found[f"human_{kind}"] = measure.correlation(sheet, ceiling[kind], f"{kind} of people with the other raters")
        gap = _gap(others[kind], ceiling[kind])
        found[f"{kind}_gap"] = measure.correlation(sheet, gap, f"{kind}, judge minus people", (-2.0, 2.0))
    single = found["icc_2_1"] = measure.estimate(sheet, reliability(sheet), "ICC(2,1)")
    found["icc_2_k"] = of_the_mean(replace(single, method=single.method.replace("(2,1)", "(2,k)", 1)), 2)
    found["bias"] = bias_of(sheet.score - sheet.gold, scored["group"].tolist(), sheet.weights, measure.confidence)
    shaped = shaped_threshold(plan.settings, plan.joined, str(scored["metric"].iloc[0]))
    more, constant = _against_majority(sheet, scored, measure, shaped)
    return found | more, constant


def _against_majority(
    sheet: Sheet, scored: pd.DataFrame, measure: Measure, shaped: str
) -> tuple[dict[str, Estimate], float]:
    majority = scored["settled"].to_numpy(dtype=np.float64)
    accuracy, gain, constant = accuracy_parts(sheet.score, majority, *sheet.groups, sheet.weights)
    if sheet.no_scale:
        accuracy = gain = Part(None, sheet.no_scale)
    passed, people = (scored[name].to_numpy(dtype=np.float64) for name in ("passed", "label_passed"))
    agreed, kappa, _ = pass_parts(passed, people, *sheet.groups, sheet.weights)
    if shaped:
        agreed = kappa = Part(None, shaped)
    found = {
        "accuracy": measure.estimate(sheet, accuracy, "accuracy against the majority", (0.0, 1.0)),
        "accuracy_gain": measure.estimate(sheet, gain, "accuracy minus that of a constant guess"),
        "pass_agreement": measure.estimate(sheet, agreed, "agreement of pass and fail", (0.0, 1.0)),
        "pass_kappa": measure.estimate(sheet, kappa, "kappa of pass and fail"),
    }
    return found, constant


def _no_better(gain: Estimate, constant: float) -> str:
    if gain.value is None:
        return ""
    if gain.value <= 1e-12:
        return f"no better than constant: always guessing {constant:g} is right at least as often"
    if gain.low is not None and gain.low <= 0:
        return f"not shown to be better than constant (always {constant:g})"
    return ""


def _gap(first: Part, second: Part) -> Part:
    if first.statistic is None:
        return first
    if second.statistic is None:
        return second
    left_out = max(first.left_out, second.left_out)
    used = united([first, second])
    return Part(minus(first.statistic, second.statistic), "", left_out, max(first.of, second.of), used=used)


def _over_baseline(metric: str, scored: pd.DataFrame, beaten: pd.DataFrame | None, plan: Plan) -> dict[str, Estimate]:
    """The judge's rank correlation and kappa minus the baseline's, on the rows that both scored."""
    names = {"spearman_over_baseline": "spearman", "kappa_over_baseline": "kappa"}
    if beaten is None:
        why = "no baseline judge to compare with"
        return {name: undefined(why, len(scored), plan.measure.confidence) for name in names}
    floor = beaten[beaten["score"].notna()].set_index(["id", "variant"])
    both = scored[pd.MultiIndex.from_frame(scored[["id", "variant"]]).isin(floor.index)]
    if both.empty:
        why = "no row was scored by this judge and the baseline"
        return {name: undefined(why, 0, plan.measure.confidence) for name in names}
    other = floor.loc[pd.MultiIndex.from_frame(both[["id", "variant"]])].reset_index()
    mine, theirs = _sheet(metric, both, plan), _sheet(metric, other, plan)
    level, measure = plan.measure.level, plan.measure
    gaps = {
        "spearman": _gap(judge_with_gold(mine, level)["spearman"], judge_with_gold(theirs, level)["spearman"]),
        "kappa": _gap(judge_pairs(mine)["kappa"], judge_pairs(theirs)["kappa"]),
    }
    return {
        "spearman_over_baseline": measure.correlation(
            mine, gaps["spearman"], "spearman, judge minus baseline", (-2.0, 2.0)
        ),
        "kappa_over_baseline": measure.estimate(mine, gaps["kappa"], "kappa, judge minus baseline", None),
    }


def _empty(metric: str, judge: str, kind: str, mine: pd.DataFrame, why: str, version: str) -> AgreementLine:
    """A judge of whom nothing can be estimated, and why."""
    n = int(mine["score"].notna().sum())
    found = undefined(why, n)
    ceilinged = (*PAIRWISE, *CORRELATIONS)
    names = [
        f"{before}{name}{after}" for name in ceilinged for before, after in (("", ""), ("human_", ""), ("", "_gap"))
    ]
    names += [f"{name}_others" for name in CORRELATIONS]
    names += ["icc_2_1", "icc_2_k", "bias", "accuracy", "accuracy_gain", "pass_agreement", "pass_kappa"]
    names += ["spearman_over_baseline", "kappa_over_baseline"]
    nothing, tied = dict.fromkeys(names, found), float(mine["tied"].mean())
    return AgreementLine(
        metric, judge, kind, n, len(mine) - n, 0, 0, tied, 0, 0, np.nan, version, nothing, None, (why,)
    )


def _version(plan: Plan, metric: str) -> str:
    return str(plan.settings["metrics"][metric].get("version", ""))
