"""The engine: exact answers to queries about private rows. Only the vault holds one, and asks after it has charged.

Nothing here is noisy, and nothing here may be returned as it is. A batch of queries comes at once. All but heavy
hitters, dependences and the choice of caps are counts by group over coded rows, weighted by entity: an engine for data
that do not fit into memory counts parts of the rows and adds the counts up. `NumpyEngine` has all rows in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import singledispatchmethod
from itertools import combinations
from typing import NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.grid import Grid
from privbench.encode.layout import one_array
from privbench.encode.magnitude import Magnitudes
from privbench.encode.steps import coarsest_step
from privbench.privacy import agreement, exact
from privbench.privacy.blocks import Block, ColumnSplit, nearer_right
from privbench.privacy.exact import NULL, Codes, Integers
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.features import (
    Agreement,
    Axis,
    Cell,
    Cluster,
    EntityRows,
    Fanout,
    Feature,
    InDegree,
    KeyBlock,
    KeySlot,
    Magnitude,
    NullKey,
    OfFirst,
    OfOwner,
    Own,
    Part,
    Present,
    PublicRows,
    Rank,
    Source,
    Step,
)
from privbench.privacy.noise import Entropy, random_order
from privbench.privacy.pair_cover import covering_groups
from privbench.privacy.queries import (
    ENTITY_WEIGHT,
    CapChoice,
    Counts,
    Dependence,
    DependencyChoice,
    FrequentValues,
    HeavyHitters,
    Histogram,
    Pair,
    PairChoice,
    Query,
    SplitChoice,
    Sums,
)
from privbench.spn.fanouts import RANK_EDGES, bin_of

CORES = 4
PARALLEL_ROWS = 200_000
"""Blocks larger than this count their entropies on several cores."""
ROWS_PER_CELL = 8
"""A joint histogram of several columns has at most one cell for so many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueCounts:
    """The different values that something counts for, ascending ticks or strings in any order, and their counts."""

    values: Integers | pa.Array
    counts: Integers


Exact = Integers | ValueCounts
"""Counts by cell, scores by candidate, or counts by value."""
RawColumns = Mapping[str, Mapping[str, pa.Array]]
"""The values of columns that have no codes yet, by table and column."""
Codecs = Mapping[str, Mapping[str, Codec]]
"""Codecs by table and column."""


class Engine(Protocol):
    """Evaluates queries exactly. Which rows of a table are kept, and blocks of them, queries describe."""

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query."""
        ...

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, and let go of all values."""
        ...

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept.

        Rows without owner are kept where the key may be NULL, or `orphans` says so; others lack an owner where none
        should, and are left out, so that no table outgrows its public bound.
        """
        ...

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        ...

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block, for a split that has no public description."""
        ...

    def forget(self, table: str) -> None:
        """Let go of what was remembered of a table that will not be asked about again."""
        ...


