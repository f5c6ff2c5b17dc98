"""Which reference keys stay inside the entity in the data, for `draft` to write down as taken from there."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.keys import NULL, KeyIndex, entities_by_owner, own_entities
from privbench.errors import DataError
from privbench.io.base import Source, read_whole
from privbench.schema.inside import candidates_inside
from privbench.schema.tables import ForeignKey
from privbench.schema.unit import Protection

NEARLY_ALL = 0.99
"""A key stays inside the entity if at least this share of its values do; the others will count as NULL."""
OWNS = 0.9
"""It is the better owner key if at least this share of rows reference a row of their entity by it."""

Rows = NDArray[np.int64]
Key = tuple[str, tuple[str, ...]]
"""A table and the columns of a key."""


@dataclass(slots=True, kw_only=True)
class FoundInside:
    """Keys that stay inside the entity, and the owner keys that some of them become."""

    keys: set[Key] = field(default_factory=set)
    owners: dict[str, tuple[str, ...]] = field(default_factory=dict)


def find_inside(source: Source, protection: Protection, *, declared: Collection[str]) -> FoundInside:
    """Look for keys that stay inside the entity. The owner keys of `declared` tables stay what they are."""
    found, entities = FoundInside(), _Entities(source, protection)
    now = protection
    for place in range(len(protection.links)):
        link = protection.links[place]
        candidate = next((c for c in candidates_inside(now) if c.link == link), None)
        if candidate is None:
            continue
        try:
            named, kept, rows = entities.kept_inside(link.table, link.key)
        except DataError:  # for fit to tell
            continue
        implied = link.target in now.above(link.table)  # such a key is never NULL where there is an owner
        if not named or kept < NEARLY_ALL * (rows if implied else named):
            continue
        if candidate.may_own and link.table not in declared and link.table not in found.owners and kept >= OWNS * rows:
            found.keys.add((link.table, protection.owners[link.table].columns))
            found.owners[link.table] = link.key.columns
            now = replace(now, owners={**now.owners, link.table: link.key})
        else:
            found.keys.add((link.table, link.key.columns))
    return found


class _Entities:
    """The entity of every row, by the owner keys; read as far as it is asked for."""

    def __init__(self, source: Source, protection: Protection) -> None:
        self._source = source
        self._protection = protection
        self._read: dict[str, pa.Table] = {}
        self._entities: dict[str, Rows] = {}
        self._free = 0

    def kept_inside(self, table: str, key: ForeignKey) -> tuple[int, int, int]:
        """How many rows have a key, how many of these reference a row of their own entity, and how many there are."""
        targets, own = self._targets(table, key), self._of(table)
        named = targets >= 0
        same = self._of(key.table)[targets[named]] == own[named]
        return int(named.sum()), int(same.sum()), len(targets)

    def _of(self, table: str) -> Rows:
        if table not in self._entities:
            if table == self._protection.entity:
                self._entities[table] = own_entities(self._keys(table).num_rows)
                self._free += len(self._entities[table])
            else:
                key = self._protection.owners[table]
                above = self._of(key.table)
                self._entities[table], self._free = entities_by_owner(
                    np.maximum(self._targets(table, key), NULL), above, next_entity=self._free
                )
        return self._entities[table]

    def _targets(self, table: str, key: ForeignKey) -> Rows:
        referenced = [self._keys(key.table).column(c) for c in key.references]
        index = KeyIndex(key.table, referenced, nullable=True)
        return index.find([self._keys(table).column(c) for c in key.columns])

    def _keys(self, name: str) -> pa.Table:
        """The key columns of a table."""
        if name not in self._read:
            table = self._protection.schema.table(name)
            names = {c for key in table.keys for c in key} | {c for k in table.foreign_keys for c in k.columns}
            self._read[name] = read_whole(self._source, name, (c for c in table.columns if c.name in names))
        return self._read[name]
