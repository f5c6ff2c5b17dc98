"""Find the coarsest grid that the values of a column lie on, and the round numbers to cut it at."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.bins import float_exponent
from privbench.encode.decimals import INT64_DIGITS
from privbench.encode.grid import Grid
from privbench.encode.scalar import MICROSECONDS
from privbench.schema.types import Kind, SqlType

_MOMENTS = (Kind.TIME, Kind.TIMESTAMP)
_TIME_STEPS = tuple(sorted([*MICROSECONDS.values(), 15 * MICROSECONDS["min"]], reverse=True))
_ROUND_TIMES = tuple(n * unit for unit in MICROSECONDS.values() for n in (1, 2, 5, 10, 30, 100, 1000))
_ROUND_NUMBERS = tuple(n * 10**e for e in range(18) for n in (1, 2, 5))
_MAX_DECIMALS = 9
_MAX_ZEROS = 2
_TAIL = 0.001
_FEW = 3


def coarsest_grid(kind: SqlType, values: pa.Array) -> Grid:
    """Return the coarsest grid of round steps that all values (at least one, no NULL, finite) lie on."""
    if kind.kind is Kind.FLOAT:
        base = Grid(type=kind, step=_float_step(kind, values.cast(pa.float64()).to_numpy(zero_copy_only=False)))
    else:
        base = Grid(type=kind, step=Fraction(10 ** _excess_digits(kind, values)))
    ticks = base.ticks(values)
    if kind.kind in _MOMENTS:
        return Grid(type=kind, step=Fraction(next(s for s in _TIME_STEPS if not (ticks % s).any())))
    if kind.kind is Kind.DATE or len(np.unique(ticks)) < _FEW:
        return base
    return Grid(type=kind, step=base.step * _round_divisor(ticks, zeros=kind.scale + _MAX_ZEROS))


def round_units(grid: Grid) -> Sequence[int]:
    """Return how many ticks make a round number or a round time."""
    if grid.type.kind not in _MOMENTS:
        return _ROUND_NUMBERS
    return [time // int(grid.step) for time in _ROUND_TIMES if time % grid.step == 0]


def _round_divisor(ticks: NDArray[np.int64], *, zeros: int) -> int:
    """Return the largest power of ten with at most so many zeros, or five times it, that divides all ticks."""
    divisor = 1
    for _ in range(min(zeros, INT64_DIGITS - 1)):
        if (ticks % (10 * divisor)).any():
            break
        divisor *= 10
    return divisor if (ticks % (5 * divisor)).any() else 5 * divisor


def _excess_digits(kind: SqlType, values: pa.Array) -> int:
    """Return how many digits of the widest decimal do not fit int64; they are rounded away."""
    if kind.kind is not Kind.DECIMAL or kind.precision <= INT64_DIGITS:
        return 0
    digits = max(len(v.as_tuple().digits) for v in pc.min_max(values).as_py().values())
    return max(0, digits - INT64_DIGITS)


def _float_step(kind: SqlType, numbers: NDArray[np.float64]) -> Fraction:
    """Return 1, 0.1, 0.01 .. where all numbers lie on it, else a power of ten fine enough for their bulk."""
    for decimals in range(_MAX_DECIMALS + 1):
        step = Fraction(1, 10**decimals)
        if Grid(type=kind, step=step).lies_on(numbers).all():
            return step
    low = float(np.quantile(numbers, _TAIL, method="lower"))
    high = float(np.quantile(numbers, 1 - _TAIL, method="higher"))
    return Fraction(10) ** float_exponent(Fraction(low), Fraction(high), bits=kind.bits)
