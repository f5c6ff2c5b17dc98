"""Sizes of owned tables: how far off they are expected to be, the limit of a direct count, fanouts tilted to a size.

All of it is a function of released numbers. What strata and the fixed sample of owners add to the error is left out
(docs/method-tree.md).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import DEVIATIONS, range_of
from privbench.spn.clique import CliqueTree, Conditional
from privbench.spn.nodes import Leaf, Node, Product

Floats = NDArray[np.float64]

CLEAR = 4.0
"""A bin of fanouts stands out if its share is this many standard deviations of the noise."""
HIDDEN_ERROR = 0.5
"""The error of the rows of bins that do not stand out, as a share of these rows."""

FALLING_ERROR = 0.04
"""The error of the rows of owners with many, as a share of these rows: that densities fall beyond their mode is only
assumed."""
FEW_ROWS = 6
"""Up to so many rows, numbers have bins of their own."""
BEYOND_ERROR = 1.0
"""The error of the rows beyond the limit of a direct count, as a share of these rows."""
CONTINUED = 2.0
"""At least so many times the rows between half of the limit and the limit may lie beyond it: the tail that tells how
many do is itself a guess, and a short one would have little counted."""
WIDER = 1.4
"""Sizes that follow from fanouts are off by so many times what their errors say (decision 65)."""
MOST_LOGS = 14.0
MOST_DOUBLINGS = 13
"""The highest limit of a direct count is 2 to the power of this."""
MANY_SHARE = 0.3
"""Owners with many rows alone are tilted if they have this share of all rows."""
MOST_POWER = 3.0
"""The steepest tilt of fanouts."""
MOST_HAVE = 0.999
"""The largest share of owners that have a row of a table of which they have at most one, if fanouts are tilted."""
MET = 1e-3
"""Owners with many rows alone are tilted if that gives the rows up to this share."""
ROUNDS = 40


class Size(NamedTuple):
    """A number of rows or entities, its expected relative standard error, and the range that it is in with 90 %.

    The error is 0 where the number is public.
    """

    rows: float
    error: float
    low: float
    high: float

    def times(self, factor: float) -> "Size":
        """The size of so many times the rows, as sure as before."""
        return Size(self.rows * factor, self.error, self.low * factor, self.high * factor)


def sized(rows: float, error: float) -> Size:
    """A size whose range follows from noise of that relative standard error.

    >>> sized(100.0, 0.0)
    Size(rows=100.0, error=0.0, low=100.0, high=100.0)
    """
    return Size(rows, error, *range_of(rows, rows * error))


def predicted(rows: float, error: float) -> Size:
    """A size that follows from fanouts, with the range that such sizes were found to be in.

    >>> [round(number, 2) for number in predicted(100.0, 0.1)]
    [100.0, 0.1, 79.43, 125.9]
    """
    factor = math.exp(min(DEVIATIONS * WIDER * error, MOST_LOGS))
    return Size(rows, error, rows / factor, rows * factor)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyFanouts:
    """The fanouts of a table's owners, in bins, with the noise of each bin."""

    shares: Floats  # (bins,)
    means: Floats  # (bins,): child rows of an owner
    deviation: float
    """The standard deviation of the noise of a share."""


def size_error(fanouts: NoisyFanouts, *, owners: float) -> float:
    """The expected relative standard error of the rows that come with owners; `owners` is that of their number.

    Bins that stand out have the noise of their shares, and wide ones the error of their shape. What is in others was
    made up from the laws of tails: half of their rows count as error, or more where most of all rows are such.

    >>> fanouts = NoisyFanouts(shares=np.array([0.5, 0.5]), means=np.array([0.0, 2.0]), deviation=0.03)
    >>> round(size_error(fanouts, owners=0.08), 9)
    0.1
    """
    rows = fanouts.shares * fanouts.means
    mean = float(rows.sum())
    if mean == 0:
        return owners
    clear = fanouts.shares >= CLEAR * fanouts.deviation
    noise = fanouts.deviation * math.hypot(*fanouts.means[clear]) / mean
    hidden = float(rows[~clear].sum()) / mean
    shape = FALLING_ERROR * float(rows[fanouts.means > FEW_ROWS].sum()) / mean
    return math.hypot(owners, noise, shape, hidden * max(hidden, HIDDEN_ERROR))


