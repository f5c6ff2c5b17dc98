"""Integer noise with Gaussian tails, drawn exactly, for promises with a delta.

The discrete Gaussian law P(k) ~ exp(-k**2 / (2 scale**2)) by the method of Canonne, Kamath and Steinke (2020): a
discrete Laplace draw is kept with a probability that turns one law into the other. As in `noise.py`, from 64-bit
words with integer comparisons alone, whole arrays at once. Proof: docs/proofs/noise.md.
"""

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.noise import Entropy, bernoulli, bernoulli_exp, check_scale, discrete_laplace, run_lengths

_CHUNK: Final = 2**16
_FARTHEST: Final = 2**10
"""Proposals so many scales away are never kept: the law gives them less than exp(-2**19)."""


def discrete_gaussian(size: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `size` independent integers with P(k) ~ exp(-k**2 / (2 scale**2)).

    The scale (sigma) must be one that `round_scale` or `root_scale` returns. About 0.6 CPU-seconds for a million.
    """
    check_scale(scale)
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        proposed = discrete_laplace(min(missing * 3 // 2 + 16, _CHUNK), scale, entropy)
        noise = proposed[_kept(proposed, scale, entropy)][:missing]
        drawn[filled : filled + noise.size] = noise
        filled += noise.size
    return drawn


def _kept(proposed: NDArray[np.int64], scale: Fraction, entropy: Entropy) -> NDArray[np.bool_]:
    """Draw which proposals stay: y does with probability exp(-z**2 / 2), z = | |y| / scale - 1 |.

    With scale = a/b, z = whole + rest/a and z**2 / 2 = (whole**2 * a + 2 * whole * rest) / (2 a) + (rest/a)**2 / 2.
    """
    a, b = scale.numerator, scale.denominator
    whole, rest = np.divmod(np.abs(np.abs(proposed) * b - a), a)
    near = whole < _FARTHEST
    whole = np.where(near, whole, 0)
    runs, part = np.divmod(whole * whole * a + 2 * whole * rest, 2 * a)
    kept: NDArray[np.bool_] = near & (run_lengths(proposed.size, entropy) >= runs)
    kept &= bernoulli_exp(part.astype(np.uint64), 2 * a, entropy)
    kept &= _bernoulli_half_square(rest.astype(np.uint64), a, entropy)
    return kept


def _bernoulli_half_square(numerators: NDArray[np.uint64], denominator: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Draw true with probability exp(-x**2 / 2) for each x = numerator/denominator < 1.

    The series of `noise.py` for x**2 / 2: at each step go on with probability x times x / (2 step), so that no number
    is ever squared; true if the last step is odd.
    """
    result = np.ones(numerators.size, dtype=np.bool_)
    going = np.flatnonzero(numerators)
    step = 1
    while going.size:
        goes_on = bernoulli(numerators[going], denominator, entropy)
        goes_on &= bernoulli(numerators[going], 2 * step * denominator, entropy)
        result[going[~goes_on]] = step % 2 == 1
        going = going[goes_on]
        step += 1
    return result
