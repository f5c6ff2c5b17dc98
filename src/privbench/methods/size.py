"""Estimates of how many rows there are, and how several of one size are put together."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """An estimate of a number of rows and its variance."""

    rows: float
    variance: float


def noise_variance(sensitivity: int, epsilon: Fraction) -> float:
    """The variance of a count's noise, near enough for weighting estimates."""
    return 2 * (sensitivity / float(epsilon)) ** 2 + 1e-9


def pooled(sizes: list[Size]) -> Size:
    """The mean of several estimates of one size, weighted by their precision.

    >>> pooled([Size(rows=10, variance=1), Size(rows=20, variance=4)]).rows
    12.0
    """
    precision = sum(1 / s.variance for s in sizes)
    return Size(rows=sum(s.rows / s.variance for s in sizes) / precision, variance=1 / precision)
