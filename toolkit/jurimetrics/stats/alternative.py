"""Can a judge stand in for a human annotator? The alternative annotator test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.multiple import adjust
from jurimetrics.stats.ratings import read_ratings

Numbers = npt.NDArray[np.float64]
Closeness = Literal["accuracy", "rmse"]
FEWEST_ITEMS = 30
"""The t test of an annotator needs about as many items."""


class AgainstOne(NamedTuple):
    """The judge against one annotator, on the `n` items that this one and others rated.

    `judge_wins` and `annotator_wins`: the share of items on which the one comes at least as close to the other annotators
    as the other (ties count for both). `p` of "the annotator wins oftener by epsilon or more", NaN where it is undefined;
    `adjusted` for the number of annotators; `rejected` says that the judge is an alternative to this annotator.
    """

    annotator: int
    n: int
    judge_wins: float
    annotator_wins: float
    p: float
    adjusted: float
    rejected: bool


@dataclass(frozen=True, slots=True)
class AltTest:
    """`passed` where the judge is an alternative to at least half of the annotators, `winning_rate` their share.

    `advantage` is the chance that the judge comes at least as close to the others as an annotator does, averaged over
    annotators. `left_out`: places of the annotators with too few items to be tested.
    """

    winning_rate: float
    advantage: float
    passed: bool
    epsilon: float
    q: float
    closeness: Closeness
    annotators: tuple[AgainstOne, ...]
    left_out: tuple[int, ...]


def alt_test(
    judge: Sequence[Any] | Numbers,
    annotators: Sequence[Sequence[Any]] | Numbers,
    epsilon: float,
    *,
    closeness: Closeness = "accuracy",
    q: float = 0.05,
    fewest: int = FEWEST_ITEMS,
) -> AltTest:
    """Whether a judge may stand in for an annotator: does it come as close to the other annotators as each of them does?

    `judge`: N labels (numbers or text), `annotators`: H x N; None and NaN are not rated. `closeness` to the others on an
    item: "accuracy" the share of them who gave the same label, "rmse" minus the root mean squared difference, for scales.
    `epsilon` is what a judge may win less often than the annotator for being cheaper, and is stated beforehand: .2 for
    experts, .15 for skilled annotators, .1 for crowd workers. Annotator by annotator the one-sided t test asks whether
    wins of the annotator minus wins of the judge are below epsilon on average; Benjamini and Yekutieli hold the false
    discovery rate at `q`. Where all differences are equal and just epsilon, nothing is rejected.

    Items must stand alone: of those that share a source take one. An annotator with under `fewest` items (that others
    rated too) is not tested, but counts among the others.

    Raises `InputError` for lengths that differ, an epsilon or q outside 0 to 1, and fewer than two annotators with enough
    items; three and more are better. Source: Calderon, Reichart and Dror, "The Alternative Annotator Test for
    LLM-as-a-Judge", ACL 2025, arXiv 2501.10970.

    >>> people = [[1, 0, 1, 1, 0, 1] * 8, [1, 0, 1, 0, 0, 1] * 8, [1, 0, 0, 1, 0, 1] * 8]
    >>> found = alt_test([1, 0, 1, 1, 0, 1] * 8, people, epsilon=0.2)
    >>> found.winning_rate, found.passed
    (1.0, True)
    """
    if not 0 <= epsilon < 1 or not 0 < q < 1:
        raise InputError(f"epsilon lies in 0 to 1 and q between them, not {epsilon:g} and {q:g}")
    if closeness not in ("accuracy", "rmse"):
        raise InputError(f'closeness is "accuracy" or "rmse", not {closeness!r}')
    table, names = read_ratings([list(judge), *(list(one) for one in annotators)])
    if names and closeness == "rmse":
        raise InputError(f"rmse needs numbers, found {names[-1]!r}")
    machine, people = table[0], table[1:]
    wins, left_out = {}, []
    for at in range(len(people)):
        one = _wins(machine, people, at, closeness)
        if len(one) < max(2, fewest):
            left_out.append(at)
        else:
            wins[at] = one
    if len(wins) < 2:
        raise InputError(
            f"the alternative annotator test needs two annotators with {fewest} items or more that others rated too, "
            f"found {len(wins)} of {len(people)}; three and more are better"
        )
    p = {at: one_sided_p(one[:, 1] - one[:, 0], epsilon) for at, one in wins.items()}
    # What cannot be tested is not rejected, and stays in the family.
    adjusted = adjust([1.0 if math.isnan(value) else value for value in p.values()], "fdr_by").p.tolist()
    found = tuple(
        AgainstOne(at, len(one), float(one[:, 0].mean()), float(one[:, 1].mean()), p[at], now, now <= q)
        for (at, one), now in zip(wins.items(), adjusted, strict=True)
    )
    rate = sum(one.rejected for one in found) / len(found)
    advantage = math.fsum(one.judge_wins for one in found) / len(found)
    return AltTest(rate, advantage, rate >= 0.5, epsilon, q, closeness, found, tuple(left_out))


def one_sided_p(differences: Sequence[float] | Numbers, epsilon: float) -> float:
    """The p value of Student's t test that the mean is below epsilon; NaN where all are equal to it, 0 or 1 where all are
    equal and below or above.

    >>> one_sided_p([0.0] * 40, 0.1), one_sided_p([0.0] * 40, 0.0)
    (0.0, nan)
    """
    values = np.asarray(differences, dtype=np.float64)
    off, spread = float(values.mean()) - epsilon, float(values.std(ddof=1))
    if spread == 0:
        return math.nan if off == 0 else float(off > 0)
    from scipy.special import stdtr

    return float(stdtr(len(values) - 1, off / (spread / math.sqrt(len(values)))))


def _wins(machine: Numbers, people: Numbers, at: int, closeness: Closeness) -> Numbers:
    """n x 2 of 0 and 1: whether the judge, and the annotator, comes at least as close to the others on each item."""
    others = np.delete(people, at, axis=0)
    rated = ~np.isnan(others)
    use = ~np.isnan(machine) & ~np.isnan(people[at]) & rated.any(axis=0)
    others, rated = others[:, use], rated[:, use]

    def near(mine: Numbers) -> Numbers:
        if closeness == "accuracy":
            return np.asarray(((mine == others) & rated).sum(axis=0), dtype=np.float64)
        return np.asarray(-np.where(rated, (mine - others) ** 2, 0.0).sum(axis=0))

    # Sums over the same others are in the order of means and roots of means.
    judge, annotator = near(machine[use]), near(people[at, use])
    slack = 1e-12 * np.maximum(1.0, np.abs(annotator))
    return np.column_stack([judge >= annotator - slack, annotator >= judge - slack]).astype(np.float64)
