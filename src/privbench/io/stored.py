r"""How values that travel as text, or as a number, are kept in Arrow files and shown in CSV: UUIDs, bytes, durations.

Between source and sink a UUID is its text, bytes are PostgreSQL's `\x6162`, an INTERVAL is a number of microseconds
and an array is PostgreSQL's `{1,2}`. Parquet has types of its own for the first three; CSV has durations as `26:03:04`,
which every database reads.
"""

import binascii
from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.schema.tables import Table
from privbench.schema.types import Kind, SqlType

FOREVER, BEFORE_ALL = date(9999, 12, 30), date(1, 1, 2)
"""The days that stand for infinity and -infinity, which hardly any real row has; midnight of them for timestamps."""
_UUID_BYTES = 16
_DASHES = (8, 13, 18, 23)
_UUID_LENGTH = 36
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
_CLOCK = r"^(?P<sign>-?)(?P<hours>\d+):(?P<minutes>\d{2}):(?P<seconds>\d{2})(?:\.(?P<fraction>\d{1,6}))?$"


def is_bytes(of: SqlType) -> bool:
    """Tell whether values are bytes, which travel as text."""
    return of.syntax == "bytes"


def is_array(of: SqlType) -> bool:
    """Tell whether values are arrays, which travel as text."""
    return of.sql.endswith("[]")


def parquet_type(of: SqlType) -> pa.DataType:
    """The Arrow type in which a Parquet file keeps a column."""
    if of.sql == "UUID":
        return pa.uuid()
    if is_bytes(of):
        return pa.binary()
    return pa.duration("us") if of.kind is Kind.DURATION else of.arrow


def csv_type(of: SqlType) -> pa.DataType:
    """The Arrow type in which a CSV file shows a column."""
    return pa.string() if of.kind is Kind.DURATION else of.arrow


