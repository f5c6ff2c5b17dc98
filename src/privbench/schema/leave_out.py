"""Leave tables and columns out of a schema, with every key that would dangle.

Dropping a table drops the foreign keys into it and the columns of those keys, since an id of a row that is not
there says nothing; a column that another key still needs stays. A primary key is never cut: that is an error.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from privbench.errors import SchemaError
from privbench.schema.choices import flag
from privbench.schema.tables import ForeignKey, Schema, Table

Place = tuple[str, str]
"""A table and one of its columns."""


def leave_out(tables: Sequence[Table], *, drop: Collection[str] = (), columns: Collection[Place] = ()) -> Schema:
    """Make the schema of `tables` without what is dropped. Raises SchemaError if a primary key loses a column.

    >>> from privbench.schema.tables import Column
    >>> from privbench.schema.types import parse_type
    >>> a = Table(name="a", columns=(Column(name="x", type=parse_type("INTEGER")),))
    >>> b = replace(a, name="b")
    >>> [t.name for t in leave_out([a, b], drop=["a"]).tables]
    ['b']
    """
    kept = [t for t in tables if t.name not in drop]
    why = dict.fromkeys(columns, "it is dropped")
    while lost := {p: reason for t in kept for p, reason in _dangling(t, drop, why).items() if p not in why}:
        why |= lost
    return Schema(tables=tuple(_cut(t, drop, why) for t in kept))


def _dangling(table: Table, drop: Collection[str], gone: Collection[Place]) -> dict[Place, str]:
    """Find the columns of keys whose target is gone, and why; not those that a key which stays needs."""
    stays = {c for key in table.foreign_keys if not _target_gone(key, drop, gone) for c in key.columns}
    return {
        (table.name, column): f"its key {key} points at what is dropped"
        for key in table.foreign_keys
        if _target_gone(key, drop, gone)
        for column in key.columns
        if column not in stays
    }


def _target_gone(key: ForeignKey, drop: Collection[str], gone: Collection[Place]) -> bool:
    return key.table in drop or any((key.table, column) in gone for column in key.references)


def _cut(table: Table, drop: Collection[str], why: Mapping[Place, str]) -> Table:
    def whole(columns: Collection[str]) -> bool:
        return not any((table.name, c) in why for c in columns)

    for column in table.primary_key:
        if (table.name, column) in why:
            raise SchemaError(
                f"{table.name}.{column}: {why[table.name, column]}, but it is part of the primary key. "
                f"Drop {table.name} too ({flag('--drop', table.name)}), keep what the key points at (`--public`), "
                f"or take the key out of `foreign_keys` in the spec, which leaves its columns as plain ones."
            )
    columns = tuple(c for c in table.columns if whole([c.name]))
    if not columns:
        raise SchemaError(f"{table.name}: no column is left. Drop the table too: {flag('--drop', table.name)}.")
    return replace(
        table,
        columns=columns,
        foreign_keys=tuple(k for k in table.foreign_keys if whole(k.columns) and not _target_gone(k, drop, why)),
        uniques=tuple(u for u in table.uniques if whole(u)),
        indexes=tuple(i for i in table.indexes if whole(i.columns)),
    )
