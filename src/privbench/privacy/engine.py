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

from privbench.encode.codec import Codec, Codecs
from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.grid import Grid, one_array
from privbench.encode.relative import differences
from privbench.privacy import exact
from privbench.privacy.blocks import Block, ColumnSplit
from privbench.privacy.differences import DATE_CELLS, date_cells, most_in_a_window, near, near_cells
from privbench.privacy.exact import Codes, Integers
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.feature_codes import FeatureCodes, RawColumns
from privbench.privacy.features import Axis, Base, Difference, Nearness
from privbench.privacy.noise import Entropy
from privbench.privacy.pair_cover import covering_groups
from privbench.privacy.queries import (
    ENTITY_WEIGHT,
    VOTE_CELLS,
    CapChoice,
    Counts,
    Dependence,
    Dependency,
    DependencyChoice,
    DependencyVotes,
    FrequentValues,
    HeavyHitters,
    Histogram,
    Pair,
    PairChoice,
    Query,
    SplitChoice,
    Sums,
)
from privbench.privacy.rows import KeptRows
from privbench.privacy.windows import NEAR

CORES = 4
PARALLEL_ROWS = 200_000
"""Blocks larger than this count their entropies on several cores."""
ROWS_PER_CELL = 8
"""A joint histogram of several columns has at most one cell for so many rows."""

