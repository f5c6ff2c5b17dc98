"""What must hold of the keys and sizes of real tables, before anything is spent; the counts are for the publisher."""

import logging
from collections.abc import Mapping

from privbench.encode.codec import Codec
from privbench.encode.pattern import PatternCodec
from privbench.encode.serial import TEXT_LENGTH, SerialCodec, most_values
from privbench.encode.text import LengthCodec
from privbench.errors import DataError, SpecError
from privbench.model.order import is_numbered, key_text
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.spec import Spec
from privbench.schema.tables import Table
from privbench.schema.unit import Link, LinkKind, Protection

SPARE = 1.05
"""A table may come out somewhat larger than it is, since its size is measured with noise."""
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


def check_room(spec: Spec, table: Table, codecs: Mapping[str, Codec], *, rows: int, is_known: bool) -> None:
    """Refuse keys of one column for which there are not enough values, unless `is_known` with some to spare."""
    for column in (key[0] for key in table.keys if len(key) == 1):
        room = _room(spec, table, column, codecs.get(column))
        if room is not None and rows * (1 if is_known else SPARE) > room:
            raise SpecError(
                f"{table.name}.{column}: must not repeat, but only {room:,} different values can be made up for its "
                f"{rows:,} rows{'' if is_known else ' and some more'}: of {table.column(column).type.sql}, and of the "
                "shape or pattern that domain and rules name. Write a wider type or another shape in the spec, or take "
                "the column out of `unique`."
            )


def _room(spec: Spec, table: Table, column: str, codec: Codec | None) -> int | None:
    """How many different values can be made up for a column; None if that is not known to be few."""
    if isinstance(codec, LengthCodec | PatternCodec):
        return codec.room
    kind = table.column(column).type
    if isinstance(codec, SerialCodec):
        return most_values(kind, length=min(TEXT_LENGTH, kind.length or TEXT_LENGTH))
    if not is_numbered(table, (column,)):
        return None
    length, shape = key_text(spec, table, column)
    return most_values(kind, length=length, shape=shape)


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
