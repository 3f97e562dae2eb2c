"""How far a preference goes by length: against people's on the same pairs, and with length taken out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.finding import ratio, renumbered, same_length, shares, with_p
from jurimetrics.stats.logit import Fit, logit
from jurimetrics.stats.resampling import Draws, Statistic, estimate, group_codes, minus, undefined

Numbers = npt.NDArray[np.float64]
Values = Sequence[float] | Numbers
Groups = Sequence[Any] | npt.NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Verbosity:
    """How often the longer of two answers wins with a judge and with people, over the same n pairs.

    `judge` and `people`: P(the longer is preferred), 0 to 1. `excess`: the judge's less people's, with `p`. `slope`: the
    coefficient of tanh(length difference / its standard deviation) in the logit of the judge's preference beside what
    people preferred (log odds; 0: length adds nothing to quality), with `slope_p`. Without people's preferences only
    `judge` and `slope` have values and quality is confounded with length. `left_out` pairs: a tie, nothing readable, or
    equal length.
    """

    judge: Estimate
    people: Estimate
    excess: Estimate
    p: float | None
    slope: Estimate
    slope_p: float | None
    left_out: int


def verbosity(
    judge: Values,
    lengths: Values,
    people: Values | None = None,
    groups: Groups = None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Verbosity:
    """Does a judge prefer longer answers beyond what people do?

    `judge`: n preferences (1 first, 0 second, .5 tie, NaN); `people`: theirs of the same pairs; `lengths`: length of the
    first less that of the second, in characters. Ties and pairs of equal length are left out. Raises `InputError` for
    other values or lengths. Source: Dubois and others, arXiv 2404.04475, for the tanh of the length.

    >>> lengths = [90, 80, -70, 60, -50, 40, -30, 20, 10, -10] * 4
    >>> judge = [1, 1, 0, 1, 0, 1, 0, 1, 0, 1] * 4
    >>> people = [1, 0, 0, 1, 1, 0, 0, 1, 0, 1] * 4
    >>> found = verbosity(judge, lengths, people, list(range(10)) * 4)
    >>> found.judge.value, found.people.value, round(found.excess.value, 2)
    (0.8, 0.5, 0.3)
    """
    said, gap = shares(judge, "judge"), np.asarray(lengths, dtype=np.float64)
    truth = np.full(len(said), np.nan) if people is None else shares(people, "people")
    same_length(said, gap, truth)
    kept = np.isin(said, (0, 1)) & (gap != 0) & ~np.isnan(gap)
    if people is not None:
        kept &= np.isin(truth, (0, 1))
    codes, count = group_codes(None if groups is None else np.asarray(groups, dtype=object)[kept], int(kept.sum()))
    said, gap, truth, n = said[kept], gap[kept], truth[kept], int(kept.sum())
    longer = {who: (given == (gap > 0)).astype(np.float64) for who, given in (("judge", said), ("people", truth))}
    every, why = np.ones(n), "no pair with a winner and two lengths"
    share = {who: ratio(each, every, codes, count) for who, each in longer.items()}
    judged = estimate(
        share["judge"], count, n, "longer preferred", why=why, level=level, seed=seed, bounds=(0.0, 1.0)
    )  # fmt: skip
    columns = [np.ones(n), _squashed(gap)] + ([] if people is None else [truth - 0.5])
    slope = with_p(
        logit(np.array(columns).T, said, codes, count).coefficient(1), count, n, "logit slope of tanh(length)",
        why="length tells all pairs apart, or none", level=level, bounds=None, seed=seed,
    )  # fmt: skip
    if people is None:
        none = undefined("people's preferences are not given", n, level)
        return Verbosity(judged, none, none, None, slope.estimate, slope.p, len(kept) - n)
    theirs = estimate(share["people"], count, n, "longer preferred", why=why, level=level, seed=seed, bounds=(0.0, 1.0))
    excess = with_p(
        minus(share["judge"], share["people"]), count, n, "judge - people", why=why, level=level, seed=seed
    )  # fmt: skip
    return Verbosity(judged, theirs, excess.estimate, excess.p, slope.estimate, slope.p, len(kept) - n)


@dataclass(frozen=True, slots=True)
class LengthControlled:
    """A win rate with and without what the answers' lengths do, as shares from 0 to 1.

    `raw`: the mean preference. `controlled`: what the fit says at equal lengths. `slope`: the coefficient of
    tanh((length of the baseline - length of the model) / its standard deviation); below 0 the judge favours longer
    answers. `prefers_longer`: P(the longer is preferred). `intercept`: log odds at equal lengths.
    """

    raw: Estimate
    controlled: Estimate
    slope: Estimate
    prefers_longer: Estimate
    intercept: float | None


def length_controlled(
    preference: Values,
    length_model: Values,
    length_baseline: Values,
    groups: Groups = None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> LengthControlled:
    """The minimal form of a length-controlled win rate: logit E[preference] = a tanh((baseline - model) / sd) + b.

    `preference`: n shares from 0 (the baseline's answer won) to 1 (the model's); NaN is left out. Lengths in characters;
    sd is that of these differences (n - 1) and held fixed in resamples. Not the published figure of AlpacaEval, which
    adds the difficulty of each instruction and a regulariser: without it the slope is overestimated. Length may carry
    real quality, and equal lengths are an extrapolation where one side is always longer.

    Raises `InputError` for shares outside 0 to 1 or other lengths. Source: Dubois and others, arXiv 2404.04475.

    >>> found = length_controlled([1, 0, 1, 1, 0, 0, 1, 0, 1, 1], [9, 4, 8, 7, 3, 6, 4, 5, 9, 3], [5] * 10)
    >>> round(found.raw.value, 2), round(found.controlled.value, 2)
    (0.6, 0.56)
    """
    won = np.asarray(preference, dtype=np.float64)
    model, base = np.asarray(length_model, dtype=np.float64), np.asarray(length_baseline, dtype=np.float64)
    same_length(won, model, base)
    kept = ~(np.isnan(won) | np.isnan(model) | np.isnan(base))
    won, gap = won[kept], (base - model)[kept]
    if ((won < 0) | (won > 1)).any():
        raise InputError("a preference is a share from 0 to 1")
    n = len(won)
    codes, count = group_codes(None if groups is None else np.asarray(groups, dtype=object)[kept], n)
    draws = Draws.make(count, seed=seed) if count else None
    fit: Fit = logit(np.stack([_squashed(gap), np.ones(n)], axis=1), won, codes, count)
    why = "length tells wins and losses apart, or all pairs went one way"
    clear = (won != 0.5) & (gap != 0)
    again, left = renumbered(codes[clear])
    longer = ratio((((won > 0.5) == (gap < 0))[clear]).astype(np.float64), np.ones(int(clear.sum())), again, left)
    at_equal = fit.coefficient(1)
    base_rate = Statistic(lambda times: 1 / (1 + np.exp(-at_equal.of(times))), at_equal.width)
    intercept = at_equal.all_groups(count) if count else math.nan
    return LengthControlled(
        mean_estimate(won, codes.tolist(), level, bounds=(0.0, 1.0)),
        estimate(base_rate, count, n, "win rate at equal lengths", why=why, level=level, draws=draws, bounds=(0.0, 1.0)),
        estimate(fit.coefficient(0), count, n, "slope of tanh(length)", why=why, level=level, draws=draws, bounds=None),
        estimate(longer, left, int(clear.sum()), "longer preferred", why="no pair with a winner and two lengths",
                 level=level, seed=seed, bounds=(0.0, 1.0)),
        None if math.isnan(intercept) else intercept,
    )  # fmt: skip


def _squashed(gap: Numbers) -> Numbers:
    spread = float(gap.std(ddof=1)) if len(gap) > 1 else 0.0
    return np.tanh(gap / spread) if spread > 0 else np.zeros(len(gap))
