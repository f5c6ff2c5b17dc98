"""CSV files: read as text first, then cast, so that a value that does not fit can be named with its column.

An empty field is NULL and a quoted empty field is the empty string, as the CSV sink writes them. Without a
declared type a column gets the narrowest of BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP and VARCHAR that all its
values fit, found in one pass over the whole file.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from privbench.errors import DataError, SourceError
from privbench.io.base import BATCH_ROWS
from privbench.io.cast import CAST_ERRORS, cast_array
from privbench.schema.tables import named_twice
from privbench.schema.types import Kind, SqlType, parse_type

_BLOCK_BYTES = 1 << 20  # Arrow reads up to 32 blocks ahead; a row must fit in one
_CANDIDATES = tuple(map(parse_type, ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")))


def read_header(path: Path, table: str) -> tuple[str, ...]:
    """Read the column names of a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            header = tuple(next(csv.reader(file), ()))
        "".join(header).encode()  # the rows may still hold bytes that are not UTF-8; the names may not
    except (OSError, UnicodeEncodeError, csv.Error) as error:
        raise SourceError(f"{path.name}: cannot be read as CSV in UTF-8 ({error}).") from error
    if not header:
        raise SourceError(f"{path.name}: is empty. A CSV file needs a first line with the names of its columns.")
    if (twice := named_twice(header)) is not None:
        raise SourceError(f"{table}.{twice}: {path.name} has two columns of that name.")
    return header


def read_text(path: Path, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Give the named columns as strings, at most BATCH_ROWS rows at a time."""
    header = read_header(path, table)
    if _ends_with_header(path):
        return
    try:
        with _open(path, header, columns) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
    except pa.ArrowInvalid as error:
        raise _unreadable(str(error), table, path) from None
    except OSError as error:
        raise SourceError(f"{path.name}: cannot be read ({error}).") from error


def count_rows(path: Path, table: str) -> int:
    """Count the rows by reading the first column."""
    return sum(batch.num_rows for batch in read_text(path, table, read_header(path, table)[:1]))


def infer_types(path: Path, table: str) -> dict[str, SqlType]:
    """Find each column's type in one pass; a column without any value is VARCHAR."""
    header = read_header(path, table)
    left = {name: list(_CANDIDATES) for name in header}
    filled: set[str] = set()
    for batch in read_text(path, table, header):
        for name in header:
            values = batch.column(name).drop_null()
            if len(values):
                filled.add(name)
                left[name] = [t for t in left[name] if _fits(values, t)]
    return {name: left[name][0] if name in filled and left[name] else parse_type("VARCHAR") for name in header}


def _fits(values: pa.Array, candidate: SqlType) -> bool:
    """Tell whether text is of a type; numbers with leading zeros are codes (ZIP, phone), so they stay text."""
    if candidate.kind in (Kind.INTEGER, Kind.FLOAT) and _any(values, r"^[+-]?0\d|^\+"):
        return False
    if candidate.kind is Kind.BOOLEAN and _any(values, r"\d"):
        return False
    try:
        cast_array(values, candidate)
    except CAST_ERRORS:
        return False
    return True


def _any(values: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern)).as_py())


def _ends_with_header(path: Path) -> bool:
    """Tell whether nothing follows the names of the columns, not even the end of their line, which Arrow needs."""
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        rows = csv.reader(file)
        next(rows)
        try:
            return next(rows, None) is None
        except csv.Error:  # a field too long for this reader: something follows
            return False


def _open(path: Path, header: tuple[str, ...], columns: tuple[str, ...]) -> pcsv.CSVStreamingReader:
    return pcsv.open_csv(
        path,
        read_options=pcsv.ReadOptions(
            column_names=header, skip_rows_after_names=1, block_size=_BLOCK_BYTES, use_threads=False
        ),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
        convert_options=pcsv.ConvertOptions(
            column_types={name: pa.string() for name in header},
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _unreadable(message: str, table: str, path: Path) -> DataError:
    column = re.match(r"In CSV column #(\d+): (.*)", message)
    if column:
        name = read_header(path, table)[int(column[1])]
        return DataError(f"{table}.{name}: {path.name} is not valid UTF-8 there. Save it as UTF-8.")
    if "straddl" in message:
        return DataError(f"{table}: a row of {path.name} is longer than 1 MB. Store the table as Parquet.")
    reason = message.removeprefix("CSV parse error: ")
    return DataError(f"{table}: a row of {path.name} does not have the columns of the first line ({reason[:120]}).")
