"""Exact inference: the probability of evidence, and the distribution of one column.

Evidence gives each code of a column a weight from 0 to 1: the share of the code's cell that satisfies a predicate
(`Codec.coverage`). Columns without evidence are summed out, given ones over their contexts. One pass over the tree
per question.

In a clique tree columns are eliminated, the last placed first: a column is summed out of the product of its
conditional and the messages about it. What remains is a table over its parents, which form a clique: a message about
the last placed of them. Columns that neither carry evidence nor have descendants that do are left out. Marginals: the
other way, from clique to clique. Contexts of the given columns are taken together where the columns at hand cannot tell
them apart, and in blocks, so that no table has more than MAX_CELLS cells.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import MAX_CELLS, CliqueTree, Conditional, code_shares
from privbench.spn.clique_table import Table, conditional_table, distinct
from privbench.spn.feature_names import shown
from privbench.spn.nodes import Leaf, Node, Sum, distribution, fold

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def probability(node: Node, evidence: Mapping[str, NDArray[np.float64]]) -> float:
    """Compute the probability that a row satisfies the evidence in every column of it.

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
        raise ModelError(f"{shown(column)}: evidence of shape {weights.shape} for a column of {size} codes.")
    # Written so that NaN fails.
    if not ((weights >= 0) & (weights <= 1)).all():
        raise ModelError(f"{shown(column)}: evidence must lie between 0 and 1.")


def _size(node: Node, column: str) -> int:
    if column not in node.sizes:
        raise ModelError(
            f"{shown(column)}: no such column in this model. Columns: {', '.join(map(shown, sorted(node.sizes)))}."
        )
    return node.sizes[column]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Message:
    """A function of some columns, different in each group of contexts."""

    columns: tuple[str, ...]
    values: Floats  # (groups, bins of each of the columns)
    group: Integers  # (contexts,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """What is known of a column and each of its parents."""

    shares: Floats  # (bins,)
    pairs: Mapping[str, Floats]  # by parent: (bins of the parent, bins)


def tree_probability(tree: CliqueTree, evidence: Mapping[str, Floats]) -> float:
    """Compute the probability of evidence; columns that are not of the tree are left aside."""
    asked = _with_ancestors(tree, evidence.keys() & tree.sizes.keys())
    if not asked:
        return 1.0
    wanted = {c.column: _bin_evidence(c, evidence[c.column]) for c in asked if c.column in evidence}
    tables = [conditional_table(tree, c) for c in asked]
    # No message is larger than the table that it was summed from.
    blocks = _blocks(tree, tables, cells=max(table.inside.size for table in tables))
    return sum(float(weights @ _eliminate(tables, wanted, contexts)) for contexts, weights in blocks)


def tree_marginal(tree: CliqueTree, column: str) -> Floats:
    """Compute the probability of each code of one column."""
    asked = _with_ancestors(tree, {column})
    shares: Floats = _joints(tree, asked)[column].shares[asked[-1].bins] * code_shares(asked[-1])
    return shares


def tree_joints(tree: CliqueTree) -> dict[str, Joint]:
    """Compute the joint distribution of every column and each of its parents, in one pass."""
    return _joints(tree, tree.columns)


def _joints(tree: CliqueTree, columns: Sequence[Conditional]) -> dict[str, Joint]:
    tables = [conditional_table(tree, c) for c in columns]
    joints = [
        Joint(
            shares=np.zeros(table.inside.shape[-1]),
            pairs={p: np.zeros(f.shape) for p, f in zip(c.parents, c.factors, strict=True)},
        )
        for c, table in zip(columns, tables, strict=True)
    ]
    for contexts, weights in _blocks(tree, tables, cells=sum(table.inside.size for table in tables)):
        for joint, table, message in zip(joints, tables, _forward(tables, contexts), strict=True):
            _add(joint, table, message, weights, contexts)
    return {c.column: joint for c, joint in zip(columns, joints, strict=True)}


