"""What a foreign key links: pairs of a parent's and a child's column through it, and the children per parent.

A key is turned into the position of the parent's row, or -1 where it is NULL or names no row. Fanouts are compared
in bins that grow by the square root of two, so that a long tail counts as much as it weighs.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.coding import CodedTable, allocate, read_columns
from privbench.evaluation.database import Database, Side, qualified
from privbench.evaluation.distance import Paired, count_distance
from privbench.evaluation.distribution import Columns, Figures, score
from privbench.evaluation.result import Histogram
from privbench.evaluation.row_sample import Positions, places
from privbench.io.names import quote_sql
from privbench.schema.tables import ForeignKey

FANOUT_BINS = 40
_BLOCK = 1 << 22  # rows that are looked at together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """One key on the real side and on another: positions of parents, and the rows of either parent table."""

    real: Positions
    other: Positions
    real_parents: int
    other_parents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fanouts:
    """Parents by number of children on both sides; KLD and TVD are NaN where a side has no parent."""

    labels: tuple[str, ...]
    real: tuple[int, ...]
    other: tuple[int, ...]
    kld: float
    tvd: float

    def histogram(self) -> Histogram:
        """For a plot."""
        return Histogram(labels=self.labels, real=self.real, synthetic=self.other)


def find_parents(database: Database, side: Side, table: str, key: ForeignKey) -> Positions:
    """The position of the row that each row's key names; the first of several."""
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
) -> Figures:
    """The figures of (parent column, child column) over the child rows that have a parent."""
    rows = (_there(linked.real), _there(linked.other))
    parent_rows = (linked.real[rows[0]], linked.other[rows[1]])
    figures = np.full((len(pairs), 4), np.nan)
    for at, (parent, child) in enumerate(pairs):
        values = [_taken(parents[0][parent], *parent_rows), _taken(children[0][child], *rows)]
        same = parents[0][parent] is parents[1][parent] and children[0][child] is children[1][child]
        bins = values if same else [_taken(parents[1][parent], *parent_rows), _taken(children[1][child], *rows)]
        figures[at] = score(values, bins, [(0, 1)])[0]
    return figures


def _there(positions: Positions) -> Positions | slice:
    """The rows that have a parent."""
    linked = positions >= 0
    return slice(None) if linked.all() else np.flatnonzero(linked)


def _taken(column: Paired, real: Positions | slice, other: Positions | slice) -> Paired:
    return Paired(real=column.real[real], other=column.other[other], size=column.size)


def fanouts(linked: Linked) -> Fanouts:
    """Compare how many children parents have."""
    real_parents = _parents_by_fanout(linked.real, linked.real_parents)
    other_parents = _parents_by_fanout(linked.other, linked.other_parents)
    starts = _starts(max(len(real_parents), len(other_parents)) - 1)
    real, other = _in_bins(real_parents, starts), _in_bins(other_parents, starts)
    kld = tvd = np.nan
    if linked.real_parents and linked.other_parents:
        found = count_distance(real, other, rows=linked.real_parents, others=linked.other_parents)
        kld, tvd = found.kld, found.tvd
    ends = [*(start - 1 for start in starts[1:]), None]
    return Fanouts(
        labels=tuple(_label(start, end) for start, end in zip(starts, ends, strict=True)),
        real=tuple(real.tolist()),
        other=tuple(other.tolist()),
        kld=kld,
        tvd=tvd,
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
    found: NDArray[np.int64] = np.zeros(len(starts), np.int64)
    np.add.at(found, bins, parents)
    return found


def _starts(largest: int) -> list[int]:
    """First fanout of each bin: 0, 1, 2, 3, 4, 5, 6-7, 8-10, 11-15, 16-22, 23-31, ...

    >>> _starts(20)
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16]
    """
    starts = [0, 1, 2, 3, 4, 5]
    starts += [round(2 ** (step / 2)) for step in range(5, FANOUT_BINS - 1)]
    return [start for start in starts if start <= max(largest, 1)]


def _label(start: int, end: int | None) -> str:
    if end is None:
        return f"{start}+"
    return str(start) if start == end else f"{start}-{end}"
