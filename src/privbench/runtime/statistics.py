"""What a planner knows of a column, and when two columns look different to it."""

from collections.abc import Mapping
from dataclasses import dataclass

Statistics = Mapping[tuple[str, str], "ColumnStatistics"]
"""By table and column."""

_NULLS, _WIDTH, _DISTINCT, _CORRELATION = 0.02, 1, 1.3, 0.1
"""From here on a difference is worth a word: of shares, of bytes, as a factor, of correlations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """One column of one variant."""

    nulls: float
    """The share of rows."""
    width: float
    """Bytes of a value, on average."""
    distinct: float
    """Different values."""
    correlation: float | None
    """How far values rise with the place of their rows, -1 to 1; None where a type has no order."""

    def differences(self, other: "ColumnStatistics") -> tuple[str, ...]:
        """What is different in another column, in words with both figures.

        >>> a = ColumnStatistics(nulls=0.5, width=4, distinct=10, correlation=1.0)
        >>> a.differences(ColumnStatistics(nulls=0.51, width=4, distinct=20, correlation=0.2))
        ('distinct values 10 -> 20', 'correlation 1.00 -> 0.20')
        """
        low, high = sorted((max(self.distinct, 1.0), max(other.distinct, 1.0)))
        correlations = (self.correlation or 0.0, other.correlation or 0.0)
        found = (
            (abs(self.nulls - other.nulls) > _NULLS, f"NULLs {self.nulls:.1%} -> {other.nulls:.1%}"),
            (abs(self.width - other.width) >= _WIDTH, f"bytes {self.width:g} -> {other.width:g}"),
            (high > _DISTINCT * low, f"distinct values {self.distinct:,.0f} -> {other.distinct:,.0f}"),
            (
                abs(correlations[0] - correlations[1]) > _CORRELATION,
                f"correlation {correlations[0]:.2f} -> {correlations[1]:.2f}",
            ),
        )
        return tuple(words for differs, words in found if differs)
