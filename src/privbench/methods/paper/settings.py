"""The parameters of the paper's method under our names; docs/method-paper.md has the table of symbols."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privbench.errors import SpecError
from privbench.methods.settings import check_share, declared_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSettings:
    """Defaults are the paper's."""

    dependence_threshold: Fraction = Fraction(1, 2)
    """Columns whose normalised mutual information is above this are split by rows, not by columns."""
    min_rows: int = 10_000
    """Blocks with fewer than twice as many rows are not split by rows."""
    network_share: Fraction = Fraction(9, 10)
    """Share of the budget for networks; the rest goes to keys."""
    trial_share: Fraction = Fraction(1, 2)
    """Share of a node's own budget for finding out whether to split columns."""
    trial_split_share: Fraction = Fraction(1, 2)
    """Share of the trial for choosing a split; the rest measures its dependence."""
    as_published: bool = False
    """Split rows as the paper prints it. That is not differentially private as claimed: the receipt says so."""

    def __post_init__(self) -> None:
        if self.min_rows < 1:
            raise SpecError(f"method.min_rows is {self.min_rows}: it must be at least 1.")
        for name in ("network_share", "trial_share", "trial_split_share"):
            check_share(name, getattr(self, name))


def paper_settings(declared: Mapping[str, Any]) -> PaperSettings:
    """Read the settings that a spec declares.

    >>> paper_settings({"min_rows": 500}).min_rows
    500
    """
    return declared_settings(PaperSettings, "paper", declared)
