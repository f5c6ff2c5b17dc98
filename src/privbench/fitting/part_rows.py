"""From gathered rows of some entities to a `Part`: a pure function, wherever the rows were gathered.

Rows come with the numbers that they have in their whole table, and keys with the numbers of the rows that they
reference. Here rows are put into their order, keys to rows of the same entity become places in the part, what is coded
against rows above is coded, and rows that break a rule over rows above are counted.

The order of an entity's rows is that of their primary keys, and else of a public hash of their values. So it does not
depend on the order in which a source gives them, nor on how the database is divided into parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.coded import CodedTable
from privbench.encode.keys import MISSING, NULL, Positions
from privbench.fitting.entities import KeyPositions, RawTable, assign_entities, inside_keys
from privbench.fitting.relative import NullBases, code_relative, order_sequences
from privbench.fitting.rules import Broken, broken_above
from privbench.privacy.part import Part
from privbench.schema.unit import Link, LinkKind, Protection

Codes = NDArray[np.unsignedinteger]
INSIDE = (LinkKind.OWNER, LinkKind.INSIDE)
"""Keys to rows of the same entity."""


@dataclass(slots=True, kw_only=True, eq=False)
class GatheredTable:
    """Rows of a private table: all that belong to the entities of a part."""

    codes: dict[str, Codes] = field(default_factory=dict)
    values: dict[str, pa.Array] = field(default_factory=dict)
    """Of columns that are coded later, or that others are coded against."""
    ruled: dict[str, pa.Array] = field(default_factory=dict)
    """Of columns that rules over rows above look at."""
    keys: dict[str, Positions] = field(default_factory=dict)
    """The numbers of the rows that keys reference; NULL, or MISSING where there is no such row.

    Without that of an owner key to the entity table where its row is that of the row's own entity, or none.
    """
    missing: dict[str, Positions] = field(default_factory=dict)
    """With lookups alone: which row a MISSING key means."""
    entities: Positions
    """Numbers inside the part; rows of the entity table have the first ones."""
    numbers: Positions | None = None
    """The numbers of the rows in their whole table, where keys reference them."""
    order: tuple[pa.Array, ...] = ()
    """What rows are sorted by; nothing where they are in their order."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.entities)


def make_part(
    protection: Protection, codecs: Codecs, tables: Mapping[str, GatheredTable], *, null_bases: NullBases
) -> tuple[Part, Broken]:
    """The part of some entities, given all of their rows; and how many rows break which rules over rows above.

    What it gets is taken apart on the way. Tables are those of `protection.order`.
    """
    for name, table in tables.items():
        _put_in_order(table, by_entity=name == protection.entity)
    coded = _with_copies(protection, tables) if protection.lookups else _coded(protection, tables)
    broken = broken_above(protection, {name: table.ruled for name, table in tables.items()}, coded)
    values = {name: table.values for name, table in tables.items()}
    order_sequences(protection, coded, values)
    raw = code_relative(protection, codecs, coded, values, null_bases=null_bases)
    return Part(tables=coded, raw=raw), broken


def _put_in_order(table: GatheredTable, *, by_entity: bool) -> None:
    """Sort rows, where they are not in their order. Rows of the entity table are in the order of entities."""
    if by_entity:
        if (table.entities[1:] > table.entities[:-1]).all():
            return
        order = np.argsort(table.entities, kind="stable")
    elif table.order:
        order = _sorted(table.order)
    else:
        return
    places = pa.array(order)
    table.codes = {name: codes[order] for name, codes in table.codes.items()}
    table.values = {name: values.take(places) for name, values in table.values.items()}
    table.ruled = {name: values.take(places) for name, values in table.ruled.items()}
    table.keys = {name: rows[order] for name, rows in table.keys.items()}
    table.missing = {name: rows[order] for name, rows in table.missing.items()}
    table.entities = table.entities[order]
    table.numbers = None if table.numbers is None else table.numbers[order]


def _sorted(columns: tuple[pa.Array, ...]) -> NDArray[np.int64]:
    """The order of rows by some columns, numbers by value and texts by code points."""
    if len(columns) == 1 and pa.types.is_integer(columns[0].type) and not columns[0].null_count:
        return np.argsort(columns[0].to_numpy(), kind="stable")
    names = [str(at) for at in range(len(columns))]
    order = pc.sort_indices(pa.table(list(columns), names), [(name, "ascending") for name in names])
    return np.asarray(order.to_numpy()).astype(np.int64)


def _coded(protection: Protection, tables: Mapping[str, GatheredTable]) -> dict[str, CodedTable]:
    return {
        name: CodedTable(
            codes=table.codes,
            keys={link.name: _key(protection, link, tables) for link in protection.links_of(name)},
            entities=table.entities,
            numbers=table.numbers if is_numbered(protection, name) else None,
        )
        for name, table in tables.items()
    }


def is_numbered(protection: Protection, table: str) -> bool:
    """Whether rows of other entities, or of public tables, reference rows of a table by their numbers."""
    return any(link.kind not in INSIDE for link in protection.links_to(table))


def _key(protection: Protection, link: Link, tables: Mapping[str, GatheredTable]) -> Positions:
    """What a key references: places of rows of the same entity, numbers of others; NULL for none."""
    table, target = tables[link.table], tables.get(link.target)
    if link.name not in table.keys:
        owners = tables[protection.entity].rows
        whole = not table.rows or int(table.entities.max()) < owners
        return table.entities if whole else np.where(table.entities < owners, table.entities, NULL)
    rows = table.keys[link.name]
    if link.kind in INSIDE and target is not None:
        return inside_keys(_places(target, rows), table.entities, target.entities)
    return np.where(rows == MISSING, rows.dtype.type(NULL), rows) if (rows == MISSING).any() else rows


def _places(target: GatheredTable, numbers: Positions) -> Positions:
    """The places of the rows of these numbers; NULL for rows that are not in the part."""
    own = target.numbers
    if own is None:
        raise ValueError("rows that keys reference have no numbers")
    if not len(own):
        return np.full(len(numbers), NULL, numbers.dtype)
    order = None if (own[1:] > own[:-1]).all() else np.argsort(own)
    sorted_numbers = own if order is None else own[order]
    at = np.minimum(np.searchsorted(sorted_numbers, numbers), len(own) - 1)
    there = sorted_numbers[at] == numbers
    return np.where(there, at if order is None else order[at], NULL).astype(numbers.dtype)


def _with_copies(protection: Protection, tables: Mapping[str, GatheredTable]) -> dict[str, CodedTable]:
    """A whole database whose lookup rows are copied for each row that references them.

    Whose rows are whose is found here: it takes all rows of a lookup and of its owner.
    """
    raw = {}
    for name, table in tables.items():
        keys = {}
        for link in (k for k in protection.keys if k.table == name):
            rows = table.keys[link.name]
            if link.target in tables:
                places = _places(tables[link.target], rows)
                rows = np.where(rows < 0, rows, places)
            keys[link.name] = KeyPositions(rows=rows, missing=table.missing[link.name])
        raw[name] = RawTable(codes=table.codes, values=table.values | table.ruled, keys=keys, rows=table.rows)
    coded = assign_entities(protection, raw)
    for name, table in tables.items():
        held = raw[name].values
        table.values = {column: held[column] for column in table.values}
        table.ruled = {column: held[column] for column in table.ruled}
        coded[name].numbers = np.arange(raw[name].rows) if is_numbered(protection, name) else None
    return coded
