"""Several p values at once: Holm, Benjamini and Hochberg, Benjamini and Yekutieli."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError

Procedure = Literal["holm", "fdr_bh", "fdr_by"]
_PROCEDURES = ("holm", "fdr_bh", "fdr_by")


@dataclass(frozen=True, slots=True, eq=False)
class Adjusted:
    """p values adjusted for being `tested` together: reject where `p` is at most the level.

    `p` has one number for each given one, in their order, NaN where it was NaN: those tested nothing, `dropped` says how
    many they are, and they do not count among the tested.
    """

    p: npt.NDArray[np.float64]
    method: Procedure
    tested: int
    dropped: int


def adjust(p: Sequence[float] | npt.NDArray[np.float64], method: Procedure = "holm") -> Adjusted:
    """Adjust p values for their number.

    "holm" holds the chance of any false rejection (any dependence); "fdr_bh" the expected share of false ones among the
    rejections (independent or positively dependent p), "fdr_by" the same under any dependence. Holm has no intervals of
    its own that agree with it: where an interval is shown, use the family of `sign_flips`.

    Raises `InputError` for a p outside 0 to 1 or another method. Sources: Holm, Scand. J. Statist. 6 (1979); Benjamini
    and Hochberg, JRSS B 57 (1995); Benjamini and Yekutieli, Ann. Statist. 29 (2001).

    >>> found = adjust([0.01, float("nan"), 0.04])
    >>> found.p.tolist(), found.tested, found.dropped
    ([0.02, nan, 0.04], 2, 1)
    """
    if method not in _PROCEDURES:
        raise InputError(f"adjust: no method {method!r}; methods: {', '.join(_PROCEDURES)}")
    given = np.asarray(p, dtype=np.float64)
    there = np.flatnonzero(~np.isnan(given))
    if ((given[there] < 0) | (given[there] > 1)).any():
        raise InputError("adjust: p values lie between 0 and 1")
    tested = len(there)
    order = there[np.argsort(given[there], kind="stable")]
    ranks = np.arange(1, tested + 1)
    if method == "holm":
        raised = np.maximum.accumulate(given[order] * (tested - ranks + 1))
    else:
        price = float((1 / ranks).sum()) if method == "fdr_by" else 1.0
        raised = np.minimum.accumulate((given[order] * tested * price / ranks)[::-1])[::-1]
    found = np.full(given.shape, np.nan)
    found[order] = np.minimum(raised, 1.0)
    return Adjusted(found, method, tested, len(given) - tested)
