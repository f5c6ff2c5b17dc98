"""Cut a wide column into cells for a suggested domain: heavy hitters, and rounded edges between them.

Works on ticks, reads the data, and so gives a domain "from the data" that the publisher must review.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MAX_BINS = 64
MAX_SPIKES = 32
"""A heavy hitter cuts a cell in up to three, so that there are at most 64 + 2 * 32 = 128 cells."""
_SPIKE_SHARE = 1 / 64
_MIN_ROWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Ascending edges, the last one beyond the largest tick, and heavy hitters between them."""

    edges: tuple[int, ...]
    heavy_hitters: tuple[int, ...]


def cut(ticks: NDArray[np.int64], counts: NDArray[np.int64], *, units: Sequence[int]) -> Cuts:
    """Cut distinct ascending ticks with their counts; edges are rounded to the largest of the units that suits."""
    spiky = _heavy_hitters(counts)
    edges = [int(ticks[0]), *_quantiles(ticks[~spiky], counts[~spiky]), int(ticks[-1]) + 1]
    rounded = _round(sorted(set(edges)), units)
    return Cuts(edges=tuple(rounded), heavy_hitters=tuple(ticks[spiky].tolist()))


def _heavy_hitters(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the ticks that hold a large share of the rows that more frequent ticks leave over."""
    most = np.argsort(-counts, kind="stable")[:MAX_SPIKES]
    held = counts[most]
    left = counts.sum() - np.cumsum(held) + held
    large = (held >= _MIN_ROWS) & (held >= _SPIKE_SHARE * left)
    spiky = np.zeros(len(counts), dtype=bool)
    spiky[most] = np.logical_and.accumulate(large)
    return spiky


def _quantiles(ticks: NDArray[np.int64], counts: NDArray[np.int64]) -> list[int]:
    """Return inner edges that leave about the same number of rows between them."""
    total = int(counts.sum())
    bins = min(MAX_BINS, max(1, total // _MIN_ROWS))
    ranks = np.arange(1, bins) * (total / bins)
    places = np.searchsorted(np.cumsum(counts), ranks, side="right")
    return [int(t) for t in ticks[places]]


def _round(edges: list[int], units: Sequence[int]) -> list[int]:
    """Round each edge by at most a quarter of the way to its neighbours, the outer two outwards."""
    gaps = [b - a for a, b in pairwise(edges)]
    first, last = edges[0], edges[-1]
    low = first - first % _unit(gaps[0], units)
    inner = [_nearest(e, _unit(min(sides), units)) for e, sides in zip(edges[1:-1], pairwise(gaps), strict=True)]
    return [first if low <= 0 < first else low, *inner, last + -last % _unit(gaps[-1], units)]


def _nearest(edge: int, unit: int) -> int:
    return (edge + unit // 2) // unit * unit


def _unit(gap: int, units: Sequence[int]) -> int:
    return max((u for u in units if 2 * u <= gap), default=1)
