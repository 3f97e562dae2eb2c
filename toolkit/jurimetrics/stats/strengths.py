"""An order of several variants: mean ranks over records, and strengths from preferences pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.errors import InputError
from jurimetrics.stats.estimate import Estimate, mean_estimate
from jurimetrics.stats.resampling import (
    ENOUGH_GROUPS,
    RESAMPLES,
    Draws,
    Numbers,
    Statistic,
    estimate,
    group_codes,
    percentiles,
    undefined,
)

Groups = Sequence[Any] | npt.NDArray[Any] | None


def mean_ranks(
    scores: Numbers, groups: Groups = None, *, higher_is_better: bool = True, level: float = 0.95
) -> list[Estimate]:
    """The mean rank of each of V variants over the records that all of them have a score for; 1 is the best.

    `scores`: n records x V variants, NaN where there is none; such a record is left out. Equal scores share the mean of
    their ranks. Intervals are those of `mean_estimate` (t over groups), each for itself. Raises `InputError` as that
    does, and for scores that are not a table.

    >>> [one.value for one in mean_ranks(np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 4.0]]))]
    [1.0, 2.75, 2.25]
    """
    from scipy.stats import rankdata

    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"mean ranks need a table of records x variants, found shape {table.shape}")
    whole = np.flatnonzero(~np.isnan(table).any(axis=1)).tolist()
    if groups is not None and len(groups) != len(table):
        raise InputError(f"{len(table)} records but {len(groups)} groups")
    names = None if groups is None else [groups[at] for at in whole]
    kept = -table[whole] if higher_is_better else table[whole]
    ranks = np.asarray(rankdata(kept, axis=1), dtype=np.float64).reshape(kept.shape)
    bounds = (1.0, float(table.shape[1]))
    return [mean_estimate(ranks[:, at], names, level, bounds=bounds) for at in range(table.shape[1])]


@dataclass(frozen=True, slots=True)
class Strengths:
    """Bradley-Terry strengths: P(i is preferred to j) = 1 / (1 + exp(-(b_i - b_j))).

    `names` in the order of appearance; `log_strengths`, one estimate of b each, on a scale where they add up to 0 (so
    that none of them is the reference); values are None where the duels do not connect the variants both ways.
    `chances`: the V x V chances of the row to be preferred to the column, NaN where there is no value.
    """

    names: tuple[str, ...]
    log_strengths: tuple[Estimate, ...]

    @property
    def chances(self) -> Numbers:
        values = np.array([math.nan if one.value is None else one.value for one in self.log_strengths])
        return np.asarray(1 / (1 + np.exp(values[None, :] - values[:, None])), dtype=np.float64)


def bradley_terry(
    first: Sequence[str],
    second: Sequence[str],
    share: Sequence[float] | Numbers,
    groups: Groups = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Strengths:
    """Strengths of variants from duels, with intervals from drawing whole groups (records) anew.

    `first` and `second`: names of the two sides of n duels; `share`: how much of the duel the first got, 0 to 1 (1 won,
    .5 tie: a tie is half a win for each; NaN: no outcome, left out). `groups`: n names of what shares a source, by
    default every duel alone; duels about one record belong together, or intervals are too narrow.

    No interval below 8 groups, none where 5 % of the resamples have no finite strengths; below 30 groups it is Student's
    t over the jackknife. Strengths exist only where every set of variants won against the rest at least in part.

    Raises `InputError` for lengths that differ, a share outside 0 to 1, or a variant that meets itself.
    Source: Bradley and Terry, Biometrika 39 (1952); solved by evalica (Newman, JMLR 24, 2023).

    >>> found = bradley_terry(["a"] * 4, ["b"] * 4, [1, 1, 1, 0])
    >>> [round(one.value, 3) for one in found.log_strengths], float(found.chances[0, 1].round(3))
    ([0.549, -0.549], 0.75)
    """
    names, wins, count, n = _wins(first, second, share, groups)
    if len(names) < 2:
        return Strengths(names, tuple(undefined("strengths: no duels", n, level) for _ in names))
    said, why = "Bradley-Terry, sum 0, ties half", "no variant may win or lose all its duels"
    point = _logs(wins, np.ones((1, count)))[0]
    if count >= ENOUGH_GROUPS and not np.isnan(point).any():
        drawn = _logs(wins, Draws.make(count, resamples, seed).times.astype(np.float64))
        bare = [Estimate(float(value), None, None, level, n, "") for value in point]
        found = [percentiles(one, drawn[:, at], count, said, f"{count} groups") for at, one in enumerate(bare)]
    else:
        found = [
            estimate(_strength(wins, at), count, n, said, why=why, level=level, bounds=None) for at in range(len(names))
        ]
    return Strengths(names, tuple(found))


def _wins(first: Any, second: Any, share: Any, groups: Groups) -> tuple[tuple[str, ...], Numbers, int, int]:
    """Names and, for each group, how much each row won against each column: groups x V x V, flattened to groups x V^2."""
    one, other = [str(name) for name in first], [str(name) for name in second]
    shares = np.asarray(share, dtype=np.float64)
    if not len(one) == len(other) == len(shares):
        raise InputError(f"duels need equally long lists, found {len(one)}, {len(other)} and {len(shares)}")
    there = ~np.isnan(shares)
    if ((shares[there] < 0) | (shares[there] > 1)).any():
        raise InputError("a share of a duel lies between 0 and 1")
    if not there.any():
        raise InputError("no duel was decided")
    if alike := next((a for a, b in zip(one, other, strict=True) if a == b), None):
        raise InputError(f"{alike!r} cannot meet itself")
    names = tuple(dict.fromkeys(name for pair in zip(one, other, strict=True) for name in pair))
    place = {name: at for at, name in enumerate(names)}
    kept = None if groups is None else [name for name, here in zip(groups, there, strict=True) if here]
    codes, count = group_codes(kept, int(there.sum()))
    i = np.array([place[name] for name in one], dtype=np.intp)[there]
    j = np.array([place[name] for name in other], dtype=np.intp)[there]
    wins = np.zeros((count, len(names), len(names)))
    np.add.at(wins, (codes, i, j), shares[there])
    np.add.at(wins, (codes, j, i), 1 - shares[there])
    return names, wins.reshape(count, -1), count, int(there.sum())


def _strength(wins: Numbers, at: int) -> Statistic:
    return Statistic(lambda times: _logs(wins, times)[:, at], wins.shape[1])


def _logs(wins: Numbers, times: Numbers) -> Numbers:
    """Centred log strengths for each weighting of the groups (B x V), NaN where they are not finite."""
    side = math.isqrt(wins.shape[1])
    # With few variants many resamples hold the same counts.
    tables, which = np.unique(np.round(times @ wins, 9), axis=0, return_inverse=True)
    solved = np.array([_solved(table.reshape(side, side)) for table in tables]).reshape(len(tables), side)
    return np.asarray(solved[which.reshape(-1)], dtype=np.float64)


def _solved(table: Numbers) -> Numbers:
    import evalica

    side = len(table)
    if not _connected(table > 0):
        return np.full(side, np.nan)
    i, j = np.nonzero(table)
    winners = [evalica.Winner.X] * len(i)
    found = evalica.bradley_terry(
        i.tolist(), j.tolist(), winners, weights=table[i, j].tolist(), tolerance=1e-10, limit=100_000
    )
    logs = np.log(found.scores.reindex(range(side)).to_numpy(dtype=np.float64))
    centred: Numbers = logs - logs.mean()
    return centred


def _connected(beats: npt.NDArray[np.bool_]) -> bool:
    """Whether everyone reaches everyone over wins; without that the likelihood has no maximum (Ford 1957)."""
    reach = beats | np.eye(len(beats), dtype=bool)
    for middle in range(len(beats)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return bool(reach.all())
