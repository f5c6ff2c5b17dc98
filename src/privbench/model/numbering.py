"""The order in which rows are written, and keys that are numbered in the order of a column.

`order` and `numbered_by` of the spec are public facts. A key is numbered only when all rows of its table are there, so
that every column that holds such keys has to be changed in the end: `renumbered_columns` says which.
"""

from privbench.errors import SpecError
from privbench.model.order import ids_are_public, is_numbered
from privbench.schema.computed import equal_columns
from privbench.schema.lists import listed_columns
from privbench.schema.spec import Spec
from privbench.schema.tables import Place, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection


def declared_order(spec: Spec, table: Table) -> tuple[str, ...]:
    """The columns that the rows of a table are sorted by, up to its own key; none if they lie so as they are made."""
    there = {column.name for column in table.columns}
    columns: list[str] = []
    for column in (c for c in spec.tables[table.name].order or () if c in there):
        columns.append(column)
        if is_numbered(table, (column,)):
            break
    made = len(columns) == 1 and is_numbered(table, (columns[0],)) and _ascends(table)
    return () if made else tuple(columns)


def _ascends(table: Table) -> bool:
    """Whether a higher number is a higher key, which made-up texts are not."""
    return table.column(table.primary_key[0]).type.kind is not Kind.TEXT


def renumbered_columns(spec: Spec, protection: Protection) -> dict[Place, str]:
    """The columns that hold keys of a table with `numbered_by`, with the name of that table."""
    keys = [(t.name, t.primary_key[0]) for t in protection.schema.tables if spec.tables[t.name].numbered_by]
    renumbered = {key: key[0] for key in keys}
    before = -1
    while len(renumbered) > before:
        before = len(renumbered)
        renumbered |= {holder: renumbered[place] for holder, place in _takes_values(protection) if place in renumbered}
    return renumbered


def _takes_values(protection: Protection) -> list[tuple[Place, Place]]:
    """The columns whose values are those of another column: of foreign keys, and copies of the owner's."""
    pairs = [
        ((link.table, column), (link.target, reference))
        for link in protection.keys
        for column, reference in zip(link.key.columns, link.key.references, strict=True)
    ]
    for name, owner in protection.owners.items():
        copied = {column: equals.owner for column, equals in equal_columns(protection, name).items()}
        pairs += [((name, column), (owner.table, other)) for column, other in copied.items() if other is not None]
    return pairs


def check_numbering(spec: Spec, protection: Protection) -> None:
    """Refuse keys that cannot be numbered in the order of a column. Raises SpecError."""
    for table in protection.schema.tables:
        if spec.tables[table.name].numbered_by is not None:
            _check_table(spec, protection, table)


def _check_table(spec: Spec, protection: Protection, table: Table) -> None:
    column = spec.tables[table.name].numbered_by
    where = f"{table.name}: numbered_by: {column}"
    if not table.primary_key or not is_numbered(table, table.primary_key):
        raise SpecError(
            f"{where}: only a primary key of one column that is no foreign key is numbered. Take it out, or say in "
            "`order` how the rows lie."
        )
    if table.column(table.primary_key[0]).type.kind is Kind.TEXT:
        raise SpecError(f"{where}: a text key is made up, and has no order. Say in `order` how the rows lie.")
    if table.name == protection.entity and ids_are_public(protection):
        raise SpecError(f"{where}: public tables reference these ids, so that they are kept as they are. Take it out.")
    if column not in {c.name for c in table.columns}:
        raise SpecError(f"{where}: this column is dropped. Name another one, or take it out.")
    keys = {*table.primary_key, *(c for key in table.foreign_keys for c in key.columns)}
    if column in keys - listed_columns(protection, table.name).keys():
        raise SpecError(f"{where}: is a key, and keys have no order before they are numbered. Name another column.")
