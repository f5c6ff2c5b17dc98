"""Columns that are known to depend on each other: `pairs` of a table, found in the schema.

Which columns these are is public, and says nothing of their values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privbench.errors import SpecError
from privbench.schema.computed import ComputedOrigin
from privbench.schema.relative import quoted, spellings
from privbench.schema.table_spec import TableSpec, TwoNames
from privbench.schema.unit import Link, LinkKind, Protection

_FOUND = frozenset({ComputedOrigin.FOUND, ComputedOrigin.EARLIER})


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is learnt of a column: its values, or of its key which public row it references, or which kind it is of.

    That is whether it is NULL, and whether it references the row above, if it may.
    """

    table: str
    column: str
    key: Link | None
    """The key that the column is of; None where its values are learnt."""

    def is_of(self, other: "Learnt") -> bool:
        """Whether both are the same to a method: two columns of one key are."""
        return self.table == other.table and (self.key or self.column) == (other.key or other.column)


LearntPair = tuple[Learnt, Learnt]


def learnt_pairs(tables: Mapping[str, TableSpec], protection: Protection, table: str) -> Iterator[LearntPair]:
    """The pairs of a table, a column of the row itself first. Raises SpecError where one cannot be.

    A column that a fit has found to be computed needs no pair: what was said of it is left out.
    """
    for i, names in enumerate(tables[table].pairs):
        where = f"tables.{table}.pairs.{i}"
        places = sorted((_place(where, protection, table, name) for name in names), key=lambda place: place[0] != table)
        if any(tables[t].columns[c].computed_origin in _FOUND for t, c in places):
            continue
        first, second = (_learnt(where, protection, *place) for place in places)
        if first.table != table:
            raise SpecError(f"{where}: both are columns of {first.table}. Say so there, or name one of {table}.")
        if first.is_of(second):
            raise SpecError(f"{where}: both are the same column or key of {table}. Name two, or take the pair out.")
        yield first, second


def check_pairs(tables: Mapping[str, TableSpec], protection: Protection) -> None:
    """Refuse pairs of columns that are not learnt. Raises SpecError naming their path in the spec."""
    for table in protection.order:
        for _ in learnt_pairs(tables, protection, table):
            pass


def _place(where: str, protection: Protection, table: str, name: str) -> tuple[str, str]:
    owner = protection.owner_link(table)
    rows = [table] if owner is None else [table, owner.target]
    place = spellings(protection, table).get(name)
    if place is None or place[0] not in rows:
        above = "which has no owner" if owner is None else f"whose owner is {owner.target}"
        raise SpecError(
            f"{where}: {name} is dropped, or neither a column of {table}, {above}, nor of its owner. Write the name of "
            f"a column of {table}, or `OWNER_TABLE.COLUMN`; or take the pair out."
        )
    return place


def _learnt(where: str, protection: Protection, table: str, name: str) -> Learnt:
    column = protection.schema.table(table).column(name)
    if column.computed is not None or column.determined_by is not None:
        raise SpecError(f"{where}: {table}.{name} follows from other columns, and is not learnt. Take the pair out.")
    if name in protection.attributes(table):
        return Learnt(table, name, None)
    keys = (link for link in protection.links_of(table) if name in link.key.columns)
    key = next((link for link in keys if _is_learnt(protection, link)), None)
    if key is None:
        raise SpecError(
            f"{where}: {table}.{name} is a key of which nothing is learnt. Of keys only those into public tables, "
            "those that may be NULL and those to a table above, other than owner keys, can be in a pair. "
            "Take the pair out."
        )
    return Learnt(table, name, key)


def _is_learnt(protection: Protection, link: Link) -> bool:
    """Whether a key adds a column: which public row it references, or whether it is NULL or the row above."""
    if link.kind is LinkKind.CATEGORY or protection.leads_above(link):
        return True
    return link.kind in (LinkKind.REFERENCE, LinkKind.INSIDE) and link.nullable


def without_list(member: TableSpec, name: str, of: TableSpec, held: Mapping[str, str]) -> tuple[TwoNames, ...]:
    """The pairs of a member that takes over the columns of its list, and those of the list.

    `held` says how columns of the list's key are called in the member.
    """
    spelled = {text: c for c in of.columns for text in (f"{name}.{c}", quoted(name, c)) if text not in member.columns}
    texts = {text: held.get(c, c) for text, c in spelled.items()}
    pairs = [(texts.get(a, a), texts.get(b, b)) for a, b in member.pairs]
    pairs += [(held.get(a, a), held.get(b, b)) for a, b in of.pairs]
    return tuple({frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}.values())
