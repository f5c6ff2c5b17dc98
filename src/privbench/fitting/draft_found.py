"""What a drafted spec says of the data beside domains: computed columns and rules that hold there.

It reads private values: all that it says is marked as taken from the data, and how many rows disagree is told to the
publisher alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privbench.deferred import exp
from privbench.fitting.draft_relative import Tell
from privbench.fitting.find_computed import find_computed
from privbench.fitting.find_rules import find_rules
from privbench.fitting.tables_in_sql import NUMBERS, TablesInSql
from privbench.schema.computed import ComputedOrigin, equals_of
from privbench.schema.domain import Origin
from privbench.schema.expression import DIALECT, Expression
from privbench.schema.lists import listed_columns
from privbench.schema.table_spec import ColumnSpec, RuleSpec, TableSpec
from privbench.schema.tables import Column, Place, Schema, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Protection

_ORDERED = (*NUMBERS, Kind.DATE, Kind.TIME, Kind.TIMESTAMP)


def with_computed(
    sql: TablesInSql, protection: Protection, tables: Mapping[str, TableSpec], *, tell: Tell
) -> tuple[dict[str, TableSpec], Protection]:
    """The tables of a drafted spec in which columns are computed that are so in the data; and the same for the unit."""
    made, computed = dict(tables), dict[Place, Expression]()
    for found in find_computed(sql, protection):
        if equals_of(found.expression, None) is not None:  # only method `tree` makes rows with their number
            continue
        columns = dict(made[found.table].columns)
        update = {"computed": found.expression, "computed_origin": ComputedOrigin.DATA, "domain": None}
        columns[found.column] = columns[found.column].model_copy(update=update)
        made[found.table] = made[found.table].model_copy(update={"columns": columns})
        computed[found.table, found.column] = found.expression
        note = f"{found.disagreeing:,} of {found.rows:,} rows disagree (for you alone: not published)"
        tell((found.table, found.column), note)
    return made, replace(protection, schema=_with_expressions(protection.schema, computed))


def with_rules(
    sql: TablesInSql, protection: Protection, tables: Mapping[str, TableSpec], *, tell: Tell
) -> dict[str, TableSpec]:
    """The tables of a drafted spec with the rules that hold in the data."""
    made = dict(tables)
    for found in find_rules(sql, protection):
        rule = RuleSpec(check=found.expression.sql, origin=Origin.DATA)
        made[found.table] = made[found.table].model_copy(update={"rules": (*made[found.table].rules, rule)})
        if found.breaking:
            note = f"{found.breaking:,} rows break {found.expression} (for you alone: not published)"
            tell((found.table, found.expression.columns[0].column), note)
    return made


def with_bounds(sql: TablesInSql, protection: Protection, tables: Mapping[str, TableSpec]) -> dict[str, TableSpec]:
    """The tables of a drafted spec in which columns stay between their ends in the data that no domain keeps there.

    The domain of differences does not: a career that begins late would end after the last game of all. Nor does that of
    a hidden list, which has the years of all its members.
    """
    made = dict(tables)
    for name in protection.order:
        table = protection.schema.table(name)
        for column in (c for c in table.columns if _lacks_bounds(protection, name, c, made[name].columns[c.name])):
            seen, (low, high) = sql.seen(table, column, "r", own=True), _ends(sql, table, column)
            if (
                low is not None
                and high is not None
                and (low, high) != _ends_in_list(sql, protection, name, column.name)
            ):
                literals = [_literal(end, column.type) for end in (low, high)]
                between = exp.Between(this=seen.written.copy(), low=literals[0], high=literals[1])
                rule = RuleSpec(check=between.sql(DIALECT), origin=Origin.DATA)
                made[name] = made[name].model_copy(update={"rules": (*made[name].rules, rule)})
    return made


def _ends(sql: TablesInSql, table: Table, column: Column) -> tuple[str | None, str | None]:
    """The smallest and the largest value of a column, as text."""
    seen = sql.seen(table, column, "r", own=True)
    low, high = sql.ask([f"CAST({end}({seen.sql}) AS VARCHAR)" for end in ("MIN", "MAX")], table.name)
    return low, high


def _ends_in_list(
    sql: TablesInSql, protection: Protection, member: str, column: str
) -> tuple[str | None, str | None] | None:
    """The ends of the same column in the list that a table is a member of; None if there is none."""
    there = listed_columns(protection, member).get(column)
    of = protection.schema.table(protection.owners[member].table) if there is not None else None
    return None if there is None or of is None else _ends(sql, of, of.column(there))


def _lacks_bounds(protection: Protection, table: str, column: Column, words: ColumnSpec) -> bool:
    """Whether a column is coded as a difference, or ordered and in the key into a list of several tables."""
    if words.relative_to is not None:
        return True
    if column.name not in listed_columns(protection, table) or column.type.kind not in _ORDERED:
        return False
    return len(protection.schema.table(protection.owners[table].table).list_of) > 1


def _literal(text: str, kind: SqlType) -> exp.Expr:
    """A value as SQL writes it."""
    if kind.kind in NUMBERS:
        return exp.Literal.number(text)
    return exp.cast(exp.Literal.string(text), kind.sql, dialect=DIALECT)


def _with_expressions(schema: Schema, computed: Mapping[Place, Expression]) -> Schema:
    return replace(
        schema,
        tables=tuple(
            replace(
                t, columns=tuple(replace(c, computed=computed.get((t.name, c.name), c.computed)) for c in t.columns)
            )
            for t in schema.tables
        ),
    )
