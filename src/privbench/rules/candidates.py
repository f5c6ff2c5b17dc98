"""What columns may have to do with each other, by the schema alone: types, names and key paths. Looks at no value."""

from collections.abc import Iterator

from privbench.schema.relative import Base, comparable
from privbench.schema.tables import Column
from privbench.schema.types import Kind
from privbench.schema.unit import Protection

_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIME)
YEAR = "year"
"""Integers that have this in their names are years: other integers are seldom differences of each other."""


def relative_candidates(protection: Protection, table: str, name: str) -> Iterator[Base]:
    """The bases that a column might be coded against: dates, times or years of its own row, and of the rows above."""
    declared = protection.schema.table(table)
    column = declared.column(name)
    if not is_time(column) or name not in protection.attributes(table) or (name,) in declared.keys:
        return
    for place in (table, *protection.above(table)):
        for other in protection.attributes(place):
            base = protection.schema.table(place).column(other)
            if (place, other) != (table, name) and is_time(base) and comparable(column, base):
                yield Base(place, other)


def is_time(column: Column) -> bool:
    """Whether a column says when something was, as far as its type and its name tell."""
    return column.type.kind in _TIMES or (column.type.kind is Kind.INTEGER and YEAR in column.name.lower())
