"""The tables of a source in DuckDB, under plain names, so that draft can ask what holds in the data.

It holds private rows: what is found by it is for the publisher to review, marked as taken from the data.
"""

from collections.abc import Sequence
from typing import Any, Self

import duckdb
import pyarrow as pa

from privbench.io.base import Source, arrow_schema
from privbench.schema.tables import ForeignKey, Schema, Table

SAMPLE_ROWS = 1_000
"""Rows on which candidates are tried before those that hold are checked on all rows."""


class TablesInSql:
    """Reads tables when they are first asked for. A context manager: it holds a connection."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._loaded: set[str] = set()
        self._connection = duckdb.connect(config={"threads": 2})
        self._connection.execute("SET enable_external_access = false")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def name(self, table: str) -> str:
        """The name of a table in SQL, which is read by now."""
        place = [t.name for t in self._schema.tables].index(table)
        if table not in self._loaded:
            self._load(self._schema.table(table), f"t{place}")
            self._loaded.add(table)
        return f"t{place}"

    def column(self, table: str, column: str) -> str:
        """The name of a column in SQL."""
        return f"c{[c.name for c in self._schema.table(table).columns].index(column)}"

    def joined(self, left: str, right: str, table: str, key: ForeignKey) -> str:
        """The condition that a row `right` is the one that a key of the row `left` of a table references."""
        pairs = zip(key.columns, key.references, strict=True)
        return " AND ".join(f"{left}.{self.column(table, a)} = {right}.{self.column(key.table, b)}" for a, b in pairs)

    def sample(self, table: str) -> str:
        """The name of a table of some of its rows, the same each time; a number `row` tells them apart."""
        name = f"sample_{self.name(table)}"
        if name not in self._loaded:
            self._connection.execute(
                f"CREATE TABLE {name} AS SELECT *, ROW_NUMBER() OVER () AS row FROM (SELECT * FROM "  # noqa: S608  plain names
                f"{self.name(table)} USING SAMPLE reservoir({SAMPLE_ROWS} ROWS) REPEATABLE (1))"
            )
            self._loaded.add(name)
        return name

    def ask(self, sql: str) -> Sequence[Any]:
        """The one row that a query gives."""
        (row,) = self._connection.execute(sql).fetchall()
        return tuple(row)

    def _load(self, table: Table, name: str) -> None:
        plain = [self.column(table.name, c.name) for c in table.columns]
        batches = self._source.read(table)
        types = pa.schema([pa.field(n, f.type) for n, f in zip(plain, arrow_schema(table), strict=True)])
        reader = pa.RecordBatchReader.from_batches(types, (b.rename_columns(plain).cast(types) for b in batches))
        self._connection.register("reader", reader)
        self._connection.execute(f"CREATE TABLE {name} AS FROM reader")
        self._connection.unregister("reader")
