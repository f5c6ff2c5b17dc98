"""A partition of a generated database: its share of the rows of every table, made without the others.

Partition p of n has a range of the entities with all rows that belong to them. Where ranges begin follows from the
planned sizes alone, so that row numbers, and keys made of them, are unique over all partitions, and sizes add up to the
row. Lookups and public tables are shared: every partition makes them whole, and the first one writes them, so that keys
can reference any of their rows. Keys between other private tables reference rows of the same partition.

A model may ask for more, such as a key of drawn values that no other partition may have. Then the database is made
as a whole, and its rows are cut into partitions (`hindrances` says why).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.generation.keys import keeps_entity_keys
from privbench.generation.sizes import Sizes, rows_without_owner
from privbench.model.model import Model
from privbench.model.order import colliding_keys, is_numbered, redrawn_links
from privbench.schema.tables import Table
from privbench.schema.unit import LinkKind, Role

FEWEST_TARGETS = 1_000
"""Rows that a table must have in each partition, if keys of other tables reference it: enough to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One of `count` partitions, numbered from 0."""

    number: int = 0
    count: int = 1

    def share(self, rows: int) -> int:
        """How many of some rows are of this partition.

        >>> [Partition(number=i, count=3).share(10) for i in range(3)]
        [3, 3, 4]
        """
        return rows * (self.number + 1) // self.count - rows * self.number // self.count


WHOLE = Partition()


def is_shared(model: Model, table: str) -> bool:
    """Whether every partition makes a table whole."""
    return model.protection.roles[table] in (Role.LOOKUP, Role.PUBLIC)


def rows_before(model: Model, totals: Sizes, scale: float, partition: Partition) -> dict[str, int]:
    """How many rows of each private table stand in the partitions before this one: child rows go with their owners.

    Tables that are shared have none.
    """
    before: dict[str, int] = {}
    for name in model.protection.order:
        owner, rows = model.protection.owner_link(name), totals[name]
        if is_shared(model, name):
            before[name] = 0
        elif owner is None or not totals[owner.target]:
            before[name] = rows * partition.number // partition.count
        else:
            alone = rows_without_owner(model, owner, rows=rows, scale=scale)
            owned = (rows - alone) * before[owner.target] // totals[owner.target]
            before[name] = owned + alone * partition.number // partition.count
    return before


def partition_rows(model: Model, totals: Sizes, scale: float, partition: Partition) -> dict[str, int]:
    """How many rows each table has in a partition; shared ones have all."""
    first = rows_before(model, totals, scale, partition)
    after = Partition(number=partition.number + 1, count=partition.count)
    last = rows_before(model, totals, scale, after)
    return {name: rows if is_shared(model, name) else last[name] - first[name] for name, rows in totals.items()}


def merged_ranks(ranks: NDArray[np.int64], sizes: list[int], number: int) -> NDArray[np.int64]:
    """The places of sorted rows of one partition in all partitions together, if these are alike.

    Row r of n is taken to stand at (r + 1/2) / n of all; rows at the same point go by partition.

    >>> merged_ranks(np.arange(2), [2, 4], 0).tolist(), merged_ranks(np.arange(4), [2, 4], 1).tolist()
    ([1, 4], [0, 2, 3, 5])
    """
    places = ranks.copy()
    for other, rows in enumerate(sizes):
        if other != number:
            doubled = (2 * ranks + 1) * rows - sizes[number]
            earlier = doubled // (2 * sizes[number]) + 1 if other < number else -(-doubled // (2 * sizes[number]))
            places += np.clip(earlier, 0, rows)
    return places


def hindrances(model: Model, totals: Sizes, scale: float, count: int) -> list[str]:
    """Why partitions of a model cannot be made one by one, with the columns to blame; empty if they can."""
    if count == 1:
        return []
    return [
        *_repeating_keys(model),
        *_shared_references(model),
        *_few_targets(model, totals, count),
        *_public_references(model, scale),
    ]


def _divided(model: Model) -> list[Table]:
    return [model.protection.schema.table(name) for name in model.protection.order if not is_shared(model, name)]


def _repeating_keys(model: Model) -> Iterator[str]:
    """Keys of drawn values: only with a key to a row of the partition among them are they unique over all."""
    for table in _divided(model):
        private = [
            set(link.key.columns)
            for link in model.protection.keys
            if link.table == table.name and not is_shared(model, link.target)
        ]
        for key in colliding_keys(model.spec, table):
            if not any(columns <= set(key) for columns in private):
                yield f"{table.name}.{', '.join(key)}: its values are drawn, and none may be in two partitions"


def _shared_references(model: Model) -> Iterator[str]:
    for link in model.protection.links:
        if model.protection.roles[link.table] is Role.LOOKUP and not is_shared(model, link.target):
            yield f"{link.name}: is a key of a lookup to rows of {link.target}, which are in all partitions"


def _few_targets(model: Model, totals: Sizes, count: int) -> Iterator[str]:
    for link in model.protection.links:
        apart = link.kind is LinkKind.REFERENCE and link.table != link.target and not is_shared(model, link.target)
        if apart and totals[link.target] < count * FEWEST_TARGETS:
            yield (
                f"{link.name}: references {link.target}, which has {totals[link.target]:,} rows, fewer than "
                f"{FEWEST_TARGETS:,} for each partition"
            )


def _public_references(model: Model, scale: float) -> Iterator[str]:
    """Public tables reference rows of all partitions by their numbers, so that none of these may be missing."""
    for link in redrawn_links(model.protection, keep_entity_keys=keeps_entity_keys(model, scale)):
        if is_shared(model, link.target):
            continue
        target = model.protection.schema.table(link.target)
        above = [model.protection.schema.table(name) for name in (link.target, *model.protection.above(link.target))]
        if not is_numbered(target, link.key.references):
            yield f"{link.name}: is a public key to {link.target}, whose key is no row number"
        elif any(table.checks or colliding_keys(model.spec, table) for table in above):
            yield f"{link.name}: is a public key to {link.target}, of which rows may be left out to keep rules or keys"
