"""A noisy histogram over more values than anyone can list, of which only the large counts are released.

The dense mechanism would add discrete Laplace noise to the count of each of the values and release those that come
out above a threshold. Nearly all counts are zero, so which zeros come out above it is drawn directly: how many
(`binomial`), where (uniformly), how far above (a geometric law). The law of what is released is exactly that of the
dense mechanism, so it costs the same and needs no delta (docs/proofs/domains.md). Work grows with the data alone.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.binomial import TailChance, binomial
from privbench.privacy.noise import Entropy, bernoulli_exp, check_scale, discrete_laplace, run_lengths, uniform

Integers = NDArray[np.int64]


def sparse_histogram(
    places: Integers, counts: Integers, *, low: int, high: int, above: int, scale: Fraction, entropy: Entropy
) -> Integers:
    """Release the values of low .. high whose noisy count is more than `above` (>= 0), as rows of value and count.

    `places` are the different values, ascending, whose `counts` are not zero; all lie between low and high (int64).
    """
    check_scale(scale)
    noisy = counts + discrete_laplace(counts.size, scale, entropy)
    kept = noisy > above
    absent = high - low + 1 - places.size
    chance = TailChance(least=above + 1, scale=scale)
    false = binomial(absent, chance, entropy) if absent else 0
    ranks = _different(absent, false, entropy)
    heights = above + 1 + _geometric(false, scale, entropy)
    found = np.concatenate([places[kept], _absent_values(ranks, places, low)])
    order = np.argsort(found)
    return np.stack([found, np.concatenate([noisy[kept], heights])], axis=1)[order]


def _different(bound: int, count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Draw `count` different integers below the bound, each set equally likely; repeats are drawn again."""
    drawn: list[int] = []
    seen: set[int] = set()
    while len(drawn) < count:
        for number in uniform(bound, count - len(drawn), entropy).tolist():
            if number not in seen:
                seen.add(number)
                drawn.append(number)
    return np.array(drawn, dtype=np.uint64)


def _geometric(count: int, scale: Fraction, entropy: Entropy) -> Integers:
    """Draw integers with P(at least g) = exp(-g / scale): the size of noise whose sign is known."""
    drawn = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        rest = uniform(scale.numerator, 2 * (count - filled) + 16, entropy)
        rest = rest[bernoulli_exp(rest, scale.numerator, entropy)][: count - filled]
        exponential = rest.astype(np.int64) + scale.numerator * run_lengths(rest.size, entropy)
        drawn[filled : filled + rest.size] = exponential // scale.denominator
        filled += rest.size
    return drawn


def _absent_values(ranks: NDArray[np.uint64], places: Integers, low: int) -> Integers:
    """The values of low .. high that are at these ranks among those not in `places`."""
    first = np.int64(low).view(np.uint64)  # differences of int64 may pass int64; modulo 2**64 they are exact
    offsets = places.view(np.uint64) - first
    before = offsets - np.arange(places.size, dtype=np.uint64)  # absent values before each place
    skipped = np.searchsorted(before, ranks, side="right").astype(np.uint64)
    return np.asarray((first + ranks + skipped).view(np.int64))
