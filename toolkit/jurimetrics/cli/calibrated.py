"""What `jurimetrics calibrate` tells: agreement, calibration and corrected means as text, each with interval and n."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jurimetrics.cli.console import aligned, one_line
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.calibrate.agreement import Agreement
    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.results import Results
    from jurimetrics.stats.estimate import Estimate

_LONGEST_NAME = 40
_LONGEST_NOTE = 500
_HALF_WIDTH = 0.05
"""Half the width of an interval, as a share of the metric's range, for which the labels needed are told."""
_CHOSEN = (
    "say how the labelled records were chosen, since the estimate depends on it: --selection random for a random subset, "
    "probabilities where each was drawn with a known one (a column of that name), by_label where they were chosen by what "
    "people said of them or come from elsewhere"
)


def agreement_text(results: Results, labels: pd.DataFrame, level: str) -> str:
    """How far each judge follows people, beside people among themselves and the baseline."""
    from jurimetrics.calibrate.agreement import agreement

    try:
        found = agreement(results, labels, level)  # type: ignore[arg-type] # a choice of the command
    except InputError as refusal:
        return f"Agreement\nnone: {one_line(str(refusal), _LONGEST_NOTE)}"
    headings = ["metric", "judge", "n", "rank correlation", "of people", "over baseline", "kappa", "of people", "bias"]
    lines = [_agreement_line(line.metric, line.judge, line.n, line.estimates) for line in found.lines]
    parts = ["Agreement with people", aligned(headings, lines), *_bullets(_explained(found, level))]
    return "\n".join(parts)


def _agreement_line(metric: str, judge: str, n: int, estimates: Mapping[str, Estimate]) -> list[str]:
    kappa = _kappa(estimates)
    return [
        one_line(metric, _LONGEST_NAME), one_line(judge, _LONGEST_NAME), f"{n:,}", number(estimates["spearman"]),
        number(estimates["human_spearman"]), number(estimates["spearman_over_baseline"]), number(estimates[kappa]),
        number(estimates[f"human_{kappa}"]) if f"human_{kappa}" in estimates else "-", number(estimates["bias"]),
    ]  # fmt: skip


def _kappa(estimates: Mapping[str, Estimate]) -> str:
    """The kappa that is told: of the ratings where both sides give steps of a scale, else of pass and fail."""
    return "kappa_quadratic" if estimates["kappa_quadratic"].value is not None else "pass_kappa"


def _explained(found: Agreement, level: str) -> list[str]:
    """What stands behind the figures, why some are missing, and what the lines themselves have to say."""
    over = {"pooled": "over all labelled rows", "group": "within groups, averaged", "system": "of the variants' means"}
    said = [
        f"Rank correlations (Spearman) are {over[level]}; kappa is quadratic on the metric's steps, else that of pass and "
        "fail; bias is judge minus people. In brackets 95% intervals. The ceiling is what people reach among themselves."
    ]
    lacking = [
        (line.metric, line.judge, line.estimates[name])
        for line in found.lines
        for name in ("spearman", "human_spearman", _kappa(line.estimates))
    ]
    said += _without_interval(lacking)
    said += [f"{line.metric} by {line.judge}: {note}." for line in found.lines for note in line.notes]
    return list(dict.fromkeys([*said, *(f"{note}." for note in found.notes)]))


def _without_interval(figures: Iterable[tuple[str, str, Estimate]]) -> list[str]:
    """Why figures of (metric, judge) have no value or no interval, each reason once with all whom it is of."""
    whose: dict[tuple[str, str], dict[str, None]] = {}
    for metric, judge, one in figures:
        if one.value is None or one.low is None:
            whose.setdefault((metric, one.method.rpartition("; ")[2]), {})[judge] = None
    return [f"{metric} by {', '.join(judges)}: {why}." for (metric, why), judges in whose.items()]


def calibration_text(
    results: Results, labels: pd.DataFrame, metric: str, judge: str, method: str
) -> tuple[Calibration | None, str]:
    """The calibration of one judge and what is to be said of it; None and why where there is none."""
    from jurimetrics.calibrate.calibration import calibrate

    head = f"Calibration of {one_line(judge, _LONGEST_NAME)} under {one_line(metric, _LONGEST_NAME)}"
    try:
        found = calibrate(results, labels, metric=metric, judge=judge, method=method)  # type: ignore[arg-type] # checked
    except InputError as refusal:
        return None, f"{head}\nnone: {one_line(str(refusal), _LONGEST_NOTE)}"
    chosen = found.selection or "in an unknown way"
    parts = [f"{head}: {found.n:,} labelled records in {found.groups:,} groups, chosen {chosen}"]
    parts += [*_threshold(found, results), *_map(found), *_bullets(list(found.notes))]
    return found, "\n".join(parts)


def _threshold(found: Calibration, results: Results) -> list[str]:
    chosen = found.threshold
    if chosen is None:
        return ["threshold  none: people's pass and fail are not known, or all alike"]
    sign = ">=" if results.settings["metrics"][found.metric].get("higher_is_better", True) else "<="
    return [
        f"threshold  passes at {sign} {chosen.value:g}: sensitivity {chosen.sensitivity:.2f}, specificity "
        f"{chosen.specificity:.2f} on these labels",
        f"           {chosen.objective.replace('_', ' ')} {chosen.gain:.2f} on these labels; on other records "
        f"{with_n(found.held_out[chosen.objective])}",
    ]


