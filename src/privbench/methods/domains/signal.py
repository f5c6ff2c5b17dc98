"""Which cells of a noisy histogram hold more than noise: post-processing, from counts and the law of their noise."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.calibrate import Noise
from privbench.privacy.vault import Measured

WINDOWS = (1, 2, 4, 8, 16)
"""Sums of so many neighbouring cells are looked at: light cells may show together what none shows alone."""
FALSE = 0.02
"""About how many cells without anything in them are taken for occupied, per histogram."""
NEAR = 1.5
"""Beside an occupied cell, a count of so many noise scales is enough: a mistake there costs little."""


def cutoff(noise: Noise, terms: int, chance: float) -> float:
    """Return what the sum of so many draws of noise passes with at most that chance."""
    if noise.gaussian:
        return noise.scale * sqrt(2 * terms * log(1 / chance))
    if terms == 1:
        return noise.scale * log(1 / (2 * chance))
    slopes = np.linspace(0.01, 0.99, 99)  # Chernoff's bound, whose best slope need not be exact
    return noise.scale * float(np.min((log(1 / chance) - terms * np.log1p(-(slopes**2))) / slopes))


def occupied(measured: Measured, *, barrier: int | None = None) -> tuple[int, int] | None:
    """Return the first and the last cell that hold more than noise; None if none does.

    From the cell `barrier` on, to either side, nothing is taken for being near: that of zero says nothing about others.
    """
    counts, noise = measured.counts, measured.noise
    found = np.zeros(len(counts), dtype=bool)
    windows = [width for width in WINDOWS if width <= len(counts)]
    for width in windows:
        limit = cutoff(noise, width, FALSE / (len(windows) * len(counts)))
        unseen = np.where(found, -np.inf, counts)  # a window around a found cell would show that cell again
        sums = np.convolve(unseen, np.ones(width), mode="valid")
        for start in np.flatnonzero(sums > limit):
            found[_trimmed(counts, int(start), int(start) + width - 1, noise)] = True
    if not found.any():
        return None
    first, last = (int(at) for at in np.flatnonzero(found)[[0, -1]])
    while first > 0 and first != barrier and counts[first - 1] > NEAR * noise.scale:
        first -= 1
    while last < len(counts) - 1 and last != barrier and counts[last + 1] > NEAR * noise.scale:
        last += 1
    return first, last


def _trimmed(counts: NDArray[np.float64], first: int, last: int, noise: Noise) -> slice:
    """Leave out the outer cells of a window that hold next to nothing themselves."""
    while counts[first] < noise.scale and first < last:
        first += 1
    while counts[last] < noise.scale and first < last:
        last -= 1
    return slice(first, last + 1)
