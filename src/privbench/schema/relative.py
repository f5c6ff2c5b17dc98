"""Columns that are coded as a difference: from another column of the row, of a row above it, or from the row before.

`relative_to` names the base. It is resolved here, against the names that the schema has; the difference itself is made
in `encode.relative`, and nothing of it is private: which base a column has stands in the spec.
"""

from dataclasses import dataclass

from privbench.errors import SpecError
from privbench.schema.tables import Column, Place, Table
from privbench.schema.types import DIFFERENCE_DIGITS, Kind
from privbench.schema.unit import Protection

PREVIOUS = "previous"
"""The word for the row before: of the rows of one owner, in the order of the column's own values."""
_DATES = frozenset({Kind.DATE, Kind.TIMESTAMP})
RELATIVE = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
"""The kinds of types that have differences."""


@dataclass(frozen=True, slots=True, order=True)
class Base:
    """The column that another one is coded against. For `previous`, the column itself, in the row before."""

    table: str
    column: str
    previous: bool = False
    start: Place | None = None
    """The table and column that the first row of a sequence is coded against; None where it has its own value."""

    @property
    def value(self) -> "Base | None":
        """The base as a value that is looked up: of a sequence, that of first rows, if they have one."""
        if not self.previous:
            return self
        return None if self.start is None else Base(*self.start)


def base_of(protection: Protection, table: str, name: str) -> Base | None:
    """The base of a column; None for one that is not relative. Raises SpecError where its name leads nowhere.

    The word `previous` comes first, then the columns of the row itself, then those of the rows above. Where a name can
    be read in two ways, `TABLE.COLUMN` and, with quotes, `"TABLE"."COLUMN"` say which is meant.
    """
    column = protection.schema.table(table).column(name)
    if column.relative_to is None:
        return None
    if column.relative_to == PREVIOUS:
        start = None if column.start is None else _found(protection, table, name, "start", column.start)
        return Base(table, name, previous=True, start=start)
    return Base(*_found(protection, table, name, "relative_to", column.relative_to))


def _found(protection: Protection, table: str, name: str, word: str, text: str) -> Place:
    places = spellings(protection, table)
    if text not in places:
        above = ", ".join(protection.above(table)) or "none"
        raise SpecError(
            f"tables.{table}.columns.{name}.{word}: there is no column {text!r} in the row itself or in a row that "
            f"owns it (owners of {table}: {above}). Write the name of a column of {table}, `TABLE.COLUMN` for one of "
            f"an owner{f', or `{PREVIOUS}`' if word == 'relative_to' else ''}."
        )
    return places[text]


def base_words(protection: Protection, table: str, base: Base) -> str:
    """How a spec names a base of a table's rows; with quotes where the plain name would mean another column."""
    if base.previous:
        return PREVIOUS
    plain = base.column if base.table == table else f"{base.table}.{base.column}"
    meant = spellings(protection, table).get(plain)
    return plain if plain != PREVIOUS and meant == (base.table, base.column) else quoted(base.table, base.column)


def relative_columns(protection: Protection, table: str) -> dict[str, Base]:
    """The columns of a table that are coded as differences, bases before what is relative to them.

    Raises SpecError where a base cannot be, or columns are relative to each other in a circle.
    """
    declared = protection.schema.table(table)
    bases = {c.name: base for c in declared.columns if (base := base_of(protection, table, c.name)) is not None}
    ordered: dict[str, Base] = {}
    while left := [name for name in bases if name not in ordered]:
        values = {name: bases[name].value for name in left}
        free = [n for n, base in values.items() if base is None or base.table != table or base.column not in left]
        if not free:
            raise SpecError(
                f"tables.{table}.columns.{left[0]}.relative_to: {', '.join(left)} are relative to each other in a "
                "circle, so that none can be worked out first. Take `relative_to` out of one of them."
            )
        ordered |= {name: bases[name] for name in free}
    return ordered


def sequence_columns(protection: Protection, table: str) -> tuple[str, ...]:
    """The columns that are relative to the row before. The first of them says in which order an owner's rows come."""
    return tuple(name for name, base in relative_columns(protection, table).items() if base.previous)


