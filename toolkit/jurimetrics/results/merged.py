"""The settings of several evaluations as those of one: what all agree on, and of what each has its own, all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_OF_ALL = ("judges", "prompts")
_OWN = ("created", "started", "seconds", "store", "data_digest", "records", "rows", "joined", "notes")
"""What is of one evaluation alone; `joined` keeps what is worth keeping of it."""


def merged(settings: Sequence[Mapping[str, Any]], renamed: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The settings of the joined results, without those that are of one evaluation alone.

    `renamed`, for each: the variants that are taken -> their names here. Of what differs the first counts for metrics and
    judges by name (`differences` has refused what matters, thresholds do not), and nothing else is kept.

    >>> one, other = ({"metrics": {"m": {"threshold": t}}, "judges": {}, "repeats": 2, "x": t} for t in (0.5, 0.7))
    >>> found = merged([one, other], [{"": "old"}, {"": "new"}])
    >>> found["metrics"], found["repeats"], "x" in found, found["variants"]
    ({'m': {'threshold': 0.5}}, 2, False, ['old', 'new'])
    """
    first, *others = settings
    agreed = {
        name: value
        for name, value in first.items()
        if name not in _OWN and all(other.get(name) == value for other in others)
    }
    for name in _OF_ALL:
        agreed[name] = {key: value for one in reversed(settings) for key, value in (one.get(name) or {}).items()}
    agreed["panel"] = agreed.get("panel")
    agreed["metrics"] = _metrics(settings)
    agreed["variants"] = list(dict.fromkeys(name for names in renamed for name in names.values()))
    agreed["interrupted"] = any(one.get("interrupted") for one in settings)
    agreed["seconds"] = sum(one.get("seconds") or 0 for one in settings)
    starts = [str(one["started"]) for one in settings if one.get("started")]
    agreed["started"] = min(starts, default=None)
    agreed["store"] = None
    agreed["repeats"] = max(one.get("repeats") or 1 for one in settings)
    if calibrations := [each for one in settings for each in one.get("calibrations") or ()]:
        agreed["calibrations"] = [each for at, each in enumerate(calibrations) if each not in calibrations[:at]]
    if any(one.get("written_by") for one in settings):
        agreed["written_by"] = {
            new: one["written_by"][old]
            for one, names in zip(settings, renamed, strict=True)
            for old, new in names.items()
            if old in (one.get("written_by") or {})
        }
    return agreed


def _metrics(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    for one in settings:
        for name, declared in one["metrics"].items():
            found[name] = _scale(found[name], declared) if name in found else dict(declared)
    return found


def _scale(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The declared range of either; of two that were taken from the data the one that holds both."""
    guessed = [bool(each.get("range_from_data")) for each in (one, other)]
    if guessed == [True, True]:
        (low, high), (its_low, its_high) = one["range"], other["range"]
        return {**one, "range": [min(low, its_low), max(high, its_high)]}
    if guessed == [True, False]:
        kept = {name: value for name, value in one.items() if name != "range_from_data"}
        return {**kept, "range": list(other["range"])}
    return dict(one)
