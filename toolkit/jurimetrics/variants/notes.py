"""What must be read beside a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from jurimetrics.display import count
from jurimetrics.variants.sheets import COMPUTED, Sheet


def notes(
    frame: pd.DataFrame,
    settings: Mapping[str, Any],
    primary: Sequence[str] | None,
    compared: Sequence[Sheet],
    labelled: bool,
) -> list[str]:
    """One sentence each, the most important first."""
    found = [*_about_judges(frame, settings, labelled), *_family(frame, primary), *_missing(frame)]
    if named := [sheet.metric for sheet in compared if sheet.declared.get("range_from_data")]:
        found.append(
            f"Range taken from the data, higher taken as better: {', '.join(named)}; worst cases reach no further."
        )
    if len(left := [sheet.metric for sheet in compared if sheet.metric not in set(frame["metric"])]):
        found.append(f"Not compared, since two variants lack what it needs: {', '.join(left)}.")
    if settings.get("interrupted"):
        found.append("The evaluation was interrupted; what was done until then is compared.")
    return found


def _about_judges(frame: pd.DataFrame, settings: Mapping[str, Any], labelled: bool) -> Iterable[str]:
    judged = frame[frame["judge"] != COMPUTED]
    if len(judged) and not labelled:
        yield (
            "A difference is one of scores: it says what the judge scores higher, not what is better. An error that the "
            "judge makes alike for both variants cancels, one that it makes for one of them does not; labels tell."
        )
    if labelled and (judged["labelled"] == 0).all():
        yield "No record is labelled under both variants, so nothing is corrected."
    elif labelled:
        yield "Corrected intervals are conditional on these raters, their level is shared among the lines of the family."
    if said := sorted({part for text in frame["own_family"] for part in text.split("; ") if part}):
        yield f"A judge may prefer its own: {'; '.join(said)}."
    asked = settings.get("judges", {})
    names = {name for who in set(judged["judge"]) for name in _members(who, settings)}
    if silent := sorted(
        name for name in names if asked.get(name, {}).get("kind") == "chat" and not asked[name].get("family")
    ):
        yield f"No family is stated for {', '.join(silent)}, so only the very same model is recognised in an answer."


def _members(judge: str, settings: Mapping[str, Any]) -> list[str]:
    panel = settings.get("panel") or {}
    return list(panel.get("members") or ()) if judge == panel.get("name") else [judge]


def _family(frame: pd.DataFrame, primary: Sequence[str] | None) -> Iterable[str]:
    together = int((frame["family"] == "primary").sum())
    tested = int(frame["p_adjusted"].notna().sum())
    if together > 1:
        declared = "" if primary is not None else ", none was declared primary, so all metrics are"
        left = "" if tested == together else f"; {count(together - tested, 'line')} without an interval left out"
        yield (
            f"{count(tested, 'comparison')} decided as one family (single-step min-p over sign flips by group{declared}"
            f"{left}): simultaneous_low, simultaneous_high, p_adjusted and verdict hold for all at once."
        )
    if other := sorted(set(frame.loc[frame["family"] != "primary", "metric"])):
        yield f"Exploratory, each judged alone and not adjusted: {', '.join(other)}."


def _missing(frame: pd.DataFrame) -> Iterable[str]:
    one_sided = frame[frame["only_a"] + frame["only_b"] > 0]
    if len(one_sided):
        most = one_sided.iloc[int((one_sided["only_a"] + one_sided["only_b"]).to_numpy().argmax())]
        yield (
            f"Only records with both scores are compared; up to {most['only_a'] + most['only_b']:,} have one alone "
            f"({most['metric']}, {most['a']} and {most['b']}); worst_low and worst_high say what they could change."
        )
    apart = frame[(frame["answered_a"] - frame["answered_b"]).abs() > 0]
    if len(apart):
        most = apart.iloc[int((apart["answered_a"] - apart["answered_b"]).abs().to_numpy().argmax())]
        yield (
            f"The variants differ in how often they answer ({most['metric']}: {most['a']} {most['answered_a']:.1%}, "
            f"{most['b']} {most['answered_b']:.1%}); leaving non-answers out favours the one that answers less."
        )
