"""Between which powers of two the values of a column lie, and on which step: the first two answers of a search."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10, sqrt

from privbench.encode.grid import Grid
from privbench.encode.magnitude import Magnitudes, grid_within, steps_of
from privbench.encode.scalar import MICROSECONDS
from privbench.methods.domains.cells import occupied
from privbench.privacy.vault import Measured
from privbench.schema.types import Kind, SqlType

NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
TAILS = {True: 4, False: 1}
"""How many powers of two beyond the bounds have a cell each, for numbers and for dates and times."""
ENOUGH = 10
"""A step is looked for where the values that tell it weigh this many noise scales."""
OFF = 0.01
"""The share of values that may lie off the step."""
DOUBT = 3
"""That values lie off a step which makes a column narrow is seen from this many standard deviations on."""
NARROW = 1024
"""A column with no more ticks than this gets a cell for each."""
NEAR = 3
"""Bounds are near each other if there are no more powers of two between them, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The buckets first .. last of the magnitudes of a type, and about how many entities have a value in them."""

    type: SqlType
    first: int
    last: int
    entities: float

    @property
    def magnitudes(self) -> Magnitudes:
        """The buckets."""
        return Magnitudes(type=self.type)

    @property
    def numeric(self) -> bool:
        """Whether zero means something, and doubling."""
        return self.type.kind in NUMBERS

    @property
    def only_zero(self) -> bool:
        """Whether nothing but zeros was seen, which tells nothing about how large other values are."""
        return self.numeric and self.first == self.last == self.magnitudes.zero

    @property
    def near(self) -> bool:
        """Whether one step can serve the smallest and the largest number."""
        return self.numeric and self.last - self.first < NEAR

    @property
    def coarse_step(self) -> Fraction:
        """The finest power of ten on which the bounds are narrow, counted from zero."""
        return Fraction(10) ** ceil(log10(max(map(abs, self.span)) / NARROW))

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest number inside."""
        return self.magnitudes.span(self.first, self.last)

    @property
    def tails(self) -> tuple[int, int]:
        """The outer buckets that get a cell: below none if all values are zero or more and zero is inside."""
        reach = TAILS[self.numeric]
        zero = self.magnitudes.zero
        lowest = 0 if self.first < zero or not self.numeric else zero
        return max(self.first - reach, lowest), min(self.last + reach, self.magnitudes.size - 1)

    def grid(self, step: Fraction | None) -> Grid:
        """The grid of a step, coarse enough that the tails are on it."""
        return grid_within(self.type, step, *self.magnitudes.span(*self.tails))

    def doublings(self, grid: Grid) -> list[int]:
        """The ticks at which the buckets begin, tails included, and the one beyond the last."""
        first, last = self.tails
        starts = [self.magnitudes.span(bucket, bucket)[0] for bucket in range(first, last + 1)]
        end = floor(self.magnitudes.span(last, last)[1] / grid.step) + 1
        return sorted({*(floor(start / grid.step) for start in starts), end})


def find_bounds(kind: SqlType, magnitudes: Measured) -> Bounds | None:
    """Return the bounds that a histogram of magnitudes shows; None if it shows nothing but noise."""
    between = occupied(magnitudes, barrier=Magnitudes(type=kind).zero if kind.kind in NUMBERS else None)
    if between is None:
        return None
    first, last = between
    return Bounds(type=kind, first=first, last=last, entities=float(magnitudes.counts[first : last + 1].sum()))


def find_step(bounds: Bounds, steps: Measured) -> Fraction | None:
    """Return the coarsest step that nearly all values lie on; None for the type's own resolution.

    Where noise does not tell, times get seconds, and floats near each other no finer step than makes them narrow.
    """
    kind, counts, scale = bounds.type, steps.counts, steps.noise.scale
    total, public = float(counts.sum()), steps_of(kind)
    clear = total >= ENOUGH * scale
    passing = (s for at, s in enumerate(public) if clear and counts[at + 1 :].sum() <= max(OFF * total, 2 * scale))
    coarsest = next(passing, None)
    if kind.kind is Kind.FLOAT and bounds.near:
        finer = counts[[step < bounds.coarse_step for step in (*public, Fraction(0))]]
        if finer.sum() <= OFF * total + DOUBT * sqrt(len(finer) * steps.noise.variance):
            return max(coarsest or Fraction(0), bounds.coarse_step)
    return Fraction(MICROSECONDS["s"]) if kind.kind in (Kind.TIME, Kind.TIMESTAMP) and not clear else coarsest
