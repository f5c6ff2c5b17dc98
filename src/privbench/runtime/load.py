"""One database into one schema of a PostgreSQL server: tables, rows in their order, then keys and indexes.

All variants get the same statements, since plans depend on every type, key and index. Where a variant breaks a
constraint (a resample repeats values that are unique), it gets an index of the same name instead, and a note says so.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import csv

from privbench.errors import ServerError, first_line
from privbench.io.names import quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables
from privbench.runtime.session import Variant
from privbench.runtime.statistics import ColumnStatistics, Statistics
from privbench.schema.tables import Schema, Table

Connection = psycopg.Connection[tuple[Any, ...]]
_STATISTICS = 1000
"""Statistics of up to 300,000 rows are exact then, so that two copies of a table have the same."""
_VACUUMS = 5


def load(connection: Connection, schema: Schema, variant: Variant) -> list[str]:
    """Fill the schema that the connection's search_path names; gives notes on what is not as declared."""
    for statement in create_tables(Schema(tables=tuple(map(_bare, schema.tables))), Dialect.ANSI):
        _execute(connection, statement, variant.name)
    for table in schema.tables:
        # The server's own housekeeping would come at any time. What it does is done below, once.
        _execute(connection, f"ALTER TABLE {quote_sql(table.name)} SET (autovacuum_enabled = off)", variant.name)
        _copy(connection, table, variant)
    notes = [
        f"{variant.name}: {note}" for late in _constraints(schema) if (note := _add(connection, late, variant.name))
    ]
    notes += [f"{variant.name}: {note}" for note in _housekeeping(connection, schema, variant.name)]
    return notes


def _bare(table: Table) -> Table:
    """A table with its columns alone; what they must not hold is declared when they are filled."""
    columns = tuple(replace(c, nullable=True) for c in table.columns)
    return replace(table, columns=columns, primary_key=(), foreign_keys=(), uniques=(), indexes=(), checks=())


def _copy(connection: Connection, table: Table, variant: Variant) -> None:
    for batch in variant.read(table):
        columns = ", ".join(quote_sql(name) for name in batch.schema.names)
        try:
            with (
                connection.cursor() as cursor,
                cursor.copy(_sql(f"COPY {quote_sql(table.name)} ({columns}) FROM STDIN (FORMAT csv)")) as copy,
            ):
                copy.write(_csv(batch))
        except (psycopg.Error, pa.ArrowException) as error:
            raise ServerError(f"{variant.name}: {table.name} cannot be loaded ({first_line(error)}).") from None


def _csv(batch: pa.RecordBatch) -> bytes:
    """Texts are in quotes and NULL is nothing, as COPY reads it."""
    out = io.BytesIO()
    csv.write_csv(batch, out, csv.WriteOptions(include_header=False))
    return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """A statement that may fail on the rows of a variant, what to do then, and the note."""

    statement: str
    instead: str | None
    note: str


def _constraints(schema: Schema) -> Iterator[_Late]:
    """Whatever is declared beside columns and types, in the order that it can be added in."""
    numbers = iter(range(1_000_000))
    for table in schema.tables:
        name = quote_sql(table.name)
        for column in table.columns:
            if not column.nullable:
                yield _Late(
                    statement=f"ALTER TABLE {name} ALTER COLUMN {quote_sql(column.name)} SET NOT NULL",
                    instead=None,
                    note=f"{table.name}.{column.name} holds NULL, which the real schema forbids",
                )
        for kind, columns in (("PRIMARY KEY", table.primary_key), *(("UNIQUE", u) for u in table.uniques)):
            if columns:
                yield _unique(table, kind, columns, f"k{next(numbers)}_{table.name}")
    indexes = [index for table in schema.tables for index in table.indexes]
    for index, statement in zip(indexes, create_indexes(schema), strict=True):
        plain = statement.replace("CREATE UNIQUE INDEX", "CREATE INDEX", 1)
        yield _Late(
            statement=statement,
            instead=plain if index.unique else None,
            note=f"index {index.name} holds values twice, so that it is no UNIQUE one",
        )
    for table, key in schema.foreign_keys():
        added = f"ALTER TABLE {quote_sql(table.name)} ADD FOREIGN KEY ({_list(key.columns)}) REFERENCES "
        added += f"{quote_sql(key.table)} ({_list(key.references)})"
        yield _Late(
            statement=added,
            instead=f"{added} NOT VALID",
            note=f"{table.name}.{','.join(key.columns)}: its foreign key does not hold",
        )


