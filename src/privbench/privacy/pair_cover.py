"""Counting many pairs of columns in few passes: groups of columns whose joint histogram holds the tables of all pairs.

A pass over the rows costs about as much for five columns of few codes as for two of many, so pairs are gathered into
groups as long as the joint histogram stays small. Which groups are formed changes no count.
"""

from collections.abc import Collection, Sequence
from itertools import combinations

Pair = tuple[int, int]


def covering_groups(sizes: Sequence[int], wanted: Collection[Pair], *, most: int) -> list[tuple[int, ...]]:
    """Groups of columns, of at most `most` cells unless they are a single pair, that hold each wanted pair.

    >>> covering_groups([2, 2, 9, 2], [(0, 1), (0, 3), (1, 3), (1, 2)], most=20)
    [(1, 2), (0, 1, 3)]
    """
    left = {(min(pair), max(pair)) for pair in wanted}
    groups = []
    for pair in sorted(left, key=lambda p: (-sizes[p[0]] * sizes[p[1]], p)):
        if pair not in left:
            continue
        group = _grown(pair, sizes, left, most)
        left -= set(combinations(group, 2))
        groups.append(group)
    return groups


def _grown(pair: Pair, sizes: Sequence[int], left: Collection[Pair], most: int) -> tuple[int, ...]:
    """A pair with further columns, each the one that brings most of the pairs that are left."""
    group = list(pair)
    cells = sizes[pair[0]] * sizes[pair[1]]
    gains = {c: _gain(c, group, left) for c in range(len(sizes)) if c not in group}
    while True:
        fitting = {c: gain for c, gain in gains.items() if gain and cells * sizes[c] <= most}
        if not fitting:
            return tuple(sorted(group))
        best = max(fitting, key=lambda c: (fitting[c], -sizes[c], -c))
        cells *= sizes[best]
        del gains[best]
        for c in gains:
            gains[c] += (min(c, best), max(c, best)) in left
        group.append(best)


def _gain(column: int, group: Sequence[int], left: Collection[Pair]) -> int:
    return sum((min(column, other), max(column, other)) in left for other in group)
