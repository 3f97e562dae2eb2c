"""The label that most raters gave, what is done about ties, and judges held against it."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.calibrate.labels import KEY, RATER
from jurimetrics.calibrate.sheet import Part
from jurimetrics.errors import InputError
from jurimetrics.stats.kappa import confusion_table
from jurimetrics.stats.resampling import Statistic

Numbers = npt.NDArray[np.float64]
Ties = Literal["leave out", "lowest", "highest", "random"]


def settled(rows: pd.DataFrame, ties: Ties, seed: int) -> pd.Series[Any]:
    """The majority label of each row of a joined frame, ties treated as `ties` says (NaN: left out, or nobody rated).

    "random" takes one of the most frequent labels by a hash of `seed` and the record's own key, so that neither the order
    of the rows nor of the raters shows. Raises `InputError` for another rule.

    >>> rows = pd.DataFrame({"id": ["1"], "variant": [""], "metric": ["m"], "majority": [np.nan], "tied": [True],
    ...                      "rater:ann": [1.0], "rater:bob": [0.0]})
    >>> settled(rows, "highest", 0).tolist()
    [1.0]
    """
    if ties not in ("leave out", "lowest", "highest", "random"):
        raise InputError(f"ties are 'leave out', 'lowest', 'highest' or 'random', not {ties!r}")
    found = rows["majority"].to_numpy(dtype=np.float64).copy()
    if ties == "leave out":
        return pd.Series(found, index=rows.index)
    given = rows[[name for name in rows.columns if str(name).startswith(RATER)]].to_numpy(dtype=np.float64)
    for at in np.flatnonzero(rows["tied"].to_numpy(dtype=bool)):
        steps, counts = np.unique(given[at][~np.isnan(given[at])], return_counts=True)
        most = steps[counts == counts.max()]
        found[at] = {"lowest": most[0], "highest": most[-1]}.get(ties, most[_pick(rows.iloc[at], seed, len(most))])
    return pd.Series(found, index=rows.index)


def _pick(row: pd.Series[Any], seed: int, size: int) -> int:
    key = "\x1f".join([str(seed), *(str(row[name]) for name in KEY)])
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % size


def tied_records(rows: pd.DataFrame) -> pd.DataFrame:
    """The records whose raters gave no single most frequent label: `id`, `variant`, `metric`, `rater:<name>`."""
    columns = [*KEY, *(name for name in rows.columns if str(name).startswith(RATER))]
    found: pd.DataFrame = rows.loc[rows["tied"], columns].drop_duplicates(KEY).reset_index(drop=True)
    return found


def confusion(score: Numbers, majority: Numbers, scale: tuple[float, ...], weights: Numbers | None) -> pd.DataFrame:
    """Counts (weights summed) of the judge's steps (rows) where most people gave each step (columns)."""
    table = confusion_table(score, majority, scale, weights)
    names = [f"{step:g}" for step in scale]
    return pd.DataFrame(table, index=pd.Index(names, name="judge"), columns=pd.Index(names, name="people"))


def accuracy_parts(
    score: Numbers, majority: Numbers, codes: npt.NDArray[np.intp], count: int, weights: Numbers | None
) -> tuple[Part, Part, float]:
    """The share of rows where the judge gave the majority's label; that minus what always guessing the most frequent
    label gets; and that label (NaN where nothing can be compared)."""
    use = ~np.isnan(majority)
    if not use.any():
        why = "every record is tied"
        return Part(None, why), Part(None, why), np.nan
    mass = np.ones(int(use.sum())) if weights is None else weights[use]
    steps, place = np.unique(majority[use], return_inverse=True)
    constant = float(steps[np.bincount(place.reshape(-1), weights=mass).argmax()])
    hits = mass * (score[use] == majority[use]), mass * (majority[use] == constant), mass
    sums = np.column_stack([np.bincount(codes[use], weights=one, minlength=count) for one in hits])

    def share(times: Numbers, gain: bool) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((drawn[:, 0] - gain * drawn[:, 1]) / drawn[:, 2])

    plain, gained = Statistic(lambda times: share(times, False), 3), Statistic(lambda times: share(times, True), 3)
    return Part(plain), Part(gained), constant


def pass_parts(
    passed: Numbers, people: Numbers, codes: npt.NDArray[np.intp], count: int, weights: Numbers | None
) -> tuple[Part, Part, Numbers | None]:
    """Agreement and kappa of pass and fail, and their 2 x 2 table (judge fail, pass; people fail, pass).

    Shares of repeats and of raters that pass count as such: the table is the mean over all repeats and raters.
    """
    use = ~np.isnan(passed) & ~np.isnan(people)
    if not use.any():
        why = "the metric has no threshold: give one with results.with_thresholds"
        return Part(None, why), Part(None, why), None
    mass = np.ones(int(use.sum())) if weights is None else weights[use]
    mine, theirs = passed[use], people[use]
    cells = [mass * one * other for one in (1 - mine, mine) for other in (1 - theirs, theirs)]
    sums = np.column_stack([np.bincount(codes[use], weights=one, minlength=count) for one in cells])

    def agreed(times: Numbers) -> Numbers:
        drawn = times @ sums
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((drawn[:, 0] + drawn[:, 3]) / drawn.sum(axis=1))

    def kappa(times: Numbers) -> Numbers:
        tables = (times @ sums).reshape(-1, 2, 2)
        total = tables.sum(axis=(1, 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            chance = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1) / total**2
            found = (np.trace(tables, axis1=1, axis2=2) / total - chance) / (1 - chance)
        return np.where(1 - chance > 1e-12, found, np.nan)

    table = sums.sum(axis=0).reshape(2, 2)
    if np.isnan(kappa(np.ones((1, count)))[0]):
        verdict = "passes" if table[1, 1] > 0 else "fails"
        why = f"one class only: judge and people agree that everything {verdict}; raw agreement 1.00"
        return Part(Statistic(agreed, 4)), Part(None, why), table
    return Part(Statistic(agreed, 4)), Part(Statistic(kappa, 4)), table
