"""Distances over the marginals of a table: every set of 1, 2, 3, 4 columns, or a sample of them by seed.

Each is computed on value codes and on bins; NaN where a side has no row. The paper's lambda-way KLD is the mean of
the KLD on values over all sets of lambda columns. Distances are sums over cells, so cells can be counted in parts:
densely where all combinations fit in memory, else by sorting the tuples that occur, one slice of the key space at a
time. Memory is bounded whatever the rows.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.metrics import DistanceMetric, Shares

_DENSE = 1 << 20  # cells that are counted in one array
_BLOCK = 1 << 22  # rows that are looked at together
_EXACT = 1 << 62  # larger products of domain sizes are hashed to 63 bits
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Codes = NDArray[np.unsignedinteger]
Counts = NDArray[np.int64]
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

    def limit(self, ways: int, rows: int) -> int:
        """How many marginals of that many columns to count at most, for that many rows on both sides."""
        return self._within(self.marginals[min(ways, len(self.marginals)) - 1], rows)

    def pair_limit(self, rows: int) -> int:
        """How many pairs of columns of two tables to count at most."""
        return self._within(self.pairs, rows)

    def _within(self, limit: int, rows: int) -> int:
        return min(limit, max(10, self.row_visits // max(rows, 1)))


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
class Paired:
    """One column of both tables in the same codes 0..size-1."""

    real: Codes
    other: Codes
    size: int


def score(
    values: Sequence[Paired],
    bins: Sequence[Paired],
    marginals: Sequence[Columns],
    metrics: Sequence[DistanceMetric],
) -> Figures:
    """The distances of each marginal by every metric."""
    figures = {metric.name: np.full((len(marginals), 2), np.nan) for metric in metrics}
    for at, columns in enumerate(marginals):
        raw, coded = _both([values[c] for c in columns], [bins[c] for c in columns], metrics)
        for name, pairs in figures.items():
            pairs[at] = raw[name], coded[name]
    return figures


def _both(
    values: Sequence[Paired], bins: Sequence[Paired], metrics: Sequence[DistanceMetric]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Distances on values and on bins; where all bins are values they are the same."""
    raw = distances(values, metrics)
    same = all(v is b for v, b in zip(values, bins, strict=True))
    return raw, raw if same else distances(bins, metrics)


def mean_figures(figures: Figures) -> MeanFigures:
    """The mean over marginals, leaving out NaN."""
    return {name: _mean(pairs) for name, pairs in figures.items()}


def _mean(pairs: NDArray[np.float64]) -> tuple[float, float]:
    known = pairs[~np.isnan(pairs).any(axis=1)]
    if not len(known):
        return math.nan, math.nan
    values, codes = known.mean(axis=0).tolist()
    return values, codes


def distances(columns: Sequence[Paired], metrics: Sequence[DistanceMetric]) -> dict[str, float]:
    """Compare the distributions of the columns' tuples by each metric."""
    rows, others = len(columns[0].real), len(columns[0].other)
    return count_distances(_counts(columns), rows=rows, others=others, metrics=metrics)


def count_distances(
    counts: Iterable[tuple[Counts, Counts]], *, rows: int, others: int, metrics: Sequence[DistanceMetric]
) -> dict[str, float]:
    """Compare two distributions given as counts in the same cells, part by part; NaN where a side has no row."""
    if not rows or not others:
        return {metric.name: math.nan for metric in metrics}
    totals = dict.fromkeys((metric.name for metric in metrics), 0.0)
    for real, other in counts:
        p, q = _shares(real, other, rows=rows, others=others)
        for metric in metrics:
            totals[metric.name] += metric.function(p, q)
    return {metric.name: metric.clipped(totals[metric.name]) for metric in metrics}


def _shares(real: Counts, other: Counts, *, rows: int, others: int) -> tuple[Shares, Shares]:
    """The shares of the cells that either side has."""
    seen = (real > 0) | (other > 0)
    return real[seen] / rows, other[seen] / others


def _counts(columns: Sequence[Paired]) -> Iterator[tuple[Counts, Counts]]:
    cells = math.prod(c.size for c in columns)
    rows, others = len(columns[0].real), len(columns[0].other)
    if cells <= min(_DENSE, 8 * (rows + others) + 1024):
        yield _dense([c.real for c in columns], columns, cells), _dense([c.other for c in columns], columns, cells)
        return
    parts = 1 + (rows + others) // (2 * _BLOCK)
    for part in range(parts):
        yield _sparse(columns, cells, part, parts)


def _dense(codes: Sequence[Codes], columns: Sequence[Paired], cells: int) -> Counts:
    counts = np.zeros(cells, np.int64)
    for keys in _keys(codes, columns, cells):
        counts += np.bincount(keys.view(np.int64), minlength=cells)
    return counts


def _sparse(columns: Sequence[Paired], cells: int, part: int, parts: int) -> tuple[Counts, Counts]:
    """Counts of the tuples that occur, in one slice of the key space."""
    tagged = []
    for side, codes in enumerate(([c.real for c in columns], [c.other for c in columns])):
        for keys in _keys(codes, columns, cells):
            kept = keys[keys % np.uint64(parts) == part] if parts > 1 else keys
            tagged.append((kept << np.uint64(1)) | np.uint64(side))
    marked = np.sort(np.concatenate(tagged))
    if not len(marked):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys = marked >> np.uint64(1)
    ends = np.flatnonzero(np.append(keys[1:] != keys[:-1], True))
    total = np.diff(ends, prepend=-1)
    other = np.diff(np.cumsum(marked & np.uint64(1), dtype=np.int64)[ends], prepend=0)
    return total - other, other


def _keys(codes: Sequence[Codes], columns: Sequence[Paired], cells: int) -> Iterator[NDArray[np.uint64]]:
    """One number per tuple, block by block; exact unless the product of the sizes passes 63 bits."""
    for start in range(0, len(codes[0]), _BLOCK):
        keys = codes[0][start : start + _BLOCK].astype(np.uint64)
        for column, more in zip(columns[1:], codes[1:], strict=True):
            keys *= np.uint64(column.size) if cells < _EXACT else _MULTIPLIER
            keys += more[start : start + _BLOCK]
        yield keys
