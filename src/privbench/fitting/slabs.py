"""Some batches of a private table at a time: attributes coded, keys looked up, entities found, rows sorted by part.

A slab is worked on by itself, so that threads can share the work. What follows from the order of rows, such as whether
a key ascends from slab to slab, is told with the slab and looked at by whoever puts slabs together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.columns_file import Columns
from privbench.encode.hashing import Hashes, hash_rows
from privbench.encode.keys import (
    MISSING,
    NULL,
    AnyIndex,
    Positions,
    any_null,
    ascend,
    comparable,
    position_type,
    smallest_type,
)
from privbench.encode.lookup import LookedUp
from privbench.errors import SourceError
from privbench.fitting.entities import EntityNumbers
from privbench.fitting.gathering import Run, Stripes
from privbench.fitting.key_checks import Key
from privbench.fitting.part_rows import INSIDE, GatheredTable, is_numbered
from privbench.fitting.relative import needed_values
from privbench.fitting.rules import columns_for_rules_above
from privbench.schema.relative import relative_columns
from privbench.schema.tables import Column, Table
from privbench.schema.unit import Link, LinkKind, Protection

SLAB_ROWS = 2**17
"""About so many rows are worked on at a time."""
SLAB_BYTES = 2**26
"""Or fewer, if they hold long texts."""
_LONG_RUN = 256
"""Rows that lie by part in runs of about so many are not sorted by part."""
_CODE, _VALUE, _RULED, _KEY, _MISSING, _ORDER = "code.", "value.", "ruled.", "key.", "missing.", "order."
_ENTITY, _NUMBER = "entity", "number"
Indexes = Mapping[tuple[str, Key], AnyIndex]
"""Of the keys that others reference, by table and columns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableWork:
    """What is read of a private table, and what is to be done with it."""

    protection: Protection
    table: Table
    """With the columns that are read."""
    coded: Mapping[str, LookedUp]
    values: tuple[str, ...]
    ruled: tuple[str, ...]
    links: tuple[Link, ...]
    indexes: Indexes
    orphans_as_null: bool
    sort: bool = False
    """Whether rows wait to be sorted by their primary key: they do not come in its order."""
    hashed: frozenset[Key] = frozenset()
    """Keys that do not ascend and that nobody references: whether they are unique is seen from hashes."""

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.name

    @property
    def is_entity(self) -> bool:
        """Whether each row is an entity."""
        return self.name == self.protection.entity

    @property
    def ascending(self) -> tuple[Key, ...]:
        """The keys that are looked at whether they ascend: such are unique, and a primary key says the row order."""
        keys = [k for k in self.table.keys if (self.name, k) not in self.indexes and k not in self.hashed]
        primary = self.table.primary_key
        if primary and primary not in keys and not self.is_entity and not self.sort:
            keys.append(primary)
        return tuple(keys)

    def kept_keys(self) -> tuple[Link, ...]:
        """The keys whose targets wait with the rows: not those that say the same as the entity does."""
        if self.protection.lookups:
            return self.links
        kept = (k for k in self.links if k.kind is not LinkKind.IMPLIED)
        return tuple(k for k in kept if not self._is_entity_key(k))

    def _is_entity_key(self, link: Link) -> bool:
        owned = self.name in self.protection.owners and len(self.protection.owner_keys(self.name)) == 1
        return owned and link.kind is LinkKind.OWNER and link.target == self.protection.entity

    def is_numbered(self) -> bool:
        """Whether the numbers of rows wait with them: keys of rows reference them."""
        links = self.protection.links_to(self.name)
        inside = any(k.kind in INSIDE and k.target != self.protection.entity for k in links)
        joined = any(k.kind in INSIDE and len(self.protection.owner_keys(k.table)) > 1 for k in links)
        return is_numbered(self.protection, self.name) or inside or joined or bool(self.protection.lookups)


def table_work(
    protection: Protection, name: str, codecs: Codecs, indexes: Indexes, *, orphans_as_null: bool
) -> TableWork:
    """What is to be read of a table: no column that is neither learnt, nor part of a key or a rule."""
    table = protection.schema.table(name)
    relative, bases = relative_columns(protection, name), needed_values(protection, name)
    coded = {column: LookedUp(codec) for column, codec in codecs[name].items() if column not in relative}
    values = tuple(n for n in protection.attributes(name) if n not in coded or n in bases)
    ruled = tuple(sorted(columns_for_rules_above(protection, name)))
    links = tuple(link for link in protection.keys if link.table == name)
    referenced = [key for other, key in indexes if other == name]
    keys = [*table.keys, *referenced, *(link.key.columns for link in links)]
    rules = {column.column for check in table.own_checks for column in check.columns}
    read = {*coded, *values, *ruled, *rules, *(column for key in keys for column in key)}
    columns = tuple(c for c in table.columns if c.name in read) or table.columns[:1]
    return TableWork(
        protection=protection,
        table=_narrowed(table, columns),
        coded=coded,
        values=values,
        ruled=ruled,
        links=links,
        indexes=indexes,
        orphans_as_null=orphans_as_null,
    )