VOTERS = 2**16
"""Entities whose votes are worked out at once."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueCounts:
    """The different values that something counts for, ascending ticks or strings in any order, and their counts."""

    values: Integers | pa.Array
    counts: Integers


Weighed = tuple[str, int]
"""A table, and the rows from which on its entities weigh the same."""

Exact = Integers | ValueCounts
"""Counts by cell, scores by candidate, or counts by value."""


class Engine(Protocol):
    """Evaluates queries exactly. Which rows of a table are kept, and blocks of them, queries describe."""

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query."""
        ...

    def take_differences(self, columns: Sequence[Difference]) -> None:
        """Hold differences instead of the values of columns that have no codes yet."""
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
        self._open(data, raw or {}, entropy)

    def _open(self, data: CodedDatabase, raw: RawColumns, entropy: Entropy) -> None:
        self._data, self._raw, self._entropy = data, raw, entropy
        self._rows = KeptRows(data)
        self._features = FeatureCodes(data, raw, self._rows, entropy)
        self._weights: dict[Weighed, Integers | None] = {}
        self._pairs: dict[tuple[Weighed, Axis, Axis], Integers] = {}
        self._scores: dict[tuple[Weighed, Pair], int] = {}
        self._leads: dict[Dependency, int] = {}
        self._spreads: dict[tuple[str, str, Base], tuple[Integers, Integers]] = {}
        self._entropies: dict[tuple[str, tuple[tuple[int, bool], ...], frozenset[str]], float] = {}

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query."""
        return [self._answer(query) for query in queries]

    def take_differences(self, columns: Sequence[Difference]) -> None:
        """Hold differences instead of the values of columns that have no codes yet."""
        raw = {table: dict(values) for table, values in self._raw.items()}
        for c in columns:
            rows = self._features.base_rows(c.table, c.base)
            bases = self._raw[c.base.table(c.table)][c.base.column].take(pa.array(np.maximum(rows, 0), mask=rows < 0))
            raw[c.table][c.column] = differences(c.type, self._raw[c.table][c.column], c.base_type, bases)
        self._open(self._data, raw, self._entropy)

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, and let go of all values."""
        self._open({name: self._encoded(name, codecs[name]) for name in self._data}, {}, self._entropy)

    def _encoded(self, name: str, codecs: Mapping[str, Codec]) -> CodedTable:
        """A table with all of its codes, in the order of its columns."""
        table, raw = self._data[name], self._raw.get(name, {})
        codes = {n: codec.encode(raw[n]) if n in raw else table.codes[n] for n, codec in codecs.items()}
        return CodedTable(codes=codes, keys=table.keys, entities=table.entities)

    # -- kept rows and blocks ----------------------------------------------------------------------------------

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept."""
        self._rows.cap(table, cap, owner, orphans=orphans)

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        self._rows.split(block, split, right)

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block."""
        return self._rows.codes(block, columns)

    def forget(self, table: str) -> None:
        """Let go of what was counted for a table."""
        self._features.forget(table)
        self._pairs = {key: cells for key, cells in self._pairs.items() if key[0][0] != table}
        self._scores, self._leads, self._spreads = {}, {}, {}

    # -- queries -----------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _answer(self, query: Query) -> Exact:
        raise ValueError(f"{query}: is not a query that can be counted")

    @_answer.register
    def _(self, query: Histogram) -> Exact:
        if query.block is not None:
            columns = [
                (self._rows.values(self._features.bins(query.table, axis, query.block), query.block), axis.size)
                for axis in query.axes
            ]
            return self._cells(columns, None, unit=1, rows=len(self._rows.of(query.block)))
        if query.counts is Counts.VOTES:
            there = self._features.bins(query.table, query.axes[0]) >= 0
            return np.array([len(np.unique(self._data[query.table].entities[there]))], np.int64)
        rows = (query.table, query.full_rows)
        return self._pair(rows, *query.axes) if len(query.axes) == 2 else self._weighted(rows, query.axes)

    @_answer.register
    def _(self, query: Sums) -> Exact:
        codes = self._rows.values(self._data[query.table].codes[query.column], query.block)
        (axis,) = query.axes
        cells = self._rows.values(self._features.bins(query.table, axis, query.block), query.block)
        return exact.sums_by_cell(exact.coordinates(codes, query.size), cells, axis.size)

    @_answer.register
    def _(self, query: Dependence) -> Exact:
        return self._dependences(query.block, [query.split], query.columns, query.most_rows)

    @_answer.register
    def _(self, query: SplitChoice) -> Exact:
        return -self._dependences(query.block, query.candidates, query.columns, query.most_rows)

    @_answer.register
    def _(self, query: PairChoice) -> Exact:
        return np.array([*self._pair_scores((query.table, query.full_rows), query.candidates), 0], np.int64)

    @_answer.register
    def _(self, query: DependencyChoice) -> Exact:
        return np.array([*(self._lead(candidate) for candidate in query.candidates), query.none], np.int64)

    @_answer.register
    def _(self, query: DependencyVotes) -> Exact:
        shares = [self._shares(candidate) for candidate in query.candidates]
        entities = max(map(len, shares))
        parts = (
            np.stack([_rows(share, start, start + VOTERS, entities) for share in shares], axis=1)
            for start in range(0, entities, VOTERS)
        )
        none = np.zeros((len(shares), VOTE_CELLS), np.int64)
        return sum((exact.shared_votes(part, ENTITY_WEIGHT) for part in parts), start=none)

    @_answer.register
    def _(self, query: CapChoice) -> Exact:
        rows = self._rows.of_kept_owners(query.table, query.owner, orphans=query.orphans)
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

    def _weighted(self, rows: Weighed, axes: Sequence[Axis]) -> Integers:
        table, full_rows = rows
        columns = [(self._features.bins(table, axis), axis.size) for axis in axes]
        weights = self._row_weights(table, full_rows)
        return self._cells(columns, weights, unit=ENTITY_WEIGHT, rows=self._size(table))

    def _lead(self, candidate: Dependency) -> int:
        """By how much the rows that agree with a candidate outweigh what counts against it; worked out once."""
        if candidate not in self._leads:
            table, source = candidate.table, candidate.feature.source
            if isinstance(source, Nearness):
                self._leads[candidate] = self._gain(table, source)
            else:
                agree, differ, _ = self._by_code(table, self._features.codes(table, candidate.feature), VOTE_CELLS)
                self._leads[candidate] = int(agree - differ)
        return self._leads[candidate]

    def _gain(self, table: str, source: Nearness) -> int:
        """The weight of differences below so many days, less that of the same rows' dates in the fullest window."""
        key = (table, source.column, source.base)
        if key not in self._spreads:
            days = self._features.differences(table, source.column, source.base)
            based = np.where(np.isnan(days), np.nan, self._features.days(table, source.column))
            self._spreads[key] = (
                self._by_code(table, near_cells(days), len(NEAR) + 1),
                self._by_code(table, date_cells(based), DATE_CELLS),
            )
        differing, dates = self._spreads[key]
        return near(differing, source.days) - most_in_a_window(dates, source.days)

    def _by_code(self, table: str, codes: Codes, size: int) -> Integers:
        """The weight of rows by their code."""
        return self._cells([(codes, size)], self._row_weights(table), unit=ENTITY_WEIGHT, rows=0)

    def _shares(self, candidate: Dependency) -> Integers:
        """What the rows of each entity that agree with a candidate, differ from it and are idle weigh."""
        table, entities = candidate.table, self._data[candidate.table].entities
        cells = entities * VOTE_CELLS + self._features.codes(table, candidate.feature)
        size = (int(entities.max(initial=-1)) + 1) * VOTE_CELLS
        return exact.sums_by_cell(self._raw_weights(table), cells, size).reshape(-1, VOTE_CELLS)

    def _pair(self, rows: Weighed, first: Axis, second: Axis) -> Integers:
        """Weights by the bins of two axes, counted once for either order of them."""
        if (rows, second, first) in self._pairs:
            return self._pairs[rows, second, first].T
        if (rows, first, second) not in self._pairs:
            self._pairs[rows, first, second] = self._weighted(rows, (first, second))
        return self._pairs[rows, first, second]

    def _pair_scores(self, rows: Weighed, pairs: Sequence[Pair]) -> list[int]:
        """How far pairs of axes are from what is expected of them; each worked out once."""
        new = [pair for pair in pairs if (rows, pair) not in self._scores]
        self._count_pairs(rows, [pair for pair in new if not self._is_counted(rows, pair)])
        for pair in new:
            cells = self._pair(rows, pair.first, pair.second)
            score = exact.distance_score(cells, pair.expected, pair.penalty, pair.sensitivity_factor)
            self._scores[rows, pair] = score
        return [self._scores[rows, pair] for pair in pairs]

    def _is_counted(self, rows: Weighed, pair: Pair) -> bool:
        """Whether a pair of axes was counted before, perhaps with something else expected of it."""
        return (rows, pair.first, pair.second) in self._pairs or (rows, pair.second, pair.first) in self._pairs

    def _count_pairs(self, rows: Weighed, pairs: Sequence[Pair]) -> None:
        """Count the tables of pairs, in as few passes over the rows as their bins allow.

        Pairs with an axis in which some rows have no bin are counted alone: such rows would be missing from the tables
        of other pairs, too.
        """
        together = [pair for pair in pairs if pair.first.total and pair.second.total]
        axes = list(dict.fromkeys(axis for pair in together for axis in (pair.first, pair.second)))
        place = {axis: at for at, axis in enumerate(axes)}
        wanted = [(place[pair.first], place[pair.second]) for pair in together]
        most = min(max(self._size(rows[0]) // ROWS_PER_CELL, 2**10), 2**16)
        for group in covering_groups([axis.size for axis in axes], wanted, most=most):
            cells = self._weighted(rows, [axes[at] for at in group])
            for (i, a), (j, b) in combinations(enumerate(group), 2):
                others = tuple(k for k in range(len(group)) if k not in (i, j))
                self._pairs[rows, axes[a], axes[b]] = cells.sum(axis=others)

    def _dependences(
        self, block: Block, splits: Sequence[ColumnSplit], columns: Mapping[str, ColumnFacts], most_rows: int
    ) -> Integers:
        """The dependence of each split of columns, in units; on several cores if the block is large."""
        rows = len(self._rows.of(block))
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
                *exact.joint_keys((column_codes, columns[name].size) for name, column_codes in codes.items())
            )
        return self._entropies[key]

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

    def _row_weights(self, table: str, full_rows: int = 1) -> Integers | None:
        """What each row weighs; None if all of them weigh ENTITY_WEIGHT."""
        key = (table, full_rows)
        if key not in self._weights:
            self._weights[key] = exact.row_weights(self._data[table].entities, ENTITY_WEIGHT, full_rows)
        return self._weights[key]

    def _raw_weights(self, table: str) -> Integers:
        weights = self._row_weights(table)
        return np.full(self._size(table), ENTITY_WEIGHT, np.int64) if weights is None else weights

    def _size(self, table: str) -> int:
        return len(self._data[table].entities)


def _rows(shares: Integers, start: int, end: int, rows: int) -> Integers:
    """Some rows of shares; entities beyond the last have no rows, and so no shares."""
    part = shares[start:end]
    return np.pad(part, ((0, min(end, rows) - start - len(part)), (0, 0)))
