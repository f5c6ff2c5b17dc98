"""Row splits by released centres: a public function of a row's own codes, so that the parts are disjoint.

The distance of a row to a centre is the sum over columns of |x - c| for ordered columns and of 1 - c[x] for
unordered ones, where c[x] is the share of code x in the cluster; all in integers, so that every machine
splits alike. Ties go left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.blocks import Centres
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.ledger import Scope
from privbench.privacy.queries import COORDINATE, coordinates

Coordinates = NDArray[np.int64]
ColumnSplit = tuple[tuple[str, ...], tuple[str, ...]]
"""The columns of a block in two halves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A set of rows of one table, known by how it came about; its queries are charged to `scope`."""

    table: str
    number: int
    scope: Scope
    trail: tuple[tuple[int, int], ...] = ()
    """The splits it comes from, and which side of each it is."""


def disjoint(blocks: Sequence[Block]) -> bool:
    """Whether no row can be in two of the blocks, going by how they came about.

    That is so if the first difference between two trails is the side of one split.
    """
    parted: dict[tuple[tuple[int, int], ...], int] = {}
    ends: set[tuple[tuple[int, int], ...]] = set()
    for block in blocks:
        for depth, (split, _) in enumerate(block.trail):
            before = block.trail[:depth]
            if before in ends or parted.setdefault(before, split) != split:
                return False
        if block.trail in ends or block.trail in parted:
            return False
        ends.add(block.trail)
    return len({block.table for block in blocks}) <= 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentrePair:
    """A left and a right centre: per column, one coordinate (ordered) or a share per code (unordered) on each side.

    Coordinates lie in -COORDINATE .. COORDINATE, shares in 0 .. 2 * COORDINATE.
    """

    columns: Mapping[str, Coordinates]  # (2,) or (2, codes)

    def parting(self, table: str, rows_per_entity: int) -> Centres:
        """The split by these centres as the ledger records it."""
        sides = tuple(
            {name: tuple(int(x) for x in np.atleast_1d(both[side])) for name, both in self.columns.items()}
            for side in (0, 1)
        )
        return Centres(table=table, rows_per_entity=rows_per_entity, centres=sides)


def leaning(
    codes: Mapping[str, NDArray[np.unsignedinteger]], facts: Mapping[str, ColumnFacts], centres: CentrePair
) -> Coordinates:
    """For each row, its distance to the left centre minus its distance to the right one."""
    rows = len(next(iter(codes.values())))
    total = np.zeros(rows, np.int64)
    for name, column in codes.items():
        total += _leaning_by_code(facts[name], centres.columns[name])[column]
    return total


def nearer_right(
    codes: Mapping[str, NDArray[np.unsignedinteger]], facts: Mapping[str, ColumnFacts], centres: CentrePair
) -> NDArray[np.bool_]:
    """Which rows are nearer to the right centre."""
    return leaning(codes, facts, centres) > 0


def _leaning_by_code(facts: ColumnFacts, centres: Coordinates) -> Coordinates:
    if not facts.ordered:
        difference: Coordinates = centres[1] - centres[0]
        return difference
    at = coordinates(np.arange(facts.size, dtype=np.uint16), facts.size)
    leans: Coordinates = np.abs(at - centres[0]) - np.abs(at - centres[1])
    return leans


def widest_distance(facts: Mapping[str, ColumnFacts]) -> int:
    """The largest distance a row can have to a centre: each column adds up to 2 * COORDINATE."""
    return 2 * COORDINATE * len(facts)
