"""What noise costs, in rationals and rounded up: docs/proofs/composition.md, sections 3, 9 and 10.

Two measures: an epsilon for adding or removing one entity where there is no delta, else a rho of zero-concentrated
differential privacy in the terms of the receipt's neighbours, from which epsilon follows.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

LAPLACE, GAUSSIAN = "discrete-laplace", "discrete-gaussian"
FLIP, EXPONENTIAL = "permute-and-flip", "exponential"
FREQUENT, AS_PUBLISHED = "frequent-values", "as-published"
NOISE = (LAPLACE, GAUSSIAN)
CHOICES = (FLIP, EXPONENTIAL)
MECHANISMS = {"epsilon": (LAPLACE, FLIP, AS_PUBLISHED), "rho": (GAUSSIAN, EXPONENTIAL, FREQUENT)}
"""What each measure can pay for."""
GRIDS = {"epsilon": 2**40, "rho": 2**80}
"""Charges are whole multiples of one over this, so that sums are sums of integers."""
MAX_RHO = 10**12

_DIGITS = Context(prec=80)
_LOSS = Decimal("1e-25")
"""More than what this precision can lose in `_bound`, where every operation and logarithm is correctly rounded."""
_MARGIN = 1 + Fraction(1, 10**70)
"""The same, as a factor, in `tail_probability`."""
_ROOT = Fraction(250662827463, 10**11)
"""Just below the root of 2 pi."""
_FAR = 2000
"""For larger x, exp(-x) is taken for that of this one."""
_STEPS = 120
_LEAST_RHO = Fraction(1, 2**100)
"""Smaller ones are taken for this one, lest floats run out; the true epsilon is below."""


def cost_of(
    mechanism: str, sensitivity: int, scale: Fraction, *, additive: bool, monotone: bool, replaces: bool
) -> Fraction:
    """What one draw costs at least, in the measure of its mechanism; the cost of `as-published` is not known.

    `replaces` says whether rho is counted for neighbours that replace an entity; epsilon never is.
    """
    ratio = Fraction(sensitivity) / scale
    if mechanism in CHOICES and not monotone:
        ratio *= 2
    if mechanism in (LAPLACE, FLIP):
        return ratio
    if mechanism == EXPONENTIAL:
        return (4 if replaces else 1) * ratio**2 / 8
    return ((2 if additive else 4) if replaces else 1) * ratio**2 / 2


def tail_probability(scale: Fraction, threshold: int) -> Fraction:
    """A bound on the probability that a count of 1 with Gaussian noise of this scale reaches the threshold.

    Proven in docs/proofs/domains.md, section 7.
    """
    beyond = threshold - 1
    power = min(beyond**2 / (2 * scale**2), Fraction(_FAR))
    first = _DIGITS.exp(_DIGITS.divide(Decimal(-power.numerator), Decimal(power.denominator)))
    tail = Fraction(first) * _MARGIN * (1 + scale**2 / beyond)
    return tail / max(Fraction(1), _ROOT * scale)


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon such that rho-zCDP implies (epsilon, delta)-DP; nearly the least that the bound gives.

    Any order alpha > 1 proves alpha rho + log(1 - 1/alpha) - (log delta + log alpha) / (alpha - 1). The best one is
    searched by thirds in the logarithm of alpha - 1, around where the simpler bound without the logarithms has it.
    """
    rho = max(rho, _LEAST_RHO)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    middle = (math.log(-log_delta) - math.log(rho.numerator) + math.log(rho.denominator)) / 2
    low, high = middle - 5, middle + 5
    for _ in range(_STEPS):
        third = (high - low) / 3
        if _rough(low + third, float(rho), log_delta) < _rough(high - third, float(rho), log_delta):
            high -= third
        else:
            low += third
    return _bound(rho, delta, Decimal(math.exp((low + high) / 2)))


def _rough(exponent: float, rho: float, log_delta: float) -> float:
    above = math.exp(exponent)
    return (1 + above) * rho - math.log1p(1 / above) - (log_delta + math.log1p(above)) / above


def _bound(rho: Fraction, delta: Fraction, above: Decimal) -> Fraction:
    """The epsilon that the order 1 + above proves, rounded up."""
    do = _DIGITS
    order = do.add(above, Decimal(1))
    log_delta = do.subtract(do.ln(Decimal(delta.numerator)), do.ln(Decimal(delta.denominator)))
    cost = do.divide(do.multiply(order, Decimal(rho.numerator)), Decimal(rho.denominator))
    gain = do.subtract(do.ln(do.divide(above, order)), do.divide(do.add(log_delta, do.ln(order)), above))
    return max(Fraction(do.add(do.add(cost, gain), _LOSS)), Fraction(0))
