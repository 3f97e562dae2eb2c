"""How many records to label, from what a first few labels show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.labels import join
from jurimetrics.errors import InputError
from jurimetrics.stats.budget import labels_needed
from jurimetrics.stats.corrected import TARGETS, Target
from jurimetrics.stats.resampling import group_codes

if TYPE_CHECKING:
    from jurimetrics.results import Results

Numbers = npt.NDArray[np.float64]
_LEAST = 10


def label_budget(
    results: Results,
    labels: pd.DataFrame,
    width: float,
    target: Target = "population",
    *,
    records: int | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """How many records people must label so that the interval of the corrected mean is at most `width` wide in all.

    `labels` is a pilot: a random subset, labelled already (`selection="random"`, or probabilities, by which it is
    weighted). `width` is in the unit of the metric. `records`: how many there will be (default: as many as in the
    results). One row for each metric, judge and variant:

    `metric`, `judge`, `variant`; of the pilot `n`, `spread` (standard deviation of the labels), `correlation` of judge
    and people (NaN where one does not vary; then the judge is of no use) and `design_effect`, how many times larger
    groups make the variance; `labels` needed with the judge's help and `labels_alone` without it (NA where even all
    `records` would not do). A small pilot tells these only roughly: plan for the next step and ask again.

    Raises `InputError` for labels that do not say how they were chosen or were chosen by label, a width that is not above
    0, and where no judge has 10 labelled records.
    Source: see `labels_needed`.

    >>> from jurimetrics import Results, load_labels
    >>> scores = pd.DataFrame({"id": range(2000), "metric": "ok", "judge": "ann", "score": [0.9, 0.2, 0.7, 0.4] * 500})
    >>> people = [{"id": at, "metric": "ok", "label": [1, 0, 1, at % 3 > 0][at % 4]} for at in range(40)]
    >>> results = Results.from_frame(scores, {"ok": {"range": (0, 1)}})
    >>> found = label_budget(results, load_labels(people, selection="random"), width=0.1)
    >>> bool(found.loc[0, "labels"] < found.loc[0, "labels_alone"])
    True
    """
    if target not in TARGETS:
        raise InputError(f'target: expected "population" or "these records", found {target!r}')
    if not width > 0:
        raise InputError(f"width must be above 0, not {width!r}")
    rows = join(results, labels)
    selection = rows.attrs["selection"]
    if selection not in ("random", "probabilities"):
        raise InputError(
            'label_budget: the pilot must be a random subset, declared in load_labels(..., selection="random"), or drawn '
            f'with known probabilities ("probabilities"); these labels say {selection!r}'
        )
    lines = []
    for (metric, judge, variant), mine in rows.groupby(["metric", "judge", "variant"], sort=False):
        pilot = mine[(mine["raters"] > 0) & mine["score"].notna()]
        if len(pilot) < _LEAST:
            continue
        total = records or int(mine["score"].notna().sum())
        spread, correlation, effect = _shown(pilot, selection == "probabilities")
        line = {"metric": metric, "judge": judge, "variant": variant, "n": len(pilot), "spread": spread}
        line |= {"correlation": correlation, "design_effect": effect, "records": total}
        follows = 0.0 if math.isnan(correlation) else correlation
        for name, helped in (("labels", follows), ("labels_alone", 0.0)):
            line[name] = labels_needed(width, spread, helped, total, design_effect=effect, level=level, target=target)
        lines.append(line)
    if not lines:
        raise InputError(f"label_budget: a pilot needs at least {_LEAST} labelled records that the judge scored")
    return pd.DataFrame(lines).astype({"labels": "Int64", "labels_alone": "Int64"})


def _shown(pilot: pd.DataFrame, weighted: bool) -> tuple[float, float, float]:
    """Spread of the labels, their correlation with the judge, and what groups do to the variance of their mean."""
    y, f = (pilot[name].to_numpy(dtype=np.float64) for name in ("label", "score"))
    w = 1 / pilot["probability"].to_numpy(dtype=np.float64) if weighted else np.ones(len(y))
    if np.isnan(w).any():
        raise InputError("labels: a labelled record has no probability of having been drawn")
    w = w / w.sum()
    y, f = y - (w * y).sum(), f - (w * f).sum()
    n = len(y)
    of_y, of_f = float((w * y**2).sum()), float((w * f**2).sum())
    varies = of_y > 1e-20 and of_f > 1e-20
    correlation = float((w * y * f).sum()) / math.sqrt(of_y * of_f) if varies else math.nan
    code = group_codes(pilot["group"].to_numpy(dtype=object), n)[0]
    sums, own = np.bincount(code, weights=w * y), float((w**2 * y**2).sum())
    effect = max(1.0, float((sums**2).sum()) / own) if own > 0 else 1.0
    return math.sqrt(of_y * n / (n - 1)), correlation, effect
