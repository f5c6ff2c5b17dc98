"""Values that enough entities have: Gaussian noise on the counts of those that are there, and a threshold.

Which values are there is itself private, so that a value of one entity alone must hardly ever come out: the probability
of that is a delta, beside the rho that the noise costs (docs/proofs/domains.md). It is bounded in exact arithmetic.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.gaussian import discrete_gaussian
from privbench.privacy.noise import Entropy

Integers = NDArray[np.int64]

LEAST_THRESHOLD: Final = 2
_UP: Final = Context(prec=60, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
_FARTHEST: Final = 1000
"""exp(-x) is taken for that of this x where x is larger: small enough for any delta, and written with few digits."""
_LEAST_PROBABILITY: Final = Fraction(1, 10**100)
_ROOT: Final = Fraction(25066282, 10**7)
"""Just below the root of 2 pi."""


def tail_probability(scale: Fraction, threshold: int) -> Fraction:
    """The probability, rounded up, that a count of 1 with Gaussian noise of this scale reaches the threshold.

    With m = threshold - 1 > 0, the sum of exp(-k**2 / (2 scale**2)) over k >= m is at most that of k = m times
    1 + scale**2 / m, and over all k at least 1 and at least scale * sqrt(2 pi).

    >>> float(tail_probability(Fraction(20), 130)) < 1e-10 < float(tail_probability(Fraction(20), 125))
    True
    """
    if threshold < LEAST_THRESHOLD:
        raise ValueError(f"a threshold of {threshold} would hide no value")
    beyond = threshold - 1
    power = min(Fraction(beyond**2) / (2 * scale**2), Fraction(_FARTHEST))
    first = _UP.next_plus(_UP.exp(_UP.divide(Decimal(-power.numerator), Decimal(power.denominator))))
    return Fraction(first) * (1 + scale**2 / beyond) / max(Fraction(1), _ROOT * scale)


def least_threshold(scale: Fraction, probability: Fraction) -> int:
    """The least threshold that a count of 1 passes with no more than that probability.

    >>> least_threshold(Fraction(1, 100), Fraction(1, 10**9))
    2
    """
    if probability < _LEAST_PROBABILITY:
        raise ValueError(f"no threshold for a probability of {probability}")
    high = LEAST_THRESHOLD
    while tail_probability(scale, high) > probability:
        high *= 2
    low = LEAST_THRESHOLD
    while low < high:
        middle = (low + high) // 2
        if tail_probability(scale, middle) > probability:
            low = middle + 1
        else:
            high = middle
    return low


def passing(
    counts: Integers, *, threshold: int, scale: Fraction, entropy: Entropy
) -> tuple[NDArray[np.bool_], Integers]:
    """Draw which of the values that are there come out, given how many entities have each, and their noisy counts."""
    noisy = counts + discrete_gaussian(counts.size, scale, entropy)
    kept = noisy >= threshold
    return kept, noisy[kept]
