"""Whose rows are whose: from key positions to the entity of every row, before anything is spent.

A row belongs to the entity that its owner key leads to, or first of all its implied keys, where it has some. A row
without any of them is an entity of its own; rows that reference the same missing owner are one entity together. A
lookup row that several rows reference becomes a copy for each, so that every row belongs to exactly one entity.

Keys that stay inside the entity are NULL from here on where they do not: whether they do is a function of the entity's
own rows, and nothing else of the row that they reference is looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.encode.keys import (
    MISSING,
    NULL,
    Positions,
    comparable,
    missing_rows,
    own_entities,
    owners_of_lookup,
    position_type,
)
from privbench.schema.unit import LinkKind, Protection, Role, key_name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyPositions:
    """The rows that a key references, NULL or MISSING where there is none; and which row a MISSING one means."""

    rows: Positions
    missing: Positions


@dataclass(slots=True, kw_only=True, eq=False)
class RawTable:
    """A private table as it was read: codes by column, values of columns without codes, and positions by key."""

    codes: dict[str, NDArray[np.unsignedinteger]]
    values: dict[str, pa.Array]
    keys: dict[str, KeyPositions]
    rows: int


class EntityNumbers:
    """Numbers of entities, while tables are read batch by batch, owners first. Threads may ask at the same time.

    The rows of the entity table have their own numbers. What follows is for owners that are missing and for rows that
    have none, in the order in which they are met: which number an entity has means nothing.
    """

    def __init__(self, entity: str, *, entities: int, rows: int) -> None:
        self._entity = entity
        self._entities = entities
        self._free = entities
        self._missing: dict[tuple[object, ...], int] = {}
        self._lock = Lock()
        self._type = position_type(rows)
        self._of: dict[str, Positions] = {}

    def will_own(self, table: str, rows: int) -> None:
        """Remember the entities of a table's rows, which own others."""
        self._of[table] = np.full(rows + 1, NULL, self._type)  # the last one is nobody's

    def remember(self, table: str, numbers: Positions, entities: Positions) -> None:
        """Take note of the entities of rows of these numbers, if the table owns others."""
        if table in self._of:
            self._of[table][numbers] = entities

    def of_missing(self, key: str, rows: Positions, columns: Sequence[pa.Array]) -> Positions:
        """For keys that reference no row, the number that stands for all that reference the same; NULL for others."""
        found = np.full(len(rows), NULL, self._type)
        groups = missing_rows(rows, columns)
        lost = np.flatnonzero(groups >= 0)
        firsts = pa.array(lost[np.unique(groups[lost], return_index=True)[1]])
        values = zip(*(comparable(column).take(firsts).to_pylist() for column in columns), strict=True)
        with self._lock:
            numbers = [self._number(key, *value) for value in values]
        found[lost] = np.array(numbers, self._type)[groups[lost]]
        return found

    def _number(self, *key: object) -> int:
        if key not in self._missing:
            self._missing[key] = self._take(1)
        return self._missing[key]

    def _take(self, count: int) -> int:
        self._free += count
        return self._free - count

    def of_rows(self, owners: Iterable[tuple[str, Positions, Positions | None]]) -> Positions:
        """The entities of rows, by the first of their keys that is not NULL: the table, the rows, which is missing."""
        entities: Positions | None = None
        for table, rows, missing in owners:
            found = self._of_owners(table, rows)
            if missing is not None:
                found = np.where(rows == MISSING, missing, found)
            entities = found if entities is None else np.where(entities == NULL, found, entities)
        if entities is None:
            raise ValueError("rows that nothing owns")
        alone = np.flatnonzero(entities < 0) if len(entities) and int(entities.min()) < 0 else ()
        if len(alone):
            with self._lock:
                first = self._take(len(alone))
            entities = entities.copy()
            entities[alone] = first + np.arange(len(alone))
        return entities

    def _of_owners(self, table: str, rows: Positions) -> Positions:
        if table == self._entity:
            return rows.astype(self._type, copy=False)
        return self._of[table][np.maximum(rows, NULL)]


