"""When may a judge's verdict be trusted without asking further? A threshold on its confidence with a guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.thresholds import clopper_pearson_upper

Numbers = npt.NDArray[np.float64]
GRID = tuple(step / 100 for step in range(100, -1, -1))
"""Thresholds from strict to loose, fixed before any label is seen."""


@dataclass(frozen=True, slots=True)
class TrustThreshold:
    """From which confidence on verdicts are trusted: with probability 1 - `delta` at most `alpha` of them are wrong.

    `value` is None where no threshold can be shown to keep that. `n` verdicts of the labelled reach it, `wrong` of them
    disagree, `upper` is the bound on how many do; `coverage` is the share of the labelled that reach it (0 without a
    threshold). `tested` thresholds were looked at, `of` records were labelled; `why` says why there is none.
    """

    value: float | None
    alpha: float
    delta: float
    n: int
    wrong: int
    upper: float | None
    coverage: float
    tested: int
    of: int
    why: str = ""


def trust_threshold(
    confidence: Sequence[float] | Numbers,
    agrees: Sequence[Any] | npt.NDArray[Any],
    alpha: float,
    delta: float,
    grid: Sequence[float] = GRID,
) -> TrustThreshold:
    """The loosest confidence from which a judge's verdicts may be trusted, tested from strict to loose.

    `confidence`: N numbers, higher is surer; `agrees`: N, 1 where the judge says what people say. For each threshold of
    `grid`, in falling order, the upper bound of Clopper and Pearson at 1 - `delta` on how often the judge disagrees among
    the records that reach it; the first that exceeds `alpha` ends the sequence, and the last before it is kept. Each test
    is at the full `delta`, since none is made after one that fails.

    The records must be a random sample, one to a source, that nothing was fitted on, and the grid must be fixed
    beforehand. A grid that starts where too few records reach it fails at once: see `useful_grid`.

    Raises `InputError` for lengths that differ, values that are no numbers, a grid that does not fall. Source: Jung,
    Brahman and Choi, "Trust or Escalate: LLM Judges with Provable Guarantees for Human Agreement", ICLR 2025, arXiv
    2407.18370; Bauer, Statistics in Medicine 10 (1991) for the sequence.

    >>> found = trust_threshold([0.9] * 60 + [0.6] * 40, [1] * 60 + [1, 0] * 20, 0.1, 0.1, grid=(0.9, 0.6))
    >>> found.value, found.n, found.wrong, found.tested
    (0.9, 60, 0, 2)
    """
    sure, right = np.asarray(confidence, dtype=np.float64), np.asarray(agrees, dtype=np.float64)
    steps = [float(one) for one in grid]
    if len(sure) != len(right) or not np.isfinite(sure).all() or not np.isin(right, (0.0, 1.0)).all():
        raise InputError(f"needs equally many confidences (numbers) and agreements (1 or 0): {len(sure)}, {len(right)}")
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise InputError(f"alpha and delta lie between 0 and 1, not {alpha:g} and {delta:g}")
    if not steps or any(one <= two for one, two in pairwise(steps)):
        raise InputError("a grid of thresholds falls from strict to loose")
    kept: tuple[float, int, int, float] | None = None
    tested, bound = 0, 1.0
    for step in steps:
        reached = sure >= step - 1e-12
        n, wrong = int(reached.sum()), int((right[reached] == 0).sum())
        tested += 1
        bound = clopper_pearson_upper(wrong, n, delta) if n else 1.0
        if bound > alpha:
            break
        kept = (step, n, wrong, bound)
    if kept is None:
        why = f"of the {n} records that reach {step:g}, {wrong} disagree: up to {bound:.2f} may, {alpha:g} are allowed"
        return TrustThreshold(None, alpha, delta, 0, 0, None, 0.0, tested, len(sure), why)
    value, n, wrong, bound = kept
    return TrustThreshold(value, alpha, delta, n, wrong, bound, n / len(sure), tested, len(sure))


def fewest_records(alpha: float, delta: float) -> int:
    """How many records must reach a threshold so that it can pass at all, with not one disagreement among them.

    >>> fewest_records(0.1, 0.1)
    22
    """
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


def useful_grid(
    confidence: Sequence[float] | Numbers, alpha: float, delta: float, grid: Sequence[float] = GRID
) -> tuple[float, ...]:
    """The part of `grid` that begins where enough records reach it to pass at all; () where too few are there.

    It looks at confidences only, never at labels.

    >>> useful_grid([0.9] * 30 + [0.5] * 70, 0.1, 0.1, (1.0, 0.9, 0.5))
    (0.9, 0.5)
    """
    sure, least = np.asarray(confidence, dtype=np.float64), fewest_records(alpha, delta)
    return tuple(one for one in grid if int((sure >= one - 1e-12).sum()) >= least)
