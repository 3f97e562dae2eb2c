"""Which models and fingerprints answered for a judge, and whether they were the same in two results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jurimetrics.display import one_line
from jurimetrics.results.reading import RECORDED

if TYPE_CHECKING:
    from jurimetrics.results.view import Results

Names = tuple[str, str]
SERVED = {"model_returned": "model", "fingerprint": "fingerprint"}
"""The columns of the call frame that say who answered, and what they are called."""
_NOT_ASKED = (RECORDED, "baseline", "calibrated")
_MOST_NAMES = 5


def served_otherwise(one: Results, other: Results, names: Names) -> tuple[list[str], list[str]]:
    """Judges of both that were not served by the same models and fingerprints, and of which that cannot be told.

    >>> import pandas as pd
    >>> from jurimetrics import Results
    >>> scores = Results.from_frame(pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]}))
    >>> served_otherwise(scores, scores, ("A", "B"))
    ([], [])
    """
    reasons, untold = [], []
    for judge in _asked_in_both(one, other):
        old, new = served_by(one, judge), served_by(other, judge)
        for column, word in SERVED.items():
            was, its = old[column], new[column]
            if was and its and was != its:
                reasons.append(
                    f"judge {judge} was served by the {word} {listed(was)} in {names[0]} and by {listed(its)} in {names[1]}"
                )
        if not (old["model_returned"] and new["model_returned"]):
            untold.append(f"It cannot be told whether {judge} was the same model in {names[0]} and {names[1]}.")
    return reasons, untold


def served_anew(before: Results, after: Results) -> tuple[list[str], list[str]]:
    """In words which judges of both were served by something new, and of which nobody can tell.

    >>> import pandas as pd
    >>> from jurimetrics import Results
    >>> scores = Results.from_frame(pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]}))
    >>> served_anew(scores, scores)
    ([], [])
    """
    alarms, unknown = [], []
    for judge in _asked_in_both(before, after):
        calls = after.calls
        new = calls[calls["judge"] == judge]
        if new.empty:
            continue
        if new["from_store"].all():
            unknown.append(f"{judge}: all answers came from the store, so it was not judged again")
        old_by, new_by = served_by(before, judge), served_by(after, judge)
        for column, word in SERVED.items():
            if fresh := [name for name in new_by[column] if name not in old_by[column]]:
                alarms.append(f"{judge} was served by the {word} {listed(old_by[column])} and now by {listed(fresh)}")
        if not new_by["model_returned"] or not old_by["model_returned"]:
            unknown.append(f"{judge}: the endpoint does not say which model answered")
    return alarms, unknown


def _asked_in_both(one: Results, other: Results) -> list[str]:
    """The judges of both that are asked, not computed, and not somebody else's recorded scores."""
    return [
        name
        for name, old, new in common(one.settings.get("judges", {}), other.settings.get("judges", {}))
        if not {old.get("kind"), new.get("kind")}.intersection(_NOT_ASKED)
    ]


def served_by(results: Results, judge: str) -> dict[str, list[str]]:
    """The models and fingerprints that a judge's calls named, by column of the call frame.

    >>> import pandas as pd
    >>> from jurimetrics import Results
    >>> scores = Results.from_frame(pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]}))
    >>> served_by(scores, "ann")
    {'model_returned': [], 'fingerprint': []}
    """
    calls = results.calls
    mine = calls[calls["judge"] == judge]
    return {column: sorted(mine[column].dropna().unique()) for column in SERVED}


def listed(names: Sequence[str]) -> str:
    """The first names on one line, each cut.

    >>> listed(["m-1", "m-2"]), listed([])
    ('m-1, m-2', '(not said)')
    """
    shown = [one_line(name, 60) for name in names[:_MOST_NAMES]]
    return ", ".join([*shown, *(["..."] if len(names) > _MOST_NAMES else [])]) or "(not said)"


def common(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    """The keys of both with the values of each.

    >>> list(common({"a": 1, "b": 2}, {"b": 3}))
    [('b', 2, 3)]
    """
    return ((name, old, other[name]) for name, old in one.items() if name in other)
