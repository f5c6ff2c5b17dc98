"""By which column the rows of a table are numbered, as the data say: for drafts that read domains from the data."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array, whole_numbers
from privbench.io.base import Source, read_whole
from privbench.model.order import ids_are_public, is_numbered
from privbench.schema.lists import listed_columns
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Protection

LEAST_CORRELATION = 0.9
"""Keys that are numbered in time keep a rank correlation of nearly 1 with it, even where some rows came late."""
FEWEST_ROWS = 20
"""Fewer rows may stand in order by chance."""
_DATES = frozenset({Kind.DATE, Kind.TIMESTAMP})


def find_numbering(source: Source, protection: Protection, table: Table) -> str | None:
    """The date or timestamp of a private table in whose order its keys ascend, if there is one."""
    there = {*table.attributes, *listed_columns(protection, table.name)}
    dates = [c for c in table.columns if c.name in there and c.type.kind in _DATES]
    if not dates or not _can_be_numbered(protection, table):
        return None
    key = table.column(table.primary_key[0])
    order = pc.sort_indices(_read(source, table, key))
    found = {c.name: _correlation(c, _read(source, table, c).take(order)) for c in dates}
    best = max(found, key=lambda name: found[name])
    return best if found[best] >= LEAST_CORRELATION else None


def _can_be_numbered(protection: Protection, table: Table) -> bool:
    kept = table.name == protection.entity and ids_are_public(protection)
    if kept or not table.primary_key or not is_numbered(table, table.primary_key):
        return False
    return table.column(table.primary_key[0]).type.kind is not Kind.TEXT  # which has no order in time


def _correlation(column: Column, values: pa.ChunkedArray) -> float:
    """Of values with their place, NULLs left out; 0 where there are few."""
    there = one_array(values.drop_null())
    return rank_correlation(whole_numbers(column.type, there)) if len(there) >= FEWEST_ROWS else 0.0


def rank_correlation(numbers: NDArray[np.int64]) -> float:
    """Spearman's correlation of numbers with their place; 0 if they are all the same.

    >>> rank_correlation(np.arange(30))
    1.0
    """
    ranks = _ranks(numbers)
    if ranks.min() == ranks.max():
        return 0.0
    return round(float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]), 12)


def _ranks(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rank of each number, the mean of theirs for those that are equal."""
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = ends - (counts + 1) / 2
    return means[which]


def _read(source: Source, table: Table, column: Column) -> pa.ChunkedArray:
    return read_whole(source, table.name, [column]).column(0)
