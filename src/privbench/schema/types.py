"""SQL column types, reduced to what the codec and the writers need to know.

A `SqlType` is the public type of a column. Its `sql` text is what `schema.sql` shows; its `arrow` type is
what sources deliver and sinks receive, so that dates stay dates and decimals keep their scale.

Types such as UUID, JSON, INET, BLOB and arrays are TEXT with a `syntax`: their values travel as the text that
PostgreSQL writes for them, and made-up ones have that syntax. `io.stored` turns the text into what a system keeps.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from privbench.errors import SchemaError


class Kind(Enum):
    """The families of types that have a codec, and OTHER for the rest, whose columns are left out.

    A DURATION is the difference of two times, or an INTERVAL, in microseconds; a month of it has 30 days.
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
    "UNIQUEIDENTIFIER": "UUID",
    "GUID": "UUID",
    "BYTEA": "BLOB",
    "BYTES": "BLOB",
    "TINYBLOB": "BLOB",
    "MEDIUMBLOB": "BLOB",
    "LONGBLOB": "BLOB",
    "BINARY VARYING": "VARBINARY",
    "BIT VARYING": "VARBIT",
    "BITSTRING": "VARBIT",
    "TIME WITH TIME ZONE": "TIMETZ",
    "CITEXT": "VARCHAR",
}
DIFFERENCE_DIGITS = 18
"""Digits of a difference of decimals: more do not fit 64 bits."""
MAX_TYPE_TEXT = 100
"""No type name is longer; what an untrusted file says is not matched beyond this."""
_TYPE = re.compile(r"([A-Z][A-Z0-9_ ]*?) ?(?:\( ?([0-9]{1,10}) ?(?:, ?([0-9]{1,10}) ?)?\))?( [A-Z ]+)?")

_ARRAY = re.compile(r"(.*?) ?\[ ?[0-9]{0,9} ?\]")
_ENUM = re.compile(r"\s*ENUM\s*\(\s*('(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*)\s*\)\s*", re.IGNORECASE)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
LONGEST_ENUM = 900
"""An ENUM whose labels take more characters than this is text with a list of values."""
LONGEST_BITS = 6
"""A BIT(n) of no more than this lists its own values."""

SYNTAXES = {
    "UUID": "uuid",
    "JSON": "json",
    "JSONB": "json",
    "XML": "xml",
    "BLOB": "bytes",
    "INET": "ip",
    "CIDR": "cidr",
    "MACADDR": "mac",
    "MACADDR8": "mac8",
    "TSVECTOR": "lexeme",
    "TSQUERY": "lexeme",
    "TIMETZ": "10:09:09+00",
    "HSTORE": "a=>aaaa9",
    "LTREE": "aaa.aaa9",
    "POINT": "(9,9)",
    "LINE": "{1,9,9}",
    "LSEG": "[(0,9),(9,0)]",
    "BOX": "(9,9),(0,0)",
    "PATH": "[(0,9),(9,0)]",
    "POLYGON": "((0,0),(0,9),(9,0))",
    "CIRCLE": "<(9,9),9>",
    "INT4RANGE": "[-1,99)",
    "INT8RANGE": "[-1,99)",
    "NUMRANGE": "[-1,99)",
    "DATERANGE": "[2000-01-01,2999-01-01)",
    "TSRANGE": "[2000-01-01,2999-01-01)",
    "TSTZRANGE": "[2000-01-01,2999-01-01)",
    "PG_LSN": "0/99999999",
    "WKT": "POINT(99 99)",  # a geometry as text
}
"""Types whose values are text of one syntax, with the shape (of `encode.shapes`) that made-up values have."""

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
    "INTERVAL": {"kind": Kind.DURATION},
    "MONEY": {"kind": Kind.DECIMAL, "precision": 19, "scale": 2},
    **{name: {"kind": Kind.TEXT, "syntax": syntax} for name, syntax in SYNTAXES.items()},
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
    syntax: str | None = None
    """The shape that every value has, where the type is not plain text but travels as text."""
    labels: tuple[str, ...] = ()
    """The values of an ENUM, in its order."""

    @property
    def fixed(self) -> bool:
        """Whether all values are of the full length."""
        return self.sql.startswith(("CHAR", "BIT", "BINARY"))

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
    if (labels := _ENUM.fullmatch(text)) is not None and len(text) <= LONGEST_ENUM:
        return enum_type([label.replace("''", "'") for label in _LABEL.findall(labels[1])])
    if (array := _ARRAY.fullmatch(text.strip())) is not None:
        return _array(parse_type(array[1]))
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
    if name in ("BIT", "VARBIT"):
        return _bits(name, first if first is not None or name == "VARBIT" else 1)
    if name in ("BINARY", "VARBINARY"):
        return _bytes(name, first)
    if name in _FIXED:
        return SqlType(**{"sql": name, **_FIXED[name]})
    raise SchemaError(_unsupported(text))


