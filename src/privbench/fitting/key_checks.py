"""What must hold of the keys and sizes of real tables, before anything is spent; the counts are for the publisher."""

import logging
from collections.abc import Mapping

from privbench.errors import DataError
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.tables import Table
from privbench.schema.unit import Link, LinkKind, Protection

_logger = logging.getLogger(__name__)
Key = tuple[str, ...]
"""The columns of a key."""


def key_place(table: str, key: Key) -> str:
    """How a key is called in messages."""
    return f"{table}({', '.join(key)})"


def referenced_keys(protection: Protection, table: Table) -> list[Key]:
    """The keys of a table that others reference, and its primary key, by which its rows are known again."""
    keys = [link.key.references for link in protection.keys if link.target == table.name]
    return list(dict.fromkeys([*([table.primary_key] if keys and table.primary_key else []), *keys]))


def check_sizes(rows: Mapping[str, int]) -> None:
    """Refuse tables that are too large."""
    for table, count in rows.items():
        if count > SIZE_LIMIT:
            raise DataError(f"{table}: has {count} rows, at most {SIZE_LIMIT} can be protected. Split the table.")


def check_nulls(link: Link, nulls: int) -> None:
    """Refuse NULL keys in NOT NULL columns: that every row has an owner bounds how many rows there are."""
    if nulls and not link.nullable:
        raise DataError(
            f"{link.name}: {nulls} rows have a NULL here, but the column is NOT NULL. Fill or remove them, or say "
            "`null: true` under the column in the spec."
        )


def check_orphans(link: Link, orphans: int, *, as_null: bool) -> None:
    """Refuse keys to missing rows, or tell the publisher how many are kept as NULL. Nothing is spent yet."""
    if not orphans:
        return
    lost = f"{link.name}: {orphans:,} rows reference a row of {link.target} that does not exist"
    if not as_null:
        raise DataError(
            f'{lost}. Repair them, or say `orphans: "null"` in the spec (`--orphans null`) to count such keys as NULL.'
        )
    if link.kind not in (LinkKind.INBOUND, LinkKind.COPIED) and not link.nullable:
        raise DataError(
            f"{lost}, and the key is part of the primary key, which cannot be NULL. Repair or remove these rows, or "
            f"take the column out of `key` under {link.table} in the spec."
        )
    _logger.warning("%s: they are kept, with a NULL key. This number is for you alone; it is not published.", lost)