class NumpyEngine:
    """All rows in memory, as small integers; what queries need again and again is remembered until it is forgotten."""

    def __init__(self, data: CodedDatabase, *, entropy: Entropy, raw: RawColumns | None = None) -> None:
        self._data = data
        self._raw = raw or {}
        self._entropy = entropy
        self._order: Integers | None = None
        self._kept: dict[str, Integers] = {}
        self._rows: dict[tuple[str, tuple[tuple[int, bool], ...]], Integers] = {}
        self._weights: dict[str, Integers | None] = {}
        self._codes: dict[tuple[str, Feature], Codes] = {}
        self._binned: dict[tuple[str, Axis], Codes] = {}
        self._pairs: dict[tuple[str, Axis, Axis], Integers] = {}
        self._scores: dict[Pair, int] = {}
        self._entropies: dict[tuple[str, tuple[tuple[int, bool], ...], frozenset[str]], float] = {}
        self._labels: tuple[Block | None, Cluster | None, Codes] = (None, None, np.zeros(0, np.uint8))

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query."""
        return [self._answer(query) for query in queries]

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, and let go of all values."""
        self._data = {name: self._encoded(name, codecs[name]) for name in self._data}
        self._raw, self._codes, self._binned = {}, {}, {}

    def _encoded(self, name: str, codecs: Mapping[str, Codec]) -> CodedTable:
        """A table with all of its codes, in the order of its columns."""
        table, raw = self._data[name], self._raw.get(name, {})
        codes = {n: codec.encode(raw[n]) if n in raw else table.codes[n] for n, codec in codecs.items()}
        return CodedTable(codes=codes, keys=table.keys, entities=table.entities)

    # -- kept rows and blocks ----------------------------------------------------------------------------------

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept."""
        coded, rows = self._data[table], self._rows_of_kept_owners(table, owner, orphans=orphans)
        keep = exact.keep_rows(coded.entities[rows], {n: c[rows] for n, c in coded.codes.items()}, cap)
        self._kept[table] = rows[keep]

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        rows = self._rows_of(block)
        self._rows[block.table, (*block.trail, (split, False))] = rows[~right]
        self._rows[block.table, (*block.trail, (split, True))] = rows[right]

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block."""
        return {column: self._in_block(self._data[block.table].codes[column], block) for column in columns}

    def forget(self, table: str) -> None:
        """Let go of what was counted for a table."""
        self._binned = {key: codes for key, codes in self._binned.items() if key[0] != table}
        self._pairs = {key: cells for key, cells in self._pairs.items() if key[0] != table}
        self._scores = {}

    def _rows_of_kept_owners(self, table: str, owner: LinkFacts | None, *, orphans: bool) -> Integers:
        if owner is None:
            return np.arange(self._size(table))
        kept = np.zeros(self._size(owner.target) + 2, bool)  # the last two: no such row, NULL
        kept[self._kept[owner.target]] = True
        kept[NULL] = owner.nullable or orphans
        return np.flatnonzero(kept[self._key(owner)])

    def _rows_of(self, block: Block) -> Integers:
        """The rows of a block, worked out from those of the block that was split."""
        if not block.path:
            return self._kept[block.table]
        key = (block.table, block.trail)
        if key not in self._rows:
            *before, side = block.path
            parent = Block(table=block.table, cap=block.cap, scope=block.scope, path=tuple(before))
            if side.centres is None or side.columns is None:
                raise ValueError(f"{block.table}: a block of a split that was not made")
            codes = self.codes_in(parent, side.columns)
            self.split_rows(parent, side.split, nearer_right(codes, side.columns, side.centres))
        return self._rows[key]

    def _in_block(self, values: Codes, block: Block) -> Codes:
        rows = self._rows_of(block)
        return values if len(rows) == len(values) else values[rows]

    # -- queries -----------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _answer(self, query: Query) -> Exact:
        raise ValueError(f"{query}: is not a query that can be counted")

    @_answer.register
    def _(self, query: Histogram) -> Exact:
        if query.block is not None:
            columns = [
                (self._in_block(self._bins(query.table, axis, query.block), query.block), axis.size)
                for axis in query.axes
            ]
            return self._cells(columns, None, unit=1, rows=len(self._rows_of(query.block)))
        if query.counts is Counts.VOTES:
            there = self._bins(query.table, query.axes[0]) >= 0
            return np.array([len(np.unique(self._data[query.table].entities[there]))], np.int64)
        if len(query.axes) == 2:
            return self._pair(query.table, *query.axes)
        return self._weighted(query.table, query.axes)

    @_answer.register
    def _(self, query: Sums) -> Exact:
        codes = self._in_block(self._data[query.table].codes[query.column], query.block)
        (axis,) = query.axes
        cells = self._in_block(self._bins(query.table, axis, query.block), query.block)
        return exact.sums_by_cell(exact.coordinates(codes, query.size), cells, axis.size)

    @_answer.register
    def _(self, query: Dependence) -> Exact:
        return self._dependences(query.block, [query.split], query.columns, query.most_rows)

    @_answer.register
    def _(self, query: SplitChoice) -> Exact:
        return -self._dependences(query.block, query.candidates, query.columns, query.most_rows)

    @_answer.register
    def _(self, query: PairChoice) -> Exact:
        return np.array([*self._pair_scores(query.table, query.candidates), 0], np.int64)

    @_answer.register
    def _(self, query: DependencyChoice) -> Exact:
        return np.array([*(self._lead(query.table, feature) for feature in query.candidates), 0], np.int64)

    @_answer.register
    def _(self, query: CapChoice) -> Exact:
        rows = self._rows_of_kept_owners(query.table, query.owner, orphans=query.orphans)
        per_entity = np.unique(self._data[query.table].entities[rows], return_counts=True)[1]
        return exact.cap_scores(per_entity, query.candidates, query.penalties)

    @_answer.register
    def _(self, query: HeavyHitters) -> Exact:
        ticks, rows = self._ticks(query.table, query.column, query.grid, query.low, query.high)
        values, at = np.unique(ticks, return_inverse=True)
        sums = exact.weighted_histogram([(at, len(values))], self._raw_weights(query.table)[rows], ENTITY_WEIGHT)
        return ValueCounts(values[sums > 0], sums[sums > 0])

    @_answer.register
    def _(self, query: FrequentValues) -> Exact:
        if query.grid is not None:
            ticks, rows = self._ticks(query.table, query.column, query.grid, query.low, query.high)
            return ValueCounts(*np.unique(ticks[self._votes(query.table, rows)], return_counts=True))
        values = self._raw[query.table][query.column]
        left = pc.and_(values.is_valid(), pc.invert(pc.is_in(values, value_set=pa.array(query.without, values.type))))
        rows = np.flatnonzero(one_array(left).to_numpy(zero_copy_only=False))
        votes = pc.value_counts(values.take(pa.array(rows[self._votes(query.table, rows)])))
        return ValueCounts(votes.field("values"), votes.field("counts").to_numpy().astype(np.int64))

    # -- counting ----------------------------------------------------------------------------------------------

    def _cells(
        self, columns: Sequence[tuple[Codes, int]], weights: Integers | None, *, unit: int, rows: int
    ) -> Integers:
        """Rows, or their weights, by cell; rows with a negative code are not counted."""
        if not columns:
            return np.array([rows * unit if weights is None else int(weights.sum())], np.int64)
        signed = [codes for codes, _ in columns if np.issubdtype(codes.dtype, np.signedinteger)]
        outside = [codes < 0 for codes in signed if codes.min(initial=0) < 0]
        if outside:
            inside = ~np.logical_or.reduce(outside)
            columns = [(codes[inside], size) for codes, size in columns]
            weights = None if weights is None else weights[inside]
        return exact.weighted_histogram(columns, weights, unit)

    def _weighted(self, table: str, axes: Sequence[Axis]) -> Integers:
        columns = [(self._bins(table, axis), axis.size) for axis in axes]
        return self._cells(columns, self._row_weights(table), unit=ENTITY_WEIGHT, rows=self._size(table))

    def _lead(self, table: str, feature: Feature) -> int:
        """By how much the rows with the first code of a feature outweigh those with the second."""
        cells = self._cells(
            [(self._feature_codes(table, feature), feature.size)], self._row_weights(table), unit=ENTITY_WEIGHT, rows=0
        )
        return int(cells[0] - cells[1])

    def _pair(self, table: str, first: Axis, second: Axis) -> Integers:
        """Weights by the bins of two axes, counted once for either order of them."""
        if (table, second, first) in self._pairs:
            return self._pairs[table, second, first].T
        if (table, first, second) not in self._pairs:
            self._pairs[table, first, second] = self._weighted(table, (first, second))
        return self._pairs[table, first, second]

    def _pair_scores(self, table: str, pairs: Sequence[Pair]) -> list[int]:
        """How far pairs of axes are from what is expected of them; each worked out once."""
        new = [pair for pair in pairs if pair not in self._scores]
        self._count_pairs(table, new)
        for pair in new:
            cells = self._pair(table, pair.first, pair.second)
            self._scores[pair] = exact.distance_score(cells, pair.expected, pair.penalty, pair.sensitivity_factor)
        return [self._scores[pair] for pair in pairs]

    def _count_pairs(self, table: str, pairs: Sequence[Pair]) -> None:
        """Count the tables of pairs, in as few passes over the rows as their bins allow."""
        axes = list(dict.fromkeys(axis for pair in pairs for axis in (pair.first, pair.second)))
        place = {axis: at for at, axis in enumerate(axes)}
        wanted = [(place[pair.first], place[pair.second]) for pair in pairs]
        most = min(max(self._size(table) // ROWS_PER_CELL, 2**10), 2**16)
        for group in covering_groups([axis.size for axis in axes], wanted, most=most):
            cells = self._weighted(table, [axes[at] for at in group])
            for (i, a), (j, b) in combinations(enumerate(group), 2):
                others = tuple(k for k in range(len(group)) if k not in (i, j))
                self._pairs[table, axes[a], axes[b]] = cells.sum(axis=others)

    def _dependences(
        self, block: Block, splits: Sequence[ColumnSplit], columns: Mapping[str, ColumnFacts], most_rows: int
    ) -> Integers:
        """The dependence of each split of columns, in units; on several cores if the block is large."""
        rows = len(self._rows_of(block))
        wanted = {frozenset(half) for split in splits for half in (*split, split[0] + split[1])}
        if rows >= PARALLEL_ROWS:
            with ThreadPoolExecutor(CORES) as pool:
                list(pool.map(lambda names: self._entropy_of(block, names, columns), wanted))

        def units(split: ColumnSplit) -> int:
            left, right, joint = (
                self._entropy_of(block, frozenset(names), columns) for names in (*split, split[0] + split[1])
            )
            return exact.dependence_units(exact.dependence(left, right, joint, rows), most_rows)

        return np.array([units(split) for split in splits], np.int64)

    def _entropy_of(self, block: Block, names: frozenset[str], columns: Mapping[str, ColumnFacts]) -> float:
        key = (block.table, block.trail, names)
        if key not in self._entropies:
            codes = self.codes_in(block, sorted(names))
            self._entropies[key] = exact.count_entropy(
                *exact.joint_keys((found, columns[name].size) for name, found in codes.items())
            )
        return self._entropies[key]

    # -- features ----------------------------------------------------------------------------------------------

    def _bins(self, table: str, axis: Axis, block: Block | None = None) -> Codes:
        """The bin of every row of a table; -1 for rows that are not counted. Rows outside of the block have any."""
        if isinstance(axis.feature.source, Cluster) and block is not None:
            return self._cluster(block, axis.feature.source)
        if axis.whole:
            return self._feature_codes(table, axis.feature)
        key = (table, axis)
        if key not in self._binned:
            codes = self._feature_codes(table, axis.feature)
            if axis.bins.min() < 0 or np.issubdtype(codes.dtype, np.signedinteger):
                self._binned[key] = np.append(axis.bins, -1)[codes]
            else:
                bins = axis.bins.astype(np.uint8) if axis.size <= 2**8 else axis.bins.astype(np.uint16)
                self._binned[key] = bins[codes]
        return self._binned[key]

    def _feature_codes(self, table: str, feature: Feature) -> Codes:
        """The code of every row of a table; -1 for rows that have none. Of a column without codes it is asked once."""
        if isinstance(feature.source, Magnitude | Step | Cell | Present | Agreement):
            return self._codes_of(feature.source, table, feature.size)
        key = (table, feature)
        if key not in self._codes:
            self._codes[key] = self._codes_of(feature.source, table, feature.size)
        return self._codes[key]

    def _codes_of(self, source: Source, table: str, size: int) -> Codes:
        match source:
            case Own(column):
                return self._data[table].codes[column]
            case OfOwner(feature, link):
                owners = self._key(link)
                above = np.append(self._feature_codes(link.target, feature), feature.size)
                return above[np.where(owners >= 0, owners, -1)]
            case OfFirst(feature, link):
                firsts = exact.first_of_group(self._key(link))
                return np.append(self._feature_codes(table, feature), feature.size)[firsts]
            case Rank(link):
                return bin_of(exact.place_in_group(self._key(link)) + 1, RANK_EDGES)
            case EntityRows(edges):
                return bin_of(exact.rows_of_entity(self._data[table].entities), edges)
            case PublicRows():
                return source.codes
            case Part(blocks):
                return self._parts(table, blocks)
            case Agreement():
                return self._agreement(table, source)
            case Magnitude() | Step() | Cell() | Present():
                return self._raw_codes(table, source)
            case Cluster():
                raise ValueError(f"{table}: clusters are those of a block")
            case _:
                return self._key_codes(source, table, size)

    def _key_codes(self, source: Fanout | InDegree | NullKey | KeyBlock | KeySlot, table: str, size: int) -> Codes:
        """What keys say: those of the table's own rows, or those that reference them."""
        key = self._key(source.link)
        match source:
            case NullKey():
                return np.asarray(key == NULL, np.uint8)
            case KeyBlock(link, blocks):
                codes = exact.key_blocks(key, link.slots or 0, blocks)
                codes[codes >= size] = size - 1  # a key to a missing row, where none may be NULL
                return codes
            case KeySlot(link, shuffled):
                slots = self._slots(link, shuffled=shuffled)
                return np.where(slots >= NULL, slots + 1, -1)
            case Fanout(link, edges, cap) | InDegree(link, edges, cap):
                if cap is not None:
                    key = key[self._kept[link.table]]
                elif isinstance(source, InDegree):
                    key = exact.one_key_each(key, self._data[link.table].entities)
                return bin_of(exact.degrees(key, self._size(table)), edges)

    def _cluster(self, block: Block, source: Cluster) -> Codes:
        """Which centre each row of a block is nearer to; remembered, as a round asks for it column by column."""
        before, centres, labels = self._labels
        if before is not block or centres is not source:
            right = nearer_right(self.codes_in(block, source.columns), source.columns, source.centres)
            labels = np.zeros(self._size(block.table), np.uint8)
            labels[self._rows_of(block)] = right
            self._labels = (block, source, labels)
        return labels

    def _parts(self, table: str, blocks: Sequence[Block]) -> Codes:
        codes = np.full(self._size(table), -1, np.int64)
        for number, block in enumerate(blocks):
            codes[self._rows_of(block)] = number
        return codes

    def _slots(self, link: LinkFacts, *, shuffled: bool) -> Integers:
        """The slots that the key of every row references: rows in their order, entities perhaps in a secret one."""
        targets = self._key(link)
        if not shuffled or not link.slots:
            return targets
        if self._order is None:
            self._order = random_order(link.slots, self._entropy)
        return np.where(targets >= 0, self._order[np.maximum(targets, 0)], targets)

    def _agreement(self, table: str, source: Agreement) -> Codes:
        derived, owners = source.derived, self._key(source.link)
        if derived.rows is not None:
            expected = agreement.rows_owned(owners, self._size(table))
        elif derived.owner is not None:
            expected = agreement.owners_values(owners, self._raw[source.link.target][derived.owner])
        else:
            expected = agreement.ranks(owners, first=derived.rank or 0)
        return agreement.compared(self._raw[table][source.column], expected, plain=source.plain)

    # -- columns without codes ---------------------------------------------------------------------------------

    def _raw_codes(self, table: str, source: Magnitude | Step | Cell | Present) -> Codes:
        """The codes of the values of a column; -1 for NULL and for values without a code."""
        values = self._raw[table][source.column]
        there = one_array(values.is_valid()).to_numpy(zero_copy_only=False)
        codes = np.full(len(values), -1, np.int64)
        if isinstance(source, Present):
            codes[there] = 0
            return codes
        valid = values.drop_null()
        if isinstance(source, Magnitude):
            codes[there] = Magnitudes(type=source.type).of(valid)
        elif isinstance(source, Step):
            codes[there] = coarsest_step(source.type, valid)
        else:
            ticks = source.grid.ticks(valid)
            cells = np.searchsorted(np.array(source.starts, np.int64), ticks, side="right") - 1
            cells[(ticks > source.last) | np.isin(ticks, np.array(source.without, np.int64))] = -1
            codes[there] = cells
        return codes

    def _ticks(self, table: str, column: str, grid: Grid, low: int, high: int) -> tuple[Integers, Integers]:
        """The ticks of the values between low and high, and the rows that have them."""
        values = self._raw[table][column]
        rows = np.flatnonzero(one_array(values.is_valid()).to_numpy(zero_copy_only=False))
        ticks = grid.ticks(values.drop_null())
        inside = (ticks >= low) & (ticks <= high)
        return ticks[inside], rows[inside]

    def _votes(self, table: str, rows: Integers) -> NDArray[np.bool_]:
        """Of these rows, one for each entity that has any."""
        return exact.keep_rows(self._data[table].entities[rows], {}, 1)

    # -- tables ------------------------------------------------------------------------------------------------

    def _row_weights(self, table: str) -> Integers | None:
        """What each row weighs; None if all entities have one row."""
        if table not in self._weights:
            self._weights[table] = exact.row_weights(self._data[table].entities, ENTITY_WEIGHT)
        return self._weights[table]

    def _raw_weights(self, table: str) -> Integers:
        weights = self._row_weights(table)
        return np.full(self._size(table), ENTITY_WEIGHT, np.int64) if weights is None else weights

    def _size(self, table: str) -> int:
        return len(self._data[table].entities)

    def _key(self, link: LinkFacts) -> Integers:
        return self._data[link.table].keys[link.name]
