"""Tables whose rows are born with their owners: which owner rows a block has, and how many rows each of them gets.

A block is a range of owner rows with about as many rows as any block, cut only between entities, so that everything
about an entity's rows in the table is known inside its block.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privbench.generation import spans
from privbench.generation.carried import Carried
from privbench.generation.child_rows import Brood
from privbench.generation.spools import ENTITY, number
from privbench.schema.unit import Link

MOST_OWNERS = 4
"""Owner rows of a block, in multiples of the rows that a block should have: few owners may have rows."""


class Fitting(NamedTuple):
    """How drawn fanouts are made to add up to a number that was promised: drawn in all, and wanted."""

    drawn: int
    wanted: int


class Broods:
    """The owners of one table, block by block."""

    def __init__(self, owners: Carried, link: Link, *, most: int, wanted: int | None = None) -> None:
        self._owners = owners
        self._column = number(link)
        self._most = most
        drawn = sum(int(self._fanouts(first, last).sum()) for first, last in self._ranges())
        self._fitting = None if wanted is None else Fitting(drawn, min(wanted, owners.rows * most))
        self.rows = drawn if self._fitting is None else self._fitting.wanted

    def __iter__(self) -> Iterator[Brood]:
        first, drawn = 0, 0
        while first < self._owners.rows:
            last = self._cut(first)
            fanouts = self._fanouts(first, last)
            entities = self._owners.read(ENTITY, first, last)
            fitted = self._fitted(fanouts, first=first, before=drawn)
            yield Brood(first=first, last=last, fanouts=fitted, entities=entities)
            drawn += int(fanouts.sum())
            first = last

    def _ranges(self) -> Iterator[tuple[int, int]]:
        step = MOST_OWNERS * spans.BLOCK_ROWS
        for first in range(0, self._owners.rows, step):
            yield first, min(first + step, self._owners.rows)

    def _fanouts(self, first: int, last: int) -> NDArray[np.int64]:
        return np.asarray(np.minimum(self._owners.read(self._column, first, last), self._most))

    def _cut(self, first: int) -> int:
        """Where the block that begins there ends: enough rows or owners, and the next owner is of another entity."""
        all_rows, window = self._owners.rows, MOST_OWNERS * spans.BLOCK_ROWS
        while True:
            last = min(first + window, all_rows)
            full = np.cumsum(self._fanouts(first, last)) >= spans.BLOCK_ROWS
            full[MOST_OWNERS * spans.BLOCK_ROWS // 2 :] = True
            ends = np.append(np.diff(self._owners.read(ENTITY, first, last)) != 0, last == all_rows)
            found = np.flatnonzero(full & ends)
            if len(found):
                return first + int(found[0]) + 1
            if last == all_rows:
                return last
            window *= 2

    def _fitted(self, fanouts: NDArray[np.int64], *, first: int, before: int) -> NDArray[np.int64]:
        """Fanouts that add up to what is wanted over all owners, spread evenly over rows or over room for rows."""
        if self._fitting is None or self._fitting.drawn == self._fitting.wanted:
            return fanouts
        drawn, wanted = self._fitting
        if drawn > wanted:
            return _steps(before, fanouts, wanted / drawn, drawn, wanted)
        most = min(self._most, wanted)
        room, room_before = most - fanouts, first * most - before
        all_room = self._owners.rows * most - drawn
        return fanouts + _steps(room_before, room, (wanted - drawn) / all_room, all_room, wanted - drawn)


def _steps(before: int, numbers: NDArray[np.int64], share: float, total: int, wanted: int) -> NDArray[np.int64]:
    """That share of each number, rounded so that the sums up to each are; the last sum is what is wanted."""
    sums = np.append(before, before + np.cumsum(numbers))
    scaled = np.where(sums >= total, wanted, np.floor(sums * share)).astype(np.int64)
    return np.diff(np.minimum(scaled, wanted))
