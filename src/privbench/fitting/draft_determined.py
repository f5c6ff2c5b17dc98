"""Columns of a table that another one determines, looked for in the data: a draft suggests them, marked as from there.

Only columns with listed values are looked at, and only where a value of the one comes with many rows. The other must
follow from it in nearly all rows, and much more surely than its most common value would be guessed. That is tried on a
sample of the rows; of what holds there, pairs of values are counted on all rows, as they are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.counted import Counted, ValueCounter
from privbench.io.base import Source
from privbench.schema.computed import ComputedOrigin
from privbench.schema.determined import as_scalar
from privbench.schema.domain import Scalar, Values
from privbench.schema.table_spec import ColumnSpec
from privbench.schema.tables import Table

EXACT = 0.995
"""The share of rows in which the other column must have the most common value beside the first column's value."""
BETTER = 0.1
"""The most rows that may be wrong, as a part of those that guessing the most common value gets wrong."""
LIKELY = 0.98
"""The same share in a sample, from which on all rows are asked: chance alone does not make it so much smaller there."""
ROWS_PER_VALUE = 20
"""A column determines another only if its values have this many rows on average: else chance does."""
_SHIFT = 32
"""A pair of values is one number: that of the first value stands above so many bits."""
_NAN = float("nan")
"""The one that stands for all, of which no two are equal."""


def with_determined(
    source: Source, table: Table, specs: Mapping[str, ColumnSpec], sample: pa.Table, *, counted: Mapping[str, Counted]
) -> dict[str, ColumnSpec]:
    """The columns of a table, with those of the `counted` ones that follow from others by a map of the data."""
    listed = [n for n in counted if isinstance(specs[n].domain, Values) and not _in_key(table, n)]
    likely = {name: _likely(name, listed, counted, sample) for name in listed}
    pairs = _count_pairs(source, table, [(by, name) for name, others in likely.items() for by in others])
    found = dict(specs)
    for name, others in likely.items():
        most = _most_wrong(counted[name])
        holding = [by for by in others if pairs[by, name].wrong <= most]
        if holding:
            by = min(holding, key=lambda other: _size(counted[other]))
            update = {"determined_by": by, "map": pairs[by, name].map(), "map_origin": ComputedOrigin.DATA}
            found[name] = specs[name].model_copy(update=update)
    return found


def _likely(name: str, listed: Sequence[str], counted: Mapping[str, Counted], sample: pa.Table) -> list[str]:
    """The columns that may determine a column: they have more values, and do so in a sample.

    Of two columns that determine each other, the first does.
    """
    column, place = counted[name], listed.index(name)
    if _size(column) < 2:
        return []
    return [
        other
        for other in listed
        if other != name
        and (_size(column), -place) < (_size(counted[other]), -listed.index(other))
        and column.rows >= ROWS_PER_VALUE * _size(counted[other])
        and _pairs_in(sample, other, name).wrong <= 1 - LIKELY
    ]


def _size(column: Counted) -> int:
    """How many different values a column has, NULL among them."""
    return len(column.values) + column.has_nulls


def _most_wrong(column: Counted) -> float:
    """The most rows, as a share, in which what is determined may be another value."""
    most_common = max(int(column.counts.max(initial=0)), column.rows - column.known)
    return min(1 - EXACT, BETTER * (1 - most_common / column.rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """How many rows have each pair of values of two columns, which are numbered in the order of their first rows."""

    keys: Sequence[Scalar | None]
    values: Sequence[Scalar | None]
    pairs: NDArray[np.int64]
    """The number of a key's value, and in the last bits that of the value beside it."""
    counts: NDArray[np.int64]

    @property
    def wrong(self) -> float:
        """The share of rows whose value is not the most common one beside theirs."""
        return 1 - float(self.counts[self._best].sum()) / float(self.counts.sum())

    def map(self) -> tuple[tuple[Scalar | None, Scalar | None], ...]:
        """The most common value beside each key, in the order of keys; of equally common ones the first."""
        best = self.pairs[self._best]
        places = zip((best >> _SHIFT).tolist(), (best & (2**_SHIFT - 1)).tolist(), strict=True)
        made = [(self.keys[key], self.values[value]) for key, value in places]
        return tuple(sorted(made, key=lambda pair: (pair[0] is None, str(pair[0]))))

    @property
    def _best(self) -> NDArray[np.intp]:
        """Which pair is the most common one of each key."""
        order = np.lexsort((self.pairs, -self.counts, self.pairs >> _SHIFT))
        keys = self.pairs[order] >> _SHIFT
        firsts: NDArray[np.intp] = order[np.append(True, keys[1:] != keys[:-1])]
        return firsts


class _PairCounter:
    """Counts the pairs of values of two columns as their batches come."""

    def __init__(self) -> None:
        self._keys, self._values = _Numbered(), _Numbered()
        self._counter = ValueCounter(pa.int64())

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        """Count the rows of a batch."""
        self._counter.add(pa.array((self._keys.numbers(keys) << _SHIFT) | self._values.numbers(values)))

    def pairs(self) -> _Pairs:
        """All that was counted."""
        counted = self._counter.counted()
        pairs = counted.values.to_numpy(zero_copy_only=False)
        return _Pairs(keys=self._keys.values(), values=self._values.values(), pairs=pairs, counts=counted.counts)


class _Numbered:
    """Numbers the different values of a column, NULL among them, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def numbers(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each row's value."""
        encoded = column.dictionary_encode(null_encoding="encode")
        values = (_NAN if isinstance(v, float) and isnan(v) else v for v in encoded.dictionary.to_pylist())
        numbers = np.array([self._numbers.setdefault(value, len(self._numbers)) for value in values], np.int64)
        of_rows: NDArray[np.int64] = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return of_rows

    def values(self) -> list[Scalar | None]:
        """The values by number."""
        return [None if value is None else as_scalar(value) for value in self._numbers]


def _pairs_in(rows: pa.Table, by: str, name: str) -> _Pairs:
    counter = _PairCounter()
    for batch in rows.to_batches():
        counter.add(batch.column(by), batch.column(name))
    return counter.pairs()


def _count_pairs(source: Source, table: Table, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], _Pairs]:
    """Read a table once, and count pairs of values of pairs of columns."""
    counters = {pair: _PairCounter() for pair in wanted}
    names = {name for pair in wanted for name in pair}
    if names:
        for batch in source.read(Table(name=table.name, columns=tuple(c for c in table.columns if c.name in names))):
            for (by, name), counter in counters.items():
                counter.add(batch.column(by), batch.column(name))
    return {pair: counter.pairs() for pair, counter in counters.items()}


def _in_key(table: Table, name: str) -> bool:
    return name in table.surrogate_columns or any(name in key for key in table.keys)
