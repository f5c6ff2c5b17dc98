"""In which order tables are made: what a key names comes before the key, as far as cycles allow.

Keys that are numbered from the row number need no row to be there first, so a cycle of such keys is harmless.
A key that must be looked up (composite, natural, itself a foreign key), or a table that may lose rows to keep
its keys unique, has to be made before the tables that name it.
"""

from collections.abc import Collection, Sequence
from itertools import takewhile

from privbench.errors import SchemaError
from privbench.schema.domain import never_repeats
from privbench.schema.spec import Spec
from privbench.schema.tables import Table
from privbench.schema.unit import Link, LinkKind, Protection, Role


def is_numbered(table: Table, columns: tuple[str, ...]) -> bool:
    """Whether these columns are the table's own single-column key, which is numbered anew."""
    own = columns == table.primary_key and len(columns) == 1
    return own and not any(columns[0] in key.columns for key in table.foreign_keys)


def colliding_keys(spec: Spec, table: Table) -> tuple[tuple[str, ...], ...]:
    """The keys of a table whose drawn values might repeat."""
    safe = {c.name for c in table.columns if is_numbered(table, (c.name,)) or _made_unique(spec, table, c.name)}
    return tuple(dict.fromkeys(key for key in table.keys if not safe & set(key)))


def generation_order(spec: Spec, protection: Protection, *, born: bool = False) -> tuple[str, ...]:
    """All tables in the order in which they are made; SchemaError where none exists.

    `born` says that rows are born with their owners, which must then be there first.
    """
    links = [link for link in protection.links if link.table != link.key.table]
    edges = {(link.table, link.key.table) for link in links}
    stale = stale_links(protection, keep_entity_keys=False)
    first = {
        (link.table, link.key.table)
        for link in links
        if _must_come_first(spec, protection, link, stale) or (born and link.kind is LinkKind.OWNER)
    }
    _check_self_references(spec, protection)
    left = [t.name for t in protection.schema.tables]
    order: list[str] = []
    while left:
        free = _free(left, edges) or _free(left, first)
        if not free:
            raise SchemaError(
                f"{', '.join(left)}: their keys form a cycle in which each names its owner or a key that is composite, "
                "natural or UNIQUE, so that none can be made first. Take one key of the cycle out of `foreign_keys`, "
                "or one constraint out of `unique`, in the spec; or drop a table."
            )
        order.append(free[0])
        left.remove(free[0])
    return tuple(order)


def declared_order(spec: Spec, table: Table) -> list[str]:
    """The columns that the rows of a table are sorted by: its own key is numbered in that order, so it ends there."""
    there = {column.name for column in table.columns}
    declared = [c for c in spec.tables[table.name].order or () if c in there]
    return list(takewhile(lambda column: not is_numbered(table, (column,)), declared))


def named_ahead(protection: Protection, order: Sequence[str]) -> frozenset[str]:
    """The private tables that keys name before they are made: how many rows they get is promised.

    With them the tables that their rows cannot do without: their owners, and what their NOT NULL keys name.
    """
    place, private = {name: i for i, name in enumerate(order)}, set(protection.order)
    found = {k.key.table for k in protection.links if place[k.key.table] > place[k.table]} & private
    before: set[str] = set()
    while found != before:
        before = set(found)
        for link in (k for k in protection.links if k.table in before):
            if (not link.nullable or link.kind is LinkKind.OWNER) and link.key.table in private:
                found.add(link.key.table)
    return frozenset(found)


def _free(left: list[str], edges: set[tuple[str, str]]) -> list[str]:
    """The tables that name none of those left."""
    return [name for name in left if not any(a == name and b in left for a, b in edges)]


def stale_links(protection: Protection, *, keep_entity_keys: bool) -> tuple[Link, ...]:
    """The keys of public tables whose values are made anew: what they name is, or may lose rows."""
    stale: list[Link] = []
    copied = [link for link in protection.links if protection.roles[link.table] is Role.PUBLIC]
    before = -1
    while len(stale) > before:
        before = len(stale)
        stale += [
            link
            for link in copied
            if link not in stale
            and (not keep_entity_keys if names_entity(protection, link) else _is_stale(protection, link, stale))
        ]
    return tuple(stale)


def names_entity(protection: Protection, link: Link) -> bool:
    """Whether a key of a public table names the entity table by its numbered key, whose real values are public."""
    entity = protection.schema.table(protection.entity)
    return link.kind is LinkKind.INBOUND and link.key.table == entity.name and is_numbered(entity, link.key.references)


def _is_stale(protection: Protection, link: Link, stale: Collection[Link]) -> bool:
    return link.kind is LinkKind.INBOUND or _names_stale(protection, link, stale)


def _names_stale(protection: Protection, link: Link, stale: Collection[Link]) -> bool:
    """Whether a key names a public table by values that are made anew, or one that may lose rows to keep its keys."""
    changed = {c for other in stale if other.table == link.key.table for c in other.key.columns}
    keyed = any(changed & set(key) for key in protection.schema.table(link.key.table).keys)
    return keyed or bool(changed & set(link.key.references))


def _must_come_first(spec: Spec, protection: Protection, link: Link, stale: Collection[Link]) -> bool:
    target = protection.schema.table(link.key.table)
    if protection.roles[target.name] is Role.PUBLIC:
        return _names_stale(protection, link, stale)
    return not is_numbered(target, link.key.references) or bool(colliding_keys(spec, target))


def _check_self_references(spec: Spec, protection: Protection) -> None:
    """A key to the table's own rows is drawn before it is known which rows stay: refuse where that cannot be mended."""
    for link in (k for k in protection.links if k.table == k.key.table and k.kind is LinkKind.REFERENCE):
        table = protection.schema.table(link.table)
        in_key = any(set(link.key.columns) & set(key) for key in colliding_keys(spec, table))
        required = not link.nullable
        if not is_numbered(table, link.key.references) or (in_key and required):
            raise SchemaError(
                f"{link.table}: its key {link.key} names the table's own rows, and needs the primary key of one column "
                "for that; in a UNIQUE key it must be nullable. Take it out of `foreign_keys` or `unique` in the spec."
            )


def _made_unique(spec: Spec, table: Table, column: str) -> bool:
    domain = spec.column(table.name, column).domain
    return column in table.attributes and never_repeats(domain)


def ids_are_public(protection: Protection) -> bool:
    """Whether public tables name the entity table by its numbered key, so that its ids are kept."""
    entity = protection.schema.table(protection.entity)
    inbound = [k.key for k in protection.links if k.kind is LinkKind.INBOUND and k.key.table == entity.name]
    return any(is_numbered(entity, key.references) for key in inbound)
