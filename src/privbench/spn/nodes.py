"""The model of one table: a sum-product network over coded columns, as frozen values that check themselves.

A leaf is the histogram of one column, a product joins independent groups of columns, a sum mixes distributions
of the same columns, a clique tree (`clique`) holds a group of dependent columns at once. A network is a tree.
Methods build it; `infer`, `sample`, `store` and `draw` read it.
Nothing recurses, so depth is bounded by memory alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.checks import checked_counts, checked_weights, shares_of
from privbench.spn.clique import CliqueTree, Given
from privbench.spn.feature_names import shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """The histogram of one column: counts[code] >= 0, in any unit; all zero means uniform."""

    column: str
    counts: NDArray[np.float64]  # (codes,)
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = checked_counts(self.column, self.counts)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "sizes", {self.column: counts.size})

    @property
    def constant(self) -> bool:
        """Whether it has a single code, and not even a count of its own: it says nothing of any data."""
        return bool(self.counts.tolist() == [1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """Groups of columns that are independent of each other."""

    children: tuple["Node", ...]
    sizes: Mapping[str, int] = field(init=False, repr=False)
    given: tuple[Given, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.children:
            raise ModelError("a product node needs a child.")
        sizes: dict[str, int] = {}
        for child in self.children:
            if twice := sizes.keys() & child.sizes.keys():
                raise ModelError(f"{shown(min(twice))}: in two children of one product, so they cannot be independent.")
            sizes |= child.sizes
        given = [columns for child in self.children if (columns := given_columns(child))]
        if len(given) > 1:
            raise ModelError(
                f"{shown(given[1][0].column)}: given to a second child of one product; only one may need any."
            )
        if both := sizes.keys() & {column.column for columns in given for column in columns}:
            raise ModelError(f"{shown(min(both))}: a column of the product is given to one of its children.")
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "given", given[0] if given else ())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """A mixture: with probability weights[i] a row is drawn from children[i]."""

    children: tuple["Node", ...]
    weights: NDArray[np.float64]  # (children,)
    sizes: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.children:
            raise ModelError("a sum node needs a child.")
        if np.shape(self.weights) != (len(self.children),):
            raise ModelError(
                f"a sum node has {len(self.children)} children and weights of shape {np.shape(self.weights)}."
            )
        object.__setattr__(self, "weights", checked_weights("a sum node", self.weights))
        for child in self.children:
            if given := given_columns(child):
                raise ModelError(f"{shown(given[0].column)}: a sum node may not contain conditioning columns.")
        sizes = self.children[0].sizes
        for child in self.children[1:]:
            if child.sizes != sizes:
                name = min(column for column, _ in sizes.items() ^ child.sizes.items())
                raise ModelError(
                    f"{shown(name)}: the children of a sum node differ in their columns or numbers of codes."
                )
        object.__setattr__(self, "sizes", sizes)


Node = Leaf | Product | Sum | CliqueTree


def given_columns(node: Node) -> tuple[Given, ...]:
    """List the columns that must be known before a row of the node is drawn."""
    return node.given if isinstance(node, Product | CliqueTree) else ()


def children(node: Node) -> tuple[Node, ...]:
    """List the children of a node; a leaf and a clique tree have none."""
    return node.children if isinstance(node, Product | Sum) else ()


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
    return shares_of(leaf.counts)
