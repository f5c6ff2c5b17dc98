"""A PostgreSQL database by URL: the catalogue by psycopg, the rows by ADBC in batches, both in one snapshot.

Rights to read are enough. The first connection opens a REPEATABLE READ READ ONLY transaction and exports its snapshot;
every reader takes the same one, so that what others change meanwhile is not seen. Passwords come from the URL or from
libpq's usual places (PGPASSWORD, pgpass, service file); `location` has none.

Values come as they travel (`io.stored`). What our types cannot hold is read as the nearest value: infinity as the day
`FOREVER`, -infinity as `BEFORE_ALL`, dates beyond the years 1 to 9999 as their ends, NaN of a NUMERIC as its largest.
"""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from privbench.errors import SourceError, first_line
from privbench.io.base import BATCH_ROWS, Source, SourceKind
from privbench.io.cast import cast_batch
from privbench.io.catalogue import build_schema
from privbench.io.names import quote_sql
from privbench.io.postgres.catalogue import Stored, read_catalogue
from privbench.io.postgres.connection import SCHEMES
from privbench.io.postgres.original import original_ddl
from privbench.io.postgres.schema import raw_tables
from privbench.io.stored import BEFORE_ALL, FOREVER
from privbench.io.urls import hide_secrets, scheme_of, without_password
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import Kind

if TYPE_CHECKING:
    import psycopg

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS = (
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL intervalstyle = 'postgres'",
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL row_security = off",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
)
"""Text in one form, all rows or an error, and no end while the model is learnt."""
_BATCH_BYTES = 8 << 20
_NO_RIGHT, _NO_PASSWORD, _NO_DATABASE = "42501", ("28P01", "28000"), "3D000"
_MOST_MONTHS = 1_000_000
_MONTH, _DAY = 30 * 86_400_000_000, 86_400_000_000
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


class PostgresSource(Source):
    """Tables of a PostgreSQL database. One that is not on the search path is called schema.table."""

    def __init__(self, url: str) -> None:
        self.location = without_password(url)
        self._url = url
        self._psycopg, self._adbc = _drivers()
        self._readers: list[Any] = []
        self._schema: Schema | None = None
        self._connection = self._connect()
        try:
            self._snapshot = self._begin()
            self._catalogue = read_catalogue(self._connection)
        except self._psycopg.Error as error:
            self._connection.close()
            raise self._unreadable(error) from None

    def schema(self) -> Schema:
        if self._schema is None:
            if not self._catalogue.tables:
                raise SourceError(f"{self.location}: has no table that user {self._catalogue.user} can see.")
            built = build_schema(raw_tables(self._catalogue))
            self._schema = Schema(tables=built.tables, original=original_ddl(self._catalogue, built))
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        stored = self._stored(table.name)
        columns = ", ".join(self._column(stored, c, table.name) for c in table.columns)
        reader = self._reader()
        try:
            with reader.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": _BATCH_BYTES}) as cursor:
                cursor.execute(f"SELECT {columns} FROM {stored.from_clause}")
                for batch in cursor.fetch_record_batch():
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield cast_batch(_plain(batch.slice(start, BATCH_ROWS)), table)
        except (self._adbc.Error, OSError) as error:
            self._drop(reader)
            raise self._unread(table.name, stored, error) from None
        except BaseException:  # the caller wants no more rows
            self._drop(reader)
            raise
        self._readers.append(reader)

    def rows(self, name: str) -> int:
        stored = self._stored(name)
        try:
            with self._connection.transaction():  # a savepoint: the snapshot outlives a failure
                row = self._connection.execute(f"SELECT count(*) FROM {stored.from_clause}".encode()).fetchone()
        except self._psycopg.Error as error:
            raise self._unread(name, stored, error) from None
        return int(row[0]) if row else 0

    def close(self) -> None:
        for reader in (*self._readers, self._connection):
            with suppress(self._adbc.Error, self._psycopg.Error):
                reader.close()

    def _connect(self) -> "psycopg.Connection[Any]":
        try:
            connection: psycopg.Connection[Any] = self._psycopg.connect(
                self._url, autocommit=True, application_name="privbench"
            )
        except self._psycopg.Error as error:
            raise _no_connection(self.location, hide_secrets(str(error), self._url), error) from None
        return connection

    def _begin(self) -> str:
        """Start the transaction that all reading happens in, and give the name of its snapshot."""
        for statement in (_BEGIN, *_SETTINGS):
            self._connection.execute(statement.encode())
        row = self._connection.execute("SELECT pg_export_snapshot()").fetchone()
        return str(row[0]) if row else ""

    def _reader(self) -> Any:
        """A connection that sees the snapshot and reads nothing else meanwhile."""
        if self._readers:
            return self._readers.pop()
        try:
            reader = self._adbc.connect(self._url, autocommit=True)
            with reader.cursor() as cursor:
                for statement in (_BEGIN, f"SET TRANSACTION SNAPSHOT '{self._snapshot}'", *_SETTINGS):
                    cursor.execute(statement)
        except self._adbc.Error as error:
            raise self._unreadable(error) from None
        return reader

    def _drop(self, reader: Any) -> None:
        with suppress(self._adbc.Error):
            reader.close()

    def _stored(self, name: str) -> Stored:
        if name not in self._catalogue.tables:
            raise SourceError(f"{self.location}: no table {name}.")
        return self._catalogue.tables[name]

    def _column(self, stored: Stored, column: Column, table: str) -> str:
        if column.name not in stored.columns:
            raise SourceError(f"{table}.{column.name}: {self.location} has no such column.")
        return f"{_expression(column, stored.columns[column.name].base)} AS {quote_sql(column.name)}"

    def _unread(self, table: str, stored: Stored, error: Exception) -> SourceError:
        """Say why a table cannot be read; without the right to, what gives it."""
        if getattr(error, "sqlstate", None) == _NO_RIGHT:
            user = quote_sql(self._catalogue.user)
            grant = f"GRANT USAGE ON SCHEMA {quote_sql(stored.namespace)} TO {user}; GRANT SELECT ON {stored.quoted}"
            return SourceError(
                f"{self.location}: user {self._catalogue.user} may not read all of table {table}. Let the owner run: "
                f"{grant} TO {user}; or leave the table out (`--drop {table}`)."
            )
        reason = hide_secrets(first_line(error), self._url)
        return SourceError(f"{self.location}: table {table} cannot be read ({reason}).")

    def _unreadable(self, error: Exception) -> SourceError:
        reason = hide_secrets(first_line(error), self._url)
        return SourceError(f"{self.location}: PostgreSQL cannot be read ({reason}).")


