"""A resample of the real database: entities drawn with replacement, each copy with all its rows.

Whose row is whose comes from the model, from the bundle's receipt, or from the keys alone. Rows that belong to no
entity are drawn among themselves. A copy's keys point at rows of the same copy where they did so before, else at some
copy of the row they referenced, else (it was not drawn) at any row. Keys that are only numbers are numbered anew, so
that two copies of an entity are two entities. A resample is not private: it is what figures are compared with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from privbench.encode.keys import entities_by_owner, owners_of_lookup
from privbench.errors import PrivBenchError
from privbench.evaluation.databases import Database, Loaded, Positions, Side, qualified
from privbench.io.names import quote_sql
from privbench.model.model import Model
from privbench.schema.lists import lists_of
from privbench.schema.tables import ForeignKey, Schema, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection, Role, protect

Links = Mapping[tuple[str, ForeignKey], Positions]
"""The parent's position for each row, by table and key; -1 where there is none."""
_BLOCK = 1 << 18  # rows that are looked at together
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A table's rows belong to rows of `table`: through a key of theirs or, for a lookup, of that table's."""

    table: str
    key: ForeignKey
    lookup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The schema whose keys count, and the owner of each table: None for a table whose rows stand for themselves."""

    schema: Schema
    owners: Mapping[str, Owner | None]
    """Owners before what they own. Public tables are not here: they are never resampled."""
    made_up: frozenset[str] = frozenset()
    """Tables of which no row was read: they are not compared, nor are the keys into them."""

    def private(self, table: str) -> bool:
        """Whether a table is protected; all are where it is not known which are public."""
        return table in self.owners


def find_ownership(real: Schema, synthetic: Schema, location: str | None, model: Model | None) -> Ownership:
    """Take ownership from the model, else from the receipt beside the synthetic data, else follow the first keys."""
    protection = None if model is None else model.protection
    if protection is None and location is not None:
        protection = _of_receipt(Path(location) / "receipt.json", synthetic)
    return _by_keys(real) if protection is None else _by_protection(protection)


def _of_receipt(path: Path, schema: Schema) -> Protection | None:
    """Read who is protected from a bundle; None where there is no receipt or it does not fit the schema."""
    try:
        receipt = json.loads(path.read_text(encoding="utf-8"))
        return _protection(receipt["unit"], dict(receipt.get("public", {}).get("made_up", {})), schema)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PrivBenchError):
        return None


def _protection(unit: dict[str, Any], made_up: dict[str, int], schema: Schema) -> Protection:
    tables = unit["tables"]
    public = [t.name for t in schema.tables if t.name not in tables or tables[t.name]["role"] == Role.PUBLIC.value]
    return protect(
        schema,
        entity=unit["entity"],
        owners={
            t: tuple(e["key"])
            for t, e in tables.items()
            if e["role"] == Role.OWNED.value and e["key"] and not {t, e["owner"]} & set(unit.get("lists", ()))
        },
        public=[name for name in public if name not in made_up],
        made_up=made_up,
        lookups={t: e["owner"] for t, e in tables.items() if e["role"] == Role.LOOKUP.value},
    )


def _by_protection(protection: Protection) -> Ownership:
    """Who owns what by the keys that are published: rows of members of a hidden list are the unit's."""
    owners: dict[str, Owner | None] = {}
    hidden = {table.name for table in lists_of(protection)}
    for table in (name for name in protection.order if name not in hidden):
        if table in protection.lookups:
            owner, key = protection.lookups[table]
            owners[table] = Owner(table=owner, key=key, lookup=True)
        elif table in protection.owners:
            key = protection.owners[table]
            key = protection.owner_keys(table)[0] if key.table in hidden else key
            owners[table] = Owner(table=key.table, key=key)
        else:
            owners[table] = None
    return Ownership(schema=protection.schema.published(), owners=owners, made_up=frozenset(protection.made_up))