def _map(found: Calibration) -> list[str]:
    if found.map is None:
        return ["map        none was asked for"]
    kind, parameters = found.map.kind, found.map.parameters
    if kind == "isotonic":
        drawn = f"{len(parameters) // 2} knots, between which it never falls"
    else:
        line = f"{parameters[0]:.3g} x score {'+' if parameters[1] >= 0 else '-'} {abs(parameters[1]):.3g}"
        drawn = f"people's label = {line}" if kind == "linear" else f"probability = 1 / (1 + exp({line}))"
    lines = [f"map        {kind}: {drawn}"]
    for name in ("squared_error", "absolute_error", "log_loss", "calibration_error"):
        if name in found.held_out:
            raw = found.held_out.get(f"raw_{name}")
            beside = "" if raw is None else f"; of the scores as they are {number(raw)}"
            lines.append(f"           {name.replace('_', ' ')} on other records {with_n(found.held_out[name])}{beside}")
    return lines


def corrected_text(results: Results, labels: pd.DataFrame) -> str:
    """What people would have said of all records, and how many labels would tell it well."""
    from jurimetrics.calibrate.corrected import corrected_means

    head = "What people would have said of all records"
    if labels.attrs.get("selection") is None:
        return f"{head}\nnone: {_CHOSEN}"
    try:
        found = corrected_means(results, labels)
    except InputError as refusal:
        return f"{head}\nnone: {one_line(str(refusal), _LONGEST_NOTE)}"
    needed = _needed(results, labels)
    named = bool((found["variant"] != "").any())
    headings = ["metric", "judge", *(["variant"] if named else []), "judge's own", "corrected", "labels alone", "labelled",
                "labels for +-5%"]  # fmt: skip
    lines = [
        [
            one_line(line["metric"], _LONGEST_NAME), one_line(line["judge"], _LONGEST_NAME),
            *([one_line(line["variant"], _LONGEST_NAME)] if named else []),
            "-" if math.isnan(line["raw"]) else f"{line['raw']:.2f}", number(line["corrected"]), number(line["labels_only"]),
            f"{line['n']:,} of {line['records']:,}", needed.get((line["metric"], line["judge"], line["variant"]), "-"),
        ]
        for line in found.to_dict("records")
    ]  # fmt: skip
    of = found["of"].iloc[0]
    said = [
        f"The {of} of each judge's scores, and corrected by the labels, chosen {labels.attrs['selection']}; in brackets 95% "
        "intervals. Labels for +-5%: how many would tell it to a twentieth of the metric's range, with the judge's help."
    ]
    if labels.attrs["selection"] != "by_label" and any(line[-1] == "-" for line in lines):
        said.append("Where the last column has none, fewer than 10 labels are there: too few to say how many would do.")
    rows = zip(found["metric"], found["judge"], found["corrected"], strict=True)
    return "\n".join([head, aligned(headings, lines), *_bullets([*said, *_without_interval(rows)])])


def _needed(results: Results, labels: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """The labels that would tell each corrected mean well, where the labels at hand can be a pilot for that."""
    import pandas as pd

    from jurimetrics.calibrate.budget import label_budget

    found = {}
    for metric in dict.fromkeys(labels["metric"]):
        mine = labels[labels["metric"] == metric].reset_index(drop=True)
        mine.attrs = labels.attrs
        declared = results.settings["metrics"].get(metric)
        if declared is None:
            continue
        low, high = declared["range"]
        try:
            table = label_budget(results, mine, 2 * _HALF_WIDTH * (high - low))
        except InputError:  # too few for a pilot, or chosen by label: then no number is told
            continue
        for line in table.to_dict("records"):
            enough = "all do not do" if pd.isna(line["labels"]) else f"{line['labels']:,}"
            found[metric, line["judge"], line["variant"]] = enough
    return found


def number(found: Estimate) -> str:
    """A figure with its interval, "-" where it has no value.

    >>> from jurimetrics.stats.estimate import Estimate
    >>> number(Estimate(0.5, 0.41, 0.6, 0.95, 40, "t")), number(Estimate(None, None, None, 0.95, 0, "no rows"))
    ('0.50 [0.41, 0.60]', '-')
    """
    if found.value is None:
        return "-"
    return f"{found.value:.2f}" if found.low is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def with_n(found: Estimate) -> str:
    """A figure with its interval and n, or why there is none.

    >>> from jurimetrics.stats.estimate import Estimate
    >>> with_n(Estimate(0.5, 0.41, 0.6, 0.95, 40, "t")), with_n(Estimate(None, None, None, 0.95, 0, "no rows"))
    ('0.50 [0.41, 0.60], n = 40', 'no value (no rows)')
    """
    if found.value is None:
        return f"no value ({found.method})"
    return f"{number(found)}, n = {found.n:,}" + (f" ({found.method})" if found.low is None else "")


def _bullets(notes: list[str]) -> list[str]:
    return [f"* {one_line(note, _LONGEST_NOTE)}" for note in notes]
