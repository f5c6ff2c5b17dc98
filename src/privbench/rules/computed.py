"""Work out computed columns: for the rows of a block, and, as one query, for all rows of a database that is there.

A value is what a database would store: cast to the column's type, which rounds decimals. Where the expression fails, or
is NULL though the column is NOT NULL, the value is NULL, or else the zero of the type: no value can make this fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Self

import numpy as np
import pyarrow as pa

from privbench.deferred import duckdb, exp
from privbench.errors import SpecError, first_line
from privbench.rules.evaluate import Evaluator, sealed_database, without_zone
from privbench.schema.computed import computed_order, equal_columns, named_place, public_paths, row_columns
from privbench.schema.expression import DIALECT, ColumnName, Expression
from privbench.schema.tables import Column, ForeignKey, Place, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Protection

Other = Callable[[str, str], pa.Array]
"""The values of a column of another table, for the rows at hand: of rows above, or of public rows they reference."""
_ANY = ColumnName(None, "")
"""A column that is always there, so that an expression without columns has as many values as there are rows."""
_ZERO = {
    Kind.TEXT: "''",
    Kind.BOOLEAN: "FALSE",
    Kind.DATE: "DATE '1970-01-01'",
    Kind.TIME: "TIME '00:00:00'",
    Kind.TIMESTAMP: "TIMESTAMP '1970-01-01'",
}
CLOSE = 1e-9
"""Floats that differ by a smaller part of themselves count as equal: sums depend on their order."""


def stored(column: Column) -> Expression:
    """The expression of a computed column as a value of its type.

    >>> from privbench.schema.types import parse_type
    >>> price = Column(name="p", type=parse_type("DECIMAL(9,2)"), nullable=False, computed=Expression(sql="a * b"))
    >>> print(stored(price))
    COALESCE(TRY(CAST(a * b AS DECIMAL(9,2))), 0)
    """
    if column.computed is None:
        raise ValueError(f"{column.name} is not computed")
    sql = f"TRY({_cast(column.computed.sql, column.type)})"
    sql = sql if column.nullable else f"COALESCE({sql}, {_ZERO.get(column.type.kind, '0')})"
    return Expression(sql=sql)


def _cast(sql: str, kind: SqlType) -> str:
    if kind.kind is Kind.TEXT:
        cast = f"CAST({sql} AS VARCHAR)"
        return cast if kind.length is None else f"LEFT({cast}, {kind.length})"
    if kind.kind is Kind.DURATION:
        return f"EPOCH_US({sql})"
    names = {Kind.TIMESTAMP: "TIMESTAMP", Kind.DECIMAL: f"DECIMAL({kind.precision},{kind.scale})"}
    return f"CAST({sql} AS {names.get(kind.kind, kind.sql)})"


class ComputedRows:
    """Works out the computed columns of one table over its rows and those above. A context manager."""

    def __init__(self, protection: Protection, table: str, columns: tuple[str, ...] | None = None) -> None:
        """`columns` are some of `row_columns`, in that order; all of them if not named."""
        self._table = protection.schema.table(table)
        self._stack = ExitStack()
        self._evaluators: dict[str, tuple[Evaluator, dict[ColumnName, Place]]] = {}
        for name in row_columns(protection, table) if columns is None else columns:
            expression = stored(self._table.column(name))
            places = {n: place for n in expression.columns if (place := named_place(protection, table, n))}
            types = {n: protection.schema.table(t).column(c).type.arrow for n, (t, c) in places.items()}
            where = f"tables.{table}.columns.{name}.computed"
            evaluator = Evaluator([expression], {**types, _ANY: pa.int8()}, where=where)
            self._evaluators[name] = self._stack.enter_context(evaluator), places

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def values(self, rows: Mapping[str, pa.Array], other: Other, *, count: int) -> dict[str, pa.Array]:
        """The values of the columns, given the other columns of so many rows."""
        made: dict[str, pa.Array] = {}
        for name, (evaluator, places) in self._evaluators.items():
            named = {n: self._named(rows, made, other, place) for n, place in places.items()}
            named[_ANY] = pa.array(np.zeros(count, np.int8))
            made[name] = evaluator.values(named)[0].cast(self._table.column(name).type.arrow)
        return made

    def _named(
        self, rows: Mapping[str, pa.Array], made: Mapping[str, pa.Array], other: Other, place: Place
    ) -> pa.Array:
        table, column = place
        if table != self._table.name:
            return other(table, column)
        return made[column] if column in made else rows[column]


class ComputedQuery:
    """One query over a whole database: in how many rows a computed column is not what it should be."""

    def __init__(self, protection: Protection, place: Place) -> None:
        self._protection = protection
        self._table, self._column = place
        self.columns: dict[str, set[str]] = {}
        """The columns that the query reads, by table. A table is called t0, t1 .., its columns c0, c1 .., by place."""
        self.sql = self._made()

    def _name(self, table: str) -> str:
        return f"t{[t.name for t in self._protection.schema.tables].index(table)}"

    def _short(self, table: str, column: str) -> str:
        self.columns.setdefault(table, set()).add(column)
        return f"c{[c.name for c in self._protection.schema.table(table).columns].index(column)}"

    def _made(self) -> str:
        column = self._protection.schema.table(self._table).column(self._column)
        parts: list[str] = []
        """What stands in the row: columns and aggregates, called p0, p1 .. in the query around it."""
        named = {self._table}

        def part(sql: str) -> exp.Expr:
            parts.append(f"{sql} AS p{len(parts)}")
            return exp.column(f"p{len(parts) - 1}")

        def rename(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.AggFunc):
                return part(self._aggregate(node))
            if not isinstance(node, exp.Column):
                return node
            named.add(node.table or self._table)
            return part(self._outer(node.table or self._table, node.name))

        own = part(self._outer(self._table, self._column)).sql()
        expected = stored(column).tree.copy().transform(rename).sql(DIALECT)
        same = f"{own} IS NOT DISTINCT FROM {expected}"
        if column.type.kind is Kind.FLOAT:
            same = f"{same} OR COALESCE(ABS({own} - {expected}) <= {CLOSE} * ABS({own}), FALSE)"
        rows = f"SELECT {', '.join(parts)} FROM {self._around(named)}"  # noqa: S608  of parsed expressions
        return f"SELECT COUNT(*) FROM ({rows}) WHERE NOT ({same})"  # noqa: S608

    def _outer(self, table: str, column: str) -> str:
        return f"a_{self._name(table)}.{self._short(table, column)}"

    def _around(self, named: Collection[str]) -> str:
        """The rows of the table with those rows above them, and public rows that they reference, that are named."""
        joined = [f"{self._name(self._table)} AS a_{self._name(self._table)}"]
        above = [table for table in self._protection.above(self._table) if table in named]
        chain = self._protection.up_to(self._table, above[-1]) if above else ()
        joined += [self._join(below, self._protection.owners[below], inner="a", outer="a") for below in chain]
        paths = public_paths(self._protection, self._table)
        links = [link for table, path in paths.items() if table in named for link in path]
        joined += [self._join(link.table, link.key, inner="a", outer="a") for link in dict.fromkeys(links)]
        return " LEFT JOIN ".join(joined)

    def _join(self, table: str, key: ForeignKey, *, inner: str, outer: str) -> str:
        """The table that a key references, and on which columns."""
        return f"{self._name(key.table)} AS {outer}_{self._name(key.table)} ON {self._on(table, key, inner, outer)}"

    def _on(self, table: str, key: ForeignKey, inner: str, outer: str) -> str:
        pairs = zip(key.columns, key.references, strict=True)
        own, other = f"{inner}_{self._name(table)}", f"{outer}_{self._name(key.table)}"
        return " AND ".join(f"{own}.{self._short(table, a)} = {other}.{self._short(key.table, b)}" for a, b in pairs)

    def _aggregate(self, node: exp.AggFunc) -> str:
        table = next(node.find_all(exp.Column)).table

        def rename(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            starred = isinstance(part.this, exp.Star)
            return exp.Star() if starred else exp.column(self._short(table, part.name), table=f"b_{self._name(table)}")

        chain = self._protection.up_to(table, self._table)
        joined = [f"{self._name(table)} AS b_{self._name(table)}"]
        joined += [self._join(t, self._protection.owners[t], inner="b", outer="b") for t in chain[:-1]]
        last = self._on(chain[-1], self._protection.owners[chain[-1]], "b", "a")
        inner = node.copy().transform(rename).sql(DIALECT)
        return f"(SELECT {inner} FROM {' JOIN '.join(joined)} WHERE {last})"  # noqa: S608  of parsed expressions

    def run(self, tables: Mapping[str, pa.Table]) -> int:
        """Count the rows that differ, given tables with at least the columns that the query reads."""
        with sealed_database() as base:
            for table, columns in self.columns.items():
                read = {self._short(table, c): without_zone(tables[table].column(c)) for c in sorted(columns)}
                base.register(self._name(table), pa.table(read))
            [(count,)] = base.sql(self.sql).fetchall()
        return int(count)


def check_functions(protection: Protection) -> None:
    """Refuse expressions that cannot be worked out, or not always alike. Raises SpecError naming the column."""
    for table, name in computed_order(protection):
        where = f"tables.{table}.columns.{name}.computed"
        if not is_compared(protection, (table, name)):
            continue
        query = ComputedQuery(protection, (table, name))
        try:
            query.run({t: _empty(protection.schema.table(t), columns) for t, columns in query.columns.items()})
        except duckdb.Error as error:
            raise SpecError(f"{where}: cannot be worked out: {first_line(error)}") from None


def _empty(table: Table, columns: Collection[str]) -> pa.Table:
    return pa.table({name: pa.array([], table.column(name).type.arrow) for name in columns})


def is_compared(protection: Protection, place: Place) -> bool:
    """Whether a computed column can be compared with its expression: the place of a row depends on an order."""
    equals = equal_columns(protection, place[0]).get(place[1])
    return equals is None or equals.rank is None