def _with_ancestors(tree: CliqueTree, columns: Collection[str]) -> tuple[Conditional, ...]:
    """The columns and all they depend on in the tree, in order of placement."""
    needed = set(columns)
    needed_columns = []
    for column in reversed(tree.columns):
        if column.column in needed:
            needed.update(column.parents)
            needed_columns.append(column)
    return tuple(reversed(needed_columns))


def _bin_evidence(column: Conditional, weights: Floats) -> Floats:
    return np.bincount(column.bins, weights=code_shares(column) * weights).astype(np.float64)


def _blocks(tree: CliqueTree, tables: Sequence[Table], *, cells: int) -> Iterator[tuple[Integers, Floats]]:
    """Contexts that these columns tell apart, with their weights; as many at a time as fit with `cells` for each."""
    first, group = distinct([table.configuration for table in tables], len(tree.weights))
    weights = np.bincount(group, weights=tree.weights).astype(np.float64)
    step = max(1, MAX_CELLS // cells)
    for start in range(0, first.size, step):
        yield first[start : start + step], weights[start : start + step]


def _eliminate(tables: Sequence[Table], evidence: Mapping[str, Floats], contexts: Integers) -> Floats:
    """Compute the probability of the evidence in each context."""
    messages: dict[str, list[_Message]] = defaultdict(list)
    total = np.ones(contexts.size)
    for table in reversed(tables):
        received = messages.pop(table.column, [])
        first, group = distinct([table.configuration[contexts], *(m.group for m in received)], contexts.size)
        weights = np.ones((1,) * (1 + len(table.clique)))
        for message in received:
            own = message.values if len(message.values) == 1 else message.values[message.group[first]]
            weights = weights * _aligned(own, message.columns, table.clique)
        wanted = evidence.get(table.column, np.ones(table.inside.shape[-1]))
        values = table.summed(contexts[first], weights=weights, evidence=wanted)
        if table.parents:
            messages[table.parents[-1]].append(_Message(columns=table.parents, values=values, group=group))
        else:
            total *= values[group]
    return total


def _forward(tables: Sequence[Table], contexts: Integers) -> list[_Message]:
    """Compute the distribution over each clique in each context, from the first placed column to the last."""
    cliques: dict[str, _Message] = {}
    for table in tables:
        values, group = np.ones(1), np.zeros(contexts.size, np.int64)
        if table.parents:
            above = cliques[table.parents[-1]]
            gone = tuple(1 + axis for axis, name in enumerate(above.columns) if name not in table.parents)
            values, group = above.values.sum(axis=gone), above.group
        first, joined = distinct([table.configuration[contexts], group], contexts.size)
        values = values[group[first]][..., None] * table.values(contexts[first])
        cliques[table.column] = _Message(columns=table.clique, values=values, group=joined)
    return list(cliques.values())


def _add(joint: Joint, table: Table, clique: _Message, weights: Floats, contexts: Integers) -> None:
    """Add a block of contexts to what is known of a column."""
    by_group = np.bincount(clique.group, weights=weights, minlength=len(clique.values))
    inside = np.tensordot(by_group, clique.values, axes=1)  # (bins of each parent in the tree, bins)
    axes = range(len(table.parents))
    joint.shares[:] += inside.sum(axis=tuple(axes))
    for axis, parent in enumerate(table.parents):
        joint.pairs[parent][:] += inside.sum(axis=tuple(a for a in axes if a != axis))
    shares = clique.values.sum(axis=tuple(range(1, clique.values.ndim - 1)))[clique.group] * weights[:, None]
    for parent, bins in table.given.items():
        np.add.at(joint.pairs[parent], bins[table.configuration[contexts]], shares)


def _aligned(values: Floats, columns: Sequence[str], clique: Sequence[str]) -> Floats:
    """Give a message an axis for each column of the clique; both are in order of placement."""
    sizes = dict(zip(columns, values.shape[1:], strict=True))
    return values.reshape(len(values), *(sizes.get(name, 1) for name in clique))
