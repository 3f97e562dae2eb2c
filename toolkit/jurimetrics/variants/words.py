"""What a comparison says in words: never more than its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jurimetrics.variants.sheets import COMPUTED

_MOST_DIGITS = 6
"""Numbers that need so many digits after the point are written with an exponent."""


def interval(value: float, low: float, high: float) -> str:
    """A number with its interval in as many digits as tell something; an end that is not 0 never reads as 0.

    >>> interval(0.0612, 0.0213, 0.1011), interval(0.0021, 0.0004, 0.0038), interval(12.3, 10.1, 14.5)
    ('0.06 [0.02, 0.10]', '0.0021 [0.0004, 0.0038]', '12.30 [10.10, 14.50]')
    """
    width = high - low
    digits = 2 if width <= 0 else max(2, -math.floor(math.log10(width)))
    while digits < _MOST_DIGITS and any(end != 0 and float(f"{end:.{digits}f}") == 0 for end in (low, high)):
        digits += 1
    if digits >= _MOST_DIGITS:
        return f"{value:.2g} [{low:.2g}, {high:.2g}]"
    # Adding 0 turns a rounded -0.00 into 0.00.
    shown = [f"{round(number, digits) + 0.0:.{digits}f}" for number in (value, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def verdict(line: Mapping[str, Any], panel: str | None) -> str:
    """One sentence about one line of a comparison.

    `line` has the columns of the frame; what decides is the interval of its family, that of the comparison alone where
    it is exploratory, or the corrected one where people's labels are there. `panel` is the panel's name, if there is one.
    `refused` and `flagged`, where they are there, say that not one judge judged both (`pair_serving`); people's labels
    tell all the same.

    >>> line = {"judge": "panel", "metric": "faithfulness", "a": "A", "b": "B", "family": "primary", "difference": 0.06,
    ...         "simultaneous_low": 0.02, "simultaneous_high": 0.1, "higher_is_better": True, "method": ""}
    >>> verdict(line, "panel")
    'the panel scores B higher by 0.06 [0.02, 0.10] than A'
    >>> verdict(line | {"simultaneous_low": -0.01, "higher_is_better": False}, "panel")
    'undecided: B - A as the panel scores them is 0.06 [-0.01, 0.10]; lower is better here'
    """
    exploratory = line["family"] != "primary"
    judged = _decided(
        line, "difference", "low" if exploratory else "simultaneous_low", "high" if exploratory else "simultaneous_high"
    )
    if not math.isnan(line.get("corrected", math.nan)):
        judged = _decided(line, "corrected", "corrected_low", "corrected_high")
    value, low, high, corrected = judged
    direction = "" if line["higher_is_better"] else "; lower is better here"
    ahead = "exploratory: " if exploratory else ""
    if line.get("refused") and not corrected:
        return f"{ahead}no verdict: {line['refused']}"
    if math.isnan(low) or math.isnan(high):
        return f"{ahead}no verdict: {_why(line, corrected)}"
    who = _who(line, panel, corrected)
    a, b = line["a"] or "(no name)", line["b"] or "(no name)"
    if low <= 0 <= high:
        size = interval(value, low, high)
        return f"{ahead}undecided: {b} - {a} {_as_scored(who)} is {size}{direction}{_beside(line, False)}"
    word = "higher" if low > 0 else "lower"
    size = interval(value, low, high) if low > 0 else interval(-value, -high, -low)
    return f"{ahead}{_scores(who, b, word)} by {size} than {a}{direction}{_beside(line, True)}"


def _decided(line: Mapping[str, Any], value: str, low: str, high: str) -> tuple[float, float, float, bool]:
    return line[value], line[low], line[high], value == "corrected"


def _who(line: Mapping[str, Any], panel: str | None, corrected: bool) -> str:
    if corrected:
        return "people, as estimated from labels and judge,"
    if line["judge"] == COMPUTED:
        return str(line["metric"])
    return "the panel" if line["judge"] == panel else str(line["judge"])


def _scores(who: str, b: str, word: str) -> str:
    if who.startswith("people"):
        return f"{who} score {b} {word}"
    return f"{who} scores {b} {word}"


def _as_scored(who: str) -> str:
    return f"as {who} score them" if who.startswith("people") else f"as {who} scores them"


def _why(line: Mapping[str, Any], corrected: bool) -> str:
    if corrected:
        return str(line["corrected_method"]).rpartition("; ")[2]
    if line["n"] == 0:
        return "no record has a score of both"
    return str(line["method"]).rpartition("; ")[2]


def _beside(line: Mapping[str, Any], decided: bool) -> str:
    """What weakens the sentence: another judge for each, scores missing on one side that could turn it, judges of a
    variant's own family."""
    said = [f"NOT judged alike: {line['flagged']}"] if line.get("flagged") else []
    worst = line.get("worst_low", math.nan), line.get("worst_high", math.nan)
    one_sided = line.get("only_a", 0) + line.get("only_b", 0)
    if decided and one_sided and worst[0] <= 0 <= worst[1]:
        said.append("scores missing on one side could turn this")
    if line.get("own_family"):
        said.append(str(line["own_family"]))
    return f" ({'; '.join(said)})" if said else ""
