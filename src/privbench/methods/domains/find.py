"""All domains that are found with budget, on one screen.

Every column goes through the same steps, all columns through one step before any goes through the next, so that what
narrow columns leave over helps the wide ones. A column of which the first look shows nothing but noise gets a second
one, for all that is left of its part. Only noisy answers are seen; what is found is public.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from privbench.encode.grid import Grid, bins_on, range_on
from privbench.methods.denoise import weighted_mean
from privbench.methods.domains.bounds import NARROW, Bounds, find_bounds
from privbench.methods.domains.budget import SearchBudget
from privbench.methods.domains.cells import cut
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.domains.columns import SCOPE, SearchedColumns
from privbench.methods.domains.search import EASY, measure_bins, measure_grid, narrowed, ticks_on, zoom
from privbench.methods.domains.strings import list_domain, measure_more, measure_strings
from privbench.privacy.vault import Measured, Vault
from privbench.schema.domain import Domain
from privbench.schema.tables import Place
from privbench.schema.types import Kind, SqlType

PARTS = 8
"""Powers of two between bounds that are not near each other are cut into this many cells."""
DATES = 64
"""The number of cells that dates and times get."""


def look_again(columns: SearchedColumns, place: Place, first: Measured, *, amount: Fraction) -> Domain:
    """Find the domain of a column by its magnitudes, measured twice; that of its type if nothing can be seen."""
    kind = columns.types[place]
    bounds = find_bounds(kind, averaged(first, columns.magnitudes([place], amount)[place]))
    if bounds is None or bounds.only_zero:
        return coarse_domain(kind, signed=bounds is None)
    return rough_domain(place, bounds)


def averaged(first: Measured, second: Measured) -> Measured:
    """Two measurements of the same counts as one, weighted by their precision."""
    values, noise = weighted_mean((first.values, first.noise), (second.values, second.noise))
    return replace(first, values=np.rint(values).astype(np.int64), noise=noise)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A domain. `paid` is false where the budget was too small to look: it then follows from the type alone."""

    domain: Domain
    paid: bool


def find_domains(vault: Vault, types: Mapping[Place, SqlType], *, modelled: int) -> Mapping[Place, Found]:
    """Find the domain of columns of these types; `modelled` is how many columns the method models in all."""
    columns = SearchedColumns(vault=vault, scope=vault.ledger.root.sequential(SCOPE), types=types)
    budget = SearchBudget(columns=columns, modelled=modelled)
    coarse = {place: coarse_domain(kind, table=place[0], column=place[1]) for place, kind in types.items()}
    if not budget.enough:
        return {place: Found(domain=domain, paid=False) for place, domain in coarse.items()}
    numbers = [place for place, kind in types.items() if kind.kind is not Kind.TEXT]
    strings = [place for place in types if place not in numbers]
    lists = measure_strings(columns, strings, holders=budget.holders, frequent=budget.frequent)
    looks = columns.magnitudes(numbers, budget.magnitudes)
    bounds = {place: find_bounds(types[place], look) for place, look in looks.items()}
    ticks = {
        place: measure_grid(columns, place, between, amount=budget.steps)
        for place, between in bounds.items()
        if between is not None and not between.only_zero
    }
    zeros = [place for place, between in bounds.items() if between is not None and between.only_zero]
    unseen = [place for place, between in bounds.items() if between is None]
    domains = coarse | {place: coarse_domain(types[place], signed=False) for place in zeros}
    domains |= {place: look_again(columns, place, looks[place], amount=budget.retry) for place in unseen}
    domains |= {p: range_on(t.grid, t.low, t.high) for p, t in ticks.items() if t.width <= EASY}
    zoomed = {p: zoom(columns, t, amount=budget.zoom) for p, t in ticks.items() if t.width > EASY}
    domains |= {p: narrowed(z) for p, z in zoomed.items() if z.width <= NARROW}
    wide = [z for z in zoomed.values() if z.width > NARROW]
    if waiting := len(wide) + sum(known.incomplete for known in lists):
        amount = budget.rest(waiting)
        domains |= {z.ticks.place: measure_bins(columns, z, amount=amount) for z in wide}
        lists = [measure_more(columns, known, amount=amount) if known.incomplete else known for known in lists]
    domains |= {known.place: list_domain(known) for known in lists}
    return {place: Found(domain=domain, paid=True) for place, domain in domains.items()}
