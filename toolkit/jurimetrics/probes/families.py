"""Which answers come from a judge's own model or family."""

from __future__ import annotations

from typing import Any

import pandas as pd

from jurimetrics.results import Results
from jurimetrics.results.origins import shared_origin


def own_answers(results: Results, rows: pd.DataFrame) -> pd.Series[Any]:
    """For each row (id, variant, judge) whether its answer is of the judge's own model or family: True, False, or NA
    where the model of the answer, or model and family of the judge, are unknown.

    A panel has none: its members do.
    """
    records = results.records
    keys = zip(records["id"], records["variant"], strict=True)
    models = {key: model for key, model in zip(keys, records["answer_model"], strict=True) if isinstance(model, str)}
    judges = results.settings.get("judges", {})
    found = [
        shared_origin(judges.get(judge, {}), models.get((one, variant)))
        for one, variant, judge in zip(rows["id"], rows["variant"], rows["judge"], strict=True)
    ]
    return pd.Series([None if one is None else bool(one) for one in found], index=rows.index, dtype="boolean")
