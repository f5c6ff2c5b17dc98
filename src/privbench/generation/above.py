"""Columns of the rows above that rows of a table ask for, and what a table must keep for the tables below it.

A row's owner, that one's owner and so on are the rows above it. Values of theirs are looked up by row number: each
table keeps the columns that are asked for, and, where somebody asks for a row further up, its rows' owners.
"""

from collections.abc import Iterator

from privbench.schema.computed import named_elsewhere
from privbench.schema.relative import values_needed
from privbench.schema.tables import Place
from privbench.schema.unit import Protection, Role


def asked_above(protection: Protection, table: str) -> set[Place]:
    """The columns of rows above that making rows of a private table takes."""
    asked = values_needed(protection, table) | named_elsewhere(protection, table)
    checks = protection.schema.table(table).checks
    asked |= {(n.table, n.column) for check in checks for n in check.columns if n.table is not None}
    asked |= {(k.target, column) for k in protection.implied_of(table) for column in k.key.references}
    return {place for place in asked if place[0] != table}


def kept_columns(protection: Protection, table: str) -> set[str]:
    """The columns of a table that tables below it ask for, or, of a public one, tables that reference it."""
    if protection.roles[table] is Role.PUBLIC:
        asked = {place for name in protection.order for place in named_elsewhere(protection, name)}
    else:
        asked = set(_asked_below(protection, table))
    return {column for name, column in asked if name == table}


def keeps_owners(protection: Protection, table: str) -> bool:
    """Whether a table below asks for a row above this table's."""
    return any(asked != table for asked, _ in _asked_below(protection, table))


def _asked_below(protection: Protection, table: str) -> Iterator[Place]:
    """What tables below ask for of this table's rows or of rows above them."""
    for below in protection.order:
        above = list(protection.above(below))
        if table in above:
            reached = above[above.index(table) :]
            yield from (place for place in asked_above(protection, below) if place[0] in reached)
