"""What sways a judge of pairs besides quality: the place at which an answer is shown, and who wrote it.

Of a pair, 1 means that the first of two answers was preferred, 0 the second, .5 a tie, NaN that nothing could be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.stats.estimate import Estimate
from jurimetrics.stats.finding import ratio, renumbered, same_length, shares, with_p
from jurimetrics.stats.flips import sign_flips
from jurimetrics.stats.paired import mcnemar
from jurimetrics.stats.resampling import estimate, group_codes, minus

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Position:
    """What the place of an answer does to a judge that saw each pair in both orders.

    `consistency`: share of pairs with the same winner in both orders. `first_pick_rate`: share of all verdicts that name
    the first shown (.5 without bias; ties and what was unreadable left out). `preference`: (b - c) / n, -1 to 1, with
    `both_first` = b pairs in which the first shown won both times and `both_second` = c; `p` compares b with c: exact
    binomial, or sign flips by group where a group holds several such pairs (`test` says which). Low consistency with b
    about c is noise and no bias.

    `n` pairs with a winner in both orders; besides, `ties` pairs with a tie in an order, `unreadable` pairs of which an
    order could not be read.
    """

    consistency: Estimate
    first_pick_rate: Estimate
    preference: Estimate
    both_first: int
    both_second: int
    p: float
    test: str
    n: int
    ties: int
    unreadable: int


def position(
    a_first: Values, b_first: Values, groups: Groups = None, *, level: float = 0.95, seed: int = 0
) -> Position:
    """Position bias from n pairs (A, B) that were shown in both orders.

    `a_first`: what was said where A was shown first, `b_first` where B was; both in terms of A: 1 A won, 0 B won, .5 tie,
    NaN unreadable. `groups`: n names of what shares a source. Raises `InputError` for other values or lengths.

    Sources: Zheng and others, arXiv 2306.05685; Wang and others, arXiv 2305.17926; Shi and others, arXiv 2406.07791.

    >>> found = position([1, 1, 0, 1, 0.5, 1], [1, 0, 0, 0, 0.5, float("nan")])
    >>> found.n, found.ties, found.unreadable, found.both_first, found.both_second, found.p
    (4, 1, 1, 2, 0, 0.5)
    >>> found.consistency.value, found.first_pick_rate.value, found.preference.value
    (0.5, 0.7777777777777778, 0.5)
    """
    one, other = shares(a_first, "a_first"), shares(b_first, "b_first")
    same_length(one, other)
    codes, count = group_codes(groups, len(one))
    there = ~(np.isnan(one) | np.isnan(other))
    tie = there & ((one == 0.5) | (other == 0.5))
    kept = there & ~tie
    swung = kept & (one != other)
    toward = np.where(swung, np.where(one == 1, 1.0, -1.0), 0.0)
    n = int(kept.sum())
    firsts = (one == 1).astype(np.float64) + (other == 0)
    verdicts = np.isin(one, (0, 1)).astype(np.float64) + np.isin(other, (0, 1))

    def rate(part: Numbers, whole: Numbers, said: str, low: float) -> Estimate:
        holds = whole > 0
        again, groups_left = renumbered(codes[holds])
        of = ratio(part[holds], whole[holds], again, groups_left)
        return estimate(
            of, groups_left, int(holds.sum()), said, why="no pair has a winner", level=level, seed=seed,
            bounds=(low, 1.0),
        )  # fmt: skip

    b, c = int((toward > 0).sum()), int((toward < 0).sum())
    several = swung.any() and np.bincount(codes[swung], minlength=count).max() > 1
    flipped = sign_flips(toward[kept], codes[kept], level, seed=seed) if several else None
    p, test = mcnemar(b, c).exact_p, "exact binomial"
    if flipped is not None:
        p, test = float(flipped.p[0]), f"{flipped.signs} by group"
    return Position(
        rate((kept & ~swung).astype(np.float64), kept.astype(np.float64), "consistency", 0.0),
        rate(firsts, verdicts, "first picks", 0.0),
        rate(toward, kept.astype(np.float64), "first both times - second both times", -1.0),
        b, c, p, test, n, int(tie.sum()), int((~there).sum()),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """Whether a judge sides with answers of its own family more than people's verdicts explain.

    `own`: P(judge prefers its own | people prefer it), `other`: P(judge prefers the other | people prefer that), over
    `n_own` and `n_other` pairs; `difference` = own - other, -1 to 1, with `p`. `left_out`: pairs in which people named no
    winner or the judge could not be read; the judge's ties count as not preferring.
    """

    own: Estimate
    other: Estimate
    difference: Estimate
    p: float | None
    n_own: int
    n_other: int
    left_out: int


def self_preference(
    judge: Values, people: Values, groups: Groups = None, *, level: float = 0.95, seed: int = 0
) -> SelfPreference:
    """The equal opportunity difference of a judge over n pairs of an answer of its own family and another one.

    `judge`, `people`: 1 the own family's answer was preferred, 0 the other one, .5 tie, NaN nothing. Raises `InputError`
    for other values or lengths. Source: Wataoka and others, arXiv 2410.21819; Panickssery and others, arXiv 2404.13076.

    >>> found = self_preference([1, 1, 1, 0, 1, 0, 0.5, 1], [1, 1, 1, 1, 0, 0, 0, 0.5])
    >>> found.own.value, round(found.other.value, 4), round(found.difference.value, 4), found.n_own, found.n_other
    (0.75, 0.3333, 0.4167, 4, 3)
    """
    said, truth = shares(judge, "judge"), shares(people, "people")
    same_length(said, truth)
    kept = ~np.isnan(said) & np.isin(truth, (0, 1))
    codes, count = group_codes(None if groups is None else np.asarray(groups, dtype=object)[kept], int(kept.sum()))
    said, truth = said[kept], truth[kept]
    sides = [ratio(((said == side) & (truth == side)) * 1.0, (truth == side) * 1.0, codes, count) for side in (1, 0)]
    numbers = [int((truth == side).sum()) for side in (1, 0)]
    names = ("own preferred where people do", "other preferred where people do")
    rates = [
        estimate(side, count, n, name, why="no such pair", level=level, seed=seed, bounds=(0.0, 1.0))
        for side, n, name in zip(sides, numbers, names, strict=True)
    ]
    gap = with_p(
        minus(*sides), count, len(said), "equal opportunity difference", why="people prefer one side only",
        level=level, seed=seed,
    )  # fmt: skip
    return SelfPreference(rates[0], rates[1], gap.estimate, gap.p, numbers[0], numbers[1], len(kept) - len(said))
