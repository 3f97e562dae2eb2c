"""Judges that come from where an answer came from: they may prefer it for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from jurimetrics.results.origins import shared_origin


def own_families(settings: Mapping[str, Any], records: pd.DataFrame) -> dict[tuple[str, str], str]:
    """For each judge and variant that share a model or a family, in words what they share.

    `records` has the columns variant and answer_model. A judge (for a panel: each of its members) shares the model
    or the family as `shared_origin` says. Where neither is stated nothing is known.

    >>> judges = {"ann": {"model": "gpt-4.1-mini", "family": "gpt"}, "bob": {"model": "llama-3", "family": None}}
    >>> settings = {"judges": judges, "panel": {"name": "panel", "members": ["ann", "bob"]}}
    >>> records = pd.DataFrame({"variant": ["A", "B"], "answer_model": ["openai/gpt-4o", "claude-5"]})
    >>> own_families(settings, records)
    {('ann', 'A'): 'ann is of the family gpt, as A is', ('panel', 'A'): 'ann is of the family gpt, as A is'}
    """
    found: dict[tuple[str, str], str] = {}
    models = records.dropna(subset=["answer_model"])[["variant", "answer_model"]].drop_duplicates()
    for variant, model in models.itertuples(index=False):
        for name, judge in settings.get("judges", {}).items():
            if shared := _shared(judge, str(model)):
                found[name, variant] = f"{name} is {shared}, as {variant or 'it'} is"
    panel = settings.get("panel") or {}
    for variant in dict.fromkeys(models["variant"]):
        said = [found[name, variant] for name in panel.get("members") or () if (name, variant) in found]
        if said:
            found[panel["name"], variant] = "; ".join(said)
    return found


def _shared(judge: Mapping[str, Any], model: str) -> str:
    origin = shared_origin(judge, model)
    if origin == "model":
        return f"the model {judge['model']}"
    return f"of the family {judge['family']}" if origin == "family" else ""
