"""Columns whose domain is not known yet, as they were read, and exact weighted counts of their values.

Only the domain vault opens this, after a charge; nothing here is noisy and nothing here may be returned as it is.
A row weighs UNITS divided by the rows that its entity has in the table, rounded down, so that all counts below are
sums over entities of what each one's own rows add, at most UNITS together. Rows that are NULL count nowhere.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.layout import one_array
from privbench.encode.magnitude import Magnitudes
from privbench.encode.steps import coarsest_step, steps_of
from privbench.privacy.events import UNITS
from privbench.privacy.weighted_counts import row_weights, weighted_histogram
from privbench.schema.types import SqlType

Integers = NDArray[np.int64]


def weights_of(entities: Integers) -> Integers:
    """What each row weighs, given its entity (numbers from 0).

    >>> weights_of(np.array([0, 1, 1, 1])).tolist()
    [1048576, 349525, 349525, 349525]
    """
    weights = row_weights(entities, UNITS)
    return np.full(len(entities), UNITS, np.int64) if weights is None else weights


class RawColumn:
    """The values of one column of a private table, and what its rows weigh."""

    __slots__ = ("_type", "_values", "_weights")

    def __init__(self, kind: SqlType, values: pa.Array, weights: Integers) -> None:
        valid = one_array(values.is_valid())
        self._type = kind
        self._values = values.filter(valid)
        self._weights = weights[valid.to_numpy(zero_copy_only=False)]

    def __repr__(self) -> str:
        return "<private column>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def magnitudes(self) -> Integers:
        """Weights by order of magnitude."""
        buckets = Magnitudes(type=self._type)
        return self._sum(buckets.of(self._values), buckets.size)

    def steps(self) -> Integers:
        """Weights by the coarsest step that a value lies on, the last for none."""
        return self._sum(coarsest_step(self._type, self._values), len(steps_of(self._type)) + 1)

    def cells(self, grid: Grid, starts: Sequence[int], last: int, without: Sequence[int]) -> Integers:
        """Weights by cells of ticks, from each start to the next; the last cell ends at `last`.

        Ticks outside and those in `without` count nowhere.
        """
        ticks = grid.ticks(self._values)
        cells = np.searchsorted(np.array(starts, np.int64), ticks, side="right") - 1
        cells[(ticks > last) | np.isin(ticks, np.array(without, np.int64))] = -1
        return self._sum(cells, len(starts))

    def ticks(self, grid: Grid, low: int, high: int) -> tuple[Integers, Integers]:
        """The different ticks of low .. high that weigh something, ascending, and what they weigh."""
        ticks = grid.ticks(self._values)
        inside = (ticks >= low) & (ticks <= high)
        places, at = np.unique(ticks[inside], return_inverse=True)
        sums = weighted_histogram([(at, len(places))], self._weights[inside], UNITS)
        return places[sums > 0], sums[sums > 0]

    def _sum(self, cells: NDArray[np.intp] | Integers, size: int) -> Integers:
        """Sum the weights by cell; -1 is no cell."""
        inside = cells >= 0
        return weighted_histogram([(cells[inside], size)], self._weights[inside], UNITS)
