"""Columns that are coded as a difference: from another column of the row, of a row above it, or from the row before.

`relative_to` names the base. It is resolved here, against the names that the schema has; the difference itself is made
in `encode.relative`, and nothing of it is private: which base a column has stands in the spec.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privbench.errors import SpecError
from privbench.schema.types import Kind

if TYPE_CHECKING:  # tables and the unit are built from columns that have a base
    from privbench.schema.tables import Column, Table
    from privbench.schema.unit import Protection

PREVIOUS = "previous"
"""The word for the row before: of the rows of one owner, in the order of the column's own values."""
MOST_DIGITS = 18
"""Decimals with more digits have differences that do not fit 64 bits."""
_DATES = frozenset({Kind.DATE, Kind.TIMESTAMP})
RELATIVE = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
"""The kinds of types that have differences."""


@dataclass(frozen=True, slots=True, order=True)
class Base:
    """The column that another one is coded against. For `previous`, the column itself, in the row before."""

    table: str
    column: str
    previous: bool = False


def owners_above(protection: "Protection", table: str) -> Iterator[str]:
    """The tables above a table: its owner, that one's owner, and so on. A lookup has none."""
    while table in protection.owners:
        table = protection.owners[table].table
        yield table


def base_of(protection: "Protection", table: str, name: str) -> Base | None:
    """The base of a column; None for one that is not relative. Raises SpecError where its name leads nowhere.

    The word `previous` comes first, then the columns of the row itself, then those of the rows above. Where a name can
    be read in two ways, `TABLE.COLUMN` and, with quotes, `"TABLE"."COLUMN"` say which is meant.
    """
    column = protection.schema.table(table).column(name)
    if column.relative_to is None:
        return None
    if column.relative_to == PREVIOUS:
        return Base(table, name, previous=True)
    tables = [protection.schema.table(t) for t in (table, *owners_above(protection, table))]
    places = [(t.name, c.name) for t in tables for c in t.columns]
    spellings = {_quoted(*place): place for place in places}
    spellings |= {f"{t}.{c}": (t, c) for t, c in reversed(places)}
    spellings |= {c.name: (table, c.name) for c in tables[0].columns}
    if column.relative_to not in spellings:
        above = ", ".join(t.name for t in tables[1:]) or "none"
        raise SpecError(
            f"tables.{table}.columns.{name}.relative_to: there is no column {column.relative_to!r} in the row itself "
            f"or in a row that owns it (owners of {table}: {above}). Write the name of a column of {table}, "
            f"`TABLE.COLUMN` for one of an owner, or `{PREVIOUS}`."
        )
    return Base(*spellings[column.relative_to])


def relative_columns(protection: "Protection", table: str) -> dict[str, Base]:
    """The columns of a table that are coded as differences, bases before what is relative to them.

    Raises SpecError where a base cannot be, or columns are relative to each other in a circle.
    """
    declared = protection.schema.table(table)
    bases = {c.name: base for c in declared.columns if (base := base_of(protection, table, c.name)) is not None}
    ordered: dict[str, Base] = {}
    while left := [name for name in bases if name not in ordered]:
        free = [n for n in left if bases[n].previous or bases[n].table != table or bases[n].column not in left]
        if not free:
            raise SpecError(
                f"tables.{table}.columns.{left[0]}.relative_to: {', '.join(left)} are relative to each other in a "
                "circle, so that none can be worked out first. Take `relative_to` out of one of them."
            )
        ordered |= {name: bases[name] for name in free}
    return ordered


def check_relative(protection: "Protection") -> None:
    """Refuse a relative column whose base cannot be one. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        for column in (c for c in table.columns if c.relative_to is not None):
            where = f"tables.{table.name}.columns.{column.name}.relative_to"
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            if column.name not in table.attributes:
                raise SpecError(f"{where}: the column is a key, or derived, and not learnt. Take this out.")
            _check_type(where, column)
            if (column.name,) in table.keys:
                raise SpecError(f"{where}: the column is UNIQUE, and its values are made up. Take this out.")
            base = base_of(protection, table.name, column.name)
            assert base is not None  # noqa: S101  it is relative
            _check_base(where, protection, table, column, base)
        relative_columns(protection, table.name)


def _check_type(where: str, column: "Column") -> None:
    if column.type.kind not in RELATIVE or column.type.precision > MOST_DIGITS:
        raise SpecError(
            f"{where}: {column.type.sql} has no differences. Dates, times, timestamps and numbers (decimals of at "
            f"most {MOST_DIGITS} digits) have. Take this out."
        )


def _check_base(where: str, protection: "Protection", table: "Table", column: "Column", base: Base) -> None:
    if base.previous:
        if table.name not in protection.owners:
            raise SpecError(
                f"{where}: the rows before are those of the same owner, and rows of {table.name} have none. Name a "
                "column, or take this out."
            )
        return
    other = protection.schema.table(base.table).column(base.column)
    if base == Base(table.name, column.name):
        raise SpecError(f"{where}: the column cannot be its own base. For the row before write `{PREVIOUS}`.")
    if base.column not in protection.schema.table(base.table).attributes:
        raise SpecError(
            f"{where}: {base.table}.{base.column} is a key, or derived, and not learnt. Name another column."
        )
    if not _comparable(column, other):
        raise SpecError(
            f"{where}: {base.table}.{base.column} is {other.type.sql}, and {column.type.sql} minus {other.type.sql} is "
            f"no number of steps of {column.type.sql}. Name a column of the same type, or change the types."
        )


def _comparable(column: "Column", other: "Column") -> bool:
    """Whether the difference of two columns is a number of steps of the first; types of other widths do."""
    kinds = {column.type.kind, other.type.kind}
    alike = len(kinds) == 1 or kinds == _DATES
    return alike and column.type.scale == other.type.scale and other.type.precision <= MOST_DIGITS


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
