"""Which values of a column satisfy predicates, and which rows keys name: exact answers on rows that are at hand."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import whole_numbers
from privbench.encode.layout import one_array
from privbench.encode.predicate import Between, In, OfValues, Predicate, Prefix, parts_of
from privbench.encode.scalar import number_of
from privbench.schema.types import Kind, SqlType

Mask = NDArray[np.bool_]
_INT64 = np.iinfo(np.int64)


def satisfying(where: str, of: SqlType, values: pa.Array | pa.ChunkedArray, predicates: Sequence[Predicate]) -> Mask:
    """Tell which values satisfy all predicates, as SQL has it: a comparison with NULL is never true.

    >>> from privbench.schema.types import parse_type
    >>> satisfying("t.c", parse_type("INTEGER"), pa.array([1, 2, None], pa.int32()), [Between(low=1.5)]).tolist()
    [False, True, False]
    """
    column = one_array(values)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    found = np.ones(len(column), bool)
    for predicate in predicates:
        nulls, others = parts_of(predicate)
        for part in nulls:
            found &= valid if part.negated else ~valid
        for other in others:
            met = _text(column, other) if of.kind is Kind.TEXT else _numbers(where, of, column, other)
            found &= valid & met
    return found


def rows_named(keys: Sequence[pa.Array], referenced: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Find for each key, given column by column, the row of the referenced columns that it names; -1 for none."""
    packed_keys = np.zeros(len(keys[0]), np.int64)
    packed_rows = np.zeros(len(referenced[0]), np.int64)
    missing = np.zeros(len(keys[0]), bool)
    for key, target in zip(map(one_array, keys), map(one_array, referenced), strict=True):
        values = target.unique()
        at = pc.index_in(key.cast(values.type), value_set=values)
        missing |= ~(at.is_valid() if key.null_count == 0 else pc.and_(at.is_valid(), key.is_valid())).to_numpy(
            zero_copy_only=False
        )
        radix = len(values) + 1
        packed_keys = packed_keys * radix + at.fill_null(0).to_numpy(zero_copy_only=False)
        packed_rows = packed_rows * radix + pc.index_in(target, value_set=values).to_numpy(zero_copy_only=False)
        both, inverse = np.unique(np.concatenate([packed_keys, packed_rows]), return_inverse=True)
        assert len(both) < _INT64.max  # noqa: S101  renumbered, so that the next column cannot overflow
        packed_keys, packed_rows = inverse[: len(packed_keys)], inverse[len(packed_keys) :]
    order = np.argsort(packed_rows, kind="stable")
    if not len(order):
        return np.full(len(packed_keys), -1, np.int64)
    places = np.minimum(np.searchsorted(packed_rows[order], packed_keys), len(order) - 1)
    rows = order[places]
    return np.where(missing | (packed_rows[rows] != packed_keys), -1, rows)


def _text(column: pa.Array, predicate: OfValues) -> Mask:
    if isinstance(predicate, Prefix):
        met = pc.starts_with(column, pattern=predicate.text)
    elif isinstance(predicate, In):
        met = pc.is_in(column, value_set=pa.array([str(v) for v in predicate.values], column.type))
    else:
        met = pa.array(np.ones(len(column), bool))
        if predicate.low is not None:
            compare = pc.greater_equal if predicate.include_low else pc.greater
            met = pc.and_(met, compare(column, str(predicate.low)))
        if predicate.high is not None:
            compare = pc.less_equal if predicate.include_high else pc.less
            met = pc.and_(met, compare(column, str(predicate.high)))
    return np.asarray(met.fill_null(False).to_numpy(zero_copy_only=False))


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
    found = np.ones(len(numbers), bool)
    if predicate.low is not None:
        found &= _at_least(numbers, number_of(where, of, predicate.low), included=predicate.include_low)
    if predicate.high is not None:
        found &= ~_at_least(numbers, number_of(where, of, predicate.high), included=not predicate.include_high)
    return found


def _at_least(numbers: NDArray[np.int64], bound: Fraction, *, included: bool) -> Mask:
    """Which numbers are at or above (not included: above) the bound."""
    first = ceil(bound) if included else floor(bound) + 1
    if first > _INT64.max:
        return np.zeros(len(numbers), bool)
    return np.asarray(numbers >= max(first, _INT64.min))


def _floats(where: str, of: SqlType, numbers: NDArray[np.float64], predicate: Between | In) -> Mask:
    if isinstance(predicate, In):
        return np.isin(numbers, [float(number_of(where, of, v)) for v in predicate.values])
    found = np.ones(len(numbers), bool)
    if predicate.low is not None:
        low = float(number_of(where, of, predicate.low))
        found &= numbers >= low if predicate.include_low else numbers > low
    if predicate.high is not None:
        high = float(number_of(where, of, predicate.high))
        found &= numbers <= high if predicate.include_high else numbers < high
    return found