def _drivers() -> tuple[ModuleType, ModuleType]:
    try:
        return import_module("psycopg"), import_module("adbc_driver_postgresql.dbapi")
    except ImportError as error:
        raise SourceError(
            f"PostgreSQL needs {error.name}, which is not installed: pip install 'privbench[postgres]'"
        ) from None


def _no_connection(location: str, message: str, error: Exception) -> SourceError:
    """Say why there is no connection, and what to do."""
    state, lines = getattr(error, "sqlstate", None), message.strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if state in _NO_PASSWORD or "password" in message:
        remedy = " Passwords are taken from PGPASSWORD, ~/.pgpass, a service file, or the URL."
    elif state == _NO_DATABASE or "does not exist" in message:
        remedy = " Check the name of the database in the URL."
    else:
        remedy = " Check host and port, and that the server runs."
    return SourceError(f"{location}: no connection ({reason}).{remedy}")


def _expression(column: Column, base: str) -> str:
    """How to select a column so that it comes as it travels; `base` is its type in the database, without domains."""
    name, of = quote_sql(column.name), column.type
    value = f"{name}::{base}"
    if of.kind is Kind.TEXT:
        return f"{name}::text"
    if base == "money":
        return f"{name}::numeric"
    if base in ("oid", "xid", "cid"):
        return f"{name}::text::bigint"
    if of.kind in (Kind.DATE, Kind.TIMESTAMP) and base.startswith(("date", "timestamp")):
        kind = "date" if base == "date" else base.replace("without", "with") if of.timezone else base
        return (
            f"CASE WHEN NOT isfinite({value}) THEN CASE WHEN {value} > '2000-01-01' "
            f"THEN '{FOREVER}'::{kind} ELSE '{BEFORE_ALL}'::{kind} END "
            f"WHEN {value} < '0001-01-01' THEN '0001-01-01'::{kind} "
            f"WHEN {value} >= '10000-01-01' THEN '9999-12-31'::{kind} ELSE {value} END"
        )
    if of.kind is Kind.DECIMAL and base.startswith("numeric"):
        largest = f"{'9' * (of.precision - of.scale) or '0'}{'.' if of.scale else ''}{'9' * of.scale}"
        return f"CASE WHEN {value} = 'NaN' THEN {largest} ELSE {value} END"
    return f"{value}::float8" if of.kind is Kind.FLOAT and base.startswith("numeric") else value


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns in Arrow's own types: numbers as text, intervals as microseconds."""
    arrays = [_plain_array(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain_array(array: pa.Array) -> pa.Array:
    if array.type == pa.month_day_nano_interval():
        return _microseconds(array)
    is_other = isinstance(array.type, pa.BaseExtensionType) and array.type != pa.uuid()
    return array.storage if is_other else array


def _microseconds(array: pa.Array) -> pa.Array:
    """Intervals as PostgreSQL compares them: a month has 30 days, a day 24 hours."""
    parts = np.frombuffer(array.buffers()[1], dtype=_INTERVAL)[array.offset : array.offset + len(array)]
    months = np.clip(parts["months"].astype(np.int64), -_MOST_MONTHS, _MOST_MONTHS)
    days = np.clip(parts["days"].astype(np.int64), -30 * _MOST_MONTHS, 30 * _MOST_MONTHS)
    whole = months * _MONTH + days * _DAY + parts["nanoseconds"] // 1000
    return pa.array(whole, mask=array.is_null().to_numpy(zero_copy_only=False))


POSTGRES_SOURCE = SourceKind(
    name="a PostgreSQL database (postgresql://..)",
    matches=lambda location: scheme_of(location) in SCHEMES,
    open=PostgresSource,
)
