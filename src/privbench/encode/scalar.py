"""Families of ordered types, and declared values as exact numbers: what `0.01`, `"2020-01-31"` or `"1h"` stands for.

Every type but text has numbers behind its values: an INTEGER or FLOAT is its own number, a DECIMAL counts units
of its last digit, a DATE counts days since 1970, TIME and TIMESTAMP count microseconds. Exact rationals keep
edges, steps and predicates free of rounding. What the codecs must know of a new type is its `Family`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
_DURATION = re.compile(r"^\s*(\d+)\s*(us|ms|s|min|h|d)\s*$")
_MAX_EXPONENT = 400
_FIRST_DAY = Fraction((date(2000, 1, 1) - _EPOCH.date()).days)
"""The day from which rows are numbered."""
_ROUND = (Fraction(100), Fraction(10), Fraction(5))
_TIMES = tuple(
    Fraction(count * MICROSECONDS[unit])
    for count, unit in ((1, "d"), (1, "h"), (15, "min"), (1, "min"), (1, "s"), (1, "ms"))
)
_TENTHS = tuple(Fraction(1, 10**k) for k in range(7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the codecs know of a family of ordered types. Each function takes the type, whose facts it may need."""

    read: Callable[[SqlType, Scalar], Fraction]
    """The number behind a declared value; ValueError if it has none."""
    write: Callable[[SqlType, Fraction], Scalar]
    """A number as the spec file writes it: the way back."""
    bounds: Callable[[SqlType], tuple[int, int]]
    """The smallest and the largest number that a value we write may have."""
    example: str = "a number"
    """What to write in a spec, for messages."""
    steps: Callable[[SqlType], tuple[Fraction, ...]] = lambda _: ()
    """Round steps on which values may lie, coarsest first."""
    numeric: bool = False
    """Whether values are amounts, of which a double is twice as much."""
    microseconds: int | None = None
    """How long one unit of the number lasts, where values are times."""
    beyond: bool = False
    """Whether a spec can name the number right after the largest."""
    first_row: Fraction = Fraction(0)
    """The number from which rows are numbered."""
    row_step: Callable[[SqlType], Fraction] = lambda _: Fraction(1)
    """How far apart the numbers of rows are."""


def family_of(kind: SqlType) -> Family:
    """Find the family of a type that is neither text nor without a codec."""
    return _FAMILIES[kind.kind]


def counts_microseconds(kind: SqlType) -> bool:
    """Tell whether the values of a type are times of day or moments."""
    return kind.kind in _FAMILIES and _FAMILIES[kind.kind].microseconds == 1


def number_of(where: str, kind: SqlType, value: Scalar) -> Fraction:
    """Return the exact number behind a declared value; it may lie off the type's resolution or outside its bounds.

    >>> number_of("t.price", SqlType(kind=Kind.DECIMAL, sql="DECIMAL(9,2)", precision=9, scale=2), "1.5")
    Fraction(150, 1)
    """
    family = _FAMILIES.get(kind.kind, _FAMILIES[Kind.FLOAT])
    try:
        return family.read(kind, value)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise SpecError(f"{where}: {value!r} does not fit {kind.sql}; write {family.example}.") from error


def step_of(where: str, kind: SqlType, step: Scalar) -> Fraction:
    """Return the exact number behind a declared step: a plain number (days, seconds) or a duration like "15min"."""
    unit = family_of(kind).microseconds
    duration = _DURATION.match(step) if isinstance(step, str) and unit else None
    try:
        if duration and unit:
            number = Fraction(int(duration[1]) * MICROSECONDS[duration[2]], unit)
        elif counts_microseconds(kind):
            number = _decimal(step) * MICROSECONDS["s"]
        else:
            number = _decimal(step) * 10**kind.scale
    except (ValueError, InvalidOperation) as error:
        wanted = 'a duration like "1d", "1h", "15min", "1s"' if unit else "a number"
        raise SpecError(f"{where}: step {step!r} is not a step for {kind.sql}; write {wanted}.") from error
    if number <= 0 or (kind.kind is not Kind.FLOAT and number.denominator != 1):
        raise SpecError(f"{where}: step {step!r} must be a positive multiple of the smallest step of {kind.sql}.")
    return number


def scalar_of(kind: SqlType, number: Fraction) -> Scalar:
    """Write a number of the type as the spec file does: the way back from `number_of`."""
    return family_of(kind).write(kind, number)


def decimal_of(kind: SqlType, number: Fraction) -> Decimal:
    """Return the DECIMAL value of a number, exact at any of its 38 digits (arithmetic on Decimal would round)."""
    return Decimal(f"{int(number)}E-{kind.scale}")


def step_scalar(kind: SqlType, step: Fraction) -> Scalar:
    """Write a step as the spec file does: the way back from `step_of`."""
    if counts_microseconds(kind):
        unit = max((u for u in MICROSECONDS if step % MICROSECONDS[u] == 0), key=lambda u: MICROSECONDS[u])
        return f"{int(step) // MICROSECONDS[unit]}{unit}"
    return scalar_of(kind, step) if family_of(kind).microseconds is None else int(step)


