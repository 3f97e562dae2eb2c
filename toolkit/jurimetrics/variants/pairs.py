"""Every pair of variants under every metric: counts, differences, and what the family of them decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.stats.flips import Flipped, sign_flips
from jurimetrics.stats.paired import design_effect, effect_size, mcnemar, tally, worst_case
from jurimetrics.stats.power import records_needed
from jurimetrics.stats.resampling import Numbers
from jurimetrics.variants.sheets import Sheet


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two variants, by their places in a sheet; differences are those of b minus those of a."""

    sheet: Sheet
    a: int
    b: int
    primary: bool

    @property
    def differences(self) -> Numbers:
        found: Numbers = self.sheet.scores[:, self.b] - self.sheet.scores[:, self.a]
        return found

    @property
    def names(self) -> tuple[str, str]:
        return self.sheet.variants[self.a], self.sheet.variants[self.b]


def pairs_of(sheet: Sheet, baseline: str | None, primary: bool) -> list[Pair]:
    """All pairs of variants of a sheet, or each with the baseline, which is then `a`; those it does not apply to left out."""
    applies = [at for at in range(len(sheet.variants)) if sheet.applicable[at]]
    if baseline is None:
        return [Pair(sheet, a, b, primary) for place, a in enumerate(applies) for b in applies[place + 1 :]]
    first = sheet.variants.index(baseline)
    return [Pair(sheet, first, b, primary) for b in applies if b != first] if first in applies else []


def flips_of(pairs: Sequence[Pair], level: float, flips: int, seed: int) -> Flipped | None:
    """Sign flips of the differences of all pairs together, over the records of all their sheets."""
    if not pairs:
        return None
    group = {name: at for one in pairs for name, at in zip(one.sheet.ids, one.sheet.groups, strict=True)}
    place = {name: at for at, name in enumerate(sorted(group))}
    table = np.full((len(place), len(pairs)), np.nan)
    for at, one in enumerate(pairs):
        table[[place[name] for name in one.sheet.ids], at] = one.differences
    return sign_flips(table, [group[name] for name in place], level, flips=flips, seed=seed)


def line(pair: Pair, tested: Flipped, at: int, answered: Mapping[tuple[str, str, str], float]) -> dict[str, Any]:
    """The columns of one line that follow from the scores; see `compare`."""
    sheet, (a, b) = pair.sheet, pair.names
    first, second = sheet.scores[:, pair.a], sheet.scores[:, pair.b]
    both = ~np.isnan(first) & ~np.isnan(second)
    counts = tally(first, second)
    wins, losses = (counts.higher, counts.lower) if sheet.higher_is_better else (counts.lower, counts.higher)
    n = int(both.sum())
    family = pair.primary

    def known(values: npt.NDArray[Any], wanted: bool = True) -> float:
        return float(values[at]) if wanted else math.nan

    return {
        "metric": sheet.metric, "judge": sheet.judge, "a": a, "b": b, "family": "primary" if family else "exploratory",
        "higher_is_better": sheet.higher_is_better, "n": n, "groups": int(tested.groups[at]),
        "only_a": int((~np.isnan(first) & np.isnan(second)).sum()),
        "only_b": int((np.isnan(first) & ~np.isnan(second)).sum()),
        "coverage_a": _share(first, sheet.asked[:, pair.a]), "coverage_b": _share(second, sheet.asked[:, pair.b]),
        "answered_a": answered.get((sheet.metric, sheet.judge, a), math.nan),
        "answered_b": answered.get((sheet.metric, sheet.judge, b), math.nan),
        "mean_a": _mean(first[both]), "mean_b": _mean(second[both]),
        "difference": known(tested.mean), "low": known(tested.low), "high": known(tested.high), "p": known(tested.p),
        "simultaneous_low": known(tested.family_low, family), "simultaneous_high": known(tested.family_high, family),
        "p_adjusted": known(tested.p_family, family),
        "effect_size": effect_size(first, second), "wins": wins, "ties": counts.equal, "losses": losses,
        **_passes(pair, both), **_worst(sheet, first, second), "method": _method(pair, tested, at),
    }  # fmt: skip


def needed(pair: Pair, detect: float | None, alpha: float, power: float) -> float:
    """Paired records needed to find a difference of `detect` at the level that decides this line.

    NaN where the differences do not vary, or come from too few groups: from such a spread nothing can be planned.
    """
    differences = pair.differences
    there = differences[~np.isnan(differences)]
    if detect is None or len(there) < 2 or not alpha:
        return math.nan
    names = [name for name, value in zip(pair.sheet.groups, differences, strict=True) if not math.isnan(value)]
    if np.ptp(there) <= 1e-12 * max(1.0, float(np.abs(there).max())):
        return math.nan
    together = design_effect(there, names)
    spread = float(there.std(ddof=1))
    return records_needed(spread, detect, alpha=alpha, power=power, design_effect=together)


def _passes(pair: Pair, both: npt.NDArray[np.bool_]) -> dict[str, Any]:
    first, second = pair.sheet.passes[both, pair.a], pair.sheet.passes[both, pair.b]
    found = {"pass_a": _mean(first), "pass_b": _mean(second), "only_a_passes": math.nan, "only_b_passes": math.nan,
             "mcnemar_p": math.nan}  # fmt: skip
    groups = [name for name, here in zip(pair.sheet.groups, both, strict=True) if here]
    alone, whole = len(set(groups)) == len(groups), bool(np.isin([first, second], (0.0, 1.0)).all())
    if not (len(first) and alone and whole):
        return found
    only_a, only_b = int(((first == 1) & (second == 0)).sum()), int(((first == 0) & (second == 1)).sum())
    return found | {"only_a_passes": only_a, "only_b_passes": only_b, "mcnemar_p": mcnemar(only_a, only_b).mid_p}


def _worst(sheet: Sheet, first: Numbers, second: Numbers) -> dict[str, float]:
    low, high = sheet.declared["range"]
    least, most = worst_case(first, second, (float(low), float(high)))
    return {"worst_low": least, "worst_high": most}


def _method(pair: Pair, tested: Flipped, at: int) -> str:
    said = f"sign flips by group, {tested.signs}"
    if tested.why[at]:
        return f"{said}; {tested.why[at]}"
    if pair.primary and math.isnan(float(tested.family_low[at])):
        return f"{said}; no interval: {tested.groups[at]} groups cannot decide a family of {tested.family}"
    return f"{said}; alone" if not pair.primary else f"{said}; family of {tested.family} by the smallest p"


def _share(scores: Numbers, asked: npt.NDArray[np.bool_]) -> float:
    return float((~np.isnan(scores)).sum() / asked.sum()) if asked.any() else math.nan


def _mean(values: Numbers) -> float:
    there = values[~np.isnan(values)]
    return math.fsum(there) / len(there) if len(there) else math.nan
