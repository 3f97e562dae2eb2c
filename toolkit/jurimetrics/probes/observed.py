"""Probes that ask nobody: what existing results already show of a judge's leanings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.probes.duels import PREFERENCE, length_lines, own_lines
from jurimetrics.probes.families import own_answers
from jurimetrics.probes.report import ProbeLine, ProbeReport, report
from jurimetrics.probes.scored import excess_of, languages_of, lengths_of, scored
from jurimetrics.results import Results
from jurimetrics.stats.finding import Finding, mean_differences, ratio, renumbered, with_p
from jurimetrics.stats.multiple import Procedure
from jurimetrics.stats.resampling import Statistic, group_codes, minus

Numbers = npt.NDArray[np.float64]
_CONFOUNDED = "Without labels quality is confounded: {}."


def length(
    results: Results, labels: pd.DataFrame | None = None, *, method: Procedure = "holm", level: float = 0.95
) -> ProbeReport:
    """How scores go with the length of the answer: points of the metric for each doubling of its characters.

    Where records have answers of several variants the slope is taken within records, so what makes one question harder
    than another does not count; else across records. With `labels` (from `load_labels`) it is the slope of judge minus
    people, over labelled records: what length adds beyond quality. Without them a longer answer may simply be better, and
    `notes` say so. Blank answers are left out. Of `preference` metrics it is the share of pairs in which the longer answer
    is preferred, and with labels of the same pairs that of people and the difference, which alone is tested. p by t over
    groups left out in turn, adjusted by `method` for all lines.

    Raises `InputError` where the results hold no answers (recorded scores have none) or labels meet no row.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> records = [{"id": at, "answer": "The lock was built long ago. " * (1 + at % 3)} for at in range(12)]
    >>> found = length(evaluate(records, ["fluency"], BaselineJudge(), store=None))
    >>> found.lines[0].effect, found.lines[0].estimate.value
    ('per doubling of length, across records', 0.0)
    """
    rows = scored(results, labels)
    rows["length"] = lengths_of(results, rows)
    rows = rows[rows["length"] > 0]
    if rows.empty:
        raise InputError("length: the results hold no answers")
    rows = rows.assign(x=np.log2(rows["length"]))
    lines = [_slope(here, *key, results, level) for key, here in _by_judge(_alone(rows))]
    lines += length_lines(results, labels, level)
    return report("length", lines, _unlabelled(labels, "a longer answer may be better"), method)


def language(
    results: Results, labels: pd.DataFrame | None = None, *, method: Procedure = "holm", level: float = 0.95
) -> ProbeReport:
    """How scores go with the language of the answer: the mean in each language less that in all others.

    The language is that of the metadata (`language`), else found from the answer; answers whose language is unknown are
    left out. With `labels` the means are of judge minus people; without, answers may be better in one language than in
    another. Everything else as for `length`. Raises `InputError` where fewer than two languages are left.

    >>> from jurimetrics import BaselineJudge, evaluate
    >>> answers = ["The lock was built long ago.", "Die Schleuse wurde vor langer Zeit gebaut."]
    >>> records = [{"id": at, "answer": answers[at % 2]} for at in range(16)]
    >>> [line.effect for line in language(evaluate(records, ["readability"], BaselineJudge(), store=None)).lines]
    ['de - other languages', 'en - other languages']
    """
    rows = scored(results, labels)
    rows["language"] = languages_of(results, rows)
    unknown = int((rows["language"] == "und").sum())
    rows = rows[rows["language"] != "und"]
    names = sorted(rows["language"].unique())
    if len(names) < 2:
        raise InputError(f"language: answers in two languages are needed, found {', '.join(names) or 'none known'}")
    lines = [
        _contrast(here, here["language"] == name, f"{name} - other languages", key, results, level)
        for key, here in _by_judge(rows)
        for name in names
    ]
    notes = _unlabelled(labels, "answers may be better in one language than in another")
    if unknown:
        notes.append(f"{unknown} rows are left out: the language of the answer is unknown.")
    return report("language", lines, notes, method)


def self_preference(
    results: Results, labels: pd.DataFrame | None = None, *, method: Procedure = "holm", level: float = 0.95
) -> ProbeReport:
    """Whether judges favour answers of their own family: mean over those less mean over the others.

    A judge's own are the answers whose `answer_model` is its own model or of the `family` stated for it. With `labels`
    what is averaged is judge minus people; for `preference` metrics the effect is the equal opportunity difference,
    P(judge prefers its own | people do) - P(judge prefers the other | people do). Without labels it is the judge minus
    the mean of the judges of other families on the same rows (with no such judge, the bare score), and `notes` say that
    quality is confounded. Judges without answers of their own or of others have no line.

    Raises `InputError` where no judge has both. Source: as of `stats.probes.self_preference`.

    >>> frame = pd.DataFrame({"id": ["1"], "metric": "grade", "judge": "ann", "score": [0.5]})
    >>> self_preference(Results.from_frame(frame))
    Traceback (most recent call last):
    jurimetrics.errors.InputError: self_preference: no judge has answers of its own family and of others; ...
    """
    rows = scored(results, labels)
    rows["own"] = own_answers(results, rows)
    if labels is None:
        rows["excess"] = excess_of(rows[rows["own"].notna()], others=~rows["own"].eq(True)).reindex(rows.index)
    lines = [
        _own_line(here, key, results, labels is not None, level)
        for key, here in _by_judge(
            _alone(rows[rows["own"].notna()]) if labels is not None else rows[rows["own"].notna()]
        )
        if here["own"].nunique() == 2
    ]
    lines += own_lines(results, labels, level) if labels is not None else []
    if not lines:
        raise InputError(
            "self_preference: no judge has answers of its own family and of others; "
            "say ChatJudge(..., family=...) and give the records answer_model"
        )
    return report("self_preference", lines, _unlabelled(labels, "own answers may be better"), method)


def leniency(
    results: Results, labels: pd.DataFrame | None = None, *, method: Procedure = "holm", level: float = 0.95
) -> ProbeReport:
    """How much higher a judge scores than people do on the same records, or, without labels, than the other judges.

    In the unit of the metric; where lower is better, below 0 is lenient. Without labels the panel has no line and nobody
    knows who is right: `notes` say so. p by sign flips of groups, adjusted by `method`.

    Raises `InputError` without labels and with one judge only.

    >>> frame = pd.DataFrame({"id": [*range(9)] * 2, "metric": "grade", "judge": ["ann"] * 9 + ["bob"] * 9})
    >>> found = leniency(Results.from_frame(frame.assign(score=[4, 5, 3, 4, 5, 4, 4, 5, 3] + [3, 4, 3, 4, 4, 3, 3, 5, 2])))
    >>> [(line.judge, round(line.estimate.value, 2), line.p) for line in found.lines]
    [('ann', 0.67, 0.03125), ('bob', -0.67, 0.03125)]
    """
    rows = scored(results, labels)
    effect = "judge - people"
    if labels is None:
        rows, effect = rows[~rows["panel"]], "judge - other judges"
        rows = rows.assign(excess=excess_of(rows))
        if rows["excess"].isna().all():
            raise InputError("leniency: one judge only; labels are needed, or a second judge on the same rows")
    value = "score" if labels is not None else "excess"
    lines = []
    for key, here in _by_judge(rows.dropna(subset=[value])):
        found = mean_differences(here[value].to_numpy(dtype=np.float64), here["group"].to_numpy(), level)[0]
        lines.append(_line(effect, key, found, here, results))
    notes = [] if labels is not None else ["Without labels nobody knows who is right: judges are held against judges."]
    return report("leniency", lines, notes, method)


# --- lines ---


def _alone(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of metrics that score each answer alone."""
    return rows[~rows["metric"].str.startswith(PREFERENCE)]


