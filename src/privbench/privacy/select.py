"""A noisy choice among public candidates: permute-and-flip, drawn exactly.

The law is that of argmax(score + Exponential(scale)): never further from the best score on average than the
exponential mechanism at the same epsilon. With scores that move by at most D, a scale of 2 D / epsilon makes it
epsilon-DP; D / epsilon is enough if one entity moves all scores the same way. Proof: docs/proofs/noise.md.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.noise import Entropy, bernoulli_exp, check_scale, run_lengths, uniform

_NEVER = 2**62
"""More successes in a row than any run of words can hold."""


def permute_and_flip(scores: NDArray[np.int64], *, scale: Fraction, entropy: Entropy) -> int:
    """Choose the index of a high score.

    Every candidate flips a coin that shows heads with probability exp(-(best - score) / scale); one of the heads is
    taken at random. That is the first head in a random order of the candidates, and the best always shows heads.
    """
    if scores.dtype != np.int64 or scores.ndim != 1 or not scores.size:
        raise ValueError(f"scores must be a non-empty row of int64, not {scores.dtype} of shape {scores.shape}")
    check_scale(scale)
    best = int(scores.max())
    gaps = [divmod((best - score) * scale.denominator, scale.numerator) for score in scores.tolist()]
    whole = np.array([min(whole, _NEVER) for whole, _ in gaps], dtype=np.int64)
    rest = np.array([rest for _, rest in gaps], dtype=np.uint64)
    heads = (run_lengths(scores.size, entropy) >= whole) & bernoulli_exp(rest, scale.numerator, entropy)
    candidates = np.flatnonzero(heads)
    return int(candidates[uniform(candidates.size, 1, entropy)[0]])
