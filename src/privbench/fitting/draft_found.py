"""What a drafted spec says of the data beside domains: computed columns and rules that hold there.

It reads private values: all that it says is marked as taken from the data, and how many rows disagree is told to the
publisher alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from privbench.fitting.draft_relative import Tell
from privbench.fitting.find_computed import find_computed
from privbench.fitting.find_rules import find_rules
from privbench.fitting.tables_in_sql import TablesInSql
from privbench.schema.computed import ComputedOrigin, equals_of
from privbench.schema.domain import Origin
from privbench.schema.expression import Expression
from privbench.schema.table_spec import RuleSpec, TableSpec
from privbench.schema.tables import Schema
from privbench.schema.unit import Protection

Place = tuple[str, str]


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


def _with_expressions(schema: Schema, computed: Mapping[Place, Expression]) -> Schema:
    return Schema(
        tables=tuple(
            replace(
                t, columns=tuple(replace(c, computed=computed.get((t.name, c.name), c.computed)) for c in t.columns)
            )
            for t in schema.tables
        )
    )
