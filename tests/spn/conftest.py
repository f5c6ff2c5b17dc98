"""Random small networks, and the oracle: the probability of every cell by full enumeration."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.nodes import Leaf, Node, Product, Sum

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}


GIVEN = {"g": 3, "h": 2}


def _counts(*shape: int) -> st.SearchStrategy[NDArray[np.float64]]:
    cells = int(np.prod(shape))
    values = st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.5, 40.0]), min_size=cells, max_size=cells)
    return values.map(lambda found: np.array(found).reshape(shape))


def _leaves(column: str) -> st.SearchStrategy[Node]:
    return _counts(SIZES[column]).map(lambda values: Leaf(column=column, counts=values))


@st.composite
def _bins(draw: st.DrawFn, codes: int) -> NDArray[np.int64]:
    labels = draw(st.lists(st.integers(0, codes - 1), min_size=codes, max_size=codes))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


@st.composite
def _conditionals(draw: st.DrawFn, column: str, bins: dict[str, int], parents: list[str]) -> Conditional:
    own = draw(_bins(SIZES[column]))
    mixed = tuple(draw(st.permutations(parents)))
    factors = tuple(draw(_counts(bins[name], int(own.max()) + 1)) for name in mixed)
    return Conditional(column=column, bins=own, counts=draw(_counts(own.size)), parents=mixed, factors=factors)


@st.composite
def _cliques(draw: st.DrawFn, columns: tuple[str, ...], given: tuple[str, ...] = ()) -> CliqueTree:
    known = tuple(Given(column=name, bins=draw(_bins(GIVEN[name]))) for name in given)
    bins = {g.column: int(g.bins.max()) + 1 for g in known}
    placed: dict[str, Conditional] = {}
    for column in draw(st.permutations(columns)):
        parents = [name for name in given if draw(st.booleans())]
        last = draw(st.sampled_from([None, *placed]))
        if last is not None:
            parents += [last, *(name for name in placed[last].parents if name in placed and draw(st.booleans()))]
        placed[column] = draw(_conditionals(column, bins, parents))
        bins[column] = int(placed[column].bins.max()) + 1
    if not known:
        return CliqueTree(columns=tuple(placed.values()))
    rows = draw(st.lists(st.tuples(*(st.integers(0, bins[g] - 1) for g in given)), min_size=1, max_size=4))
    weights = np.array(draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows))), dtype=float)
    return CliqueTree(
        columns=tuple(placed.values()), given=known, contexts=np.array(rows), weights=weights / weights.sum()
    )


@st.composite
def _nodes(draw: st.DrawFn, columns: tuple[str, ...], depth: int) -> Node:
    if depth and draw(st.booleans()):
        parts = draw(st.lists(_nodes(columns, depth - 1), min_size=1, max_size=3))
        weights = np.array(draw(st.lists(st.integers(0, 5), min_size=len(parts), max_size=len(parts))), dtype=float)
        weights[0] += 1
        return Sum(children=tuple(parts), weights=weights / weights.sum())
    if draw(st.booleans()):
        return draw(_cliques(columns))
    if len(columns) == 1:
        return draw(_leaves(columns[0]))
    cut = draw(st.integers(1, len(columns) - 1))
    return Product(children=tuple(draw(_nodes(part, depth)) for part in (columns[:cut], columns[cut:])))


@pytest.fixture(scope="session")
def networks() -> st.SearchStrategy[Node]:
    """Networks of up to four columns with at most 24 cells."""
    columns = st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4, unique=True)
    return columns.flatmap(lambda names: _nodes(tuple(names), 3))


@pytest.fixture(scope="session")
def given_networks() -> st.SearchStrategy[Node]:
    """A clique tree with given columns, alone or in a product."""
    trees = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).flatmap(
        lambda names: _cliques(tuple(names), ("g", "h"))
    )
    return trees | st.tuples(trees, _leaves("d")).map(lambda pair: Product(children=pair))


def _of_tree(tree: CliqueTree, row: dict[str, int]) -> float:
    total = 0.0
    for weight, context in zip(tree.weights, tree.contexts, strict=True):
        bins = dict(zip((g.column for g in tree.given), context, strict=True))
        bins |= {c.column: c.bins[row[c.column]] for c in tree.columns}
        total += weight * np.prod([_of_column(c, row[c.column], bins) for c in tree.columns])
    return total


def _of_column(column: Conditional, code: int, bins: dict[str, int]) -> float:
    """P(code | bins of the parents), by the definition."""
    counts = column.counts if column.counts.any() else np.ones(column.counts.size)
    shares = np.array([counts[column.bins == b].sum() for b in range(column.bins.max() + 1)])
    if column.parents:
        rows = [factor[bins[name]] for name, factor in zip(column.parents, column.factors, strict=True)]
        shares = np.prod(rows, axis=0) if np.prod(rows, axis=0).any() else shares
    own = column.bins[code]
    inside = counts[column.bins == own]
    share = counts[code] / inside.sum() if inside.any() else 1 / inside.size
    return float(shares[own] / shares.sum() * share)


def _density(node: Node, row: dict[str, int]) -> float:
    if isinstance(node, Leaf):
        total = node.counts.sum()
        return float(node.counts[row[node.column]] / total if total else 1 / node.counts.size)
    if isinstance(node, CliqueTree):
        return _of_tree(node, row)
    below = [_density(child, row) for child in node.children]
    if isinstance(node, Product):
        return float(np.prod(below))
    return float(sum(w * p for w, p in zip(node.weights, below, strict=True)))


@pytest.fixture(scope="session")
def enumerate_cells() -> Callable[[Node], NDArray[np.float64]]:
    """The joint probabilities as an array with one axis per column, columns in alphabetical order."""

    def cells(node: Node) -> NDArray[np.float64]:
        names = sorted(node.sizes)
        table = np.empty([node.sizes[name] for name in names])
        for cell in itertools.product(*(range(size) for size in table.shape)):
            table[cell] = _density(node, dict(zip(names, cell, strict=True)))
        return table

    return cells


@pytest.fixture(scope="session")
def deep() -> Callable[[int], Node]:
    """A chain of that many levels, in turn a sum and a product; it reaches far below Python's recursion limit."""

    def chain(depth: int) -> Node:
        node: Node = Leaf(column="c0", counts=np.array([1.0, 3.0]))
        for level in range(1, depth + 1):
            if level % 4:
                node = Sum(children=(node,), weights=np.ones(1))
            else:
                leaf = Leaf(column=f"c{level}", counts=np.array([1.0, 3.0]))
                node = Product(children=(leaf, node))
        return node

    return chain