def _by_judge(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for (metric, judge), here in rows.groupby(["metric", "judge"], sort=False, observed=True):
        yield (str(metric), str(judge)), here


def _line(effect: str, key: tuple[str, str], found: Finding, rows: pd.DataFrame, results: Results) -> ProbeLine:
    higher = bool(results.settings["metrics"].get(key[0], {}).get("higher_is_better", True))
    return ProbeLine(effect, *key, found.estimate, found.p, int(rows["group"].nunique()), 0, higher)


def _slope(rows: pd.DataFrame, metric: str, judge: str, results: Results, level: float) -> ProbeLine:
    """Least squares of score on log2 of the length, within records where any has answers of different lengths."""
    spread = rows.groupby("id")["x"].transform(lambda lengths: float(np.ptp(lengths)))
    within = bool((spread > 0).any())
    used = rows[spread > 0] if within else rows
    x, y = used["x"].to_numpy(dtype=np.float64), used["score"].to_numpy(dtype=np.float64)
    codes, count = group_codes(used["group"].to_numpy(), len(used))
    if within:
        x = x - used.groupby("id")["x"].transform("mean").to_numpy()
        y = y - used.groupby("id")["score"].transform("mean").to_numpy()
        statistic = ratio(x * y, x * x, codes, count)
    else:
        statistic = _plain_slope(x - x.mean(), y - y.mean(), codes, count)
    where = "within" if within else "across"
    said = f"slope {where} records"
    found = with_p(statistic, count, len(used), said, why="all answers are equally long", level=level, bounds=None)
    return _line(f"per doubling of length, {where} records", (metric, judge), found, used, results)


def _plain_slope(x: Numbers, y: Numbers, codes: npt.NDArray[np.intp], count: int) -> Statistic:
    n, sx, sy, sxx, sxy = (
        np.bincount(codes, weights=part, minlength=count) for part in (np.ones(len(x)), x, y, x * x, x * y)
    )

    def of(times: Numbers) -> Numbers:
        total, mx, my = times @ n, times @ sx, times @ sy
        below = total * (times @ sxx) - mx**2
        there = below > 1e-9 * np.maximum(1.0, total)
        return np.asarray(np.where(there, (total * (times @ sxy) - mx * my) / np.where(there, below, 1.0), np.nan))

    return Statistic(of, max(1, count))


def _contrast(
    rows: pd.DataFrame, mine: pd.Series[bool], effect: str, key: tuple[str, str], results: Results, level: float,
    value: str = "score",
) -> ProbeLine:  # fmt: skip
    """The mean of the rows that are `mine` less that of the others."""
    there = rows[value].notna().to_numpy()
    y, side = rows[value].to_numpy(dtype=np.float64)[there], mine.to_numpy(dtype=bool)[there]
    codes, count = renumbered(group_codes(rows["group"].to_numpy(), len(rows))[0][there])
    parts = [ratio(np.where(here, y, 0.0), here.astype(np.float64), codes, count) for here in (side, ~side)]
    found = with_p(
        minus(*parts), count, len(y), "difference of means", why="one side has no scores", level=level, bounds=None
    )  # fmt: skip
    return _line(effect, key, found, rows[there], results)


def _own_line(rows: pd.DataFrame, key: tuple[str, str], results: Results, labelled: bool, level: float) -> ProbeLine:
    own = rows["own"].eq(True)
    if labelled:
        return _contrast(rows, own, "own family - others, beyond people", key, results, level)
    if rows["excess"].notna().any():
        return _contrast(rows, own, "own family - others, beyond other judges", key, results, level, "excess")
    return _contrast(rows, own, "own family - others", key, results, level)


def _unlabelled(labels: Any, why: str) -> list[str]:
    return [] if labels is not None else [_CONFOUNDED.format(why)]
