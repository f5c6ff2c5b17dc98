"""Work out expressions over the rows of a table, with DuckDB: what a database would say of the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Self

import pyarrow as pa

from privbench.deferred import duckdb
from privbench.errors import SpecError, first_line
from privbench.schema.expression import DIALECT, ColumnName, Expression

Values = Mapping[ColumnName, pa.Array]
"""The values of columns, row by row."""


class Evaluator:
    """Works out some expressions, for as many blocks of rows as there are. A context manager: it holds a connection.

    An expression that fails in a row (a division by zero, a number that does not fit) is NULL there, so that nothing
    that depends on a value can raise.
    """

    def __init__(
        self, expressions: Sequence[Expression], types: Mapping[ColumnName, pa.DataType], *, where: str
    ) -> None:
        """`types` are those of all columns that the expressions may name. SpecError if one cannot be worked out."""
        for expression in expressions:
            missing = [c for c in (*expression.columns, *expression.aggregated) if c not in types]
            if missing:
                raise SpecError(f"{where}: {expression}: there is no column {missing[0]}.")
        self._names = {column: f"c{i}" for i, column in enumerate(types)}
        self._select = ", ".join(
            f"TRY({e.renamed(self._names.__getitem__).sql(DIALECT)}) AS e{i}" for i, e in enumerate(expressions)
        )
        self._connection = _database().cursor()
        try:  # unknown functions, types that do not go together
            self.values({column: pa.array([], kind) for column, kind in types.items()})
        except duckdb.Error as error:
            self.close()
            raise SpecError(f"{where}: cannot be worked out: {first_line(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def values(self, rows: Values) -> list[pa.Array]:
        """The value of each expression in each row."""
        table = pa.table({self._names[name]: without_zone(array) for name, array in rows.items()})
        self._connection.register("t", table)
        made: pa.Table = self._connection.sql(f"SELECT {self._select} FROM t").to_arrow_table()  # noqa: S608  parsed
        return [column.combine_chunks() for column in made.columns]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """An empty database that all expressions of this process are worked out in: to open one takes longer than that."""
    return sealed_database()


def sealed_database() -> duckdb.DuckDBPyConnection:
    """A database that reads no files and counts in UTC, wherever the machine stands."""
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET enable_external_access = false")
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    return database


def without_zone(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Timestamps as they read in UTC: DuckDB counts with those of a zone only by an extension."""
    zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
    return array.cast(pa.timestamp(array.type.unit)) if zoned else array