def _narrowed(table: Table, columns: tuple[Column, ...]) -> Table:
    """A table with fewer columns, and the keys that are left."""
    uniques = tuple(key for key in table.keys if key != table.primary_key)
    return Table(name=table.name, columns=columns, primary_key=table.primary_key, uniques=uniques)


@dataclass(slots=True, kw_only=True, eq=False)
class Slab:
    """Rows of a private table, in runs of the same part; and what the order of all rows is seen from."""

    rows: int
    columns: dict[str, NDArray[Any] | pa.Array]
    runs: list[Run] = field(default_factory=list)
    nulls: Mapping[str, int]
    """By key, how many rows have none."""
    missing: Mapping[str, int]
    """By key, how many rows reference a row that is not there."""
    ends: dict[Key, tuple[list[pa.Array], list[pa.Array]]] = field(default_factory=dict)
    """By key that ascends: its first and its last values."""
    descending: frozenset[Key] = frozenset()
    """Keys that do not ascend."""
    hashes: dict[Key, tuple[Hashes, int]] = field(default_factory=dict)
    """By key the hashes of its values, and how many are NULL."""


class Batches:
    """Some batches of a table, as one: columns are put together where they are needed as a whole."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.batches = batches
        self.rows = sum(batch.num_rows for batch in batches)

    def whole(self, names: Iterable[str]) -> list[pa.Array]:
        """Some columns, each in one piece."""
        return [pa.concat_arrays([batch.column(name) for batch in self.batches]) for name in names]

    def worked_out(self, work: Callable[[pa.RecordBatch], NDArray[Any]]) -> NDArray[Any]:
        """What some work gives for each row; a batch at a time stays in the cache."""
        return np.concatenate([work(batch) for batch in self.batches])

    def found(self, index: AnyIndex, names: Sequence[str]) -> Positions:
        """The rows that a key references."""
        return self.worked_out(lambda batch: index.find([batch.column(name) for name in names]))


def work_on(work: TableWork, rows: Batches, start: int, numbers: EntityNumbers, stripes: Stripes) -> Slab:
    """Code some rows of a table; `start` is the number of the first, if no key says it."""
    columns: dict[str, NDArray[Any] | pa.Array] = {
        _CODE + name: rows.worked_out(lambda batch, name=name, codec=codec: codec.encode(batch.column(name)))  # type: ignore[misc]
        for name, codec in work.coded.items()
    }
    columns |= {_VALUE + name: column for name, column in zip(work.values, rows.whole(work.values), strict=True)}
    columns |= {_RULED + name: column for name, column in zip(work.ruled, rows.whole(work.ruled), strict=True)}
    found = {k.name: rows.found(work.indexes[k.target, k.key.references], k.key.columns) for k in work.links}
    nulls = {name: _count(targets, NULL) for name, targets in found.items()}
    missing = {name: _count(targets, MISSING) for name, targets in found.items()}
    columns |= {_KEY + link.name: _narrow(work, link, found[link.name]) for link in work.kept_keys()}
    own = _numbers(work, rows, start)
    if work.is_numbered():
        columns[_NUMBER] = own
    if work.protection.lookups:
        none = np.full(rows.rows, NULL, np.int64)
        lost = {k.name: _missing(work, k, rows, found[k.name], numbers) for k in work.links}
        columns |= {_MISSING + name: none if numbered is None else numbered for name, numbered in lost.items()}
        columns[_ENTITY] = own
    else:
        columns[_ENTITY] = _entities(work, rows, found, own, numbers)
        numbers.remember(work.name, own, columns[_ENTITY])
    columns |= {f"{_ORDER}{at}": column for at, column in enumerate(_order(work, rows))}
    slab = Slab(rows=rows.rows, columns=columns, nulls=nulls, missing=missing)
    _look_at_keys(work, rows, slab)
    _deal_out(slab, stripes)
    return slab


def _narrow(work: TableWork, link: Link, rows: Positions) -> Positions:
    """Keys to public tables, which mostly are small, in the smallest integers."""
    if link.kind is not LinkKind.CATEGORY:
        return rows
    return rows.astype(smallest_type(work.indexes[link.target, link.key.references].rows))


def _count(rows: Positions, value: int) -> int:
    return int(np.count_nonzero(rows == value)) if len(rows) and int(rows.min()) < 0 else 0


def _numbers(work: TableWork, rows: Batches, start: int) -> Positions:
    """The numbers of rows, as the index of a key says where there is one: rows may come in another order than then."""
    known = sorted((k for t, k in work.indexes if t == work.name), key=lambda k: k != work.table.primary_key)
    if not known or (known[0] != work.table.primary_key and any_null(rows.whole(known[0])).any()):
        return start + np.arange(rows.rows, dtype=position_type(start + rows.rows))
    found = rows.found(work.indexes[work.name, known[0]], known[0])
    if _count(found, MISSING) or _count(found, NULL):
        raise changed(work.name)
    return found


def changed(table: str) -> SourceError:
    """Say that a table is not what it was a moment ago."""
    return SourceError(
        f"{table}: changed while it was read. Nothing was spent. Fit again when nobody writes to the source, or read a "
        "copy of it."
    )


def _entities(
    work: TableWork, rows: Batches, found: Mapping[str, Positions], own: Positions, numbers: EntityNumbers
) -> Positions:
    if work.is_entity:
        return own
    keys = work.protection.owner_keys(work.name)
    links = [next(link for link in work.links if link.key == key) for key in keys]
    return numbers.of_rows(
        (link.target, found[link.name], _missing(work, link, rows, found[link.name], numbers)) for link in links
    )


def _missing(work: TableWork, link: Link, rows: Batches, found: Positions, numbers: EntityNumbers) -> Positions | None:
    """For keys that reference no row the number that stands for it; None if that is an error, or there is none."""
    if not work.orphans_as_null or not _count(found, MISSING):
        return None
    return numbers.of_missing(link.name, found, rows.whole(link.key.columns))


def _order(work: TableWork, rows: Batches) -> list[pa.Array]:
    """What rows will be sorted by; nothing where they are in their order, or there is one of each entity."""
    if work.is_entity:
        return []
    if work.table.primary_key:
        return rows.whole(work.table.primary_key) if work.sort else []
    return [pa.array(rows.worked_out(lambda batch: hash_rows(batch.columns)))]


def _look_at_keys(work: TableWork, rows: Batches, slab: Slab) -> None:
    """See whether keys ascend; of others take hashes."""
    descending = set()
    for key in work.ascending if rows.rows else ():
        columns = rows.whole(key)
        if ascend(columns):
            slab.ends[key] = ([c[:1] for c in columns], [c[-1:] for c in columns])
        else:
            descending.add(key)
    slab.descending = frozenset(descending)
    for key in work.hashed:
        columns = [comparable(c) for c in rows.whole(key)]
        null = any_null(columns)
        slab.hashes[key] = (np.sort(hash_rows(columns)[~null]), int(null.sum()))


def _deal_out(slab: Slab, stripes: Stripes) -> None:
    """Find runs of rows of the same part, and number entities inside it. Rows are sorted by part if runs are short."""
    entities = slab.columns[_ENTITY]
    parts = stripes.part_of(entities)
    starts = np.append(0, np.flatnonzero(parts[1:] != parts[:-1]) + 1) if slab.rows else np.zeros(0, np.int64)
    if len(starts) > stripes.parts and len(starts) * _LONG_RUN > slab.rows:
        order = np.argsort(parts, kind="stable")
        places = pa.array(order)
        slab.columns = {
            name: column[order] if isinstance(column, np.ndarray) else column.take(places)
            for name, column in slab.columns.items()
        }
        counts = np.bincount(parts, minlength=stripes.parts)
        starts = (np.cumsum(counts) - counts)[counts > 0]
        parts = parts[order]
    ends = np.append(starts[1:], slab.rows)
    slab.runs = list(zip(parts[starts].tolist(), starts.tolist(), ends.tolist(), strict=False))
    slab.columns[_ENTITY] = stripes.inside(slab.columns[_ENTITY])


def gathered_table(columns: Columns) -> GatheredTable:
    """The rows of a table as a part is made of them."""

    def named(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): c for name, c in columns.items() if name.startswith(prefix)}

    order = named(_ORDER)
    return GatheredTable(
        codes=named(_CODE),
        values=named(_VALUE),
        ruled=named(_RULED),
        keys=named(_KEY),
        missing=named(_MISSING),
        entities=columns[_ENTITY],
        numbers=columns.get(_NUMBER),
        order=tuple(order[str(at)] for at in range(len(order))),
    )


def column_of(name: str) -> str:
    """The column of a table that a gathered one was made of."""
    return name.partition(".")[2]


def in_slabs(batches: Iterable[pa.RecordBatch]) -> Iterator[Batches]:
    """The batches, several at a time."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SLAB_ROWS or size >= SLAB_BYTES:
            yield Batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield Batches(held)
