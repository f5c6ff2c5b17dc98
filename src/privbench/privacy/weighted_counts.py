"""Exact weighted counts, as pure functions of codes: what `weighted` measures. Sensitivities: docs/proofs/tree.md."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.queries import NULL, keep_rows

Codes = NDArray[np.integer]
Integers = NDArray[np.int64]

CHUNK = 2**24
"""Rows whose weights are added up in floats at once: sums of whole numbers below 2**53 are exact."""


def row_weights(entities: Integers, units: int) -> Integers | None:
    """What each row weighs: the units of its entity over its rows, rounded down; None if all entities have one row.

    >>> row_weights(np.array([0, 1, 1, 1]), 100).tolist(), row_weights(np.array([0, 1]), 100)
    ([100, 33, 33, 33], None)
    """
    rows = rows_of_entity(entities)
    return None if rows.max(initial=1) == 1 else units // rows


def rows_of_entity(entities: Integers) -> Integers:
    """For each row, how many rows its entity has."""
    return np.bincount(entities)[entities] if len(entities) else np.zeros(0, np.int64)


def weighted_histogram(columns: Sequence[tuple[Codes, int]], weights: Integers | None, units: int) -> Integers:
    """Weights of rows by their codes, an axis for each column given with its number of codes.

    The rows of one entity weigh at most `units` together, and each lies in one cell: an entity moves it by that in L1.

    >>> weighted_histogram([(np.array([0, 1, 1]), 2)], np.array([4, 2, 2]), 4).tolist()
    [4, 4]
    """
    sizes = [size for _, size in columns]
    cells = prod(sizes)
    kind = np.dtype(np.uint16 if cells <= 2**16 else np.int64)
    key: NDArray[Any] = columns[0][0].astype(kind)
    for codes, size in columns[1:]:
        key *= kind.type(size)
        key += codes.astype(kind, copy=False)
    if weights is None:
        counts = np.bincount(key, minlength=cells) * units
    else:
        counts = np.zeros(cells, np.int64)
        for start in range(0, len(key), CHUNK):
            part = slice(start, start + CHUNK)
            counts += np.bincount(key[part], weights=weights[part], minlength=cells).astype(np.int64)
    return counts.reshape(sizes)


def distance_score(cells: Integers, expected: Integers, penalty: int, touches: int) -> int:
    """How far weights are from a public table in L1, less a public penalty, over what an entity's weight can move.

    If one entity moves `cells` by at most `touches` times its weight, it moves the score by at most its weight.

    >>> distance_score(np.array([[5, 1]]), np.array([[3, 2]]), 1, 1)
    2
    """
    return (int(np.abs(cells - expected).sum()) - penalty) // touches


def one_key_each(targets: Integers, entities: Integers) -> Integers:
    """The rows that keys name, of each entity one: of its rows with a key, the one with the smallest public hash.

    A function of the entity's own rows, so that one entity more brings at most one key more. A key whose row is not
    there is chosen like others: that another entity is missing changes no choice.
    """
    there = np.flatnonzero(targets != NULL)
    kept: Integers = targets[there[keep_rows(entities[there], {}, 1)]]
    return kept


def key_blocks(targets: Integers, slots: int, blocks: int) -> Codes:
    """The block that each key names: slots in so many runs of about equal length; a NULL key has the code `blocks`.

    >>> key_blocks(np.array([0, 4, 9, -1]), 10, 2).tolist()
    [0, 0, 1, 2]
    """
    found = np.where(targets >= 0, targets * blocks // max(slots, 1), blocks)
    return found.astype(np.uint16)


def place_in_group(groups: Integers) -> Integers:
    """The place of each row in its group, counted from 0 in table order; rows without group (below 0) are first.

    >>> place_in_group(np.array([7, 3, 7, -1, -1])).tolist()
    [0, 0, 1, 0, 0]
    """
    order, starts = _by_group(groups)
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(order)) - starts
    places[groups < 0] = 0
    return places


def first_of_group(groups: Integers) -> Integers:
    """The first row of each row's group, in table order; -1 for that row itself and for rows without group.

    >>> first_of_group(np.array([7, 3, 7, -1, -1])).tolist()
    [-1, -1, 0, -1, -1]
    """
    order, starts = _by_group(groups)
    firsts = np.empty(len(groups), np.int64)
    firsts[order] = np.where(starts < np.arange(len(order)), order[starts], -1)
    firsts[groups < 0] = -1
    return firsts


def _by_group(groups: Integers) -> tuple[Integers, Integers]:
    """Rows by group, in table order inside a group, and where in that order the group of each begins."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    fresh = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return order, np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
