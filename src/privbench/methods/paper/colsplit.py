"""Column split: of as many random halvings as there are columns, the one with the least dependence, privately."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from privbench.privacy.partition import Block, ColumnSplit
from privbench.privacy.vault import Vault


def choose_halves(
    vault: Vault, block: Block, columns: Sequence[str], *, epsilon: Fraction, rng: np.random.Generator
) -> ColumnSplit:
    """Split the columns of a block in halves; at random without a budget, and where there is but one way."""
    if len(columns) == 2:
        return (columns[0],), (columns[1],)
    if not epsilon:
        return _halves(columns, rng)
    candidates = [_halves(columns, rng) for _ in columns]
    return vault.choose_column_split(block, candidates, epsilon=epsilon)


def _halves(columns: Sequence[str], rng: np.random.Generator) -> ColumnSplit:
    order = rng.permutation(len(columns))
    half = len(columns) // 2
    left, right = sorted(order[:half]), sorted(order[half:])
    return tuple(columns[i] for i in left), tuple(columns[i] for i in right)
