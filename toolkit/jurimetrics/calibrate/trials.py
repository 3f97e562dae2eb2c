"""Independent trials out of labelled records: a random subset of them, one of each group."""

from __future__ import annotations

import hashlib
from typing import Any

import pandas as pd

from jurimetrics.calibrate.drawing import check_random
from jurimetrics.errors import InputError

Key = tuple[str, str]
"""Id and variant of a record."""


def need_random(joined: pd.DataFrame, who: str) -> None:
    """Raise `InputError` unless labels joined to results are declared a random subset and look like one."""
    selection = joined.attrs["selection"]
    if selection != "random":
        found = "how they were chosen is not declared" if selection is None else f"these are declared {selection!r}"
        raise InputError(
            f"{who} needs labels of a random subset of the records, each as likely as any other, and {found}; where they "
            'are one say so: load_labels(..., selection="random")'
        )
    check_random(joined)


def one_per_group(rows: pd.DataFrame) -> tuple[list[Key], int]:
    """Of each group the labelled record with the most raters, of several the first by a hash of its id and variant; and how
    many records are left out.

    >>> rows = pd.DataFrame({"id": ["a", "b", "c"], "variant": "", "group": ["x", "x", "y"], "raters": [1, 2, 1]})
    >>> one_per_group(rows)
    ([('b', ''), ('c', '')], 1)
    """
    best: dict[Any, tuple[int, str, Key]] = {}
    distinct = rows.drop_duplicates(["id", "variant"])
    for name, variant, group, raters in distinct[["id", "variant", "group", "raters"]].itertuples(
        index=False, name=None
    ):
        digest = hashlib.sha256(f"{name}\n{variant}".encode("utf-8", "surrogatepass")).hexdigest()
        mine = (-int(raters), digest, (str(name), str(variant)))
        best[group] = min(best.get(group, mine), mine)
    return sorted(one[2] for one in best.values()), len(distinct) - len(best)
