"""How many records a comparison needs to find a difference of a stated size."""

from __future__ import annotations

import math

from jurimetrics.errors import InputError


def records_needed(
    spread: float, difference: float, *, alpha: float = 0.05, power: float = 0.8, design_effect: float = 1.0
) -> float:
    """Paired records needed to find a mean difference, by the paired t test, two-sided.

    `spread`: standard deviation of the paired differences between records, in the unit of the score; `difference`: the
    one to be found, same unit, its sign does not matter; `design_effect`: 1 + (m - 1) rho for groups of m records with
    correlation rho. A real number; round up. NaN where spread or design effect is NaN. For no spread it is 2, the
    fewest for a t test.

    Raises `InputError` for a difference of 0, a negative spread, a design effect below 1, or alpha and power outside
    0 to 1. Source: the noncentral t distribution; Cohen, "Statistical Power Analysis" (1988), 2.

    >>> round(records_needed(1.0, 0.2), 2)
    198.15
    """
    from scipy.optimize import brentq

    _check(alpha, power, difference)
    if spread < 0 or design_effect < 1:
        raise InputError(f"spread is at least 0 and a design effect at least 1, not {spread:g} and {design_effect:g}")
    if math.isnan(spread) or math.isnan(design_effect):
        return math.nan
    size = abs(difference) / spread if spread else math.inf
    if _power_of_t(size, 2.0, alpha) >= power:
        return 2.0 * design_effect
    most = 4.0
    while _power_of_t(size, most, alpha) < power:
        most *= 2
    return float(brentq(lambda n: _power_of_t(size, n, alpha) - power, most / 2, most, xtol=1e-9)) * design_effect


def _power_of_t(size: float, n: float, alpha: float) -> float:
    from scipy.special import stdtrit
    from scipy.stats import nct

    if math.isinf(size):
        return 1.0
    limit, shift = float(stdtrit(n - 1, 1 - alpha / 2)), size * math.sqrt(n)
    # Far out the noncentral t has no value in floats; it is 1 there.
    if shift > limit + 30:
        return 1.0
    return float(nct.sf(limit, n - 1, shift) + nct.cdf(-limit, n - 1, shift))


def questions_needed(
    omega2: float,
    difference: float,
    *,
    sigma2: tuple[float, float] = (0.0, 0.0),
    repeats: tuple[int, int] = (1, 1),
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Questions needed when each variant answers a question several times, by the normal approximation.

    `omega2`: variance over questions of the true difference; `sigma2`: variance of a single score of a question around
    its own mean, of both variants; `repeats`: answers per question of both. n = (z_{1-alpha/2} + z_power)^2
    (omega2 + sigma2_A / K_A + sigma2_B / K_B) / difference^2. Multiply by the design effect where questions come in
    groups. Raises `InputError` as `records_needed` does, and for repeats below 1.

    Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640, equation 9.

    >>> round(questions_needed(1 / 9, 0.03), 1)
    969.0
    """
    _check(alpha, power, difference)
    if min(repeats) < 1 or min(omega2, *sigma2) < 0:
        raise InputError("variances are at least 0 and repeats at least 1")
    variance = omega2 + sigma2[0] / repeats[0] + sigma2[1] / repeats[1]
    return (_normal(1 - alpha / 2) + _normal(power)) ** 2 * variance / difference**2


def pairs_needed_mcnemar(only_a: float, only_b: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Independent pairs needed by McNemar's test to tell two pass rates apart.

    `only_a` and `only_b`: the shares of records that just one of both variants passes. Raises `InputError` for shares
    that are equal, negative or together above 1. Source: Connor, Biometrics 43 (1987); Miettinen, Biometrics 24 (1968).

    >>> round(pairs_needed_mcnemar(0.15, 0.08), 2)
    366.05
    """
    both, apart = only_a + only_b, only_a - only_b
    if min(only_a, only_b) < 0 or both > 1:
        raise InputError(f"shares lie between 0 and 1 and add up to at most 1, not {only_a!r} and {only_b!r}")
    _check(alpha, power, apart)
    spread = _normal(1 - alpha / 2) * math.sqrt(both) + _normal(power) * math.sqrt(both - apart**2)
    return (spread / apart) ** 2


def _check(alpha: float, power: float, difference: float) -> None:
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise InputError(f"alpha and power lie between 0 and 1, not {alpha!r} and {power!r}")
    if not difference or not math.isfinite(difference):
        raise InputError(f"a difference to be found is a number other than 0, not {difference!r}")


def _normal(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
