"""Numbers and names as a reader has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jurimetrics.variants.words import interval


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A number with its interval; "-" where there is none, the number alone where it has no interval.

    >>> with_interval(0.0612, 0.0213, 0.1011), with_interval(0.5, None, math.nan), with_interval(math.nan, None, None)
    ('0.06 [0.02, 0.10]', '0.50', '-')
    """
    if not known(value):
        return "-"
    if not (known(low) and known(high)):
        return f"{value:.2f}"
    assert value is not None and low is not None and high is not None
    return interval(value, low, high)


def known(value: Any) -> bool:
    """Whether there is a number.

    >>> known(None), known(math.nan), known(0.0)
    (False, False, True)
    """
    return value is not None and not math.isnan(value)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence, `most` of them.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a', 'a, b and c', 'a, b and 1 more')
    """
    shown = [name or "(no name)" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "none"


def decided(line: Mapping[Any, Any]) -> bool:
    """Whether a line of a comparison is decided within its family: the interval its verdict goes by leaves out 0.

    >>> line = {"family": "primary", "corrected": math.nan, "simultaneous_low": 0.1, "simultaneous_high": 0.2}
    >>> decided(line), decided(line | {"family": "exploratory"})
    (True, False)
    """
    if line["family"] != "primary":
        return False
    low, high = line["simultaneous_low"], line["simultaneous_high"]
    if known(line["corrected"]):
        low, high = line["corrected_low"], line["corrected_high"]
    return bool(low > 0 or high < 0)
