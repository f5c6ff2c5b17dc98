"""What a foreign key links: pairs of a parent's and a child's column through it, and the children per parent.

A key is turned into the position of the parent's row, or -1 where it is NULL or references no row. Fanouts are
compared in bins that grow by the square root of two, so that a long tail counts as much as it weighs.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from privbench.errors import first_line
from privbench.evaluation.bins import range_bin
from privbench.evaluation.coding import CodedTable, Lookup, allocate, find_span, read_columns
from privbench.evaluation.databases import Database, Positions, Side, places, qualified
from privbench.evaluation.marginals import AlignedTable, Columns, Figures, count_distances, score
from privbench.evaluation.metrics import DistanceMetric
from privbench.evaluation.result import Histogram
from privbench.io.names import find_name, quote_sql
from privbench.schema.tables import ForeignKey, Schema
from privbench.schema.types import Kind

FANOUT_BINS = 40
_BLOCK = 1 << 22  # rows that are looked at together
_PARENT_COLUMNS = 2  # columns of parents that are held for every child row, at a time

Key = tuple[str, ForeignKey]
"""A table and one of its foreign keys."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """One key on the real side and on another: positions of parents, and the rows of either parent table."""

    real: Positions
    other: Positions
    real_parents: int
    other_parents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FanoutComparison:
    """Parents by number of children on both sides, and the distances; NaN where a side has no parent."""

    histogram: Histogram
    distances: Mapping[str, float]


def link_name(table: str, key: ForeignKey) -> str:
    """How a key is called: table.column."""
    return f"{table}.{','.join(key.columns)}"


def link_keys(database: Database, schema: Schema, *, made_up: Collection[str] = ()) -> dict[Key, Linked]:
    """Find the parents of all rows, for every key between rows of the source whose columns are on both sides."""
    keys = {}
    for table, key in schema.foreign_keys():
        if {table.name, key.table} & set(made_up):
            continue
        if missing := {table.name, key.table} - set(database.tables[Side.REAL]):
            database.skip(link_name(table.name, key), f"the real database has no table {', '.join(sorted(missing))}")
            continue
        try:
            real, other = (find_parents(database, side, table.name, key) for side in (Side.REAL, Side.SYNTHETIC))
        except duckdb.Error as error:
            database.skip(link_name(table.name, key), f"the key cannot be followed ({first_line(error)})")
            continue
        parents = {side: database.size(side, key.table) for side in Side}
        keys[table.name, key] = Linked(
            real=real, other=other, real_parents=parents[Side.REAL], other_parents=parents[Side.SYNTHETIC]
        )
    return keys


def find_parents(database: Database, side: Side, table: str, key: ForeignKey) -> Positions:
    """The position of the row that each row's key references; the first of several."""
    rows, parents = database.size(side, table), database.size(side, key.table)
    positions = allocate(database, rows, np.dtype(np.int32 if parents < 2**31 else np.int64))
    lookup = _parent_lookup(database, side, table, key, positions.dtype)
    if lookup is not None:
        query = f"SELECT {lookup.span.offset(quote_sql(key.columns[0]))} FROM {qualified(side, table)}"  # noqa: S608
        read_columns(database, query, [positions], [lookup.entries])
        return positions
    references = [quote_sql(name) for name in key.references]
    matches = " AND ".join(f"t.{quote_sql(c)} = p.{r}" for c, r in zip(key.columns, references, strict=True))
    parent = f"SELECT {', '.join(references)}, min(rowid) AS at FROM {qualified(side, key.table)} GROUP BY ALL"  # noqa: S608
    query = (
        f"SELECT coalesce(p.at, -1) FROM {qualified(side, table)} t LEFT JOIN ({parent}) p ON {matches} "  # noqa: S608
        "ORDER BY t.rowid"
    )
    read_columns(database, query, [positions])
    return positions


def _parent_lookup(database: Database, side: Side, table: str, key: ForeignKey, dtype: np.dtype[Any]) -> Lookup | None:
    """The rows of the parents by their keys; None for keys that are not single integers close together."""
    kinds = {_kind(database, side, t, c) for t, (c, *_) in ((table, key.columns), (key.table, key.references))}
    if len(key.columns) > 1 or kinds != {Kind.INTEGER}:
        return None
    column, parent = quote_sql(key.references[0]), qualified(side, key.table)
    span = find_span(database, column, parent)
    if span is None:
        return None
    places = np.empty(database.size(side, key.table), np.uint32)
    read_columns(database, f"SELECT {span.offset(column)} FROM {parent}", [places])  # noqa: S608
    entries = np.full(span.size, -1, dtype)
    entries[places[::-1]] = np.arange(len(places))[::-1]  # the first row of several is written last
    entries[0] = -1
    return Lookup(span=span, entries=entries)