def _by_keys(schema: Schema) -> Ownership:
    """A table belongs to the table of its first key that closes no circle; the others are roots."""
    above: dict[str, Owner] = {}
    for table in schema.tables:
        for key in table.foreign_keys:
            if table.name not in _ancestors(key.table, above):
                above[table.name] = Owner(table=key.table, key=key)
                break
    order = [t.name for t in schema.tables if t.name not in above]
    for name in order:
        order += [t.name for t in schema.tables if t.name in above and above[t.name].table == name]
    return Ownership(schema=schema, owners={name: above.get(name) for name in order})


def _ancestors(table: str, above: Mapping[str, Owner]) -> set[str]:
    """A table and everything it belongs to."""
    ancestors = {table}
    while table in above:
        table = above[table].table
        ancestors.add(table)
    return ancestors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resample:
    """The real row that each new row copies, by table, and the new keys."""

    rows: Mapping[str, Positions]
    links: Links


def resample(ownership: Ownership, sizes: Mapping[str, int], links: Links, *, seed: int) -> Resample:
    """Draw entities with replacement; `sizes` are the tables' rows, public tables stay as they are."""
    rng = np.random.default_rng(seed)
    entities, strata = _entities(ownership, sizes, links)
    count = strata[-1][1] if strata else 0
    drawn = np.concatenate([rng.integers(a, b, b - a) for a, b in strata] or [np.zeros(0, np.int64)])
    rows = {table: np.arange(size) for table, size in sizes.items()}
    copies: dict[str, Positions] = {}
    for table, numbers in entities.items():
        rows[table], copies[table] = _rows_of(numbers, drawn, count)
    new = {}
    for (table, key), old in links.items():
        moved = old[rows[table]]
        if key.table in copies:
            own = copies.get(table, np.full(len(moved), -1))
            moved = _moved(moved, own, rows[key.table], copies[key.table], sizes[key.table], rng)
        new[table, key] = moved
    return Resample(
        rows={table: _small(numbers) for table, numbers in rows.items()},
        links={key: _small(numbers) for key, numbers in new.items()},
    )


def _small(positions: Positions) -> Positions:
    """Half the memory, where that holds them."""
    return positions.astype(np.int32) if positions.max(initial=0) < 2**31 else positions


def _entities(
    ownership: Ownership, sizes: Mapping[str, int], links: Links
) -> tuple[dict[str, Positions], list[tuple[int, int]]]:
    """The entity of each row, and the ranges of entity numbers that are drawn among themselves."""
    entities: dict[str, Positions] = {}
    strata: list[tuple[int, int]] = []
    free = 0
    for table, owner in ownership.owners.items():
        if table not in sizes:
            continue
        above = _rows_above(table, owner, sizes[table], links)
        upper = entities[owner.table] if owner and owner.table in entities else np.zeros(0, np.int64)
        entities[table], following = entities_by_owner(above, upper, next_entity=free)
        if following > free:
            strata.append((free, following))
        free = following
    return entities, strata


def _rows_above(table: str, owner: Owner | None, rows: int, links: Links) -> Positions:
    """The owner's row of each row; -1 where there is none or the key could not be followed."""
    if owner is None:
        return np.full(rows, -1)
    linked = links.get((owner.table if owner.lookup else table, owner.key), np.full(rows, -1))
    return owners_of_lookup(linked, rows) if owner.lookup else linked


def _rows_of(entities: Positions, drawn: Positions, count: int) -> tuple[Positions, Positions]:
    """The rows of the drawn entities one after another, and which draw each belongs to."""
    order = np.argsort(entities, kind="stable")
    sizes = np.bincount(entities, minlength=count)
    firsts = np.cumsum(sizes) - sizes
    taken = sizes[drawn]
    copies = np.repeat(np.arange(len(drawn)), taken)
    within = np.arange(len(copies)) - np.repeat(np.cumsum(taken) - taken, taken)
    return order[firsts[drawn][copies] + within], copies


