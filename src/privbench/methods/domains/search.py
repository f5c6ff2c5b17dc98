"""The search for the domain of one column, step by step; every step is a measured query and post-processing.

Magnitudes give bounds, a histogram of steps gives the grid, a first histogram over a fixed partition shows where
between the bounds the values are. A column that is narrow then gets a cell for each value. A wide one gets its heavy
hitters (single values with large counts), cells of about equal depth between them, and tails beyond its bounds.
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from privbench.encode.grid import Grid, bins_on, range_on
from privbench.encode.magnitude import steps_of
from privbench.methods.domains.bounds import NARROW, Bounds, find_step
from privbench.methods.domains.budget import HEAVY_HITTERS
from privbench.methods.domains.cells import Cells, cut_heavy, doubling_cells, equal_cells, merge_light, occupied
from privbench.methods.domains.columns import SearchedColumns
from privbench.privacy.vault import Measured
from privbench.schema.domain import Domain
from privbench.schema.tables import Place
from privbench.schema.types import Kind

EASY = 256
"""Up to this many ticks are cheap: no need to look for fewer."""
FEW = 64
"""Up to this many ticks, a grid that is twice as fine costs little."""
CELLS = 64
"""About how many cells a wide column gets beside its heavy hitters."""
CLEAR = 4
"""A cell holds at least this many noise scales, so that its edges are not drawn by noise."""
FALSE_HEAVY_HITTERS = 20.0
"""About how many heavy hitters are there by noise alone: each is one cell more, and one that is missed costs more."""
NEGLIGIBLE = 0.03
"""If no more than this share of the entities can be outside of where nearly all values are, they go to the edge."""
MOST_HEAVY_HITTERS = 128
LEAST_HEAVY_HITTER = 1 / 512
"""A single value with a smaller share of the entities is no heavy hitter, however exact its count is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A column on its grid: the ticks of its bounds."""

    place: Place
    bounds: Bounds
    grid: Grid
    low: int
    high: int

    @property
    def width(self) -> int:
        """How many ticks there are."""
        return self.high - self.low + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoomed:
    """A wide column after a first look: the partition, its noisy counts, and the ticks where nearly all values are."""

    ticks: Ticks
    cells: Cells
    counts: Measured
    low: int
    high: int

    @property
    def width(self) -> int:
        """How many ticks there are where nearly all values are."""
        return self.high - self.low + 1


def measure_grid(columns: SearchedColumns, place: Place, bounds: Bounds, *, amount: Fraction) -> Ticks:
    """Find the grid of a column; one that is narrow on the type's own grid needs no other."""
    ticks = ticks_on(place, bounds, bounds.grid(None))
    if not steps_of(bounds.type) or (ticks.width <= NARROW and bounds.type.kind is not Kind.FLOAT):
        return ticks
    return ticks_on(place, bounds, bounds.grid(find_step(bounds, columns.steps([place], amount)[place])))


def zoom(columns: SearchedColumns, ticks: Ticks, *, amount: Fraction) -> Zoomed:
    """Look where between the bounds the values are."""
    cells = _partition(ticks)
    counts = columns.cells(ticks.place, ticks.grid, starts=cells.starts, last=cells.last, amount=amount)
    between = occupied(counts)
    first, last = (0, len(cells.starts) - 1) if between is None else between
    first, last = max(first - 1, 0), min(last + 1, len(cells.starts) - 1)
    low, high = cells.starts[first], cells.ends[last]
    if ticks.bounds.numeric:  # an outer power of two that magnitudes showed stays, however thinly it is spread
        low = ticks.low if low > _tick(ticks, ticks.bounds.first, end=1) else low
        high = ticks.high if high < _tick(ticks, ticks.bounds.last, end=0) else high
    return Zoomed(ticks=ticks, cells=cells, counts=counts, low=low, high=high)


def narrowed(zoomed: Zoomed) -> Domain:
    """A cell for each tick where nearly all values are; beyond, unless hardly any can be there, the first look's cells.

    Values that are spread too thinly to be seen are so kept apart, instead of piled up on the last tick.
    """
    ticks = zoomed.ticks
    if _most_beyond(zoomed) <= NEGLIGIBLE * ticks.bounds.entities:
        return range_on(ticks.grid, zoomed.low, zoomed.high)
    beyond = [edge for edge in zoomed.cells.starts if not zoomed.low <= edge <= zoomed.high]
    inside = range(zoomed.low, zoomed.high + 2)
    return bins_on(ticks.grid, (*beyond, *inside, ticks.high + 1), ())


