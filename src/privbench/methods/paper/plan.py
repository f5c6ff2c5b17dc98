"""What to do with a block of rows and columns, and with which part of its budget: a leaf, or a split.

A block with one column becomes a leaf. A large block is tried: if even its best column split is strongly dependent, its
rows are split, otherwise its columns. A column split is the one with the least dependence among as many random halvings
as there are columns, chosen privately. Budgets are spread evenly over the nodes that the tree of the block can have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import log2

import numpy as np

from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.blocks import Block, ColumnSplit
from privbench.privacy.exact import COORDINATE
from privbench.privacy.facts import Facts
from privbench.privacy.queries import Dependence, SplitChoice
from privbench.privacy.vault import Vault


def choose_halves(
    vault: Vault, facts: Facts, block: Block, columns: Sequence[str], *, amount: Fraction, rng: np.random.Generator
) -> ColumnSplit:
    """Split the columns of a block in halves; in their order without a budget, or where there is but one way."""
    if len(columns) == 2 or not amount:
        return halves_in_order(columns)
    candidates = tuple(_halves(columns, rng) for _ in columns)
    question = SplitChoice(
        block=block,
        candidates=candidates,
        columns=facts.tables[block.table].columns,
        most_rows=facts.most_rows(block.table, block.cap),
    )
    return candidates[vault.choose(question, amount)]


def halves_in_order(columns: Sequence[str]) -> ColumnSplit:
    """The split that looks at no data: the first half and the second.

    >>> halves_in_order(["a", "b", "c"])
    (('a',), ('b', 'c'))
    """
    half = len(columns) // 2
    return tuple(columns[:half]), tuple(columns[half:])


def _halves(columns: Sequence[str], rng: np.random.Generator) -> ColumnSplit:
    order = rng.permutation(len(columns))
    half = len(columns) // 2
    left, right = sorted(order[:half]), sorted(order[half:])
    return tuple(columns[i] for i in left), tuple(columns[i] for i in right)


class Operation(Enum):
    """What a node is."""

    LEAF = "leaf"
    SUM = "sum"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A block with the columns to model, its (noisy) number of rows and the budget for its whole subtree."""

    block: Block
    columns: tuple[str, ...]
    rows: int
    budget: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The operation, its budget, what remains for the children, and the split that the trial found, if any."""

    operation: Operation
    budget: Fraction
    rest: Fraction
    tried: ColumnSplit | None = None


def node_bound(rows: int, columns: int, settings: PaperSettings) -> Fraction:
    """How many nodes the tree of a block can have at most: twice its leaves, minus one.

    Leaves have `min_rows` rows and one column; a block with fewer rows still has a leaf per column.

    >>> node_bound(1000, 4, PaperSettings()), node_bound(20_000, 4, PaperSettings())
    (Fraction(7, 1), Fraction(15, 1))
    """
    return 2 * max(Fraction(rows, settings.min_rows), Fraction(1)) * columns - 1


def plan(vault: Vault, facts: Facts, task: Task, settings: PaperSettings, rng: np.random.Generator) -> Plan:
    """Decide the operation of a node; spends the trial's share."""
    if len(task.columns) == 1:
        return Plan(operation=Operation.LEAF, budget=task.budget, rest=Fraction(0))
    own = task.budget / node_bound(task.rows, len(task.columns), settings)
    if not _drawable(vault, task, own, settings):
        return Plan(operation=Operation.PRODUCT, budget=Fraction(0), rest=task.budget)
    if task.rows < 2 * settings.min_rows:
        return _product(task, own, spent=Fraction(0), tried=None)
    spent = own * settings.trial_share
    tried, dependence = _trial(vault, facts, task, spent, settings, rng)
    if dependence <= settings.dependence_threshold:
        return _product(task, own, spent=spent, tried=tried)
    return Plan(operation=Operation.SUM, budget=own - spent, rest=task.budget - own, tried=tried)


def _drawable(vault: Vault, task: Task, own: Fraction, settings: PaperSettings) -> bool:
    """Whether the noise of the finest measurement of a split could be drawn at all; public, as it looks at budgets.

    A row split parts its share among at most 7 rounds of less than two parts per column. A trial measures scores, which
    an entity moves 9 times as far as coordinates (twice 2**SCORE_BITS + 2 against COORDINATE).
    """
    trial = settings.trial_share * min(settings.trial_split_share, 1 - settings.trial_split_share) / 9
    rows = (1 - settings.trial_share) / (14 * len(task.columns))
    return vault.drawable(own * min(trial, rows), sensitivity=task.block.cap * COORDINATE)


def _trial(
    vault: Vault, facts: Facts, task: Task, amount: Fraction, settings: PaperSettings, rng: np.random.Generator
) -> tuple[ColumnSplit, float]:
    """Choose a column split and measure its mutual information, normalised by its largest possible value."""
    block, for_split = task.block, amount * settings.trial_split_share
    tried = choose_halves(vault, facts, block, task.columns, amount=for_split, rng=rng)
    question = Dependence(
        block=block,
        split=tried,
        columns=facts.tables[block.table].columns,
        most_rows=facts.most_rows(block.table, block.cap),
    )
    bits = question.bits(float(vault.measure(question, amount - for_split).values[0]))
    return tried, bits / (task.rows * log2(task.rows))


def _product(task: Task, own: Fraction, *, spent: Fraction, tried: ColumnSplit | None) -> Plan:
    """Two columns have one split only, so that choosing it costs nothing."""
    budget = Fraction(0) if len(task.columns) == 2 else own - spent
    return Plan(operation=Operation.PRODUCT, budget=budget, rest=task.budget - spent - budget, tried=tried)
