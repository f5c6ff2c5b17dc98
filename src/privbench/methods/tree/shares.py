"""Dividing a budget exactly: parts by weights that are floats, and never more in all than there was."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

STEPS = 2**48


def divided(amount: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Parts of an amount in proportion to weights, rounded down.

    >>> [str(part) for part in divided(Fraction(1), [1, 3])]
    ['1/4', '3/4']
    """
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    return [amount * Fraction(floor(weight / total * STEPS), STEPS) for weight in exact]