def _moved(
    old: Positions, own: Positions, rows: Positions, copies: Positions, size: int, rng: np.random.Generator
) -> Positions:
    """New positions of parents: in the same copy, else in any, else a random row."""
    if not len(rows):
        return np.full(len(old), -1)
    marks = copies * size + rows
    order = np.argsort(marks)
    marks = marks[order]
    by_row = np.argsort(rows, kind="stable")
    how_often = np.bincount(rows, minlength=size)
    firsts = np.cumsum(how_often) - how_often
    chances, anywhere = rng.random(len(old)), rng.integers(0, len(rows), len(old))
    new = np.empty(len(old), np.int64)
    for start in range(0, len(old), _BLOCK):
        block = slice(start, start + _BLOCK)
        mark = own[block] * size + old[block]
        at = np.minimum(np.searchsorted(marks, mark), len(rows) - 1)
        same = (own[block] >= 0) & (marks[at] == mark)
        parents = np.maximum(old[block], 0)
        some = firsts[parents] + (chances[block] * how_often[parents]).astype(np.int64)
        other = by_row[np.minimum(some, len(rows) - 1)]
        new[block] = np.where(same, order[at], np.where(how_often[parents] > 0, other, anywhere[block]))
    return np.where(old < 0, -1, new)


def write_resample(database: Database, schema: Schema, sample: Resample) -> None:
    """Make the tables of the resample, for queries."""
    for name, loaded in database.tables[Side.REAL].items():
        if name not in sample.rows:
            continue
        columns: dict[str, pa.Array] = {
            "place": pa.array(np.arange(len(sample.rows[name]))),
            "source": pa.array(sample.rows[name]),
        }
        chosen = []
        for column in loaded.table.columns:
            quoted = quote_sql(column.name)
            numbers = _key_numbers(schema, sample, name, column.name, frozenset())
            if numbers is None or column.type.kind not in (*_NUMBERS, Kind.TEXT):
                chosen.append(f"t.{quoted}")
                continue
            new = f"k{len(columns)}"
            columns[new] = pa.array(numbers, mask=numbers < 0)
            chosen.append(
                f"CAST(picked.{new} AS {'VARCHAR' if column.type.kind is Kind.TEXT else 'BIGINT'}) AS {quoted}"
            )
        database.connection.register("picked", pa.table(columns))
        database.connection.execute(
            f"CREATE OR REPLACE TABLE {qualified(Side.FLOOR, name)} AS SELECT {', '.join(chosen)} "  # noqa: S608
            f"FROM picked JOIN {qualified(Side.REAL, name)} t ON picked.source = t.rowid ORDER BY picked.place"
        )
        database.connection.unregister("picked")
        database.tables[Side.FLOOR][name] = Loaded(table=loaded.table, rows=len(sample.rows[name]))


def _key_numbers(
    schema: Schema, sample: Resample, name: str, column: str, seen: frozenset[tuple[str, str]]
) -> Positions | None:
    """The new numbers of a key column (-1 for NULL); None for a column that keeps its values."""
    if (name, column) in seen or name not in {t.name for t in schema.tables}:
        return None
    table = schema.table(name)
    for key in table.foreign_keys:
        if column in key.columns and (name, key) in sample.links:
            referenced = key.references[key.columns.index(column)]
            above = _key_numbers(schema, sample, key.table, referenced, seen | {(name, column)})
            positions = sample.links[name, key]
            return None if above is None else np.append(above, -1)[positions]
    return np.arange(len(sample.rows[name])) if _numbered(schema, table, column) else None


def _numbered(schema: Schema, table: Table, column: str) -> bool:
    """Whether a column is a key by itself and its values mean nothing else: the primary key, or referenced by a key."""
    referenced = any(key.table == table.name and key.references == (column,) for _, key in schema.foreign_keys())
    return table.primary_key == (column,) or referenced
