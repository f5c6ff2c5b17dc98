"""A noisy choice among public candidates, drawn exactly.

Permute-and-flip has the law of argmax(score + Exponential(scale)): never further from the best score on average than
the exponential mechanism at the same epsilon. With scores that move by at most D, a scale of 2 D / epsilon makes it
epsilon-DP; D / epsilon is enough if one entity moves all scores the same way. The exponential mechanism chooses with
P ~ exp(score / scale), which costs less where losses are added up by zCDP. Proofs: docs/proofs/noise.md.
"""

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.noise import Entropy, bernoulli_exp, check_scale, run_lengths, uniform

_NEVER: Final = 2**62
"""More successes in a row than any run of words can hold."""


def permute_and_flip(scores: NDArray[np.int64], *, scale: Fraction, entropy: Entropy) -> int:
    """Choose the index of a high score.

    Every candidate flips a coin that shows heads with probability exp(-(best - score) / scale); one of the heads is
    taken at random. That is the first head in a random order of the candidates, and the best always shows heads.
    """
    coins = _Coins(scores, scale)
    candidates = np.flatnonzero(coins.flip(np.arange(scores.size), entropy))
    return int(candidates[uniform(candidates.size, 1, entropy)[0]])


def exponential_mechanism(scores: NDArray[np.int64], *, scale: Fraction, entropy: Entropy) -> int:
    """Choose index i with probability ~ exp(score_i / scale).

    Candidates are picked at random, each flips a coin as in `permute_and_flip`, and the first to show heads is taken.
    A pick does so with a probability of at least one over the number of candidates.
    """
    coins = _Coins(scores, scale)
    while True:
        picked = uniform(scores.size, scores.size + 16, entropy).astype(np.int64)
        heads = np.flatnonzero(coins.flip(picked, entropy))
        if heads.size:
            return int(picked[heads[0]])


class _Coins:
    """One coin per candidate, that shows heads with probability exp(-(best - score) / scale)."""

    def __init__(self, scores: NDArray[np.int64], scale: Fraction) -> None:
        if scores.dtype != np.int64 or scores.ndim != 1 or not scores.size:
            raise ValueError(f"scores must be a non-empty row of int64, not {scores.dtype} of shape {scores.shape}")
        check_scale(scale)
        best = int(scores.max())
        gaps = [divmod((best - score) * scale.denominator, scale.numerator) for score in scores.tolist()]
        self._whole = np.array([min(whole, _NEVER) for whole, _ in gaps], dtype=np.int64)
        self._rest = np.array([rest for _, rest in gaps], dtype=np.uint64)
        self._parts = scale.numerator

    def flip(self, candidates: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Flip the coins of some candidates, of one perhaps several times."""
        runs = run_lengths(candidates.size, entropy) >= self._whole[candidates]
        return runs & bernoulli_exp(self._rest[candidates], self._parts, entropy)
