"""Columns of a table that another one determines, looked for in the data: a draft suggests them, marked as from there.

Only columns with listed values are looked at, and only where a value of the one comes with many rows. The other must
follow from it in nearly all rows, and much more surely than its most common value would be guessed.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.io.base import Source, read_whole
from privbench.schema.computed import ComputedOrigin
from privbench.schema.determined import as_scalar
from privbench.schema.domain import Scalar, Values
from privbench.schema.table_spec import ColumnSpec
from privbench.schema.tables import Table

EXACT = 0.995
"""The share of rows in which the other column must have the most common value beside the first column's value."""
BETTER = 0.1
"""The most rows that may be wrong, as a part of those that guessing the most common value gets wrong."""
ROWS_PER_VALUE = 20
"""A column determines another only if its values have this many rows on average: else chance does."""


def with_determined(
    source: Source, table: Table, specs: Mapping[str, ColumnSpec], *, among: Collection[str]
) -> dict[str, ColumnSpec]:
    """The columns of a table, with those `among` some that follow from others by a map of the data."""
    listed = [n for n in among if isinstance(specs[n].domain, Values) and not _in_key(table, n)]
    if len(listed) < 2:
        return dict(specs)
    data = read_whole(source, table.name, map(table.column, listed))
    codes = {n: _coded(data.column(n)) for n in listed}
    found = dict(specs)
    for name in listed:
        by = _determining(name, listed, codes)
        if by is not None:
            keys, values = codes[by], codes[name]
            table_of = _counted(keys.codes, values.codes, keys.size, values.size)
            pairs = [(keys.values[k], values.values[int(row.argmax())]) for k, row in enumerate(table_of)]
            pairs.sort(key=lambda pair: (pair[0] is None, str(pair[0])))
            update = {"determined_by": by, "map": tuple(pairs), "map_origin": ComputedOrigin.DATA}
            found[name] = specs[name].model_copy(update=update)
    return found


class _Coded:
    """A column as numbers of its different values, NULL among them."""

    def __init__(self, codes: NDArray[np.int64], values: list[Scalar | None]) -> None:
        self.codes = codes
        self.values = values
        self.size = len(values)


def _coded(column: pa.ChunkedArray) -> _Coded:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return _Coded(codes, [None if v is None else as_scalar(v) for v in encoded.dictionary.to_pylist()])


def _determining(name: str, listed: Sequence[str], codes: Mapping[str, _Coded]) -> str | None:
    """The column with the fewest values that determines a column; of two that determine each other, the first does."""
    column, place = codes[name], listed.index(name)
    rows = len(column.codes)
    guessed = 1 - np.bincount(column.codes).max() / rows
    candidates = [
        other
        for other in listed
        if other != name
        and (column.size, -place) < (codes[other].size, -listed.index(other))
        and rows >= ROWS_PER_VALUE * codes[other].size
        and _wrong(codes[other], column) <= min(1 - EXACT, BETTER * guessed)
    ]
    return min(candidates, key=lambda other: codes[other].size) if column.size > 1 and candidates else None


def _wrong(keys: _Coded, values: _Coded) -> float:
    """The share of rows whose value is not the most common one beside theirs."""
    counts = _counted(keys.codes, values.codes, keys.size, values.size)
    return 1 - float(counts.max(axis=1).sum()) / len(keys.codes)


def _counted(keys: NDArray[np.int64], values: NDArray[np.int64], key_size: int, value_size: int) -> NDArray[np.int64]:
    counts = np.bincount(keys * value_size + values, minlength=key_size * value_size)
    return counts.reshape(key_size, value_size)


def _in_key(table: Table, name: str) -> bool:
    return name in table.surrogate_columns or any(name in key for key in table.keys)
