"""What finding domains will cost, before anything is spent."""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from privbench.methods.domains.budget import LEAST, MAGNITUDES, SHARE
from privbench.privacy.events import UNITS, Currency
from privbench.privacy.noise import LARGEST_SCALE
from privbench.privacy.price import drawable, noise_of

SEEN = 8
"""About so many noise scales of entities have to share an order of magnitude for it to be seen."""


POOR = 0.1
"""Domains are worth a warning if a larger share of the entities could be missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainForecast:
    """The columns (`table.column`) whose domains are to be found, and what that may cost."""

    columns: tuple[str, ...]
    amount: Fraction
    """At most, for all of them."""
    seen: float
    """What fewer entities have may lie outside of the bounds that are found."""


def foresee_domains(
    places: Collection[tuple[str, str]], *, modelled: int, budget: Fraction, currency: Currency
) -> DomainForecast | None:
    """Forecast the search for the domains of some of the modelled columns; None if there are none to find."""
    if not places:
        return None
    columns = tuple(f"{table}.{column}" for table, column in places)
    even = budget * SHARE / modelled
    if not drawable(currency, even * LEAST, sensitivity=UNITS):  # then nothing is looked at
        return DomainForecast(columns=columns, amount=Fraction(0), seen=SEEN * LARGEST_SCALE / UNITS)
    noise = noise_of(currency, even * MAGNITUDES, sensitivity=UNITS, additive=True)
    return DomainForecast(columns=columns, amount=even * len(places), seen=SEEN * noise.scale)
