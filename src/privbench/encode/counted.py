"""The different values of a column and how many rows have each, gathered batch by batch.

That is all that a suggested domain depends on, so that memory grows with the different values of a column, not with its
rows. It holds private values: only drafts that read domains from the data make one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import one_array

LEAST_MERGED = 65_536
"""Fewer different values than this are not worth bringing together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """Different values, none of them NULL, in the order of their first rows; how many rows have each; and all rows."""

    values: pa.Array
    counts: NDArray[np.int64]
    rows: int

    @property
    def known(self) -> int:
        """How many rows have a value."""
        return int(self.counts.sum())

    @property
    def has_nulls(self) -> bool:
        return self.known < self.rows

    def only(self, mask: pa.Array) -> "Counted":
        """The values where a mask is true."""
        return Counted(
            values=self.values.filter(mask), counts=self.counts[mask.to_numpy(zero_copy_only=False)], rows=self.rows
        )


class ValueCounter:
    """Counts the values of a column as its batches come.

    >>> counter = ValueCounter(pa.string())
    >>> for batch in (["b", None, "a"], ["a", "c"]):
    ...     counter.add(pa.array(batch))
    >>> counted = counter.counted()
    >>> counted.values.to_pylist(), counted.counts.tolist(), counted.rows
    (['b', 'a', 'c'], [1, 2, 1], 5)
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._values = [pa.array([], kind)]
        self._counts: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self._rows = 0

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Count the values of a batch."""
        found = pc.value_counts(values)
        mask = found.field("values").is_valid()
        self._values.append(found.field("values").filter(mask))
        self._counts.append(found.field("counts").filter(mask).to_numpy(zero_copy_only=False))
        self._rows += len(values)
        if sum(map(len, self._counts[1:])) > max(len(self._counts[0]), LEAST_MERGED):
            self._merge()

    def counted(self) -> Counted:
        """All that was counted."""
        self._merge()
        return Counted(values=self._values[0], counts=self._counts[0], rows=self._rows)

    def _merge(self) -> None:
        if len(self._values) > 2 or len(self._values[0]):
            encoded = one_array(pa.chunked_array(self._values)).dictionary_encode()
            counts = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), weights=np.concatenate(self._counts))
            self._values, self._counts = [encoded.dictionary], [counts.astype(np.int64)]
        elif len(self._values) == 2:
            self._values, self._counts = self._values[1:], self._counts[1:]


class NullCounter:
    """Counts the rows of a column and its NULLs; all that is not NULL counts as one value."""

    def __init__(self, kind: pa.DataType) -> None:
        self._values = pa.nulls(1, kind)
        self._rows = self._known = 0

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Count the NULLs of a batch."""
        self._rows += len(values)
        self._known += len(values) - values.null_count

    def counted(self) -> Counted:
        """All that was counted."""
        return Counted(values=self._values, counts=np.array([self._known]), rows=self._rows)


def count_values(values: pa.ChunkedArray) -> Counted:
    """Count the values of a whole column."""
    counter = ValueCounter(values.type)
    counter.add(values)
    return counter.counted()


def summed(numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different numbers, ascending, and the sum of the counts of each.

    >>> [found.tolist() for found in summed(np.array([5, 3, 5]), np.array([1, 2, 4]))]
    [[3, 5], [2, 5]]
    """
    different, places = np.unique(numbers, return_inverse=True)
    return different, np.bincount(places, weights=counts, minlength=len(different)).astype(np.int64)


def quantiles(numbers: NDArray[np.float64], counts: NDArray[np.int64], shares: Sequence[float]) -> list[float]:
    """The numbers below which shares of the rows lie: the next lower row's for shares up to a half, else the higher's.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([1, 98, 1]), (0.001, 0.99))
    [1.0, 3.0]
    """
    order = np.argsort(numbers)
    ends, last = np.cumsum(counts[order]), int(counts.sum()) - 1
    ranks = [np.floor(share * last) if share <= 0.5 else np.ceil(share * last) for share in shares]
    return [float(numbers[order[np.searchsorted(ends, rank, side="right")]]) for rank in ranks]
