"""Scores of results as observational probes read them: one row for each record, metric and judge, with what people said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from jurimetrics.errors import InputError
from jurimetrics.results import Results
from jurimetrics.text import is_blank, language_of

KEY = ["id", "variant", "metric"]
COMPUTED = "computed"


def scored(results: Results, labels: pd.DataFrame | None) -> pd.DataFrame:
    """The rows that judges scored, repeats averaged: id, variant, group, metric, judge, panel, `score`.

    With `labels` (the frame of `load_labels`) only labelled rows, `score` is then judge minus the mean of the raters;
    `judged` keeps the judge's own and `label` the raters' mean. Raises `InputError` where nothing is left.
    """
    frame = results.scores
    frame = frame[(frame["status"] == "ok") & (frame["judge"] != COMPUTED)]
    rows = (
        frame.groupby([*KEY, "judge"], sort=False, observed=True)
        .agg(group=("group", "first"), score=("score", "mean"))
        .reset_index()
    )
    panel = (results.settings.get("panel") or {}).get("name")
    rows["panel"] = rows["judge"] == panel
    if rows.empty:
        raise InputError("no judge scored anything")
    if labels is None:
        return rows
    if lacking := [name for name in (*KEY, "label") if name not in labels.columns]:
        raise InputError(f"labels: no column {lacking[0]!r}; read them with load_labels")
    people = labels.groupby(KEY, sort=False)["label"].mean().reset_index()
    joined = rows.merge(people, on=KEY, how="inner", sort=False, validate="many_to_one")
    if joined.empty:
        raise InputError("labels: none meets a scored row by id, variant and metric")
    return joined.assign(judged=joined["score"], score=joined["score"] - joined["label"])


def excess_of(rows: pd.DataFrame, others: pd.Series[bool] | None = None) -> pd.Series[float]:
    """Each score less the mean of the other judges (never the panel) on the same row; NaN where there is none.

    `others`: which rows may stand for the others (default: all).

    >>> rows = pd.DataFrame({"id": "1", "variant": "", "metric": "m", "judge": ["a", "b", "c"], "panel": False,
    ...                      "score": [1.0, 2.0, 4.0]})
    >>> excess_of(rows).tolist()
    [-2.0, -0.5, 2.5]
    """
    counts = ~rows["panel"] if others is None else ~rows["panel"] & others.reindex(rows.index)
    keys = [rows[name] for name in KEY]
    worth = rows["score"].where(counts)
    total = worth.groupby(keys).transform("sum") - worth.fillna(0.0)
    number = counts.astype(float).groupby(keys).transform("sum") - counts.astype(float)
    return rows["score"] - total / number.where(number > 0)


def lengths_of(results: Results, rows: pd.DataFrame) -> pd.Series[float]:
    """Characters of each row's answer; NaN where there is none or it is blank."""
    answers = _answers(results, rows)
    found = [np.nan if text is None or is_blank(text) else float(len(text)) for text in answers]
    return pd.Series(found, index=rows.index, dtype="float64")


def languages_of(results: Results, rows: pd.DataFrame) -> pd.Series[str]:
    """The language stated in the metadata, else that of the answer; "und" where neither is known."""
    records = results.records.set_index(["id", "variant"])
    known: dict[tuple[str, str], str] = {}
    for key, answer, metadata in zip(records.index, records["answer"], records["metadata"], strict=True):
        stated = (json.loads(metadata) if isinstance(metadata, str) and metadata else {}).get("language")
        found = language_of(answer) if isinstance(answer, str) else "und"
        known[key] = stated.strip() if isinstance(stated, str) and stated.strip() else found
    keys = zip(rows["id"], rows["variant"], strict=True)
    return pd.Series([known.get(key, "und") for key in keys], index=rows.index, dtype="str")


def _answers(results: Results, rows: pd.DataFrame) -> list[str | None]:
    records = results.records
    keys = zip(records["id"], records["variant"], strict=True)
    known = {key: text if isinstance(text, str) else None for key, text in zip(keys, records["answer"], strict=True)}
    return [known.get(key) for key in zip(rows["id"], rows["variant"], strict=True)]
