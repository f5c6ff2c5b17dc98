"""SQL column types, reduced to what the codec and the writers need to know.

A `SqlType` is the public type of a column. Its `sql` text is what `schema.sql` shows; its `arrow` type is
what sources deliver and sinks receive, so that dates stay dates and decimals keep their scale.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from privbench.errors import SchemaError


class Kind(Enum):
    """The families of types that have a codec, and OTHER for the rest, whose columns are left out.

    No column is a DURATION: it is the difference of two times.
    """

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    OTHER = "other"


_INTEGERS = {
    "TINYINT": (8, True),
    "SMALLINT": (16, True),
    "INTEGER": (32, True),
    "BIGINT": (64, True),
    "UTINYINT": (8, False),
    "USMALLINT": (16, False),
    "UINTEGER": (32, False),
}
_ALIASES = {
    "INT": "INTEGER",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT4": "INTEGER",
    "INT8": "BIGINT",
    "SIGNED": "INTEGER",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "MEDIUMINT": "INTEGER",
    "SERIAL": "INTEGER",
    "BIGSERIAL": "BIGINT",
    "SMALLSERIAL": "SMALLINT",
    "FLOAT": "DOUBLE",
    "FLOAT4": "REAL",
    "FLOAT8": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "BOOL": "BOOLEAN",
    "LOGICAL": "BOOLEAN",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "CHARACTER VARYING": "VARCHAR",
    "NVARCHAR": "VARCHAR",
    "CHARACTER": "CHAR",
    "NCHAR": "CHAR",
    "BPCHAR": "VARCHAR",
    "CLOB": "VARCHAR",
    "TINYTEXT": "VARCHAR",
    "MEDIUMTEXT": "VARCHAR",
    "LONGTEXT": "VARCHAR",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "TIME WITHOUT TIME ZONE": "TIME",
    "TINYINT UNSIGNED": "UTINYINT",
    "SMALLINT UNSIGNED": "USMALLINT",
    "INTEGER UNSIGNED": "UINTEGER",
    "INT UNSIGNED": "UINTEGER",
    "MEDIUMINT UNSIGNED": "UINTEGER",
    "UINT": "UINTEGER",
    "BIGINT UNSIGNED": "HUGEINT",
    "UBIGINT": "HUGEINT",
}
DIFFERENCE_DIGITS = 18
"""Digits of a difference of decimals: more do not fit 64 bits."""
MAX_TYPE_TEXT = 100
"""No type name is longer; what an untrusted file says is not matched beyond this."""
_TYPE = re.compile(r"([A-Z][A-Z0-9_ ]*?) ?(?:\( ?([0-9]{1,10}) ?(?:, ?([0-9]{1,10}) ?)?\))?( [A-Z ]+)?")

_PLAIN_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.DURATION: pa.int64(),
    Kind.OTHER: pa.null(),
}
_FIXED: dict[str, dict[str, Any]] = {
    "HUGEINT": {"kind": Kind.DECIMAL, "sql": "DECIMAL(38,0)", "precision": 38},
    "REAL": {"kind": Kind.FLOAT, "bits": 32},
    "DOUBLE": {"kind": Kind.FLOAT, "bits": 64},
    "BOOLEAN": {"kind": Kind.BOOLEAN},
    "DATE": {"kind": Kind.DATE},
    "TIME": {"kind": Kind.TIME},
    "TIMESTAMP": {"kind": Kind.TIMESTAMP},
    "TIMESTAMPTZ": {"kind": Kind.TIMESTAMP, "timezone": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A column's type: its family, its SQL text and the facts of it that matter for values."""

    kind: Kind
    sql: str
    bits: int = 0
    signed: bool = True
    precision: int = 0
    scale: int = 0
    length: int | None = None
    timezone: bool = False

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that carries this column's values."""
        match self.kind:
            case Kind.INTEGER:
                return getattr(pa, f"{'' if self.signed else 'u'}int{self.bits}")()
            case Kind.FLOAT:
                return pa.float32() if self.bits == 32 else pa.float64()
            case Kind.DECIMAL:
                return pa.decimal128(self.precision, self.scale)
            case Kind.TIMESTAMP:
                return pa.timestamp("us", tz="UTC" if self.timezone else None)
            case _:
                return _PLAIN_ARROW[self.kind]

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value of an INTEGER type."""
        if self.signed:
            return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
        return 0, 2**self.bits - 1


def difference_type(kind: SqlType) -> SqlType:
    """The type of a difference of two values of a type: a number, of days for dates; of times a DURATION.

    >>> difference_type(parse_type("DATE")).sql
    'a number of days'
    """
    match kind.kind:
        case Kind.TIME | Kind.TIMESTAMP:
            return SqlType(kind=Kind.DURATION, sql="a duration")
        case Kind.DATE:
            return SqlType(kind=Kind.INTEGER, sql="a number of days", bits=64)
        case Kind.INTEGER:
            return SqlType(kind=Kind.INTEGER, sql=f"a difference of {kind.sql}", bits=64)
        case Kind.DECIMAL:
            return replace(kind, sql=f"a difference of {kind.sql}", precision=DIFFERENCE_DIGITS)
        case _:
            return replace(kind, sql=f"a difference of {kind.sql}")


def parse_type(text: str) -> SqlType:
    """Read a SQL type name in any common spelling.

    >>> parse_type("numeric(10, 2)").sql
    'DECIMAL(10,2)'
    >>> parse_type("int4").bounds
    (-2147483648, 2147483647)
    """
    match = _TYPE.fullmatch(" ".join(text.upper().split())) if len(text) <= MAX_TYPE_TEXT else None
    if match is None:
        raise SchemaError(_unsupported(text))
    name = match[1] + (match[4] or "")
    name = _ALIASES.get(name, name)
    first, second = (int(g) if g else None for g in (match[2], match[3]))
    if name in _INTEGERS:
        bits, signed = _INTEGERS[name]
        return SqlType(kind=Kind.INTEGER, sql=name, bits=bits, signed=signed)
    if name == "DECIMAL":
        return _decimal(18 if first is None else first, (3 if first is None else 0) if second is None else second)
    if name in ("VARCHAR", "CHAR"):
        return _text(name, first if first is not None or name == "VARCHAR" else 1)
    if name in _FIXED:
        return SqlType(**{"sql": name, **_FIXED[name]})
    raise SchemaError(_unsupported(text))


def any_type(text: str, *, shown: str | None = None) -> SqlType:
    """Read the type of a column that a database has: OTHER, under the name `shown`, for one without a codec.

    >>> any_type("json").kind
    <Kind.OTHER: 'other'>
    """
    try:
        return parse_type(text)
    except SchemaError:
        return SqlType(kind=Kind.OTHER, sql=" ".join((shown or text).split())[:MAX_TYPE_TEXT] or "OTHER")


def type_of_arrow(arrow: pa.DataType) -> SqlType:
    """Name the SQL type of an Arrow column, for files that come without a schema; OTHER for one without a codec.

    >>> type_of_arrow(pa.int16()).sql
    'SMALLINT'
    """
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return any_type(f"DECIMAL({arrow.precision},{arrow.scale})", shown=str(arrow))
    if pa.types.is_timestamp(arrow):
        return parse_type("TIMESTAMPTZ" if arrow.tz else "TIMESTAMP")
    for test, name in (
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_int8, "TINYINT"),
        (pa.types.is_int16, "SMALLINT"),
        (pa.types.is_int32, "INTEGER"),
        (pa.types.is_int64, "BIGINT"),
        (pa.types.is_uint8, "UTINYINT"),
        (pa.types.is_uint16, "USMALLINT"),
        (pa.types.is_uint32, "UINTEGER"),
        (pa.types.is_uint64, "HUGEINT"),
        (pa.types.is_float16, "REAL"),
        (pa.types.is_float32, "REAL"),
        (pa.types.is_float64, "DOUBLE"),
        (pa.types.is_string, "VARCHAR"),
        (pa.types.is_large_string, "VARCHAR"),
        (pa.types.is_string_view, "VARCHAR"),
        (pa.types.is_date, "DATE"),
        (pa.types.is_time, "TIME"),
        (pa.types.is_null, "VARCHAR"),
    ):
        if test(arrow):
            return parse_type(name)
    return any_type(str(arrow))


def _decimal(precision: int, scale: int) -> SqlType:
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise SchemaError(f"DECIMAL({precision},{scale}): precision must be 1..38 and the scale 0..precision.")
    return SqlType(kind=Kind.DECIMAL, sql=f"DECIMAL({precision},{scale})", precision=precision, scale=scale)


def _text(name: str, length: int | None) -> SqlType:
    return SqlType(kind=Kind.TEXT, sql=name if length is None else f"{name}({length})", length=length)


def _unsupported(text: str) -> str:
    return (
        f"type {text.strip()[:MAX_TYPE_TEXT]!r} has no codec. Supported: integers, REAL, DOUBLE, DECIMAL, BOOLEAN, "
        "VARCHAR/CHAR, DATE, TIME, TIMESTAMP. Leave the column out with `drop: true` under the column in the spec."
    )
