"""Quality against what an answer costs or how long it takes: which variants no other one beats in both."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.resampling import Numbers
from jurimetrics.variants.serving import pair_serving, serving_notes, serving_of
from jurimetrics.variants.sheets import Sheet, sheets

if TYPE_CHECKING:
    from jurimetrics.results import Results

Flags = npt.NDArray[np.bool_]
AGAINST = ("answer_cost_usd", "answer_latency_s", "answer_tokens")


def tradeoff(
    results: Results,
    metric: str,
    against: str = "answer_cost_usd",
    *,
    judge: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Each variant's quality beside what its answers took, and whether it stands on the Pareto front.

    `against`: "answer_cost_usd", "answer_latency_s" or "answer_tokens", as the records say. One line for each variant:
    `variant`; `metric`, `judge`; `quality`, the mean score over the `n` records that all variants have one for, with
    `quality_low`, `quality_high`; `against`; `amount`, its mean over those of these records where it is known (`known`
    of them) with `amount_low`, `amount_high`; `front`: no other variant is at least as good in both and better in one,
    by the means alone; NA where the amount is unknown, or where it rests on a variant for which another model answered for
    the judge (`attrs["notes"]` says so). Means that lie within each other's intervals are not told apart by the front;
    `compare` says what is sure.

    Raises `InputError` for another `against`, and as `compare` does.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> records = [{"id": i, "variant": v, "answer": a, "contexts": ["It is 4."], "cost_usd": c} for i in range(9)
    ...            for v, a, c in (("A", "It is 4.", 0.02), ("B", "It is 5.", 0.01), ("C", "It is 5.", 0.03))]
    >>> found = tradeoff(evaluate(records, ["faithfulness"], BaselineJudge(), store=None), "faithfulness")
    >>> found[["variant", "quality", "amount", "front"]].round(4).values.tolist()
    [['A', 1.0, 0.02, True], ['B', 0.0, 0.01, True], ['C', 0.0, 0.03, False]]
    """
    if against not in AGAINST:
        raise InputError(f"tradeoff: against is one of {', '.join(AGAINST)}, not {against!r}")
    (sheet,) = sheets(results, judge, [metric])
    whole = ~np.isnan(sheet.scores).any(axis=1)
    groups = [sheet.groups[at] for at in np.flatnonzero(whole).tolist()]
    took = results.indicators("record").pivot(index="id", columns="variant", values=against)
    amounts = took.reindex(index=list(sheet.ids), columns=list(sheet.variants)).to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    low, high = sheet.declared["range"]
    lines: list[dict[str, Any]] = []
    for at, variant in enumerate(sheet.variants):
        quality = mean_estimate(sheet.scores[whole, at], groups, level, bounds=(low, high))
        amount = mean_estimate(amounts[whole, at], groups, level)
        lines.append(
            {"variant": variant, "metric": metric, "judge": sheet.judge, "higher_is_better": sheet.higher_is_better,
             "n": quality.n, **_columns("quality", quality), "against": against, "known": amount.n,
             **_columns("amount", amount)}
        )  # fmt: skip
    frame = pd.DataFrame(lines)
    quality_of = frame["quality"].to_numpy(dtype=np.float64) * (1 if sheet.higher_is_better else -1)
    apart, notes = _apart(results, sheet)
    frame["front"] = pd.array(_front(quality_of, frame["amount"].to_numpy(dtype=np.float64), apart), dtype="boolean")
    frame.attrs["notes"] = notes
    return frame


def _apart(results: Results, sheet: Sheet) -> tuple[Flags, list[str]]:
    """Which two variants (V x V) not one judge judged, and that in words."""
    several = serving_of(results, [sheet]).get((sheet.metric, sheet.judge), [])
    apart = np.zeros((len(sheet.variants), len(sheet.variants)), dtype=bool)
    served = []
    for (at, one), (its, other) in combinations(enumerate(sheet.variants), 2):
        found = pair_serving(several, one, other)
        apart[at, its] = apart[its, at] = bool(found.refused)
        served.append(found)
    return apart, serving_notes(served)


def _front(quality: Numbers, amount: Numbers, apart: Flags) -> list[Any]:
    """Whether each is beaten by none; NA where quality or amount is unknown, and where it may be beaten by one whose
    quality cannot be held against its own."""
    found: list[Any] = []
    for one, took, strange in zip(quality, amount, apart, strict=True):
        if math.isnan(one) or math.isnan(took):
            found.append(pd.NA)
            continue
        # Means of equal numbers may differ in their last digit.
        more, less = quality - one, took - amount
        slack, small = 1e-12 * max(1.0, abs(one)), 1e-12 * abs(took)
        better = (more >= -slack) & (less >= -small) & ((more > slack) | (less > small))
        if (better & ~strange).any():
            found.append(False)
        else:
            found.append(pd.NA if (strange & ~np.isnan(more) & (less >= -small)).any() else True)
    return found


def _columns(name: str, found: Estimate) -> dict[str, float]:
    numbers = {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return {column: math.nan if number is None else number for column, number in numbers.items()}