def values_needed(protection: Protection, table: str) -> set[Place]:
    """The columns, each with its table, whose values it takes to work out the relative columns of a table."""
    bases = (base.value for base in relative_columns(protection, table).values())
    return {(base.table, base.column) for base in bases if base is not None}


def check_relative(protection: Protection) -> None:
    """Refuse a relative column whose base cannot be one. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        for column in (c for c in table.columns if c.relative_to is not None):
            where = f"tables.{table.name}.columns.{column.name}.relative_to"
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            if column.name not in table.attributes:
                raise SpecError(f"{where}: the column is a key, or computed, and not learnt. Take this out.")
            if column.type.kind not in RELATIVE or column.type.precision > DIFFERENCE_DIGITS:
                raise SpecError(
                    f"{where}: {column.type.sql} has no differences. Dates, times, timestamps and numbers (decimals "
                    f"of at most {DIFFERENCE_DIGITS} digits) have. Take this out."
                )
            if (column.name,) in table.keys:
                raise SpecError(f"{where}: the column is UNIQUE, and its values are made up. Take this out.")
            base = base_of(protection, table.name, column.name)
            assert base is not None  # noqa: S101  it is relative
            if base.previous:
                _check_sequence(where, protection, table, column)
            if base.value is not None:
                _check_base(where, protection, table, column, base.value)
        _check_starts(protection, table)


def _check_sequence(where: str, protection: Protection, table: Table, column: Column) -> None:
    if table.name not in protection.owners:
        raise SpecError(
            f"{where}: the rows before are those of the same owner, and rows of {table.name} have none. Name a "
            "column, or take this out."
        )
    if column.type.kind is Kind.FLOAT:
        raise SpecError(f"{where}: steps of {column.type.sql} would not add up exactly. Make it DECIMAL.")


def _check_starts(protection: Protection, table: Table) -> None:
    relative = relative_columns(protection, table.name)
    for name, base in relative.items():
        if base.start is not None and base.start[0] == table.name and base.start[1] in relative:
            raise SpecError(
                f"tables.{table.name}.columns.{name}.start: {base.start[1]} is itself relative to something. Name a "
                "column that has its own values, or one of an owner."
            )


def _check_base(where: str, protection: Protection, table: Table, column: Column, base: Base) -> None:
    other = protection.schema.table(base.table).column(base.column)
    if (base.table, base.column) == (table.name, column.name):
        raise SpecError(f"{where}: the column cannot be its own base. For the row before write `{PREVIOUS}`.")
    if base.column not in protection.schema.table(base.table).attributes:
        raise SpecError(
            f"{where}: {base.table}.{base.column} is a key, or computed, and not learnt. Name another column."
        )
    if not comparable(column, other):
        raise SpecError(
            f"{where}: {base.table}.{base.column} is {other.type.sql}, and {column.type.sql} minus {other.type.sql} is "
            f"no number of steps of {column.type.sql}. Name a column of the same type, or change the types."
        )


def comparable(column: Column, other: Column) -> bool:
    """Whether the difference of two columns is a number of steps of the first; types of other widths do.

    An integer minus a date is counted in calendar years.
    """
    kinds = {column.type.kind, other.type.kind}
    alike = len(kinds) == 1 or kinds == _DATES or (column.type.kind is Kind.INTEGER and other.type.kind in _DATES)
    return alike and column.type.scale == other.type.scale and other.type.precision <= DIFFERENCE_DIGITS


def spellings(protection: Protection, table: str) -> dict[str, Place]:
    """What each way to name a column of a row, or of the rows above it, means."""
    tables = [protection.schema.table(t) for t in (table, *protection.above(table))]
    places = [(t.name, c.name) for t in tables for c in t.columns]
    named = {f"{t}.{c}": (t, c) for t, c in reversed(places)}
    named |= {c.name: (table, c.name) for c in tables[0].columns}
    return named | {quoted(*place): place for place in places}


def quoted(*names: str) -> str:
    """A name in quotes, which can be read in one way alone."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
