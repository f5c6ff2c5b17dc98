"""Exact counts of one part of the private rows. Only the engine asks, and adds up what counters say of all parts.

Nothing here is noisy, and nothing here may be returned as it is. A tally is what counters are asked for: most queries
are tallies themselves; others, such as choices, are worked out from tallies by the engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.encode.coded import CodedTable
from privbench.encode.grid import Grid, one_array
from privbench.encode.lookup import LookedUp
from privbench.encode.relative import differences
from privbench.privacy import exact
from privbench.privacy.blocks import Block, ColumnSplit
from privbench.privacy.common import Common
from privbench.privacy.differences import DATE_CELLS, date_cells, near_cells
from privbench.privacy.exact import Codes, Integers
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.feature_codes import FeatureCodes
from privbench.privacy.features import Axis, Base, Difference, InDegree
from privbench.privacy.part import Part
from privbench.privacy.queries import (
    ENTITY_WEIGHT,
    VOTE_CELLS,
    CapChoice,
    Counts,
    Dependence,
    Dependency,
    DependencyVotes,
    FrequentValues,
    HeavyHitters,
    Histogram,
    SplitChoice,
    Sums,
)
from privbench.privacy.rows import KeptRows
from privbench.privacy.windows import NEAR
from privbench.threads import cores, in_order

PARALLEL_ROWS = 200_000
"""Blocks larger than this count their entropies on several cores."""
VOTERS = 2**16
"""Entities whose votes are worked out at once."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueCounts:
    """The different values that something counts for, ticks or strings, ascending, and their counts."""

    values: Integers | pa.Array
    counts: Integers


class Weighed(NamedTuple):
    """Rows of a table, each with its weight."""

    table: str
    full_rows: int
    """The rows from which on entities weigh the same."""


class Cells(NamedTuple):
    """The weight of rows by the bins of some axes."""

    rows: Weighed
    axes: tuple[Axis, ...]


class Lead(NamedTuple):
    """By how much the rows that agree with a candidate outweigh those that differ."""

    candidate: Dependency


class Spread(NamedTuple):
    """The weight of differences between dates by `near_cells`, and of the dates that have one by `date_cells`."""

    table: str
    column: str
    base: Base


class Targets(NamedTuple):
    """How many of the keys that count reference rows, by the numbers of these."""

    degrees: InDegree


Tally = (
    Histogram
    | Sums
    | DependencyVotes
    | CapChoice
    | HeavyHitters
    | FrequentValues
    | Dependence
    | SplitChoice
    | Cells
    | Lead
    | Spread
    | Targets
)
Counted = Integers | ValueCounts


