"""Blocks: sets of rows of one table, described by what was released, and row splits by released centres.

A split is a public function of a row's own codes, so that its two sides are disjoint. The distance of a row to a centre
is the sum over columns of |x - c| for ordered columns and of 1 - c[x] for unordered ones, where c[x] is the share of
code x in the cluster; all in integers, so that every machine splits alike. Ties go left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.exact import Codes, coordinates
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.ledger import Scope
from privbench.privacy.partitions import Centres

Coordinates = NDArray[np.int64]
ColumnSplit = tuple[tuple[str, ...], tuple[str, ...]]
"""The columns of a block in two halves."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a split. Without centres the split is that of the paper as published, which only the vault knows."""

    split: int
    """A number that no other split has."""
    right: bool
    centres: CentrePair | None = field(default=None, repr=False)
    columns: Mapping[str, ColumnFacts] | None = field(default=None, repr=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The rows of a table of which an entity has at most `cap`, on one side of each of some splits.

    What is asked of it is charged to `scope`.
    """

    table: str
    cap: int
    scope: Scope = field(hash=False, compare=False, repr=False)
    path: tuple[Side, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Without its scope: where a block is counted, nothing is charged."""
        words: dict[str, Any] = {"table": self.table, "cap": self.cap, "path": self.path, "scope": None}
        return partial(Block, **words), ()

    @property
    def trail(self) -> tuple[tuple[int, bool], ...]:
        """The splits it comes from, and which side of each it is."""
        return tuple((side.split, side.right) for side in self.path)


def disjoint(blocks: Sequence[Block]) -> bool:
    """Whether no row can be in two of the blocks, going by how they came about.

    That is so if the first difference between two trails is the side of one split.
    """
    parted: dict[tuple[tuple[int, bool], ...], int] = {}
    ends: set[tuple[tuple[int, bool], ...]] = set()
    for block in blocks:
        for depth, (split, _) in enumerate(block.trail):
            before = block.trail[:depth]
            if before in ends or parted.setdefault(before, split) != split:
                return False
        if block.trail in ends or block.trail in parted:
            return False
        ends.add(block.trail)
    return len({block.table for block in blocks}) <= 1


def leaning(codes: Mapping[str, Codes], facts: Mapping[str, ColumnFacts], centres: CentrePair) -> Coordinates:
    """For each row, its distance to the left centre minus its distance to the right one."""
    rows = len(next(iter(codes.values())))
    total = np.zeros(rows, np.int64)
    for name, column in codes.items():
        total += _leaning_by_code(facts[name], centres.columns[name])[column]
    return total


def nearer_right(
    codes: Mapping[str, Codes], facts: Mapping[str, ColumnFacts], centres: CentrePair
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
