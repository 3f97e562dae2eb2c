"""Which answers come from a judge's own model or family."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from jurimetrics.results import Results


def own_answers(results: Results, rows: pd.DataFrame) -> pd.Series[Any]:
    """For each row (id, variant, judge) whether its answer is of the judge's own model or family: True, False, or NA
    where the model of the answer, or model and family of the judge, are unknown.

    A panel has none: its members do. The model is the same where names are but for a path before them; the family where
    the one stated for the judge is a word of the model's name, a number behind it set aside.
    """
    records = results.records
    keys = zip(records["id"], records["variant"], strict=True)
    models = {key: model for key, model in zip(keys, records["answer_model"], strict=True) if isinstance(model, str)}
    judges = results.settings.get("judges", {})
    found = [
        _own(judges.get(judge, {}), models.get((one, variant)))
        for one, variant, judge in zip(rows["id"], rows["variant"], rows["judge"], strict=True)
    ]
    return pd.Series(found, index=rows.index, dtype="boolean")


def _own(judge: dict[str, Any], model: str | None) -> bool | None:
    mine, family = _bare(str(judge.get("model") or "")), str(judge.get("family") or "").strip().casefold()
    if model is None or not (mine or family):
        return None
    words = re.split(r"[-/_:.\s]", model.casefold())
    return mine == _bare(model) or (
        bool(family) and (family in words or family in [w.rstrip("0123456789") for w in words])
    )


def _bare(model: str) -> str:
    return model.rpartition("/")[2].strip().casefold()
