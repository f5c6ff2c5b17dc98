"""Compile Range and Bins to cells: check the declaration, choose the grid, cut it at edges and heavy hitters."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from privbench.encode.grid import FLOAT_TICKS, Grid
from privbench.encode.interval import IntervalCodec
from privbench.encode.layout import Layout
from privbench.encode.scalar import number_of, step_of
from privbench.errors import SpecError
from privbench.schema.domain import MAX_CELLS, Bins, Range, Scalar
from privbench.schema.types import Kind, SqlType

_RESOLUTION = 2**17
_EXPONENTS = {32: (-36, 34), 64: (-300, 304)}
"""Powers of ten that can be a step, by the bits of a float; beyond them ticks are no longer numbers of the type."""
_SHOWN = 8


def range_codec(where: str, kind: SqlType, domain: Range, *, nullable: bool) -> IntervalCodec:
    """Every value from the first to the last, in steps, is a cell."""
    grid = _grid(where, kind, domain.range, step=domain.step, coarsest=0)
    first, last = (grid.tick(where, v) for v in domain.range)
    if last < first:
        raise SpecError(f"{where}: range {list(domain.range)} runs backwards; write the smaller value first.")
    if first < grid.low or last > grid.high:
        raise SpecError(f"{where}: range {list(domain.range)} does not fit {kind.sql}; keep to what it can hold.")
    _check_count(where, last - first + 1)
    return _codec(where, grid, np.arange(first, last + 1, dtype=np.int64), last=last, nullable=nullable)


def bins_codec(where: str, kind: SqlType, domain: Bins, *, nullable: bool) -> IntervalCodec:
    """Cells between edges; a heavy hitter cuts the cell around it, so that all cells stay in order."""
    ends = (number_of(where, kind, domain.bins[0]), number_of(where, kind, domain.bins[-1]))
    declared = (*domain.bins, *domain.heavy_hitters)
    grid = _grid(where, kind, declared, step=domain.step, coarsest=float_exponent(*ends, bits=kind.bits))
    edges = [grid.tick(where, e) for e in domain.bins]
    if any(a >= b for a, b in pairwise(edges)):
        raise SpecError(f"{where}: edges {_shown(domain.bins)} must ascend; sort them and leave out repeats.")
    start, end = max(edges[0], grid.low), min(edges[-1], grid.high + 1)
    inner = edges[1:-1]
    if any(a >= b for a, b in pairwise([start, *inner, end])):
        raise SpecError(
            f"{where}: edges {_shown(domain.bins)} go beyond {kind.sql} on this grid; only the outer two may. "
            "Move the inner ones inside, or write a coarser step."
        )
    heavy_hitters = [grid.tick(where, s) for s in domain.heavy_hitters]
    for value, heavy_hitter in zip(domain.heavy_hitters, heavy_hitters, strict=True):
        if not start <= heavy_hitter < end:
            raise SpecError(f"{where}: heavy_hitter {value!r} lies outside the edges; widen the outer edge around it.")
    starts = sorted({start, *inner, *heavy_hitters, *(s + 1 for s in heavy_hitters if s + 1 < end)})
    _check_count(where, len(starts))
    return _codec(where, grid, np.array(starts, dtype=np.int64), last=end - 1, nullable=nullable)


def float_exponent(low: Fraction, high: Fraction, *, bits: int) -> int:
    """Return the power of ten that cuts a range of floats into at least 2**17 steps the type can tell apart."""
    if bits not in FLOAT_TICKS:
        return 0
    width, size = abs(high - low), max(abs(low), abs(high))
    exponents = [_EXPONENTS[bits][0]]
    if width:
        exponents.append(floor(_log10(width / _RESOLUTION)))
    if size:
        exponents.append(ceil(_log10(size / FLOAT_TICKS[bits])))
    return min(max(exponents), _EXPONENTS[bits][1])


def _grid(where: str, kind: SqlType, declared: Sequence[Scalar], *, step: Scalar | None, coarsest: int) -> Grid:
    """Return the grid of the declared step, else the type's own; for floats a power of ten that all values share."""
    numbers = [number_of(where, kind, v) for v in declared]
    size = Fraction(1)
    if step is not None:
        size = step_of(where, kind, step)
    elif kind.kind is Kind.FLOAT:
        size = _shared_power(numbers, coarsest, finest=_EXPONENTS[kind.bits][0])
    if kind.kind is Kind.FLOAT:
        low, high = (Fraction(10) ** e for e in _EXPONENTS[kind.bits])
        if not low <= size <= high:
            raise SpecError(f"{where}: step {step!r} is too fine or too coarse for {kind.sql}.")
    return Grid(type=kind, step=size, anchor=numbers[0] % size)


def _shared_power(numbers: Sequence[Fraction], exponent: int, *, finest: int) -> Fraction:
    while exponent > finest and any(n % Fraction(10) ** exponent for n in numbers):
        exponent -= 1
    return Fraction(10) ** exponent


def _codec(where: str, grid: Grid, starts: NDArray[np.int64], *, last: int, nullable: bool) -> IntervalCodec:
    return IntervalCodec(
        where=where,
        layout=Layout(cells=len(starts), nullable=nullable),
        grid=grid,
        first=starts,
        last=np.append(starts[1:] - 1, np.int64(last)),
    )


def _check_count(where: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise SpecError(
            f"{where}: {cells} cells, at most {MAX_CELLS} are allowed. Write fewer edges or a coarser step."
        )


def _log10(number: Fraction) -> Decimal:
    return (Decimal(number.numerator) / Decimal(number.denominator)).log10()


def _shown(values: Sequence[Scalar]) -> str:
    head = ", ".join(str(v) for v in values[:_SHOWN])
    return f"[{head}, ...]" if len(values) > _SHOWN else f"[{head}]"
