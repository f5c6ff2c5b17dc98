"""Keys that may stay inside the entity, by the schema alone: what `draft` writes down, or looks up in the data.

Where a key's columns are part of another key's, and that one's target has the same key, the shorter one follows from
the longer one: the schema says so. Where two keys of a table both lead to the entity table, they may lead to the same
entity; only the data, or their publisher, can say whether they do.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from privbench.schema.tables import ForeignKey, Schema, Table
from privbench.schema.unit import Link, LinkKind, Protection


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideCandidate:
    """A reference key that may stay inside the entity."""

    link: Link
    may_own: bool
    """Whether it may be the owner key instead: what owns the row now is above the row that it references."""


def candidates_inside(protection: Protection) -> Iterator[InsideCandidate]:
    """The reference keys from owned tables to owned tables, or to the entity table."""
    targets = {*protection.owners, protection.entity}
    for link in protection.links:
        if link.kind is LinkKind.REFERENCE and link.table in protection.owners and link.target in targets:
            above = list(protection.above(link.target))
            may_own = protection.owners[link.table].table in above and link.table not in (link.target, *above)
            yield InsideCandidate(link=link, may_own=may_own)


def with_implied(schema: Schema, *, public: Collection[str], owners: Mapping[str, tuple[str, ...]]) -> Schema:
    """The schema in which keys that follow from another key of their table are said to stay inside the entity."""
    private = [t for t in schema.tables if t.name not in public]
    changed = {t.name: _with_implied(schema, t, public, owners.get(t.name)) for t in private}
    return replace(schema, tables=tuple(changed.get(t.name, t) for t in schema.tables))


def _with_implied(schema: Schema, table: Table, public: Collection[str], owner: tuple[str, ...] | None) -> Table:
    following = {
        short.columns
        for long in table.foreign_keys
        for short in table.foreign_keys
        if not {long.table, short.table} & set(public) and short.columns != owner and _follows(schema, short, long)
    }
    keys = tuple(replace(k, inside=k.inside or k.columns in following) for k in table.foreign_keys)
    return replace(table, foreign_keys=keys)


def _follows(schema: Schema, short: ForeignKey, long: ForeignKey) -> bool:
    """Whether a key follows from a longer one: from its target a key leads to the same row, by the same columns."""
    if not set(short.columns) < set(long.columns):
        return False
    wanted = {
        (long.references[long.columns.index(column)], reference)
        for column, reference in zip(short.columns, short.references, strict=True)
    }
    return any(
        key.table == short.table and set(zip(key.columns, key.references, strict=True)) == wanted
        for key in schema.table(long.table).foreign_keys
    )


def with_inside(schema: Schema, inside: Collection[tuple[str, tuple[str, ...]]]) -> Schema:
    """The schema in which these keys, each by its table and columns, are said to stay inside the entity."""
    return replace(
        schema,
        tables=tuple(
            replace(
                t,
                foreign_keys=tuple(
                    replace(k, inside=k.inside or (t.name, k.columns) in inside) for k in t.foreign_keys
                ),
            )
            for t in schema.tables
        ),
    )
