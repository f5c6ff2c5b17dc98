"""Pools of values that repeat: how often the value of each rank is drawn, and which rows draw which.

Rank k (from 0) of a pool of m is drawn with probability F(k + 1) - F(k), where F(k) is the integral of x ** -skew from
1 to k + 1 over that from 1 to m + 1: Zipf's law in a form that needs no table. Before any value repeats, each is drawn
once, so that a table with enough rows has them all.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privbench.schema.domain import USUAL_SKEW

_SKEWS = np.arange(0, 2.51, 0.1)
_ENOUGH = 64
"""How values repeat is seen from so many repeats on."""
_NEARLY = 1e-9


def weights(size: int, skew: float) -> NDArray[np.float64]:
    """Return the probability of each rank of a pool.

    >>> weights(4, 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.diff(_below(np.arange(size + 1), size, skew)) if size else np.empty(0)


def ranks_at(shares: NDArray[np.float64], sizes: NDArray[np.int64], skew: float) -> NDArray[np.int64]:
    """Return the rank at which each share, from 0 up to 1, of a pool is reached."""
    if abs(skew - 1) < _NEARLY:
        reached = np.expm1(shares * np.log1p(sizes.astype(np.float64)))
    else:
        rest = 1 - skew
        reached = (shares * ((sizes + 1.0) ** rest - 1) + 1) ** (1 / rest) - 1
    return np.minimum(reached.astype(np.int64), sizes - 1)


def draw_ranks(
    cells: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator, *, before: float, skew: float
) -> NDArray[np.int64]:
    """Draw a rank for each row from the pool of its cell; `sizes` are those of the pools.

    `before` is how many batches like this one came before it: rows that come early take ranks that no other row has.
    """
    counts = np.bincount(cells, minlength=len(sizes))
    shuffled = rng.permutation(len(cells))
    order = shuffled[np.argsort(cells[shuffled].astype(np.uint16), kind="stable")]
    earlier = (before * counts).astype(np.int64) - np.cumsum(counts) + counts  # (cells,)
    places = np.empty(len(cells), dtype=np.int64)  # how many rows of its cell come before each row
    places[order] = np.arange(len(cells)) + np.repeat(earlier, counts)
    own = sizes[cells]
    again = np.flatnonzero(places >= own)
    places[again] = ranks_at(rng.random(len(again)), own[again], skew)
    return places


def fit_skew(groups: Sequence[NDArray[np.int64]]) -> float:
    """Return the skew that explains how often the values of each pool repeat, beyond the one time each is there."""
    extra = [np.sort(counts)[::-1] - 1 for counts in groups]
    logs = [np.log(np.arange(1, len(rows) + 1)) for rows in extra]
    total = sum(int(rows.sum()) for rows in extra)
    if total < _ENOUGH:
        return USUAL_SKEW
    wanted = sum(float(rows @ log) for rows, log in zip(extra, logs, strict=True)) / total
    means = [
        sum(float(rows.sum()) * float(weights(len(rows), skew) @ log) for rows, log in zip(extra, logs, strict=True))
        for skew in _SKEWS.tolist()
    ]
    return round(float(_SKEWS[np.argmin(np.abs(np.array(means) / total - wanted))]), 1)


def _below(ranks: NDArray[np.int64], size: int, skew: float) -> NDArray[np.float64]:
    """Return the probability of the ranks below each one."""
    return np.asarray(_area(ranks.astype(np.float64), skew) / _area(np.float64(size), skew))


def _area(ranks: NDArray[np.float64] | np.float64, skew: float) -> NDArray[np.float64]:
    if abs(skew - 1) < _NEARLY:
        return np.asarray(np.log1p(ranks))
    return np.asarray(((ranks + 1) ** (1 - skew) - 1) / (1 - skew))
