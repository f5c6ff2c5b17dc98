"""One noisy histogram to counts: what they probably were, given the noise and that neighbours are alike.

Empirical Bayes: the distribution of counts is estimated from the noisy ones by EM on a grid even in logarithms, and
each count is replaced by its posterior mean. In an ordered column the prior of a count leans
on its neighbours', and the result is averaged with piecewise constant fits. All of it is post-processing.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.calibrate import Noise

Floats = NDArray[np.float64]

TAKEN_AS_IT_IS = 8.0
"""A count above this many standard deviations is taken as it is."""
GRID = np.append(0.0, np.geomspace(0.25, 1e7, 170))
ROUNDS = 60
PRIOR_COUNTS = 4.0
NEIGHBOURS = 4.0
"""Standard deviation, in codes, of the window in which neighbours share a prior."""
OWN_PRIOR = 0.2
"""Weight of the prior of all codes beside that of the neighbours."""
PENALTIES = (2.0, 4.0, 6.0, 9.0)
"""What a further piece of a piecewise constant fit costs; the fits are averaged."""
FEWEST_FOR_PIECES = 12
LEAST_NOISE = 0.2
"""Noise below this needs no denoising."""


def weighted_mean(first: tuple[NDArray[Any], Noise], second: tuple[NDArray[Any], Noise]) -> tuple[Floats, Noise]:
    """Two noisy measurements of the same counts as one, weighted by their precision, and its noise.

    >>> noise = Noise(gaussian=True, scale=1.0)
    >>> weighted_mean((np.array([2.0]), noise), (np.array([4.0]), noise))[0].tolist()
    [3.0]
    """
    (a, noise), (b, other) = first, second
    va, vb = noise.variance, other.variance
    return (a * vb + b * va) / (va + vb), replace(noise, scale=noise.scale * sqrt(vb / (va + vb)))


def denoise(noisy: Floats, noise: Noise, total: float, *, smooth: bool) -> Floats:
    """Counts that add up to `total`; `smooth` if codes are ordered."""
    if noise.scale < LEAST_NOISE:
        return _scaled(np.maximum(noisy, 0) + 1e-9, total)
    means = posterior_means(noisy, noise, smooth=smooth)
    # Lost mass costs more than invented mass, in any distance between distributions.
    means = np.maximum(means, min(0.03, 0.3 / len(noisy)) * noise.scale)
    counts = _corrected(means, noisy > TAKEN_AS_IT_IS * np.sqrt(noise.variance), total)
    if smooth and len(noisy) >= FEWEST_FOR_PIECES:
        pieces = np.mean([_scaled(fit, total) for fit in _pieces(noisy, noise)], axis=0)
        counts = _scaled(np.sqrt(np.maximum(counts, 0.1) * np.maximum(pieces, 0.1)), total)
    return np.maximum(counts, 1e-9)


def posterior_means(noisy: Floats, noise: Noise, *, smooth: bool) -> Floats:
    """Posterior means of counts, under a prior estimated from the noisy counts themselves."""
    clear = TAKEN_AS_IT_IS * np.sqrt(noise.variance)
    small = noisy < clear
    means = np.maximum(noisy, 0.0)
    if not small.any():
        return means
    grid = GRID[: np.searchsorted(GRID, max(1.5 * clear, 20.0))]
    likelihood = _likelihood(noisy[small], grid, noise)
    prior = _prior(likelihood, grid)
    posterior = likelihood * prior
    if smooth and small.sum() > 3:
        posterior = likelihood * (OWN_PRIOR * prior + (1 - OWN_PRIOR) * _local_prior(posterior, small))
    means[small] = posterior @ grid / posterior.sum(axis=1)
    return means


def _likelihood(noisy: Floats, grid: Floats, noise: Noise) -> Floats:
    """How likely each noisy count is for each count of the grid, up to a factor per noisy count."""
    distance = np.abs(noisy[:, None] - grid) / noise.scale
    if noise.gaussian:
        distance = distance**2 / 2
    likelihood: Floats = np.exp(distance.min(axis=1, keepdims=True) - distance) + 1e-300
    return likelihood


def _prior(likelihood: Floats, grid: Floats) -> Floats:
    """The distribution over the grid that the noisy counts suggest, starting from a guess that half are empty."""
    widths = np.diff(np.log(np.append(grid, grid[-1] * 1.07) + 1))
    guess = 0.5 * widths / widths.sum()
    guess[0] += 0.5
    prior: Floats = guess
    for _ in range(ROUNDS):
        totals = likelihood @ prior
        prior = (prior * ((1 / totals) @ likelihood) + PRIOR_COUNTS * guess) / (len(likelihood) + PRIOR_COUNTS)
    return prior


def _local_prior(posterior: Floats, small: NDArray[np.bool_]) -> Floats:
    """For each small count the posteriors of its neighbours, averaged in a window and blurred along the grid."""
    places = np.flatnonzero(small)
    shares = posterior / posterior.sum(axis=1, keepdims=True)
    gaps = np.abs(places[:, None] - places)
    window = np.where(gaps <= 3 * NEIGHBOURS, np.exp(-0.5 * (gaps / NEIGHBOURS) ** 2), 0.0)
    near = window @ shares
    near /= near.sum(axis=1, keepdims=True)
    steps = np.abs(np.arange(near.shape[1])[:, None] - np.arange(near.shape[1]))
    blur = np.where(steps <= 8, np.exp(-0.5 * (steps / 4.0) ** 2), 0.0)
    local: Floats = near @ (blur / blur.sum(axis=0))
    return local


def _corrected(means: Floats, clear: NDArray[np.bool_], total: float) -> Floats:
    """Counts brought to their total by moving the clear ones, whose sum is well known; else all in proportion."""
    missing = total - means.sum()
    known = means[clear].sum()
    if clear.any() and abs(missing) < 0.5 * known:
        counts = means.copy()
        counts[clear] *= 1 + missing / known
        return counts
    return _scaled(means, total)


def _pieces(noisy: Floats, noise: Noise) -> Floats:
    """Piecewise constant fits of least squares with a penalty per piece: one fit for each of PENALTIES."""
    size = len(noisy)
    sums, squares = np.append(0.0, np.cumsum(noisy)), np.append(0.0, np.cumsum(noisy**2))
    penalties = np.array(PENALTIES)
    best = np.zeros((len(penalties), size + 1))
    start = np.zeros((len(penalties), size + 1), np.int64)
    for end in range(1, size + 1):
        first = np.arange(end)
        spread = squares[end] - squares[first] - (sums[end] - sums[first]) ** 2 / (end - first)
        cost = best[:, :end] + spread / noise.variance
        start[:, end] = cost.argmin(axis=1)
        best[:, end] = cost.min(axis=1) + penalties
    fits = np.empty((len(penalties), size))
    for row in range(len(penalties)):
        end = size
        while end > 0:
            first_of = start[row, end]
            fits[row, first_of:end] = (sums[end] - sums[first_of]) / (end - first_of)
            end = first_of
    return np.maximum(fits, 0.02 * noise.scale + 0.01)


def _scaled(counts: Floats, total: float) -> Floats:
    scaled: Floats = counts * (total / max(counts.sum(), 1e-9))
    return scaled
