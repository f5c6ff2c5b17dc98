"""Sample rows of codes from a network: exact sizes, low variance, unbiased.

Every histogram and every mixture is rounded to whole rows by systematic sampling instead of drawn row by row,
so that each count is within one row of its expectation. Rows keep no trace of that order: each leaf shuffles
its codes, each sum shuffles which rows its children get.
"""

import numpy as np
from numpy.typing import NDArray

from privbench.spn.nodes import Leaf, Node, Product, distribution


def sample(node: Node, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.uint16]]:
    """Draw that many rows, in random order, as one array of codes per column.

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
        else:
            parts = whole_rows(current.weights, places.size, offset=rng.random())
            blocks = np.split(rng.permutation(places), np.cumsum(parts)[:-1])
            waiting.extend(zip(current.children, blocks, strict=True))
    return out


def whole_rows(shares: NDArray[np.float64], rows: int, *, offset: float) -> NDArray[np.int64]:
    """Round rows * shares to integers that add up to `rows`, each less than 1 from its exact value.

    Systematic sampling: the cumulated shares cut [0, rows) into intervals, and each gets the points of
    the grid {k - offset} that it holds. Over a uniform offset in [0, 1) the expectation is exact.

    >>> whole_rows(np.array([0.5, 0.3, 0.2]), 5, offset=0.4).tolist()
    [2, 2, 1]
    """
    cumulated = np.cumsum(shares)
    # Divided by the last entry, not by 1: a share of zero at the end then gets no row.
    edges = np.floor(cumulated / cumulated[-1] * rows + offset)
    # rows + offset can round up to rows + 1 when there are many rows.
    whole: NDArray[np.int64] = np.diff(np.minimum(edges, rows), prepend=0.0).astype(np.int64)
    return whole


def _leaf_codes(leaf: Leaf, rows: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    counts = whole_rows(distribution(leaf), rows, offset=rng.random())
    codes = np.repeat(np.arange(counts.size, dtype=np.uint16), counts)
    rng.shuffle(codes)
    return codes
