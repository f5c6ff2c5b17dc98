"""The paper's row split as it is printed, kept so that its results can be redone. Not private as claimed.

Its centres are the means of raw rows, so that one row moves the distance of every other, while the noise on
each distance is scaled for that row's own distance alone (docs/proofs/paper.md).
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.blocks import CentrePair, leaning
from privbench.privacy.exact import COORDINATE, Codes, coordinates, sums_by_cell, weighted_histogram
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.noise import Entropy, discrete_laplace


def published_row_split(
    codes: Mapping[str, Codes],
    facts: Mapping[str, ColumnFacts],
    *,
    rounds: int,
    fewest: int,
    scale: Fraction,
    entropy: Entropy,
) -> NDArray[np.bool_]:
    """Which rows go right: from random halves, so many rounds of noisy reassignment, then at least `fewest` each."""
    coin = np.random.default_rng(entropy.words(4))
    rows = len(next(iter(codes.values())))
    right = coin.permutation(rows) >= rows // 2
    for _ in range(rounds):
        distances = leaning(codes, facts, _raw_centres(codes, facts, right))
        right = distances + discrete_laplace(rows, scale, entropy) > 0
    return _at_least(right, min(fewest, rows // 2), coin)


def _raw_centres(codes: Mapping[str, Codes], facts: Mapping[str, ColumnFacts], right: NDArray[np.bool_]) -> CentrePair:
    sizes = np.maximum(np.bincount(right, minlength=2), 1)
    centres = {}
    for name, column in codes.items():
        if facts[name].ordered:
            centres[name] = sums_by_cell(coordinates(column, facts[name].size), right.astype(np.uint8), 2) // sizes
        else:
            centres[name] = _shares(column, right, facts[name].size) // sizes[:, None]
    return CentrePair(columns=centres)


def _shares(codes: Codes, right: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Rows per cluster and code, in coordinates."""
    return weighted_histogram([(right.astype(np.uint8), 2), (codes, size)], None, 2 * COORDINATE)


def _at_least(right: NDArray[np.bool_], fewest: int, coin: np.random.Generator) -> NDArray[np.bool_]:
    """Move random rows to a side that has too few."""
    right = right.copy()
    for side in (True, False):
        lack = fewest - int((right == side).sum())
        if lack > 0:
            right[coin.permutation(np.flatnonzero(right != side))[:lack]] = side
    return right
