"""Kullback-Leibler divergence and total variation distance of two tables, on the tuples of some coded columns.

Both are sums over cells, so cells can be counted in parts: densely where all combinations fit in memory, else by
sorting the tuples that occur, one slice of the key space at a time. Memory is bounded whatever the rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ADDED = 1e-10
"""Added to each probability, as the paper does, so that an unmatched cell costs much but not infinitely."""
_DENSE = 1 << 20  # cells that are counted in one array
_BLOCK = 1 << 22  # rows that are looked at together
_EXACT = 1 << 62  # larger products of domain sizes are hashed to 63 bits
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Codes = NDArray[np.unsignedinteger]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired:
    """One column of both tables in the same codes 0..size-1."""

    real: Codes
    other: Codes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """KLD in nats and TVD in 0..1."""

    kld: float
    tvd: float


def distance(columns: Sequence[Paired]) -> Distance:
    """Compare the distributions of the columns' tuples; both tables need at least one row."""
    rows, others = len(columns[0].real), len(columns[0].other)
    kld = tvd = 0.0
    for real, other in _counts(columns):
        part = count_distance(real, other, rows=rows, others=others)
        kld, tvd = kld + part.kld, tvd + part.tvd
    return Distance(kld=max(kld, 0.0), tvd=min(tvd, 1.0))


def count_distance(real: Counts, other: Counts, *, rows: int, others: int) -> Distance:
    """The share of both sums that some cells contribute: sum of p log(p/q), half the sum of |p - q|."""
    seen = (real > 0) | (other > 0)
    p, q = real[seen] / rows, other[seen] / others
    tvd = 0.5 * float(np.abs(p - q).sum())
    p, q = p + ADDED, q + ADDED
    return Distance(kld=float((p * np.log(p / q)).sum()), tvd=tvd)


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
    found = []
    for side, codes in enumerate(([c.real for c in columns], [c.other for c in columns])):
        for keys in _keys(codes, columns, cells):
            kept = keys[keys % np.uint64(parts) == part] if parts > 1 else keys
            found.append((kept << np.uint64(1)) | np.uint64(side))
    marked = np.sort(np.concatenate(found))
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
