"""What the arrays of a network must satisfy, whichever node holds them. Each check returns a frozen copy."""

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError

MAX_CODES = 2**16
"""Sampled codes are uint16."""

WEIGHT_TOLERANCE = 1e-9
"""How far weights may be from adding up to 1."""


def checked_counts(column: str, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy the histogram of a column."""
    found = np.array(counts, dtype=np.float64)
    if found.ndim != 1 or not 1 <= found.size <= MAX_CODES:
        raise ModelError(f"{column}: a histogram needs 1 to {MAX_CODES} counts, got shape {found.shape}.")
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ModelError(f"{column}: a histogram holds a negative count, infinity or NaN.")
    if found.max() > np.finfo(np.float64).max / MAX_CODES:
        raise ModelError(f"{column}: the counts of a histogram are too large to add up.")
    found.setflags(write=False)
    return found


def checked_bins(column: str, bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Copy the bin of each code of a column."""
    given = np.asarray(bins)
    if given.ndim != 1 or not 1 <= given.size <= MAX_CODES or given.dtype.kind not in "iu":
        raise ModelError(f"{column}: needs the bin of each of its 1 to {MAX_CODES} codes, got shape {given.shape}.")
    found = given.astype(np.int64)
    # The range first: the size of what bincount makes is the largest bin.
    if found.min() < 0 or found.max() >= found.size or not np.bincount(found).all():
        raise ModelError(f"{column}: its bins must be numbered from 0 without gaps.")
    found.setflags(write=False)
    return found


def checked_weights(what: str, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy weights that add up to 1."""
    found = np.array(weights, dtype=np.float64)
    # Written so that NaN fails both.
    if not ((found >= 0).all() and abs(found.sum() - 1) <= WEIGHT_TOLERANCE):
        raise ModelError(f"the weights of {what} must be non-negative and add up to 1.")
    found.setflags(write=False)
    return found


def shares_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide counts by their total; all zero means uniform.

    >>> shares_of(np.array([3.0, 1.0])).tolist()
    [0.75, 0.25]
    """
    top = counts.max()
    if top == 0:
        return np.full(counts.size, 1 / counts.size)
    # By the largest first: a total of subnormal counts would lose digits.
    parts = counts / top
    shares: NDArray[np.float64] = parts / parts.sum()
    return shares


def damaged(found: str) -> ModelError:
    """Make the error for a stored network that is not what was written."""
    return ModelError(f"the model is damaged: {found}. Get the file again from where it was published, or fit again.")
