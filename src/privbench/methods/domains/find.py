"""All domains that are found with budget, on one screen.

Every column goes through the same steps, all columns through one step before any goes through the next, so that what
narrow columns leave over helps the wide ones. Only noisy answers are seen; what is found is public.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from privbench.encode.grid import range_on
from privbench.methods.domains.bounds import NARROW, find_bounds
from privbench.methods.domains.budget import Purse
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.domains.retry import look_again
from privbench.methods.domains.search import EASY, measure_bins, measure_grid, narrowed, zoom
from privbench.methods.domains.texts import list_domain, measure_more, measure_texts
from privbench.privacy.domain_vault import DomainVault, Place
from privbench.schema.domain import Domain
from privbench.schema.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A domain. `paid` is false where the budget was too small to look: it then follows from the type alone."""

    domain: Domain
    paid: bool


def find_domains(vault: DomainVault, *, modelled: int) -> Mapping[Place, Found]:
    """Find the domain of every column in the vault; `modelled` is how many columns the method models in all."""
    purse = Purse(vault=vault, modelled=modelled)
    coarse = {place: coarse_domain(kind) for place, kind in vault.types.items()}
    if not vault.drawable(purse.least):
        return {place: Found(domain=domain, paid=False) for place, domain in coarse.items()}
    numbers = [place for place, kind in vault.types.items() if kind.kind is not Kind.TEXT]
    texts = [place for place in vault.types if place not in numbers]
    lists = [measure_texts(vault, p, texts=purse.texts, frequent=purse.frequent) for p in texts]
    looks = {place: vault.magnitudes(place, amount=purse.magnitudes) for place in numbers}
    bounds = {place: find_bounds(vault.types[place], look) for place, look in looks.items()}
    ticks = {
        place: measure_grid(vault, place, found, amount=purse.steps)
        for place, found in bounds.items()
        if found is not None and not found.only_zero
    }
    zeros = [place for place, found in bounds.items() if found is not None and found.only_zero]
    unseen = [place for place, found in bounds.items() if found is None]
    domains = coarse | {place: coarse_domain(vault.types[place], signed=False) for place in zeros}
    domains |= {place: look_again(vault, place, looks[place], amount=purse.again) for place in unseen}
    domains |= {p: range_on(t.grid, t.low, t.high) for p, t in ticks.items() if t.width <= EASY}
    zoomed = {p: zoom(vault, t, amount=purse.zoom) for p, t in ticks.items() if t.width > EASY}
    domains |= {p: narrowed(z) for p, z in zoomed.items() if z.width <= NARROW}
    wide = [z for z in zoomed.values() if z.width > NARROW]
    if waiting := len(wide) + sum(known.incomplete for known in lists):
        amount = purse.rest(waiting)
        domains |= {z.ticks.place: measure_bins(vault, z, amount=amount) for z in wide}
        lists = [measure_more(vault, known, amount=amount) if known.incomplete else known for known in lists]
    domains |= {known.place: list_domain(known) for known in lists}
    return {place: Found(domain=domain, paid=True) for place, domain in domains.items()}
