"""CSV files: read as text first, then cast, so that a value that does not fit can be named with its column.

An empty field is NULL and a quoted empty field is the empty string, as the CSV sink writes them; `CsvOptions` may name
other texts for NULL, quoted or not. Without a
declared type a column gets the narrowest of BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP and VARCHAR that all its
values fit, found in one pass over the whole file.
"""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from privbench.errors import DataError, SourceError
from privbench.io.base import BATCH_ROWS
from privbench.io.cast import CAST_ERRORS, cast_array
from privbench.io.csv_bytes import open_bytes
from privbench.io.csv_padding import padded
from privbench.schema.csv_options import DELIMITERS, CsvOptions
from privbench.schema.tables import named_twice
from privbench.schema.types import Kind, SqlType, parse_type

_BLOCK_BYTES = 1 << 20  # Arrow reads up to 32 blocks ahead; a row must fit in one
_CANDIDATES = tuple(map(parse_type, ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")))


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile:
    """One table in a CSV file, and how it is written."""

    table: str
    path: Path
    options: CsvOptions = field(default_factory=CsvOptions)


def read_header(file: CsvFile) -> tuple[str, ...]:
    """Read the column names of a CSV file."""
    return _head(file)[0]


def _head(file: CsvFile) -> tuple[tuple[str, ...], bool]:
    """The column names, and whether nothing follows them, not even the end of their line, which Arrow needs."""
    name = file.path.name
    with open_bytes(file.path) as opened:
        first = opened.read(_BLOCK_BYTES)
    try:
        text = first.decode("utf-8-sig", errors="surrogateescape")
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=file.options.separator)
        header = tuple(next(rows, ()))
        "".join(header).encode()  # the rows may still hold bytes that are not UTF-8; the names may not
    except (UnicodeEncodeError, csv.Error) as error:
        raise SourceError(f"{name}: cannot be read as CSV in UTF-8 ({error}).") from error
    if not header:
        raise SourceError(f"{name}: is empty. A CSV file needs a first line with the names of its columns.")
    _check_delimiter(file, header, text)
    if (twice := named_twice(header)) is not None:
        raise SourceError(f"{file.table}.{twice}: {name} has two columns of that name.")
    is_last = _is_last(rows)
    if is_last and len(first) == _BLOCK_BYTES:
        raise SourceError(f"{name}: its first line, the names of its columns, is longer than 1 MB.")
    return header, is_last


def _is_last(rows: Iterator[list[str]]) -> bool:
    try:
        return next(rows, None) is None
    except csv.Error:  # a field too long for this reader: something follows
        return False


def _check_delimiter(file: CsvFile, header: tuple[str, ...], text: str) -> None:
    """Refuse a single column whose name, which is not quoted, looks like several."""
    if len(header) > 1 or text.startswith('"'):
        return
    likely = max(DELIMITERS, key=header[0].count)
    if header[0].count(likely):
        shown = header[0] if len(header[0]) <= 60 else header[0][:57] + "..."
        raise SourceError(
            f"{file.path.name}: its first line is one column, {shown!r}. Its delimiter seems to be "
            f"{DELIMITERS[likely]}: say `--delimiter {DELIMITERS[likely]}`. If this is the name of one column, put it "
            "in quotes."
        )


def read_text(file: CsvFile, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Give the named columns as strings, at most BATCH_ROWS rows at a time."""
    header, is_all = _head(file)
    if is_all:
        return
    with _rows_of(file, len(header)) as opened:
        try:
            with _reader(file, opened, header, columns) as reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield _with_nulls(batch.slice(start, BATCH_ROWS), file.options)
        except pa.ArrowInvalid as error:
            raise _unreadable(str(error), file, header) from None


@contextmanager
def _rows_of(file: CsvFile, columns: int) -> Iterator[pa.NativeFile]:
    """Open a file whose rows have at least so many columns, if its options say so."""
    with open_bytes(file.path) as opened:
        if file.options.ragged == "error":
            yield opened
        else:
            with padded(opened, separator=file.options.separator, columns=columns) as copy:
                yield copy


def _with_nulls(batch: pa.RecordBatch, options: CsvOptions) -> pa.RecordBatch:
    """Put NULL where a value is one of the texts that mean it."""
    if not options.null:
        return batch
    texts, nothing = pa.array(options.null, pa.string()), pa.scalar(None, pa.string())
    arrays = [pc.if_else(pc.is_in(array, value_set=texts), nothing, array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def count_rows(file: CsvFile) -> int:
    """Count the rows by reading the first column."""
    return sum(batch.num_rows for batch in read_text(file, read_header(file)[:1]))


def infer_types(file: CsvFile) -> dict[str, SqlType]:
    """Find each column's type in one pass; a column without any value is VARCHAR."""
    header = read_header(file)
    left = {name: list(_CANDIDATES) for name in header}
    filled: set[str] = set()
    for batch in read_text(file, header):
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


def _reader(
    file: CsvFile, opened: pa.NativeFile, header: tuple[str, ...], columns: tuple[str, ...]
) -> pcsv.CSVStreamingReader:
    return pcsv.open_csv(
        opened,
        read_options=pcsv.ReadOptions(
            column_names=header, skip_rows_after_names=1, block_size=_BLOCK_BYTES, use_threads=False
        ),
        parse_options=pcsv.ParseOptions(
            delimiter=file.options.separator, newlines_in_values=True, ignore_empty_lines=len(header) > 1
        ),
        convert_options=pcsv.ConvertOptions(
            column_types={name: pa.string() for name in header},
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _unreadable(message: str, file: CsvFile, header: tuple[str, ...]) -> DataError:
    table, name = file.table, file.path.name
    column = re.match(r"In CSV column #(\d+): (.*)", message)
    if column:
        return DataError(f"{table}.{header[int(column[1])]}: {name} is not valid UTF-8 there. Save it as UTF-8.")
    if "straddl" in message:
        return DataError(f"{table}: a row of {name} is longer than 1 MB. Store the table as Parquet.")
    reason = message.removeprefix("CSV parse error: ")
    counts = re.search(r"Expected (\d+) columns, got (\d+)", reason)
    short = counts is not None and int(counts[2]) < int(counts[1])
    remedy = (
        'If its last values are missing, say `--ragged pad` (in Python `ragged="pad"`): they are NULL then.'
        if short
        else "Correct that row, or put values that hold the delimiter in quotes."
    )
    return DataError(f"{table}: a row of {name} does not have the columns of the first line ({reason[:120]}). {remedy}")
