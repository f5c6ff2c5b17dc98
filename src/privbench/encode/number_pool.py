"""The fixed pool of values that an ordered column with `distinct` draws from: salaries, prices, round times.

Every cell gets about the same number of values, as far as it has them, because cells are cut to hold about the same
number of rows. Where values repeat unevenly, a third of a cell's values, the frequent ones, are as round as the cell
allows; the others lie anywhere on the grid. Which ones is a function of the column's name and domain alone, so every
seed, batch and partition draws from the same pool.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.encode.pool import weights
from privbench.encode.spelling import mixed

_ROUND_SHARE = 3
"""One in so many values is a round one."""
_FEW = 4
"""A cell with no more than so many times the ticks it draws from is looked through tick by tick."""

_Ticks = NDArray[np.int64]
TicksAt = Callable[[int, NDArray[np.float64]], _Ticks]
"""The ticks below which these shares of a cell lie."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberPool:
    """Ticks by cell, the most frequent first."""

    ticks: _Ticks  # (pool,)
    sizes: _Ticks  # (cells,) how many of the ticks belong to each cell
    skew: float
    in_order: _Ticks  # (pool,)
    below: NDArray[np.float64]  # (pool + 1,) the probabilities of ticks in order, added up; each cell adds 1

    @property
    def starts(self) -> _Ticks:
        """Where the ticks of each cell begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def share(self, low: int, high: int) -> NDArray[np.float64]:
        """Return how much of what each cell draws lies from low to high."""
        ends = np.searchsorted(self.in_order, low, side="left"), np.searchsorted(self.in_order, high, side="right")
        first, last = (np.clip(end, self.starts, self.starts + self.sizes) for end in ends)
        return np.asarray(self.below[last] - self.below[first])

    def at(self, cell: int, share: float) -> int:
        """Return the tick below which that share of what a cell draws lies."""
        start, size = int(self.starts[cell]), int(self.sizes[cell])
        place = int(np.searchsorted(self.below, self.below[start] + share, side="right")) - 1
        return int(self.in_order[min(max(place, start), start + size - 1)])

    def holds(self, tick: int) -> bool:
        """Tell whether the tick is ever drawn."""
        place = int(np.searchsorted(self.in_order, tick))
        return place < len(self.in_order) and int(self.in_order[place]) == tick


def number_pool(
    first: _Ticks,
    counts: NDArray[np.float64],
    ticks_at: TicksAt,
    *,
    units: Sequence[int],
    distinct: int,
    skew: float,
    salt: int,
) -> NumberPool:
    """Choose about `distinct` ticks, at least one of each cell; `counts` is how many there are of each.

    `units` are numbers of ticks that make a round value, each a multiple of the one before.
    """
    sizes = shared_out(counts, distinct)
    cells = [
        _chosen(cell, int(start), float(count), int(size), ticks_at, units=units if skew else (), salt=salt)
        for cell, (start, count, size) in enumerate(zip(first, counts, sizes, strict=True))
    ]
    shares = [weights(len(ticks), skew)[np.argsort(ticks)] for ticks in cells]
    return NumberPool(
        ticks=np.concatenate(cells),
        sizes=np.array([len(ticks) for ticks in cells], dtype=np.int64),
        skew=skew,
        in_order=np.concatenate([np.sort(ticks) for ticks in cells]),
        below=np.append(0.0, np.cumsum(np.concatenate(shares))),
    )


def shared_out(counts: NDArray[np.float64], total: int) -> _Ticks:
    """Give each cell the same number, at least 1 and never more than it has, so that they add up to the total.

    >>> shared_out(np.array([1.0, 100.0, 3.0, 100.0]), 14).tolist()
    [1, 5, 3, 5]
    """
    low, high = 1, max(total, 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() <= total else (low, middle - 1)
    return np.minimum(counts, low).astype(np.int64)


def _chosen(
    cell: int, start: int, count: float, size: int, ticks_at: TicksAt, *, units: Sequence[int], salt: int
) -> _Ticks:
    """Choose the ticks of one cell, in the order of their frequency."""
    salt += cell
    if size >= count or count <= _FEW * size:
        ticks = start + np.arange(int(count), dtype=np.int64)
        return ticks[np.lexsort((mixed(ticks, salt=salt), -_roundness(ticks, units)))][:size]
    end = int(ticks_at(cell, np.array([1.0]))[0])
    rounded = _round_ticks(start, end, size // _ROUND_SHARE, units=units, salt=salt)
    spread = _spread(size - len(rounded), salt=salt + 1)
    ticks = ticks_at(cell, spread[np.argsort(mixed(np.arange(len(spread)), salt=salt))])
    both = np.concatenate([rounded, ticks])
    return both[np.sort(np.unique(both, return_index=True)[1])]


def _round_ticks(start: int, end: int, wanted: int, *, units: Sequence[int], salt: int) -> _Ticks:
    """Return so many of the roundest ticks from start to end, the roundest first."""
    enough = [unit for unit in units if end // unit + -start // unit + 1 >= wanted > 0]
    if not enough:
        return np.empty(0, dtype=np.int64)
    unit = max(enough)
    ticks = np.arange(-(-start // unit), end // unit + 1, dtype=np.int64) * unit
    return ticks[np.lexsort((mixed(ticks, salt=salt), -_roundness(ticks, units)))][:wanted]


def _spread(count: int, *, salt: int) -> NDArray[np.float64]:
    """Return shares between 0 and 1, one in each of so many equal parts."""
    within = mixed(np.arange(count), salt=salt) / 2.0**32
    return np.asarray((np.arange(count) + within) / max(count, 1))


def _roundness(ticks: _Ticks, units: Sequence[int]) -> _Ticks:
    """How many of the units each tick is a multiple of."""
    return np.asarray(sum((ticks % unit == 0 for unit in units), np.zeros(len(ticks), dtype=np.int64)))
