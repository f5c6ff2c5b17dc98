"""Cast what a file holds to what the schema says, and name table.column where a value does not fit.

Arrow's own casts are kept strict: nothing is cut off, wrapped round or turned into NULL on the way.
"""

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from privbench.errors import DataError
from privbench.io.stored import microseconds_of_clock, text_of_bytes, text_of_lists, text_of_uuids
from privbench.schema.tables import Table
from privbench.schema.types import Kind, SqlType

_NULLS = frozenset({"na", "n/a", "nan", "null", "none", "nil", "\\n", "?", "-", "."})
"""What people write for NULL in CSV files, without case."""
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_ZONE = re.compile(r":[0-9.]+(Z|[+-][0-9:]+)$")
CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def cast_batch(batch: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Cast the columns of a batch, which stand in the order of the table's, to their types."""
    arrays = [cast_column(batch.column(i), c.type, f"{table.name}.{c.name}") for i, c in enumerate(table.columns)]
    return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in table.columns])


def cast_column(array: pa.Array, to: SqlType, where: str) -> pa.Array:
    """Cast one column; a value that does not fit raises a DataError that shows it."""
    try:
        return cast_array(array, to)
    except CAST_ERRORS:
        value = first_misfit(array, lambda part: cast_array(part, to))
        raise misfit(where, value, to) from None


def misfit(where: str, value: object, to: SqlType) -> DataError:
    """Say that a value does not fit its column."""
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
    is_null = isinstance(value, str) and value.casefold() in _NULLS
    hint = f" If it means NULL in a CSV file, say `--null {value}`." if is_null else ""
    has_zone = to.kind is Kind.TIMESTAMP and isinstance(value, str) and _ZONE.search(value)
    fits = "TIMESTAMPTZ holds a time with a zone" if has_zone else "VARCHAR holds any"
    return DataError(
        f"{where}: {shown} is not a value of type {to.sql}. Correct the value, or declare a type that holds it "
        f"({fits}) in schema.sql or under the column in the spec.{hint}"
    )


def cast_array(array: pa.Array, to: SqlType) -> pa.Array:
    """Cast one array, losing nothing; raises one of CAST_ERRORS."""
    if pa.types.is_dictionary(array.type):
        array = _decoded(array)
    if pa.types.is_string_view(array.type):  # of which Arrow casts hardly any
        array = array.cast(pa.string())
    array = _as_text(array, to)
    if pa.types.is_decimal(array.type) and pa.types.is_floating(to.arrow):
        array = array.cast(pa.string())  # of which the nearest number is found, as Arrow's own cast does not
    if to.sql == "UUID":
        return _uuids(array.cast(to.arrow))
    if array.type == to.arrow:
        return array
    textual = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    if textual and to.kind is Kind.TIME:
        return _time_of_text(array, to)
    if textual and to.kind is Kind.DURATION:
        return microseconds_of_clock(array)
    if pa.types.is_duration(array.type) and to.kind is Kind.DURATION:
        return array.cast(pa.duration("us")).cast(to.arrow)
    if textual and to.kind is Kind.DATE:
        return _date_of_text(array, to)
    if textual and to.kind is Kind.TIMESTAMP and to.timezone:
        return _instant_of_text(array, to)
    result = array.cast(to.arrow)
    if not textual and to.kind in (Kind.BOOLEAN, Kind.DATE):
        _check_same(array, result)
    return result


def _decoded(array: pa.Array) -> pa.Array:
    """The values of a dictionary array; Arrow itself decodes no dictionary of string views."""
    if pa.types.is_string_view(array.type.value_type):
        return array.dictionary.cast(pa.large_string()).take(array.indices)
    return array.dictionary_decode()


def _as_text(array: pa.Array, to: SqlType) -> pa.Array:
    """The text that stands for UUIDs, bytes and lists, where the column's type travels as text."""
    if array.type == pa.uuid() or (to.sql == "UUID" and pa.types.is_fixed_size_binary(array.type)):
        return text_of_uuids(array)
    if to.syntax == "bytes" and not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return text_of_bytes(array)
    if to.kind is Kind.TEXT and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return text_of_lists(array)
    return array


def _uuids(array: pa.Array) -> pa.Array:
    """UUIDs in small letters, so that keys of any spelling meet."""
    array = pc.utf8_lower(array)
    if pc.all(pc.match_substring_regex(array, _UUID)).as_py() is False:
        raise pa.ArrowInvalid("not a UUID")
    return array


def first_misfit(array: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> object:
    """Find the first value that `cast` refuses, by halving."""
    while len(array) > 1:
        half = array.slice(0, len(array) // 2)
        try:
            cast(half)
        except CAST_ERRORS:
            array = half
        else:
            array = array.slice(len(half))
    return array[0].as_py()


def _time_of_text(array: pa.Array, to: SqlType) -> pa.Array:
    stamps = pc.binary_join_element_wise("1970-01-01", array.cast(pa.string()), " ")
    return stamps.cast(pa.timestamp("us")).cast(to.arrow)


def _date_of_text(array: pa.Array, to: SqlType) -> pa.Array:
    try:
        return array.cast(to.arrow)
    except pa.ArrowInvalid:  # "2020-01-31 00:00:00", as some systems write a date
        stamps = array.cast(pa.timestamp("us"))
        result = stamps.cast(to.arrow)
        _check_same(stamps, result)
        return result


def _instant_of_text(array: pa.Array, to: SqlType) -> pa.Array:
    try:
        return array.cast(to.arrow)
    except pa.ArrowInvalid:  # no zone offset: read as UTC
        return pc.assume_timezone(array.cast(pa.timestamp("us")), "UTC")


def _check_same(before: pa.Array, after: pa.Array) -> None:
    """Refuse the two casts that Arrow lets lose something: a number to BOOLEAN, a timestamp to DATE."""
    if not after.cast(before.type).equals(before):
        raise pa.ArrowInvalid("the cast would lose part of a value")
