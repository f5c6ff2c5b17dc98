"""Suggest a domain from the data, for the publisher to review and keep as public.

Narrow columns are listed value by value, wide ones cut into bins on the coarsest grid that all values lie on;
short lists of texts are kept as they are, other text only by its lengths. Reads private values: what it returns
makes the guarantee conditional until the publisher declares it.
"""

from fractions import Fraction
from math import floor, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.bins import float_exponent
from privbench.encode.codec import compile_codec
from privbench.encode.cuts import cut
from privbench.encode.decimals import INT64_DIGITS
from privbench.encode.grid import FLOAT_TICKS, Grid, on_grid
from privbench.encode.layout import one_array
from privbench.encode.scalar import MICROSECONDS, step_scalar
from privbench.schema.domain import Bins, Domain, Range, Scalar, Serial, Text, Values
from privbench.schema.types import Kind, SqlType

NARROW = 256
"""Columns with no more ticks than this from first to last get a cell for each."""
MAX_LISTED_TEXTS = 256
MAX_LISTED_NUMBERS = 64
_ROWS_PER_LISTED_NUMBER = 16
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_COARSER = (100, 10, 5)
_TIME_STEPS = ("d", "h", "min", "s", "ms", "us")
_MAX_DECIMALS = 9


def suggest_domain(where: str, type: SqlType, values: pa.ChunkedArray, *, unique: bool) -> Domain:  # noqa: A002
    """Suggest a domain for the column `where`; a valid one for any data, empty or all NULL included.

    >>> from privbench.schema.types import parse_type
    >>> suggest_domain("t.age", parse_type("INTEGER"), pa.chunked_array([[3, 1, None, 2]], pa.int32()), unique=False)
    Range(range=(1, 3), step=None)
    """
    domain: Domain
    if type.kind is Kind.BOOLEAN:
        domain = Values(values=(False, True))
    elif type.kind is Kind.TEXT:
        domain = _text(type, values.drop_null(), unique=unique)
    elif unique:
        domain = Serial()
    else:
        domain = _ordered(type, one_array(values.drop_null()))
    compile_codec(where, type, nullable=True, domain=domain)
    return domain


def _ordered(kind: SqlType, values: pa.Array) -> Domain:
    if kind.kind is Kind.FLOAT:
        values = values.filter(pc.is_finite(values))
    if len(values) == 0:
        values = _nothing(kind)
    grid = _base_grid(kind, values)
    ticks, counts = np.unique(np.clip(grid.ticks(values), grid.low, grid.high), return_counts=True)
    factor = _coarsest(kind, grid, ticks)
    grid, ticks = Grid(type=kind, step=grid.step * factor), ticks // factor
    step = None if grid.step == 1 and kind.kind is not Kind.FLOAT else step_scalar(kind, grid.step)
    if int(ticks[-1]) - int(ticks[0]) < NARROW:
        return Range(range=(grid.scalar(int(ticks[0])), grid.scalar(int(ticks[-1]))), step=step)
    if len(ticks) <= MAX_LISTED_NUMBERS and counts.sum() >= _ROWS_PER_LISTED_NUMBER * len(ticks):
        return Values(values=tuple(grid.scalar(int(t)) for t in ticks))
    return _bins(grid, ticks, counts, step=step)


def _bins(grid: Grid, ticks: NDArray[np.int64], counts: NDArray[np.int64], *, step: Scalar | None) -> Bins:
    cuts = cut(ticks, counts, units=_units(grid))
    low, high = grid.low, grid.high + (grid.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.TIME))
    edges = sorted({min(max(e, low), high) for e in cuts.edges})
    spikes = tuple(grid.scalar(s) for s in cuts.spikes if s < edges[-1])
    return Bins(bins=tuple(grid.scalar(e) for e in edges), spikes=spikes, step=step)


def _nothing(kind: SqlType) -> pa.Array:
    """Return one value to stand in for a column without any."""
    start = 10957 if kind.kind is Kind.DATE else 10957 * MICROSECONDS["d"] if kind.kind is Kind.TIMESTAMP else 0
    grid = Grid(type=kind, step=Fraction(1))
    return grid.values(np.array([start]), nulls=np.zeros(1, dtype=bool))


def _base_grid(kind: SqlType, values: pa.Array) -> Grid:
    """Return a grid that all values lie on; for very wide decimals and for floats without one, nearly."""
    if kind.kind is Kind.FLOAT:
        return Grid(type=kind, step=_float_step(kind, values.cast(pa.float64()).to_numpy(zero_copy_only=False)))
    if kind.kind is Kind.DECIMAL and kind.precision > INT64_DIGITS:
        ends = pc.min_max(values).as_py()
        digits = max(abs(int(v.scaleb(kind.scale, _WIDE))) for v in ends.values())
        return Grid(type=kind, step=Fraction(10 ** max(0, len(str(digits)) - INT64_DIGITS)))
    return Grid(type=kind, step=Fraction(1))
