"""The codes of features, worked out from the private tables behind the vault's door; kept while a table is learnt."""

from collections.abc import Sequence
from itertools import combinations
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase
from privbench.privacy import queries, weighted_counts
from privbench.privacy.events import UNITS
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import (
    Axis,
    EntityRows,
    Feature,
    KeyBlock,
    Named,
    NullKey,
    OfFirst,
    OfOwner,
    Own,
    Pair,
    Rank,
    Rows,
)
from privbench.privacy.pair_cover import covering_groups
from privbench.spn.fanouts import RANK_EDGES, bin_of

ROWS_PER_CELL = 8
"""A joint histogram of several columns has at most one cell for so many rows."""

Codes = NDArray[np.integer]
Integers = NDArray[np.int64]


class SealedFeatures:
    """Codes of features, weights of rows and tables of pairs. Only the vault's queries open it."""

    __slots__ = ("_binned", "_codes", "_data", "_facts", "_pairs", "_scores", "_weights")

    def __init__(self, facts: Facts, data: CodedDatabase) -> None:
        self._facts = facts
        self._data = data
        self._weights: dict[str, Integers | None] = {}
        self._codes: dict[tuple[str, Feature], Codes] = {}
        self._binned: dict[tuple[str, Axis], Codes] = {}
        self._pairs: dict[tuple[str, Axis, Axis], Integers] = {}
        self._scores: dict[Pair, int] = {}

    def __repr__(self) -> str:
        return "<private features>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def cells(self, table: str, axes: Sequence[Axis]) -> Integers:
        """Weights of the rows of a table by the bins of axes, in units."""
        columns = [(self._bins(table, axis), axis.size) for axis in axes]
        return weighted_counts.weighted_histogram(columns, self._row_weights(table), UNITS)

    def lead(self, table: str, feature: Feature) -> int:
        """By how much the rows with the first code of a feature outweigh those with the second, in units."""
        column = (self.codes(table, feature), feature.size)
        cells = weighted_counts.weighted_histogram([column], self._row_weights(table), UNITS)
        return int(cells[0] - cells[1])

    def total(self, table: str) -> int:
        """The weight of all rows of a table, in units."""
        weights = self._row_weights(table)
        return self._rows(table) * UNITS if weights is None else int(weights.sum())

    def pair(self, table: str, first: Axis, second: Axis) -> Integers:
        """The same for two axes, counted once for either order of them."""
        if (table, second, first) in self._pairs:
            return self._pairs[table, second, first].T
        if (table, first, second) not in self._pairs:
            self._pairs[table, first, second] = self.cells(table, (first, second))
        return self._pairs[table, first, second]

    def scores(self, table: str, pairs: Sequence[Pair]) -> list[int]:
        """How far pairs of axes are from what is expected of them; each worked out once."""
        new = [pair for pair in pairs if pair not in self._scores]
        self._count_pairs(table, new)
        for pair in new:
            cells = self.pair(table, pair.first, pair.second)
            self._scores[pair] = weighted_counts.distance_score(cells, pair.expected, pair.penalty, pair.touches)
        return [self._scores[pair] for pair in pairs]

    def _count_pairs(self, table: str, pairs: Sequence[Pair]) -> None:
        """Count the tables of pairs, in as few passes over the rows as their bins allow."""
        axes = list(dict.fromkeys(axis for pair in pairs for axis in (pair.first, pair.second)))
        place = {axis: at for at, axis in enumerate(axes)}
        wanted = [(place[pair.first], place[pair.second]) for pair in pairs]
        most = min(max(self._rows(table) // ROWS_PER_CELL, 2**10), 2**16)
        for group in covering_groups([axis.size for axis in axes], wanted, most=most):
            cells = self.cells(table, [axes[at] for at in group])
            for (i, a), (j, b) in combinations(enumerate(group), 2):
                others = tuple(k for k in range(len(group)) if k not in (i, j))
                self._pairs[table, axes[a], axes[b]] = cells.sum(axis=others)

    def forget(self, table: str) -> None:
        """Let go of what was counted for a table."""
        self._binned = {key: codes for key, codes in self._binned.items() if key[0] != table}
        self._pairs = {key: cells for key, cells in self._pairs.items() if key[0] != table}
        self._scores = {}

    def codes(self, table: str, feature: Feature) -> Codes:
        """The code of every row of a table."""
        key = (table, feature)
        if key not in self._codes:
            self._codes[key] = self._find(table, feature)
        return self._codes[key]

    def _bins(self, table: str, axis: Axis) -> Codes:
        key = (table, axis)
        if key not in self._binned:
            bins = axis.bins.astype(np.uint8) if axis.size <= 2**8 else axis.bins.astype(np.uint16)
            self._binned[key] = bins[self.codes(table, axis.feature)]
        return self._binned[key]

    def _find(self, table: str, feature: Feature) -> Codes:
        source = feature.source
        if isinstance(source, Own):
            return self._data[table].codes[source.column]
        if isinstance(source, Rows):
            return bin_of(queries.degrees(self._key(source.link), self._rows(table)), source.edges)
        if isinstance(source, Named):
            counted = weighted_counts.one_key_each(self._key(source.link), self._data[source.link.table].entities)
            return bin_of(queries.degrees(counted, self._rows(table)), source.edges)
        if isinstance(source, NullKey):
            null: Codes = (self._key(source.link) == queries.NULL).astype(np.uint8)
            return null
        if isinstance(source, KeyBlock):
            found = weighted_counts.key_blocks(self._key(source.link), source.link.slots or 0, source.blocks)
            found[found >= feature.size] = feature.size - 1  # a key to a missing row, where none may be NULL
            return found
        if isinstance(source, OfOwner):
            owners = self._owners(table)
            above = np.append(self.codes(self._owner_link(table).target, source.feature), source.feature.size)
            return above[np.where(owners >= 0, owners, -1)]
        if isinstance(source, OfFirst):
            firsts = weighted_counts.first_of_group(self._owners(table))
            return np.append(self.codes(table, source.feature), source.feature.size)[firsts]
        if isinstance(source, Rank):
            return bin_of(weighted_counts.place_in_group(self._owners(table)) + 1, RANK_EDGES)
        if isinstance(source, EntityRows):
            return bin_of(weighted_counts.rows_of_entity(self._data[table].entities), source.edges)
        return source.codes

    def _row_weights(self, table: str) -> Integers | None:
        if table not in self._weights:
            self._weights[table] = weighted_counts.row_weights(self._data[table].entities, UNITS)
        return self._weights[table]

    def _rows(self, table: str) -> int:
        return len(self._data[table].entities)

    def _key(self, link: LinkFacts) -> Integers:
        return self._data[link.table].keys[link.name]

    def _owner_link(self, table: str) -> LinkFacts:
        link = self._facts.owner_link(table)
        if link is None:
            raise ValueError(f"{table}: has no owner key")
        return link

    def _owners(self, table: str) -> Integers:
        return self._key(self._owner_link(table))
