"""Row split: two-means clustering under differential privacy (DPLloyd), with released centres.

Each round measures the size of either cluster and, per column, the sum of coordinates or the histogram of
codes in it, all with noise; the next centres are their quotients. A row belongs to the nearer released centre,
so that the split is a public function of the row. The number of rounds and the shares of sizes and columns
are those of Su et al.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import cbrt, sqrt

import numpy as np
from numpy.typing import NDArray

from privbench.methods.capped import row_histogram
from privbench.methods.paper.plan import Task
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy import features
from privbench.privacy.blocks import Block, CentrePair
from privbench.privacy.exact import COORDINATE
from privbench.privacy.facts import ColumnFacts, Facts
from privbench.privacy.features import Axis, whole_axis
from privbench.privacy.queries import Histogram, Sums
from privbench.privacy.vault import Vault

SPREAD = 0.225
"""The typical distance of a row to its centre, as a share of the range."""
FEWEST_ROUNDS, MOST_ROUNDS = 2, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSplit:
    """The two blocks and their sizes as last measured."""

    blocks: tuple[Block, Block]
    sizes: tuple[int, int]


def split_rows(
    vault: Vault, facts: Facts, task: Task, settings: PaperSettings, *, amount: Fraction, rng: np.random.Generator
) -> RowSplit:
    """Cluster the rows of a block in two and split it."""
    columns = {name: facts.tables[task.block.table].columns[name] for name in task.columns}
    rounds = round_count(task.rows, len(columns), float(amount / task.block.cap))
    if settings.as_published:
        blocks, sizes = vault.split_as_published(
            task.block, columns, rounds=rounds, fewest=settings.min_rows, amount=amount
        )
        return RowSplit(blocks=blocks, sizes=sizes)
    centres, last = _clusters(vault, task.block, columns, rounds=rounds, amount=amount, rng=rng)
    blocks = vault.split(task.block, columns, centres)
    return RowSplit(blocks=blocks, sizes=shared_rows(task.rows, int(last[0]), int(last[1])))


def shared_rows(rows: int, left: int, right: int) -> tuple[int, int]:
    """Noisy sizes of two sides scaled to add up to the (noisy) size of the whole, so that a tree stays finite.

    >>> shared_rows(100, 30, 10), shared_rows(100, -5, 7), shared_rows(100, -5, -7)
    ((75, 25), (0, 100), (0, 0))
    """
    left, right = max(left, 0), max(right, 0)
    if left + right == 0:
        return 0, 0
    share = rows * left // (left + right)
    return share, rows - share


def _clusters(
    vault: Vault,
    block: Block,
    columns: dict[str, ColumnFacts],
    *,
    rounds: int,
    amount: Fraction,
    rng: np.random.Generator,
) -> tuple[CentrePair, NDArray[np.int64]]:
    """The centres after all rounds, and the sizes that the last round measured."""
    size_parts = Fraction(cbrt(4 * len(columns) * SPREAD**2)).limit_denominator(1000)
    part = amount / rounds / (len(columns) + size_parts)
    centres = CentrePair(columns={name: _random_centres(facts, rng) for name, facts in columns.items()})
    sizes = np.zeros(2, np.int64)
    for _ in range(rounds):
        side = whole_axis(features.cluster(centres, columns))
        by_column = [(_by_cluster(block, side, name, facts), part) for name, facts in columns.items()]
        first, *measured = vault.measure_all([(row_histogram(block, side), part * size_parts), *by_column])
        sizes = first.values
        centres = CentrePair(
            columns={
                name: _centres(facts, sums.values, sizes, centres.columns[name])
                for (name, facts), sums in zip(columns.items(), measured, strict=True)
            }
        )
    return centres, sizes


def _by_cluster(block: Block, side: Axis, column: str, facts: ColumnFacts) -> Histogram | Sums:
    """For either cluster, the sum of an ordered column's coordinates or the histogram of an unordered one."""
    if facts.ordered:
        return Sums(block=block, axes=(side,), column=column, size=facts.size)
    return row_histogram(block, side, whole_axis(features.own(column, facts)))


def round_count(rows: int, columns: int, epsilon: float) -> int:
    """How many rounds the budget of a row allows.

    >>> round_count(100, 4, 0.1), round_count(10**7, 4, 1.0)
    (2, 7)
    """
    least = sqrt(500 * 2**3 / max(rows, 1) ** 2 * (columns + cbrt(4 * columns * SPREAD**2)) ** 3)
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(epsilon / least)))


def _random_centres(facts: ColumnFacts, rng: np.random.Generator) -> NDArray[np.int64]:
    """Start anywhere in the public domain, the two centres in opposite halves of it."""
    if facts.ordered:
        start = int(rng.integers(0, COORDINATE + 1))
        return np.array([-start, start]) * int(rng.choice([-1, 1]))
    side = rng.permutation(facts.size) < facts.size / 2
    shares = 2 * COORDINATE // max(int(side.sum()), 1)
    return np.stack([side * shares, ~side * shares]).astype(np.int64)


def _centres(
    facts: ColumnFacts, measured: NDArray[np.int64], sizes: NDArray[np.int64], before: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Measured sums over measured sizes, kept inside the domain; an empty cluster keeps its centre."""
    moved = before.copy()
    for side in (0, 1):
        size = int(sizes[side])
        if size <= 0:
            continue
        if facts.ordered:
            moved[side] = np.clip(measured[side] // size, -COORDINATE, COORDINATE)
        else:
            moved[side] = np.clip(measured[side], 0, size) * (2 * COORDINATE) // size
    return moved
