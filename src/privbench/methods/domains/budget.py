"""What the search for domains may spend: one formula, for every column the same.

Of the whole budget, a share times the part of the modelled columns whose domain is searched. Each step gets an even
part of it per column; what columns do not need is shared by those that turn out wide, and by lists of texts that leave
out much. Amounts depend on public numbers and on released answers alone. What is not spent is left to the method.
"""

from dataclasses import dataclass
from fractions import Fraction

from privbench.privacy.domain_vault import DomainVault
from privbench.privacy.events import Currency

SHARES = {
    Currency.EPSILON: Fraction(3, 10),
    Currency.RHO: Fraction(4, 10),
    Currency.RHO_REPLACE: Fraction(4, 10),
}
"""Of rho it may be more: noise grows with the root of what is taken away."""
MAGNITUDES = Fraction(35, 100)
STEPS = Fraction(5, 100)
ZOOM = Fraction(15, 100)
TEXTS = Fraction(5, 100)
FREQUENT = Fraction(45, 100)
MOST = 4
"""No column gets more than so many times its even part."""
HEAVY_HITTERS = Fraction(65, 100)
"""The part of what a wide column gets that goes to its heavy hitters; the rest goes to its cells."""

LEAST = min(
    MAGNITUDES, STEPS, ZOOM, TEXTS, FREQUENT, (1 - MAGNITUDES - STEPS - ZOOM) * min(HEAVY_HITTERS, 1 - HEAVY_HITTERS)
)
"""The part of a column's even part that the smallest of its queries gets."""


def even_part(budget: Fraction, currency: Currency, modelled: int) -> Fraction:
    """What the domain of one of so many columns may cost, before others leave something over."""
    return budget * SHARES[currency] / modelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """Amounts per column, in the currency of the ledger."""

    vault: DomainVault
    modelled: int
    """How many columns the method models, searched or not."""

    @property
    def even(self) -> Fraction:
        """The even part of one column."""
        return even_part(self.vault.budget, self.vault.currency, self.modelled)

    @property
    def least(self) -> Fraction:
        """Not more than any amount below: if this can be drawn, all can."""
        return self.even * LEAST

    @property
    def magnitudes(self) -> Fraction:
        """For orders of magnitude."""
        return self.even * MAGNITUDES

    @property
    def again(self) -> Fraction:
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
    def texts(self) -> Fraction:
        """For how many entities have a text."""
        return self.even * TEXTS

    @property
    def frequent(self) -> Fraction:
        """For a first look at frequent texts."""
        return self.even * FREQUENT

    def rest(self, columns: int) -> Fraction:
        """For each of so many columns that are not done: wide ones, and lists of texts that cover too little."""
        left = self.even * len(self.vault.types) - self.vault.spent
        return min(left / columns, self.even * MOST)