def together(*sizes: Size) -> Size:
    """The size of rows of several kinds, whose errors have nothing to do with each other.

    >>> together(Size(60, 0.1, 50, 80), Size(40, 0.2, 30, 55))
    Size(rows=100, error=0.1, low=85.85786437626905, high=125.0)
    """
    rows = sum(size.rows for size in sizes)
    low = max(rows - math.hypot(*(size.rows - size.low for size in sizes)), 0.0)
    high = rows + math.hypot(*(size.high - size.rows for size in sizes))
    if rows == 0:
        return Size(rows, max(size.error for size in sizes), low, high)
    return Size(rows, math.hypot(*(size.rows * size.error for size in sizes)) / rows, low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimit:
    """Up to how many rows of an entity a direct count of a table's rows goes, and the error of what follows from it."""

    rows: int
    noise: float
    """The part of the error that is noise."""
    error: float

    def relaxed(self, noise: float) -> tuple["RowLimit", Fraction]:
        """The same limit with at least that noise, and the part of the budget that is enough for it."""
        if self.noise >= noise:
            return self, Fraction(1)
        error = math.sqrt(self.error**2 - self.noise**2 + noise**2)
        return replace(self, noise=noise, error=error), Fraction(self.noise / noise)


def best_limit(by_entity: NDArray[np.int64], *, scale: float, deviation: float) -> RowLimit:
    """The limit at which noise and what lies beyond it cost the least together.

    `by_entity` are the rows of entities in a sample that stands for `scale` times as many; `deviation` is that of the
    noise in entities, each of which counts as many rows as the limit.
    """
    rows = float(by_entity.sum()) * scale

    def limit(power: int) -> RowLimit:
        counted, before = (float(np.minimum(by_entity, 2 ** max(p, 0)).sum()) * scale for p in (power, power - 1))
        noise = deviation * 2**power / max(counted, 1e-9)
        beyond = max(rows - counted, CONTINUED * (counted - before)) / max(rows, 1e-9)
        return RowLimit(rows=2**power, noise=noise, error=math.hypot(noise, BEYOND_ERROR * beyond))

    return min((limit(power) for power in range(MOST_DOUBLINGS + 1)), key=lambda found: found.error)


def pooled(log_ratio: float, measured: float, expected: float) -> tuple[float, float]:
    """A ratio of sizes and its error, from a measured one with its error and the error of what was expected.

    >>> ratio, error = pooled(0.2, 0.1, 0.1)
    >>> round(math.log(ratio), 3), round(error, 3)
    (0.1, 0.071)
    """
    trust = expected**2 / (expected**2 + measured**2)
    return math.exp(trust * log_ratio), measured * math.sqrt(trust)


def tilt(shares: Floats, means: Floats, ratio: float) -> Floats:
    """A factor for each bin of fanouts that gives so many times the rows: a power of the number of rows.

    As many owners have none as before; where those with many rows have enough of all rows, as many have few, unless
    they alone cannot make up for the rest. Where owners have at most one row, more or fewer have it.
    """
    if means.max() <= 1:
        none, some = float(shares[means == 0].sum()), float(shares[means > 0].sum())
        more = min(ratio, max(MOST_HAVE, some) / max(some, 1e-9))
        return np.where(means > 0, more, (1 - more * some) / none) if none else np.ones_like(shares)
    many = means > FEW_ROWS
    if shares[many] @ means[many] >= MANY_SHARE * shares @ means:
        factors = _powers(shares, means, many, ratio)
        if math.isclose(shares * factors @ means, ratio * shares @ means, rel_tol=MET):
            return factors
    return _powers(shares, means, means > 0, ratio)


def _powers(shares: Floats, means: Floats, some: NDArray[np.bool_], ratio: float) -> Floats:
    """The factors for some bins that keep their owners and give so many times the rows of all, as far as they can."""
    total = float(shares[some].sum())

    def factors(power: float) -> Floats:
        raised = np.where(some, np.maximum(means, 1e-9) ** power, 1.0)
        raised[some] *= total / max(float(shares[some] @ raised[some]), 1e-300)
        return raised

    low, high = -MOST_POWER, MOST_POWER
    wanted = ratio * float(shares @ means)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if float(shares * factors(middle) @ means) < wanted:
            low = middle
        else:
            high = middle
    return factors((low + high) / 2)


def tilted(node: Node, column: str, factors: Floats) -> Node:
    """A network in which the codes of one column are so many times as likely."""
    if isinstance(node, Leaf) and node.column == column:
        return Leaf(column=column, counts=node.counts * factors)
    if isinstance(node, Product):
        return Product(children=tuple(tilted(child, column, factors) for child in node.children))
    if isinstance(node, CliqueTree):
        columns = tuple(_tilted(c, factors) if c.column == column else c for c in node.columns)
        return replace(node, columns=columns)
    return node


def _tilted(conditional: Conditional, factors: Floats) -> Conditional:
    bins, counts = conditional.bins, conditional.counts * factors
    before, after = (np.bincount(bins, weights=c, minlength=int(bins.max()) + 1) for c in (conditional.counts, counts))
    by_bin = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    first = (conditional.factors[0] * by_bin,) if conditional.factors else ()
    return replace(conditional, counts=counts, factors=(*first, *conditional.factors[1:]))
