"""The grid of an ordered column: typed values to int64 ticks and back, and domains whose edges are ticks.

Tick t is the value `anchor + t * step`; a value between two ticks belongs to the lower one, so a cell that starts
on a tick holds exactly the values from there on. Values beyond int64 (or, for floats, beyond what the type can
tell apart) are held at the ends; NaN counts as the largest value, as databases order it. Decimals of 38 digits are
read from the two 64-bit limbs that Arrow keeps, without a Python object per value.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.scalar import bounds_of, family_of, number_of, scalar_of, step_scalar
from privbench.errors import SpecError
from privbench.schema.domain import Bins, Range, Scalar
from privbench.schema.types import Kind, SqlType

FLOAT_TICKS = {32: 2**22, 64: 2**50}
"""Ticks of floats stay below this in size, so that rounding never moves a value to another tick."""
_FLOAT_RESOLUTION = 2**17
FLOAT_EXPONENTS = {32: (-36, 34), 64: (-300, 304)}
"""Powers of ten that can be a step, by the bits of a float; beyond them ticks are no longer numbers of the type."""
_TOLERANCE = {32: 2.0**-23, 64: 2.0**-50}
_MAX_SLACK = 0.1
INT64 = np.iinfo(np.int64)
INT64_DIGITS = 18
_CHUNK = 9
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Where the values of a column may lie. Step and anchor are numbers as in `scalar.number_of`."""

    type: SqlType
    step: Fraction
    anchor: Fraction = Fraction(0)

    @cached_property
    def low(self) -> int:
        """The smallest tick whose value the type can hold."""
        return max(ceil((bounds_of(self.type)[0] - self.anchor) / self.step), -self._reach)

    @cached_property
    def high(self) -> int:
        """The largest tick whose value the type can hold."""
        return min(floor((bounds_of(self.type)[1] - self.anchor) / self.step), self._reach - 1)

    def position(self, where: str, value: Scalar) -> Fraction:
        """Where a declared value lies, in ticks; between two ticks if it is off the grid."""
        return (number_of(where, self.type, value) - self.anchor) / self.step

    def tick(self, where: str, value: Scalar) -> int:
        """Return the tick of a declared value, which must lie on the grid."""
        place = self.position(where, value)
        if place.denominator != 1:
            start, step = float(self.anchor), float(self.step)
            raise SpecError(
                f"{where}: {value!r} is not on the grid of {self.type.sql} (number {start:g} plus multiples of "
                f"{step:g}). Write a finer step, or move the value onto the grid."
            )
        return place.numerator

    def scalar(self, tick: int) -> Scalar:
        """Return the value of a tick as the spec file writes it."""
        return scalar_of(self.type, self.anchor + tick * self.step)

    def ticks(self, values: pa.Array) -> NDArray[np.int64]:
        """Return the tick of each value; any number where the value is NULL."""
        if self.type.kind is Kind.FLOAT:
            return self._float_ticks(pc.fill_null(values, 0).cast(pa.float64()).to_numpy(zero_copy_only=False))
        numbers = whole_numbers(self.type, values, drop=self._drop)
        step, anchor = self._whole
        if anchor:
            numbers = np.maximum(numbers, INT64.min + anchor) - anchor
        return numbers if step == 1 else numbers // step

    def values(self, ticks: NDArray[np.int64], *, nulls: NDArray[np.bool_] | None = None) -> pa.Array:
        """Return the typed values of ticks between `low` and `high`; `nulls` marks rows without a value, if any."""
        nulls = nulls if nulls is not None and nulls.any() else None
        if nulls is not None:
            ticks = np.where(nulls, self.low, ticks)
        if self.type.kind is Kind.FLOAT:
            return pa.array(self._floats(ticks), mask=nulls).cast(self.type.arrow)
        step, anchor = self._whole
        numbers = ticks if step == 1 and not anchor else ticks * step + anchor
        return typed(self.type, numbers, nulls=nulls, drop=self._drop)

    @property
    def _drop(self) -> int:
        """How many trailing zeros of step and anchor to leave out, for decimals too wide for int64."""
        if self.type.kind is not Kind.DECIMAL or self.type.precision <= INT64_DIGITS:
            return 0
        digits = 0
        while self.step % 10 ** (digits + 1) == 0 and self.anchor % 10 ** (digits + 1) == 0:
            digits += 1
        return digits

    @cached_property
    def _whole(self) -> tuple[int, int]:
        """Step and anchor as whole numbers, in units of 10**drop."""
        unit = 10**self._drop
        return int(self.step / unit), int(self.anchor / unit)

    @cached_property
    def _reach(self) -> int:
        """Ticks lie in [-reach, reach)."""
        if self.type.kind is Kind.FLOAT:
            return FLOAT_TICKS[self.type.bits]
        step, anchor = self._whole
        return 2**63 if step == 1 and not anchor else (2**63 - 1 - anchor) // step

    def _float_ticks(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        reach = float(self._reach)
        with np.errstate(over="ignore", under="ignore"):
            places = numbers / float(self.step) - float(self.anchor / self.step)
        places = np.nan_to_num(places, nan=reach, posinf=reach, neginf=-reach, copy=False).clip(-reach, reach)
        nearest = np.rint(places)
        slack = _TOLERANCE[self.type.bits] * (np.abs(places) + float(self.anchor / self.step))
        on_grid = np.abs(places - nearest) <= slack
        return np.where(on_grid, nearest, np.floor(places)).astype(np.int64)

    def lies_on(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which finite floats lie on the grid, as far as their precision can tell."""
        with np.errstate(over="ignore", invalid="ignore"):
            places = np.abs(numbers / float(self.step))
            slack = _TOLERANCE[self.type.bits] * places
            return np.asarray((slack < _MAX_SLACK) & (np.abs(places - np.rint(places)) <= slack))

    def _floats(self, ticks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Multiply before dividing: t * 1 / 100 is the double nearest to t hundredths, t * 0.01 is not."""
        step = self.step
        if step.numerator < 2**53 and step.denominator < 2**53:
            return np.asarray(ticks.astype(np.float64) * step.numerator / step.denominator + float(self.anchor))
        return np.asarray(ticks * float(step) + float(self.anchor))


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values as a single Arrow array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def held_numbers(values: pa.Array) -> NDArray[np.integer]:
    """The whole numbers of an array as they are held, without a copy; any number where it is NULL.

    >>> held_numbers(pa.array([7, 8, 9], pa.int16())[1:]).tolist()
    [8, 9]
    """
    kind = np.dtype(values.type.to_pandas_dtype())
    held: NDArray[np.integer] = np.frombuffer(values.buffers()[1] or b"", kind)[values.offset :][: len(values)]
    return held


def held_validity(values: pa.Array) -> NDArray[np.uint8]:
    """1 where an array that holds NULLs has a value, 0 where it is NULL.

    >>> held_validity(pa.array([7, None, 9])[1:]).tolist()
    [0, 1]
    """
    bits = np.frombuffer(values.buffers()[0], np.uint8)
    return np.unpackbits(bits, bitorder="little")[values.offset :][: len(values)]


def float_exponent(low: Fraction, high: Fraction, *, bits: int) -> int:
    """Return the power of ten that cuts a range of floats into at least 2**17 steps the type can tell apart."""
    if bits not in FLOAT_TICKS:
        return 0
    width, size = abs(high - low), max(abs(low), abs(high))
    exponents = [FLOAT_EXPONENTS[bits][0]]
    if width:
        exponents.append(floor(_log10(width / _FLOAT_RESOLUTION)))
    if size:
        exponents.append(ceil(_log10(size / FLOAT_TICKS[bits])))
    return min(max(exponents), FLOAT_EXPONENTS[bits][1])


def _log10(number: Fraction) -> Decimal:
    return (Decimal(number.numerator) / Decimal(number.denominator)).log10()


def whole_numbers(kind: SqlType, values: pa.Array, *, drop: int = 0) -> NDArray[np.int64]:
    """Return the numbers behind the values of any type but FLOAT and TEXT, as int64; any number where NULL."""
    if kind.kind is Kind.DECIMAL:
        return unscaled(values, drop=drop)
    if kind.kind is Kind.DATE:
        values = values.cast(pa.int32())
    numbers = pc.fill_null(values.cast(pa.int64()), 0)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def typed(kind: SqlType, numbers: NDArray[np.int64], *, nulls: NDArray[np.bool_] | None, drop: int = 0) -> pa.Array:
    """Turn whole numbers into values of exactly the column's Arrow type: the way back from `whole_numbers`."""
    mask = nulls if nulls is not None and nulls.any() else None
    match kind.kind:
        case Kind.DECIMAL:
            return decimals(numbers, nulls=mask, kind=kind.arrow, drop=drop)
        case Kind.DATE:
            return pa.array(numbers.astype(np.int32), mask=mask).view(kind.arrow)
        case Kind.TIME | Kind.TIMESTAMP:
            return pa.array(numbers, mask=mask).view(kind.arrow)
        case _:
            return pa.array(numbers, mask=mask).cast(kind.arrow)


def unscaled(values: pa.Array, *, drop: int = 0) -> NDArray[np.int64]:
    """Return the unscaled integers of decimals without their last `drop` digits, rounded down; junk where NULL."""
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    limbs = np.frombuffer(values.buffers()[1], dtype=np.int64, count=2 * (values.offset + len(values)))
    limbs = limbs.reshape(-1, 2)[values.offset :]
    sign = limbs[:, 1] >> 63  # 0 or -1; x ^ -1 is -1 - x, which turns floors of negatives into floors of positives
    low = (limbs[:, 0] ^ sign).view(np.uint64)
    high = (limbs[:, 1] ^ sign).view(np.uint64)
    for start in range(0, drop, _CHUNK):
        high, low = _divide(high, low, 10 ** min(_CHUNK, drop - start))
    fits = (high == 0) & (low <= np.uint64(INT64.max))
    held = np.where(fits, low, np.uint64(INT64.max)).view(np.int64)
    return np.asarray(held ^ sign)


def decimals(
    numbers: NDArray[np.int64], *, nulls: NDArray[np.bool_] | None, kind: pa.DataType, drop: int = 0
) -> pa.Array:
    """Build a decimal128 array from unscaled integers that lack their last `drop` digits."""
    limbs = np.empty((len(numbers), 2), dtype=np.int64)
    limbs[:, 0] = numbers if nulls is None else np.where(nulls, 0, numbers)
    limbs[:, 1] = limbs[:, 0] >> 63
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    made = pa.decimal128(38, kind.scale - drop) if drop else kind
    return pa.Array.from_buffers(made, len(numbers), [valid, pa.py_buffer(limbs)]).cast(kind)


def _divide(
    high: NDArray[np.uint64], low: NDArray[np.uint64], divisor: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Long division of 128-bit numbers by a divisor below 2**32, in digits of 32 bits."""
    by = np.uint64(divisor)
    upper, rest = np.divmod(high, by)
    middle, rest = np.divmod((rest << _HALF) | (low >> _HALF), by)
    lower = ((rest << _HALF) | (low & _MASK)) // by
    return upper, (middle << _HALF) | lower


def range_on(grid: Grid, first: int, last: int) -> Range:
    """Every tick from the first to the last is a cell."""
    return Range(range=(grid.scalar(first), grid.scalar(last)), step=_step(grid))


def bins_on(grid: Grid, edges: Iterable[int], heavy_hitters: Iterable[int]) -> Bins:
    """Cells between the edges that the type can hold (at least two are needed there), heavy hitters cut out of them."""
    last = grid.high + family_of(grid.type).beyond
    within = sorted({min(max(edge, grid.low), last) for edge in edges})
    inside = sorted({heavy_hitter for heavy_hitter in heavy_hitters if within[0] <= heavy_hitter < within[-1]})
    return Bins(
        bins=tuple(grid.scalar(edge) for edge in within),
        heavy_hitters=tuple(grid.scalar(heavy_hitter) for heavy_hitter in inside),
        step=_step(grid),
    )


def _step(grid: Grid) -> Scalar | None:
    """The step, unless it is the type's own; a float has none of its own."""
    own = grid.step == 1 and grid.type.kind is not Kind.FLOAT
    return None if own else step_scalar(grid.type, grid.step)
