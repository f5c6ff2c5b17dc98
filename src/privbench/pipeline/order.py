"""In which order tables are made: what a key names comes before the key, as far as cycles allow.

Keys that are numbered from the row number need no row to be there first, so a cycle of such keys is harmless.
A key that must be looked up (composite, natural, itself a foreign key), or a table that may lose rows to keep
its keys unique, has to be made before the tables that name it.
"""

from privbench.errors import SchemaError
from privbench.schema.domain import Serial, Text
from privbench.schema.model import Table
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection, Role


def is_numbered(table: Table, columns: tuple[str, ...]) -> bool:
    """Whether these columns are the table's own single-column key, which is numbered anew."""
    own = columns == table.primary_key and len(columns) == 1
    return own and not any(columns[0] in key.columns for key in table.foreign_keys)


def colliding_keys(spec: Spec, table: Table) -> tuple[tuple[str, ...], ...]:
    """The keys of a table whose drawn values might repeat."""
    safe = {c.name for c in table.columns if is_numbered(table, (c.name,)) or _made_unique(spec, table, c.name)}
    return tuple(dict.fromkeys(key for key in table.keys if not safe & set(key)))


def generation_order(spec: Spec, protection: Protection) -> tuple[str, ...]:
    """All tables in the order in which they are made; SchemaError where none exists."""
    edges = {(link.table, link.key.table) for link in protection.links if link.table != link.key.table}
    first = {
        (link.table, link.key.table)
        for link in protection.links
        if _must_come_first(spec, protection, link.key.table, link.key.references)
    }
    left = [t.name for t in protection.schema.tables]
    order: list[str] = []
    while left:
        free = _free(left, edges) or _free(left, first)
        if not free:
            raise SchemaError(
                f"{', '.join(left)}: their keys form a cycle through a composite or natural key, so that none can be "
                "made first. Take one key of the cycle out of `foreign_keys` in the spec, or drop a table."
            )
        order.append(free[0])
        left.remove(free[0])
    return tuple(order)


def _free(left: list[str], edges: set[tuple[str, str]]) -> list[str]:
    """The tables that name none of those left."""
    return [name for name in left if not any(a == name and b in left for a, b in edges)]


def _must_come_first(spec: Spec, protection: Protection, target: str, columns: tuple[str, ...]) -> bool:
    if protection.roles[target] is Role.PUBLIC:
        return False
    table = protection.schema.table(target)
    return not is_numbered(table, columns) or bool(colliding_keys(spec, table))


def _made_unique(spec: Spec, table: Table, column: str) -> bool:
    domain = spec.column(table.name, column).domain
    own = column in table.attributes
    return own and (isinstance(domain, Serial) or (isinstance(domain, Text) and domain.distinct is None))
