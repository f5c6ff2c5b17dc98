"""Which rows the reference keys of a block name, where links stand in the networks.

Targets are drawn in proportion to how often they are named. The points at which their cumulated numbers are cut come
from a golden-ratio sequence that runs on from block to block: evenly spread over all targets, whatever the number of
rows, so that neither the rows to come nor the targets before need to be in memory.
"""

import numpy as np
from numpy.typing import NDArray

from privbench.generation.carried import Carried
from privbench.generation.spools import number
from privbench.schema.unit import Link
from privbench.spn.tree_links import FLOOR

GOLDEN = (5**0.5 - 1) / 2

Rows = NDArray[np.int64]


class Points:
    """An endless sequence of points in [0, 1), any stretch of which is evenly spread."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._taken = 0

    def take(self, count: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """The next points, in random order."""
        # The product is taken modulo 1 in two steps, since a large one would lose digits.
        at = np.arange(self._taken, self._taken + count)
        self._taken += count
        points = (self._start + (at % 2**20) * GOLDEN + (at // 2**20) * (GOLDEN * 2**20 % 1)) % 1
        return rng.permutation(points)


def name_carried(carried: Carried, link: Link, points: NDArray[np.float64]) -> Rows:
    """The rows of a table made before that the points fall on."""
    summed = carried.mapped(number(link))
    order = np.argsort(points)
    places = np.minimum(np.searchsorted(summed, points[order] * summed[-1], side="right"), len(summed) - 1)
    found = np.empty(len(points), np.int64)
    found[order] = carried.row_numbers_at(places)
    return found


def name_weighted(numbers: NDArray[np.float64], points: NDArray[np.float64]) -> Rows:
    """The places that the points fall on, each place as wide as its number."""
    summed = np.cumsum(numbers + FLOOR)
    return np.asarray(np.minimum(np.searchsorted(summed, points * summed[-1], side="right"), len(summed) - 1))


def name_anywhere(targets: int, points: NDArray[np.float64]) -> Rows:
    """Rows of a table of which nothing is known but its size."""
    return np.minimum((points * targets).astype(np.int64), targets - 1)


def name_once(numbers: NDArray[np.float64], count: int, *, rng: np.random.Generator) -> Rows:
    """Different places, those with a number first; fewer than asked for where there are too few, then -1."""
    order = rng.permutation(len(numbers))
    order = order[np.argsort(numbers[order] <= 0, kind="stable")][:count]
    return np.append(rng.permutation(order), np.full(count - len(order), -1, np.int64))
