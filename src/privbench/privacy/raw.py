"""Columns whose domain is not known yet, as they were read, and exact weighted counts of their values.

Only the domain vault opens this, after a charge; nothing here is noisy and nothing here may be returned as it is.
A row weighs UNITS divided by the rows that its entity has in the table, rounded down, so that all counts below are
sums over entities of what each one's own rows add, at most UNITS together. Or each entity has one vote: the value of
one of its rows, chosen by a public hash of its place among them. Rows that are NULL count nowhere.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import Grid, one_array
from privbench.encode.magnitude import Magnitudes, coarsest_step, steps_of
from privbench.privacy.events import UNITS
from privbench.privacy.queries import keep_rows
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
    """The values of one column of a private table, the entities of its rows and what these weigh."""

    __slots__ = ("_entities", "_type", "_values", "_weights")

    def __init__(self, kind: SqlType, values: pa.Array, entities: Integers) -> None:
        there = one_array(values.is_valid())
        valid = there.to_numpy(zero_copy_only=False)
        self._type = kind
        self._values = values.filter(there)
        self._entities = entities[valid]
        self._weights = weights_of(entities)[valid]

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

    def voters(self) -> Integers:
        """The units of all entities that have a value: a single count."""
        return np.array([len(np.unique(self._entities)) * UNITS], np.int64)

    def voted_ticks(self, grid: Grid, low: int, high: int) -> tuple[Integers, Integers]:
        """The different ticks of low .. high that some entity votes for, ascending, and their votes."""
        ticks = grid.ticks(self._values)
        inside = (ticks >= low) & (ticks <= high)
        return np.unique(ticks[inside][self._chosen(inside)], return_counts=True)

    def voted_values(self, without: Sequence[str]) -> tuple[pa.Array, Integers]:
        """The different texts that some entity votes for, and their votes; nobody votes for those in `without`."""
        left = pc.invert(pc.is_in(self._values, value_set=pa.array(without, self._values.type)))
        chosen = self._chosen(left.to_numpy(zero_copy_only=False))
        votes = pc.value_counts(self._values.filter(left).filter(pa.array(chosen)))
        return votes.field("values"), votes.field("counts").to_numpy().astype(np.int64)

    def _chosen(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of these rows, one for each entity that has any."""
        return keep_rows(self._entities[rows], {}, 1)

    def _sum(self, cells: NDArray[np.intp] | Integers, size: int) -> Integers:
        """Sum the weights by cell; -1 is no cell."""
        inside = cells >= 0
        return weighted_histogram([(cells[inside], size)], self._weights[inside], UNITS)
