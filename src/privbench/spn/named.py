"""How often rows are named: by keys that were counted, and by those that were not.

The counted keys of a row are its number. Those that were not counted follow from the numbers of the rows that are like
it in the columns that the number depends on, and from its own: the former keep how often rows of a kind are named, the
latter how unevenly.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree, Conditional, number_of_bins
from privbench.spn.fanouts import draw_numbers
from privbench.spn.nodes import Node, walk
from privbench.spn.tree_links import EVEN, Named

Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.integer]]

FEWEST_ALIKE = 50
"""On average at least so many rows of a block count as alike."""


def columns_near(node: Node, column: str) -> tuple[str, ...]:
    """The own columns of a network that one of its columns depends on, or that depend on it."""
    return tuple(near.column for near in _near(node, column))


def draw_named(link: Named, node: Node, codes: Codes, *, rng: np.random.Generator) -> Floats:
    """About how many keys name each of a block's rows; `node` is their network.

    >>> from privbench.spn.nodes import Leaf
    >>> from privbench.spn.tree_links import Rates
    >>> link = Named(column="n", edges=np.array([0, 1, 2]), null=None, uncounted=Rates(shape=EVEN, more=3.0))
    >>> codes = {"n": np.array([0, 1, 0, 1])}
    >>> draw_named(link, Leaf(column="n", counts=np.ones(2)), codes, rng=np.random.default_rng(0)).tolist()
    [1.5, 2.5, 1.5, 2.5]
    """
    assert link.column is not None  # noqa: S101  else nothing is known of the rows
    numbers = draw_numbers(codes[link.column], link.edges, link.exponent, rng=rng).astype(np.float64)
    rates = link.uncounted
    if not rates.more:
        return numbers
    means = _means_alike(numbers, node, link.column, codes)
    if rates.shape == EVEN:
        return numbers + rates.more * means
    return numbers + rng.poisson(rates.more * means / (rates.shape + means) * rng.gamma(rates.shape + numbers))


def _near(node: Node, column: str) -> list[Conditional]:
    own = [c for tree in walk(node) if isinstance(tree, CliqueTree) for c in tree.columns]
    families = [{c.column, *c.parents} for c in own]
    near = set().union(*(family for family in families if column in family)) - {column}
    return [c for c in own if c.column in near]


def _means_alike(numbers: Floats, node: Node, column: str, codes: Codes) -> Floats:
    """The mean number of the rows that are like each row: in the same bins of columns near, as far as rows suffice."""
    kind, kinds = np.zeros(len(numbers), np.int64), 1
    for near in _near(node, column):
        if kinds * number_of_bins(near) * FEWEST_ALIKE <= len(numbers):
            kind = kind * number_of_bins(near) + near.bins[codes[near.column]]
            kinds *= number_of_bins(near)
    rows = np.bincount(kind, minlength=kinds)
    means: Floats = np.bincount(kind, numbers, kinds) / np.maximum(rows, 1)
    return means[kind]