def any_type(text: str, *, shown: str | None = None) -> SqlType:
    """Read the type of a column that a database has: OTHER, under the name `shown`, for one without a codec.

    >>> any_type("shape").kind
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
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return any_type(f"{type_of_arrow(arrow.value_type).sql}[]", shown=str(arrow))
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
        (pa.types.is_duration, "INTERVAL"),
        (lambda of: of == pa.uuid(), "UUID"),
        (pa.types.is_binary, "BLOB"),
        (pa.types.is_large_binary, "BLOB"),
        (pa.types.is_fixed_size_binary, "BLOB"),
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


def enum_type(labels: Iterable[str]) -> SqlType:
    """The type that lists its values; plain text if they are too long to write down.

    >>> enum_type(["sad", "it's ok"]).sql
    "ENUM('sad', 'it''s ok')"
    """
    listed = tuple(labels)
    quoted = ", ".join("'" + label.replace("'", "''") + "'" for label in listed)
    if not listed or len(quoted) > LONGEST_ENUM - len("ENUM()"):
        return _text("VARCHAR", None)
    return SqlType(kind=Kind.TEXT, sql=f"ENUM({quoted})", labels=listed)


def _bits(name: str, length: int | None) -> SqlType:
    sql = name if length is None else f"{name}({length})"
    return SqlType(kind=Kind.TEXT, sql=sql, length=length, syntax="bits")


def _bytes(name: str, length: int | None) -> SqlType:
    """Bytes of a limited number, each two letters of text behind the first two."""
    if length is None:
        return parse_type("BLOB")
    return SqlType(kind=Kind.TEXT, sql=f"{name}({length})", length=2 + 2 * length, syntax="bytes")


def _array(of: SqlType) -> SqlType:
    """An array; of arrays it is the same type, as PostgreSQL has it."""
    if of.sql.endswith("[]"):
        return of
    return SqlType(kind=Kind.TEXT, sql=f"{of.sql}[]", syntax=_array_syntax(of))


def _array_syntax(of: SqlType) -> str:
    if of.syntax is None and of.kind is Kind.TEXT and not of.labels and (of.length or 8) >= 8:
        return "text_array"
    if of.kind is Kind.FLOAT or (of.kind is Kind.INTEGER and of.bits > 16):
        return "number_array"
    by_kind = {
        Kind.INTEGER: "{9,9,9}",
        Kind.DATE: "{2999-01-01}",
        Kind.TIMESTAMP: "{2999-01-01}",
        Kind.TIME: "{10:09:09}",
        Kind.DURATION: "{10:09:09}",
    }
    return "{99999999-9999-4999-8999-999999999999}" if of.sql == "UUID" else by_kind.get(of.kind, "empty_array")


def _unsupported(text: str) -> str:
    return (
        f"type {text.strip()[:MAX_TYPE_TEXT]!r} has no codec. Supported: integers, REAL, DOUBLE, DECIMAL, BOOLEAN, "
        "VARCHAR/CHAR, ENUM, DATE, TIME, TIMESTAMP, INTERVAL, UUID, JSON, BLOB, INET, BIT and their arrays. Leave the "
        "column out with `drop: true` under the column in the spec."
    )
