"""What the search for domains may spend: one formula, for every column the same; and what will come of it.

Of the whole budget, a share times the part of the modelled columns whose domain is searched. Each step gets an even
part of it per column; what columns do not need is shared by those that turn out wide, and by lists of strings that
leave out much. Amounts depend on public numbers and on released answers alone. What is not spent is left to the method.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privbench.methods.domains.columns import SCOPE, SearchedColumns, tail_share
from privbench.methods.method import Charges
from privbench.privacy.calibrate import drawable, noise_of, threshold_of
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.features import Magnitude, Present
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import LARGEST_SCALE
from privbench.privacy.queries import ENTITY_WEIGHT
from privbench.schema.tables import Place
from privbench.schema.types import Kind, SqlType

SHARES = {
    PrivacyMeasure.EPSILON: Fraction(3, 10),
    PrivacyMeasure.RHO: Fraction(4, 10),
    PrivacyMeasure.RHO_REPLACE: Fraction(4, 10),
}
"""Of rho it may be more: noise grows with the root of what is taken away."""
MAGNITUDES = Fraction(35, 100)
STEPS = Fraction(5, 100)
ZOOM = Fraction(15, 100)
HOLDERS = Fraction(5, 100)
FREQUENT = Fraction(45, 100)
MOST = 4
"""No column gets more than this many times its even part."""
HEAVY_HITTERS = Fraction(65, 100)
"""The part of what a wide column gets that goes to its heavy hitters; the rest goes to its cells."""

LEAST = min(
    MAGNITUDES, STEPS, ZOOM, HOLDERS, FREQUENT, (1 - MAGNITUDES - STEPS - ZOOM) * min(HEAVY_HITTERS, 1 - HEAVY_HITTERS)
)
"""The part of a column's even part that the smallest of its queries gets."""
SEEN = 8
"""About this many noise scales of entities have to share an order of magnitude for it to be seen."""
POOR = 0.1
"""Domains are worth a warning if a larger share of the entities could be missed."""
STRING_REMEDIES = (
    "Remedies: declare the list in the spec if it is public knowledge (`domain: {values: [..], other: true}`), say "
    "`domain: {text: [0, 8, 16, 32]}` to have texts made up, or `drop: true`; or raise epsilon."
)


def even_part(budget: Fraction, measure: PrivacyMeasure, modelled: int) -> Fraction:
    """What the domain of one of `modelled` columns may cost, before others leave something over."""
    return budget * SHARES[measure] / modelled


def mischarged_domains(charges: Charges, *, modelled: int) -> Iterator[str]:
    """Columns of which no first look cost what it does of the budget that a receipt states, as sentences."""
    parts = {Magnitude.kind: MAGNITUDES, Present.kind: HOLDERS}
    looks: dict[Place, list[bool]] = {}
    for charge in charges.scopes.get(SCOPE, ()):
        feature: dict[str, Any] = charge.query["axes"][0]["feature"] if charge.query.get("axes") else {"kind": None}
        if feature["kind"] in parts:
            part = even_part(charges.budget, charges.measure, modelled) * parts[feature["kind"]]
            looks.setdefault((charge.query["table"], feature["column"]), []).append(charges.agree(charge.amount, part))
    for place, agreeing in looks.items():
        if not any(agreeing):
            yield f"{'.'.join(place)}: no first look for its domain costs what it does of this budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Amounts per column, in the privacy measure of the ledger."""

    columns: SearchedColumns
    modelled: int
    """How many columns the method models, searched or not."""

    @property
    def even(self) -> Fraction:
        """The even part of one column."""
        return even_part(self.columns.vault.ledger.budget, self.columns.measure, self.modelled)

    @property
    def enough(self) -> bool:
        """Whether the smallest of all amounts buys noise that can be drawn."""
        return drawable(self.columns.measure, self.even * LEAST)

    @property
    def magnitudes(self) -> Fraction:
        """For orders of magnitude."""
        return self.even * MAGNITUDES

    @property
    def retry(self) -> Fraction:
        """For a second look at orders of magnitude where the first shows nothing: all that is left of the part."""
        return self.even - self.magnitudes

    @property
    def steps(self) -> Fraction:
        """For the step of a grid."""
        return self.even * STEPS

    @property
    def zoom(self) -> Fraction:
        """For a first look where between the bounds the values are."""
        return self.even * ZOOM

    @property
    def holders(self) -> Fraction:
        """For how many entities have a string."""
        return self.even * HOLDERS

    @property
    def frequent(self) -> Fraction:
        """For a first look at frequent strings."""
        return self.even * FREQUENT

    def rest(self, columns: int) -> Fraction:
        """For each of the `columns` that are not done: wide ones, and lists of strings that cover too little."""
        left = self.even * len(self.columns.types) - self.columns.scope.total
        return min(left / columns, self.even * MOST)


def poor_domains_line(columns: Iterable[str], *, unseen: float, entities: float, verb: str) -> str:
    """Warn of domains outside of which what `unseen` of the entities have may lie; `verb` is "were" or "will be"."""
    return (
        f"The domains of {', '.join(columns)} {verb} found with little budget: what fewer than about "
        f"{min(unseen, entities):,.0f} of {entities:,.0f} entities have may lie outside. Declare them in the spec "
        "if they are public knowledge (`domain: {range: [0, 120]}`), which costs nothing, or raise epsilon."
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
    """A string that about this many entities have, or more, is listed and published; None if none can be."""


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