def _kind(database: Database, side: Side, table: str, column: str) -> Kind | None:
    loaded = database.find(side, table)
    columns = {} if loaded is None else {c.name: c.type.kind for c in loaded.table.columns}
    spelled = find_name(column, columns)
    return None if spelled is None else columns[spelled]


def choose_pairs(parent: CodedTable, child: CodedTable, *, limit: int, seed: int) -> list[Columns]:
    """All pairs (parent column, child column), or `limit` of them drawn by seed."""
    pairs: list[Columns] = list(itertools.product(range(len(parent.columns)), range(len(child.columns))))
    if len(pairs) <= limit:
        return pairs
    chosen = np.random.default_rng([seed, *map(len, (parent.columns, child.columns))])
    return [pairs[at] for at in sorted(chosen.choice(len(pairs), limit, replace=False))]


def among_coded(linked: Linked, parent: CodedTable, child: CodedTable) -> list[Positions]:
    """The key on both sides among the coded rows of both tables; a row whose parent is not coded has none."""
    return [
        places(positions if (rows := child.drawn[side]) is None else positions[rows], parent.drawn[side])
        for side, positions in ((Side.REAL, linked.real), (Side.SYNTHETIC, linked.other))
    ]


def score_pairs(
    parent: AlignedTable,
    child: AlignedTable,
    positions: Sequence[Positions],
    pairs: Sequence[Columns],
    metrics: Sequence[DistanceMetric],
) -> list[Figures]:
    """The distances of (parent column, child column) over the child rows that have a parent; positions by side."""
    there = [_there(of_side) for of_side in positions]
    above = [of_side[rows] for of_side, rows in zip(positions, there, strict=True)]
    children = child.take(there)
    figures: list[list[Figures]] = []
    for first in range(0, len(parent.values), _PARENT_COLUMNS):
        some = range(first, min(first + _PARENT_COLUMNS, len(parent.values)))
        joined = parent.select(some).take(above).beside(children)
        chosen = [(upper - first, len(some) + lower) for upper, lower in pairs if upper in some]
        figures.append(score(joined, chosen, metrics))
    return [
        {metric.name: np.concatenate([part[side][metric.name] for part in figures]) for metric in metrics}
        for side in range(len(positions) - 1)
    ]


def _there(positions: Positions) -> Positions | slice:
    """The rows that have a parent."""
    linked = positions >= 0
    return slice(None) if linked.all() else np.flatnonzero(linked)


def fanouts(linked: Linked, metrics: Sequence[DistanceMetric]) -> FanoutComparison:
    """Compare how many children parents have."""
    real_parents = _parents_by_fanout(linked.real, linked.real_parents)
    other_parents = _parents_by_fanout(linked.other, linked.other_parents)
    starts = _starts(max(len(real_parents), len(other_parents)) - 1)
    real, other = _in_bins(real_parents, starts), _in_bins(other_parents, starts)
    ends = [*(start - 1 for start in starts[1:]), None]
    return FanoutComparison(
        histogram=Histogram(
            bins=tuple(range_bin(start, end) for start, end in zip(starts, ends, strict=True)),
            real=tuple(real.tolist()),
            synthetic=tuple(other.tolist()),
        ),
        distances=count_distances(real, other, rows=linked.real_parents, others=linked.other_parents, metrics=metrics),
    )


def _parents_by_fanout(positions: Positions, parents: int) -> NDArray[np.int64]:
    """How many parents have 0, 1, 2, ... children."""
    children = np.zeros(parents + 1, np.int64)
    for start in range(0, len(positions), _BLOCK):
        children += np.bincount(positions[start : start + _BLOCK] + 1, minlength=parents + 1)
    return np.bincount(children[1:])


def _in_bins(parents: NDArray[np.int64], starts: list[int]) -> NDArray[np.int64]:
    bins = np.searchsorted(starts, np.arange(len(parents)), side="right") - 1
    counts: NDArray[np.int64] = np.zeros(len(starts), np.int64)
    np.add.at(counts, bins, parents)
    return counts


def _starts(largest: int) -> list[int]:
    """First fanout of each bin: 0, 1, 2, 3, 4, 5, 6-7, 8-10, 11-15, 16-22, 23-31, ...

    >>> _starts(20)
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16]
    """
    starts = [0, 1, 2, 3, 4, 5]
    starts += [round(2 ** (step / 2)) for step in range(5, FANOUT_BINS - 1)]
    return [start for start in starts if start <= max(largest, 1)]
