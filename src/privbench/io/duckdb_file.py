"""A DuckDB file: the source reads its catalogue and streams its tables as Arrow batches; the sink writes one.

The source opens the file read-only, with extensions and access to other files switched off: an untrusted
database is data and nothing else. Only base tables of the schema `main` are read. DuckDB checks foreign keys at each
insert and cannot add them later, so the sink keeps batches in Parquet files until the end and loads parents first.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from privbench.deferred import duckdb
from privbench.errors import SourceError, first_line
from privbench.io.base import BATCH_ROWS, Format, SinkKind, Source, SourceKind, read_head
from privbench.io.cast import cast_batch
from privbench.io.catalogue import RawTable, build_schema, warn_of_unread
from privbench.io.ddl import parse_checks, parse_generated, parse_index
from privbench.io.ddl_types import named_type
from privbench.io.files import FileSink, read_schema
from privbench.io.names import file_stems, quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables, is_generated, plan, written_column
from privbench.io.staging import refused_write, remove, target_error
from privbench.io.stored import is_array, is_bytes
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import Kind

_SEALED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}
_HERE = "WHERE database_name = current_database() AND schema_name = 'main'"
_TABLES = f"SELECT table_name, sql FROM duckdb_tables() {_HERE} AND NOT temporary ORDER BY table_oid"
_COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable "
    f"FROM duckdb_columns() {_HERE} ORDER BY table_oid, column_index"
)
_CONSTRAINTS = (
    "SELECT table_name, constraint_type, constraint_column_names, constraint_text, referenced_table, "
    f"referenced_column_names FROM duckdb_constraints() {_HERE} ORDER BY constraint_index"
)
_VIEWS = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_oid"
_INDEXES = f"SELECT table_name, index_name, sql FROM duckdb_indexes() {_HERE} ORDER BY index_oid"


class DuckDBSource(Source):
    """Tables in a DuckDB file. `schema` stands in for the catalogue where that cannot hold every key."""

    def __init__(self, path: Path, *, schema: Schema | None = None) -> None:
        self.location = str(path)
        self._schema = schema
        try:
            self._connection = duckdb.connect(str(path), read_only=True, config=_SEALED)
        except duckdb.Error as error:
            raise SourceError(f"{path}: DuckDB cannot open it ({first_line(error)}).") from error

    def schema(self) -> Schema:
        if self._schema is None:
            self._schema = build_schema(self._tables())
            views = (f"view {name}" for (name,) in self._all(_VIEWS))
            indexes = (
                f"index {name}" for _, name, sql in self._all(_INDEXES) if parse_index(sql, dialect="duckdb") is None
            )
            warn_of_unread(self.location, (*views, *indexes))
        return self._schema

    def read(self, table: Table) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(_read_column(c) for c in table.columns)
        try:
            with self._connection.cursor() as cursor:
                relation = cursor.sql(f"SELECT {columns} FROM main.{quote_sql(table.name)}")
                for batch in relation.to_arrow_reader(BATCH_ROWS):
                    yield cast_batch(batch, table)
        except (duckdb.Error, OSError) as error:
            raise SourceError(f"{self.location}: table {table.name} cannot be read ({first_line(error)}).") from error

    def rows(self, name: str) -> int:
        [(count,)] = self._all(f"SELECT count(*) FROM main.{quote_sql(name)}")
        return int(count)

    def close(self) -> None:
        self._connection.close()

    def _tables(self) -> list[RawTable]:
        names = self._all(_TABLES)
        if not names:
            raise SourceError(f"{self.location}: has no table in its schema `main`.")
        tables = {name: RawTable(name=name) for name, _ in names}
        for name, sql in names:
            parse_generated(tables[name], sql, dialect="duckdb")
        self._add_columns(tables)
        self._add_constraints(tables)
        self._add_indexes(tables)
        return list(tables.values())

    def _add_columns(self, tables: dict[str, RawTable]) -> None:
        for table, name, text, nullable in self._all(_COLUMNS):
            if table in tables:  # views have columns too
                column = named_type(text, dialect="duckdb")
                tables[table].columns.append(replace(column, name=name, nullable=nullable))

    def _add_constraints(self, tables: dict[str, RawTable]) -> None:
        for table, kind, columns, text, target, references in self._all(_CONSTRAINTS):
            raw = tables[table]
            match kind:
                case "PRIMARY KEY":
                    raw.primary_key = tuple(columns)
                case "UNIQUE":
                    raw.uniques.append(tuple(columns))
                case "FOREIGN KEY":
                    key = ForeignKey(columns=tuple(columns), table=target, references=tuple(references))
                    raw.foreign_keys.append(key)
                case "CHECK":
                    raw.checks += parse_checks(f"CREATE TABLE t (c INT, {text})", dialect="duckdb")

    def _add_indexes(self, tables: dict[str, RawTable]) -> None:
        for table, _, sql in self._all(_INDEXES):
            index = parse_index(sql, dialect="duckdb")
            if index is not None:
                tables[table].indexes.append(index)

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query).fetchall()
        except duckdb.Error as error:
            raise SourceError(f"{self.location}: DuckDB cannot read it ({first_line(error)}).") from error


class DuckDBSink:
    """A DuckDB file; `render.omitted_keys` tells which foreign keys it goes without."""

    def __init__(self, path: Path, *, schema: Schema) -> None:
        self._path = path
        self._schema = schema
        self._tables = create_tables(schema, Dialect.DUCKDB, generated=True)
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
            raise refused_write(self._path.name, "DuckDB", failure) from failure
        finally:
            remove(self._waiting)

    def _load(self) -> None:
        stems = file_stems(t.name for t in self._schema.tables)
        order, _ = plan(self._schema)
        with duckdb.connect(str(self._path)) as connection:
            for table, statement in zip(order, self._tables, strict=True):
                connection.execute(statement)
                file = str(self._waiting / f"{stems[table.name]}.parquet")
                kept = [c for c in table.columns if not is_generated(c)]
                into = f"{quote_sql(table.name)} ({', '.join(quote_sql(c.name) for c in kept)})"
                columns = ", ".join(map(written_column, kept))
                connection.execute(f"INSERT INTO {into} SELECT {columns} FROM read_parquet(?)", [file])
            for statement in create_indexes(self._schema):
                connection.execute(statement)


def _read_column(column: Column) -> str:
    """How to select a column so that it comes as it travels."""
    name, of = quote_sql(column.name), column.type
    if is_array(of):
        return f"'{{' || array_to_string({name}, ',') || '}}' AS {name}"
    if is_bytes(of):
        return f"'\\x' || lower(hex({name})) AS {name}"
    if of.kind is Kind.DURATION:
        return f"epoch_us({name}) AS {name}"
    return f"CAST({name} AS VARCHAR) AS {name}" if of.syntax is not None else name


DUCKDB_SOURCE = SourceKind(
    name="a DuckDB file",
    matches=lambda location: read_head(location)[8:12] == b"DUCK",
    open=lambda location: DuckDBSource(Path(location)),
    open_in_bundle=lambda path, ddl: DuckDBSource(path, schema=read_schema(ddl)),
)
DUCKDB_SINK = SinkKind(
    name=Format.DUCKDB.value,
    open=lambda folder, schema: DuckDBSink(folder / Format.DUCKDB.database, schema=schema),
    loading="`duckdb data/database.duckdb`; keys and indexes are in place.",
)
