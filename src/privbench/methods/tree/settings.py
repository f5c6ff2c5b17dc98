"""What a spec may say about method `tree`. Everything is automatic where it says nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privbench.errors import SpecError
from privbench.methods.settings import declared_settings

CHOICES = 0.05
"""Share of the budget for choosing pairs."""
LEAST_FOR_PAIRS = 0.1
"""Share of the budget that tables of pairs have at least, if there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSettings:
    """Overrides of what is worked out from public numbers; 0 means automatic."""

    parents: int = 0
    """The most parents of a column."""
    bins: int = 0
    """About the most bins of a column in a table of pairs."""
    single_share: Fraction = Fraction(0)
    """Share of a table's budget for histograms of single columns; 1: columns are independent."""
    choice_share: Fraction = Fraction(0)
    """Share for choosing pairs; what is left after both measures the pairs."""
    strata: bool = True
    """Whether columns of owned tables may be measured by how many rows an entity has."""
    siblings: bool = field(default=False, metadata={"later": True})
    """Whether a column of a row may depend on the same column of its owner's first row."""
    find: bool = field(default=True, metadata={"later": True})
    """Whether is looked for what columns equal, or lie near to, by the rows around them."""

    def __post_init__(self) -> None:
        if not 0 <= self.parents <= 8:
            raise SpecError(f"method.parents is {self.parents}: it must lie between 1 and 8, or be 0 for automatic.")
        if not (self.bins == 0 or 2 <= self.bins <= 512):
            raise SpecError(f"method.bins is {self.bins}: it must lie between 2 and 512, or be 0 for automatic.")
        if not 0 <= self.single_share <= 1:
            raise SpecError(
                f"method.single_share is {float(self.single_share):g}: it must lie above 0, at most 1 (columns are "
                "independent), or be 0 for automatic."
            )
        if not 0 <= self.choice_share <= Fraction(1, 2):
            raise SpecError(
                f"method.choice_share is {float(self.choice_share):g}: it must lie above 0, at most 0.5, or be 0 for "
                "automatic."
            )
        if (self.single_share * 1000).denominator > 1:
            raise SpecError(f"method.single_share is {float(self.single_share):g}: it has at most three decimals.")
        both = self.single_share + (self.choice_share or Fraction(str(CHOICES)))
        if self.single_share != 1 and both > 1 - Fraction(str(LEAST_FOR_PAIRS)):
            raise SpecError(
                f"method.single_share and choice_share add up to {float(both):g}: they must leave at least "
                f"{LEAST_FOR_PAIRS:g} for tables of pairs. To learn single columns alone, set `single_share: 1`."
            )

    @property
    def as_published(self) -> bool:
        """Every step is differentially private as claimed."""
        return False


def tree_settings(declared: Mapping[str, Any]) -> TreeSettings:
    """Read the settings that a spec declares."""
    return declared_settings(TreeSettings, "tree", declared)
