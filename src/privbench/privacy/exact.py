"""Exact counts, without noise: pure functions of small integer arrays, which the engine puts together.

Each function says how far one row or one entity, added or removed, can move its answer. Kept apart so that tests can
enumerate tiny databases and every neighbour.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NULL = -1
"""The position of a NULL key; what is below it references a row that is not there."""
CACHED = 2**16
"""Rows that are counted at once at least: they stay in the cache.

Weights are added up in floats there: sums of whole numbers below 2**53 are exact.
"""

Codes = NDArray[np.integer]
Integers = NDArray[np.int64]

SCORE_BITS: Final = 10
"""Dependence scores are integers in units of 2**-SCORE_BITS of what one row can move."""
COORDINATE = 2**8
"""Cluster coordinates are integers from -COORDINATE to COORDINATE."""


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
    """The score as an integer: units of 2**-SCORE_BITS of what one row can move, rounded down."""
    return int(bits / dependence_bound(most_rows) * 2**SCORE_BITS)


def coordinates(codes: Codes, size: int) -> Integers:
    """Ordered codes as centred integers from -COORDINATE to COORDINATE.

    >>> coordinates(np.array([0, 1, 2], np.uint8), 3).tolist()
    [-256, 0, 256]
    """
    if size == 1:
        return np.zeros(len(codes), np.int64)
    return (2 * COORDINATE * codes.astype(np.int64)) // (size - 1) - COORDINATE


def sums_by_cell(values: Integers, cells: Codes, size: int) -> Integers:
    """Sums of whole numbers by cell. One row moves one sum by its value.

    >>> sums_by_cell(np.array([5, -2, 1]), np.array([0, 1, 0]), 2).tolist()
    [6, -2]
    """
    sums = np.zeros(size, np.int64)
    step = max(CACHED, 2 * size)
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        sums += np.bincount(cells[part], weights=values[part], minlength=size).astype(np.int64)
    return sums


def degrees(targets: Integers, rows: int) -> Integers:
    """How many keys reference each of `rows` rows."""
    there = targets >= 0
    return np.bincount(targets if there.all() else targets[there], minlength=rows).astype(np.int64, copy=False)


def entities_above(rows_of_entity: Integers, candidates: Sequence[int]) -> Integers:
    """How many entities lose rows to each cap.

    >>> entities_above(np.array([1, 1, 2, 9]), [1, 2, 9]).tolist()
    [2, 1, 0]
    """
    return np.array([int((rows_of_entity > c).sum()) for c in candidates], np.int64)


def cap_scores(above: Integers, penalties: Sequence[int]) -> Integers:
    """How good each cap is: the fewer entities lose rows to it and the smaller its public penalty, the better.

    One entity more lowers each score by 1 or leaves it, so that all scores move the same way.

    >>> cap_scores(np.array([2, 1, 0]), [1, 2, 9]).tolist()
    [-3, -3, -9]
    """
    return -(above + np.array(penalties, np.int64))


def keep_rows(entities: Codes, codes: Mapping[str, Codes], cap: int) -> NDArray[np.bool_]:
    """Which rows stay when each entity keeps at most `cap`.

    Those with the smallest public hash of the row's codes and its place among the entity's rows: a function of
    the entity's own rows alone, so that removing one entity changes no other's.

    >>> keep_rows(np.array([4, 4, 7]), {}, 1).sum()
    np.int64(2)
    """
    if not len(entities):
        return np.zeros(0, bool)
    mixed = _mix(place_in_group(entities).astype(np.uint64))
    for column in codes.values():
        mixed = _mix(mixed ^ column.astype(np.uint64))
    order = np.lexsort((mixed, entities))
    keep = np.zeros(len(entities), bool)
    keep[order] = place_in_group(entities[order]) < cap
    return keep


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A public bijection of 64-bit words with good avalanche (splitmix64)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def row_weights(entities: Codes, units: int, full_rows: int) -> Integers | None:
    """What each row weighs: the units of its entity over its rows, rounded down; None if all rows weigh all units.

    An entity of fewer than `full_rows` rows has the units of its rows in proportion. So its rows weigh at most `units`
    together, however many they are.

    >>> row_weights(np.array([0, 1, 1, 1]), 100, 1).tolist(), row_weights(np.array([0, 1]), 100, 1)
    ([100, 33, 33, 33], None)
    >>> row_weights(np.array([0, 1, 1, 1]), 100, 2).tolist(), row_weights(np.array([0, 1]), 100, 2).tolist()
    ([50, 33, 33, 33], [50, 50])
    """
    if full_rows == 1 and (entities[1:] > entities[:-1]).all():  # soon seen of a table with a row for each entity
        return None
    entities = as_indices(entities)
    rows = np.maximum(np.bincount(entities), full_rows)
    return None if rows.max(initial=full_rows) == 1 else (units // rows)[entities]


def rows_of_entity(entities: Codes) -> Integers:
    """For each row, how many rows its entity has."""
    entities = as_indices(entities)
    return np.bincount(entities)[entities]


def as_indices(numbers: Codes) -> NDArray[np.intp]:
    """Numbers of rows in the type that arrays are looked up by, three times as fast as by narrower ones."""
    return numbers.astype(np.intp, copy=False)


def with_last(codes: Codes, last: int) -> Codes:
    """Codes and one more, which the index -1 finds, in a narrow type still.

    >>> with_last(np.array([3], np.uint8), 255), with_last(np.array([3], np.uint8), 256).dtype
    (array([  3, 255], dtype=uint8), dtype('uint16'))
    """
    return np.append(codes, np.array(last, np.min_scalar_type(last)))


Adder = Callable[[Codes, Integers | None, Integers], None]
"""Adds the weights of rows, or 1 for each, to the sums of their keys."""


def add_up(keys: Codes, weights: Integers | None, sums: Integers) -> None:
    """Add the weights of rows, or 1 for each, to the sums of their keys: in floats, so of few rows at a time."""
    sums += np.bincount(keys, weights, minlength=len(sums)).astype(np.int64, copy=False)


def weighted_histogram(
    columns: Sequence[tuple[Codes, int]], weights: Integers | None, units: int, *, add: Adder = add_up
) -> Integers:
    """Weights of rows by their codes, an axis for each column given with its number of codes.

    The rows of one entity weigh at most `units` together, and each lies in one cell, or in none if a code of it is
    negative: an entity moves it by that in L1. Rows are taken in chunks that stay in the cache.

    >>> weighted_histogram([(np.array([0, 1, 1]), 2)], np.array([4, 2, 2]), 4).tolist()
    [4, 4]
    >>> weighted_histogram([(np.array([0, -1, 1]), 2)], None, 1).tolist()
    [1, 1]
    """
    sizes = [size for _, size in columns]
    cells = prod(sizes)
    signed = [codes for codes, _ in columns if np.issubdtype(codes.dtype, np.signedinteger)]
    partial = [codes for codes in signed if codes.min(initial=0) < 0]
    kind = np.dtype(np.uint16 if cells < 2**16 else np.int64)
    step = max(CACHED, 2 * cells)
    counts = np.zeros(cells, np.int64)
    for start in range(0, len(columns[0][0]), step):
        part = slice(start, start + step)
        key: NDArray[Any] = columns[0][0][part].astype(kind)
        for codes, size in columns[1:]:
            key *= kind.type(size)
            key += codes[part].astype(kind, copy=False)
        weight = None if weights is None else weights[part]
        if partial:
            inside = np.logical_and.reduce([codes[part] >= 0 for codes in partial])
            key, weight = key[inside], None if weight is None else weight[inside]
        add(key, weight, counts)
    return (counts if weights is not None else counts * units).reshape(sizes)


def shared_votes(shares: Integers, units: int) -> Integers:
    """The sums of votes on candidates, a row of (agree, differ, idle) for each, from shares of entities.

    `shares` has an entity's shares of (agree, differ, idle) rows by candidate, which add up to at most `units` for each
    candidate. What an entity gives is at most `units` in all and depends on its own shares alone: so much it moves the
    sums in L1, and it lowers none. Votes against are cut in proportion where they are more than `units` together; of
    what they leave, agreement and idleness of each candidate get an even part.

    >>> shares = np.array([[[8, 0, 0], [2, 6, 0]], [[0, 8, 0], [0, 8, 0]]])  # two entities, two candidates
    >>> shared_votes(shares, 8).tolist()
    [[1, 4, 0], [0, 10, 0]]
    """
    differing = shares[:, :, 1]
    against = differing * units // np.maximum(differing.sum(axis=1, keepdims=True), units)
    left = units - against.sum(axis=1)
    votes = shares * left[:, None, None] // (units * max(shares.shape[1], 1))
    votes[:, :, 1] = against
    sums: Integers = votes.sum(axis=0)
    return sums


def distance_score(cells: Integers, expected: Integers, penalty: int, factor: int) -> int:
    """How far weights are from a public table in L1, less a public penalty, over what an entity's weight can move.

    If one entity moves `cells` by at most `factor` times its weight, it moves the score by at most its weight.

    >>> distance_score(np.array([[5, 1]]), np.array([[3, 2]]), 1, 1)
    2
    """
    return (int(np.abs(cells - expected).sum()) - penalty) // factor


def one_key_each(targets: Integers, entities: Codes) -> Integers:
    """The rows that keys reference, of each entity one: of its rows with a key, the one with the smallest public hash.

    A function of the entity's own rows, so that one entity more brings at most one key more. A key whose row is not
    there is chosen like others: that another entity is missing changes no choice.
    """
    there = np.flatnonzero(targets != NULL)
    kept: Integers = targets[there[keep_rows(entities[there], {}, 1)]]
    return kept


def key_blocks(targets: Integers, slots: int, blocks: int) -> Codes:
    """The block that each key references: slots in so many runs of about equal length; NULL has the code `blocks`.

    >>> key_blocks(np.array([0, 4, 9, -1]), 10, 2).tolist()
    [0, 0, 1, 2]
    """
    if slots < len(targets):
        of_slot = with_last(np.arange(slots) * blocks // max(slots, 1), blocks).astype(np.uint16)
        return of_slot[as_indices(np.clip(targets, NULL, slots - 1))]
    at = np.where(targets >= 0, targets.astype(np.int64) * blocks // max(slots, 1), blocks)
    return at.astype(np.uint16)


def place_in_group(groups: Codes) -> Integers:
    """The place of each row in its group, counted from 0 in table order; rows without group (below 0) are first.

    >>> place_in_group(np.array([7, 3, 7, -1, -1])).tolist(), place_in_group(np.array([-1, -1, 3, 7, 7])).tolist()
    ([0, 0, 1, 0, 0], [0, 0, 0, 0, 1])
    """
    order, starts = _by_group(groups)
    places = np.arange(len(groups)) - starts
    if order is not None:
        placed = np.empty_like(places)
        placed[order] = places
        places = placed
    places[groups < 0] = 0
    return places


def first_of_group(groups: Codes) -> Integers:
    """The first row of each row's group, in table order; -1 for that row itself and for rows without group.

    >>> first_of_group(np.array([7, 3, 7, -1, -1])).tolist()
    [-1, -1, 0, -1, -1]
    """
    order, starts = _by_group(groups)
    firsts = np.where(starts < np.arange(len(starts)), starts if order is None else order[starts], -1)
    if order is not None:
        placed = np.empty_like(firsts)
        placed[order] = firsts
        firsts = placed
    firsts[groups < 0] = -1
    return firsts


def _by_group(groups: Codes) -> tuple[Integers | None, Integers]:
    """Rows by group, in table order inside a group (None: as they stand), and where the group of each begins then."""
    order = None
    if (groups[1:] < groups[:-1]).any():
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])[: len(groups)])
    return order, np.repeat(starts, np.diff(starts, append=len(groups)))
