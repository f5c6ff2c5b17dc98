"""What a method may know about the private database without paying: shapes, links, declared limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.schema.unit import LinkKind, Neighbours

SIZE_LIMIT = 2**35
"""No table has more rows than this (checked when it is read): the bound used where the true size is private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A modelled column: how many codes it has, and whether they are ordered."""

    size: int
    ordered: bool
    null: bool = False
    """Whether the last code is NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A private table. `rows` is its public size, None where that is private; `cap` its declared rows per entity."""

    name: str
    columns: Mapping[str, ColumnFacts]
    rows: int | None
    cap: int | None
    lookup_of: str | None = None
    """The table whose rows own this one's rows by naming them, one each."""
    hidden: bool = False
    """Whether it is a hidden list, of which other tables have rows or not."""
    weight: float = 1.0
    """How many times its usual part of the budget it gets, before parts are made to add up."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Features that are known to depend on each other, by name: of the row, and of the row or its owner's.

    None of them twice, whichever comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """A key of a private table. `slots` is the number of rows it can name, None where that is private."""

    name: str
    table: str
    columns: tuple[str, ...]
    target: str
    kind: LinkKind
    slots: int | None
    nullable: bool
    """Whether a row may have no target, by the schema or because keys to missing rows count as NULL."""
    unique: bool
    counted: bool = False
    """Whether computed columns are numbers of its rows, or of their places, so that numbers matter one by one."""
    shared: bool = False
    """Of an owner key: whether an entity may have several rows without owner, since implied keys say whose they are."""

    def to_json(self) -> dict[str, Any]:
        """Name the key as the receipt does."""
        return {"table": self.table, "columns": list(self.columns), "target": self.target}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicCounts:
    """How many rows of a public table reference each entity by a key: known to all, as the ids are."""

    name: str
    """The column that the network of the entity table has for it."""
    link: Mapping[str, Any]
    """The key, as the receipt names it."""
    codes: NDArray[np.uint16]
    """The bin of that number for each entity, in the order of ids."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PossiblePairs:
    """Which codes of two columns can stand in one row that keeps the rules: by rules and domains, so known to all."""

    table: str
    column: str
    base: str
    """The other column, of the same row or of its owner's."""
    of_owner: bool
    possible: NDArray[np.bool_]  # (codes of the base, codes of the column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All public shapes, private tables in owner order, the entity table first."""

    entity: str
    neighbours: Neighbours
    tables: Mapping[str, TableFacts]
    links: tuple[LinkFacts, ...]
    public_ids: bool = False
    """Whether the ids of the entity table are public, so that its rows stand in their order."""
    public_counts: tuple[PublicCounts, ...] = ()
    """How many rows of public tables reference each entity."""
    orphans: bool = False
    """Whether rows may lack an owner even where the schema says NOT NULL: keys to missing rows count as NULL."""
    possible: tuple[PossiblePairs, ...] = ()
    """What rules that compare two columns leave of their codes."""

    def possible_in(self, table: str) -> tuple[PossiblePairs, ...]:
        """What rules leave of pairs of columns of one table, or of it and its owner."""
        return tuple(pair for pair in self.possible if pair.table == table)

    def links_of(self, table: str) -> tuple[LinkFacts, ...]:
        """The keys of one table."""
        return tuple(link for link in self.links if link.table == table)

    def owner_link(self, table: str) -> LinkFacts | None:
        """The owner key of a table; None for the entity table and for lookups."""
        return next((link for link in self.links_of(table) if link.kind is LinkKind.OWNER), None)

    def links_to(self, table: str) -> tuple[LinkFacts, ...]:
        """The keys that reference one table."""
        return tuple(link for link in self.links if link.target == table)

    def path_above(self, link: LinkFacts) -> tuple[LinkFacts, ...]:
        """The owner keys that lead from a reference's table to its target, where rows may reference the row above them.

        None for other keys, and for those that no two rows of an owner may share.
        """
        if link.kind is not LinkKind.REFERENCE or link.unique:
            return ()
        path: list[LinkFacts] = []
        while (owner := self.owner_link(path[-1].target if path else link.table)) is not None:
            path.append(owner)
            if owner.target == link.target:
                return tuple(path)
        return ()

    def most_rows(self, table: str, cap: int) -> int:
        """A public bound on the rows that are kept of a table of which each entity keeps `cap`."""
        known, entities = self.tables[table].rows, self.tables[self.entity].rows
        if known is not None:
            return known
        if entities is None or self.may_be_unowned(table):
            return SIZE_LIMIT
        return entities * cap

    def may_be_unowned(self, table: str) -> bool:
        """Whether rows of a table that do not reach the entity table may be kept."""
        while table != self.entity:
            link = self.owner_link(table)
            if link is None or link.nullable or link.shared or self.orphans:
                return True
            table = link.target
        return False
