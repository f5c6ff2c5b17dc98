"""Suggest a domain from the data, for the publisher to review and keep as public.

Narrow columns are listed value by value, wide ones cut into bins on the coarsest grid that all values lie on;
short lists of texts are kept as they are, other text only by its lengths. It reads private values: what it
returns makes the guarantee conditional until the publisher declares it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.codec import compile_codec
from privbench.encode.cuts import cut
from privbench.encode.grid import typed
from privbench.encode.layout import one_array
from privbench.encode.on_grid import bins_on, range_on
from privbench.encode.resolution import coarsest_grid, round_units
from privbench.schema.domain import Domain, Serial, Text, Values, implied_by_type
from privbench.schema.types import Kind, SqlType

NARROW = 256
"""A column with no more ticks than this from first to last gets a cell for each."""
MAX_LISTED = 256
"""A column with no more different values than this gets a cell for each, if they are frequent enough."""
ENTITIES_PER_LISTED = 8
"""A list has at most one value for so many entities, so that few of its values belong to one entity alone."""
_ROWS_PER_LISTED_NUMBER = 16
FEW_LENGTHS = 8
"""Texts of no more different lengths than this, from the shortest to the longest, get a cell for each length."""
_LENGTHS = (0, 1, *(n for i in range(31) for n in (2 * 2**i, 3 * 2**i)))
_NO_TEXT = (0, 8)


def suggest_domain(
    where: str,
    type: SqlType,  # noqa: A002
    values: pa.ChunkedArray,
    *,
    unique: bool,
    entities: int | None = None,
) -> Domain:
    """Suggest a domain for the column `where`: a valid one for any data, empty or all NULL included.

    `entities` is how many there are in the whole database; without it every row counts as one.

    >>> from privbench.schema.types import parse_type
    >>> suggest_domain("t.age", parse_type("INTEGER"), pa.chunked_array([[3, 1, None, 2]], pa.int32()), unique=False)
    Range(range=(1, 3), step=None)
    """
    listable = min(MAX_LISTED, (len(values) if entities is None else entities) // ENTITIES_PER_LISTED)
    domain = implied_by_type(type.kind)
    if domain is not None:
        return domain
    if type.kind is Kind.TEXT:
        domain = _text(type, values.drop_null(), unique=unique, listable=listable)
    elif unique:
        domain = Serial()
    else:
        domain = _ordered(type, one_array(values.drop_null()), listable=listable)
    compile_codec(where, type, nullable=True, domain=domain)
    return domain


def _ordered(kind: SqlType, values: pa.Array, *, listable: int) -> Domain:
    if kind.kind is Kind.FLOAT:
        values = values.filter(pc.is_finite(values))
    if len(values) == 0:
        values = _stand_in(kind)
    grid = coarsest_grid(kind, values)
    ticks, counts = np.unique(np.clip(grid.ticks(values), grid.low, grid.high), return_counts=True)
    first, last = int(ticks[0]), int(ticks[-1])
    if last - first < NARROW:
        return range_on(grid, first, last)
    if len(ticks) <= listable and counts.sum() >= _ROWS_PER_LISTED_NUMBER * len(ticks):
        return Values(values=tuple(grid.scalar(int(t)) for t in ticks))
    cuts = cut(ticks, counts, units=round_units(grid))
    return bins_on(grid, cuts.edges, cuts.heavy_hitters)


def _stand_in(kind: SqlType) -> pa.Array:
    """Return a single value for a column that has none."""
    return typed(kind, np.zeros(1, dtype=np.int64), nulls=np.zeros(1, dtype=bool))


def _text(kind: SqlType, values: pa.ChunkedArray, *, unique: bool, listable: int) -> Domain:
    if len(values) == 0:
        return Text(text=_NO_TEXT, distinct=None if unique else 1)
    distinct = values.unique()
    if not unique and len(distinct) <= listable and 2 * len(distinct) < len(values):
        listed = [t for t in sorted(distinct.to_pylist()) if kind.length is None or len(t) <= kind.length]
        if listed:
            return Values(values=tuple(listed))
    ends = pc.min_max(pc.utf8_length(distinct)).as_py()
    return Text(
        text=_length_edges(ends["min"], ends["max"], limit=kind.length),
        distinct=None if unique else _two_digits(len(distinct)),
    )


def _length_edges(shortest: int, longest: int, *, limit: int | None) -> tuple[int, ...]:
    """Return edges around the lengths, none beyond the VARCHAR's own length (the last edge is included).

    >>> _length_edges(12, 15, limit=None), _length_edges(11, 72, limit=None)
    ((12, 13, 14, 15, 16), (8, 12, 16, 24, 32, 48, 64, 96))
    """
    most = _LENGTHS[-1] if limit is None else limit
    shortest, longest = min(shortest, most), min(longest, most)
    if longest - shortest < FEW_LENGTHS:
        return tuple(range(shortest, longest + 2))
    start = max(n for n in _LENGTHS if n <= shortest)
    end = min(n for n in _LENGTHS if n > longest)
    return tuple(sorted({min(n, most) for n in _LENGTHS if start <= n <= end}))


def _two_digits(count: int) -> int:
    return int(float(f"{count:.1e}"))
