"""From epsilon and delta to rho, so that rho-zCDP implies the promise.

The bound of Canonne, Kamath and Steinke (2020) holds for each order alpha > 1 of Renyi divergence: rho-zCDP is
(epsilon, delta)-DP for epsilon = alpha rho + log(1 - 1/alpha) - (log delta + log alpha) / (alpha - 1). A good order is
searched in floats, which can only cost utility; what is promised is then computed for that order, rounded against us.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from privbench.privacy.events import FINE_GRID

_EXACT: Final = Context(prec=60)
"""The logarithm of this arithmetic is correctly rounded, like its other operations."""
_MARGIN: Final = Decimal("1e-25")
"""Far more than what 60 digits can lose below, far less than any epsilon."""
_SPARE: Final = Fraction(2**40 - 1, 2**40)
"""The part of rho that is used: the rest covers a verifier that searches less well, and what the sampler cuts off."""


def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho on the grid (nearly) of which (epsilon, delta) follows.

    >>> round(float(largest_rho(Fraction(16, 5), Fraction(1, 10**6))), 5)
    0.20805
    """
    if epsilon <= 0 or not 0 < delta < 1:
        raise ValueError(f"no rho for epsilon {epsilon} and delta {delta}")
    rho = _rho(epsilon, delta, _best_order(float(epsilon), math.log(delta.numerator) - math.log(delta.denominator)))
    return Fraction(math.floor(rho * _SPARE * FINE_GRID), FINE_GRID)


def _best_order(epsilon: float, log_delta: float) -> Decimal:
    """The alpha that allows about the largest rho: a scan of alpha - 1 by powers, then closer and closer around."""

    def rho(exponent: float) -> float:
        above = math.exp(exponent)  # alpha - 1
        gain = math.log1p(1 / above) + (log_delta + math.log1p(above)) / above
        return (epsilon + gain) / (1 + above)

    best, width = max((x * 0.25 for x in range(-120, 161)), key=rho), 0.25
    while width > 1e-9:
        best = max((best + width * k / 8 for k in range(-8, 9)), key=rho)
        width /= 4
    return 1 + Decimal(math.exp(best))


def _rho(epsilon: Fraction, delta: Fraction, order: Decimal) -> Fraction:
    """What the order allows, rounded down."""
    do = _EXACT
    above = do.subtract(order, Decimal(1))
    log_delta = do.subtract(do.ln(Decimal(delta.numerator)), do.ln(Decimal(delta.denominator)))
    logs = do.divide(do.add(log_delta, do.ln(order)), above)
    gain = do.subtract(logs, do.ln(do.divide(above, order)))
    whole = do.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(do.divide(do.subtract(do.add(whole, gain), _MARGIN), order))
