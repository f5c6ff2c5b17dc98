"""Public steps on which the values of a column may lie, from the coarsest on, and which of them a value lies on."""

from fractions import Fraction
from math import ceil, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.bins import float_exponent
from privbench.encode.decimals import INT64_DIGITS
from privbench.encode.grid import Grid, whole_numbers
from privbench.encode.layout import one_array
from privbench.encode.scalar import DAY, MICROSECONDS
from privbench.schema.types import Kind, SqlType

_ROUND = (Fraction(100), Fraction(10), Fraction(5))
_TIMES = tuple(
    Fraction(count * MICROSECONDS[unit])
    for count, unit in ((1, "d"), (1, "h"), (15, "min"), (1, "min"), (1, "s"), (1, "ms"))
)
_DECIMALS = tuple(Fraction(1, 10**k) for k in range(7))
_MOST_DIGITS = {32: 6, 64: 14}
"""Steps of a float are coarse enough that its values have no more digits than this, counted in steps."""


def steps_of(kind: SqlType) -> tuple[Fraction, ...]:
    """Return the steps to tell apart, coarsest first; what lies on none has the type's own resolution.

    >>> from privbench.schema.types import parse_type
    >>> [int(step) for step in steps_of(parse_type("DECIMAL(9,2)"))]
    [100, 10, 5]
    """
    match kind.kind:
        case Kind.INTEGER:
            return _ROUND
        case Kind.DECIMAL:
            return (*(Fraction(10**k) for k in range(kind.scale, 1, -1)), *_ROUND[1:]) if kind.scale else _ROUND
        case Kind.TIMESTAMP:
            return _TIMES
        case Kind.TIME:
            return tuple(step for step in _TIMES if step < DAY)
        case Kind.FLOAT:
            return _DECIMALS
        case _:
            return ()


def coarsest_step(kind: SqlType, values: pa.Array) -> NDArray[np.int64]:
    """Return for each value the place of the coarsest step that it lies on; their number if it lies on none.

    -1 where the value is NULL, no finite number, or zero, which lies on any.
    """
    steps = steps_of(kind)
    if kind.kind is Kind.FLOAT:
        numbers = pc.fill_null(values, 0).cast(pa.float64()).to_numpy(zero_copy_only=False)
        told = np.isfinite(numbers) & (numbers != 0)
        numbers = np.where(told, numbers, 0.0)
        lies = [Grid(type=kind, step=step).lies_on(numbers) for step in steps]
    else:
        whole = whole_numbers(kind, values)
        told = whole != 0
        lies = [whole % int(step) == 0 if step < 2**63 else np.zeros(len(whole), bool) for step in steps]
    told &= one_array(values.is_valid()).to_numpy(zero_copy_only=False)
    found = np.full(len(told), len(steps))
    for at in range(len(steps) - 1, -1, -1):
        found[lies[at]] = at
    return np.where(told, found, -1)


def grid_within(kind: SqlType, step: Fraction | None, low: Fraction, high: Fraction) -> Grid:
    """Return the grid of a step, or of the type's own resolution, made coarser where low .. high has too many ticks."""
    size = max(abs(low), abs(high), Fraction(1, 2**64))
    if kind.kind is Kind.FLOAT:
        least = Fraction(10) ** (ceil(log10(size)) - _MOST_DIGITS[kind.bits])
        fine = Fraction(10) ** float_exponent(low, high, bits=kind.bits)
        return Grid(type=kind, step=max(least, step or fine))
    digits = len(str(int(size)))
    excess = max(0, digits - INT64_DIGITS) if kind.kind is Kind.DECIMAL else 0
    return Grid(type=kind, step=max(step or Fraction(1), Fraction(10**excess)))
