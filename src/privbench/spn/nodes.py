"""The model of one table: a sum-product network over coded columns, as frozen values that check themselves.

A leaf is the histogram of one column, a product joins independent groups of columns, a sum mixes distributions
of the same columns. A network is a tree. Methods build it; `infer`, `sample`, `store` and `draw` read it.
Nothing recurses, so depth is bounded by memory alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError

MAX_CODES = 2**16
"""Sampled codes are uint16."""

WEIGHT_TOLERANCE = 1e-9
"""How far the weights of a sum may be from adding up to 1."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """The histogram of one column: counts[code] >= 0, in any unit; all zero means uniform."""

    column: str
    counts: NDArray[np.float64]  # (codes,)
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        if counts.ndim != 1 or not 1 <= counts.size <= MAX_CODES:
            raise ModelError(f"{self.column}: a histogram needs 1 to {MAX_CODES} counts, got shape {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ModelError(f"{self.column}: a histogram holds a negative count, infinity or NaN.")
        if counts.max() > np.finfo(np.float64).max / MAX_CODES:
            raise ModelError(f"{self.column}: the counts of a histogram are too large to add up.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "sizes", {self.column: counts.size})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """Groups of columns that are independent of each other."""

    children: tuple["Node", ...]
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.children:
            raise ModelError("a product node needs a child.")
        sizes: dict[str, int] = {}
        for child in self.children:
            if twice := sizes.keys() & child.sizes.keys():
                raise ModelError(f"{min(twice)}: in two children of one product, so they cannot be independent.")
            sizes |= child.sizes
        object.__setattr__(self, "sizes", sizes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """A mixture: with probability weights[i] a row is drawn from children[i]."""

    children: tuple["Node", ...]
    weights: NDArray[np.float64]  # (children,)
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.children:
            raise ModelError("a sum node needs a child.")
        weights = np.array(self.weights, dtype=np.float64)
        if weights.shape != (len(self.children),):
            raise ModelError(f"a sum node has {len(self.children)} children and weights of shape {weights.shape}.")
        # Written so that NaN fails both.
        if not ((weights >= 0).all() and abs(weights.sum() - 1) <= WEIGHT_TOLERANCE):
            raise ModelError("the weights of a sum node must be non-negative and add up to 1.")
        sizes = self.children[0].sizes
        for child in self.children[1:]:
            if child.sizes != sizes:
                name = min(column for column, _ in sizes.items() ^ child.sizes.items())
                raise ModelError(f"{name}: the children of a sum node differ in their columns or numbers of codes.")
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "sizes", sizes)


Node = Leaf | Product | Sum


def scope(node: Node) -> frozenset[str]:
    """Name the columns that the node describes.

    >>> sorted(scope(Product(children=(Leaf(column="b", counts=np.ones(2)), Leaf(column="a", counts=np.ones(3))))))
    ['a', 'b']
    """
    return frozenset(node.sizes)


def children(node: Node) -> tuple[Node, ...]:
    """List the children of a node; a leaf has none."""
    return () if isinstance(node, Leaf) else node.children


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, parents first, children from left to right."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


def fold(node: Node, combine: Callable[[Node, list[T]], T]) -> T:
    """Compute a value for each node from those of its children, from left to right; return the root's."""
    done: list[T] = []
    for current in reversed(tuple(walk(node))):
        # Walked backwards, children come before their parent and the leftmost child comes last.
        below = [done.pop() for _ in children(current)]
        done.append(combine(current, below))
    return done.pop()


def distribution(leaf: Leaf) -> NDArray[np.float64]:
    """Compute the probability of each code.

    >>> distribution(Leaf(column="a", counts=np.array([3.0, 1.0]))).tolist()
    [0.75, 0.25]
    >>> distribution(Leaf(column="a", counts=np.zeros(4))).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    top = leaf.counts.max()
    if top == 0:
        return np.full(leaf.counts.size, 1 / leaf.counts.size)
    # By the largest first: a total of subnormal counts would lose digits.
    shares = leaf.counts / top
    normal: NDArray[np.float64] = shares / shares.sum()
    return normal
