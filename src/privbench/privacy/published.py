"""The paper's row split as it is printed, kept so that its results can be redone. Not private as claimed.

Its centres are the means of raw rows, so that one row moves the distance of every other, while the noise on
each distance is scaled for that row's own distance alone (docs/proofs/paper.md).
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.facts import ColumnFacts
from privbench.privacy.noise import Entropy, discrete_laplace
from privbench.privacy.partition import CentrePair, leaning
from privbench.privacy.queries import COORDINATE, Codes, cluster_counts, cluster_histograms, cluster_sums, coordinates


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
    sizes = np.maximum(cluster_counts(right), 1)
    centres = {}
    for name, column in codes.items():
        if facts[name].ordered:
            centres[name] = cluster_sums(coordinates(column, facts[name].size), right) // sizes
        else:
            centres[name] = cluster_histograms(column, right, facts[name].size) * (2 * COORDINATE) // sizes[:, None]
    return CentrePair(columns=centres)


def _at_least(right: NDArray[np.bool_], fewest: int, coin: np.random.Generator) -> NDArray[np.bool_]:
    """Move random rows to a side that has too few."""
    right = right.copy()
    for side in (True, False):
        lack = fewest - int((right == side).sum())
        if lack > 0:
            right[coin.permutation(np.flatnonzero(right != side))[:lack]] = side
    return right
