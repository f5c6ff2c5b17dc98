"""Sample rows of codes from a network: exact sizes, low variance, unbiased.

Every histogram, mixture and conditional is rounded to whole rows by systematic sampling instead of drawn row by row,
so that each count is within one row of its expectation. Rows keep no trace of that order: each leaf shuffles
its codes, each sum shuffles which rows its children get.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.spn.clique import CliqueTree
from privbench.spn.clique_sample import Codes, sample_tree
from privbench.spn.nodes import Leaf, Node, Product, distribution
from privbench.spn.rounding import whole_rows


def sample(
    node: Node, rows: int, rng: np.random.Generator, *, given: Mapping[str, Codes] | None = None
) -> dict[str, NDArray[np.uint16]]:
    """Draw that many rows, in random order, as one array of codes per column.

    `given` holds a code per row for each of `given_columns(node)`, and fixes the order of the rows; without it these
    columns are drawn from the contexts of the network.

    >>> leaf = Leaf(column="a", counts=np.array([3.0, 1.0]))
    >>> np.bincount(sample(leaf, 8, np.random.default_rng(0))["a"]).tolist()
    [6, 2]
    """
    out = {column: np.empty(rows, dtype=np.uint16) for column in sorted(node.sizes)}
    waiting = [(node, np.arange(rows))]
    while waiting:
        current, places = waiting.pop()
        if places.size == 0:
            continue
        if isinstance(current, Leaf):
            out[current.column][places] = _leaf_codes(current, places.size, rng)
        elif isinstance(current, Product):
            waiting.extend((child, places) for child in current.children)
        elif isinstance(current, CliqueTree):
            # Given columns are never below a sum, so where they matter `places` are all rows.
            drawn = sample_tree(current, places.size, rng, given=given if current.given else None)
            for column, codes in drawn.items():
                out[column][places] = codes
        else:
            parts = whole_rows(current.weights, places.size, offset=rng.random())
            blocks = np.split(rng.permutation(places), np.cumsum(parts)[:-1])
            waiting.extend(zip(current.children, blocks, strict=True))
    return out


def _leaf_codes(leaf: Leaf, rows: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    counts = whole_rows(distribution(leaf), rows, offset=rng.random())
    codes = np.repeat(np.arange(counts.size, dtype=np.uint16), counts)
    rng.shuffle(codes)
    return codes
