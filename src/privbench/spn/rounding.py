"""Systematic sampling: shares become whole numbers of rows with the least variance, and no bias."""

import numpy as np
from numpy.typing import NDArray


def whole_rows(shares: NDArray[np.float64], rows: int, *, offset: float) -> NDArray[np.int64]:
    """Round rows * shares to integers that add up to `rows`, each less than 1 from its exact value.

    Systematic sampling: the cumulated shares cut [0, rows) into intervals, and each gets the points of
    the grid {k - offset} that it holds. Over a uniform offset in [0, 1) the expectation is exact.

    >>> whole_rows(np.array([0.5, 0.3, 0.2]), 5, offset=0.4).tolist()
    [2, 2, 1]
    """
    cumulated = np.cumsum(shares)
    # Divided by the last entry, not by 1: a share of zero at the end then gets no row.
    edges = np.floor(cumulated / cumulated[-1] * rows + offset)
    # rows + offset can round up to rows + 1 when there are many rows.
    whole: NDArray[np.int64] = np.diff(np.minimum(edges, rows), prepend=0.0).astype(np.int64)
    return whole