def _unique(table: Table, kind: str, columns: tuple[str, ...], name: str) -> _Late:
    on = f"{quote_sql(table.name)} ({_list(columns)})"
    return _Late(
        statement=f"ALTER TABLE {quote_sql(table.name)} ADD CONSTRAINT {quote_sql(name)} {kind} ({_list(columns)})",
        instead=f"CREATE INDEX {quote_sql(name)} ON {on}",
        note=f"{table.name}.{','.join(columns)} holds values twice, so that its index is no {kind}",
    )


def _add(connection: Connection, late: _Late, variant: str) -> str | None:
    """Add a constraint, or what stands for it; the note if it could not be added."""
    try:
        connection.execute(_sql(late.statement))
    except (psycopg.errors.IntegrityError, psycopg.errors.InvalidForeignKey):
        if late.instead is not None:
            try:
                connection.execute(_sql(late.instead))
            except psycopg.errors.InvalidForeignKey:  # what it references is not unique here
                return late.note
        return late.note
    except psycopg.Error as error:
        raise ServerError(f"{variant}: {first_line(error)}, in: {late.statement}") from None
    return None


def _housekeeping(connection: Connection, schema: Schema, variant: str) -> Iterator[str]:
    """Statistics of all rows, and pages that are known to hold only rows that all can see, as an old table's are."""
    connection.execute(_sql(f"SET default_statistics_target = {_STATISTICS}"))
    tables = ", ".join(quote_sql(table.name) for table in schema.tables)
    hidden: object = None
    for _ in range(_VACUUMS):
        _execute(connection, f"VACUUM (ANALYZE) {tables}", variant)
        row = connection.execute(
            "SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = current_schema()::regnamespace AND relallvisible < relpages"
        ).fetchone()
        hidden = row and row[0]
        if not hidden:
            break
    else:
        yield f"pages of {hidden} are not marked as visible to all (a transaction elsewhere is open?)"
    try:
        connection.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege:
        yield "no right to write a checkpoint, so that times may hold some writing to disk"


def pages(connection: Connection) -> dict[str, int]:
    """The pages of each table."""
    rows = connection.execute(
        "SELECT relname, relpages FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    return {str(name): int(count) for name, count in rows}


def statistics(connection: Connection) -> Statistics:
    """What the planner knows of each column."""
    rows = connection.execute(
        "SELECT tablename, attname, null_frac, avg_width, CASE WHEN n_distinct < 0 THEN -n_distinct * reltuples "
        "ELSE n_distinct END, correlation FROM pg_stats JOIN pg_class ON relname = tablename AND relnamespace = "
        "schemaname::regnamespace WHERE schemaname = current_schema()"
    )
    return {
        (str(table), str(column)): ColumnStatistics(
            nulls=float(nulls), width=float(width), distinct=float(distinct), correlation=correlation
        )
        for table, column, nulls, width, distinct, correlation in rows.fetchall()
    }


def _execute(connection: Connection, statement: str, variant: str) -> None:
    try:
        connection.execute(_sql(statement))
    except psycopg.Error as error:
        raise ServerError(f"{variant}: {first_line(error)}, in: {statement.splitlines()[0]}") from None


def _sql(text: str) -> bytes:
    """A statement of ours: its names went through `quote_sql`, and it holds no value."""
    return text.encode()


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_sql, names))
