"""Cells of a noisy histogram: a fixed partition to look through, which cells hold more than noise, and finer ones.

Heavy cells are cut finer, light neighbours put together. Post-processing, from counts and the law of their noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.calibrate import Noise
from privbench.privacy.vault import Measured

PARTITION = 256
"""About how many cells the fixed partition has."""
MOST_PARTS = 64
"""A heavy cell is cut into no more parts than this."""
WINDOWS = (1, 2, 4, 8, 16)
"""Sums of this many neighbouring cells are looked at: light cells may show together what none shows alone."""
FALSE = 0.02
"""About how many cells without anything in them are taken for occupied, per histogram."""
NEAR = 1.5
"""Beside an occupied cell, a count of this many noise scales is enough: a mistake there costs little."""


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
    """Cut each cell with more than the target into equal parts, as many as make them hold about half of it."""
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


def cutoff(noise: Noise, terms: int, chance: float) -> float:
    """Return what the sum of `terms` draws of noise passes with at most that chance."""
    if noise.gaussian:
        return noise.scale * sqrt(2 * terms * log(1 / chance))
    if terms == 1:
        return noise.scale * log(1 / (2 * chance))
    slopes = np.linspace(0.01, 0.99, 99)  # Chernoff's bound, whose best slope need not be exact
    return noise.scale * float(np.min((log(1 / chance) - terms * np.log1p(-(slopes**2))) / slopes))


def occupied(measured: Measured, *, barrier: int | None = None) -> tuple[int, int] | None:
    """Return the first and the last cell that hold more than noise; None if none does.

    From the cell `barrier` on, to either side, nothing is taken for being near: that of zero says nothing about others.
    """
    counts, noise = measured.counts, measured.noise
    holds = np.zeros(len(counts), dtype=bool)
    windows = [width for width in WINDOWS if width <= len(counts)]
    for width in windows:
        limit = cutoff(noise, width, FALSE / (len(windows) * len(counts)))
        unseen = np.where(holds, -np.inf, counts)  # a window around a found cell would show that cell again
        sums = np.convolve(unseen, np.ones(width), mode="valid")
        for start in np.flatnonzero(sums > limit):
            holds[_trimmed(counts, int(start), int(start) + width - 1, noise)] = True
    if not holds.any():
        return None
    first, last = (int(at) for at in np.flatnonzero(holds)[[0, -1]])
    while first > 0 and first != barrier and counts[first - 1] > NEAR * noise.scale:
        first -= 1
    while last < len(counts) - 1 and last != barrier and counts[last + 1] > NEAR * noise.scale:
        last += 1
    return first, last


def _trimmed(counts: NDArray[np.float64], first: int, last: int, noise: Noise) -> slice:
    """Leave out the outer cells of a window that hold next to nothing themselves."""
    while counts[first] < noise.scale and first < last:
        first += 1
    while counts[last] < noise.scale and first < last:
        last -= 1
    return slice(first, last + 1)
