"""What a column could equal by the schema: the choices that a spec has, and where a test is worth its price."""

from collections.abc import Iterator

from privbench.errors import SpecError
from privbench.schema.derived import Derived
from privbench.schema.tables import Column
from privbench.schema.types import Kind
from privbench.schema.unit import Protection


def possible(protection: Protection, table: str, name: str) -> Iterator[Derived]:
    """List what a column could equal, by the schema alone."""
    column, owner = protection.schema.table(table).column(name), protection.owners.get(table)
    if column.type.kind is Kind.INTEGER:
        yield from (Derived(rows=child) for child, key in protection.owners.items() if key.table == table)
    if owner is None:
        return
    if column.type.kind is Kind.INTEGER:
        yield from (Derived(rank=1), Derived(rank=0))
    yield from (Derived(owner=c.name) for c in protection.schema.table(owner.table).columns if _copies(column, c))


def check_derived(protection: Protection) -> None:
    """Refuse a declared column that cannot equal what it should. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        keys = {c for key in table.foreign_keys for c in key.columns} | {k[0] for k in table.keys if len(k) == 1}
        for column in table.columns:
            if column.derived is None:
                continue
            where = f"tables.{table.name}.columns.{column.name}.derived"
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            if column.name in keys:
                raise SpecError(f"{where}: the column is a key, whose values are made anew. Take this out.")
            choices = list(possible(protection, table.name, column.name))
            if column.derived not in choices:
                listed = ", ".join(_yaml(choice) for choice in choices) or "none"
                raise SpecError(
                    f"{where}: {_yaml(column.derived)} cannot be, by the tables' owner keys and the columns' types. "
                    f"Possible for {column.type.sql}{'' if column.nullable else ' NOT NULL'} here: {listed}."
                )


def _copies(column: Column, other: Column) -> bool:
    """Whether a column can hold every value of another."""
    return column.type == other.type and (column.nullable or not other.nullable)


def _yaml(derived: Derived) -> str:
    [(word, value)] = derived.words().items()
    return f"{{{word}: {value}}}"
