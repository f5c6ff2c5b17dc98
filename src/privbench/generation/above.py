"""Columns of the rows above that rows of a table ask for, and what a table must keep for the tables below it.

A row's owner, that one's owner and so on are the rows above it. Values of theirs are looked up by row number: each
table keeps the columns that are asked for, and, where somebody asks for a row further up, its rows' owners.
"""

from collections.abc import Iterator

from privbench.schema.relative import owners_above, relative_columns
from privbench.schema.unit import Protection

Place = tuple[str, str]
"""A table and one of its columns."""


def asked_above(protection: Protection, table: str) -> set[Place]:
    """The columns of rows above that making rows of a private table takes."""
    relative = {(b.table, b.column) for b in relative_columns(protection, table).values() if b.table != table}
    return relative | {(k.target, column) for k in protection.implied_of(table) for column in k.key.references}


def kept_columns(protection: Protection, table: str) -> set[str]:
    """The columns of a table that tables below it ask for."""
    return {column for asked, column in _asked_below(protection, table) if asked == table}


def keeps_owners(protection: Protection, table: str) -> bool:
    """Whether a table below asks for a row above this table's."""
    return any(asked != table for asked, _ in _asked_below(protection, table))


def _asked_below(protection: Protection, table: str) -> Iterator[Place]:
    """What tables below ask for of this table's rows or of rows above them."""
    for below in protection.order:
        above = list(owners_above(protection, below))
        if table in above:
            reached = above[above.index(table) :]
            yield from (place for place in asked_above(protection, below) if place[0] in reached)
