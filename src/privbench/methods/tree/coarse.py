"""Coarse bins of codes, from noisy values alone: pairs of columns are measured in them."""

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.features import Axis, Feature

Floats = NDArray[np.float64]

LIGHT = 0.35
"""A run of codes lighter than this part of the target joins its neighbour."""


def coarse_axis(feature: Feature, counts: Floats, *, most: int, least: float) -> Axis:
    """A feature in at most about `most` bins of at least `least` mass; heavy codes alone, NULL never with values."""
    if feature.apart and feature.size > 1:
        bins = _bins(counts[:-1], feature.ordered, most, least)
        return Axis(feature, np.append(bins, bins.max() + 1))
    return Axis(feature, _bins(counts, feature.ordered, most, least))


def bin_masses(axis: Axis, counts: Floats) -> Floats:
    """The mass of each bin."""
    return np.bincount(axis.bins, weights=counts, minlength=axis.size).astype(np.float64)


def _bins(counts: Floats, ordered: bool, most: int, least: float) -> NDArray[np.int64]:
    if len(counts) <= 2:
        return np.arange(len(counts))
    return _runs(counts, max(counts.sum() / most, least)) if ordered else _heavy(counts, most, least)


def _heavy(counts: Floats, most: int, least: float) -> NDArray[np.int64]:
    """Codes of at least that mass alone, the heaviest first; all others in one bin."""
    by_mass = np.argsort(-counts, kind="stable")
    alone = [code for code in by_mass.tolist() if counts[code] >= least][:most]
    if len(alone) >= len(counts) - 1:
        return np.arange(len(counts))
    bins = np.full(len(counts), len(alone))
    bins[alone] = np.arange(len(alone))
    return bins


def _runs(counts: Floats, target: float) -> NDArray[np.int64]:
    """Runs of neighbouring codes with about the target mass; a code heavier than that alone.

    >>> _runs(np.array([5.0, 1.0, 1.0, 1.0, 9.0, 0.5]), 3.0).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    starts = [0]
    mass = 0.0
    for code, count in enumerate(counts.tolist()):
        full = mass >= target or (count >= target and mass >= LIGHT * target)
        if full and code > starts[-1]:
            starts.append(code)
            mass = 0.0
        mass += count
    if len(starts) > 1 and mass < LIGHT * target:
        starts.pop()
    bins = np.zeros(len(counts), np.int64)
    bins[starts[1:]] = 1
    return np.cumsum(bins)
