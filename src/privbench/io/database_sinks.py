"""Sinks that write one DuckDB or SQLite file, with keys, NOT NULL, UNIQUE and indexes in place.

DuckDB checks foreign keys at each insert and cannot add them later, so its batches wait in Parquet files until
the end and are then loaded parents first. SQLite checks all of them once, at the end.
"""

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from privbench.errors import TargetError, first_line
from privbench.io.base import Format, SinkKind
from privbench.io.file_sinks import FileSink
from privbench.io.names import file_stems, quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables, plan
from privbench.io.sqlite_values import from_arrow
from privbench.io.staging import remove, target_error
from privbench.schema.tables import Schema


class DuckDBSink:
    """A DuckDB file; `render.omitted_keys` tells which foreign keys it goes without."""

    def __init__(self, path: Path, *, schema: Schema) -> None:
        self._path = path
        self._schema = schema
        self._tables = create_tables(schema, Dialect.DUCKDB)
        self._waiting = path.with_name(f".{path.name}.waiting")
        try:
            self._waiting.mkdir()
        except OSError as error:
            raise target_error(path.name, error) from error
        self._files = FileSink(self._waiting, schema=schema, format=Format.PARQUET)

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Keep a batch until the end."""
        self._files.write(table, batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._files.__exit__(kind, error, trace)
            if kind is None:
                self._load()
        except duckdb.Error as failure:
            raise _refused(self._path.name, "DuckDB", failure) from failure
        finally:
            remove(self._waiting)

    def _load(self) -> None:
        stems = file_stems(t.name for t in self._schema.tables)
        order, _ = plan(self._schema)
        with duckdb.connect(str(self._path)) as connection:
            for table, statement in zip(order, self._tables, strict=True):
                connection.execute(statement)
                file = str(self._waiting / f"{stems[table.name]}.parquet")
                connection.execute(f"INSERT INTO {quote_sql(table.name)} SELECT * FROM read_parquet(?)", [file])
            for statement in create_indexes(self._schema):
                connection.execute(statement)


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
            raise _refused(path.name, "SQLite", error) from error

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Insert a batch."""
        marks = ", ".join("?" * batch.num_columns)
        columns = [from_arrow(column) for column in batch.columns]
        try:
            self._connection.executemany(
                f"INSERT INTO {quote_sql(table)} VALUES ({marks})",
                zip(*columns, strict=True),
            )
        except sqlite3.Error as error:
            raise _refused(self._path.name, "SQLite", error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._run(*create_indexes(self._schema))
                self._check_keys()
                self._run("COMMIT")
        except sqlite3.Error as failure:
            raise _refused(self._path.name, "SQLite", failure) from failure
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


def _refused(name: str, system: str, error: Exception) -> TargetError:
    return TargetError(f"{name}: {system} could not write it ({first_line(error)}). Nothing was left behind.")


DUCKDB = SinkKind(
    name=Format.DUCKDB.value,
    open=lambda folder, schema: DuckDBSink(folder / Format.DUCKDB.database, schema=schema),
    loading="`duckdb data/database.duckdb`; keys and indexes are in place.",
)
SQLITE = SinkKind(
    name=Format.SQLITE.value,
    open=lambda folder, schema: SQLiteSink(folder / Format.SQLITE.database, schema=schema),
    loading="`sqlite3 data/database.sqlite`; keys and indexes are in place.",
)
