"""Computed columns of synthetic rows: how many rows they own, their place among their owner's, copies of the owner's.

Numbers of rows are drawn before the row is written, scaled to the rows that the owned table is to have, and carried to
it. Copies are looked up like one more column of the owner key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.generation.sizes import Sizes, most_rows_per_owner
from privbench.model.model import Model
from privbench.schema.computed import equal_columns
from privbench.schema.tables import Table
from privbench.schema.types import SqlType
from privbench.schema.unit import Link, Protection, key_name
from privbench.spn.link import WithOwner
from privbench.spn.nodes import Node
from privbench.spn.sample import first_rows

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """An owner key whose rows a column of the owner counts, and the most that one owner can get."""

    link: Link
    children: WithOwner
    network: Node
    """Of the owner table."""
    most: int
    wanted: int
    """Rows that all owners are to have."""

    def draw(self, codes: Mapping[str, NDArray[np.uint16]], rng: np.random.Generator) -> Numbers:
        """How many rows each owner would have, before they are scaled to those wanted."""
        return np.minimum(self.children.numbers(self.network, codes, rng=rng), self.most)


def counted_keys(model: Model, name: str, sizes: Sizes, *, alone: Sizes) -> tuple[Counted, ...]:
    """The owner keys into a table that its computed columns count, given the rows of all tables, and without owner."""
    tables = {equals.rows for equals in equal_columns(model.protection, name).values()}
    counted = []
    for link in (model.protection.owner_link(t.name) for t in model.protection.schema.tables if t.name in tables):
        children = None if link is None else model.tables[link.table].links[link.name].with_owner
        if link is not None and children is not None:
            rows, network = sizes[link.table], model.tables[name].network
            most = most_rows_per_owner(model, link.table, sizes) if rows else 0
            owned = rows - (min(alone[link.table], rows) if sizes[name] or not link.nullable else rows)
            counted.append(Counted(link=link, children=children, network=network, most=most, wanted=owned))
    return tuple(counted)


def copied_columns(protection: Protection, table: str) -> dict[str, str]:
    """The columns of a table that copy a column of its owner, and which."""
    equal = equal_columns(protection, table)
    return {name: equals.owner for name, equals in equal.items() if equals.owner is not None}


def number_columns(
    protection: Protection, table: Table, *, targets: Mapping[str, Numbers], counts: Mapping[str, Numbers]
) -> Iterator[tuple[str, pa.Array]]:
    """The computed columns that are numbers, with their values.

    `targets` are the owner rows of rows by owner key, those of one owner in a run; `counts` by owner key the rows that
    each row owns.
    """
    for name, equals in equal_columns(protection, table.name).items():
        column = table.column(name)
        if equals.rows is not None:
            yield name, as_integers(counts[_owner_key(protection, equals.rows)], column.type)
        elif equals.rank is not None:
            owners = targets[_owner_key(protection, table.name)]
            null = owners < 0 if column.nullable else None
            yield name, as_integers(places(owners) + equals.rank, column.type, null=null)


def _owner_key(protection: Protection, table: str) -> str:
    return key_name(table, protection.owners[table])


def places(owners: Numbers) -> Numbers:
    """The place of each row among the rows of its owner, from 0; rows of one owner stand in a run, -1 is no owner.

    >>> places(np.array([4, 4, 7, -1, -1])).tolist()
    [0, 1, 0, 0, 0]
    """
    firsts = first_rows(owners)
    return np.where(firsts < 0, 0, np.arange(len(owners)) - firsts)


def as_integers(numbers: Numbers, kind: SqlType, *, null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers as values of an integer type; those that do not fit are the nearest that does.

    >>> from privbench.schema.types import parse_type
    >>> as_integers(np.array([3, 300]), parse_type("TINYINT"), null=np.array([True, False])).to_pylist()
    [None, 127]
    """
    return pa.array(np.clip(numbers, *kind.bounds), mask=null).cast(kind.arrow)
