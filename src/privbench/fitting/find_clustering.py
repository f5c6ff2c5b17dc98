"""Which rows of the entity table lie together: as the schema says, or as the data say where drafts read them.

In the data, what counts is on how many pages the rows of a value lie: an index leads a query to them. A column by whose
values rows lie on clearly fewer pages than rows in a random order is a candidate. Levels are added one after another.
Each time, for every candidate, the share of rows that must be in its order is found by bisection, so that values lie on
as many pages as they do in the data; the column with the largest share comes next, since what is in order as a whole
stands above what is in order here and there.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.counted import ValueCounter
from privbench.encode.grid import one_array
from privbench.fitting.find_numbering import rank_correlation
from privbench.io.base import Source
from privbench.model.clustering import clusterable_columns, divided, value_ranks
from privbench.schema.domain import Origin
from privbench.schema.table_spec import ClusterSpec, TableSpec
from privbench.schema.tables import Table
from privbench.schema.unit import Protection

PAGE_ROWS = 100
"""About how many rows a page of a DBMS holds."""
FEWEST_PAGES, MOST_PAGES = 20, 650
"""With fewer pages, where rows lie does not matter; of more, so many are looked at, all over the table."""
FEWEST_ALIKE = 10
"""Rows per value, on average: rows of a value that hardly repeats lie on one page, wherever that is."""
MOST_VALUES = 256
"""Where there are more values, neighbouring ones are taken together: a query then asks for a range of them."""
FEWER_PAGES = 1.15
"""Values lie together if a random order spreads them over so many times as many pages."""
MOST_LEVELS = 4
MOST_FITTED = 8
"""Of so many columns, those that lie together most, shares are found for each level."""
BISECTIONS = 7
WHOLE = 0.97
"""From this share on, all rows are in order."""
LEAST_SHARE = 0.05
RUNS = (30, 100, 300, 1000, 3000)
"""Lengths of runs to choose from."""
OUT_OF_ORDER = 0.1
"""By how much the correlation of values with places may fall short of that of rows without runs."""

Numbers = NDArray[np.int64]


def clustered_as_stored(protection: Protection, table: Table) -> tuple[ClusterSpec, ...]:
    """The columns of the index that the source stores a table by, as far as rows can lie by them."""
    possible = clusterable_columns(protection, table)
    stored = next((index.columns for index in table.indexes if index.clustered), ())
    return tuple(ClusterSpec(column=c, origin=Origin.SCHEMA) for c in takewhile(possible.__contains__, stored))


def with_clustering(source: Source, protection: Protection, tables: Mapping[str, TableSpec]) -> dict[str, TableSpec]:
    """The tables in which the spec says by which columns rows lie; none where keys are numbered by another column."""
    entity, words = protection.schema.table(protection.entity), tables[protection.entity]
    columns = clusterable_columns(protection, entity)
    if words.numbered_by is not None or not columns:
        return dict(tables)
    found = find_clustering(source, entity, columns)
    return {**tables, entity.name: words.model_copy(update={"clustered_by": found})}


def find_clustering(source: Source, table: Table, columns: Sequence[str]) -> tuple[ClusterSpec, ...]:
    """The columns by which rows of a table lie together; none if they lie anyhow, or all on a few pages."""
    rows = source.rows(table.name)
    if rows < FEWEST_PAGES * PAGE_ROWS:
        return ()
    pages, different = _read_pages(source, table, columns, rows)
    repeating = [name for name in columns if different[name] * FEWEST_ALIKE <= rows]
    looked_at = {name: _few_values(value_ranks(one_array(pages.column(name)))) for name in repeating}
    return _Search(looked_at).levels() if looked_at else ()


def _read_pages(source: Source, table: Table, columns: Sequence[str], rows: int) -> tuple[pa.Table, dict[str, int]]:
    """Whole pages from all over a table; and how many different values, NULL among them, the columns have in all."""
    number = rows // PAGE_ROWS
    chosen = np.arange(number) if number <= MOST_PAGES else np.arange(MOST_PAGES) * number // MOST_PAGES
    wanted = (chosen[:, None] * PAGE_ROWS + np.arange(PAGE_ROWS)).ravel()
    part = Table(name=table.name, columns=tuple(map(table.column, columns)))
    counters = {c.name: ValueCounter(c.type.arrow) for c in part.columns}
    kept, start = [], 0
    for batch in source.read(part):
        for name, counter in counters.items():
            counter.add(batch.column(name))
        first, last = np.searchsorted(wanted, (start, start + batch.num_rows))
        kept.append(batch.take(pa.array(wanted[first:last] - start)))
        start += batch.num_rows
    counted = {name: counter.counted() for name, counter in counters.items()}
    return pa.Table.from_batches(kept), {name: len(c.values) + c.has_nulls for name, c in counted.items()}


def _few_values(ranks: Numbers) -> Numbers:
    """The ranks themselves, or those of ranges of about as many rows; equal values are never apart."""
    counts = np.bincount(ranks)
    if len(counts) <= MOST_VALUES:
        return ranks
    return ((np.cumsum(counts) - counts) * MOST_VALUES // len(ranks))[ranks]


class _Search:
    """Adds level after level until values lie on as many pages as they do in the data."""

    def __init__(self, columns: Mapping[str, Numbers]) -> None:
        """`columns` are the ranks of values, row by row as they lie."""
        self._rng = np.random.default_rng(0)
        rows = len(next(iter(columns.values())))
        shuffled = self._rng.permutation(rows)
        self._real = dict(columns)
        self._columns = {name: ranks[shuffled] for name, ranks in columns.items()}
        self._pieces = np.zeros(rows, np.int64)

    def levels(self) -> tuple[ClusterSpec, ...]:
        found: list[ClusterSpec] = []
        while len(found) < MOST_LEVELS:
            names = [c for c in self._columns if c not in {level.column for level in found}]
            spread = {c: self._pages(self._pieces, c) / _pages(self._real[c]) for c in names}
            worst = sorted((c for c in names if spread[c] > FEWER_PAGES), key=lambda c: -spread[c])[:MOST_FITTED]
            fitted = [level for level in map(self._fitted, worst) if level.share >= LEAST_SHARE]
            if not fitted:
                break
            best = self._in_runs(max(fitted, key=lambda level: level.share))
            found.append(best)
            self._pieces = self._divided(best)
        return tuple(found)

    def _fitted(self, column: str) -> ClusterSpec:
        """A level by a column, with the share of rows that makes its values lie on as many pages as in the data."""
        wanted, low, high = _pages(self._real[column]), 0.0, 1.0
        for _ in range(BISECTIONS):
            share = (low + high) / 2
            enough = self._pages(self._divided(_level(column, share)), column) <= wanted
            low, high = (low, share) if enough else (share, high)
        return _level(column, high)

    def _in_runs(self, level: ClusterSpec) -> ClusterSpec:
        """The level with runs, if rows in order would follow the order of values far more than real ones do.

        Runs are as long as it takes for neighbours to have the same value as often as in the data.
        """
        real = self._real[level.column]
        in_order = self._laid_out(self._divided(level), level.column)
        if abs(rank_correlation(in_order)) - abs(rank_correlation(real)) <= OUT_OF_ORDER:
            return level
        runs = [level.model_copy(update={"run": run}) for run in RUNS]
        return min(runs, key=lambda one: abs(_same(self._laid_out(self._divided(one), one.column)) - _same(real)))

    def _divided(self, level: ClusterSpec) -> Numbers:
        return divided(self._pieces, self._columns[level.column], level, self._rng)

    def _laid_out(self, pieces: Numbers, column: str) -> Numbers:
        return self._columns[column][np.argsort(pieces, kind="stable")]

    def _pages(self, pieces: Numbers, column: str) -> int:
        return _pages(self._laid_out(pieces, column))


def _level(column: str, share: float) -> ClusterSpec:
    return ClusterSpec(column=column, share=1 if share >= WHOLE else round(share, 2) or 0.01, origin=Origin.DATA)


def _pages(ranks: Numbers) -> int:
    """On how many pages the rows of a value lie, summed over the values."""
    pages, values = np.arange(len(ranks)) // PAGE_ROWS, int(ranks.max()) + 1
    return int(np.count_nonzero(np.bincount(pages * values + ranks)))


def _same(ranks: Numbers) -> float:
    """How often neighbours have the same value."""
    return float(np.mean(ranks[1:] == ranks[:-1]))
