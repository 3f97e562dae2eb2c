"""A logistic fit as a function of how often each group counts, so that resamples are fitted together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jurimetrics.stats.resampling import Statistic

Numbers = npt.NDArray[np.float64]
_STEPS = 60
_CLOSE = 1e-9
_FAR = 30.0
"""Log odds beyond this belong to data that one column tells apart: there the likelihood has no maximum."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Logistic regression of shares `outcome` (n, 0 to 1) on `design` (n x P) in `count` groups `codes`, unregularised."""

    design: Numbers
    outcome: Numbers
    codes: npt.NDArray[np.intp]
    count: int

    def coefficients(self, times: Numbers) -> Numbers:
        """B x P coefficients for B x G counts of the groups; NaN where the likelihood has no maximum.

        Newton's steps on all B fits at once.
        """
        weights = times[:, self.codes]
        found: Numbers = np.zeros((len(times), self.design.shape[1]))
        size = self.design.shape[1]
        squares = (self.design[:, :, None] * self.design[:, None, :]).reshape(len(self.design), -1)
        step: Numbers = np.full_like(found, np.inf)
        for _ in range(_STEPS):
            odds = np.clip(found @ self.design.T, -_FAR, _FAR)
            chance = 1 / (1 + np.exp(-odds))
            slope = (weights * (self.outcome - chance)) @ self.design
            bend = ((weights * chance * (1 - chance)) @ squares).reshape(len(times), size, size)
            # Where a column is constant the bend has no inverse; the ridge keeps the step finite and the check tells.
            step = np.asarray(np.linalg.solve(bend + 1e-12 * np.eye(size), slope[:, :, None])[:, :, 0])
            found += np.clip(step, -5.0, 5.0)
            if np.abs(step).max(initial=0.0) < _CLOSE:
                break
        lost = (np.abs(step).max(axis=1) > 1e-6) | (np.abs(found).max(axis=1) > _FAR)
        return np.where(lost[:, None], np.nan, found)

    def coefficient(self, at: int) -> Statistic:
        """One coefficient as a statistic of the groups."""
        return Statistic(lambda times: self.coefficients(times)[:, at], 4 * max(1, len(self.outcome)))


def logit(design: Numbers, outcome: Numbers, codes: npt.NDArray[np.intp], count: int) -> Fit:
    """A fit of shares on columns, ready to be asked for any weighting of the groups.

    >>> design = np.array([[1.0, 0.0]] * 4 + [[1.0, 1.0]] * 4)
    >>> fit = logit(design, np.array([0, 0, 0, 1, 0, 1, 1, 1.0]), np.arange(8), 8)
    >>> fit.coefficients(np.ones((1, 8))).round(4).tolist()
    [[-1.0986, 2.1972]]
    """
    return Fit(design, outcome, codes, count)