class PartCounter:
    """Counts the rows of a part. What several tallies of a batch need is worked out once, and then let go of."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._data, self._raw = part.tables, part.raw
        self._rows = KeptRows(self._data)
        self._features = FeatureCodes(part, self._rows)
        self._weights: dict[Weighed, Integers | None] = {}
        self._add_up: exact.Adder = exact.add_up
        self._entropies: dict[tuple[str, tuple[tuple[int, bool], ...], frozenset[str]], float] = {}

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def tallies(self, tallies: Sequence[Tally], common: Common) -> list[Counted]:
        """The exact counts of each tally, given what all parts know alike."""
        for cap in common.caps[len(self._rows.caps) :]:
            self._rows.cap(cap)
        self._features.common = common
        self._add_up = compiled_add_up() if common.compiled else exact.add_up
        counted = [self._tally(tally) for tally in tallies]
        self._weights = {}
        self._features.forget()
        return counted

    # -- blocks ------------------------------------------------------------------------------------------------

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        self._rows.split(block, split, right)

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block."""
        return self._rows.codes(block, columns)

    # -- tallies -----------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _tally(self, tally: Tally) -> Counted:
        raise ValueError(f"{tally}: cannot be counted")

    @_tally.register
    def _(self, tally: Histogram) -> Counted:
        if tally.block is not None:
            columns = [
                (self._rows.values(self._features.bins(tally.table, axis, tally.block), tally.block), axis.size)
                for axis in tally.axes
            ]
            return self._cells(columns, None, unit=1, rows=len(self._rows.of(tally.block)))
        if tally.counts is Counts.VOTES:
            there = self._features.bins(tally.table, tally.axes[0]) >= 0
            return np.array([len(np.unique(self._data[tally.table].entities[there]))], np.int64)
        return self._tally(Cells(Weighed(tally.table, tally.full_rows), tally.axes))

    @_tally.register
    def _(self, tally: Cells) -> Counted:
        table = tally.rows.table
        columns = [(self._features.bins(table, axis), axis.size) for axis in tally.axes]
        return self._cells(columns, self._row_weights(tally.rows), unit=ENTITY_WEIGHT, rows=self._size(table))

    @_tally.register
    def _(self, tally: Sums) -> Counted:
        codes = self._rows.values(self._data[tally.table].codes[tally.column], tally.block)
        (axis,) = tally.axes
        cells = self._rows.values(self._features.bins(tally.table, axis, tally.block), tally.block)
        return exact.sums_by_cell(exact.coordinates(codes, tally.size), cells, axis.size)

    @_tally.register
    def _(self, tally: Dependence) -> Counted:
        return self._dependences(tally.block, [tally.split], tally.columns, tally.most_rows)

    @_tally.register
    def _(self, tally: SplitChoice) -> Counted:
        return -self._dependences(tally.block, tally.candidates, tally.columns, tally.most_rows)

    @_tally.register
    def _(self, tally: Lead) -> Counted:
        table, feature = tally.candidate.table, tally.candidate.feature
        agree, differ, _ = self._by_code(table, self._features.codes(table, feature), VOTE_CELLS)
        return np.array([agree - differ], np.int64)

    @_tally.register
    def _(self, tally: Spread) -> Counted:
        days = self._features.differences(tally.table, tally.column, tally.base)
        based = np.where(np.isnan(days), np.nan, self._features.days(tally.table, tally.column))
        differing = self._by_code(tally.table, near_cells(days), len(NEAR) + 1)
        return np.concatenate([differing, self._by_code(tally.table, date_cells(based), DATE_CELLS)])

    @_tally.register
    def _(self, tally: DependencyVotes) -> Counted:
        shares = [self._shares(candidate) for candidate in tally.candidates]
        entities = max(map(len, shares))
        parts = (
            np.stack([_rows(share, start, start + VOTERS, entities) for share in shares], axis=1)
            for start in range(0, entities, VOTERS)
        )
        none = np.zeros((len(shares), VOTE_CELLS), np.int64)
        return sum((exact.shared_votes(part, ENTITY_WEIGHT) for part in parts), start=none)

    @_tally.register
    def _(self, tally: CapChoice) -> Counted:
        rows = self._rows.of_kept_owners(tally.table, tally.owner, orphans=tally.orphans)
        per_entity = np.unique(self._data[tally.table].entities[rows], return_counts=True)[1]
        return exact.entities_above(per_entity, tally.candidates)

    @_tally.register
    def _(self, tally: HeavyHitters) -> Counted:
        ticks, rows = self._ticks(tally.table, tally.column, tally.grid, tally.low, tally.high)
        values, at = np.unique(ticks, return_inverse=True)
        sums = exact.weighted_histogram([(at, len(values))], self._raw_weights(tally.table)[rows], ENTITY_WEIGHT)
        return ValueCounts(values, sums)

    @_tally.register
    def _(self, tally: FrequentValues) -> Counted:
        if tally.grid is not None:
            ticks, rows = self._ticks(tally.table, tally.column, tally.grid, tally.low, tally.high)
            return ValueCounts(*np.unique(ticks[self._votes(tally.table, rows)], return_counts=True))
        values = self._raw[tally.table][tally.column]
        left = pc.and_(values.is_valid(), pc.invert(pc.is_in(values, value_set=pa.array(tally.without, values.type))))
        rows = np.flatnonzero(one_array(left).to_numpy(zero_copy_only=False))
        votes = pc.value_counts(values.take(pa.array(rows[self._votes(tally.table, rows)])))
        return ValueCounts(votes.field("values"), votes.field("counts").to_numpy().astype(np.int64))

    @_tally.register
    def _(self, tally: Targets) -> Counted:
        return ValueCounts(*np.unique(self._features.targets(tally.degrees), return_counts=True))

    # -- counting ----------------------------------------------------------------------------------------------

    def _cells(
        self, columns: Sequence[tuple[Codes, int]], weights: Integers | None, *, unit: int, rows: int
    ) -> Integers:
        """Rows, or their weights, by cell; rows with a negative code are not counted."""
        if not columns:
            return np.array([rows * unit if weights is None else int(weights.sum())], np.int64)
        return exact.weighted_histogram(columns, weights, unit, add=self._add_up)

    def _by_code(self, table: str, codes: Codes, size: int) -> Integers:
        """The weight of rows by their code."""
        return self._cells([(codes, size)], self._row_weights(Weighed(table, 1)), unit=ENTITY_WEIGHT, rows=0)

    def _shares(self, candidate: Dependency) -> Integers:
        """What the rows of each entity that agree with a candidate, differ from it and are idle weigh."""
        table, entities = candidate.table, self._data[candidate.table].entities
        cells = entities.astype(np.int64) * VOTE_CELLS + self._features.codes(table, candidate.feature)
        size = (int(entities.max(initial=-1)) + 1) * VOTE_CELLS
        return exact.sums_by_cell(self._raw_weights(table), cells, size).reshape(-1, VOTE_CELLS)

    def _dependences(
        self, block: Block, splits: Sequence[ColumnSplit], columns: Mapping[str, ColumnFacts], most_rows: int
    ) -> Integers:
        """The dependence of each split of columns, in units; on several cores if the block is large."""
        rows = len(self._rows.of(block))
        wanted = {frozenset(half) for split in splits for half in (*split, split[0] + split[1])}
        if rows >= PARALLEL_ROWS:
            list(in_order(lambda names: self._entropy_of(block, names, columns), wanted, threads=cores()))

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

    def _row_weights(self, rows: Weighed) -> Integers | None:
        """What each row weighs; None if all of them weigh ENTITY_WEIGHT."""
        if rows not in self._weights:
            self._weights[rows] = exact.row_weights(self._data[rows.table].entities, ENTITY_WEIGHT, rows.full_rows)
        return self._weights[rows]

    def _raw_weights(self, table: str) -> Integers:
        weights = self._row_weights(Weighed(table, 1))
        return np.full(self._size(table), ENTITY_WEIGHT, np.int64) if weights is None else weights

    def _size(self, table: str) -> int:
        return len(self._data[table].entities)


