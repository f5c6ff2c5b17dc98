"""The metrics once more, slow and obvious, from their definitions."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence


def slow_distance(real: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[float, float]:
    """KLD with 1e-10 added to each probability, and TVD, over the tuples that occur on either side."""
    left, right = Counter(real), Counter(other)
    kld = tvd = 0.0
    for cell in left.keys() | right.keys():
        p, q = left[cell] / len(real), right[cell] / len(other)
        kld += (p + 1e-10) * math.log((p + 1e-10) / (q + 1e-10))
        tvd += abs(p - q) / 2
    return kld, tvd
