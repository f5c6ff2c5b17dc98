"""A noisy table of two columns to a table of masses: shrunk towards independence, raked to its margins.

Coarse to fine: on groups of 3, 6, 12 .. neighbouring bins per ordered axis, what a group deviates from expectation is
kept in proportion to how much of the deviations of all groups cannot be noise. All of it is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

LEAST_SHARE = 0.02
"""A cell keeps at least this part of what is expected of it."""
LEAST_NOISE = 0.15
"""A cell keeps at least this many standard deviations of its noise, if half of its expected value allows it."""
RAKING_ROUNDS = 30
SMALLEST_MASS = 1e-100
"""Raking ends where a cell has less, far from the smallest number that can be told from 0."""


def shrink(noisy: Floats, variance: Floats, expected: Floats, *, ordered: tuple[bool, bool]) -> Floats:
    """Masses of cells from noisy ones with that variance and expected ones; all of one shape."""
    if variance.max() < 1e-6:
        return np.maximum(noisy, 0) + 1e-12
    rows, columns = (_levels(size, by_order) for size, by_order in zip(noisy.shape, ordered, strict=True))
    depth = max(len(rows), len(columns))
    masses = expected.copy()
    for level in range(depth):
        a, b = _at(rows, level, depth), _at(columns, level, depth)
        mean, spread = _grouped(masses, a, b), _grouped(variance, a, b)
        kept = _posterior(_grouped(noisy, a, b), spread, mean)
        masses *= (kept / np.maximum(mean, 1e-300))[np.ix_(a, b)]
    return masses


def rake(
    masses: Floats,
    rows: Floats,
    columns: Floats,
    *,
    zeros: NDArray[np.bool_] | None = None,
    least: float = 1e-12,
    rounds: int = RAKING_ROUNDS,
) -> Floats:
    """Masses in proportion, row by row and column by column, until their margins are those given.

    They begin with at least `least`, but for `zeros`, which stay 0. Where zeros leave no table with these margins,
    cells shrink for ever: that ends before one of them becomes 0, too.
    """
    raked = np.maximum(masses, least)
    if zeros is not None:
        raked[zeros] = 0.0
    for _ in range(rounds):
        raked = raked * (rows / np.maximum(raked.sum(axis=1), 1e-300))[:, None]
        sums = raked.sum(axis=0)
        raked = raked * (columns / np.maximum(sums, 1e-300))
        met = np.abs(raked.sum(axis=1) - rows).max() <= 1e-9 * rows.max()
        if met or raked.min(where=raked > 0, initial=1.0) < SMALLEST_MASS:
            break
    return raked


def _posterior(noisy: Floats, variance: Floats, mean: Floats) -> Floats:
    """What to believe of cells whose deviation from the mean has a variance in proportion to the mean."""
    deviation = noisy - mean
    weight = (1 / (variance + mean)) ** 2
    ratio = max(0.0, (weight * (deviation**2 - variance)).sum() / max((weight * mean).sum(), 1e-300))
    trust = ratio * mean / (ratio * mean + variance)
    least = np.maximum(LEAST_SHARE * mean, np.minimum(mean / 2, LEAST_NOISE * np.sqrt(variance)))
    kept: Floats = np.maximum(mean + trust * deviation, least)
    return kept


def _levels(size: int, ordered: bool) -> list[Groups]:
    """Groups of bins, from coarse to single bins."""
    levels = []
    groups = 3
    while ordered and groups < size:
        levels.append(np.arange(size) * groups // size)
        groups *= 2
    return [*levels, np.arange(size)]


def _at(levels: list[Groups], level: int, depth: int) -> Groups:
    """The groups of an axis at a level of the deeper of two axes."""
    return levels[max(0, len(levels) - depth + level)]


def _grouped(cells: Floats, rows: Groups, columns: Groups) -> Floats:
    if len(rows) == rows[-1] + 1 and len(columns) == columns[-1] + 1:
        return cells
    by_row = np.add.reduceat(cells, np.searchsorted(rows, np.arange(rows[-1] + 1)), axis=0)
    grouped: Floats = np.add.reduceat(by_row, np.searchsorted(columns, np.arange(columns[-1] + 1)), axis=1)
    return grouped
