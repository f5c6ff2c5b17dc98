"""What the search for domains may spend: one formula, for every column the same.

Of the whole budget, a share times the part of the modelled columns whose domain is searched. Each step gets an even
part of it per column; what columns do not need is shared by those that turn out wide, and by lists of strings that
leave out much. Amounts depend on public numbers and on released answers alone. What is not spent is left to the method.
"""

from dataclasses import dataclass
from fractions import Fraction

from privbench.methods.domains.columns import SearchedColumns
from privbench.privacy.calibrate import drawable
from privbench.privacy.events import PrivacyMeasure

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
"""No column gets more than so many times its even part."""
HEAVY_HITTERS = Fraction(65, 100)
"""The part of what a wide column gets that goes to its heavy hitters; the rest goes to its cells."""

LEAST = min(
    MAGNITUDES, STEPS, ZOOM, HOLDERS, FREQUENT, (1 - MAGNITUDES - STEPS - ZOOM) * min(HEAVY_HITTERS, 1 - HEAVY_HITTERS)
)
"""The part of a column's even part that the smallest of its queries gets."""


def even_part(budget: Fraction, measure: PrivacyMeasure, modelled: int) -> Fraction:
    """What the domain of one of so many columns may cost, before others leave something over."""
    return budget * SHARES[measure] / modelled


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
        """For each of so many columns that are not done: wide ones, and lists of strings that cover too little."""
        left = self.even * len(self.columns.types) - self.columns.scope.total
        return min(left / columns, self.even * MOST)
