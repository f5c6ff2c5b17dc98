"""One column given its parents: a factor per parent, whose product is the most even conditional that fits all pairs.

Iterative proportional fitting over the configurations of parents that occur: the weighted margin of each parent and
the column becomes the table of the pair. What is kept of it are the factors, so that any configuration has a
distribution, also one that did not occur.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDS = 8
ENOUGH = 1e-3
"""Stop when no margin is farther from its table than this part of the mass."""
STRETCH = 1e3
"""The most that one round changes a factor by: tables that contradict each other do not run away."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configurations:
    """Combinations of the parents' bins, an array per parent, and the mass of each combination."""

    bins: tuple[Integers, ...]
    masses: Floats


def fit_factors(masses: Floats, found: Configurations, tables: Sequence[Floats]) -> tuple[Floats, ...]:
    """A factor per parent, (parent's bins, bins). `masses` are the column's own, `tables` those of the pairs."""
    own = masses / masses.sum()
    shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) for table in tables]
    factors = [share / np.maximum(own, 1e-300) for share in shares]
    factors[0] = shares[0].copy()
    if len(tables) > 1:
        _fit(factors, shares, found)
    return tuple(factor / np.maximum(factor.max(axis=1, keepdims=True), 1e-300) for factor in factors)


def conditional(factors: Sequence[Floats], bins: Sequence[Integers]) -> Floats:
    """The distribution of the column for each configuration: (configurations, bins)."""
    product = factors[0][bins[0]]
    for factor, at in zip(factors[1:], bins[1:], strict=True):
        product = product * factor[at]
    product = np.maximum(product, 1e-300)
    shares: Floats = product / product.sum(axis=1, keepdims=True)
    return shares


def _fit(factors: list[Floats], shares: Sequence[Floats], found: Configurations) -> None:
    sums = [_indicator(at, len(share), found.masses) for at, share in zip(found.bins, shares, strict=True)]
    wanted = [share * indicator.sum(axis=1)[:, None] for share, indicator in zip(shares, sums, strict=True)]
    current = conditional(factors, found.bins)
    total = found.masses.sum()
    for _ in range(ROUNDS):
        worst = 0.0
        for place, at in enumerate(found.bins):
            margin = sums[place] @ current
            worst = max(worst, float(np.abs(margin - wanted[place]).sum()))
            change = np.clip(wanted[place] / np.maximum(margin, 1e-12), 1 / STRETCH, STRETCH)
            factors[place] *= change
            current *= change[at]
            current /= np.maximum(current.sum(axis=1, keepdims=True), 1e-300)
        if worst < ENOUGH * total:
            break


def _indicator(bins: Integers, size: int, masses: Floats) -> Floats:
    """Which configurations have which bin of a parent, by their masses: (bins, configurations)."""
    table = np.zeros((size, len(bins)))
    table[bins, np.arange(len(bins))] = masses
    return table
