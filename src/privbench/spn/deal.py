"""Rows grouped in random order, and values dealt out to them: what sampling spends its time on.

With Numba (the extra `fast`) compiled kernels do it, some times faster and with the same results to the bit; they are
loaded only where there is much to draw, since loading them takes a moment.
"""

from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.integer]
Numbers = NDArray[np.int64]
Values = NDArray[np.uint16]

DIGIT_BITS = 16
"""Random bits that say in which order rows of one group stand; of two rows with the same, the first comes first."""
FEW_KEYS = 16
"""Where there are so many rows for each key, the first row of a key is searched for."""
WORTH_IT = 300_000_000
"""From so many values on, kernels are loaded."""

_loaded: list[ModuleType] = []


class Groups(NamedTuple):
    """Rows by ascending key, in random order where it is the same."""

    order: Places  # (rows,)
    sizes: Numbers  # (groups,)
    first: Places
    """(groups,): a row of each."""


def load_kernels(values: int) -> bool:
    """Use kernels from now on, if so many values are worth it and Numba is there; tells whether they are used."""
    if not _loaded and values >= WORTH_IT:
        try:
            from privbench.spn import kernels  # noqa: PLC0415  only where it is worth it
        except ImportError:
            return False
        _loaded.append(kernels)
    return bool(_loaded)


def grouped(key: NDArray[np.unsignedinteger], rng: np.random.Generator) -> Groups:
    """Group rows by their keys."""
    digits = rng.integers(0, 2**64, -(-key.size * DIGIT_BITS // 64), dtype=np.uint64).view(np.uint16)[: key.size]
    top = int(key.max(initial=0))
    if top.bit_length() + DIGIT_BITS + key.size.bit_length() > 64:
        different, places = np.unique(key, return_inverse=True)
        key, top = places.astype(np.uint32), different.size - 1
    if _loaded and top < 2 * key.size + 2**DIGIT_BITS:
        order, sizes = _loaded[0].grouped(key.astype(np.uint32), digits, top + 1)
    else:
        order, sizes = _sorted(key.astype(np.uint64), digits, top + 1)
    return Groups(order, sizes, order[np.cumsum(sizes) - sizes])


def place(groups: Groups, values: Values, counts: Numbers) -> Values:
    """Deal out values, each as often as its count says, to the rows in their order."""
    if _loaded:
        placed: Values = _loaded[0].place(groups.order, values, counts)
        return placed
    dealt = np.empty(groups.order.size, np.uint16)
    dealt[groups.order] = np.repeat(values, counts)
    return dealt


def place_stretches(groups: Groups, pool: Values, starts: Numbers, counts: Numbers) -> Values:
    """Deal out stretches of a pool, that begin there and are so long, to the rows in their order."""
    if _loaded:
        placed: Values = _loaded[0].place_stretches(groups.order, pool, starts, counts)
        return placed
    at = np.repeat(starts - np.cumsum(counts) + counts, counts)
    at += np.arange(at.size)
    dealt = np.empty(groups.order.size, np.uint16)
    dealt[groups.order] = pool[at]
    return dealt


def _sorted(key: NDArray[np.uint64], digits: Values, keys: int) -> tuple[Places, Numbers]:
    """One sort of words does it: the key, the digit, the position."""
    low = key.size.bit_length()
    words = key  # which is nobody else's
    words <<= np.uint64(DIGIT_BITS)
    words |= digits
    words <<= np.uint64(low)
    words |= np.arange(key.size, dtype=np.uint64)
    words.sort()
    order = (words & np.uint64(2**low - 1)).view(np.int64)
    above = np.uint64(low + DIGIT_BITS)
    if keys <= key.size // FEW_KEYS:
        sizes = np.diff(np.searchsorted(words, np.arange(keys, dtype=np.uint64) << above), append=key.size)
        return order, sizes[sizes > 0]
    words >>= above
    starts = np.flatnonzero(np.append(True, words[1:] != words[:-1])[: key.size])
    return order, np.diff(starts, append=key.size)
