"""Predicates on one column, as values: `coverage` of a codec turns one into a share per code, `satisfying` into rows.

They follow SQL: a comparison with NULL is never true, and text is compared by code point.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array, whole_numbers
from privbench.encode.scalar import number_of
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind, SqlType

_Value = TypeVar("_Value", Fraction, str)
Mask = NDArray[np.bool_]
_INT64 = np.iinfo(np.int64)


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


def satisfying(where: str, of: SqlType, values: pa.Array | pa.ChunkedArray, predicates: Sequence[Predicate]) -> Mask:
    """Tell which values satisfy all predicates, as SQL has it: a comparison with NULL is never true.

    >>> from privbench.schema.types import parse_type
    >>> satisfying("t.c", parse_type("INTEGER"), pa.array([1, 2, None], pa.int32()), [Between(low=1.5)]).tolist()
    [False, True, False]
    """
    column = one_array(values)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    mask = np.ones(len(column), bool)
    for predicate in predicates:
        nulls, others = parts_of(predicate)
        for part in nulls:
            mask &= valid if part.negated else ~valid
        for other in others:
            satisfied = _text(column, other) if of.kind is Kind.TEXT else _numbers(where, of, column, other)
            mask &= valid & satisfied
    return mask


def _text(column: pa.Array, predicate: OfValues) -> Mask:
    if isinstance(predicate, Prefix):
        mask = pc.starts_with(column, pattern=predicate.text)
    elif isinstance(predicate, In):
        mask = pc.is_in(column, value_set=pa.array([str(v) for v in predicate.values], column.type))
    else:
        mask = pa.array(np.ones(len(column), bool))
        if predicate.low is not None:
            compare = pc.greater_equal if predicate.include_low else pc.greater
            mask = pc.and_(mask, compare(column, str(predicate.low)))
        if predicate.high is not None:
            compare = pc.less_equal if predicate.include_high else pc.less
            mask = pc.and_(mask, compare(column, str(predicate.high)))
    return np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False))


def _numbers(where: str, of: SqlType, column: pa.Array, predicate: OfValues) -> Mask:
    if isinstance(predicate, Prefix):
        return np.zeros(len(column), bool)
    if of.kind is Kind.FLOAT:
        return _floats(where, of, column.fill_null(0).cast(pa.float64()).to_numpy(zero_copy_only=False), predicate)
    numbers = whole_numbers(of, column)
    if isinstance(predicate, In):
        wanted = [number_of(where, of, v) for v in predicate.values]
        whole = [n.numerator for n in wanted if n.denominator == 1 and _INT64.min <= n <= _INT64.max]
        return np.isin(numbers, np.array(whole, np.int64))
    mask = np.ones(len(numbers), bool)
    if predicate.low is not None:
        mask &= _at_least(numbers, number_of(where, of, predicate.low), included=predicate.include_low)
    if predicate.high is not None:
        mask &= ~_at_least(numbers, number_of(where, of, predicate.high), included=not predicate.include_high)
    return mask


def _at_least(numbers: NDArray[np.int64], bound: Fraction, *, included: bool) -> Mask:
    """Which numbers are at or above (not included: above) the bound."""
    first = ceil(bound) if included else floor(bound) + 1
    if first > _INT64.max:
        return np.zeros(len(numbers), bool)
    return np.asarray(numbers >= max(first, _INT64.min))


def _floats(where: str, of: SqlType, numbers: NDArray[np.float64], predicate: Between | In) -> Mask:
    if isinstance(predicate, In):
        return np.isin(numbers, [float(number_of(where, of, v)) for v in predicate.values])
    mask = np.ones(len(numbers), bool)
    if predicate.low is not None:
        low = float(number_of(where, of, predicate.low))
        mask &= numbers >= low if predicate.include_low else numbers > low
    if predicate.high is not None:
        high = float(number_of(where, of, predicate.high))
        mask &= numbers <= high if predicate.include_high else numbers < high
    return mask