def compiled_add_up() -> exact.Adder:
    """The compiled loop, if the extra `fast` is there and has a folder to keep what it compiles, else NumPy's."""
    try:
        from privbench.privacy.compiled import add_up  # noqa: PLC0415  takes long
    except (ImportError, RuntimeError):
        return exact.add_up
    return add_up


def _rows(shares: Integers, start: int, end: int, rows: int) -> Integers:
    """Some rows of shares; entities beyond the last have no rows, and so no shares."""
    part = shares[start:end]
    return np.pad(part, ((0, min(end, rows) - start - len(part)), (0, 0)))


def with_differences(part: Part, columns: Sequence[Difference]) -> Part:
    """A part that holds differences instead of the values of columns that have no codes yet."""
    features = FeatureCodes(part, KeptRows(part.tables))
    raw = {table: dict(values) for table, values in part.raw.items()}
    for c in columns:
        rows = features.base_rows(c.table, c.base)
        bases = part.raw[c.base.table(c.table)][c.base.column].take(pa.array(np.maximum(rows, 0), mask=rows < 0))
        raw[c.table][c.column] = differences(c.type, part.raw[c.table][c.column], c.base_type, bases)
    return Part(tables=part.tables, raw=raw)


def encoded(part: Part, codecs: Codecs) -> Part:
    """A part with the codes of all columns, in the order of its columns, and no values."""
    tables = {}
    for name, table in part.tables.items():
        raw = part.raw.get(name, {})
        codes = {n: LookedUp(codec).encode(raw[n]) if n in raw else table.codes[n] for n, codec in codecs[name].items()}
        tables[name] = CodedTable(codes=codes, keys=table.keys, entities=table.entities, numbers=table.numbers)
    return Part(tables=tables, raw={})
