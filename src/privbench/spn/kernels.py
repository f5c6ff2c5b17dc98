"""The same as in `deal`, compiled by Numba. Compiled once per user and machine, and then read from a cache.

Rows are sorted by radix: by the two bytes of their digits, then by key, each time keeping the order before.
"""

import os
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

config: Any = numba.config
config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR") or str(
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "privbench" / "kernels"
)
_BYTE = 256


def _compiled(function: Any) -> Any:
    return numba.njit(nogil=True, cache=True)(function)


@_compiled
def grouped(
    key: NDArray[np.uint32], digits: NDArray[np.uint16], keys: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The order of rows by key, digit and position, and how many rows have each key that there is."""
    rows = key.size
    low, high = np.zeros(_BYTE + 1, np.int64), np.zeros(_BYTE + 1, np.int64)
    ends = np.zeros(keys + 1, np.int64)
    for i in range(rows):
        low[(digits[i] & 255) + 1] += 1
        high[(digits[i] >> 8) + 1] += 1
    if keys == 1:
        ends[1] = rows
    else:
        for i in range(rows):
            ends[np.int64(key[i]) + 1] += 1
    for b in range(_BYTE):
        low[b + 1] += low[b]
        high[b + 1] += high[b]
    groups = 0
    for k in range(keys):
        groups += ends[k + 1] > 0
    sizes, group = np.empty(groups, np.int64), 0
    for k in range(keys):
        if ends[k + 1]:
            sizes[group] = ends[k + 1]
            group += 1
        ends[k + 1] += ends[k]
    first, second, order = np.empty(rows, np.uint32), np.empty(rows, np.uint32), np.empty(rows, np.uint32)
    for i in range(rows):
        b = digits[i] & 255
        first[low[b]] = i
        low[b] += 1
    for j in range(rows):
        i = first[j]
        b = digits[i] >> 8
        second[high[b]] = i
        high[b] += 1
    if keys == 1:
        return second, sizes
    for j in range(rows):
        i = second[j]
        k = key[i]
        order[ends[k]] = i
        ends[k] += 1
    return order, sizes


@_compiled
def place(order: NDArray[np.uint32], values: NDArray[np.uint16], counts: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Values, each as often as its count says, at the rows in their order."""
    placed, i = np.empty(order.size, np.uint16), 0
    for run in range(counts.size):
        for _ in range(counts[run]):
            placed[order[i]] = values[run]
            i += 1
    return placed


@_compiled
def place_stretches(
    order: NDArray[np.uint32], pool: NDArray[np.uint16], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Stretches of a pool at the rows in their order."""
    placed, i = np.empty(order.size, np.uint16), 0
    for run in range(counts.size):
        for step in range(counts[run]):
            placed[order[i]] = pool[starts[run] + step]
            i += 1
    return placed
