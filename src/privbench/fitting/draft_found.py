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
from privbench.schema.table_spec import RuleSpec, TableSpec
from privbench.schema.tables import Place, Schema
from privbench.schema.types import SqlType
from privbench.schema.unit import Protection


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
    """The tables of a drafted spec in which columns that are coded as differences stay between their ends in the data.

    The domain of differences does not say so: a career that begins late would end after the last game of all.
    """
    made = dict(tables)
    for name in protection.order:
        table = protection.schema.table(name)
        for column in (c for c in table.columns if made[name].columns[c.name].relative_to is not None):
            seen = sql.seen(table, column, "r", own=True)
            ends = [f"CAST({end}({seen.sql}) AS VARCHAR)" for end in ("MIN", "MAX")]
            low, high = sql.ask(ends, name)
            if low is not None:
                literals = [_literal(end, column.type) for end in (low, high)]
                between = exp.Between(this=seen.written.copy(), low=literals[0], high=literals[1])
                rule = RuleSpec(check=between.sql(DIALECT), origin=Origin.DATA)
                made[name] = made[name].model_copy(update={"rules": (*made[name].rules, rule)})
    return made


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
