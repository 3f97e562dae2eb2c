"""Judges held against people: agreement, what people would have said of all records, and what a calibration is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from jurimetrics.display import count
from jurimetrics.report.facts import Facts
from jurimetrics.report.figures import picture
from jurimetrics.report.markup import Column, Markup, Piece, beside, bullets, joined, paragraph, table, under
from jurimetrics.report.words import known, with_interval

_MOST_DRAWN = 40
_SHOWN = (
    ("raw_agreement", "same label"),
    ("kappa", "kappa"),
    ("kappa_quadratic", "weighted kappa"),
    ("spearman", "rank correlation"),
    ("human_spearman", "people among themselves"),
    ("pass_kappa", "kappa of pass and fail"),
    ("bias", "judge minus people"),
)
_IN_WORDS = (
    ("spearman", "rank correlation"),
    ("kappa_quadratic", "weighted kappa"),
    ("pass_kappa", "kappa of pass and fail"),
)
_DRAWN = ("kappa_quadratic", "pass_kappa", "spearman", "raw_agreement")
_NO_LABELS = (
    "No labels of people were given. How far these scores follow what people would say is not known from this report: a "
    "judge can be steady, agree with other judges, and be wrong. A hundred labelled answers would tell."
)
_FIGURES = {
    "squared_error": "mean squared error, calibrated",
    "raw_squared_error": "mean squared error, as it is",
    "absolute_error": "mean distance from people, calibrated",
    "raw_absolute_error": "mean distance from people, as it is",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
}


def labelled(facts: Facts) -> Markup:
    """What labels say of the judges, or that there are none."""
    parts = [_agreement(facts), _corrected(facts), *(_calibration(facts, at) for at in range(len(facts.calibrations)))]
    if not any(part.html for part in parts):
        parts = [paragraph(_NO_LABELS)]
    return under("Judges against people", *parts)


def _agreement(facts: Facts) -> Markup:
    found = facts.agreement
    if found is None:
        return Markup("")
    frame = found.frame
    shown = [(name, heading) for name, heading in _SHOWN if name in frame.columns and frame[name].notna().any()]
    rows: list[list[Piece]] = [
        [
            joined([str(line["metric"]), beside(str(line["notes"]))]),
            str(line["judge"]),
            f"{int(line['n']):,}",
            *(with_interval(line[name], line[f"{name}_low"], line[f"{name}_high"]) for name, _ in shown),
        ]
        for line in frame.to_dict("records")
    ]
    columns = [Column("metric", "name"), Column("judge", "word"), Column("n"), *(Column(said) for _, said in shown)]
    level = {"group": "within groups, averaged", "pooled": "over all rows", "system": "of the variants' means"}
    said = f"Correlations are taken {level[found.level]}. Intervals are {found.confidence * 100:g} % ones."
    return Markup(
        table("Agreement of judges with people", columns, rows).html
        + paragraph(said, kind="aside").html
        + _forest(facts, frame).html
        + bullets([_sentence(note) for note in found.notes], kind="aside").html
    )


def _sentence(note: str) -> str:
    return note if note.endswith((".", "!", "?")) else f"{note}."


def _forest(facts: Facts, frame: pd.DataFrame) -> Markup:
    from jurimetrics.plots import agreement

    drawn = next((name for name in _DRAWN if name in frame.columns and frame[name].notna().any()), None)
    if drawn is None or len(frame) > _MOST_DRAWN or facts.agreement is None:
        return Markup("")
    return picture(
        agreement(facts.agreement, drawn),
        "Agreement of each judge with people, with its interval, beside what people reach among themselves; the numbers are "
        "those of the table above.",
    )


def _corrected(facts: Facts) -> Markup:
    if facts.corrected is None:
        return paragraph(facts.why["corrected"]) if "corrected" in facts.why else Markup("")
    named = bool((facts.corrected["variant"] != "").any())
    rows: list[list[Piece]] = [
        [
            joined([str(line["metric"]), beside("" if known(line["value"]) else str(line["method"]))]),
            str(line["judge"]),
            *([str(line["variant"])] if named else []),
            "-" if not known(line["raw"]) else f"{line['raw']:.2f}",
            with_interval(line["value"], line["low"], line["high"]),
            f"{int(line['n']):,} of {int(line['records']):,}",
        ]
        for line in facts.corrected.to_dict("records")
    ]
    of = str(facts.corrected["of"].iloc[0])
    columns = [
        Column("metric", "name"), Column("judge", "word"), *([Column("variant", "word")] if named else []),
        Column("as scored"), Column("corrected by labels"), Column("labelled"),
    ]  # fmt: skip
    return table(f"What people would have said of all records: {of}, with 95 % intervals", columns, rows)


def _calibration(facts: Facts, at: int) -> Markup:
    one = facts.calibrations[at]
    rows: list[list[Piece]] = [
        [_FIGURES.get(name, name.replace("_", " ")), with_interval(found.value, found.low, found.high), f"{found.n:,}"]
        for name, found in one.held_out.items()
    ]
    parts = [
        f"{one.judge} under {one.metric}, fitted ({one.method}) to {one.n:,} labelled answers of {one.groups:,} groups."
    ]
    if one.threshold is not None:
        parts.append(
            f"The threshold for its scores that best parts what people pass from what they fail: {one.threshold.value:g}."
        )
    shown = table(
        "What the fit is worth on answers it was not fitted on",
        [Column("figure", "name"), Column("value [interval]"), Column("n")],
        rows,
    )
    return Markup(
        paragraph("Calibration: ", " ".join(parts)).html
        + shown.html
        + _curve(one.reliability).html
        + bullets(list(one.notes), kind="aside").html
    )


def _curve(reliability: Any) -> Markup:
    if reliability is None:
        return Markup("")
    from jurimetrics.plots import reliability as draw

    return picture(
        draw(reliability),
        "Predicted probability of a pass across, the share that passed upwards, in bins; on the diagonal both are equal.",
    )


def trusted(facts: Facts) -> list[str]:
    """How far the judge that is read first goes with people, a sentence for each metric; none without labels.

    A figure without an interval says too little for a sentence and stands in the table alone.
    """
    found = []
    for line in [] if facts.agreement is None else facts.agreement.frame.to_dict("records"):
        name = next((name for name, _ in _IN_WORDS if line["judge"] == facts.judge and _sure(line, name)), None)
        if name is None or facts.agreement is None:
            continue
        human = f"human_{name}"
        beside_people = f"; people among themselves reach {_reached(line, human)}" if _sure(line, human) else ""
        said = f"{facts.by} goes with people by a {dict(_IN_WORDS)[name]} of {_reached(line, name)}{beside_people}"
        within = _within(line) if name == "spearman" and facts.agreement.level == "group" else ""
        found.append(f"{line['metric']}: {said} ({count(int(line['n']), 'labelled answer')}{within}).")
    return found


def _sure(line: Mapping[Any, Any], name: str) -> bool:
    return all(known(line.get(one)) for one in (name, f"{name}_low", f"{name}_high"))


def _reached(line: Mapping[Any, Any], name: str) -> str:
    return with_interval(line[name], line[f"{name}_low"], line[f"{name}_high"])


def _within(line: Mapping[Any, Any]) -> str:
    """Over how many groups a correlation within groups is averaged, and how many had none."""
    used, skipped = int(line["used_groups"]), int(line["skipped_groups"])
    left = f"; {skipped:,} skipped, where a side is constant" if skipped else ""
    return f", within {count(used, 'group')}{left}"


def people_of(labels: pd.DataFrame | None, identity: str, variant: str) -> Sequence[dict[Any, Any]]:
    """What people said of one answer, a line for each label.

    >>> frame = pd.DataFrame({"id": ["1"], "variant": "", "metric": "m", "rater": "ada", "label": [2.0]})
    >>> [line["label"] for line in people_of(frame, "1", "")]
    [2.0]
    """
    if labels is None:
        return []
    found: list[dict[Any, Any]] = labels[(labels["id"] == identity) & (labels["variant"] == variant)].to_dict("records")
    return found