def bounds_of(kind: SqlType) -> tuple[int, int]:
    """Return the smallest and largest number that a value we write may have (dates: years 1 to 9999)."""
    return family_of(kind).bounds(kind)


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


def _duration(value: Scalar) -> Fraction:
    text = value if isinstance(value, str) else ""
    match = _DURATION.match(text.removeprefix("-"))
    if match is None:
        return _decimal(value) * MICROSECONDS["s"]
    return Fraction(int(match[1]) * MICROSECONDS[match[2]] * (-1 if text.startswith("-") else 1))


def _write_duration(number: int) -> str:
    unit = max((u for u in MICROSECONDS if number % MICROSECONDS[u] == 0), key=lambda u: MICROSECONDS[u])
    return f"{number // MICROSECONDS[unit]}{unit}" if number else "0s"


def _text(value: Scalar) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value


def _amount(kind: SqlType, value: Scalar) -> Fraction:
    return _decimal(value) * Fraction(10**kind.scale)


def _decimal_bounds(kind: SqlType) -> tuple[int, int]:
    return 1 - 10**kind.precision, 10**kind.precision - 1


def _float_bounds(kind: SqlType) -> tuple[int, int]:
    largest = (2**24 - 1) * 2**104 if kind.bits == 32 else (2**53 - 1) * 2**971
    return -largest, largest


def _write_decimal(kind: SqlType, number: Fraction) -> Scalar:
    return f"{decimal_of(kind, number):f}" if kind.scale else int(number)


def _write_time(_: SqlType, number: Fraction) -> Scalar:
    return "24:00:00" if number == DAY else (_EPOCH + timedelta(microseconds=int(number))).time().isoformat()


def _decimal_steps(kind: SqlType) -> tuple[Fraction, ...]:
    return (*(Fraction(10**k) for k in range(kind.scale, 1, -1)), *_ROUND[1:]) if kind.scale else _ROUND


_FAMILIES: Mapping[Kind, Family] = {
    Kind.INTEGER: Family(
        read=_amount,
        write=lambda _, number: int(number),
        bounds=lambda kind: kind.bounds,
        steps=lambda _: _ROUND,
        numeric=True,
        beyond=True,
        first_row=Fraction(1),
    ),
    Kind.FLOAT: Family(
        read=_amount,
        write=lambda _, number: float(number),
        bounds=_float_bounds,
        steps=lambda _: _TENTHS,
        numeric=True,
        first_row=Fraction(1),
    ),
    Kind.DECIMAL: Family(
        read=_amount,
        write=_write_decimal,
        bounds=_decimal_bounds,
        steps=_decimal_steps,
        numeric=True,
        beyond=True,
        first_row=Fraction(1),
        row_step=lambda kind: Fraction(10**kind.scale if kind.precision > kind.scale else 1),
    ),
    Kind.BOOLEAN: Family(
        read=lambda _, value: Fraction(_boolean(value)),
        write=lambda _, number: int(number),
        bounds=lambda _: (0, 1),
        example="true or false",
    ),
    Kind.DATE: Family(
        read=lambda _, value: Fraction(_timestamp(value), DAY),
        write=lambda _, number: (_EPOCH.date() + timedelta(days=int(number))).isoformat(),
        bounds=lambda _: (_FIRST, _LAST),
        example='a date like "2020-01-31"',
        microseconds=DAY,
        first_row=_FIRST_DAY,
    ),
    Kind.TIME: Family(
        read=lambda _, value: Fraction(_time(value)),
        write=_write_time,
        bounds=lambda _: (0, DAY - 1),
        example='a time like "13:45:00"',
        steps=lambda _: tuple(step for step in _TIMES if step < DAY),
        microseconds=1,
        beyond=True,
    ),
    Kind.DURATION: Family(
        read=lambda _, value: _duration(value),
        write=lambda _, number: _write_duration(int(number)),
        bounds=lambda _: (-(2**62), 2**62 - 1),
        example='a duration like "3d", "-2h" or "90s", or a number of seconds',
        steps=lambda _: _TIMES,
        numeric=True,
        microseconds=1,
        beyond=True,
    ),
    Kind.TIMESTAMP: Family(
        read=lambda _, value: Fraction(_timestamp(value)),
        write=lambda _, number: (_EPOCH + timedelta(microseconds=int(number))).isoformat(sep=" "),
        bounds=lambda _: (_FIRST * DAY, _LAST * DAY + DAY - 1),
        example='a timestamp like "2020-01-31 13:45:00"',
        steps=lambda _: _TIMES,
        microseconds=1,
        first_row=_FIRST_DAY * DAY,
        row_step=lambda _: Fraction(MICROSECONDS["s"]),
    ),
}
