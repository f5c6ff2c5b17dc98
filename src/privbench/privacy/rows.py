"""Which private rows are kept, and which of them a block holds: the rows that the engine counts.

A table is cut to the rows that each entity may have, of those whose owner row is kept; blocks are worked out from the
splits that describe them. Nothing here may leave the vault.
"""

from collections.abc import Iterable
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase
from privbench.privacy import exact
from privbench.privacy.blocks import Block, nearer_right
from privbench.privacy.common import Cap
from privbench.privacy.exact import NULL, Codes, Integers
from privbench.privacy.facts import LinkFacts


class KeptRows:
    """The rows that are kept of each table, and those of every block."""

    def __init__(self, data: CodedDatabase) -> None:
        self._data = data
        self.caps: list[Cap] = []
        """The caps so far, owners first."""
        self._kept: dict[str, Integers] = {}
        self._rows: dict[tuple[str, tuple[tuple[int, bool], ...]], Integers] = {}

    def __repr__(self) -> str:
        return "<private rows>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def cap(self, cap: Cap) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept."""
        coded, rows = self._data[cap.table], self.of_kept_owners(cap.table, cap.owner, orphans=cap.orphans)
        keep = exact.keep_rows(coded.entities[rows], {n: c[rows] for n, c in coded.codes.items()}, cap.most)
        self._kept[cap.table] = rows[keep]
        self.caps.append(cap)

    def of_table(self, table: str) -> Integers:
        """The rows that are kept of a table."""
        return self._kept[table]

    def of_kept_owners(self, table: str, owner: LinkFacts | None, *, orphans: bool) -> Integers:
        """Rows whose owner row is kept, or that have none where that is allowed."""
        if owner is None:
            return np.arange(len(self._data[table].entities))
        kept = np.zeros(len(self._data[owner.target].entities) + 2, bool)  # the last two: no such row, NULL
        kept[self._kept[owner.target]] = True
        kept[NULL] = owner.nullable or orphans
        return np.flatnonzero(kept[self._data[table].keys[owner.name]])

    def of(self, block: Block) -> Integers:
        """The rows of a block, worked out from those of the block that was split."""
        if not block.path:
            return self._kept[block.table]
        key = (block.table, block.trail)
        if key not in self._rows:
            *before, side = block.path
            parent = Block(table=block.table, cap=block.cap, scope=block.scope, path=tuple(before))
            if side.centres is None or side.columns is None:
                raise ValueError(f"{block.table}: a block of a split that was not made")
            codes = self.codes(parent, side.columns)
            self.split(parent, side.split, nearer_right(codes, side.columns, side.centres))
        return self._rows[key]

    def split(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split of that number."""
        rows = self.of(block)
        self._rows[block.table, (*block.trail, (split, False))] = rows[~right]
        self._rows[block.table, (*block.trail, (split, True))] = rows[right]

    def values(self, values: Codes, block: Block) -> Codes:
        """Values of all rows of a table, for the rows of a block."""
        rows = self.of(block)
        return values if len(rows) == len(values) else values[rows]

    def codes(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block."""
        return {column: self.values(self._data[block.table].codes[column], block) for column in columns}
