"""Fanouts that add up to a total: drawn numbers of child rows, scaled to the rows that their table is to have.

All numbers are multiplied by one ratio, up to the most that an owner may have: owners without rows stay without, and
large owners stay large. Only where all others have the most already do owners without rows get some.

What is no whole row goes on to other owners of the block, in random order, and what is left then to the next block. How
many rows a block has follows from the numbers before and in it alone, whatever the order: sums of earlier blocks are
enough to make a later one. All sums are those of integers, so that the total is met exactly.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

ROW_BITS = 40
ROW = 2**ROW_BITS
"""Parts that a row has. Fewer owners than that have their number rounded down, and together lack less than a row."""

LOOKED_UP = 2**14
"""Numbers up to this one are looked up in a table that is made for each block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaling:
    """What each drawn number becomes."""

    drawn: Numbers  # (different numbers,), ascending
    whole: Numbers  # (different numbers,)
    parts: Numbers  # (different numbers,): of one more row
    start: int
    """Parts of a row that the first block begins with."""
    rows: int
    """The total over all owners."""

    def sums(self, numbers: Numbers, left: int) -> Numbers:
        """About how many rows there are up to each owner of a block; `left` are parts of a row from blocks before."""
        at = self._places(numbers)
        parts = np.cumsum(self.parts[at])
        parts += left
        parts >>= ROW_BITS
        parts += np.cumsum(self.whole[at])
        return parts

    def scaled(self, numbers: Numbers, left: int, *, rng: np.random.Generator) -> tuple[Numbers, int]:
        """The numbers of a block's owners that add up, and the parts of a row that are left for the next block."""
        at = self._places(numbers)
        order = rng.permutation(len(numbers))
        summed = left + np.cumsum(self.parts[at[order]])
        scaled = self.whole[at]
        scaled[order] += np.diff(summed >> ROW_BITS, prepend=0)
        return scaled, int(summed[-1]) % ROW if len(summed) else left

    def _places(self, numbers: Numbers) -> Numbers:
        """Where numbers stand among those drawn; looked up, if they are not too large for that."""
        if not len(self.drawn) or self.drawn[-1] > LOOKED_UP:
            return np.searchsorted(self.drawn, numbers)
        places = np.zeros(self.drawn[-1] + 1, np.int64)
        places[self.drawn] = np.arange(len(self.drawn))
        return places[numbers]


def tally(numbers: Numbers) -> Counter[int]:
    """How often each number occurs.

    >>> sorted(tally(np.array([3, 0, 3])).items())
    [(0, 1), (3, 2)]
    """
    different, counts = np.unique(numbers, return_counts=True)
    return Counter(dict(zip(different.tolist(), counts.tolist(), strict=True)))


def scaling(drawn: Counter[int], *, wanted: int, most: int) -> Scaling:
    """Scale drawn numbers to `wanted` rows, or as many as there can be if each owner has at most `most`.

    >>> scaling(Counter({0: 5, 1: 2, 4: 1}), wanted=9, most=5).whole.tolist()
    [0, 2, 5]
    """
    numbers = sorted(drawn)
    wanted = min(wanted, most * drawn.total())
    rows, sum_drawn, free = wanted, sum(n * drawn[n] for n in numbers), len(numbers)
    while free and numbers[free - 1] * rows > most * sum_drawn:  # the largest would have more than the most
        free -= 1
        rows -= most * drawn[numbers[free]]
        sum_drawn -= numbers[free] * drawn[numbers[free]]
    weights = numbers[:free] if sum_drawn else [1] * free  # only owners without rows are left, and get some
    shared = sum(w * drawn[n] for w, n in zip(weights, numbers, strict=False))
    parts = [w * rows * ROW // shared for w in weights] + [most * ROW] * (len(numbers) - free)
    return Scaling(
        drawn=np.array(numbers, np.int64),
        whole=np.array([p // ROW for p in parts], np.int64),
        parts=np.array([p % ROW for p in parts], np.int64),
        start=wanted * ROW - sum(p * drawn[n] for p, n in zip(parts, numbers, strict=True)),
        rows=wanted,
    )
