"""Clique trees to and from a JSON-able description and flat arrays: `store` does so for the rest of a network.

The description names columns and their parents, so the lengths of all slices follow from it and from the bins. As in
`store` nothing is trusted: what a stranger's file holds becomes checked trees or a ModelError.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.spn.checks import MAX_CODES, damaged
from privbench.spn.clique import CliqueTree, Conditional, Given, number_of_bins

TREE_TYPES: Mapping[str, type[np.generic]] = {
    "bins": np.uint16,  # of each tree: bins of the codes of its columns in order, then of its given columns
    "tree_counts": np.float64,  # histograms of the columns in order
    "factors": np.float64,  # row by row
    "contexts": np.uint16,  # row by row
    "context_weights": np.float64,
}


def pack_trees(trees: Sequence[CliqueTree]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Describe trees and flatten their numbers."""
    columns = [column for tree in trees for column in tree.columns]
    parts: dict[str, list[NDArray[Any]]] = {
        "bins": [bins for tree in trees for bins in _bins(tree)],
        "tree_counts": [column.counts for column in columns],
        "factors": [factor.ravel() for column in columns for factor in column.factors] or [np.empty(0)],
        "contexts": [tree.contexts.ravel() for tree in trees],
        "context_weights": [tree.weights for tree in trees],
    }
    return [_description(tree) for tree in trees], {
        name: np.concatenate(part).astype(TREE_TYPES[name]) for name, part in parts.items()
    }


def unpack_trees(
    described: object, sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]
) -> tuple[CliqueTree, ...]:
    """Rebuild trees over columns of these sizes; the arrays have the right names and types."""
    if not isinstance(described, list):
        raise damaged("a network has no list of clique trees")
    reader = _Reader({name: arrays[name] for name in TREE_TYPES})
    trees = tuple(_tree(one, sizes, reader) for one in described)
    reader.finish()
    return trees


def _bins(tree: CliqueTree) -> list[NDArray[np.int64]]:
    return [column.bins for column in tree.columns] + [column.bins for column in tree.given]


def _description(tree: CliqueTree) -> dict[str, Any]:
    return {
        "columns": [{"name": column.column, "parents": list(column.parents)} for column in tree.columns],
        "given": [{"name": column.column, "codes": column.bins.size} for column in tree.given],
        "contexts": len(tree.contexts),
    }


class _Reader:
    """Takes slices from the arrays, from left to right."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._at = dict.fromkeys(arrays, 0)

    def take(self, name: str, length: int) -> NDArray[Any]:
        start = self._at[name]
        if length > self._arrays[name].size - start:
            raise damaged(f"the array {name!r} is too short for its clique trees")
        self._at[name] += length
        return self._arrays[name][start : start + length]

    def finish(self) -> None:
        for name, array in self._arrays.items():
            if self._at[name] != array.size:
                raise damaged(f"the array {name!r} is too long for its clique trees")


def _tree(described: object, sizes: Mapping[str, int], reader: _Reader) -> CliqueTree:
    columns, given, contexts = _fields(described, ("columns", list), ("given", list), ("contexts", int))
    names: list[tuple[str, list[str]]] = []
    for one in columns:
        name, parents = _fields(one, ("name", str), ("parents", list))
        if name not in sizes or not all(isinstance(parent, str) for parent in parents):
            raise damaged(f"a clique tree has an unknown column or parent, found {repr(one)[:80]}")
        names.append((name, parents))
    bins = [reader.take("bins", sizes[name]) for name, _ in names]
    known = tuple(_given(one, reader) for one in given)
    if contexts < 0:
        raise damaged("a clique tree has less than no contexts")
    rows = {name: int(own.max()) + 1 for (name, _), own in zip(names, bins, strict=True)}
    rows |= {g.column: number_of_bins(g) for g in known}
    weights = reader.take("context_weights", contexts)  # before anything of that length is made
    return CliqueTree(
        columns=tuple(
            _column(name, parents, own, rows, reader) for (name, parents), own in zip(names, bins, strict=True)
        ),
        given=known,
        contexts=reader.take("contexts", contexts * len(known)).reshape(contexts, len(known)),
        weights=weights,
    )


def _column(name: str, parents: list[str], bins: NDArray[Any], rows: Mapping[str, int], reader: _Reader) -> Conditional:
    if unknown := [parent for parent in parents if parent not in rows]:
        raise damaged(f"{name}: its parent {unknown[0][:80]} is not in the tree")
    own = rows[name]
    factors = tuple(reader.take("factors", rows[parent] * own).reshape(-1, own) for parent in parents)
    counts = reader.take("tree_counts", bins.size)
    return Conditional(column=name, bins=bins, counts=counts, parents=tuple(parents), factors=factors)


def _given(described: object, reader: _Reader) -> Given:
    name, codes = _fields(described, ("name", str), ("codes", int))
    if not 1 <= codes <= MAX_CODES:
        raise damaged(f"a given column needs 1 to {MAX_CODES} codes, found {repr(described)[:80]}")
    return Given(column=name, bins=reader.take("bins", codes))


def _fields(described: object, *fields: tuple[str, type]) -> list[Any]:
    if not isinstance(described, dict) or any(type(described.get(name)) is not kind for name, kind in fields):
        wanted = ", ".join(name for name, _ in fields)
        raise damaged(f"a clique tree needs {wanted}, found {repr(described)[:80]}")
    return [described[name] for name, _ in fields]
