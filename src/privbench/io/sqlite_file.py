"""A SQLite file: the source, the sink, and how values are kept in SQLite without loss.

SQLite's own rules hold for declared types: INTEGER is 64 bits, REAL is a DOUBLE, NUMERIC without digits too, and a
type it does not know goes by its affinity. Dates, times and timestamps are ISO text, booleans 0 and 1. A DECIMAL is a
number, so that comparisons work; one of more than 15 digits, which SQLite would round, is kept as its digits in a
BLOB. NaN becomes NULL. SQLite lets a column hold values of any type: each is checked against the declared one.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote as percent_encode

import pyarrow as pa
import pyarrow.compute as pc

from privbench.errors import DataError, SourceError, TargetError
from privbench.io.base import BATCH_ROWS, Format, SinkKind, Source, SourceKind, read_head
from privbench.io.cast import CAST_ERRORS, cast_column, misfit
from privbench.io.catalogue import RawTable, build_schema, warn_of_unread
from privbench.io.ddl import parse_checks, parse_generated
from privbench.io.names import quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables
from privbench.io.staging import refused_write
from privbench.io.stored import bytes_of_text, clock_text, is_bytes
from privbench.schema.domain import implied_by_type
from privbench.schema.tables import Column, ForeignKey, Index, Schema, Table
from privbench.schema.types import MAX_TYPE_TEXT, Kind, SqlType, any_type, parse_type

_OWN_RULES = {"INTEGER": "BIGINT", "INT": "BIGINT", "REAL": "DOUBLE", "NUMERIC": "DOUBLE", "DECIMAL": "DOUBLE"}
_AFFINITY = {
    "INT": "BIGINT",
    "CHAR": "VARCHAR",
    "CLOB": "VARCHAR",
    "TEXT": "VARCHAR",
    "FLOA": "DOUBLE",
    "DOUB": "DOUBLE",
}
_OTHERS = """SELECT m.type, m.name FROM sqlite_master m WHERE m.type IN ('view', 'trigger') UNION ALL
SELECT 'index', l.name FROM sqlite_master m, pragma_index_list(m.name, 'main') l WHERE m.type = 'table' AND
(l.partial OR EXISTS (SELECT 1 FROM pragma_index_info(l.name, 'main') i WHERE i.name IS NULL))"""
"""What is neither a table nor a part of one that is read."""
Value = int | float | str | bytes | None
_EXACT_DIGITS = 15
_ALLOWED: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.FLOAT: (float, int),
    Kind.DECIMAL: (int, float, str, bytes),
    Kind.BOOLEAN: (int,),
    Kind.TEXT: (str, int, float),
    Kind.DATE: (str,),
    Kind.TIME: (str,),
    Kind.TIMESTAMP: (str,),
    Kind.DURATION: (str,),
}


class SQLiteSource(Source):
    """Tables in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self._schema: Schema | None = None
        _check_whole(path)
        uri = f"file:{percent_encode(str(path.absolute()))}?mode=ro"
        try:
            # DuckDB and Arrow may ask for the next batch on a thread of theirs, one at a time.
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            raise SourceError(f"{path}: SQLite cannot open it ({error}).") from error

    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = build_schema(self._tables())
            warn_of_unread(self.location, (f"{kind} {name}" for kind, name in self._all(_OTHERS)))
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        names = [c.name for c in table.columns]
        columns = ", ".join(f"t.{quote_sql(n)}" for n in names)  # without `t.` a missing column is read as text
        # No index: one that holds all columns which are asked for would give the rows in its own order.
        try:
            cursor = self._connection.execute(f"SELECT {columns} FROM main.{quote_sql(table.name)} AS t NOT INDEXED")
            while rows := cursor.fetchmany(BATCH_ROWS):
                values = zip(table.columns, zip(*rows, strict=True), strict=True)
                arrays = [to_arrow(column, c.type, f"{table.name}.{c.name}") for c, column in values]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" in str(error):
                raise DataError(f"{table.name}: {error}. Correct the value, or declare the column BLOB.") from error
            raise self._unreadable(error) from error
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def rows(self, name: str) -> int:
        [(count,)] = self._all(f"SELECT count(*) FROM main.{quote_sql(name)}")
        return int(count)

    def close(self) -> None:
        self._connection.close()

    def _tables(self) -> list[RawTable]:
        tables = self._all(
            "SELECT m.name, m.sql FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.name "
            "WHERE l.schema = 'main' AND l.type = 'table' AND m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' ORDER BY m.rowid"
        )
        if not tables:
            raise SourceError(f"{self.location}: has no table.")
        return [self._table(name, sql) for name, sql in tables]

    def _table(self, name: str, sql: str) -> RawTable:
        raw = RawTable(name=name, checks=parse_checks(sql, dialect="sqlite"))
        parse_generated(raw, sql, dialect="sqlite")
        key: list[tuple[int, str]] = []
        query = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1 ORDER BY cid"
        for column, declared, required, place in self._all(query, name):
            ours = declared_type(declared)
            raw.columns.append(
                Column(
                    name=column,
                    type=ours,
                    nullable=not required,
                    implied=implied_by_type(ours),
                    source_type=_if_other(declared, ours),
                )
            )
            key += [(place, column)] if place else []
        raw.primary_key = tuple(column for _, column in sorted(key))
        raw.foreign_keys = self._foreign_keys(name)
        self._add_indexes(raw)
        return raw

    def _foreign_keys(self, name: str) -> list[ForeignKey]:
        parts: dict[int, list[tuple[str, str, str | None]]] = {}
        query = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?, \'main\') ORDER BY id DESC, seq'
        for number, target, column, reference in self._all(query, name):
            parts.setdefault(number, []).append((target, column, reference))
        return [
            ForeignKey(
                columns=tuple(column for _, column, _ in part),
                table=part[0][0],
                references=tuple(reference for _, _, reference in part if reference is not None),
            )
            for part in parts.values()
        ]

    def _add_indexes(self, raw: RawTable) -> None:
        """Enter UNIQUE constraints and indexes; those on expressions or part of the rows are passed over."""
        query = "SELECT name, \"unique\", origin FROM pragma_index_list(?, 'main') WHERE NOT partial ORDER BY seq DESC"
        for name, unique, origin in self._all(query, raw.name):
            parts = self._all("SELECT name FROM pragma_index_info(?, 'main') ORDER BY seqno", name)
            columns = tuple(column for (column,) in parts)
            if origin == "u":
                raw.uniques.append(columns)
            elif origin == "c" and None not in columns:
                raw.indexes.append(Index(name=name, columns=columns, unique=bool(unique)))

    def _all(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> SourceError:
        return SourceError(f"{self.location}: SQLite cannot read it ({error}).")


def _check_whole(path: Path) -> None:
    """Refuse a file shorter than its header says; SQLite would read the missing part of a page as zeros."""
    with path.open("rb") as file:
        head = file.read(100)
    page_size = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    if path.stat().st_size < max(100, pages * (65_536 if page_size == 1 else page_size)):
        raise SourceError(f"{path}: SQLite cannot read it (the file is cut short).")


def _if_other(declared: str, ours: SqlType) -> str | None:
    """The declared type, where ours is not only another spelling of it."""
    same = ours.kind is Kind.OTHER or any_type(declared).sql == ours.sql
    return None if same else declared[:MAX_TYPE_TEXT] or "no type"


def declared_type(declared: str) -> SqlType:
    """Read a declared type by SQLite's rules; OTHER for one without a codec.

    >>> declared_type("INTEGER").sql, declared_type("UNSIGNED BIG INT").sql, declared_type("blob").sql
    ('BIGINT', 'BIGINT', 'BLOB')
    """
    name = " ".join(declared.upper().split())
    by_name = any_type(_OWN_RULES.get(name, declared))
    by_affinity = (ours for part, ours in _AFFINITY.items() if part in name and not name.startswith("BLOB"))
    if by_name.kind is Kind.OTHER and (ours := next(by_affinity, None)) is not None:
        return parse_type(ours)
    return by_name


class SQLiteSink:
    """A SQLite file. It is thrown away if anything fails, so it needs no journal."""

    def __init__(self, path: Path, *, schema: Schema) -> None:
        self._path = path
        self._schema = schema
        tables = create_tables(schema, Dialect.SQLITE)
        try:
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._run("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "BEGIN", *tables)
        except sqlite3.Error as error:
            raise refused_write(path.name, "SQLite", error) from error

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        marks = ", ".join("?" * batch.num_columns)
        types = [c.type for c in self._schema.table(table).columns]
        columns = [from_arrow(column, of) for column, of in zip(batch.columns, types, strict=True)]
        try:
            self._connection.executemany(
                f"INSERT INTO {quote_sql(table)} VALUES ({marks})",
                zip(*columns, strict=True),
            )
        except sqlite3.Error as error:
            raise refused_write(self._path.name, "SQLite", error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._run(*create_indexes(self._schema))
                self._check_keys()
                self._run("COMMIT")
        except sqlite3.Error as failure:
            raise refused_write(self._path.name, "SQLite", failure) from failure
        finally:
            self._connection.close()

    def _run(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement)

    def _check_keys(self) -> None:
        orphan = self._connection.execute("PRAGMA foreign_key_check").fetchone()
        if orphan is not None:
            raise TargetError(
                f"{self._path.name}: a row of {orphan[0]} references a row of {orphan[2]} that is not there."
            )


def to_arrow(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    """Turn the values of a column into Arrow; one of another type is a DataError that shows it."""
    if is_bytes(of):
        values = [f"\\x{v.hex()}" if isinstance(v, bytes) else v for v in values]
    unexpected = {type(v) for v in values} - {type(None), *_ALLOWED[of.kind]}
    if unexpected:
        raise misfit(where, next(v for v in values if type(v) in unexpected), of)
    if of.kind is Kind.TEXT:
        return pa.array([v if v is None else str(v) for v in values], pa.string())
    if of.kind is Kind.DECIMAL:
        return _decimals(values, of, where)
    if of.kind in (Kind.INTEGER, Kind.FLOAT):
        return _numbers(values, of, where)
    return cast_column(pa.array(values), of, where) if any(v is not None for v in values) else _nulls(values, of)


def from_arrow(array: pa.Array, of: SqlType | None = None) -> list[Value]:
    """Turn an Arrow column into what SQLite stores."""
    if of is not None and of.kind is Kind.DURATION:
        array = clock_text(array)
    if of is not None and is_bytes(of):
        array = bytes_of_text(array)
    kind = array.type
    if pa.types.is_decimal(kind):
        return [None if v is None else _stored(v) for v in array.to_pylist()]
    if pa.types.is_temporal(kind):
        array = pc.cast(array, pa.string())
    elif pa.types.is_boolean(kind):
        array = pc.cast(array, pa.int8())
    values: list[Value] = array.to_pylist()
    return values


def _numbers(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    try:
        return pa.array(values, of.arrow)
    except (*CAST_ERRORS, OverflowError):
        raise misfit(where, next(v for v in values if v is not None and not _holds(v, of)), of) from None


def _holds(value: Value, of: SqlType) -> bool:
    try:
        pa.array([value], of.arrow)
    except (*CAST_ERRORS, OverflowError):
        return False
    return True


def _decimals(values: Sequence[Value], of: SqlType, where: str) -> pa.Array:
    result: list[Decimal | None] = []
    for value in values:
        number = None if value is None else _decimal(value)
        if value is not None and (number is None or not _holds_decimal(number, of)):
            raise misfit(where, value, of)
        result.append(number)
    return pa.array(result, of.arrow)


def _decimal(value: int | float | str | bytes) -> Decimal | None:
    try:
        if isinstance(value, float):
            return Decimal(f"{value:.{_EXACT_DIGITS}g}")
        return Decimal(value.decode() if isinstance(value, bytes) else value)
    except (InvalidOperation, UnicodeDecodeError):
        return None


def _holds_decimal(number: Decimal, of: SqlType) -> bool:
    if not number.is_finite():
        return False
    whole, _, decimals = f"{number.copy_abs():f}".partition(".")
    return len(decimals.rstrip("0")) <= of.scale and len(whole.lstrip("0")) <= of.precision - of.scale


def _stored(value: Decimal) -> Value:
    """Choose how to keep a decimal; no arithmetic here, as that would round to 28 digits."""
    text = f"{value:f}"
    whole, _, decimals = text.partition(".")
    if not decimals.strip("0") and -(2**63) <= int(whole) < 2**63:
        return int(whole)
    digits = (whole + decimals).strip("-0")
    return float(text) if len(digits) <= _EXACT_DIGITS else text.encode()


def _nulls(values: Sequence[Value], of: SqlType) -> pa.Array:
    return pa.nulls(len(values), of.arrow)


SQLITE_SOURCE = SourceKind(
    name="a SQLite file",
    matches=lambda location: read_head(location) == b"SQLite format 3\0",
    open=lambda location: SQLiteSource(Path(location)),
)
SQLITE_SINK = SinkKind(
    name=Format.SQLITE.value,
    open=lambda folder, schema: SQLiteSink(folder / Format.SQLITE.database, schema=schema),
    loading="`sqlite3 data/database.sqlite`; keys and indexes are in place. SQLite has fewer types: dates and times "
    "are ISO text, booleans 0 and 1, and decimals of more than 15 digits are kept as text in a BLOB.",
)
