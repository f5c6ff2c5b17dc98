"""Rows for a PostgreSQL database, written without our own sink, which is tested against the source."""

import pyarrow as pa

from privbench.io.names import quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables, late_keys, plan
from privbench.schema.tables import Schema


def load(url: str, schema: Schema, rows: dict[str, pa.Table]) -> None:
    """Make the tables of a schema and fill them."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in create_tables(schema, Dialect.ANSI):
            connection.execute(statement.encode())
        for table in plan(schema)[0]:
            columns = [column.to_pylist() for column in rows[table.name].columns]
            with connection.cursor().copy(f"COPY {quote_sql(table.name)} FROM STDIN".encode()) as copy:
                for row in zip(*columns, strict=True):
                    copy.write_row(row)
        for statement in (*late_keys(schema, Dialect.ANSI), *create_indexes(schema)):
            connection.execute(statement.encode())


def run(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
