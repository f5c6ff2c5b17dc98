"""Rows picked from a source in few passes and bounded memory: random ones, and ones that given keys name.

Batches stream by; only picked rows are kept. Everything is a function of the source and the seed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.io.base import Source
from privbench.schema.tables import Table

Rng = np.random.Generator
Row = dict[str, Any]


def random_rows(source: Source, table: Table, most: int, rng: Rng) -> pa.Table | None:
    """Draw up to so many rows of a table, each as likely as any other, in random order; None if it has no rows."""
    kept: pa.Table | None = None
    ranks = np.zeros(0)
    for batch in source.read(table):
        ranks = np.concatenate([ranks, rng.random(batch.num_rows)])
        new = pa.Table.from_batches([batch])
        kept = new if kept is None else pa.concat_tables([kept, new])
        order = np.argsort(ranks, kind="stable")[:most]
        kept, ranks = kept.take(pa.array(order)), ranks[order]
    return kept if kept is not None and kept.num_rows else None


def rows_with_keys(
    source: Source, table: Table, columns: Sequence[str], wanted: Sequence[tuple[Any, ...]], rng: Rng
) -> list[Row | None]:
    """Find a row for each wanted key, drawn from those that have it; None where there is none."""
    keys = list(dict.fromkeys(wanted))
    sets = [pa.array([key[i] for key in keys]).unique() for i in range(len(columns))]
    sets = [s.cast(table.column(c).type.arrow, safe=False) for s, c in zip(sets, columns, strict=True)]
    packed, inverse = np.unique(
        _packed([pa.array([k[i] for k in keys]) for i in range(len(columns))], sets), return_inverse=True
    )
    best = np.full(len(packed), np.inf)
    rows: list[Row | None] = [None] * len(packed)
    for batch in source.read(table):
        codes = _packed([batch.column(c) for c in columns], sets)
        ranks = rng.random(batch.num_rows)
        at = np.searchsorted(packed, codes)
        at[at == len(packed)] = 0
        hits = np.flatnonzero((codes >= 0) & (packed[at] == codes))
        order = hits[np.lexsort((ranks[hits], at[hits]))]
        first = order[np.unique(at[order], return_index=True)[1]]
        better = first[ranks[first] < best[at[first]]]
        for place, row in zip(at[better].tolist(), batch.take(pa.array(better)).to_pylist(), strict=True):
            rows[place] = row
        best[at[better]] = ranks[better]
    numbers = {key: int(inverse[i]) for i, key in enumerate(keys)}
    return [rows[numbers[key]] for key in wanted]


def _packed(columns: Sequence[pa.Array], sets: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Number the rows by which of the listed values each column holds; -1 where one holds another value or NULL."""
    codes = np.zeros(len(columns[0]), np.int64)
    missing = np.zeros(len(columns[0]), bool)
    for column, values in zip(columns, sets, strict=True):
        found = pc.index_in(column.cast(values.type, safe=False), value_set=values)
        missing |= ~pc.and_(found.is_valid(), column.is_valid()).to_numpy(zero_copy_only=False)
        codes = codes * (len(values) + 1) + found.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(missing, -1, codes)
