"""Public cells of a type: orders of magnitude (sign and power of two), and the round steps that values may lie on.

Both follow from the type alone and every finite value is in one, so a histogram over them can be measured before
anything is known of a column. Days and times count from 1970, as everywhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.grid import INT64_DIGITS, Grid, float_exponent, one_array, whole_numbers
from privbench.encode.scalar import bounds_of, family_of
from privbench.schema.types import Kind, SqlType

_FLOAT_EXPONENTS = (-64, 64)
"""Floats below 2**-64 in size count as zero, those from 2**64 on as that large."""
_MOST_DIGITS = {32: 6, 64: 14}
"""Steps of a float are coarse enough that its values have no more digits than this, counted in steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """Buckets 0 .. size - 1 in ascending order: negative ones by falling size, zero, positive ones by rising size.

    >>> from privbench.schema.types import parse_type
    >>> tiny = Magnitudes(type=parse_type("TINYINT"))
    >>> tiny.size, tiny.of(pa.array([-128, -1, 0, 1, 5, None], pa.int8())).tolist(), tiny.span(9, 11)
    (17, [0, 7, 8, 9, 11, -1], (Fraction(1, 1), Fraction(7, 1)))
    """

    type: SqlType

    @property
    def zero(self) -> int:
        """The bucket of zero."""
        return 0 if bounds_of(self.type)[0] >= 0 else self._powers

    @property
    def size(self) -> int:
        """The number of buckets."""
        return self.zero + 1 + self._powers

    def of(self, values: pa.Array) -> NDArray[np.int64]:
        """Return the bucket of each value; -1 where it is NULL, infinite or no number."""
        numbers = self._numbers(values)
        exponents = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))[1] - self._smallest
        powers = np.where(numbers == 0, 0, np.clip(exponents, 0, self._powers))
        buckets = np.maximum(self.zero + np.where(numbers < 0, -powers, powers), 0)
        known = one_array(values.is_valid()).to_numpy(zero_copy_only=False) & np.isfinite(numbers)
        return np.where(known, buckets, -1).astype(np.int64)

    def span(self, first: int, last: int) -> tuple[Fraction, Fraction]:
        """Return the smallest and the largest number in the buckets first .. last."""
        return self._ends(first)[0], self._ends(last)[1]

    @property
    def _powers(self) -> int:
        """How many powers of two there are on either side of zero."""
        if self.type.kind is Kind.FLOAT:
            return _FLOAT_EXPONENTS[1] - _FLOAT_EXPONENTS[0]
        return max(abs(bound) for bound in bounds_of(self.type)).bit_length()

    @property
    def _smallest(self) -> int:
        return _FLOAT_EXPONENTS[0] if self.type.kind is Kind.FLOAT else 0

    def _ends(self, bucket: int) -> tuple[Fraction, Fraction]:
        power = abs(bucket - self.zero)
        if power == 0:
            return Fraction(0), Fraction(0)
        low = Fraction(2) ** (power - 1 + self._smallest)
        high = 2 * low if self.type.kind is Kind.FLOAT else 2 * low - 1
        low, high = (low, high) if bucket > self.zero else (-high, -low)
        least, most = (Fraction(bound) for bound in bounds_of(self.type))
        return min(max(low, least), most), max(min(high, most), least)  # one side may reach farther than the other

    def _numbers(self, values: pa.Array) -> NDArray[np.float64]:
        """The numbers behind the values, as floats: near enough, as neighbours share a bucket but at its ends."""
        if self.type.kind is Kind.FLOAT:
            return np.asarray(pc.fill_null(values, 0).cast(pa.float64()).to_numpy(zero_copy_only=False))
        if self.type.kind is Kind.DECIMAL and self.type.precision > INT64_DIGITS:
            floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
            return np.asarray(floats * 10.0**self.type.scale)
        return whole_numbers(self.type, values).astype(np.float64)


def steps_of(kind: SqlType) -> tuple[Fraction, ...]:
    """Return the steps to tell apart, coarsest first; what lies on none has the type's own resolution.

    >>> from privbench.schema.types import parse_type
    >>> [int(step) for step in steps_of(parse_type("DECIMAL(9,2)"))]
    [100, 10, 5]
    """
    return family_of(kind).steps(kind)


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
    places = np.full(len(told), len(steps))
    for at in range(len(steps) - 1, -1, -1):
        places[lies[at]] = at
    return np.where(told, places, -1)


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
