"""The network of one table: plan a node, make it, go on with its children (PrivSPN).

Tasks wait in a list; nodes are put together at the end, children first, when the noisy sizes of all leaves
are known: a sum's weights come from the sizes of its children, and all of that is post-processing.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from privbench.methods.capped import Learnt, Size, column_histogram, pooled
from privbench.methods.method import Progress
from privbench.methods.paper.plan import Operation, Plan, Task, choose_halves, node_bound, plan
from privbench.methods.paper.rowsplit import split_rows
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.blocks import ColumnSplit
from privbench.privacy.facts import Facts
from privbench.privacy.vault import Measured, Vault
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Node, Product, Sum


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A node whose children are still to come."""

    task: Task
    operation: Operation
    counts: Measured | None = None
    children: list[int] = field(default_factory=list)


def learn_network(
    vault: Vault, facts: Facts, task: Task, settings: PaperSettings, *, rng: np.random.Generator, progress: Progress
) -> Learnt:
    """Spend the task's budget on a network of its columns."""
    drafts: list[_Draft] = []
    leaves = 0
    waiting: list[tuple[Task, int | None]] = [(task, None)]
    while waiting:
        current, parent = waiting.pop()
        draft, children = _make(vault, facts, current, settings, rng)
        if parent is not None:
            drafts[parent].children.append(len(drafts))
        waiting.extend((child, len(drafts)) for child in reversed(children))
        drafts.append(draft)
        leaves += draft.operation is Operation.LEAF
        progress(f"learning {task.block.table}", leaves, max(leaves, len(task.columns)))
    return _assemble(drafts)


def _make(
    vault: Vault, facts: Facts, task: Task, settings: PaperSettings, rng: np.random.Generator
) -> tuple[_Draft, tuple[Task, ...]]:
    """Make one node: what it is, and the tasks of its children."""
    decided = plan(vault, facts, task, settings, rng)
    if decided.operation is Operation.LEAF:
        counts = vault.measure(column_histogram(facts, task.block, task.columns[0]), decided.budget)
        return _Draft(task=task, operation=Operation.LEAF, counts=counts), ()
    if decided.operation is Operation.SUM:
        children = _row_children(vault, facts, task, decided, settings, rng)
        if children:
            return _Draft(task=task, operation=Operation.SUM), children
    split = _columns_of(vault, facts, task, decided, rng)
    return _Draft(task=task, operation=Operation.PRODUCT), _column_children(task, split, decided.rest, settings)


def _row_children(
    vault: Vault, facts: Facts, task: Task, decided: Plan, settings: PaperSettings, rng: np.random.Generator
) -> tuple[Task, ...]:
    """Split the rows; no children if a side has (noisily) too few."""
    split = split_rows(vault, facts, task, settings, amount=decided.budget, rng=rng)
    if min(split.sizes) < settings.min_rows:
        return ()
    return tuple(
        Task(block=block, columns=task.columns, rows=rows, budget=decided.rest)
        for block, rows in zip(split.blocks, split.sizes, strict=True)
    )


def _columns_of(vault: Vault, facts: Facts, task: Task, decided: Plan, rng: np.random.Generator) -> ColumnSplit:
    """The column split of a product; where a row split failed, the one that the trial has found."""
    if decided.operation is Operation.SUM and decided.tried is not None:
        return decided.tried
    return choose_halves(vault, facts, task.block, task.columns, amount=decided.budget, rng=rng)


def _column_children(task: Task, split: ColumnSplit, budget: Fraction, settings: PaperSettings) -> tuple[Task, ...]:
    """Share the budget between the halves by the nodes that they can have."""
    bounds = [node_bound(task.rows, len(half), settings) for half in split]
    return tuple(
        Task(block=task.block, columns=half, rows=task.rows, budget=budget * bound / sum(bounds))
        for half, bound in zip(split, bounds, strict=True)
    )


def _assemble(drafts: list[_Draft]) -> Learnt:
    """Nodes from drafts, children first."""
    parts = _parts(drafts)
    nodes: list[Node | None] = [None] * len(drafts)
    sizes: list[Size | None] = [None] * len(drafts)
    for at in reversed(range(len(drafts))):
        draft = drafts[at]
        below = [n for c in draft.children if (n := nodes[c]) is not None]
        under = [s for c in draft.children if (s := sizes[c]) is not None]
        nodes[at], sizes[at] = _node(draft, below, under, part=parts.get(at), of=len(parts))
    root, size = nodes[0], sizes[0]
    if root is None or size is None:
        raise RuntimeError("a network without nodes")
    return Learnt(network=root, size=size, parts=tuple(drafts[at].task.block for at in parts))


def _parts(drafts: list[_Draft]) -> dict[int, int]:
    """The leaves of the column that has most of them, numbered: they part the rows of the table."""
    leaves: dict[str, list[int]] = {}
    for at, draft in enumerate(drafts):
        if draft.operation is Operation.LEAF:
            leaves.setdefault(draft.task.columns[0], []).append(at)
    most = max(leaves.values(), key=len)
    return {at: number for number, at in enumerate(most)}


def _node(draft: _Draft, below: list[Node], under: list[Size], *, part: int | None, of: int) -> tuple[Node, Size]:
    if draft.operation is Operation.PRODUCT:
        return Product(children=tuple(below)), pooled(under)
    if draft.operation is Operation.SUM:
        rows = np.maximum([s.rows for s in under], 1.0)
        total = Size(rows=sum(s.rows for s in under), variance=sum(s.variance for s in under))
        return Sum(children=tuple(below), weights=rows / rows.sum()), total
    if draft.counts is None:
        raise RuntimeError("a leaf without counts")
    measured = draft.counts
    leaf = Leaf(column=draft.task.columns[0], counts=np.maximum(measured.counts, 0.0))
    size = Size(rows=measured.total, variance=len(measured.values) * measured.noise.variance + 1e-9)
    if part is None:
        return leaf, size
    return Product(children=(leaf, Leaf(column=COMPONENT, counts=np.eye(of)[part]))), size
