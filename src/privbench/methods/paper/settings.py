"""The parameters of the paper's method under our names; docs/method-paper.md has the table of symbols."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from privbench.errors import SpecError


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
    as_printed: bool = False
    """Split rows as the paper prints it. That is not differentially private as claimed: the receipt says so."""

    def __post_init__(self) -> None:
        if self.min_rows < 1:
            raise SpecError(f"method.min_rows is {self.min_rows}: it must be at least 1.")
        for name in ("network_share", "trial_share", "trial_split_share"):
            if not 0 < getattr(self, name) < 1:
                raise SpecError(f"method.{name} is {float(getattr(self, name))}: it must lie between 0 and 1.")


def paper_settings(declared: Mapping[str, Any]) -> PaperSettings:
    """Read the settings that a spec declares.

    >>> paper_settings({"min_rows": 500}).min_rows
    500
    """
    known = {f.name: f for f in fields(PaperSettings)}
    unknown = sorted(set(declared) - set(known))
    if unknown:
        raise SpecError(f"method.{unknown[0]}: the method paper has no such setting. Settings: {', '.join(known)}.")
    return PaperSettings(**{name: _read(name, value) for name, value in declared.items()})


def _read(name: str, value: Any) -> Any:
    wanted = {"min_rows": int, "as_printed": bool}.get(name, float)
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(str(value))
    if type(value) is not wanted:
        raise SpecError(f"method.{name} is {value!r}: it must be of type {wanted.__name__}.")
    return value
