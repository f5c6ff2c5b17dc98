"""Columns of a row that add up the rows below it, worked out when those are there.

Rows below come in the order of the rows above, as they are made, so that both are read once, side by side: of each
range of rows above, the rows below are grouped by DuckDB, one thread, row after row. Sums of decimals and whole numbers
are exact, sums of floats are added in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.deferred import duckdb, exp
from privbench.errors import ModelError
from privbench.rules.computed import stored
from privbench.rules.evaluate import Evaluator, without_zone
from privbench.schema.expression import DIALECT, ColumnName, Expression
from privbench.schema.tables import Place
from privbench.schema.types import SqlType
from privbench.schema.unit import Protection

Numbers = NDArray[np.int64]
ABOVE = "\0above"
"""The column of the row number of the row above; no column of a table has this name."""
_RESULT = "aggregate"
"""The table that stands for results of aggregates; columns of the row itself have none."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A column of a table that an expression makes of the row and, inside aggregates, of rows below it."""

    parent: str
    column: str
    expression: Expression
    """Columns of rows below stand inside aggregates as `table.column`; bare names are the row's own."""

    @cached_property
    def below(self) -> dict[str, frozenset[str]]:
        """The tables below that it looks at, and which columns of theirs."""
        named = [c for c in self.expression.aggregated if c.table is not None]
        return {
            table: frozenset(c.column for c in named if c.table == table and c.column != "*")
            for table in sorted({c.table for c in named if c.table is not None})
        }


def late_aggregates(protection: Protection, places: Sequence[Place]) -> tuple[Aggregate, ...]:
    """Columns that are worked out when all rows are there; one that follows from another has that one's words.

    `places` has each after those that it follows from.
    """
    made: dict[tuple[str, str], Aggregate] = {}
    for table, name in places:

        def spelled_out(node: exp.Expr, table: str = table) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.table not in ("", table):
                return node
            late = made.get((table, node.name))
            return exp.column(node.this) if late is None else exp.paren(late.expression.tree.copy())

        tree = stored(protection.schema.table(table).column(name)).tree.copy().transform(spelled_out)
        made[table, name] = Aggregate(parent=table, column=name, expression=Expression(sql=tree.sql(DIALECT)))
    return tuple(made.values())


