"""Predicates on one column, as values: what `coverage` of a codec turns into a share per code.

They follow SQL: a comparison with NULL is never true, and text is compared by code point.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from privbench.schema.domain import Scalar

_Value = TypeVar("_Value", Fraction, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """From low to high; None leaves a side open (and counts it as included, so that equal tests are equal values)."""

    low: Scalar | None = None
    high: Scalar | None = None
    include_low: bool = True
    include_high: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "include_low", self.include_low or self.low is None)
        object.__setattr__(self, "include_high", self.include_high or self.high is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """Equal to one of the values."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """NULL, or (negated) not NULL."""

    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """Text that starts with these characters, upper and lower case told apart; never true of other types."""

    text: str


Predicate = Between | In | IsNull | Prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    """Every one of several predicates on the same column; none at all is always true."""

    parts: tuple[Predicate, ...]


OfValues = Between | In | Prefix
"""The predicates that look at a value."""


def parts_of(predicate: Predicate | All) -> tuple[tuple[IsNull, ...], tuple[OfValues, ...]]:
    """Sort the parts of a predicate into those about NULL and those about values."""
    parts = predicate.parts if isinstance(predicate, All) else (predicate,)
    return (
        tuple(p for p in parts if isinstance(p, IsNull)),
        tuple(p for p in parts if not isinstance(p, IsNull)),
    )


def conjunction(predicates: Iterable[OfValues], read: Callable[[Scalar], _Value]) -> Callable[[_Value], bool]:
    """Return several predicates as one test of single values."""
    tests = [condition(p, read) for p in predicates]
    return lambda value: all(test(value) for test in tests)


def condition(predicate: OfValues, read: Callable[[Scalar], _Value]) -> Callable[[_Value], bool]:
    """Return the predicate as a test of single values, after `read` has turned its own values into comparable ones.

    >>> condition(Between(low="b", include_low=False), str)("b")
    False
    >>> condition(Prefix(text="ab"), str)("abc")
    True
    """
    if isinstance(predicate, Prefix):
        return lambda value: isinstance(value, str) and value.startswith(predicate.text)
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
