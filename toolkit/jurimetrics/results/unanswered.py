"""Records without an answer: no metric that needs one scores them, so they must be told beside the means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from jurimetrics.display import count

_MOST_VARIANTS = 10


def unanswered_notes(rows: pd.DataFrame, lacking: pd.DataFrame, settings: Mapping[str, Any]) -> list[str]:
    """A sentence for each variant of which records have no answer; ten at most, then how many variants more.

    `rows` has the columns id, variant, metric and status of the score frame; `lacking` id, variant and answer_error of
    the records that have no answer. Only metrics that need an answer count: one that rates documents lacks nothing.

    >>> rows = pd.DataFrame({"id": ["1", "2"], "variant": "A", "metric": "m", "status": ["ok", "not_applicable"]})
    >>> lacking = pd.DataFrame({"id": ["2"], "variant": ["A"], "answer_error": ["truncated: at 10 tokens"]})
    >>> unanswered_notes(rows, lacking, {"metrics": {"m": {"needs": ["answer"]}}})
    ['A: 1 of 2 records has no answer (1 truncated); no metric that needs one scores it, and its means are over the others.']
    """
    if lacking.empty:
        return []
    need = [name for name, one in settings["metrics"].items() if "answer" in (one.get("needs") or ())]
    asked = rows.loc[rows["metric"].isin(need), ["id", "variant", "status"]]
    # A score there says that the answer was known elsewhere, and only its text was not given.
    scored = pd.MultiIndex.from_frame(asked.loc[asked["status"] == "ok", ["id", "variant"]])
    asked = asked[["id", "variant"]].drop_duplicates()
    lacking = lacking.drop_duplicates(["id", "variant"])
    keys = pd.MultiIndex.from_frame(lacking[["id", "variant"]])
    lacking = lacking[keys.isin(pd.MultiIndex.from_frame(asked)) & ~keys.isin(scored)]
    of = asked["variant"].value_counts()
    found = [_said(str(name), mine, int(of[name])) for name, mine in lacking.groupby("variant", sort=False)]
    more = len(found) - _MOST_VARIANTS
    return found[:_MOST_VARIANTS] + ([f"{count(more, 'more variant')} with records without an answer."] * (more > 0))


def _said(variant: str, lacking: pd.DataFrame, records: int) -> str:
    kinds = Counter(str(error).partition(":")[0] for error in lacking["answer_error"].dropna())
    most_first = sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
    why = f" ({', '.join(f'{number:,} {kind}' for kind, number in most_first)})" if kinds else ""
    has, them = ("has", "it") if len(lacking) == 1 else ("have", "them")
    return (
        f"{f'{variant}: ' if variant else ''}{len(lacking):,} of {count(records, 'record')} {has} no answer{why}; no metric "
        f"that needs one scores {them}, and {'its' if variant else 'the'} means are over the others."
    )
