"""What the vault counts, exactly and without noise: pure functions of small integer arrays.

Each function says how far one row, added or removed, can move its answer; the vault multiplies by the rows an
entity may have. Kept apart from the vault so that tests can enumerate tiny databases and every neighbour.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log2

import numpy as np
from numpy.typing import NDArray

NULL = -1
"""The position of a NULL key; what is below it names a row that is not there."""

Codes = NDArray[np.unsignedinteger]
Integers = NDArray[np.int64]

BITS = 10
"""Dependence scores are integers in units of 2**-BITS of their sensitivity."""
COORDINATE = 2**8
"""Cluster coordinates are integers from -COORDINATE to COORDINATE."""


def histogram(codes: Codes, size: int) -> Integers:
    """Rows per code. One row moves one count by 1.

    >>> histogram(np.array([0, 2, 2], np.uint8), 4).tolist()
    [1, 0, 2, 0]
    """
    return np.bincount(codes, minlength=size).astype(np.int64)


def count_entropy(keys: Integers, bound: int) -> float:
    """Sum of c*log2(c) over the counts c of equal keys, all below `bound`."""
    if bound <= 4 * max(len(keys), 256):
        counts = np.bincount(keys, minlength=1)
    else:
        ordered = np.sort(keys)
        counts = np.diff(np.flatnonzero(np.diff(ordered, prepend=-1, append=-1)))
    repeated = counts[counts > 1].astype(np.float64)
    return float((repeated * np.log2(repeated)).sum())


def joint_keys(columns: Iterable[tuple[Codes, int]]) -> tuple[Integers, int]:
    """One number per row, equal for rows that agree on every column, and a bound on it.

    Exact for any number of columns: when the numbers would overflow they are made dense again.
    """
    keys: Integers | None = None
    bound = 1
    for codes, size in columns:
        if keys is None:
            keys, bound = codes.astype(np.int64), size
            continue
        if bound * size >= 2**62:
            values, keys = np.unique(keys, return_inverse=True)
            keys, bound = keys.astype(np.int64), len(values)
        keys, bound = keys * size + codes, bound * size
    if keys is None:
        raise ValueError("no columns")
    return keys, bound


def dependence(left: float, right: float, joint: float, rows: int) -> float:
    """Rows times the mutual information in bits, from the three `count_entropy` values.

    One row added to N-1 others moves it by at most log2(N) + 1.4427 in either direction
    (docs/proofs/paper.md, dependence).
    """
    return max(0.0, (rows * log2(rows) if rows else 0.0) - left - right + joint)


def dependence_bound(most_rows: int) -> float:
    """How far one row can move `dependence` in a table of at most that many rows, in bits, rounded up."""
    return log2(max(most_rows, 1)) + 1.4427


def dependence_units(bits: float, most_rows: int) -> int:
    """The score as an integer: units of 2**-BITS of its sensitivity, rounded down."""
    return int(bits / dependence_bound(most_rows) * 2**BITS)


def dependence_sensitivity(rows_per_entity: int) -> int:
    """How far an entity can move `dependence_units`: per row, one unit for rounding down and one for float error."""
    return rows_per_entity * ((1 << BITS) + 2)


def coordinates(codes: Codes, size: int) -> Integers:
    """Ordered codes as centred integers from -COORDINATE to COORDINATE.

    >>> coordinates(np.array([0, 1, 2], np.uint8), 3).tolist()
    [-256, 0, 256]
    """
    if size == 1:
        return np.zeros(len(codes), np.int64)
    return (2 * COORDINATE * codes.astype(np.int64)) // (size - 1) - COORDINATE


def cluster_counts(labels: NDArray[np.bool_]) -> Integers:
    """Rows in the left and the right cluster. One row moves one count by 1."""
    right = int(labels.sum())
    return np.array([len(labels) - right, right], np.int64)


def cluster_sums(values: Integers, labels: NDArray[np.bool_]) -> Integers:
    """Sum of coordinates in either cluster. One row moves one sum by at most COORDINATE."""
    right = int(values[labels].sum())
    return np.array([int(values.sum()) - right, right], np.int64)


def cluster_histograms(codes: Codes, labels: NDArray[np.bool_], size: int) -> Integers:
    """Rows per cluster and code. One row moves one count by 1."""
    return np.bincount(codes + labels * np.int64(size), minlength=2 * size).reshape(2, size)


def slot_counts(slots: Integers, parts: Sequence[NDArray[np.int64]], size: int) -> Integers:
    """Rows per part and key slot, NULL keys first; a key that names no slot counts nowhere.

    A slot is counted whether its row is there or not, so one row moves one count by 1, the one of its own key.

    >>> slot_counts(np.array([0, -1, 2, -2]), [np.array([0, 1, 2, 3])], 3).tolist()
    [[1, 1, 0, 1]]
    """
    counts = np.zeros((len(parts), size + 1), np.int64)
    for part, rows in enumerate(parts):
        there = slots[rows]
        counts[part] = np.bincount(there[there >= NULL] + 1, minlength=size + 1)
    return counts


def degrees(targets: Integers, rows: int) -> Integers:
    """How many keys name each of `rows` rows."""
    return np.bincount(targets[targets >= 0], minlength=rows).astype(np.int64)


def degree_histogram(degree: Integers, cap: int) -> Integers:
    """Rows by how many keys name them, capped.

    One row of the named table moves one count by 1; one key moves two counts by 1 each.
    """
    return histogram(np.minimum(degree, cap), cap + 1)


def cap_scores(rows_of_entity: Integers, candidates: Sequence[int], penalties: Sequence[int]) -> Integers:
    """How good each cap is: the fewer entities lose rows to it and the smaller its public penalty, the better.

    One entity more lowers each score by 1 or leaves it, so that all scores move the same way.

    >>> cap_scores(np.array([1, 1, 2, 9]), [1, 2, 9], [1, 2, 9]).tolist()
    [-3, -3, -9]
    """
    above = [int((rows_of_entity > c).sum()) for c in candidates]
    return -(np.array(above, np.int64) + np.array(penalties, np.int64))


def keep_rows(entities: Integers, codes: Mapping[str, Codes], cap: int) -> NDArray[np.bool_]:
    """Which rows stay when each entity keeps at most `cap`.

    Those with the smallest public hash of the row's codes and its place among the entity's rows: a function of
    the entity's own rows alone, so that removing one entity changes no other's.

    >>> keep_rows(np.array([4, 4, 7]), {}, 1).sum()
    np.int64(2)
    """
    if not len(entities):
        return np.zeros(0, bool)
    mixed = _mix(_place_in_entity(entities).astype(np.uint64))
    for column in codes.values():
        mixed = _mix(mixed ^ column.astype(np.uint64))
    order = np.lexsort((mixed, entities))
    keep = np.zeros(len(entities), bool)
    keep[order] = _place_in_entity(entities[order]) < cap
    return keep


def _place_in_entity(entities: Integers) -> Integers:
    """The how-manieth row of its entity each row is, in table order."""
    order = np.argsort(entities, kind="stable")
    ordered = entities[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    places = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    result = np.empty(len(ordered), np.int64)
    result[order] = places
    return result


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A public bijection of 64-bit words with good avalanche (splitmix64)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
