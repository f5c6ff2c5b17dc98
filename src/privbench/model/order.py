"""In which order tables are made: what a key references comes before the key, as far as cycles allow.

Keys that are numbered from the row number need no row to be there first, so a cycle of such keys is harmless.
A key that must be looked up (composite, natural, itself a foreign key), or a table that may lose rows to keep
its keys unique, has to be made before the tables that reference it.
"""

from collections.abc import Collection, Sequence

from privbench.encode.serial import TEXT_LENGTH
from privbench.errors import SchemaError
from privbench.schema.domain import Text, never_repeats
from privbench.schema.spec import Spec
from privbench.schema.tables import Table
from privbench.schema.types import Kind
from privbench.schema.unit import Link, LinkKind, Protection, Role

MANY_STRINGS = 6
"""There are billions of strings of so many characters; of shorter ones rows share some, unless they are a key."""


def is_numbered(table: Table, columns: tuple[str, ...]) -> bool:
    """Whether these columns are the table's own single-column key, which is numbered anew."""
    own = columns == table.primary_key and len(columns) == 1
    return own and not any(columns[0] in key.columns for key in table.foreign_keys)


def key_text(spec: Spec, table: Table, column: str) -> tuple[int, str | None]:
    """How long made-up text of a numbered key is, the middle of its declared lengths, and what it looks like."""
    type_, domain = table.column(column).type, spec.column(table.name, column).domain
    if type_.kind is not Kind.TEXT or not isinstance(domain, Text):
        return min(TEXT_LENGTH, type_.length or TEXT_LENGTH), None
    wanted = (domain.text[0] + domain.text[-1]) // 2
    return max(1, min(wanted, type_.length or wanted)), domain.shape


def colliding_keys(spec: Spec, table: Table) -> tuple[tuple[str, ...], ...]:
    """The keys of a table whose drawn values might repeat."""
    safe = {c.name for c in table.columns if is_numbered(table, (c.name,)) or _made_unique(spec, table, c.name)}
    return tuple(dict.fromkeys(key for key in table.keys if not safe & set(key)))


def generation_order(spec: Spec, protection: Protection, *, owners_first: bool = False) -> tuple[str, ...]:
    """All tables in the order in which they are made; SchemaError where none exists.

    `owners_first` says that child rows come with their owners, which must then be there first.
    """
    links = [link for link in protection.links if link.table != link.target]
    edges = {(link.table, link.target) for link in (*links, *protection.implied)}
    redrawn = redrawn_links(protection, keep_entity_keys=False)
    first = {
        (link.table, link.target)
        for link in links
        if _must_come_first(spec, protection, link, redrawn)
        or (owners_first and link.kind is LinkKind.OWNER)
        or (link.kind is LinkKind.INSIDE)
    }
    _check_self_references(spec, protection)
    left = [t.name for t in protection.schema.tables]
    order: list[str] = []
    while left:
        free = _free(left, edges) or _free(left, first)
        if not free:
            raise SchemaError(
                f"{', '.join(left)}: their keys form a cycle in which each references its owner or a key that is "
                "composite, natural or UNIQUE, so that none can be made first. Take one key of the cycle out of "
                "`foreign_keys`, or one constraint out of `unique`, in the spec; or drop a table."
            )
        order.append(free[0])
        left.remove(free[0])
    return tuple(order)


def referenced_ahead(protection: Protection, order: Sequence[str]) -> frozenset[str]:
    """The private tables that keys reference before they are made: how many rows they get is promised.

    With them the tables that their rows cannot do without: their owners, and the targets of their NOT NULL keys.
    """
    private, before = set(protection.order), set[str]()
    promised = {link.target for link in links_ahead(protection, order)}
    while promised != before:
        before = set(promised)
        for link in (k for k in protection.links if k.table in before):
            if (not link.nullable or link.kind is LinkKind.OWNER) and link.target in private:
                promised.add(link.target)
    return frozenset(promised)


