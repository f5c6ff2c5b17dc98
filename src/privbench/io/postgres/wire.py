"""Arrow columns as PostgreSQL reads them in a binary COPY, type by type.

Each type of PostgreSQL has its own bytes: a number of the right width, a version before the text of a JSONB, 16 bytes
for a UUID. A type that is not here (arrays, ranges, INET, BIT ..) is loaded as text and cast by the server, which takes
an extra step; see `postgres.sink`.
"""

from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.io.stored import BEFORE_ALL, FOREVER, bytes_of_text, uuids_of_text
from privbench.schema.types import Kind, SqlType

Convert = Callable[[pa.Array], pa.Array]
_DAY = 86_400_000_000
_EPOCH = 10_957
"""Days from 1970 to 2000, from which PostgreSQL counts."""
_INTEGERS = {"int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64()}
_FLOATS = {"float4": pa.float32(), "float8": pa.float64()}
_TEXTS = frozenset({"text", "varchar", "bpchar", "name", "json", "xml", "citext"})
_SAME = {
    Kind.BOOLEAN: "bool",
    Kind.TIME: "time",
    Kind.DECIMAL: "numeric",
}
_INTERVAL = np.dtype([("time", ">i8"), ("days", ">i4"), ("months", ">i4")])


def wire(of: SqlType, target: str, *, is_enum: bool) -> Convert | None:
    """How to convert a column for a type of PostgreSQL, by its name in pg_type; None: there is no direct way."""
    match of.kind:
        case Kind.INTEGER if target in _INTEGERS:
            return _cast(_INTEGERS[target])
        case Kind.FLOAT if target in _FLOATS:
            return _cast(_FLOATS[target])
        case Kind.TIMESTAMP if target == ("timestamptz" if of.timezone else "timestamp"):
            return _moments
        case Kind.DATE if target == "date":
            return _days
        case Kind.DECIMAL if target == "money":
            return _cents
        case Kind.DURATION if target == "interval":
            return _intervals
        case Kind.TEXT:
            return _text_wire(target, is_enum=is_enum)
    return _as_it_is if _SAME.get(of.kind) == target else None


def _text_wire(target: str, *, is_enum: bool) -> Convert | None:
    if target in _TEXTS or is_enum:
        return _as_it_is
    return {"jsonb": _jsonb, "uuid": _uuids, "bytea": bytes_of_text}.get(target)


def plain_type(of: SqlType) -> tuple[str, Convert]:
    """The simplest type of PostgreSQL that holds a type of ours, from which the server casts to any other."""
    match of.kind:
        case Kind.INTEGER:
            return "bigint", _cast(pa.int64())
        case Kind.FLOAT:
            return "double precision", _cast(pa.float64())
        case Kind.TIMESTAMP:
            return ("timestamptz" if of.timezone else "timestamp"), _moments
        case Kind.DATE:
            return "date", _days
        case Kind.DURATION:
            return "interval", _intervals
        case Kind.TEXT:
            return "text", _as_it_is
        case _:
            return _SAME[of.kind], _as_it_is


def _days(array: pa.Array) -> pa.Array:
    """Days since 2000, with infinity where the source had it."""
    return _since_2000(array.view(pa.int32()), 1)


def _moments(array: pa.Array) -> pa.Array:
    """Microseconds since 2000, with infinity where the source had it."""
    return _since_2000(array.view(pa.int64()), _DAY)


def _since_2000(numbers: pa.Array, day: int) -> pa.Array:
    limits = np.iinfo(numbers.type.to_pandas_dtype())
    counted = pc.subtract(numbers, pa.scalar(_EPOCH * day, numbers.type))
    for at, infinity in ((FOREVER, limits.max), (BEFORE_ALL, limits.min)):
        there = pa.scalar((at - date(1970, 1, 1)).days * day, numbers.type)
        counted = pc.if_else(pc.equal(numbers, there), pa.scalar(int(infinity), numbers.type), counted)
    return counted


def _as_it_is(array: pa.Array) -> pa.Array:
    return array


def _cast(to: pa.DataType) -> Convert:
    return lambda array: array.cast(to)


def _jsonb(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar("\x01"), array, "")


def _uuids(array: pa.Array) -> pa.Array:
    uuids = uuids_of_text(array)
    return uuids.storage if isinstance(uuids, pa.ExtensionArray) else uuids


def _cents(array: pa.Array) -> pa.Array:
    """MONEY as a number of cents."""
    return pc.multiply(array.cast(pa.decimal128(30, 2)), pa.scalar(100, pa.decimal128(3, 0))).cast(pa.int64())


def _intervals(array: pa.Array) -> pa.Array:
    """Microseconds as days and the rest of a day."""
    time = array.fill_null(0).to_numpy()
    parts = np.zeros(len(array), _INTERVAL)
    parts["days"] = np.fix(time / _DAY).astype(np.int32)
    parts["time"] = time - parts["days"].astype(np.int64) * _DAY
    packed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_INTERVAL.itemsize), len(parts), [None, pa.py_buffer(parts)]
    )
    return pc.if_else(array.is_valid(), packed, pa.scalar(None, packed.type))
