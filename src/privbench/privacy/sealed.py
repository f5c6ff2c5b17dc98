"""The private codes behind the vault's door: which rows are kept, which rows a block holds, and exact counts of them.

Only the vault opens this, after a charge; nothing here is noisy and nothing here may be returned as it is. What is
counted looks at the kept rows alone: those that are left when each entity is cut to the rows it may have.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase
from privbench.privacy import queries
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.noise import Entropy, random_order
from privbench.privacy.partition import Block, CentrePair, ColumnSplit, nearer_right
from privbench.privacy.queries import Codes, Integers
from privbench.privacy.sealed_features import SealedFeatures

_CORES = 4
_PARALLEL_ROWS = 200_000
"""Blocks larger than this count their entropies on several cores."""


class Sealed:
    """Private tables, the rows that are kept of each, and the rows of every block."""

    __slots__ = ("_data", "_entropies", "_facts", "_kept", "_labels", "_order", "_rows", "_source", "features")

    def __init__(self, facts: Facts, data: CodedDatabase, entropy: Entropy) -> None:
        self._facts = facts
        self._source = entropy
        self._order: Integers | None = None
        self._data = data
        self.features = SealedFeatures(facts, data)
        self._kept: dict[str, Integers] = {}
        self._rows: dict[int, Integers] = {}
        self._labels: tuple[int, CentrePair | None, NDArray[np.bool_]] = (-1, None, np.zeros(0, bool))
        self._entropies: dict[tuple[int, frozenset[str]], float] = {}

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    # -- kept rows ---------------------------------------------------------------------------------------------

    def cap_rows(self, table: str, cap: int) -> None:
        """Keep at most `cap` rows of each entity whose owner rows are kept."""
        coded, rows = self._data[table], self._rows_of_kept_owners(table)
        keep = queries.keep_rows(coded.entities[rows], {n: c[rows] for n, c in coded.codes.items()}, cap)
        self._kept[table] = rows[keep]

    def rows_per_entity(self, table: str) -> Integers:
        """How many rows each entity would have without a cap of this table."""
        entities = self._data[table].entities[self._rows_of_kept_owners(table)]
        counts: Integers = np.unique(entities, return_counts=True)[1]
        return counts

    def key(self, link: LinkFacts) -> Integers:
        """The rows that the key of every row names, kept or not."""
        return self._data[link.table].keys[link.name]

    def slots(self, link: LinkFacts) -> Integers:
        """The slots that the key of every row names: public rows in their order, entities in a secret random one.

        So an entity that is replaced by another may stand anywhere in its table. Where the ids of the entity table are
        public, its rows stand in the order of their ids, and keep it.
        """
        named = self.key(link)
        if not link.slots or link.target != self._facts.entity or self._facts.public_ids:
            return named
        if self._order is None:
            self._order = random_order(link.slots, self._source)
        return np.where(named >= 0, self._order[np.maximum(named, 0)], named)

    def null_keys(self, link: LinkFacts) -> int:
        """How many kept rows have a NULL key."""
        return int((self.key(link)[self._kept[link.table]] == queries.NULL).sum())

    def degrees(self, link: LinkFacts) -> Integers:
        """For each kept row of the named table, how many keys of kept rows name it."""
        named = queries.degrees(self.key(link)[self._kept[link.table]], len(self._data[link.target].entities))
        return named[self._kept[link.target]]

    def _rows_of_kept_owners(self, table: str) -> Integers:
        """Rows whose owner row was kept, or that have none where that is allowed.

        Rows that lack an owner where none should are left out, so that no table outgrows its public bound.
        """
        rows = len(self._data[table].entities)
        link = self._facts.owner_link(table)
        if link is None:
            return np.arange(rows)
        kept = np.zeros(len(self._data[link.target].entities) + 2, bool)  # the last two: no such row, NULL
        kept[self._kept[link.target]] = True
        kept[queries.NULL] = link.nullable or self._facts.strays
        return np.flatnonzero(kept[self.key(link)])

    # -- blocks ------------------------------------------------------------------------------------------------

    def open_whole(self, block: Block) -> None:
        """Let a block hold all kept rows of its table."""
        self._rows[block.number] = self._kept[block.table]

    def open_split(self, block: Block, columns: Sequence[str], centres: CentrePair, sides: Sequence[Block]) -> None:
        """Let two blocks hold the rows of a block that are nearer to the left and to the right centre."""
        self.open_sides(block, self.labels(block, columns, centres), sides)

    def open_sides(self, block: Block, right: NDArray[np.bool_], sides: Sequence[Block]) -> None:
        """Let two blocks hold the rows of a block that go left and right."""
        rows = self.rows(block)
        self._rows[sides[0].number], self._rows[sides[1].number] = rows[~right], rows[right]

    def rows(self, block: Block) -> Integers:
        """The rows of a block."""
        return self._rows[block.number]

    def codes(self, block: Block, column: str) -> Codes:
        """The codes of a column in a block."""
        codes, rows = self._data[block.table].codes[column], self.rows(block)
        return codes if len(rows) == len(codes) else codes[rows]

    def labels(self, block: Block, columns: Sequence[str], centres: CentrePair) -> NDArray[np.bool_]:
        """Which rows of a block are nearer to the right centre; kept, as a round asks for them column by column."""
        number, before, labels = self._labels
        if number != block.number or before is not centres:
            facts = {c: self._facts.tables[block.table].columns[c] for c in columns}
            labels = nearer_right({c: self.codes(block, c) for c in columns}, facts, centres)
            self._labels = (block.number, centres, labels)
        return labels

    # -- dependence --------------------------------------------------------------------------------------------

    def dependences(self, block: Block, splits: Sequence[ColumnSplit], *, most_rows: int) -> Integers:
        """The dependence of each split of columns, in units; on several cores if the block is large."""
        wanted = {frozenset(half) for split in splits for half in (*split, split[0] + split[1])}
        if len(self.rows(block)) >= _PARALLEL_ROWS:
            with ThreadPoolExecutor(_CORES) as pool:
                list(pool.map(lambda columns: self._entropy(block, columns), wanted))
        return np.array([self._dependence_units(block, split, most_rows) for split in splits], np.int64)

    def _dependence_units(self, block: Block, split: ColumnSplit, most_rows: int) -> int:
        left, right = frozenset(split[0]), frozenset(split[1])
        bits = queries.dependence(
            self._entropy(block, left),
            self._entropy(block, right),
            self._entropy(block, left | right),
            len(self.rows(block)),
        )
        return queries.dependence_units(bits, most_rows)

    def _entropy(self, block: Block, columns: frozenset[str]) -> float:
        key = (block.number, columns)
        if key not in self._entropies:
            facts = self._facts.tables[block.table].columns
            parts: Iterable[tuple[Codes, int]] = ((self.codes(block, c), facts[c].size) for c in sorted(columns))
            self._entropies[key] = queries.count_entropy(*queries.joint_keys(parts))
        return self._entropies[key]