def links_ahead(protection: Protection, order: Sequence[str]) -> list[Link]:
    """The keys into private tables that are made after the tables that hold them: each row of these must be there."""
    place, private = {name: i for i, name in enumerate(order)}, set(protection.order)
    return [k for k in protection.links if place[k.target] > place[k.table] and k.target in private]


def _free(left: list[str], edges: set[tuple[str, str]]) -> list[str]:
    """The tables that reference none of those left."""
    return [name for name in left if not any(a == name and b in left for a, b in edges)]


def redrawn_links(protection: Protection, *, keep_entity_keys: bool) -> tuple[Link, ...]:
    """The keys of public tables whose values are redrawn: those of their target are, or it may lose rows."""
    redrawn: list[Link] = []
    copied = [link for link in protection.links if protection.roles[link.table] is Role.PUBLIC]
    before = -1
    while len(redrawn) > before:
        before = len(redrawn)
        redrawn += [
            link
            for link in copied
            if link not in redrawn
            and (not keep_entity_keys if references_entity(protection, link) else _redraws(protection, link, redrawn))
        ]
    return tuple(redrawn)


def references_entity(protection: Protection, link: Link) -> bool:
    """Whether a key of a public table references the entity table by its numbered key: its real values are public."""
    entity = protection.schema.table(protection.entity)
    return link.kind is LinkKind.INBOUND and link.target == entity.name and is_numbered(entity, link.key.references)


def _redraws(protection: Protection, link: Link, redrawn: Collection[Link]) -> bool:
    return link.kind is LinkKind.INBOUND or _target_redraws(protection, link, redrawn)


def _target_redraws(protection: Protection, link: Link, redrawn: Collection[Link]) -> bool:
    """Whether a public target table has redrawn values where a key references it, or may lose rows to keep its keys."""
    changed = {c for other in redrawn if other.table == link.target for c in other.key.columns}
    keyed = any(changed & set(key) for key in protection.schema.table(link.target).keys)
    return keyed or bool(changed & set(link.key.references))


def _must_come_first(spec: Spec, protection: Protection, link: Link, redrawn: Collection[Link]) -> bool:
    target = protection.schema.table(link.target)
    if protection.roles[target.name] is Role.PUBLIC:
        return _target_redraws(protection, link, redrawn)
    return not is_numbered(target, link.key.references) or bool(colliding_keys(spec, target))


def _check_self_references(spec: Spec, protection: Protection) -> None:
    """A key to the table's own rows is drawn before it is known which rows stay: refuse what cannot be repaired."""
    own = [k for k in protection.links if k.table == k.target and k.kind in (LinkKind.REFERENCE, LinkKind.INSIDE)]
    for link in own:
        table = protection.schema.table(link.table)
        lost = [key for key in colliding_keys(spec, table) if link.kind is LinkKind.INSIDE]
        in_key = lost or any(set(link.key.columns) & set(key) for key in colliding_keys(spec, table))
        if not is_numbered(table, link.key.references) or (in_key and not link.nullable):
            raise SchemaError(
                f"{link.table}: its key {link.key} references the table's own rows, and needs the primary key of one "
                "column for that; in a UNIQUE key it must be nullable. Take it out of `foreign_keys` or `unique` in "
                "the spec."
            )


def _made_unique(spec: Spec, table: Table, column: str) -> bool:
    domain = spec.column(table.name, column).domain
    return column in table.attributes and never_repeats(domain) and has_own_values(table, column)


def has_own_values(table: Table, column: str) -> bool:
    """Whether made-up values of a column must not repeat: it is a key, or in one and long enough for many rows."""
    length = table.column(column).type.length
    in_key = any(column in key for key in table.keys)
    return (column,) in table.keys or (in_key and (length is None or length >= MANY_STRINGS))


def ids_are_public(protection: Protection) -> bool:
    """Whether public tables reference the entity table by its numbered key, so that its ids are kept."""
    entity = protection.schema.table(protection.entity)
    inbound = [k.key for k in protection.links if k.kind is LinkKind.INBOUND and k.key.table == entity.name]
    return any(is_numbered(entity, key.references) for key in inbound)
