"""Check a bundle from outside: what DuckDB and SQLite find in it, without our own readers where they can be spared."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.io.base import Format, arrow_schema
from privbench.io.names import file_stems, quote_sql
from privbench.io.open import open_source
from privbench.schema.tables import Schema, Table


def read_bundle(bundle: Path, schema: Schema, form: Format) -> dict[str, pa.Table]:
    """Every table of a bundle; asserts that its types are exact."""
    if form is Format.PARQUET:
        stems = file_stems(t.name for t in schema.tables)
        found = {t.name: pq.read_table(bundle / "data" / f"{stems[t.name]}.parquet") for t in schema.tables}
    elif form is Format.DUCKDB:
        with duckdb.connect(str(bundle / "data" / "database.duckdb"), read_only=True) as connection:
            found = {t.name: connection.table(quote_sql(t.name)).to_arrow_table() for t in schema.tables}
    else:
        with open_source(bundle) as source:
            found = {t.name: pa.Table.from_batches(source.read(t), schema=arrow_schema(t)) for t in schema.tables}
    for table in schema.tables:
        assert found[table.name].schema.equals(arrow_schema(table)), table.name
    return found


def broken_promises(schema: Schema, tables: dict[str, pa.Table]) -> list[str]:
    """Every orphan, repeated key and NULL in a NOT NULL column, counted by DuckDB."""
    found = []
    with duckdb.connect() as connection:
        for at, table in enumerate(schema.tables):
            connection.register(f"t{at}", tables[table.name])
        number = {t.name: f"t{at}" for at, t in enumerate(schema.tables)}
        for table in schema.tables:
            for what, query in _queries(table, number):
                [(count,)] = connection.execute(query).fetchall()
                if count:
                    found.append(f"{table.name}: {count} {what}")
    return found


def _queries(table: Table, number: dict[str, str]) -> list[tuple[str, str]]:
    mine = number[table.name]
    queries = []
    for key in table.keys:
        columns = ", ".join(map(quote_sql, key))
        whole = " AND ".join(f"{quote_sql(c)} IS NOT NULL" for c in key)
        queries.append((f"repeat {key}", f"SELECT count(*) - count(DISTINCT ({columns})) FROM {mine} WHERE {whole}"))
    for key in table.foreign_keys:
        names = zip(key.columns, key.references, strict=True)
        same = " AND ".join(f"a.{quote_sql(c)} = b.{quote_sql(r)}" for c, r in names)
        whole = " AND ".join(f"a.{quote_sql(c)} IS NOT NULL" for c in key.columns)
        query = f"SELECT count(*) FROM {mine} a WHERE {whole} AND NOT EXISTS (FROM {number[key.table]} b WHERE {same})"
        queries.append((f"orphans of {key}", query))
    required = [quote_sql(c.name) for c in table.columns if not c.nullable]
    return queries + [(f"NULLs in {c}", f"SELECT count(*) FROM {mine} WHERE {c} IS NULL") for c in required]


def loaded(bundle: Path) -> duckdb.DuckDBPyConnection:
    """The database that a bundle's own DDL and data make; every constraint of the DDL is checked on the way."""
    base = duckdb.connect()
    base.execute((bundle / "schema.duckdb.sql").read_text(encoding="utf-8"))
    with open_source(bundle) as source:
        tables = source.schema().tables
        for table in _referenced_first(tables):
            base.register("rows", pa.Table.from_batches(source.read(table), schema=arrow_schema(table)))
            names = [r[0] for r in base.sql(f"DESCRIBE {quote_sql(table.name)}").fetchall()]
            stored = [n for n in names if not _is_generated(base, table.name, n)]
            columns = ", ".join(map(quote_sql, stored))
            base.execute(f"INSERT INTO {quote_sql(table.name)} ({columns}) SELECT {columns} FROM rows")
    return base


def _is_generated(base: duckdb.DuckDBPyConnection, table: str, column: str) -> bool:
    [(sql,)] = base.execute("SELECT sql FROM duckdb_tables() WHERE table_name = ?", [table]).fetchall()
    return f"{column} " in sql and "GENERATED" in sql.partition(f"{column} ")[2].partition(",")[0]


def _referenced_first(tables: Sequence[Table]) -> list[Table]:
    order: list[Table] = []
    while len(order) < len(tables):
        done = {t.name for t in order}
        left = [t for t in tables if t.name not in done]
        free = [t for t in left if all(k.table in done or k.table == t.name for k in t.foreign_keys)]
        order.append((free or left)[0])
    return order
