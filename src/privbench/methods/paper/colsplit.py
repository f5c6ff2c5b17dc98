"""Column split: of as many random halvings as there are columns, the one with the least dependence, privately."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from privbench.privacy.blocks import Block, ColumnSplit
from privbench.privacy.facts import Facts
from privbench.privacy.queries import SplitChoice
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
