"""Which tables of one owner share natural keys in the data, for `draft` to give them a hidden list, taken from there.

Tables are looked at that the entity owns directly and whose primary keys hold its key and at least one more column of
the same name and type. Those with the most columns in common have a list if most keys of each are keys of the largest.
A table of events has a list of its own if rows of one entity have dates or times in common: the days of a patient.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.fitting.lists import list_rows
from privbench.io.base import Source, read_whole
from privbench.schema.computed import Equals
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import Kind
from privbench.schema.unit import LinkKind, Protection

MOST = 0.5
"""A table is in a list if at least this share of its different keys are keys of the largest table of the list."""
AGREE = 0.99
"""A column is the list's if its values agree in at least this share of the list rows that several rows have."""
SHARED_TIMES = 0.7
"""Events have a list if their owners have at most this part of the different times that chance would give them."""
FEWEST_EVENTS = 200
"""Of fewer rows it cannot be told from chance."""
_TIMES = (Kind.DATE, Kind.TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundList:
    """A list, and its members with their keys into it; columns that the list has are copies there."""

    table: Table
    members: tuple[Table, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the owner keys of the members."""
        return self.table.primary_key


def find_lists(source: Source, protection: Protection, *, declared: Collection[str]) -> tuple[FoundList, ...]:
    """Look for tables that share the keys of a list. The owner keys of `declared` tables stay what they are."""
    found: list[FoundList] = []
    while (one := _find_list(source, protection, found, declared)) is not None:
        found.append(one)
    taken = {*declared, *(member.name for one in found for member in one.members)}
    events = [t for t in protection.schema.tables if t.name not in taken and _may_be_member(protection, t)]
    return (*found, *(one for table in events if (one := _list_of_times(source, protection, table)) is not None))


def with_lists(schema: Schema, found: Sequence[FoundList]) -> Schema:
    """The schema with lists, each before its first member."""
    members = {member.name: member for one in found for member in one.members}
    tables: list[Table] = []
    for table in schema.tables:
        tables += [one.table for one in found if one.members[0].name == table.name]
        tables.append(members.get(table.name, table))
    return replace(schema, tables=tuple(tables))


def _find_list(
    source: Source, protection: Protection, found: Sequence[FoundList], declared: Collection[str]
) -> FoundList | None:
    taken = {*declared, *(member.name for one in found for member in one.members)}
    tables = [t for t in protection.schema.tables if t.name not in taken and _may_share(protection, t)]
    shared = {tuple(c for c in one.primary_key if _same(one, other, c)) for one, other in combinations(tables, 2)}
    owners = {t.name: protection.owners[t.name].columns for t in tables}
    for key in sorted(shared, key=lambda columns: (-len(columns), columns)):
        group = [
            t
            for t in tables
            if set(owners[t.name]) < set(key) <= set(t.primary_key)
            and all(_same(t, other, c) for other in tables if set(key) <= set(other.primary_key) for c in key)
        ]
        if len(group) > 1 and len({_unit_key(protection, t) for t in group}) == 1:
            rows = {t.name: _read(source, t, _common(group)) for t in group}
            if len(members := _with_most_keys_in_common(group, rows, key)) > 1:
                return _list(protection, members, rows, key)
    return None


def _list_of_times(source: Source, protection: Protection, table: Table) -> FoundList | None:
    """The list of an event table by the time that the fewest different ones of each owner have, if they share any."""
    owner = protection.owners[table.name].columns
    times = [c for c in table.columns if c.type.kind in _TIMES and _common([table])(c)]
    if not times or source.rows(table.name) < FEWEST_EVENTS:
        return None
    rows = _read(source, table, lambda c: c.name in owner or _common([table])(c))
    shares = {c.name: _different_times(rows, owner, c.name) for c in times if not rows.column(c.name).null_count}
    time = min(shares, key=lambda name: shares[name], default=None)
    if time is None or shares[time] > SHARED_TIMES:
        return None
    return _list(protection, [table], {table.name: rows}, (*owner, time))


def _different_times(rows: pa.Table, owner: tuple[str, ...], time: str) -> float:
    """How many different times the owners of rows have, as part of those that they would have by chance."""
    mixed = np.random.default_rng(0).permutation(rows.num_rows)
    by_chance = rows.set_column(rows.column_names.index(time), time, rows.column(time).take(pa.array(mixed)))
    own, chance = (len(r.group_by([*owner, time]).aggregate([])) for r in (rows, by_chance))
    return own / max(chance, 1)


def _may_share(protection: Protection, table: Table) -> bool:
    """Whether a table may be in a list, and its primary key holds more than the key of its owner."""
    return _may_be_member(protection, table) and set(protection.owners[table.name].columns) < set(table.primary_key)


def _may_be_member(protection: Protection, table: Table) -> bool:
    """Whether a table is owned by the unit, and no key or rule of it, or of another table, is about its own key."""
    key = protection.owners.get(table.name)
    if key is None or key.table != protection.entity:
        return False
    others = [link for link in protection.keys if link.table == table.name and link.key is not key]
    held = {c for link in others for c in link.key.columns}
    ruled = {name.column for check in table.checks for name in check.columns}
    inside = any(link.kind in (LinkKind.INSIDE, LinkKind.IMPLIED) for link in others)
    referenced = any(link.target == table.name for link in protection.keys)
    return not (inside or referenced or {*held, *ruled} & set(table.primary_key))


def _unit_key(protection: Protection, table: Table) -> frozenset[tuple[str, str]]:
    key = protection.owners[table.name]
    return frozenset(zip(key.columns, key.references, strict=True))


def _same(one: Table, other: Table, column: str) -> bool:
    """Whether two tables have a column of the same name and type in their primary keys."""
    return (
        column in one.primary_key
        and column in other.primary_key
        and one.column(column).type == other.column(column).type
        and one.column(column).computed is None
        and other.column(column).computed is None
    )


def _common(group: Sequence[Table]) -> Callable[[Column], bool]:
    """Say of a column whether all tables have it, as an attribute that no rule names, or in their keys."""

    def is_common(column: Column) -> bool:
        return all(_has(table, column) for table in group)

    return is_common


def _has(table: Table, column: Column) -> bool:
    there = next((c for c in table.columns if c.name == column.name), None)
    if there is None or there.type != column.type or there.computed is not None:
        return False
    ruled = {name.column for check in table.checks for name in check.columns}
    in_key = {c for key in table.foreign_keys for c in key.columns}
    return column.name in table.primary_key or column.name not in {*ruled, *in_key}


def _read(source: Source, table: Table, wanted: Callable[[Column], bool]) -> pa.Table:
    return read_whole(source, table.name, (c for c in table.columns if c.name in table.primary_key or wanted(c)))


def _with_most_keys_in_common(
    group: Sequence[Table], rows: dict[str, pa.Table], key: tuple[str, ...]
) -> tuple[Table, ...]:
    """The tables of which most keys are keys of the largest one."""
    keys = {t.name: rows[t.name].select(list(key)).group_by(list(key)).aggregate([]) for t in group}
    largest = max(group, key=lambda t: keys[t.name].num_rows)

    def share(table: Table) -> float:
        joined = keys[table.name].join(keys[largest.name], keys=list(key), join_type="left semi")
        return float(joined.num_rows / max(keys[table.name].num_rows, 1))

    return tuple(t for t in group if t is largest or share(t) >= MOST)


def _list(
    protection: Protection, members: Sequence[Table], rows: dict[str, pa.Table], key: tuple[str, ...]
) -> FoundList:
    first, owner = members[0], protection.owners[members[0].name]
    in_keys = {*key, *(c for t in members for c in t.primary_key)}
    common = [c for c in first.columns if _common(members)(c) and c.name not in in_keys]
    whole = pa.concat_tables([rows[t.name].select([*key, *(c.name for c in common)]) for t in members])
    kept = [c for c in common if _agrees(whole, key, c.name)]
    names = {t.name for t in protection.schema.tables}
    name = "_".join([owner.table, *(c for c in key if c not in owner.columns)])
    while name in names:
        name += "_"
    table = Table(
        name=name,
        columns=(*(first.column(c) for c in key), *kept),
        primary_key=key,
        foreign_keys=(owner,),
        list_of=tuple(t.name for t in members),
    )
    made = list_rows(table, whole.select([c.name for c in table.columns]))
    lacking = {c.name for c in kept if made.column(c.name).null_count}
    return FoundList(table=table, members=tuple(_member(t, table, rows[t.name], lacking, owner) for t in members))


def _agrees(rows: pa.Table, key: tuple[str, ...], column: str) -> bool:
    """Whether the values of a column agree, but for NULLs, in nearly all groups of rows that share a key."""
    options = pc.CountOptions(mode="only_valid")
    counts = rows.group_by(list(key)).aggregate([(column, "count_distinct", options), (column, "count", options)])
    several = counts.filter(pc.greater(counts.column(f"{column}_count"), 1)).column(f"{column}_count_distinct")
    same = pc.sum(pc.equal(several, 1)).as_py() or 0
    return len(several) > 0 and same >= AGREE * len(several)


def _member(table: Table, of: Table, rows: pa.Table, lacking: set[str], owner: ForeignKey) -> Table:
    """A member with its key into the list; its key to the unit follows from that one."""

    def column(c: Column) -> Column:
        if c.name in of.primary_key or c.name not in {k.name for k in of.columns}:
            return c
        nullable = c.nullable and (c.name in lacking or rows.column(c.name).null_count > 0)
        return replace(c, nullable=nullable, computed=Equals(owner=c.name).expression(of.name))

    keys = tuple(replace(k, inside=True) if k.columns == owner.columns else k for k in table.foreign_keys)
    into = ForeignKey(columns=of.primary_key, table=of.name, references=of.primary_key)
    return replace(table, columns=tuple(column(c) for c in table.columns), foreign_keys=(*keys, into))
