"""The people who labelled: how strict each is, how much they overlap, who and what stands apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.kappa import cohen_kappa, raw_agreement
from jurimetrics.stats.ranks import correlation
from jurimetrics.stats.resampling import undefined

Numbers = npt.NDArray[np.float64]
_RECORD = ["id", "variant"]


@dataclass(frozen=True, slots=True)
class RaterReport:
    """What is to be known of the raters before their labels are believed.

    `frame`: one row for each metric and rater: `metric`, `rater`, `n` labels, `overlap` the records another rater
    labelled too, `mean` label, `severity` (the mean of this rater minus the mean of the others on the same records, in the
    unit of the labels: below 0 is strict where more is better) with `severity_low`, `severity_high` (all raters of a
    metric at once) and `severity_method`, `distance` the mean distance from the others, `spearman` with the mean of the
    others and `spearman_method`, and `remark` in words (blank: nothing stands out).
    `overlap`: for each metric and rater (rows) how many records each rater (columns) labelled too.
    `pairs`: for each metric and two raters `n`, `raw_agreement`, `kappa`, `kappa_quadratic`, each with `_low`, `_high` and
    `_method`. `outliers`: the single labels that lie furthest from the mean of the others: `metric`, `id`, `variant`,
    `rater`, `label`, `others`, `difference`.
    """

    frame: pd.DataFrame
    overlap: pd.DataFrame
    pairs: pd.DataFrame
    outliers: pd.DataFrame

    def _repr_html_(self) -> str:
        shown = self.frame[["metric", "rater", "n", "overlap", "mean", "severity", "distance", "spearman", "remark"]]
        return shown.round(2).to_html(index=False, escape=True)


def rater_report(labels: pd.DataFrame, *, outliers: int = 20, confidence: float = 0.95) -> RaterReport:
    """How strict each rater is, how much raters overlap, and which raters and labels stand apart.

    `labels` is what :func:`load_labels` gives. Raters are compared on records they share; intervals go by record id
    (labels know no other groups). A rater is remarked on whose severity differs from 0 by more than chance and by a
    quarter of the labels' spread or more, who follows the others no better than by chance, who gave one label throughout,
    or who shares no record with anybody. `outliers` is how many single labels to list.

    Raises `InputError` where there are no labels or a column is missing.

    >>> from jurimetrics import load_labels
    >>> people = [{"id": at, "metric": "grade", "rater": name, "label": label}
    ...           for name, given in {"ann": [1, 2, 3, 4], "bob": [2, 3, 4, 5]}.items() for at, label in enumerate(given)]
    >>> rater_report(load_labels(people)).frame[["rater", "overlap", "severity"]].values.tolist()
    [['ann', 4, -1.0], ['bob', 4, 1.0]]
    """
    lacking = [name for name in (*_RECORD, "metric", "rater", "label") if name not in labels.columns]
    if lacking:
        raise InputError(f"labels: no column {lacking[0]!r}; read them with load_labels")
    if labels.empty:
        raise InputError("labels: there are none")
    lines: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    apart: list[pd.DataFrame] = []
    shared: dict[tuple[str, str], dict[str, int]] = {}
    for metric, mine in labels.groupby("metric", sort=False):
        wide = mine.pivot(index=_RECORD, columns="rater", values="label").sort_index().sort_index(axis=1)
        given, names, ids = wide.to_numpy(dtype=np.float64), list(wide.columns), list(wide.index.get_level_values("id"))
        others = _others(given)
        there = ~np.isnan(given)
        for at, name in enumerate(names):
            lines.append(_line(str(metric), name, given[:, at], others[:, at], ids, given, len(names), confidence))
            shared[str(metric), name] = {
                other: int((there[:, at] & there[:, place]).sum()) for place, other in enumerate(names)
            }
        for one, two in combinations(range(len(names)), 2):
            pairs.append(
                {"metric": metric, "first": names[one], "second": names[two]}
                | _pair(given[:, one], given[:, two], ids, confidence)
            )
        apart.append(_apart(str(metric), wide, others))
    listed = pd.concat(apart, ignore_index=True)
    order = np.lexsort((listed["rater"], listed["variant"], listed["id"], -listed["difference"].abs()))
    overlap = pd.DataFrame.from_dict(shared, orient="index").rename_axis(index=["metric", "rater"])
    return RaterReport(
        pd.DataFrame(lines), overlap, pd.DataFrame(pairs), listed.iloc[order[:outliers]].reset_index(drop=True)
    )


def _others(given: Numbers) -> Numbers:
    """For each label the mean of the others of the same record, NaN where there is none."""
    there = ~np.isnan(given)
    many = there.sum(axis=1)[:, None] - there
    total = np.where(there, given, 0.0)
    rest = total.sum(axis=1)[:, None] - total
    return np.where(there & (many > 0), rest / np.maximum(many, 1), np.nan)


def _line(
    metric: str,
    name: str,
    mine: Numbers,
    others: Numbers,
    ids: Sequence[str],
    given: Numbers,
    raters: int,
    confidence: float,
) -> dict[str, Any]:
    both = ~np.isnan(others)
    groups = [one for one, use in zip(ids, both, strict=True) if use]
    # All raters of a metric are looked at, so each interval is as wide as that many ask for.
    severity = mean_estimate(mine[both] - others[both], groups, 1 - (1 - confidence) / raters)
    follows = correlation(mine, others, "spearman", ids, level=confidence)
    return {
        "metric": metric,
        "rater": name,
        "n": int((~np.isnan(mine)).sum()),
        "overlap": int(both.sum()),
        "mean": float(np.nanmean(mine)),
        **_spread("severity", severity),
        "distance": float(np.abs(mine[both] - others[both]).mean()) if both.any() else np.nan,
        **_spread("spearman", follows),
        "remark": _remark(mine, severity, follows, float(np.nanstd(given))),
    }


def _remark(mine: Numbers, severity: Estimate, follows: Estimate, spread: float) -> str:
    if severity.value is None:
        return "shares no record with another rater"
    remarks = []
    if np.nanmin(mine) == np.nanmax(mine) and (~np.isnan(mine)).sum() > 1:
        remarks.append(f"gave {np.nanmin(mine):g} throughout")
    sure = severity.low is not None and severity.high is not None and not severity.low <= 0 <= severity.high
    if sure and abs(severity.value) >= spread / 4:
        remarks.append(f"labels {'higher' if severity.value > 0 else 'lower'} than the others")
    if follows.low is not None and follows.low <= 0:
        remarks.append("follows the others no better than by chance")
    return "; ".join(remarks)


def _pair(first: Numbers, second: Numbers, ids: Sequence[str], confidence: float) -> dict[str, Any]:
    both = ~np.isnan(first) & ~np.isnan(second)
    scale = np.unique(np.concatenate([first[both], second[both]])).tolist()
    found: dict[str, Any] = {"n": int(both.sum())}
    groups = list(ids)
    found |= _spread("raw_agreement", raw_agreement(first, second, groups, level=confidence))
    if any(not step.is_integer() for step in scale):
        why: Estimate | None = undefined("labels are no whole steps", int(both.sum()), confidence)
    elif len(scale) < 2:
        why = undefined("one class only" if scale else "no record in common", int(both.sum()), confidence)
    else:
        why = None
    # Weights go by the value of a step, so steps that nobody used change nothing.
    found |= _spread("kappa", why or cohen_kappa(first, second, scale, "plain", groups, level=confidence))
    return found | _spread(
        "kappa_quadratic", why or cohen_kappa(first, second, scale, "quadratic", groups, level=confidence)
    )


def _apart(metric: str, wide: pd.DataFrame, others: Numbers) -> pd.DataFrame:
    rows, raters = np.nonzero(~np.isnan(others))
    given = wide.to_numpy(dtype=np.float64)[rows, raters]
    return pd.DataFrame(
        {
            "metric": metric,
            "id": wide.index.get_level_values("id")[rows],
            "variant": wide.index.get_level_values("variant")[rows],
            "rater": wide.columns[raters],
            "label": given,
            "others": others[rows, raters],
            "difference": given - others[rows, raters],
        }
    )


def _spread(name: str, found: Estimate) -> dict[str, Any]:
    numbers = {"": found.value, "_low": found.low, "_high": found.high}
    return {f"{name}{end}": np.nan if number is None else number for end, number in numbers.items()} | {
        f"{name}_method": found.method
    }
