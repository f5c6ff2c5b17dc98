"""Find in the data which columns are computed from others: copies, products, and aggregates of child rows.

Candidates follow from the schema: what a row can see of the rows above it and of the public rows it references, and
what it can add up of the rows it owns. They are tried on a sample, and those that hold there on all rows. A column that
agrees with a candidate hardly better than chance would have it (flags that are nearly always false) is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privbench.deferred import exp
from privbench.fitting.tables_in_sql import AMOUNTS, NUMBERS, Join, Seen, TablesInSql, needed
from privbench.schema.expression import Expression, expression_of, identifier
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Protection

AGREEING = 0.995
"""The share of rows that must agree with a formula, which will hold in all synthetic rows."""
OF_CHANCE = 0.1
"""Rows that disagree may be at most this part of those that would disagree with the formula's value in another row."""
MOST_FACTORS = 8
"""Of tables with more numbers than this no products are tried: there would be too many."""
DECIMALS = 2
"""Sums and products of floats are rounded to cents where the column is."""
_Numbers = NDArray[np.float64]
_TIMES = (Kind.DATE, Kind.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A column that equals an expression in nearly all rows."""

    table: str
    column: str
    expression: Expression
    rows: int
    disagreeing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A column, and what it may equal."""

    column: Column
    own: str
    written: exp.Expr
    sql: str

    @property
    def comparable_own(self) -> str:
        """The column as a number, or as the hash of it, for a first look."""
        return _comparable(self.own, self.column.type)

    @property
    def comparable(self) -> str:
        """The same of what it may equal."""
        return _comparable(self.sql, self.column.type)

    @property
    def holds(self) -> str:
        """The condition under which a row agrees."""
        if self.column.type.kind is Kind.FLOAT:
            near = f"ABS({self.own} - {self.sql}) <= 1e-6 * GREATEST(ABS({self.own}), 1)"
            return f"(COALESCE({near}, {self.own} IS NULL AND {self.sql} IS NULL))"
        return f"({self.own} IS NOT DISTINCT FROM TRY_CAST({self.sql} AS {self.column.type.sql}))"


def _comparable(sql: str, kind: SqlType) -> str:
    return f"CAST({sql} AS DOUBLE)" if kind.kind in NUMBERS else f"CAST(hash({sql}) >> 12 AS DOUBLE)"


def find_computed(tables: TablesInSql, protection: Protection) -> Iterator[Computed]:
    """The columns of private tables that are computed, each with the first formula that holds, plain ones first.

    What a row takes from rows above is not added up there again: both would be computed from each other.
    """
    below: set[tuple[str, str]] = set()
    left = {
        name: [protection.schema.table(name).column(c) for c in protection.attributes(name)]
        for name in protection.order
    }
    for name in protection.order:
        table = protection.schema.table(name)
        joins, seen = tables.above(protection, table)
        for found in _holding(tables, table, joins, [f for c in left[name] for f in _of_row(tables, table, c, seen)]):
            left[name] = [c for c in left[name] if c.name != found.column]
            if any(c.table in protection.order for c in found.expression.columns):
                below.add((name, found.column))
            yield found
    for name in protection.order:
        table = protection.schema.table(name)
        joins, added = _joins_below(tables, protection, table, below)
        yield from _holding(
            tables, table, joins, [f for c in left[name] for f in _of_children(tables, table, c, added)]
        )


def _holding(
    tables: TablesInSql, table: Table, joins: Sequence[Join], candidates: Sequence[_Candidate]
) -> Iterator[Computed]:
    done: set[str] = set()
    for candidate in _likely(tables, table, joins, candidates):
        column = candidate.column.name
        if column in done:
            continue
        counts = ["COUNT(*)", f"COUNT(*) FILTER (WHERE {candidate.holds})"]
        rows, agreeing = tables.ask(counts, table.name, needed(joins, candidate.sql))
        if agreeing >= AGREEING * rows:
            done.add(column)
            expression = expression_of(candidate.written, where=f"{table.name}.{column}")
            yield Computed(
                table=table.name, column=column, expression=expression, rows=rows, disagreeing=rows - agreeing
            )


def _likely(
    tables: TablesInSql, table: Table, joins: Sequence[Join], candidates: Sequence[_Candidate]
) -> list[_Candidate]:
    """The candidates that hold in a sample, and far more often than with the formula's value in the row before.

    Wide tables have tens of thousands of candidates, so they are compared outside of SQL.
    """
    terms = list(dict.fromkeys(sql for c in candidates for sql in (c.comparable_own, c.comparable)))
    if not terms:
        return []
    values = tables.numbers(terms, table.name, joins)
    at = {sql: i for i, sql in enumerate(terms)}
    of_column: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        of_column.setdefault(candidate.column.name, []).append(candidate)
    likely: list[_Candidate] = []
    for of in of_column.values():
        own, expected = values[:, [at[of[0].comparable_own]]], values[:, [at[c.comparable] for c in of]]
        agree = _near(own, expected, of[0].column.type)
        by_chance = _near(own[1:], expected[:-1], of[0].column.type)
        differ, would_differ = (~agree).sum(axis=0), (~by_chance).sum(axis=0)
        held = (differ <= (1 - AGREEING) * len(own)) & (would_differ > 0) & (differ <= OF_CHANCE * would_differ)
        likely += [of[i] for i in np.flatnonzero(held)]
    return likely


def _near(values: _Numbers, expected: _Numbers, kind: SqlType) -> NDArray[np.bool_]:
    """Where values are the expected ones when these are written as a type; two NULLs are the same.

    >>> from privbench.schema.types import parse_type
    >>> _near(np.array([2.35, 2.35, np.nan]), np.array([2.354, 2.36, np.nan]), parse_type("DECIMAL(8,2)")).tolist()
    [True, False, True]
    """
    near: _Numbers | float = 0.0
    if kind.kind is Kind.FLOAT:
        near = 1e-6 * np.maximum(np.abs(values), 1)
    elif kind.kind in NUMBERS:
        near = 0.5 * 10.0**-kind.scale
    return (np.abs(values - expected) <= near) | (np.isnan(values) & np.isnan(expected))


def _of_row(tables: TablesInSql, table: Table, column: Column, seen: Sequence[Seen]) -> Iterator[_Candidate]:
    own = tables.seen(table, column, "r", own=True).sql
    for other in seen:
        if other.type == column.type:
            yield _Candidate(column=column, own=own, written=other.written, sql=other.sql)
    if column.type.kind not in AMOUNTS:
        return
    mine = [c for c in map(table.column, table.attributes) if c.name != column.name and c.type.kind in NUMBERS]
    others = [s for s in seen if s.is_number]
    if len(mine) <= MOST_FACTORS and len(others) <= 2 * MOST_FACTORS:
        factors = [tables.seen(table, c, "r", own=True) for c in mine]
        for a, b in [*combinations(factors, 2), *((a, b) for a in factors for b in others)]:
            yield _number(
                column, own, exp.Mul(this=a.written.copy(), expression=b.written.copy()), f"TRY({a.sql} * {b.sql})"
            )


def _number(column: Column, own: str, written: exp.Expr, sql: str) -> _Candidate:
    if column.type.kind is Kind.FLOAT:
        written, sql = exp.func("ROUND", written, exp.Literal.number(DECIMALS)), f"ROUND({sql}, {DECIMALS})"
    return _Candidate(column=column, own=own, written=written, sql=f"({sql})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Added:
    """A column of aggregates over the rows of a child table."""

    type: SqlType | None
    """That of the values, for MIN and MAX; None for counts and sums, which any number may equal."""
    number: bool
    """Whether it is a count or a sum: 0, and not NULL, where there are no rows."""
    written: exp.Expr
    sql: str


def _joins_below(
    tables: TablesInSql, protection: Protection, table: Table, taken: Collection[tuple[str, str]]
) -> tuple[list[Join], list[_Added]]:
    """Joins to the aggregates of each child table, and which these are, without columns `taken`."""
    joins: list[Join] = []
    added: list[_Added] = []
    for child in (protection.schema.table(t) for t, key in protection.owners.items() if key.table == table.name):
        alias, key = f"b{len(joins)}", protection.owners[child.name]
        aggregates = list(_aggregated(tables, child, taken))
        columns = [f"d.{tables.column(child.name, c)}" for c in key.columns]
        keys = ", ".join(columns)
        on = tables.joined(alias, "r", child.name, key)
        joins.append(
            Join(
                table=child.name,
                alias=alias,
                left="r",
                by=(columns[0].removeprefix("d."), tables.column(table.name, key.references[0])),
                sql=f"LEFT JOIN (SELECT {keys}{{terms}} FROM {{rows}} d GROUP BY {keys}) {alias} ON {on}",  # noqa: S608  plain names
                terms={f"x{i}": a.sql for i, a in enumerate(aggregates)},
            )
        )
        for i, a in enumerate(aggregates):
            sql = f"COALESCE({alias}.x{i}, 0)" if a.number else f"{alias}.x{i}"
            added.append(_Added(type=a.type, number=a.number, written=a.written, sql=sql))
    return joins, added


def _aggregated(tables: TablesInSql, child: Table, taken: Collection[tuple[str, str]]) -> Iterator[_Added]:
    star = exp.Column(this=exp.Star(), table=identifier(child.name))
    yield _Added(type=None, number=True, written=exp.Count(this=star), sql="COUNT(*)")
    columns = [tables.seen(child, child.column(c), "d") for c in child.attributes if (child.name, c) not in taken]
    numbers = [s for s in columns if s.is_number]
    for one in numbers:
        yield _Added(type=None, number=True, written=exp.Sum(this=one.written.copy()), sql=f"SUM({one.sql})")
    if len(numbers) <= MOST_FACTORS:
        for a, b in ((a, b) for a, b in combinations(numbers, 2) if a.is_amount or b.is_amount):
            product = exp.Mul(this=a.written.copy(), expression=b.written.copy())
            yield _Added(type=None, number=True, written=exp.Sum(this=product), sql=f"SUM(TRY({a.sql} * {b.sql}))")
    for one in columns:
        if one.is_number or one.type.kind in _TIMES:
            for name, kind in (("MIN", exp.Min), ("MAX", exp.Max)):
                yield _Added(
                    type=one.type, number=False, written=kind(this=one.written.copy()), sql=f"{name}({one.sql})"
                )


def _of_children(tables: TablesInSql, table: Table, column: Column, added: Sequence[_Added]) -> Iterator[_Candidate]:
    own = tables.seen(table, column, "r", own=True).sql
    for aggregate in added:
        if aggregate.type == column.type:
            yield _Candidate(column=column, own=own, written=aggregate.written, sql=aggregate.sql)
        elif aggregate.type is None and column.type.kind in NUMBERS:
            yield _number(column, own, aggregate.written.copy(), aggregate.sql)
