"""How many records people must label for an interval of a wished width."""

from __future__ import annotations

import math
from typing import Literal

from jurimetrics.errors import InputError
from jurimetrics.stats.corrected import Target
from jurimetrics.stats.estimate import FEWEST_GROUPS


def labels_needed(
    width: float,
    spread: float,
    correlation: float,
    records: int,
    *,
    design_effect: float = 1.0,
    level: float = 0.95,
    target: Target = "population",
    using: Literal["judge", "labels alone"] = "judge",
) -> int | None:
    """The fewest labels, of a random subset of `records`, whose interval for the mean is at most `width` wide in all.

    `spread`: the standard deviation of people's labels. `correlation` (-1 to 1) of judge and people; below 0 the judge
    does not help. With n of N labelled the variance of PPI++ is spread^2 (1 - r^2 (N - n) / N) / n for the "population"
    and spread^2 (1 - r^2) (1 - n / N) / n for "these records"; "labels alone" has r = 0. `design_effect`: how many times
    larger groups make it (1 + (m - 1) ICC for m labelled records to a group). None where even labelling all would not do.

    Raises `InputError` for numbers outside their range. Source: PPI++, arXiv 2311.01453; Kish, "Survey Sampling" (1965).

    >>> labels_needed(0.1, 0.5, 0.0, 5000), labels_needed(0.1, 0.5, 0.8, 5000)
    (387, 148)
    """
    if not (width > 0 and spread >= 0 and -1 <= correlation <= 1 and records >= 1 and design_effect > 0):
        raise InputError(
            f"needs a width above 0, a spread of at least 0, a correlation in -1 to 1, records and a design effect above "
            f"0, not {width:g}, {spread:g}, {correlation:g}, {records}, {design_effect:g}"
        )
    follows = max(0.0, correlation) ** 2 if using == "judge" else 0.0

    def wide(n: int) -> float:
        rest = (records - n) / records
        variance = (1 - follows) * rest if target == "these records" else 1 - follows * rest
        freedom = max(1.0, n / max(1.0, design_effect) - 1)
        return 2 * _student(level, freedom) * spread * math.sqrt(design_effect * variance / n)

    low, high = min(FEWEST_GROUPS, records), records
    if wide(high) > width:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if wide(middle) <= width else (middle + 1, high)
    return low


def _student(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    return float(stdtrit(freedom, 0.5 + level / 2))
