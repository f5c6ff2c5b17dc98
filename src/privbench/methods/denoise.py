"""Denoised histograms: what counts probably were, given noisy ones and that counts of one histogram are alike.

Empirical Bayes: the distribution of the counts of a histogram is estimated from its noisy counts by EM
(deconvolution of the noise, on a grid of counts that is even in logarithms), and each count is replaced by its
posterior mean. Many small counts are so told from none at all, where clipping at 0 keeps half of the noise. All of it
is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]

GRID_POINTS = 120
"""Counts in the grid, 0 aside."""
CLEAR = 12.0
"""A count above this many noise scales is taken as it is: its posterior mean would be no other."""
ROUNDS = 60
PRIOR_COUNTS = 4.0
"""How many counts the first guess of the distribution weighs as much as."""
EMPTY = 0.5
"""The share of codes without rows, by the first guess."""


def denoise(noisy: NDArray[np.int64], scale: float, *, gaussian: bool = False) -> Counts:
    """Posterior means of the counts behind noisy ones.

    The noise has the law exp(-|x| / scale), or exp(-x**2 / (2 scale**2)) if it is Gaussian.
    """
    values, where, times = np.unique(noisy, return_inverse=True, return_counts=True)
    means = values.astype(np.float64)
    unclear = means < CLEAR * scale
    if unclear.any():
        grid = np.append(0.0, np.geomspace(0.25, max(1.5 * CLEAR * scale, 20.0), GRID_POINTS))
        likelihood = _likelihood(means[unclear], grid, scale, gaussian=gaussian)  # (distinct noisy counts, grid)
        posterior = likelihood * _distribution(likelihood, times[unclear], grid)
        means[unclear] = posterior @ grid / posterior.sum(axis=1)
    return means[where.reshape(noisy.shape)]


def scaled(counts: Counts, rows: float) -> Counts:
    """Counts that add up to so many rows; the same everywhere if there are none to scale.

    >>> scaled(np.array([1.0, 3.0]), 8.0).tolist(), scaled(np.zeros(2), 8.0).tolist()
    ([2.0, 6.0], [4.0, 4.0])
    """
    total = counts.sum()
    return counts / total * rows if total > 0 else np.full(len(counts), rows / len(counts))


def _likelihood(noisy: Counts, grid: Counts, scale: float, *, gaussian: bool) -> Counts:
    """How likely each noisy count is for each count of the grid, up to a factor per noisy count."""
    distance = np.abs(noisy[:, None] - grid) / scale
    if gaussian:
        distance = distance**2 / 2
    likelihood: Counts = np.exp(distance.min(axis=1, keepdims=True) - distance)
    return likelihood


def _distribution(likelihood: Counts, times: NDArray[np.int64], grid: Counts) -> Counts:
    """The distribution over the grid that the noisy counts, each seen so many times, suggest; starts from a guess."""
    widths = np.diff(np.log1p(grid), append=np.log1p(grid[-1] * grid[-1] / grid[-2]))
    guess = (1 - EMPTY) * widths / widths.sum()
    guess[0] += EMPTY
    shares: Counts = guess
    for _ in range(ROUNDS):
        posterior = likelihood * shares
        posterior *= (times / posterior.sum(axis=1))[:, None]
        shares = (posterior.sum(axis=0) + PRIOR_COUNTS * guess) / (times.sum() + PRIOR_COUNTS)
    return shares
