"""Rules: what every row of a table keeps, as the spec says it under `rules:`.

A rule is a SQL expression over the row, like a CHECK, and may name columns of the rows above it as `table.column`.
Names are spelled here as the columns are, whatever their case in the rule.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from privbench.errors import SpecError
from privbench.schema.choices import closest
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.tables import Table
from privbench.schema.unit import Protection


def spelled_rules(tables: Sequence[Table]) -> list[Table]:
    """The tables with their rules spelled as the columns are; a name that is not there stays as it is."""
    columns = {table.name: [column.name for column in table.columns] for table in tables}
    return [
        replace(table, checks=tuple(spelled(check, table.name, columns) for check in table.checks))
        if table.checks
        else table
        for table in tables
    ]


def spelled(rule: Expression, table: str, columns: Mapping[str, Collection[str]]) -> Expression:
    """A rule of a table with its names spelled as those of the tables' columns.

    >>> from privbench.schema.expression import parse_expression
    >>> rule = parse_expression("Sent >= orders.PLACED AND line.sent < 9", where="rules")
    >>> spelled(rule, "line", {"line": ["sent"], "Orders": ["placed"]}).sql
    'sent >= Orders.placed AND sent < 9'
    """

    def spell(name: ColumnName) -> ColumnName | None:
        other = table if name.table is None else _find(name.table, columns)
        column = None if other is None else _find(name.column, columns[other])
        if other is None or column is None:
            return None
        return ColumnName(None if other == table else other, column)

    return rule.spelled(spell)


def wrong_names_in(rule: Expression, table: str, columns: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Say which names of a spelled rule are not there, and that a rule looks at no rows below."""
    for name in rule.aggregated:
        yield f"{rule}: a rule looks at the row and at rows above it, not at an aggregate ({name}). Take it out."
    for name in rule.columns:
        if name.table is not None and name.table not in columns:
            yield f"{rule}: there is no table {name.table!r}. {closest(name.table, columns)}"
        elif name.column not in columns[name.table or table]:
            known = columns[name.table or table]
            yield f"{rule}: {name.table or table} has no column {name.column!r}. {closest(name.column, known)}"


def check_rules(protection: Protection) -> None:
    """Refuse rules over rows that a row does not belong to. Raises SpecError naming the rule."""
    for table in protection.schema.tables:
        private = table.name in protection.order
        above = list(protection.above(table.name)) if private else []
        for rule in table.checks:
            for name in (n for n in rule.columns if n.table is not None and n.table not in above):
                known = ", ".join(above) or "none"
                raise SpecError(
                    f"tables.{table.name}.rules: {rule}: a row of {table.name} belongs to no row of {name.table}, "
                    f"so that {name} is not one column. Tables above {table.name}: {known}. Take the rule out."
                )


def _find(name: str, names: Collection[str]) -> str | None:
    """The name as it is spelled: exactly so, else without regard to case."""
    if name in names:
        return name
    return next((known for known in names if known.casefold() == name.casefold()), None)
