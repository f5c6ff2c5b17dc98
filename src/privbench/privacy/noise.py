"""Integer noise, drawn exactly: the only random numbers that protect anyone.

The discrete Laplace law P(k) ~ exp(-|k| / scale) is drawn by the method of Canonne, Kamath and Steinke (2020) from
64-bit words with integer comparisons alone: no float is ever made, so no float can give a count away. Whole arrays
are drawn at once, every attempt to its end. Proof: docs/proofs/noise.md.
"""

import math
import os
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privbench.errors import BudgetError

WORD: Final = 2**64
LARGEST_SCALE: Final = 2**40
LARGEST_DENOMINATOR: Final = 2**60
_CHUNK: Final = 2**16
"""Attempts made at once: enough to forget the cost of a numpy call, few enough to stay in the cache."""


class Entropy(Protocol):
    """Where random words come from."""

    @property
    def private(self) -> bool:
        """Whether nobody can forecast or repeat the words."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw independent uniform 64-bit words, in an array that the caller may change."""
        ...


class OsEntropy:
    """The operating system's generator: no seed, no state to leak. The only private source."""

    private: Final = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw words from `os.urandom`."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


class TestEntropy:
    """Words that repeat with the seed, for tests; what is drawn from it is stamped "not private"."""

    __test__ = False  # not a test case, whatever its name looks like
    private: Final = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next words of the seeded stream."""
        return self._bits.random_raw(count)


def round_scale(scale: Fraction) -> Fraction:
    """Round a scale up to one that the sampler takes exactly; most small fractions stay as they are.

    More noise than asked for, never less: by less than one part in 2**38 unless the scale is below 2**-20.

    >>> round_scale(Fraction(2, 3))
    Fraction(2, 3)
    """
    if scale <= 0:
        raise ValueError(f"a noise scale must be positive, not {scale}")
    if _fits(scale):
        return scale
    if scale > LARGEST_SCALE:
        raise _too_much_noise(float(scale))
    bits = min(60, max(0, 40 - _whole_bits(scale)))
    return Fraction(math.ceil(scale * 2**bits), 2**bits)


def root_scale(square: Fraction) -> Fraction:
    """Round the root of a rational up to a scale that the samplers take exactly; as close as `round_scale`.

    >>> root_scale(Fraction(9, 4)), root_scale(Fraction(2)) ** 2 > 2
    (Fraction(3, 2), True)
    """
    if square <= 0:
        raise ValueError(f"the square of a noise scale must be positive, not {square}")
    if square > LARGEST_SCALE**2:
        raise _too_much_noise(float(square) ** 0.5)
    bits = min(60, max(0, 40 - (_whole_bits(square) + 1) // 2))
    return Fraction(math.isqrt(math.ceil(square * 4**bits) - 1) + 1, 2**bits)


def discrete_laplace(size: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `size` independent integers with P(k) = (1-a)/(1+a) a**|k|, a = exp(-1/scale).

    The scale must be one that `round_scale` returns. About 0.4 CPU-seconds for a million draws.
    """
    check_scale(scale)
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        noise = _attempts(min(2 * missing + 16, _CHUNK), scale, entropy)[:missing]
        drawn[filled : filled + noise.size] = noise
        filled += noise.size
    return drawn


def _attempts(count: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Make `count` attempts at a draw and return those that succeed, in order."""
    rest = uniform(scale.numerator, count, entropy)
    rest = rest[bernoulli_exp(rest, scale.numerator, entropy)]
    exponential = rest.astype(np.int64) + scale.numerator * run_lengths(rest.size, entropy)
    magnitude = exponential // scale.denominator
    negative = entropy.words(magnitude.size) >= np.uint64(WORD // 2)
    kept = (magnitude != 0) | ~negative  # else zero would be drawn once as +0 and once as -0
    signed: NDArray[np.int64] = np.where(negative, -magnitude, magnitude)[kept]
    return signed


def uniform(bound: int, count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Draw integers 0 .. bound-1, each exactly equally likely."""
    if bound == 1:
        return np.zeros(count, dtype=np.uint64)
    width = WORD // bound
    return _words_below(width * bound, count, entropy) // np.uint64(width)


def bernoulli(numerators: NDArray[np.uint64], bound: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Draw true with probability numerator/bound for each numerator <= bound, bound at least 2."""
    width = WORD // bound
    return _words_below(width * bound, numerators.size, entropy) < numerators * np.uint64(width)


def bernoulli_exp(numerators: NDArray[np.uint64], denominator: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Draw true with probability exp(-numerator/denominator) for each numerator < denominator <= 2**41."""
    if denominator == 1:
        return np.ones(numerators.size, dtype=np.bool_)
    return _alternate(numerators, denominator, 1, entropy)


def run_lengths(count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `count` integers with P(at least v) = exp(-v).

    Each is the number of successes with probability 1/e before the next failure. If the words run out within a run,
    more successes and failures are appended to it; starting the run anew would favour short ones.
    """
    hits = np.empty(0, dtype=np.bool_)
    while (missing := count - (hits.size - np.count_nonzero(hits))) > 0:
        tries = np.ones(missing * 7 // 4 + 8, dtype=np.uint64)
        hits = np.concatenate([hits, _alternate(tries, 1, 2, entropy)])
    return np.diff(np.flatnonzero(~hits)[:count], prepend=-1) - 1


def random_order(count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw a permutation of 0 .. count-1, all equally likely: the ranks of words, all drawn again if two are equal."""
    while True:
        words = entropy.words(count)
        ranks = np.empty(count, dtype=np.int64)
        order = np.argsort(words)
        if count < 2 or np.all(words[order[1:]] != words[order[:-1]]):
            ranks[order] = np.arange(count)
            return ranks


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that cannot be drawn exactly."""
    if not isinstance(scale, Fraction) or scale <= 0 or not _fits(scale):
        raise ValueError(f"the scale {scale!r} cannot be drawn exactly; pass it through round_scale first")


def _whole_bits(value: Fraction) -> int:
    """Bits before the point: the value is below 2 to that power."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def _too_much_noise(scale: float) -> BudgetError:
    return BudgetError(
        f"the noise (scale {scale:.3g}) would be larger than any count: the share of epsilon is too small. "
        "Raise epsilon, or measure less."
    )


def _fits(scale: Fraction) -> bool:
    return scale.numerator <= LARGEST_SCALE and scale.denominator <= LARGEST_DENOMINATOR


def _alternate(numerators: NDArray[np.uint64], denominator: int, first: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Von Neumann's series: from step `first` on go on with probability x/step; true if the last step is odd.

    For x = numerator/denominator this is true with probability exp(-x) from step 1 and, as step 1 of x = 1 always
    goes on, with probability 1/e from step 2. All entries are at the same step, so one bound serves them all.
    """
    result = np.zeros(numerators.size, dtype=np.bool_)
    going = np.arange(numerators.size)
    step = first
    while going.size:
        goes_on = bernoulli(numerators[going], denominator * step, entropy)
        if step % 2:
            result[going[~goes_on]] = True
        going = going[goes_on]
        step += 1
    return result


def _words_below(limit: int, count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Uniform words below the limit; words at or above it are drawn again, each in its own place."""
    words = entropy.words(count)
    if limit == WORD:
        return words
    largest = np.uint64(limit - 1)
    while (refused := np.flatnonzero(words > largest)).size:
        words[refused] = entropy.words(refused.size)
    return words
