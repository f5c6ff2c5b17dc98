"""Random small networks, and the oracle: the probability of every cell by full enumeration."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.spn.nodes import Leaf, Node, Product, Sum

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}


def _leaves(column: str) -> st.SearchStrategy[Node]:
    counts = st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.5, 40.0]), min_size=SIZES[column], max_size=SIZES[column])
    return counts.map(lambda values: Leaf(column=column, counts=np.array(values)))


@st.composite
def _nodes(draw: st.DrawFn, columns: tuple[str, ...], depth: int) -> Node:
    if depth and draw(st.booleans()):
        parts = draw(st.lists(_nodes(columns, depth - 1), min_size=1, max_size=3))
        weights = np.array(draw(st.lists(st.integers(0, 5), min_size=len(parts), max_size=len(parts))), dtype=float)
        weights[0] += 1
        return Sum(children=tuple(parts), weights=weights / weights.sum())
    if len(columns) == 1:
        return draw(_leaves(columns[0]))
    cut = draw(st.integers(1, len(columns) - 1))
    return Product(children=tuple(draw(_nodes(part, depth)) for part in (columns[:cut], columns[cut:])))


@pytest.fixture(scope="session")
def networks() -> st.SearchStrategy[Node]:
    """Networks of up to four columns with at most 24 cells."""
    columns = st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4, unique=True)
    return columns.flatmap(lambda names: _nodes(tuple(names), 3))


def _density(node: Node, row: dict[str, int]) -> float:
    if isinstance(node, Leaf):
        total = node.counts.sum()
        return float(node.counts[row[node.column]] / total if total else 1 / node.counts.size)
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
