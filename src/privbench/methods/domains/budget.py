"""What the search for domains may spend: one formula, for every column the same.

Of the whole budget, SHARE times the part of the modelled columns whose domain is searched. Each step gets an even part
of it per column; what columns do not need is shared by those that turn out wide. Amounts depend on public numbers and
on released answers alone. What is not spent is left to the method.
"""

from dataclasses import dataclass
from fractions import Fraction

from privbench.privacy.domain_vault import DomainVault

SHARE = Fraction(3, 10)
MAGNITUDES = Fraction(35, 100)
STEPS = Fraction(5, 100)
ZOOM = Fraction(15, 100)
MOST = 4
"""No column gets more than so many times its even part."""
SPIKES = Fraction(65, 100)
"""The part of what a wide column gets that goes to its spikes; the rest goes to its cells."""

LEAST = min(MAGNITUDES, STEPS, ZOOM, (1 - MAGNITUDES - STEPS - ZOOM) * min(SPIKES, 1 - SPIKES))
"""The part of a column's even part that the smallest of its queries gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """Amounts per column, in the currency of the ledger."""

    vault: DomainVault
    modelled: int
    """How many columns the method models, searched or not."""

    @property
    def even(self) -> Fraction:
        """The even part of one column."""
        return self.vault.budget * SHARE / self.modelled

    @property
    def least(self) -> Fraction:
        """Not more than any amount below: if this can be drawn, all can."""
        return self.even * LEAST

    @property
    def magnitudes(self) -> Fraction:
        """For orders of magnitude."""
        return self.even * MAGNITUDES

    @property
    def steps(self) -> Fraction:
        """For the step of a grid."""
        return self.even * STEPS

    @property
    def zoom(self) -> Fraction:
        """For a first look where between the bounds the values are."""
        return self.even * ZOOM

    def wide(self, columns: int) -> tuple[Fraction, Fraction]:
        """For the spikes and the cells of each of so many wide columns."""
        left = self.even * len(self.vault.types) - self.vault.spent
        each = min(left / columns, self.even * MOST)
        return each * SPIKES, each * (1 - SPIKES)
