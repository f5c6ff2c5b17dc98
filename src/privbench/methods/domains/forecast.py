"""What finding domains will cost, before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privbench.methods.domains.budget import FREQUENT, LEAST, MAGNITUDES, even_part
from privbench.methods.domains.columns import Place, tail_share
from privbench.privacy.calibrate import drawable, noise_of, threshold_of
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import LARGEST_SCALE
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.types import Kind, SqlType

SEEN = 8
"""About so many noise scales of entities have to share an order of magnitude for it to be seen."""


POOR = 0.1
"""Domains are worth a warning if a larger share of the entities could be missed."""

STRING_REMEDIES = (
    "Remedies: declare the list in the spec if it is public knowledge (`domain: {values: [..], other: true}`), say "
    "`domain: {text: [0, 8, 16, 32]}` to have texts made up, or `drop: true`; or raise epsilon."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainForecast:
    """The columns (`table.column`) whose domains are to be found, and what that may cost."""

    columns: tuple[str, ...]
    amount: Fraction
    """At most, for all of them."""
    seen: float
    """What fewer entities have may lie outside of the bounds that are found; 0 if there are only strings."""
    strings: tuple[str, ...] = ()
    """Those of the columns that are strings."""
    listed: int | None = None
    """A string that about so many entities have, or more, is listed and published; None if none can be."""


def forecast_domains(wanted: Mapping[Place, SqlType], *, modelled: int, ledger: Ledger) -> DomainForecast | None:
    """Forecast the search for the domains of some of the modelled columns; None if there are none to find."""
    if not wanted:
        return None
    columns = tuple(f"{table}.{column}" for table, column in wanted)
    strings = tuple(f"{table}.{column}" for (table, column), kind in wanted.items() if kind.kind is Kind.TEXT)
    measure = ledger.measure
    even = even_part(ledger.budget, measure, modelled)
    if not drawable(measure, even * LEAST):  # then nothing is looked at
        return DomainForecast(
            columns=columns, amount=Fraction(0), seen=SEEN * LARGEST_SCALE / ENTITY_WEIGHT, strings=strings
        )
    noise = noise_of(measure, even * MAGNITUDES)
    listed = (
        threshold_of(measure, even * FREQUENT, delta=tail_share(ledger.thresholds, len(wanted))) if strings else None
    )
    return DomainForecast(
        columns=columns,
        amount=even * len(wanted),
        seen=SEEN * noise.scale if len(strings) < len(columns) else 0.0,
        strings=strings,
        listed=listed,
    )
