"""What epsilon follows from rho and delta, computed again by the verifier: rounded up, and only with what it needs.

Read by `verify.py` alone, and like it: the standard library, and no code of what wrote the receipt.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

_DIGITS = Context(prec=80)
_MARGIN = Decimal("1e-25")
"""More than what so many digits can lose below, where every operation and logarithm is correctly rounded."""
_STEPS = 120
_LEAST_RHO = Fraction(1, 2**100)
"""Smaller ones are taken for this one, lest floats run out; the true epsilon is below."""


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
    return max(Fraction(do.add(do.add(cost, gain), _MARGIN)), Fraction(0))
