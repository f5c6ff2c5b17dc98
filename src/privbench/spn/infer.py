"""Exact inference: the probability of evidence, and the distribution of one column.

Evidence gives each code of a column a weight from 0 to 1: the share of the code's cell that satisfies a predicate
(`Codec.coverage`). Columns without evidence are summed out, given ones over their contexts. One pass over the tree
per question.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree
from privbench.spn.clique_infer import tree_marginal, tree_probability
from privbench.spn.nodes import Leaf, Node, Sum, distribution, fold


def probability(node: Node, evidence: Mapping[str, NDArray[np.float64]]) -> float:
    """Compute the probability that a row satisfies the evidence in every column named.

    >>> leaf = Leaf(column="a", counts=np.array([3.0, 1.0]))
    >>> probability(leaf, {"a": np.array([0.0, 1.0])})
    0.25
    """
    for column, weights in evidence.items():
        _check(node, column, weights)

    def combine(current: Node, below: list[float]) -> float:
        if isinstance(current, Leaf):
            wanted = evidence.get(current.column)
            return 1.0 if wanted is None else float(distribution(current) @ wanted)
        if isinstance(current, CliqueTree):
            return tree_probability(current, evidence)
        if isinstance(current, Sum):
            return float(current.weights @ np.array(below))
        return math.prod(below)

    return min(1.0, fold(node, combine))


def marginal(node: Node, column: str) -> NDArray[np.float64]:
    """Compute the probability of each code of one column.

    >>> marginal(Leaf(column="a", counts=np.array([3.0, 1.0])), "a").tolist()
    [0.75, 0.25]
    """
    total = np.zeros(_size(node, column))
    waiting = [(node, 1.0)]
    while waiting:
        current, weight = waiting.pop()
        if isinstance(current, Leaf):
            total += weight * distribution(current)
        elif isinstance(current, CliqueTree):
            total += weight * tree_marginal(current, column)
        elif isinstance(current, Sum):
            waiting.extend(zip(current.children, (weight * current.weights).tolist(), strict=True))
        else:
            waiting.append((next(child for child in current.children if column in child.sizes), weight))
    shares: NDArray[np.float64] = total / total.sum()
    return shares


def _check(node: Node, column: str, weights: NDArray[np.float64]) -> None:
    size = _size(node, column)
    if weights.shape != (size,):
        raise ModelError(f"{column}: evidence of shape {weights.shape} for a column of {size} codes.")
    # Written so that NaN fails.
    if not ((weights >= 0) & (weights <= 1)).all():
        raise ModelError(f"{column}: evidence must lie between 0 and 1.")


def _size(node: Node, column: str) -> int:
    if column not in node.sizes:
        raise ModelError(f"{column}: no such column in this model. Columns: {', '.join(sorted(node.sizes))}.")
    return node.sizes[column]
