"""Declared values as exact numbers: what `0.01`, `"2020-01-31"` or `"1h"` in a spec stands for.

Every type but text has numbers behind its values: an INTEGER or FLOAT is its own number, a DECIMAL counts units
of its last digit, a DATE counts days since 1970, TIME and TIMESTAMP count microseconds. Exact rationals keep
edges, steps and predicates free of rounding.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from privbench.errors import SpecError
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind, SqlType

MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
DAY = MICROSECONDS["d"]
_EPOCH = datetime(1970, 1, 1)
_FIRST = (date.min - _EPOCH.date()).days
_LAST = (date.max - _EPOCH.date()).days
_BOUNDS = {
    Kind.BOOLEAN: (0, 1),
    Kind.DATE: (_FIRST, _LAST),
    Kind.TIME: (0, DAY - 1),
    Kind.TIMESTAMP: (_FIRST * DAY, _LAST * DAY + DAY - 1),
}
_DURATION = re.compile(r"^\s*(\d+)\s*(us|ms|s|min|h|d)\s*$")
_MAX_EXPONENT = 400
_EXAMPLES = {
    Kind.BOOLEAN: "true or false",
    Kind.DATE: 'a date like "2020-01-31"',
    Kind.TIME: 'a time like "13:45:00"',
    Kind.TIMESTAMP: 'a timestamp like "2020-01-31 13:45:00"',
}


def number_of(where: str, kind: SqlType, value: Scalar) -> Fraction:
    """Return the exact number behind a declared value; it may lie off the type's resolution or outside its bounds.

    >>> number_of("t.price", SqlType(kind=Kind.DECIMAL, sql="DECIMAL(9,2)", precision=9, scale=2), "1.5")
    Fraction(150, 1)
    """
    try:
        match kind.kind:
            case Kind.BOOLEAN:
                return Fraction(_boolean(value))
            case Kind.DATE:
                return Fraction(_timestamp(value), DAY)
            case Kind.TIME:
                return Fraction(_time(value))
            case Kind.TIMESTAMP:
                return Fraction(_timestamp(value))
            case _:
                return _decimal(value) * Fraction(10**kind.scale)
    except (ValueError, InvalidOperation, OverflowError) as error:
        wanted = _EXAMPLES.get(kind.kind, "a number")
        raise SpecError(f"{where}: {value!r} does not fit {kind.sql}; write {wanted}.") from error


def step_of(where: str, kind: SqlType, step: Scalar) -> Fraction:
    """Return the exact number behind a declared step: a plain number (days, seconds) or a duration like "15min"."""
    unit = {Kind.DATE: DAY, Kind.TIME: 1, Kind.TIMESTAMP: 1}.get(kind.kind)
    duration = _DURATION.match(step) if isinstance(step, str) and unit else None
    try:
        if duration and unit:
            number = Fraction(int(duration[1]) * MICROSECONDS[duration[2]], unit)
        elif kind.kind in (Kind.TIME, Kind.TIMESTAMP):
            number = _decimal(step) * MICROSECONDS["s"]
        else:
            number = _decimal(step) * 10**kind.scale
    except (ValueError, InvalidOperation) as error:
        wanted = 'a duration like "1d", "1h", "15min", "1s"' if unit else "a number"
        raise SpecError(f"{where}: step {step!r} is not a step for {kind.sql}; write {wanted}.") from error
    if number <= 0 or (kind.kind is not Kind.FLOAT and number.denominator != 1):
        raise SpecError(f"{where}: step {step!r} must be a positive multiple of what {kind.sql} can tell apart.")
    return number


def scalar_of(kind: SqlType, number: Fraction) -> Scalar:
    """Write a number of the type as the spec file does: the way back from `number_of`."""
    match kind.kind:
        case Kind.FLOAT:
            return float(number)
        case Kind.DECIMAL if kind.scale:
            return f"{decimal_of(kind, number):f}"
        case Kind.DATE:
            return (_EPOCH.date() + timedelta(days=int(number))).isoformat()
        case Kind.TIME:
            return "24:00:00" if number == DAY else (_EPOCH + timedelta(microseconds=int(number))).time().isoformat()
        case Kind.TIMESTAMP:
            return (_EPOCH + timedelta(microseconds=int(number))).isoformat(sep=" ")
        case _:
            return int(number)


def decimal_of(kind: SqlType, number: Fraction) -> Decimal:
    """Return the DECIMAL value of a number, exact at any of its 38 digits (arithmetic on Decimal would round)."""
    return Decimal(f"{int(number)}E-{kind.scale}")


def step_scalar(kind: SqlType, step: Fraction) -> Scalar:
    """Write a step as the spec file does: the way back from `step_of`."""
    if kind.kind in (Kind.TIME, Kind.TIMESTAMP):
        unit = max((u for u in MICROSECONDS if step % MICROSECONDS[u] == 0), key=lambda u: MICROSECONDS[u])
        return f"{int(step) // MICROSECONDS[unit]}{unit}"
    return int(step) if kind.kind is Kind.DATE else scalar_of(kind, step)


def bounds_of(kind: SqlType) -> tuple[int, int]:
    """Return the smallest and largest number that a value we write may have (dates: years 1 to 9999)."""
    if kind.kind is Kind.INTEGER:
        return kind.bounds
    if kind.kind in _BOUNDS:
        return _BOUNDS[kind.kind]
    if kind.kind is Kind.DECIMAL:
        largest = 10**kind.precision - 1
    else:
        largest = (2**24 - 1) * 2**104 if kind.bits == 32 else (2**53 - 1) * 2**971
    return -largest, largest


def _decimal(value: Scalar) -> Fraction:
    if isinstance(value, bool):
        raise ValueError("a boolean is not a number")
    number = Decimal(str(value))
    if not number.is_finite() or abs(number.adjusted()) > _MAX_EXPONENT:
        raise ValueError("not a finite number of a usable size")
    return Fraction(number)


def _boolean(value: Scalar) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a boolean")
    return value


def _timestamp(value: Scalar) -> int:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _time(value: Scalar) -> int:
    text = _text(value)
    if text == "24:00:00":
        return DAY
    moment = time.fromisoformat(text).replace(tzinfo=None)
    return (datetime.combine(_EPOCH, moment) - _EPOCH) // timedelta(microseconds=1)


def _text(value: Scalar) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value
