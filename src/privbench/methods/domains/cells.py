"""Cells of ticks: a fixed partition to look through, heavy cells cut finer, light neighbours put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

PARTITION = 256
"""About how many cells the fixed partition has."""
MOST_PARTS = 64
"""A heavy cell is cut into no more parts than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Neighbouring cells: from each start to the next, the last one to `last`."""

    starts: tuple[int, ...]
    last: int

    @property
    def ends(self) -> tuple[int, ...]:
        """The last tick of each cell."""
        return (*(start - 1 for start in self.starts[1:]), self.last)


def equal_cells(low: int, high: int) -> Cells:
    """Cut low .. high into equal cells."""
    return Cells(starts=tuple(cut(low, high, PARTITION)), last=high)


def doubling_cells(low: int, high: int, doublings: Sequence[int]) -> Cells:
    """Cut low .. high at the ticks where numbers double, and what is between these into equal parts.

    So cells are narrow near zero, and of the same relative width far from it.
    """
    edges = sorted({low, *(d for d in doublings if low < d <= high)})
    parts = 2 ** max(0, int(log2(PARTITION / len(edges))))
    ends = [edge - 1 for edge in edges[1:]] + [high]
    return Cells(starts=tuple(s for a, b in zip(edges, ends, strict=True) for s in cut(a, b, parts)), last=high)


def cut_heavy(cells: Cells, counts: NDArray[np.float64], *, target: float) -> Cells:
    """Cut each cell with more than the target into so many equal parts that they hold about half of it."""
    starts: list[int] = []
    for start, end, count in zip(cells.starts, cells.ends, counts.tolist(), strict=True):
        parts = 1 if count <= target else min(2 ** ceil(log2(2 * count / target)), MOST_PARTS)
        starts += cut(start, end, parts)
    return Cells(starts=tuple(starts), last=cells.last)


def merge_light(cells: Cells, counts: NDArray[np.float64], *, target: float) -> Cells:
    """Put light neighbours together until they hold the target; a cell that holds it alone stays alone."""
    starts: list[int] = []
    held = target  # so that the first cell begins a new group
    for start, count in zip(cells.starts, counts.tolist(), strict=True):
        if held >= target or count >= target:
            starts.append(start)
            held = 0.0
        held += count
    return Cells(starts=tuple(starts), last=cells.last)


def cut(first: int, last: int, parts: int) -> list[int]:
    """The starts of about equal parts of first .. last, none of them empty.

    >>> cut(0, 9, 4)
    [0, 2, 5, 7]
    """
    width = last - first + 1
    parts = min(parts, width)
    return [first + width * part // parts for part in range(parts)]