class RowsBelow:
    """Rows of a table in the order of rows above, with their numbers in `ABOVE`, taken range by range."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, *, name: str) -> None:
        self._batches = batches
        self.schema = schema
        self._left = schema.empty_table()
        self._name = name
        self._reached = -1

    def until(self, last: int) -> pa.Table:
        """The next rows, up to those of the row above with this number, which is left out."""
        pieces = [self._left]
        while self._reached < last and (batch := next(self._batches, None)) is not None:
            above = batch.column(ABOVE).to_numpy()
            batch = batch.filter(pa.array(above >= 0))
            above = np.append(self._reached, above[above >= 0])
            if (np.diff(above) < 0).any():
                raise ModelError(f"{self._name}: its rows are not made in the order of their owners.")
            self._reached = int(above[-1])
            pieces.append(pa.Table.from_batches([batch]))
        rows = pa.concat_tables(pieces)
        cut = int(np.searchsorted(rows.column(ABOVE).to_numpy(), last))
        self._left = rows.slice(cut)
        return rows.slice(0, cut)


class Folding:
    """Works out some aggregates of one table. A context manager: it holds connections."""

    def __init__(
        self,
        aggregates: Sequence[Aggregate],
        *,
        own: Mapping[str, pa.DataType],
        below: Mapping[str, pa.Schema],
        types: Sequence[SqlType],
    ) -> None:
        """`own` are the columns of the table itself; `below` has `ABOVE` in each table; `types` are the columns'."""
        self._stack = ExitStack()
        self._base = self._stack.enter_context(duckdb.connect(config={"threads": 1}))
        self._base.execute("SET enable_external_access = false")
        self._below = {table: (f"t{i}", schema) for i, (table, schema) in enumerate(below.items())}
        self._grouped: list[_Grouped] = []
        outer = [self._outer(a.expression, kind) for a, kind in zip(aggregates, types, strict=True)]
        self._types = [kind.arrow for kind in types]
        where = ", ".join(f"{a.parent}.{a.column}" for a in aggregates)
        columns = {ColumnName(None, name): kind for name, kind in own.items()}
        columns |= {ColumnName(_RESULT, str(i)): g.empty.type for i, g in enumerate(self._grouped)}
        self._evaluator = self._stack.enter_context(Evaluator(outer, columns, where=where))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def values(self, rows: pa.RecordBatch, first: int, below: Mapping[str, pa.Table]) -> list[pa.Array]:
        """The aggregates of rows that are numbered from `first`, given the rows below them."""
        for table, found in below.items():
            name, schema = self._below[table]
            self._base.register(name, pa.table([without_zone(c) for c in found.columns], names=_plain(schema)))
        columns = {ColumnName(None, name): rows.column(name) for name in rows.schema.names}
        for i, grouped in enumerate(self._grouped):
            columns[ColumnName(_RESULT, str(i))] = grouped.values(self._base, first, rows.num_rows)
        made = self._evaluator.values(columns)
        return [array.cast(kind) for array, kind in zip(made, self._types, strict=True)]

    def _outer(self, expression: Expression, kind: SqlType) -> Expression:
        """The expression over the row, with a column for each aggregate, as a value of the column's type."""

        def replace(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.AggFunc):
                return node
            self._grouped.append(self._group(node))
            return exp.column(str(len(self._grouped) - 1), table=_RESULT, quoted=True)

        tree = expression.tree.copy().transform(replace)
        return Expression(sql=f"TRY_CAST({tree.sql(DIALECT)} AS {kind.sql.removesuffix('TZ')})")  # rows are in UTC

    def _group(self, node: exp.AggFunc) -> _Grouped:
        tables = {column.table for column in node.find_all(exp.Column)}
        name, schema = self._below[next(iter(tables))]
        columns = dict(zip(schema.names, _plain(schema), strict=True))

        def rename(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            return exp.column(columns[ABOVE if isinstance(part.this, exp.Star) else part.name])

        renamed = node.copy().transform(rename)
        argument = next(renamed.find_all(exp.Distinct), renamed)
        for part in list(argument.iter_expressions()):  # where it fails, the row does not count
            part.replace(exp.Anonymous(this="TRY", expressions=[part.copy()]))
        sql = renamed.sql(DIALECT)
        empty = pa.table([without_zone(pa.array([], field.type)) for field in schema], names=_plain(schema))
        self._base.register(name, empty)
        found = self._base.sql(f"SELECT {sql} AS v FROM {name}").to_arrow_table()  # noqa: S608  parsed
        return _Grouped(sql, name, columns[ABOVE], found.column(0).combine_chunks())


@dataclass(frozen=True, slots=True)
class _Grouped:
    """One aggregate over a table below."""

    sql: str
    table: str
    above: str
    empty: pa.Array
    """Its value where there are no rows."""

    def values(self, base: duckdb.DuckDBPyConnection, first: int, rows: int) -> pa.Array:
        """The value for each of the rows above, which are numbered from `first`."""
        query = f"SELECT {self.above}, {self.sql} FROM {self.table} GROUP BY {self.above} ORDER BY {self.above}"  # noqa: S608
        found = base.sql(query).to_arrow_table()
        at = np.zeros(rows, np.int64)  # 0: the value where there are no rows
        at[found.column(0).to_numpy() - first] = np.arange(1, found.num_rows + 1)
        return pa.concat_arrays([self.empty, *found.column(1).cast(self.empty.type).chunks]).take(pa.array(at))


def _plain(schema: pa.Schema) -> list[str]:
    """Names that are no words of SQL."""
    return [f"c{i}" for i in range(len(schema))]
