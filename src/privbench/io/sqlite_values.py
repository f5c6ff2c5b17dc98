"""Values in SQLite, which has no dates, booleans or decimals of its own, to Arrow and back without loss.

Dates, times and timestamps are ISO text, booleans 0 and 1. A DECIMAL is a number, so that comparisons work; a
decimal of more than 15 digits, which SQLite would round, is kept as its digits in a BLOB. NaN becomes NULL.
SQLite lets a column hold values of any type: each is checked against the declared one.
"""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from privbench.io.cast import CAST_ERRORS, cast_column, misfit
from privbench.schema.types import Kind, SqlType

Value = int | float | str | bytes | None
_EXACT_DIGITS = 15
_ALLOWED: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.FLOAT: (float, int),
    Kind.DECIMAL: (int, float, str, bytes),
    Kind.BOOLEAN: (int,),
    Kind.TEXT: (str, int, float),
    Kind.DATE: (str,),
    Kind.TIME: (str,),
    Kind.TIMESTAMP: (str,),
}


def to_arrow(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    """Turn the values of a column into Arrow; one of another type is a DataError that shows it."""
    strangers = {type(v) for v in values} - {type(None), *_ALLOWED[of.kind]}
    if strangers:
        raise misfit(where, next(v for v in values if type(v) in strangers), of)
    if of.kind is Kind.TEXT:
        return pa.array([v if v is None else str(v) for v in values], pa.string())
    if of.kind is Kind.DECIMAL:
        return _decimals(values, of, where)
    if of.kind in (Kind.INTEGER, Kind.FLOAT):
        return _numbers(values, of, where)
    return cast_column(pa.array(values), of, where) if any(v is not None for v in values) else _nulls(values, of)


def from_arrow(array: pa.Array) -> list[Value]:
    """Turn an Arrow column into what SQLite stores."""
    kind = array.type
    if pa.types.is_decimal(kind):
        return [None if v is None else _stored(v) for v in array.to_pylist()]
    if pa.types.is_temporal(kind):
        array = pc.cast(array, pa.string())
    elif pa.types.is_boolean(kind):
        array = pc.cast(array, pa.int8())
    values: list[Value] = array.to_pylist()
    return values


def _numbers(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    try:
        return pa.array(values, of.arrow)
    except (*CAST_ERRORS, OverflowError):
        raise misfit(where, next(v for v in values if v is not None and not _holds(v, of)), of) from None


def _holds(value: Value, of: SqlType) -> bool:
    try:
        pa.array([value], of.arrow)
    except (*CAST_ERRORS, OverflowError):
        return False
    return True


def _decimals(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    result: list[Decimal | None] = []
    for value in values:
        number = None if value is None else _decimal(value)
        if value is not None and (number is None or not _holds_decimal(number, of)):
            raise misfit(where, value, of)
        result.append(number)
    return pa.array(result, of.arrow)


def _decimal(value: int | float | str | bytes) -> Decimal | None:
    try:
        if isinstance(value, float):
            return Decimal(f"{value:.{_EXACT_DIGITS}g}")
        return Decimal(value.decode() if isinstance(value, bytes) else value)
    except (InvalidOperation, UnicodeDecodeError):
        return None


def _holds_decimal(number: Decimal, of: SqlType) -> bool:
    if not number.is_finite():
        return False
    whole, _, decimals = f"{number.copy_abs():f}".partition(".")
    return len(decimals.rstrip("0")) <= of.scale and len(whole.lstrip("0")) <= of.precision - of.scale


def _stored(value: Decimal) -> Value:
    """Choose how to keep a decimal; no arithmetic here, as that would round to 28 digits."""
    text = f"{value:f}"
    whole, _, decimals = text.partition(".")
    if not decimals.strip("0") and -(2**63) <= int(whole) < 2**63:
        return int(whole)
    digits = (whole + decimals).strip("-0")
    return float(text) if len(digits) <= _EXACT_DIGITS else text.encode()


def _nulls(values: Sequence[Value], of: SqlType) -> pa.Array:
    return pa.nulls(len(values), of.arrow)
