"""A bootstrap of the real database: entities drawn with replacement, each copy with all its rows.

Rows that belong to no entity are drawn among themselves. A copy's keys point at rows of the same copy where they
did so before, else at some copy of the row they named, else (it was not drawn) at any row. Keys that are only
numbers are numbered anew, so that two copies of an entity are two entities. Not private: it is a yardstick.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.evaluation.database import Database, Loaded, Side, qualified
from privbench.evaluation.owning import Owner, Owning
from privbench.io.names import quote_sql
from privbench.schema.tables import ForeignKey, Schema, Table
from privbench.schema.types import Kind

Positions = NDArray[np.signedinteger]
Links = Mapping[tuple[str, ForeignKey], Positions]
"""The parent's position for each row, by table and key; -1 where there is none."""
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resample:
    """The real row that each new row copies, by table, and the new keys."""

    rows: Mapping[str, Positions]
    links: Links


def resample(owning: Owning, sizes: Mapping[str, int], links: Links, *, seed: int) -> Resample:
    """Draw entities with replacement; `sizes` are the tables' rows, public tables stay as they are."""
    rng = np.random.default_rng(seed)
    entities, strata = _entities(owning, sizes, links)
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
    return Resample(rows=rows, links=new)


def _entities(
    owning: Owning, sizes: Mapping[str, int], links: Links
) -> tuple[dict[str, Positions], list[tuple[int, int]]]:
    """The entity of each row, and the ranges of entity numbers that are drawn among themselves."""
    found: dict[str, Positions] = {}
    strata: list[tuple[int, int]] = []
    free = 0
    for table, owner in owning.owners.items():
        if table not in sizes:
            continue
        above = _rows_above(table, owner, sizes[table], links)
        upper = found[owner.table] if owner and owner.table in found else np.zeros(0, np.int64)
        found[table], following = _belonging(above, upper, free)
        if following > free:
            strata.append((free, following))
        free = following
    return found, strata


def _rows_above(table: str, owner: Owner | None, rows: int, links: Links) -> Positions:
    """The owner's row of each row; -1 where there is none or the key could not be followed."""
    if owner is None:
        return np.full(rows, -1)
    found = links.get((owner.table if owner.lookup else table, owner.key), np.full(rows, -1))
    return _first_holders(found, rows) if owner.lookup else found


def _belonging(above: Positions, entities: Positions, free: int) -> tuple[Positions, int]:
    """The entities of rows by those of the rows above them; rows without one are entities numbered from `free`."""
    alone = np.flatnonzero(above < 0)
    found = np.append(entities, 0)[above]
    found[alone] = free + np.arange(len(alone))
    return found, free + len(alone)


def _first_holders(references: Positions, rows: int) -> Positions:
    """For each row of a lookup, the first row that references it; -1 where none does."""
    holders = np.full(rows, -1)
    linked = np.flatnonzero(references >= 0)[::-1]
    holders[references[linked]] = linked
    return holders


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
    at = np.minimum(np.searchsorted(marks[order], own * size + old), len(rows) - 1)
    same = (own >= 0) & (marks[order][at] == own * size + old)
    by_row = np.argsort(rows, kind="stable")
    how_often = np.bincount(rows, minlength=size)
    firsts = np.cumsum(how_often) - how_often
    named = np.maximum(old, 0)
    some = firsts[named] + (rng.random(len(old)) * how_often[named]).astype(np.int64)
    other = by_row[np.minimum(some, len(rows) - 1)]
    anywhere = rng.integers(0, len(rows), len(old))
    found = np.where(same, order[at], np.where(how_often[named] > 0, other, anywhere))
    return np.where(old < 0, -1, found)


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
    """Whether a column is a key by itself and its values mean nothing else: the primary key, or named by a key."""
    named = any(key.table == table.name and key.references == (column,) for _, key in schema.foreign_keys())
    return table.primary_key == (column,) or named
