"""How far off the size of a table is expected to be: from the noise of the histogram of fanouts that it follows from.

A function of released numbers, so it may be published. The noise is that of the histogram; what strata and the fixed
sample of owners add, and what fanouts lose whose density does not fall, is not counted (docs/method-tree.md).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLEAR = 4.0
"""A bin of fanouts stands out if its share is this many standard deviations of the noise."""
HIDDEN_ERROR = 0.5
"""The error of the rows of bins that do not stand out, as a share of these rows."""


class Size(NamedTuple):
    """A number of rows or entities, and its expected relative standard error: 0 where the number is public."""

    rows: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyFanouts:
    """The fanouts of a table's owners, in bins, with the noise of each bin."""

    shares: Floats  # (bins,)
    means: Floats  # (bins,): child rows of an owner
    deviation: float
    """The standard deviation of the noise of a share."""


def size_error(fanouts: NoisyFanouts, *, owners: float) -> float:
    """The expected relative standard error of the rows that come with owners; `owners` is that of their number.

    Bins that stand out have the noise of their shares. What is in others was made up from the laws of tails: half of
    their rows count as error, or more where most of all rows are such.

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
    return math.hypot(owners, noise, hidden * max(hidden, HIDDEN_ERROR))


def together(*sizes: Size) -> Size:
    """The size of rows of several kinds, whose errors have nothing to do with each other.

    >>> together(Size(60, 0.1), Size(40, 0.2))
    Size(rows=100, error=0.1)
    """
    rows = sum(size.rows for size in sizes)
    if rows == 0:
        return Size(rows, max(size.error for size in sizes))
    return Size(rows, math.hypot(*(size.rows * size.error for size in sizes)) / rows)
