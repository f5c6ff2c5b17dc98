"""The tables of a source in DuckDB, under plain names, so that draft can ask what holds in the data.

It holds private rows: what is found by it is for the publisher to review, marked as taken from the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from privbench.io.base import Source, arrow_schema
from privbench.schema.expression import identifier
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import LinkKind, Protection

NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
AMOUNTS = (Kind.DECIMAL, Kind.FLOAT)
_UPWARDS = (LinkKind.OWNER, LinkKind.CATEGORY, LinkKind.COPIED)
SAMPLE_ROWS = 1_000
"""Rows on which candidates are tried before those that hold are checked on all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A column as a row sees it: what its name is in the spec, and in the joined tables here."""

    type: SqlType
    written: exp.Expr
    sql: str

    @property
    def is_number(self) -> bool:
        return self.type.kind in NUMBERS

    @property
    def is_amount(self) -> bool:
        """Whether it may be a price or a quantity with decimals: counts are rarely multiplied."""
        return self.type.kind in AMOUNTS


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

    def seen(self, table: Table, column: Column, alias: str, *, own: bool = False) -> Seen:
        """A column of the rows that `alias` stands for, as the rows of some table see it, or of those themselves."""
        written = exp.column(identifier(column.name), table=None if own else identifier(table.name))
        return Seen(type=column.type, written=written, sql=f"{alias}.{self.column(table.name, column.name)}")

    def above(self, protection: Protection, table: Table, *, public: bool = True) -> tuple[str, list[Seen]]:
        """Joins from rows `r` to the rows above and the public rows they lead to, and the columns seen there.

        Of a table that is reached in two ways no column is seen: its name would not say which row is meant.
        """
        joins: list[str] = []
        seen: list[Seen] = []
        kinds = _UPWARDS if public else (LinkKind.OWNER,)
        steps = [("r", link) for link in protection.links_of(table.name) if link.kind in kinds]
        for left, link in steps:
            alias, target = f"a{len(joins)}", protection.schema.table(link.target)
            joined = self.joined(left, alias, link.table, link.key)
            joins.append(f"LEFT JOIN {self.name(target.name)} {alias} ON {joined}")
            if [step.target for _, step in steps].count(target.name) == 1:
                plain = [c for c in target.columns if c.name not in target.surrogate_columns]
                seen += [self.seen(target, c, alias) for c in plain]
            reached = {table.name, *(step.target for _, step in steps)}
            onwards = protection.links_of(target.name)
            steps += [(alias, up) for up in onwards if up.kind in kinds and up.target not in reached]
        return " ".join(joins), seen

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

    def numbers(self, columns: Sequence[str], rest: str) -> NDArray[np.float64]:
        """Numbers, dates and times of the rows of a query, as numbers in the same order; NaN for NULL."""
        terms = ", ".join(f"{column} AS n{i}" for i, column in enumerate(columns))
        found = self._connection.sql(f"SELECT {terms} {rest}").to_arrow_table()
        return np.stack([_as_numbers(column) for column in found.columns], axis=1)

    def _load(self, table: Table, name: str) -> None:
        plain = [self.column(table.name, c.name) for c in table.columns]
        batches = self._source.read(table)
        types = pa.schema([pa.field(n, f.type) for n, f in zip(plain, arrow_schema(table), strict=True)])
        reader = pa.RecordBatchReader.from_batches(types, (b.rename_columns(plain).cast(types) for b in batches))
        self._connection.register("reader", reader)
        self._connection.execute(f"CREATE TABLE {name} AS FROM reader")
        self._connection.unregister("reader")


def _as_numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), np.float64)