def for_parquet(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """The rows as a Parquet file keeps them."""
    return _mapped(batch, table, _parquet_array)


def for_csv(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """The rows as a CSV file shows them."""
    return _mapped(batch, table, _csv_array)


def _mapped(batch: pa.RecordBatch, table: Table, convert: Callable[[pa.Array, SqlType], pa.Array]) -> pa.RecordBatch:
    arrays = [convert(array, column.type) for array, column in zip(batch.columns, table.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _parquet_array(array: pa.Array, of: SqlType) -> pa.Array:
    if of.sql == "UUID":
        return uuids_of_text(array)
    if is_bytes(of):
        return bytes_of_text(array)
    return array.cast(pa.duration("us")) if of.kind is Kind.DURATION else array


def _csv_array(array: pa.Array, of: SqlType) -> pa.Array:
    return clock_text(array) if of.kind is Kind.DURATION else array


def uuids_of_text(array: pa.Array) -> pa.Array:
    """UUIDs as 16 bytes; ArrowInvalid if a text is not one.

    >>> text_of_uuids(uuids_of_text(pa.array(["00000000-0000-4000-8000-00000000002a", None]))).to_pylist()
    ['00000000-0000-4000-8000-00000000002a', None]
    """
    plain = pc.replace_substring(pc.fill_null(array, "0" * 2 * _UUID_BYTES), "-", "")
    try:
        packed = binascii.unhexlify("".join(plain.to_pylist()))
    except (binascii.Error, ValueError) as error:
        raise pa.ArrowInvalid("not a UUID") from error
    if len(packed) != _UUID_BYTES * len(array):
        raise pa.ArrowInvalid("not a UUID")
    return pa.ExtensionArray.from_storage(pa.uuid(), _fixed(packed, array))


def _fixed(packed: bytes, like: pa.Array) -> pa.Array:
    kind = pa.binary(_UUID_BYTES)
    made = pa.Array.from_buffers(kind, len(like), [None, pa.py_buffer(packed)])
    return pc.if_else(like.is_valid(), made, pa.scalar(None, kind))


def text_of_uuids(array: pa.Array) -> pa.Array:
    """Write 16 bytes each as UUIDs are written."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if storage.type != pa.binary(_UUID_BYTES):
        raise pa.ArrowInvalid("a UUID has 16 bytes")
    digits = _digits(pc.fill_null(storage, b"\0" * _UUID_BYTES)).reshape(-1, 2 * _UUID_BYTES)
    letters = np.full((len(array), _UUID_LENGTH), ord("-"), dtype=np.uint8)
    letters[:, [at for at in range(_UUID_LENGTH) if at not in _DASHES]] = digits
    offsets = np.arange(len(array) + 1, dtype=np.int32) * _UUID_LENGTH
    made = pa.StringArray.from_buffers(len(array), pa.py_buffer(offsets), pa.py_buffer(letters))
    return pc.if_else(storage.is_valid(), made, pa.scalar(None, pa.string()))


def _digits(fixed: pa.Array) -> NDArray[np.uint8]:
    values = np.frombuffer(fixed.buffers()[1], dtype=np.uint8)[_UUID_BYTES * fixed.offset :]
    values = values[: _UUID_BYTES * len(fixed)]
    return np.stack([_HEX[values >> 4], _HEX[values & 15]], axis=1).ravel()


def bytes_of_text(array: pa.Array) -> pa.Array:
    r"""Bytes from their text; ArrowInvalid for another text.

    >>> bytes_of_text(pa.array(["\\x6162", None])).to_pylist()
    [b'ab', None]
    """
    try:
        made = [None if text is None else bytes.fromhex(text.removeprefix("\\x")) for text in array.to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid("not the text of bytes") from error
    return pa.array(made, pa.binary())


def text_of_bytes(array: pa.Array) -> pa.Array:
    """Write bytes as PostgreSQL does."""
    return pa.array([None if value is None else f"\\x{value.hex()}" for value in array.to_pylist()], pa.string())


def text_of_lists(array: pa.Array) -> pa.Array:
    """Write lists as PostgreSQL writes arrays.

    >>> text_of_lists(pa.array([["a b", None, "c"], []])).to_pylist()
    ['{"a b",NULL,c}', '{}']
    """
    return pa.array([None if values is None else array_text(values) for values in array.to_pylist()], pa.string())


def array_text(values: list[object]) -> str:
    """Write one array."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return array_text(value)
    text = ("t" if value else "f") if isinstance(value, bool) else str(value)
    plain = text and text.upper() != "NULL" and not set(text) & set('{}",\\ \t\n\r\v\f')
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def clock_text(array: pa.Array) -> pa.Array:
    """Microseconds as hours, minutes and seconds.

    >>> clock_text(pa.array([93_784_000_001, -1_500_000, None])).to_pylist()
    ['26:03:04.000001', '-00:00:01.5', None]
    """
    return pa.array([None if value is None else _clock(value) for value in array.to_pylist()], pa.string())


def _clock(microseconds: int) -> str:
    size = abs(microseconds)
    text = f"{size // _HOUR:02d}:{size // _MINUTE % 60:02d}:{size // _SECOND % 60:02d}"
    fraction = f".{size % _SECOND:06d}".rstrip("0") if size % _SECOND else ""
    return f"{'-' if microseconds < 0 else ''}{text}{fraction}"


def microseconds_of_clock(array: pa.Array) -> pa.Array:
    """The way back from `clock_text`; ArrowInvalid for another text."""
    parts = pc.extract_regex(array.cast(pa.string()), pattern=_CLOCK)
    if parts.null_count > array.null_count:
        raise pa.ArrowInvalid("not hours:minutes:seconds")
    count = {name: _number(pc.struct_field(parts, name)) for name in ("hours", "minutes", "seconds")}
    fraction = pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, "fraction"), ""), 6, "0")
    size = pc.add(
        pc.add(pc.multiply(count["hours"], _HOUR), pc.multiply(count["minutes"], _MINUTE)),
        pc.add(pc.multiply(count["seconds"], _SECOND), _number(fraction)),
    )
    negative = pc.equal(pc.fill_null(pc.struct_field(parts, "sign"), ""), "-")
    return pc.if_else(array.is_valid(), pc.if_else(negative, pc.negate(size), size), pa.scalar(None, pa.int64()))


def _number(texts: pa.Array) -> pa.Array:
    filled = pc.fill_null(texts, "0")
    return pc.if_else(pc.equal(filled, ""), "0", filled).cast(pa.int64())
