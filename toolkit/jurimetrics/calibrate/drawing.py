"""Whether labelled records can have been chosen the way the labels say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.errors import InputError

Numbers = npt.NDArray[np.float64]
_FAR = 4.5
"""Standard errors that a random choice passes about once in 150,000 times."""
_HARDLY = 1e-5
_FEW = 20


def check_random(rows: pd.DataFrame) -> None:
    """Refuse labels of records that cannot be a random subset: scored otherwise, or disputed more, than the others.

    `rows` as `join` gives them. Each metric, judge and variant is looked at by the judge's scores, and each metric and
    variant by how far the judges' scores lie apart. Raises `InputError` that names the first.

    >>> scores = [0.0] * 50 + [1.0] * 50
    >>> rows = pd.DataFrame({"id": range(100), "variant": "", "metric": "ok", "judge": "ann", "group": range(100),
    ...                      "score": scores, "raters": [1] * 40 + [0] * 60})
    >>> check_random(rows)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: ok by ann: the labels are declared a random subset, but the labelled records have the \
mean score 0 and the others 0.833; if they were chosen by score or disagreement give the probability of each and \
declare selection="probabilities", if by what people said selection="by_label"
    """
    for (metric, judge, variant), mine in rows.groupby(["metric", "judge", "variant"], sort=False):
        _refuse_far(mine, "score", f"{metric} by {judge}{f' of {variant}' if variant else ''}", "mean score")
    key = ["id", "variant", "metric"]
    apart = rows[~rows.get("panel", pd.Series(False, index=rows.index))].groupby(key, sort=False, as_index=False)
    spread = apart.agg(
        high=("score", "max"), low=("score", "min"), judges=("score", "count"), group=("group", "first"),
        raters=("raters", "max"),
    )  # fmt: skip
    spread["score"] = (spread["high"] - spread["low"]).where(spread["judges"] > 1)
    for (metric, variant), mine in spread.groupby(["metric", "variant"], sort=False):
        _refuse_far(mine, "score", f"{metric}{f' of {variant}' if variant else ''}", "disagreement of judges")


def check_verdicts(passed: Numbers, people: Numbers, metric: str) -> None:
    """Refuse labels that were balanced by the judge's verdict where they are said to be chosen by people's.

    `passed`: the judge's verdicts on all records; `people`: 1, 0, NaN where not labelled. Raises `InputError` where the
    judge passed exactly half of at least 20 labelled records, though of all records it passes plainly more or fewer and
    people did not split them so.

    >>> check_verdicts(np.array([1.0] * 20 + [0.0] * 180), np.array([1.0] * 15 + [0.0] * 25 + [np.nan] * 160), "ok")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: ok: the judge passed just half of the 40 labelled records but 10% of all, so they \
look chosen by its verdict, under which Rogan-Gladen is wrong; give the probability of each and declare \
selection="probabilities"
    """
    there = ~np.isnan(people)
    n, passes, told = int(there.sum()), float(passed[there].sum()), float(people[there].sum())
    # Where both are halved nothing tells which was meant to be.
    if n < _FEW or abs(2 * passes - n) > n % 2 or abs(2 * told - n) <= n % 2:
        return
    rate = float(passed.mean())
    if abs(rate - 0.5) > 3 * math.sqrt(0.25 / n):
        raise InputError(
            f"{metric}: the judge passed just half of the {n} labelled records but {rate:.0%} of all, so they look chosen "
            "by its verdict, under which Rogan-Gladen is wrong; give the probability of each and declare "
            'selection="probabilities"'
        )


def _refuse_far(mine: pd.DataFrame, name: str, whose: str, what: str) -> None:
    scored = mine[mine[name].notna()]
    values = scored[name].to_numpy(dtype=np.float64)
    taken = (scored["raters"] > 0).to_numpy(dtype=bool)
    if _improbable(values, taken, pd.factorize(scored["group"])[0]):
        raise InputError(
            f"{whose}: the labels are declared a random subset, but the labelled records have the {what} "
            f"{values[taken].mean():.3g} and the others {values[~taken].mean():.3g}; if they were chosen by score or "
            'disagreement give the probability of each and declare selection="probabilities", if by what people said '
            'selection="by_label"'
        )


def _improbable(values: Numbers, taken: npt.NDArray[np.bool_], group: npt.NDArray[Any]) -> bool:
    n, rest = int(taken.sum()), int((~taken).sum())
    if min(n, rest) < _FEW or np.ptp(values) == 0:
        return False
    off = values - values.mean()
    # What groups add to the variance of a mean, as if whole groups had been drawn.
    inflated = max(1.0, float((np.bincount(group, weights=off) ** 2).sum() / (off**2).sum()))
    error = math.sqrt(float(values.var()) * inflated * (1 / n + 1 / rest))
    if abs(values[taken].mean() - values[~taken].mean()) <= _FAR * error:
        return False
    kinds = np.unique(values)
    if len(kinds) > 2 or inflated > 1.2:
        return True
    from scipy.stats import hypergeom

    # Of rare values a few may meet by chance more often than a normal curve says.
    high = values == kinds[1]
    drawn = hypergeom(len(values), int(high.sum()), n)
    seen = int(high[taken].sum())
    return bool(min(drawn.cdf(seen), drawn.sf(seen - 1)) < _HARDLY)
