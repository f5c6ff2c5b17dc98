"""What the arrays of a network must satisfy, whichever node holds them. Each check returns a frozen copy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.feature_names import shown

MAX_CODES = 2**16
"""Sampled codes are uint16."""

WEIGHT_TOLERANCE = 1e-9
"""How far weights may be from adding up to 1."""


def checked_counts(column: str, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy the histogram of a column."""
    copy = np.array(counts, dtype=np.float64)
    if copy.ndim != 1 or not 1 <= copy.size <= MAX_CODES:
        raise ModelError(f"{shown(column)}: a histogram needs 1 to {MAX_CODES} counts, got shape {copy.shape}.")
    if not (np.isfinite(copy).all() and (copy >= 0).all()):
        raise ModelError(f"{shown(column)}: a histogram holds a negative count, infinity or NaN.")
    if copy.max() > np.finfo(np.float64).max / MAX_CODES:
        raise ModelError(f"{shown(column)}: the counts of a histogram are too large to add up.")
    copy.setflags(write=False)
    return copy


def checked_bins(column: str, bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Copy the bin of each code of a column."""
    given = np.asarray(bins)
    if given.ndim != 1 or not 1 <= given.size <= MAX_CODES or given.dtype.kind not in "iu":
        raise ModelError(
            f"{shown(column)}: needs the bin of each of its 1 to {MAX_CODES} codes, got shape {given.shape}."
        )
    copy = given.astype(np.int64)
    # The range first: the size of what bincount makes is the largest bin.
    if copy.min() < 0 or copy.max() >= copy.size or not np.bincount(copy).all():
        raise ModelError(f"{shown(column)}: its bins must be numbered from 0 without gaps.")
    copy.setflags(write=False)
    return copy


def checked_weights(what: str, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy weights that add up to 1."""
    copy = np.array(weights, dtype=np.float64)
    # Written so that NaN fails both.
    if not ((copy >= 0).all() and abs(copy.sum() - 1) <= WEIGHT_TOLERANCE):
        raise ModelError(f"the weights of {what} must be non-negative and add up to 1.")
    copy.setflags(write=False)
    return copy


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


def damaged(what: str) -> ModelError:
    """Make the error for a stored network that is not what was written."""
    return ModelError(f"the model is damaged: {what}. Get the file again from where it was published, or fit again.")


def text_field(header: Mapping[str, Any], name: str) -> str:
    """The name of a column that a link's header states; ModelError if it is not a text."""
    value = header[name]
    if not isinstance(value, str):
        raise ModelError("a link names a column by something that is not a string.")
    return value
