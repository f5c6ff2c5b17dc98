"""What a foreign key links: pairs of a parent's and a child's column through it, and the children per parent.

A key is turned into the position of the parent's row, or -1 where it is NULL or references no row. Fanouts are
compared in bins that grow by the square root of two, so that a long tail counts as much as it weighs.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from privbench.errors import first_line
from privbench.evaluation.bins import range_bin
from privbench.evaluation.coding import CodedTable, allocate, read_columns
from privbench.evaluation.databases import Database, Positions, Side, places, qualified
from privbench.evaluation.marginals import Columns, Figures, Paired, count_distances, score
from privbench.evaluation.metrics import DistanceMetric
from privbench.evaluation.result import Histogram
from privbench.io.names import quote_sql
from privbench.schema.tables import ForeignKey, Schema

FANOUT_BINS = 40
_BLOCK = 1 << 22  # rows that are looked at together

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


def link_keys(database: Database, schema: Schema) -> dict[Key, Linked]:
    """Find the parents of all rows, for every key whose tables and columns are on both sides."""
    keys = {}
    for table, key in schema.foreign_keys():
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
    references = [quote_sql(name) for name in key.references]
    matches = " AND ".join(f"t.{quote_sql(c)} = p.{r}" for c, r in zip(key.columns, references, strict=True))
    parent = f"SELECT {', '.join(references)}, min(rowid) AS at FROM {qualified(side, key.table)} GROUP BY ALL"  # noqa: S608
    rows, parents = database.size(side, table), database.size(side, key.table)
    positions = allocate(database, rows, np.dtype(np.int32 if parents < 2**31 else np.int64))
    query = (
        f"SELECT coalesce(p.at, -1) FROM {qualified(side, table)} t LEFT JOIN ({parent}) p ON {matches} "  # noqa: S608
        "ORDER BY t.rowid"
    )
    read_columns(database, query, [positions])
    return positions


def choose_pairs(parent: CodedTable, child: CodedTable, *, limit: int, seed: int) -> list[Columns]:
    """All pairs (parent column, child column), or `limit` of them drawn by seed."""
    pairs: list[Columns] = list(itertools.product(range(len(parent.columns)), range(len(child.columns))))
    if len(pairs) <= limit:
        return pairs
    chosen = np.random.default_rng([seed, *map(len, (parent.columns, child.columns))])
    return [pairs[at] for at in sorted(chosen.choice(len(pairs), limit, replace=False))]


def among_coded(linked: Linked, parent: CodedTable, child: CodedTable) -> Linked:
    """The key among the coded rows of both tables; a row whose parent is not coded has none."""
    real, other = (
        places(positions if (rows := child.drawn[side]) is None else positions[rows], parent.drawn[side])
        for side, positions in ((Side.REAL, linked.real), (Side.SYNTHETIC, linked.other))
    )
    parents = {side: parent.rows[side] for side in (Side.REAL, Side.SYNTHETIC)}
    return Linked(real=real, other=other, real_parents=parents[Side.REAL], other_parents=parents[Side.SYNTHETIC])


def score_pairs(
    parents: tuple[list[Paired], list[Paired]],
    children: tuple[list[Paired], list[Paired]],
    linked: Linked,
    pairs: list[Columns],
    metrics: Sequence[DistanceMetric],
) -> Figures:
    """The distances of (parent column, child column) over the child rows that have a parent."""
    rows = (_there(linked.real), _there(linked.other))
    parent_rows = (linked.real[rows[0]], linked.other[rows[1]])
    figures = {metric.name: np.full((len(pairs), 2), np.nan) for metric in metrics}
    for at, (parent, child) in enumerate(pairs):
        values = [_taken(parents[0][parent], *parent_rows), _taken(children[0][child], *rows)]
        same = parents[0][parent] is parents[1][parent] and children[0][child] is children[1][child]
        bins = values if same else [_taken(parents[1][parent], *parent_rows), _taken(children[1][child], *rows)]
        for name, pair in score(values, bins, [(0, 1)], metrics).items():
            figures[name][at] = pair[0]
    return figures


def _there(positions: Positions) -> Positions | slice:
    """The rows that have a parent."""
    linked = positions >= 0
    return slice(None) if linked.all() else np.flatnonzero(linked)


def _taken(column: Paired, real: Positions | slice, other: Positions | slice) -> Paired:
    return Paired(real=column.real[real], other=column.other[other], size=column.size)


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
        distances=count_distances(
            [(real, other)], rows=linked.real_parents, others=linked.other_parents, metrics=metrics
        ),
    )


def _parents_by_fanout(positions: Positions, parents: int) -> NDArray[np.int64]:
    """How many parents have 0, 1, 2, ... children."""
    children = np.zeros(parents, np.int32)
    for start in range(0, len(positions), _BLOCK):
        block = positions[start : start + _BLOCK]
        np.add.at(children, block[block >= 0], 1)
    return np.bincount(children)


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
