"""Noise that repeats: what a test finds must not depend on what the operating system drew."""

import numpy as np
from numpy.typing import NDArray


class SeededEntropy:
    """Words of a seed that pass for private ones, since a receipt of `TestEntropy` is stamped and never verifies.

    It has no place outside of tests: whoever knows the seed knows the noise.
    """

    private = True

    def __init__(self, seed: int = 1) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(count)
