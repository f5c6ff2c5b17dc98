"""Which definitions of a schema hold literals: they are published word by word, and a literal may tell of a row.

Labels of types, defaults, conditions of indexes and CHECKs, bounds of partitions and sequences, filters of views,
bodies of functions, comments. Sizes of types are none. Where the source's own DDL has a table, its definitions are
told; else those that the schema itself holds. Rules that were found in the data are a kind of their own.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from privbench.schema.ddl_tokens import FILE, DdlError, TokenKind, read_tokens
from privbench.schema.expression import Expression
from privbench.schema.tables import Schema

MOST_NAMED = 3
"""How many names stand beside a count."""
FOUND = "rule from the data"
"""The kind of what stands in no definition of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralHolder:
    """A definition that holds literals, and how many."""

    kind: str
    name: str
    literals: int


def literal_holders(schema: Schema, *, found: Collection[tuple[str, str]] = ()) -> tuple[LiteralHolder, ...]:
    """List every definition that holds a literal. `found` are the rules from the data: tables with expressions."""
    own = schema.original.literals() if schema.original is not None else []
    told = schema.original.tables if schema.original is not None else {}
    of_tables = ((table.name, each) for table in schema.tables for each in _of_table(schema, table.name, found))
    every = [*own, *(each for table, each in of_tables if each[0] == FOUND or table not in told)]
    return tuple(LiteralHolder(kind=kind, name=name, literals=count) for kind, name, count in every)


def _of_table(schema: Schema, name: str, found: Collection[tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
    """The kind, the name and the number of literals of each of its definitions."""
    table = schema.table(name)
    for column in table.columns:
        if column.type.labels:
            yield "type", f"{name}.{column.name}", len(column.type.labels)
        if column.computed is not None and column.generated and (count := _literals(column.computed)):
            yield "generated column", f"{name}.{column.name}", count
    for number, check in enumerate(table.checks):
        if count := _literals(check):
            yield FOUND if (name, check.sql) in found else "check", f"{name} {number + 1}", count


def _literals(expression: Expression) -> int:
    try:
        tokens = read_tokens(expression.sql, FILE)
    except DdlError:
        return 1
    return sum(token.kind in (TokenKind.STRING, TokenKind.NUMBER) for token in tokens)


def by_kind(holders: Iterable[LiteralHolder]) -> dict[str, list[LiteralHolder]]:
    """The definitions of each kind."""
    kinds: dict[str, list[LiteralHolder]] = {}
    for holder in holders:
        kinds.setdefault(holder.kind, []).append(holder)
    return kinds