def measure_bins(columns: SearchedColumns, zoomed: Zoomed, *, amount: Fraction) -> Domain:
    """Find heavy hitters and cells of a wide column; cells get the whole amount where heavy hitters cannot be found."""
    ticks, grid = zoomed.ticks, zoomed.ticks.grid
    heavy: dict[int, float] = {}
    cells = amount
    if columns.finds_heavy_hitters:
        heavy = _heavy_hitters(columns, zoomed, amount=amount * HEAVY_HITTERS)
        cells -= amount * HEAVY_HITTERS
    deep = max(ticks.bounds.entities - sum(heavy.values()), 0.0) / CELLS
    rough = zoomed.counts.counts.copy()
    for heavy_hitter, count in heavy.items():
        rough[bisect_right(zoomed.cells.starts, heavy_hitter) - 1] -= count
    fine = cut_heavy(zoomed.cells, rough, target=max(deep, CLEAR * zoomed.counts.noise.scale))
    counts = columns.cells(ticks.place, grid, starts=fine.starts, last=fine.last, without=sorted(heavy), amount=cells)
    merged = merge_light(fine, counts.counts, target=max(deep, CLEAR * counts.noise.scale))
    tails = [edge for edge in ticks.bounds.doublings(grid) if not ticks.low <= edge <= ticks.high]
    return bins_on(grid, (*merged.starts, merged.last + 1, *tails), heavy)


def _most_beyond(zoomed: Zoomed) -> float:
    """How many entities may be outside of where nearly all values are: what was seen there, and two deviations."""
    starts, ends = np.array(zoomed.cells.starts, object), np.array(zoomed.cells.ends, object)
    outside = ((ends < zoomed.low) | (starts > zoomed.high)).astype(bool)
    seen = float(zoomed.counts.counts[outside].sum())
    return max(seen, 0.0) + 2 * sqrt(float(outside.sum()) * zoomed.counts.noise.variance)


def _heavy_hitters(columns: SearchedColumns, zoomed: Zoomed, *, amount: Fraction) -> dict[int, float]:
    """Find heavy hitters, and how many entities have each."""
    ticks = zoomed.ticks
    heavy_hitters = columns.heavy_hitters(
        ticks.place, ticks.grid, low=zoomed.low, high=zoomed.high, false=FALSE_HEAVY_HITTERS, amount=amount
    )
    largest = np.argsort(-heavy_hitters.counts, kind="stable")[:MOST_HEAVY_HITTERS]
    least = max(ticks.bounds.entities * LEAST_HEAVY_HITTER, CLEAR)
    return {
        heavy_hitters.keys[at]: float(heavy_hitters.counts[at]) for at in largest if heavy_hitters.counts[at] >= least
    }


def _partition(ticks: Ticks) -> Cells:
    if not ticks.bounds.numeric:
        return equal_cells(ticks.low, ticks.high)
    return doubling_cells(ticks.low, ticks.high, ticks.bounds.doublings(ticks.grid))


def ticks_on(place: Place, bounds: Bounds, grid: Grid) -> Ticks:
    """The ticks of bounds. Few numbers are made more, at no cost: from zero on, and up to the next power of two."""
    low, high = (_floor(number, grid) for number in bounds.span)
    if bounds.numeric:
        if low > 0 and high < NARROW:
            low = 0
        if high < 0 and low > -NARROW:
            high = 0
        if high - low < FEW:
            low, high = (2 * low if low < 0 else low), (2 * high + 1 if high >= 0 else high)
    return Ticks(place=place, bounds=bounds, grid=grid, low=max(low, grid.low), high=min(high, grid.high))


def _tick(ticks: Ticks, bucket: int, *, end: int) -> int:
    """The first or the last tick of a bucket of magnitudes."""
    return _floor(ticks.bounds.magnitudes.span(bucket, bucket)[end], ticks.grid)


def _floor(number: Fraction, grid: Grid) -> int:
    return number // grid.step
