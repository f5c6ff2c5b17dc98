"""Distances over the marginals of a table: every set of 1, 2, 3, 4 columns, or a sample of them by seed.

Each is computed on value codes and on bins; NaN where a side has no row. The paper's lambda-way KLD is the mean of
the KLD on values over all sets of lambda columns. The cells of a marginal are counted once for the real table and for
all that it is compared with: in one array where all combinations fit, else by sorting the tuples that occur. Tables
come with at most some millions of rows, so that this fits in memory; marginals are counted in threads.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.metrics import DistanceMetric
from privbench.threads import cores, in_order

WIDE = 3
"""Marginals of so many columns and more have many cells: of a large table they are counted on a sample of its rows."""
_DENSE = 1 << 20  # cells that are counted in one array
_JOINT = 1 << 18  # cells that are counted for several marginals together
_ROWS_PER_CELL = 8  # as many rows at least, else adding up cells costs more than counting rows
_BLOCK = 1 << 18  # rows that are counted together: their keys stay in the cache
_LONG = 1 << 20  # rows that are sorted by one thread at a time
_EXACT = 1 << 62  # larger products of domain sizes are hashed to 62 bits
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Codes = NDArray[np.unsignedinteger]
Rows = NDArray[np.signedinteger] | slice
Counts = NDArray[np.signedinteger]
Columns = tuple[int, ...]
"""Which columns of a table a marginal has, by position."""
Figures = Mapping[str, NDArray[np.float64]]
"""By metric: the distance of each marginal on values and on codes, (marginals, 2)."""
MeanFigures = Mapping[str, tuple[float, float]]
"""By metric: the mean on values and on codes; NaN where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much is counted: all marginals of a table up to these numbers, else that many drawn by seed."""

    marginals: tuple[int, ...] = (1000, 1000, 1000, 300)
    """By number of columns; the last holds for more."""
    pairs: int = 150
    """Pairs of a parent's and a child's column, per key."""
    row_visits: int = 1_000_000_000
    """Rows times marginals of one size: a table with more rows than this allows gets fewer marginals, at least 10."""
    wide_rows: int = 500_000
    """A table with more rows is compared on that many draws of them in marginals of three columns and more."""
    wide_visits: int = 40_000_000
    """Of such a table, drawn rows times marginals of one size."""

    def limit(self, ways: int, rows: int) -> int:
        """How many marginals of that many columns to count at most, for that many rows on both sides."""
        return _within(self._most(ways), rows, self.row_visits)

    def wide_limit(self, ways: int, rows: int) -> int:
        """The same for marginals that are counted on drawn rows, of which there are so many."""
        return _within(self._most(ways), rows, self.wide_visits)

    def pair_limit(self, rows: int) -> int:
        """How many pairs of columns of two tables to count at most."""
        return _within(self.pairs, rows, self.row_visits)

    def _most(self, ways: int) -> int:
        return self.marginals[min(ways, len(self.marginals)) - 1]


def _within(limit: int, rows: int, visits: int) -> int:
    return min(limit, max(10, visits // max(rows, 1)))


def choose_marginals(columns: int, ways: int, *, limit: int, seed: int) -> list[Columns]:
    """All sets of `ways` columns in order, or `limit` distinct ones drawn by seed."""
    total = math.comb(columns, ways)
    if total <= limit:
        return list(itertools.combinations(range(columns), ways))
    rng = np.random.default_rng([seed, columns, ways])
    if total <= 4 * limit:
        every = list(itertools.combinations(range(columns), ways))
        return [every[at] for at in sorted(rng.choice(total, limit, replace=False))]
    chosen: set[Columns] = set()
    while len(chosen) < limit:
        chosen.add(tuple(sorted(rng.choice(columns, ways, replace=False).tolist())))
    return sorted(chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """One column of the real table, which comes first, and of what it is compared with, in the same codes 0..size-1."""

    sides: tuple[Codes, ...]
    size: int

    def take(self, rows: Sequence[Rows]) -> "Aligned":
        """The same column of some rows of each side."""
        sides = tuple(codes[chosen] for codes, chosen in zip(self.sides, rows, strict=True))
        return Aligned(sides=sides, size=self.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedTable:
    """The columns of a table in value codes and in bins; one whose bins are its values is the same object in both."""

    values: Sequence[Aligned]
    bins: Sequence[Aligned]

    def take(self, rows: Sequence[Rows]) -> "AlignedTable":
        """The columns of some rows of each side."""
        if all(isinstance(chosen, slice) for chosen in rows):
            return self
        values = [column.take(rows) for column in self.values]
        return AlignedTable(
            values=values,
            bins=[
                taken if binned is column else binned.take(rows)
                for column, binned, taken in zip(self.values, self.bins, values, strict=True)
            ],
        )

    def select(self, columns: Sequence[int]) -> "AlignedTable":
        """Some of the columns."""
        return AlignedTable(values=[self.values[c] for c in columns], bins=[self.bins[c] for c in columns])

    def beside(self, other: "AlignedTable") -> "AlignedTable":
        """These columns, then those of a table with the same rows."""
        return AlignedTable(values=[*self.values, *other.values], bins=[*self.bins, *other.bins])


def score(table: AlignedTable, marginals: Sequence[Columns], metrics: Sequence[DistanceMetric]) -> list[Figures]:
    """The distances of each marginal by every metric, for each of the sides that the real one is compared with."""
    binned = [m for m in marginals if any(table.values[c] is not table.bins[c] for c in m)]
    on_values = dict(zip(marginals, distances(table.values, marginals, metrics), strict=True))
    on_bins = on_values | dict(zip(binned, distances(table.bins, binned, metrics), strict=True))
    return [
        {
            metric.name: np.array(
                [[on[m][side][metric.name] for on in (on_values, on_bins)] for m in marginals]
            ).reshape(-1, 2)
            for metric in metrics
        }
        for side in range(len(table.values[0].sides) - 1)
    ]


def mean_figures(figures: Figures) -> MeanFigures:
    """The mean over marginals, leaving out NaN."""
    return {name: _mean(pairs) for name, pairs in figures.items()}


def _mean(pairs: NDArray[np.float64]) -> tuple[float, float]:
    known = pairs[~np.isnan(pairs).any(axis=1)]
    if not len(known):
        return math.nan, math.nan
    values, codes = known.mean(axis=0).tolist()
    return values, codes


def distances(
    columns: Sequence[Aligned], marginals: Sequence[Columns], metrics: Sequence[DistanceMetric]
) -> list[list[dict[str, float]]]:
    """Compare the real side's tuples of some columns with those of each other side, by each metric."""
    rows = [len(codes) for codes in columns[0].sides]
    batches = _batches(marginals, [c.size for c in columns], most=min(_JOINT, sum(rows) // _ROWS_PER_CELL))

    def compare(batch: Sequence[Columns]) -> dict[Columns, list[dict[str, float]]]:
        return {
            marginal: [
                count_distances(real, other, rows=rows[0], others=size, metrics=metrics)
                for other, size in zip(others, rows[1:], strict=True)
            ]
            for marginal, (real, *others) in _counts_of(columns, batch)
        }

    def is_long(batch: Sequence[Columns]) -> bool:
        cells = math.prod(columns[c].size for c in batch[0])
        return len(batch) == 1 and sum(rows) > _LONG and not _is_dense(cells, sum(rows))

    long = [batch for batch in batches if is_long(batch)]  # these take much memory: one at a time
    short = [batch for batch in batches if not is_long(batch)]
    compared = [*map(compare, long), *in_order(compare, short, threads=cores())]
    found = dict(itertools.chain.from_iterable(part.items() for part in compared))
    return [found[marginal] for marginal in marginals]


def _batches(marginals: Sequence[Columns], sizes: Sequence[int], *, most: int) -> list[list[Columns]]:
    """Marginals that are counted together, since all their columns have at most `most` cells.

    Neighbouring columns with few cells make groups; marginals of the same two groups are one batch.

    >>> _batches([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [2, 3, 9, 2], most=400)
    [[(0, 1)], [(0, 2), (0, 3), (1, 2), (1, 3)], [(2, 3)]]
    """
    groups: list[int] = []
    cells: float = math.inf
    for size in sizes:
        joined = cells * size <= math.sqrt(most)
        groups.append((groups[-1] if groups else 0) + (not joined))
        cells = cells * size if joined else size
    batches: dict[Columns, list[Columns]] = {}
    for marginal in marginals:
        key = tuple(sorted({groups[column] for column in marginal}))
        batches.setdefault(key, []).append(marginal)
    return [
        part
        for batch in batches.values()
        for part in ([batch] if math.prod(sizes[c] for c in set().union(*batch)) <= most else [[m] for m in batch])
    ]


def _counts_of(columns: Sequence[Aligned], batch: Sequence[Columns]) -> Iterator[tuple[Columns, list[Counts]]]:
    """How often each side has each tuple of the marginals of a batch, in the order of the tuples."""
    joint = sorted(set().union(*batch))
    counted = _counts([columns[c] for c in joint])
    if len(batch) == 1:
        yield batch[0], counted
        return
    sizes = [columns[c].size for c in joint]
    for marginal in batch:
        others = tuple(at for at, column in enumerate(joint) if column not in marginal)
        yield marginal, [counts.reshape(sizes).sum(axis=others).ravel() for counts in counted]


def count_distances(
    real: Counts, other: Counts, *, rows: int, others: int, metrics: Sequence[DistanceMetric]
) -> dict[str, float]:
    """Compare two distributions given as counts in the same cells; NaN where a side has no row."""
    if not rows or not others:
        return {metric.name: math.nan for metric in metrics}
    seen = np.flatnonzero((real > 0) | (other > 0)).astype(np.int32)
    p, q = real[seen] / rows, other[seen] / others
    del seen
    return {metric.name: metric.clipped(metric.function(p, q)) for metric in metrics}


def _counts(columns: Sequence[Aligned]) -> list[Counts]:
    """How often each side has each tuple, in the order of the tuples."""
    cells = math.prod(c.size for c in columns)
    sides = range(len(columns[0].sides))
    rows = sum(len(codes) for codes in columns[0].sides)
    if _is_dense(cells, rows):
        return [_dense(columns, side, cells) for side in sides]
    return _sparse(columns, cells)


def _is_dense(cells: int, rows: int) -> bool:
    """Whether all tuples that there can be are counted, not only those that occur."""
    return not rows or cells <= min(_DENSE, 8 * rows + 1024)


def _dense(columns: Sequence[Aligned], side: int, cells: int) -> Counts:
    """The counts of all tuples that there can be."""
    parts = (np.bincount(keys, minlength=cells) for keys in _keys(columns, side, np.min_scalar_type(cells)))
    counts = next(parts, np.zeros(cells, np.int64))
    for part in parts:
        counts += part
    return counts


def _sparse(columns: Sequence[Aligned], cells: int) -> list[Counts]:
    """The counts of the tuples that occur on some side."""
    sides = len(columns[0].sides)
    bits = (sides - 1).bit_length()
    dtype = np.dtype(np.uint32 if cells << bits <= 1 << 32 else np.uint64)
    marked = np.empty(sum(map(len, columns[0].sides)), dtype)  # tuples, with the side in the last bits
    at = 0
    for side in range(sides):
        for keys in _keys(columns, side, dtype):
            block = marked[at : at + len(keys)]
            np.left_shift(keys, dtype.type(bits), out=block)
            block |= dtype.type(side)
            at += len(keys)
    marked.sort()
    of_side = marked.astype(np.uint8) & np.uint8((1 << bits) - 1)
    marked >>= dtype.type(bits)
    ends = np.flatnonzero(np.append(marked[1:] != marked[:-1], True))
    del marked
    others = [np.diff(np.cumsum(of_side == side, dtype=np.int32)[ends], prepend=0) for side in range(1, sides)]
    return [np.diff(ends.astype(np.int32), prepend=np.int32(-1)) - sum(others), *others]


def _keys(columns: Sequence[Aligned], side: int, dtype: np.dtype[Any]) -> Iterator[Codes]:
    """One number per tuple, block by block; exact unless the product of the sizes passes 62 bits."""
    hashed = math.prod(column.size for column in columns) >= _EXACT
    for start in range(0, len(columns[0].sides[side]), _BLOCK):
        block = slice(start, start + _BLOCK)
        keys = columns[0].sides[side][block].astype(dtype)
        for column in columns[1:]:
            keys *= _MULTIPLIER if hashed else dtype.type(column.size)
            keys += column.sides[side][block]
        yield keys
