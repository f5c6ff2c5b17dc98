"""Rows of MySQL and MariaDB: the server writes each row as one line of CSV, and Arrow parses many lines at once.

Rows that PyMySQL turns into Python values cost several times as much. A line holds text in quotes, so that the empty
string differs from NULL, which is an empty field. Where a batch does not parse it is read once more as text, to name
the value that does not fit; dates of zeros, which MySQL may hold though no calendar has them, become NULL there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from privbench.io.cast import CAST_ERRORS, cast_batch
from privbench.io.mysql.connection import quote_name
from privbench.io.mysql.types import StoredType
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind

_ZERO_DATE = r"^0000-00-00( 00:00:00(\.0*)?)?$"


def select_lines(table: Table, stored: Mapping[str, StoredType]) -> str:
    """Write the query that gives the rows of a table as lines of CSV, in the order in which they are stored.

    A line that is too long for the server is NULL.
    """
    fields = ", ',', ".join(_field(quote_name(c.name), stored[c.name]) for c in table.columns)
    # No index: one that holds all columns which are asked for would give the rows in its own order.
    return f"SELECT CONVERT(CONCAT({fields}) USING binary) FROM {quote_name(table.name)} USE INDEX ()"


def parse_lines(lines: Sequence[bytes], table: Table, zero_dates: Counter[str]) -> pa.RecordBatch:
    """Turn lines into the types of the table; counts the dates of zeros of each column that became NULL."""
    try:
        batch = _parse(lines, [(c.name, _parsed_type(c)) for c in table.columns])
        return cast_batch(batch, table)
    except CAST_ERRORS:
        batch = _parse(lines, [(c.name, pa.string()) for c in table.columns])
        arrays = [_without_zero_dates(batch.column(c.name), c, zero_dates) for c in table.columns]
        return cast_batch(pa.RecordBatch.from_arrays(arrays, names=batch.schema.names), table)


def _field(name: str, stored: StoredType) -> str:
    text = stored.as_text(name)
    if stored.quoted:
        text = f"""CONCAT('"', REPLACE({text}, '"', '""'), '"')"""
    return f"IF({name} IS NULL, '', {text})"  # a text that is too long is NULL, and makes the whole line NULL


def _parsed_type(column: Column) -> pa.DataType:
    """What Arrow parses; instants come without their zone, which is UTC."""
    return pa.timestamp("us") if column.type.kind is Kind.TIMESTAMP else column.type.arrow


def _parse(lines: Sequence[bytes], types: Sequence[tuple[str, pa.DataType]]) -> pa.RecordBatch:
    text = b"\n".join((*lines, b""))
    numbered = {str(i): kind for i, (_, kind) in enumerate(types)}  # names may be anything
    table = pcsv.read_csv(
        pa.BufferReader(text),
        read_options=pcsv.ReadOptions(column_names=list(numbered), use_threads=False, block_size=len(text) + 1),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pcsv.ConvertOptions(
            column_types=numbered, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in types])


def _without_zero_dates(array: pa.Array, column: Column, zero_dates: Counter[str]) -> pa.Array:
    if column.type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return array
    zeros = pc.match_substring_regex(array, _ZERO_DATE)
    zero_dates[column.name] += pc.sum(zeros).as_py() or 0
    return pc.if_else(zeros, pa.scalar(None, pa.string()), array)
