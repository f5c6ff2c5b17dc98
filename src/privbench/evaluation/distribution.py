"""Distances over the marginals of a table: every set of 1, 2, 3, 4 columns, or a sample of them by seed.

The figures of a set of columns are, in this order, KLD on values, KLD on codes, TVD on values, TVD on codes; NaN
where a side has no row. The paper's lambda-way KLD is the mean of the first over all sets of lambda columns.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.evaluation.distance import Paired, distance
from privbench.evaluation.result import Distances, Measure

Columns = tuple[int, ...]
"""Which columns of a table a marginal has, by position."""
Figures = NDArray[np.float64]  # (marginals, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much is counted: all marginals of a table up to these numbers, else that many drawn by seed."""

    marginals: tuple[int, ...] = (1000, 1000, 1000, 300)
    """By number of columns; the last holds for more."""
    pairs: int = 150
    """Pairs of a parent's and a child's column, per key."""
    row_visits: int = 1_000_000_000
    """Rows times marginals of one size: a table with more rows than this allows gets fewer marginals, at least 10."""

    def limit(self, ways: int, rows: int) -> int:
        """How many marginals of that many columns to count at most, for that many rows on both sides."""
        return self._within(self.marginals[min(ways, len(self.marginals)) - 1], rows)

    def pair_limit(self, rows: int) -> int:
        """How many pairs of columns of two tables to count at most."""
        return self._within(self.pairs, rows)

    def _within(self, limit: int, rows: int) -> int:
        return min(limit, max(10, self.row_visits // max(rows, 1)))


def choose_marginals(columns: int, ways: int, *, limit: int, seed: int) -> list[Columns]:
    """All sets of `ways` columns in order, or `limit` distinct ones drawn by seed."""
    total = math.comb(columns, ways)
    if total <= limit:
        return list(itertools.combinations(range(columns), ways))
    rng = np.random.default_rng([seed, columns, ways])
    if total <= 4 * limit:
        every = list(itertools.combinations(range(columns), ways))
        return [every[at] for at in sorted(rng.choice(total, limit, replace=False))]
    chosen: set[Columns] = set()
    while len(chosen) < limit:
        chosen.add(tuple(sorted(rng.choice(columns, ways, replace=False).tolist())))
    return sorted(chosen)


def score(values: Sequence[Paired], bins: Sequence[Paired], marginals: Sequence[Columns]) -> Figures:
    """The four figures of each marginal."""
    figures = np.full((len(marginals), 4), np.nan)
    for at, columns in enumerate(marginals):
        figures[at] = _figures([values[c] for c in columns], [bins[c] for c in columns])
    return figures


def _figures(values: Sequence[Paired], bins: Sequence[Paired]) -> tuple[float, float, float, float]:
    if not len(values[0].real) or not len(values[0].other):
        return (math.nan,) * 4
    raw = distance(values)
    coded = raw if all(v is b for v, b in zip(values, bins, strict=True)) else distance(bins)
    return raw.kld, coded.kld, raw.tvd, coded.tvd


def mean(figures: Figures) -> Figures:
    """The mean over marginals or tables, leaving out NaN; NaN if nothing is left."""
    there = figures[~np.isnan(figures).any(axis=1)]
    return there.mean(axis=0) if len(there) else np.full(4, np.nan)


def distances(figures: Figures, floor: Figures | None) -> Distances:
    """Four figures with their floors as a value."""
    floors = np.full(4, np.nan) if floor is None else floor
    kld_values, kld_codes, tvd_values, tvd_codes = (measure(*both) for both in zip(figures, floors, strict=True))
    return Distances(kld_values=kld_values, kld_codes=kld_codes, tvd_values=tvd_values, tvd_codes=tvd_codes)


def measure(value: float, floor: float = math.nan) -> Measure:
    """A figure with its floor, None for NaN."""
    return Measure(value=None if math.isnan(value) else float(value), floor=None if math.isnan(floor) else float(floor))
