"""Columns of both databases as small integers: equal values get equal codes, on either side.

DuckDB makes a dictionary of the distinct values of each column, in their order. Integers that lie close together are
looked up in an array; dictionaries of others are joined to the rows by DuckDB. Codes come back in row order. Only
dictionaries' counts and the codes are held here, large ones in files of the folder.
What only one side has, or what is a key, is not compared; all but keys is noted as left out.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from privbench.errors import first_line
from privbench.evaluation.bins import Bins, Dictionary, make_bins
from privbench.evaluation.databases import Database, Positions, Side, draw_rows, sample_table
from privbench.evaluation.marginals import Aligned, AlignedTable, Codes
from privbench.io.names import find_name, quote_sql
from privbench.methods.method import Progress
from privbench.schema.domain import Scalar
from privbench.schema.tables import Column, Schema
from privbench.schema.types import Kind

SIDES = (Side.REAL, Side.SYNTHETIC)
MAX_SAMPLED_ROWS = 2_000_000
"""A table with more rows is compared on that many draws of its rows; a row drawn twice counts once."""
_IN_MEMORY = 1 << 23  # bytes of one column's codes; larger ones are mapped from a file
_BLOCK = 1 << 22  # rows coded at a time
_JOINED = 16  # dictionaries joined in one query
_SPAN = 1 << 24  # integers from the least to the greatest that are looked up in an array
_COMPARABLE = ({Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}, {Kind.DATE, Kind.TIMESTAMP})
_UNORDERED = (Kind.TEXT, Kind.BOOLEAN)
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Integers close enough together to be looked up in an array: their places are 1, 2, ...; 0 is for others."""

    least: int
    greatest: int

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.greatest - self.least + 2

    def offset(self, value: str) -> str:
        """The place of a value, both in SQL."""
        inside = f"{value} BETWEEN {self.least} AND {self.greatest}"
        return f"CAST(CASE WHEN {inside} THEN CAST({value} AS BIGINT) - {self.least - 1} ELSE 0 END AS UINTEGER)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """What belongs to each place of a span."""

    span: Span
    entries: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """A column in value codes (the last is NULL) on both sides, with its evaluation bins."""

    real: Column
    synthetic: Column
    dictionary: Dictionary
    bins: Bins
    codes: Mapping[Side, Codes]
    bin_codes: Mapping[Side, Codes]

    @property
    def name(self) -> str:
        """The name in the real database."""
        return self.real.name

    @property
    def size(self) -> int:
        """How many value codes there are."""
        return self.dictionary.values + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedTable:
    """The compared columns of a table that both sides have."""

    name: str
    columns: tuple[CodedColumn, ...]
    rows: Mapping[Side, int]
    """How many rows are coded."""
    drawn: Mapping[Side, Positions | None]
    """Which rows are coded; None for all."""

    def aligned(self, resampled: Positions | None) -> AlignedTable:
        """The columns of the real table beside the synthetic ones and, if given, beside a resample of its rows."""
        values, bins = [], []
        for column in self.columns:
            values.append(_align(column.codes, resampled, column.size))
            bins.append(values[-1] if column.bins.one_to_one else _align(column.bin_codes, resampled, column.bins.size))
        return AlignedTable(values=values, bins=bins)


def _align(codes: Mapping[Side, Codes], resampled: Positions | None, size: int) -> Aligned:
    sides = tuple(codes[side] for side in SIDES)
    return Aligned(sides=sides if resampled is None else (*sides, codes[Side.REAL][resampled]), size=size)


def code_tables(
    database: Database, schema: Schema, progress: Progress, *, seed: int, made_up: Collection[str] = ()
) -> dict[str, CodedTable]:
    """Code the tables that both sides have, but for made-up ones; `schema` says which columns are keys."""
    coded = {}
    loaded = database.tables[Side.REAL]
    for at, name in enumerate(loaded):
        progress("coding", at, len(loaded))
        if find_name(name, made_up) is not None:
            database.skip(name, "its rows are made up from the schema: neither they nor keys into them are compared")
            continue
        columns = _compared(database, schema, name)
        if columns:
            try:
                coded[name] = code_table(database, name, columns, seed=seed)
            except duckdb.Error as error:
                database.skip(name, f"cannot be compared ({first_line(error)})")
                continue
            for side, rows in coded[name].rows.items():
                if not rows:
                    database.skip(name, f"{side.value}: has no row, so there is no distance")
                if coded[name].drawn[side] is not None:
                    whole = database.size(side, name)
                    database.skip(name, f"{side.value}: columns are compared on {rows:,} of {whole:,} rows, by seed")
    return coded


def _compared(database: Database, schema: Schema, name: str) -> list[tuple[Column, Column]]:
    """The columns to compare: those of both sides that are no keys."""
    real, synthetic = (database.find(side, name) for side in (Side.REAL, Side.SYNTHETIC))
    if real is None or synthetic is None:
        database.skip(name, "not in the synthetic database")
        return []
    declared = find_name(name, [t.name for t in schema.tables])
    table = real.table if declared is None else schema.table(declared)
    others = {c.name: c for c in synthetic.table.columns}
    compared = []
    for column in real.table.columns:
        other = find_name(column.name, others)
        if other is None:
            database.skip(f"{name}.{column.name}", "not in the synthetic database")
        elif find_name(column.name, table.surrogate_columns) is None:
            compared.append((column, others[other]))
            if _read_as(others[other]) != _read_as(column):
                types = f"{column.type.sql} in the real database, {others[other].type.sql} in the synthetic one"
                database.skip(f"{name}.{column.name}", f"compared, but the types differ: {types}")
    if not compared:
        database.skip(name, "no column to compare: all are keys or not in the synthetic database")
    return compared


def _read_as(column: Column) -> tuple[Kind, bool]:
    """What of a type makes its values others: a label of an ENUM and a string are the same."""
    return column.type.kind, column.type.timezone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Coding:
    """How the values of a column, in SQL on either side, become codes: by an array, else by the table `at`."""

    at: int
    values: Mapping[Side, str]
    dictionary: Dictionary
    lookup: Lookup | None


def code_table(database: Database, name: str, columns: Sequence[tuple[Column, Column]], *, seed: int) -> CodedTable:
    """Code the given columns (as they are in the real table, and in the synthetic one)."""
    database.connection.execute("CREATE SCHEMA IF NOT EXISTS coding")
    drawn = {side: draw_rows(database.size(side, name), most=MAX_SAMPLED_ROWS, seed=seed) for side in SIDES}
    rows = {side: database.size(side, name) if (some := drawn[side]) is None else len(some) for side in SIDES}
    sources = {side: sample_table(database, side, name, drawn[side]) for side in SIDES}
    coding = []
    for at, (real, synthetic) in enumerate(columns):
        as_text = not _comparable(real, synthetic)
        values = {Side.REAL: _value(real, as_text=as_text), Side.SYNTHETIC: _value(synthetic, as_text=as_text)}
        _write_dictionary(database, sources, at, values)
        dictionary = _read_dictionary(database, at, real, rows, as_text=as_text)
        integers = {real.type.kind, synthetic.type.kind} == {Kind.INTEGER}
        lookup = _read_lookup(database, at, dictionary.values) if integers else None
        coding.append(_Coding(at=at, values=values, dictionary=dictionary, lookup=lookup))
    codes = {side: _codes(database, side, sources[side], rows[side], coding) for side in SIDES}
    coded = []
    for at, ((real, synthetic), column) in enumerate(zip(columns, coding, strict=True)):
        bins = make_bins(column.dictionary)
        coded_values = {side: codes[side][at] for side in SIDES}
        binned = {side: _binned(database, bins, codes[side][at]) for side in SIDES}
        coded.append(
            CodedColumn(
                real=real,
                synthetic=synthetic,
                dictionary=column.dictionary,
                bins=bins,
                codes=coded_values,
                bin_codes=binned,
            )
        )
        database.connection.execute(f"DROP TABLE coding.d{at}")
    return CodedTable(name=name, columns=tuple(coded), rows=rows, drawn=drawn)


def _binned(database: Database, bins: Bins, codes: Codes) -> Codes:
    """The bins of all rows; the codes themselves if every value is a bin."""
    if bins.one_to_one:
        return codes
    binned = allocate(database, len(codes), np.min_scalar_type(bins.size))
    for start in range(0, len(codes), _BLOCK):
        binned[start : start + _BLOCK] = bins.of_code[codes[start : start + _BLOCK]]
    return binned


def _comparable(real: Column, synthetic: Column) -> bool:
    kinds = {real.type.kind, synthetic.type.kind}
    return len(kinds) == 1 or any(kinds <= family for family in _COMPARABLE)


def _value(column: Column, *, as_text: bool) -> str:
    name = f"t.{quote_sql(column.name)}"
    return f"CAST({name} AS VARCHAR)" if as_text else name


def _write_dictionary(database: Database, sources: Mapping[Side, str], at: int, values: Mapping[Side, str]) -> None:
    real, synthetic = (
        f"SELECT {values[side]} AS v, {counts} FROM {sources[side]} t GROUP BY ALL"  # noqa: S608
        for side, counts in ((Side.REAL, "count(*) AS r, 0 AS s"), (Side.SYNTHETIC, "0 AS r, count(*) AS s"))
    )
    database.connection.execute(
        f"CREATE TABLE coding.d{at} AS "  # noqa: S608
        "SELECT v, CAST(row_number() OVER (ORDER BY v) - 1 AS UINTEGER) AS code, r, s FROM "
        f"(SELECT v, sum(r) AS r, sum(s) AS s FROM ({real} UNION ALL {synthetic}) WHERE v IS NOT NULL GROUP BY v)"
    )


def _read_dictionary(
    database: Database, at: int, column: Column, rows: Mapping[Side, int], *, as_text: bool
) -> Dictionary:
    text = as_text or column.type.kind is Kind.TEXT
    length = "length(v)" if text else "0"
    [(distinct,)] = database.rows(f"SELECT count(*) FROM coding.d{at}")  # noqa: S608
    real, synthetic, lengths = (np.empty(distinct, np.int64) for _ in range(3))
    wanted = ", ".join(f"CAST({number} AS BIGINT)" for number in ("r", "s", length))
    query = f"SELECT {wanted} FROM coding.d{at} ORDER BY code"  # noqa: S608
    read_columns(database, query, [real, synthetic, lengths])

    def read(codes: Sequence[int]) -> list[Scalar]:
        wanted = ", ".join(str(code) for code in codes) or "NULL"
        query = f"SELECT code, CAST(v AS VARCHAR) FROM coding.d{at} WHERE code IN ({wanted})"  # noqa: S608
        strings = dict(database.rows(query))
        return [_scalar(strings[code], Kind.TEXT if text else column.type.kind) for code in codes]

    return Dictionary(
        real=np.append(real, rows[Side.REAL] - real.sum()),
        synthetic=np.append(synthetic, rows[Side.SYNTHETIC] - synthetic.sum()),
        ordered=not text and column.type.kind not in _UNORDERED,
        lengths=lengths if text else None,
        read=read,
    )


def _read_lookup(database: Database, at: int, values: int) -> Lookup | None:
    """The codes of integers in an array; None where they lie too far apart."""
    span = find_span(database, "v", f"coding.d{at}")
    if span is None:
        return None
    offsets = np.empty(values, np.uint32)
    read_columns(database, f"SELECT {span.offset('v')} FROM coding.d{at} ORDER BY code", [offsets])  # noqa: S608
    entries = np.full(span.size, values, np.min_scalar_type(values))
    entries[offsets] = np.arange(values)
    return Lookup(span=span, entries=entries)


def _scalar(text: str, kind: Kind) -> Scalar:
    """A value from how DuckDB writes it: numbers and booleans as such, all else as the text."""
    if kind is Kind.BOOLEAN:
        return text == "true"
    if kind not in _NUMBERS:
        return text
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"


def _codes(database: Database, side: Side, source: str, rows: int, coding: Sequence[_Coding]) -> list[Codes]:
    codes = [allocate(database, rows, np.min_scalar_type(column.dictionary.values)) for column in coding]
    spans = [(column, column.lookup) for column in coding if column.lookup is not None]
    if spans:
        offsets = ", ".join(lookup.span.offset(column.values[side]) for column, lookup in spans)
        query = f"SELECT {offsets} FROM {source} t"  # noqa: S608  a scan gives the rows in their order
        read_columns(database, query, [codes[column.at] for column, _ in spans], [found.entries for _, found in spans])
    joined = [column for column in coding if column.lookup is None]
    for first in range(0, len(joined), _JOINED):
        part = joined[first : first + _JOINED]
        wanted = ", ".join(f"coalesce(d{column.at}.code, {column.dictionary.values})" for column in part)
        joins = " ".join(f"LEFT JOIN coding.d{column.at} ON {column.values[side]} = d{column.at}.v" for column in part)
        query = f"SELECT {wanted} FROM {source} t {joins} ORDER BY t.rowid"  # noqa: S608
        read_columns(database, query, [codes[column.at] for column in part])
    return codes


def find_span(database: Database, value: str, source: str) -> Span | None:
    """The span of an integer column, both in SQL; None if it has no value, or they are too far apart for an array."""
    [(least, greatest)] = database.rows(f"SELECT min({value}), max({value}) FROM {source}")  # noqa: S608
    if least is None or greatest - least >= _SPAN or not -(2**62) < least <= greatest < 2**62:
        return None
    return Span(least=int(least), greatest=int(greatest))


def allocate(database: Database, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array for one number per row: in memory, or in a file of the folder if large."""
    if rows * dtype.itemsize <= _IN_MEMORY:
        return np.empty(rows, dtype)
    path = database.folder / f"{len(list(database.folder.glob('*.codes')))}.codes"
    return np.memmap(path, dtype, "w+", shape=(rows,))


def read_columns(
    database: Database, query: str, into: Sequence[NDArray[Any]], through: Sequence[NDArray[Any]] | None = None
) -> None:
    """Stream numbers without NULL into arrays; if told `through` which array each, what that has at these places."""
    at = 0
    for batch in database.connection.sql(query).to_arrow_reader(1 << 18):
        for number, (column, array) in enumerate(zip(batch.columns, into, strict=True)):
            read = np.from_dlpack(column)  # to_numpy would load pandas
            array[at : at + len(batch)] = read if through is None else through[number][read]
        at += len(batch)
