"""Predicates on one column, as values: what `coverage` of a codec turns into a share per code.

They follow SQL: a comparison with NULL is never true, and text is compared by code point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from privbench.schema.domain import Scalar

_Value = TypeVar("_Value", Fraction, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """From low to high; None leaves a side open."""

    low: Scalar | None = None
    high: Scalar | None = None
    include_low: bool = True
    include_high: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """Equal to one of the values."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """NULL, or (negated) not NULL."""

    negated: bool = False


Predicate = Between | In | IsNull


def condition(predicate: Between | In, read: Callable[[Scalar], _Value]) -> Callable[[_Value], bool]:
    """Return the predicate as a test of single values, after `read` has turned its own values into comparable ones.

    >>> condition(Between(low="b", include_low=False), str)("b")
    False
    """
    if isinstance(predicate, In):
        listed = {read(v) for v in predicate.values}
        return lambda value: value in listed
    low = None if predicate.low is None else read(predicate.low)
    high = None if predicate.high is None else read(predicate.high)

    def holds(value: _Value) -> bool:
        above = low is None or value > low or (predicate.include_low and value == low)
        below = high is None or value < high or (predicate.include_high and value == high)
        return above and below

    return holds
