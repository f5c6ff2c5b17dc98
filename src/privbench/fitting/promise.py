"""Epsilon and delta as the publisher gives them, read exactly, and refused where they promise nothing."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from privbench.errors import SpecError
from privbench.methods.method import Method
from privbench.methods.registry import BUILT_IN, find_method

LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), Fraction(10**6)
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**30), Fraction(1, 10**3)

Number = Fraction | float | str


def parse_epsilon(epsilon: Number) -> Fraction:
    """Read a privacy budget exactly; SpecError unless it is a positive number.

    >>> parse_epsilon("3.2")
    Fraction(16, 5)
    """
    value = _exact(epsilon)
    if value is None or value <= 0:
        raise SpecError(f"epsilon is {epsilon}: it must be a number above 0, such as 3.2.")
    if value < LEAST_EPSILON:
        raise SpecError(f"epsilon is {epsilon}: below {float(LEAST_EPSILON):g} nothing can be measured.")
    if value > LARGEST_EPSILON:
        raise SpecError(f"epsilon is {epsilon}: above {float(LARGEST_EPSILON):g} nothing is protected.")
    return value


def parse_delta(delta: Number) -> Fraction:
    """Read a delta exactly; SpecError unless it is 0 or small.

    >>> parse_delta("1e-9"), parse_delta(0)
    (Fraction(1, 1000000000), Fraction(0, 1))
    """
    value = _exact(delta)
    if value is None or (value != 0 and not LEAST_DELTA <= value < LARGEST_DELTA):
        raise SpecError(
            f"delta is {delta}: it must be 0, or from {float(LEAST_DELTA):g} to below {float(LARGEST_DELTA):g}. It "
            "must be far below 1/(number of entities), such as 1e-9: with a larger one, publishing a random entity "
            "would already be allowed."
        )
    return value


def check_method(method: Method[Any], delta: Fraction) -> None:
    """Refuse a delta for a method that charges blocks of rows in parallel: rho does not compose so."""
    if delta and method.parallel_composition:
        taking = [name for name in BUILT_IN if not find_method(name).parallel_composition]
        others = ", ".join(f"`--method {name}`" for name in taking)
        raise SpecError(
            f"method {method.name} takes no delta: it splits the rows of a table and charges the parts in parallel, "
            f"which only pure epsilon allows. Leave delta out, or use {others}."
        )


def _exact(value: Number) -> Fraction | None:
    """A finite number as it is written."""
    if isinstance(value, Fraction):
        return value
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return Fraction(number) if number.is_finite() else None
