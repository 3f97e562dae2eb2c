"""Whether a judge comes from where an answer came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def shared_origin(judge: Mapping[str, Any], model: str | None) -> str | None:
    """What a judge (its settings) shares with the model of an answer: "model", "family", "" for neither, None where one
    of them is unknown.

    The model is the same where the names are but for a path before them; the family where the one stated for the judge
    is a word of the model's name, numbers set aside.

    >>> judge = {"model": "gpt-4.1-mini", "family": "gpt"}
    >>> [shared_origin(judge, model) for model in ("openai/gpt-4.1-mini", "gpt-4o", "claude-5", None)]
    ['model', 'family', '', None]
    """
    mine, family = _bare(str(judge.get("model") or "")), _words(str(judge.get("family") or "")).strip("-")
    if model is None or not (mine or family):
        return None
    if mine == _bare(model):
        return "model"
    return "family" if family and f"-{family}-" in f"-{_words(model)}-" else ""


def _bare(model: str) -> str:
    return model.rpartition("/")[2].strip().casefold()


def _words(name: str) -> str:
    return re.sub(r"[^a-z]+", "-", name.casefold())
