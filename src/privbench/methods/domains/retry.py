"""A second look at columns of which the first one showed nothing but noise, for all that is left of their part.

Both looks together show orders of magnitude in less noise. Nothing is left to look for steps, heavy hitters or depths:
where the bounds are near each other, each tick of a coarse enough grid is a cell; else powers of two are cut evenly.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import sqrt

from privbench.encode.grid import Grid, bins_on, range_on
from privbench.methods.domains.bounds import NARROW, Bounds, find_bounds
from privbench.methods.domains.cells import cut
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.domains.search import ticks_on
from privbench.privacy.domain_vault import DomainVault, Measured, Place
from privbench.schema.domain import Domain
from privbench.schema.types import Kind

PARTS = 8
"""Powers of two between bounds that are not near each other are cut into so many cells."""
DATES = 64
"""So many cells dates and times get."""


def look_again(vault: DomainVault, place: Place, first: Measured, *, amount: Fraction) -> Domain:
    """Find the domain of a column by its magnitudes, measured twice; that of its type if nothing can be seen."""
    kind = vault.types[place]
    bounds = find_bounds(kind, averaged(first, vault.magnitudes(place, amount=amount)))
    if bounds is None or bounds.only_zero:
        return coarse_domain(kind, signed=bounds is None)
    return rough_domain(place, bounds)


def averaged(first: Measured, second: Measured) -> Measured:
    """Two measurements of the same counts as one, weighted by their precision."""
    a, b = first.noise.variance, second.noise.variance
    noise = replace(first.noise, scale=first.noise.scale * sqrt(b / (a + b)))
    return Measured(counts=(first.counts * b + second.counts * a) / (a + b), noise=noise)


def rough_domain(place: Place, bounds: Bounds) -> Domain:
    """The domain of a column of which the bounds are all that is known."""
    own = ticks_on(place, bounds, bounds.grid(None))
    if not bounds.numeric:
        return bins_on(own.grid, (*cut(own.low, own.high, DATES), own.high + 1), ())
    if own.width <= NARROW and bounds.type.kind is not Kind.FLOAT:
        return range_on(own.grid, own.low, own.high)
    if not bounds.near:
        return bins_on(own.grid, _cut_doublings(bounds, own.grid), ())
    few = ticks_on(place, bounds, bounds.grid(bounds.coarse_step))
    return range_on(few.grid, few.low, few.high)


def _cut_doublings(bounds: Bounds, grid: Grid) -> Iterator[int]:
    """The edges of powers of two, tails included, and of the parts of those between the bounds."""
    low, high = (number // grid.step for number in bounds.span)
    edges = bounds.doublings(grid)
    for start, end in pairwise(edges):
        yield from cut(start, end - 1, PARTS if low <= start <= high else 1)
    yield edges[-1]
