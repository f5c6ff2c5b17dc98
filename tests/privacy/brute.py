"""One check for every kind of query: how far an entity moves its exact answer, against what it says of itself."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.engine import Exact, NumpyEngine
from privbench.privacy.features import Feature, whole_axis
from privbench.privacy.part_counter import ValueCounts
from privbench.privacy.queries import Histogram, Query

Family = Sequence[NumpyEngine]
"""A database, and its neighbours that lack one entity each."""


def pair_histograms(features: Mapping[str, Sequence[Feature]]) -> dict[str, Query]:
    """Histograms of each feature of each table, and of each pair of a table's features."""
    return {
        f"{table}: {a.name!r} {b.name!r}": Histogram(
            table=table, axes=tuple(whole_axis(f) for f in dict.fromkeys((a, b)))
        )
        for table, of in features.items()
        for a, b in combinations_with_replacement(of, 2)
    }


def worst_moves(families: Iterable[Family], queries: Mapping[str, Query]) -> dict[str, int]:
    """For each query the largest move between neighbours; asserts that none breaks what the query claims."""
    worst = dict.fromkeys(queries, 0)
    for family in families:
        before, *after = (engine.count(list(queries.values())) for engine in family)
        for less in after:
            for (name, query), whole, rest in zip(queries.items(), before, less, strict=True):
                worst[name] = max(worst[name], checked_move(name, query, whole, rest))
    return worst


def checked_move(name: str, query: Query, whole: Exact, rest: Exact) -> int:
    """How far an entity that is gone has moved an answer: in L1, or the largest move of a score."""
    added = difference(whole, rest)
    moved = int(np.abs(added).max(initial=0) if query.chooses else np.abs(added).sum())
    assert moved <= query.sensitivity, f"{name}: {moved} > {query.sensitivity}"
    if getattr(query, "additive", False):
        assert (added >= 0).all(), f"{name}: not additive"
    if getattr(query, "monotone", False):
        assert (added <= 0).all(), f"{name}: not monotone"
    return moved


def difference(whole: Exact, rest: Exact) -> NDArray[np.int64]:
    """What an answer has more than another; a value that is not there has a count of 0."""
    if isinstance(whole, ValueCounts) and isinstance(rest, ValueCounts):
        more, less = by_value(whole), by_value(rest)
        return np.array([more.get(value, 0) - less.get(value, 0) for value in {**more, **less}], np.int64)
    assert isinstance(whole, np.ndarray)
    assert isinstance(rest, np.ndarray)
    return np.asarray(whole - rest).ravel()


def by_value(counts: ValueCounts) -> dict[object, int]:
    """Counts by tick or string."""
    values = counts.values.tolist() if isinstance(counts.values, np.ndarray) else counts.values.to_pylist()
    return dict(zip(values, counts.counts.tolist(), strict=True))