def assign_entities(protection: Protection, tables: Mapping[str, RawTable]) -> dict[str, CodedTable]:
    """Find the entity of every row, owners first; keys to missing rows, or out of the entity, become NULL."""
    for table in (t for t in protection.order if t in protection.lookups):  # owners first: copies reference rows, too
        owner, key = protection.lookups[table]
        name = key_name(owner, key)
        tables[owner].keys[name] = _copy_shared(tables[table], tables[owner].keys[name])
    entities = {protection.entity: own_entities(tables[protection.entity].rows)}
    free = tables[protection.entity].rows
    for table in protection.order[1:]:
        entities[table] = np.full(tables[table].rows, NULL)
        for owner, positions in _owners(protection, table, tables):
            found, free = _entities(positions, entities[owner], next_entity=free)
            entities[table] = np.where(entities[table] == NULL, found, entities[table])
        alone = np.flatnonzero(entities[table] == NULL)
        entities[table][alone] = free + np.arange(len(alone))
        free += len(alone)
    inside = {k.name for k in protection.links if k.kind in (LinkKind.OWNER, LinkKind.INSIDE)}
    implied = {k.name for k in protection.implied}
    targets = {k.name: k.target for k in protection.links}
    return {
        name: CodedTable(
            codes=raw.codes,
            keys={
                key: inside_keys(positions.rows, entities[name], entities[targets[key]])
                if key in inside
                else np.where(positions.rows == MISSING, NULL, positions.rows)
                for key, positions in raw.keys.items()
                if key not in implied
            },
            entities=entities[name],
        )
        for name, raw in tables.items()
    }


def inside_keys(rows: Positions, entities: Positions, target_entities: Positions) -> Positions:
    """The rows that keys reference, NULL where these are missing or of another entity than the row itself.

    >>> inside_keys(np.array([0, 1, -1, -2]), np.array([7, 7, 7, 7]), np.array([7, 8])).tolist()
    [0, -1, -1, -1]
    """
    there = np.append(target_entities, target_entities.dtype.type(NULL))[np.maximum(rows, NULL)] == entities
    return np.where(there & (rows >= 0), rows, rows.dtype.type(NULL))


def _entities(owner: KeyPositions, owner_entities: Positions, *, next_entity: int) -> tuple[Positions, int]:
    """Entity numbers by owner, a missing owner standing for all rows that reference it; and the next free number.

    >>> key = KeyPositions(rows=np.array([1, -1, -2]), missing=np.array([-1, -1, 0]))
    >>> _entities(key, np.array([4, 5]), next_entity=9)
    (array([ 5, -1,  9]), 10)
    """
    lost = int(owner.missing.max(initial=-1)) + 1
    known = np.concatenate([owner_entities, next_entity + np.arange(lost), [NULL]])
    positions = np.where(owner.rows == MISSING, len(owner_entities) + owner.missing, owner.rows)
    return known[positions], next_entity + lost


def _owners(protection: Protection, table: str, tables: Mapping[str, RawTable]) -> list[tuple[str, KeyPositions]]:
    """The keys that say whose a table's rows are, the first that is not NULL of each: target table, target rows."""
    if protection.roles[table] is not Role.LOOKUP:
        return [(key.table, tables[table].keys[key_name(table, key)]) for key in protection.owner_keys(table)]
    owner, key = protection.lookups[table]
    referenced = tables[owner].keys[key_name(owner, key)].rows
    owners = owners_of_lookup(referenced, tables[table].rows)
    return [(owner, KeyPositions(rows=owners, missing=np.full(len(owners), -1, np.int64)))]


def _copy_shared(lookup: RawTable, references: KeyPositions) -> KeyPositions:
    """Give every row that references a lookup row a copy of its own; returns the positions of the copies.

    Copies come in the order of the rows that reference them, after rows that none references: the order of an entity's
    copies does not depend on who else references the same row, or does so first.
    """
    holders = np.flatnonzero(references.rows >= 0)
    unreferenced = np.setdiff1d(np.arange(lookup.rows), references.rows)
    originals = np.concatenate([unreferenced, references.rows[holders]])
    lookup.codes = {name: codes[originals] for name, codes in lookup.codes.items()}
    lookup.values = {name: values.take(pa.array(originals)) for name, values in lookup.values.items()}
    lookup.keys = {
        name: KeyPositions(rows=key.rows[originals], missing=key.missing[originals])
        for name, key in lookup.keys.items()
    }
    lookup.rows = len(originals)
    positions = references.rows.copy()
    positions[holders] = len(unreferenced) + np.arange(len(holders))
    return KeyPositions(rows=positions, missing=references.missing)
