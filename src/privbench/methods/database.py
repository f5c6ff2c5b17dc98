"""A whole database on one screen, for every method that learns a network per table: cap, size, learn, link.

The budget is divided as the paper does: a share for networks and a share for keys, each spread over tables by
the rows an entity may have (for keys, times their number). Methods differ in how they learn one table.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from privbench.methods.links import link_all
from privbench.methods.method import Learnt, Progress, TableModel
from privbench.methods.prelude import cap_and_size
from privbench.methods.size import Size, pooled
from privbench.privacy.partition import Block
from privbench.privacy.vault import Vault
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf

TableLearner = Callable[[Block, Size, Fraction], Learnt]
"""Learn a network of all columns of a table: its whole block, its size as measured, and the budget to spend."""


def learn_database(
    vault: Vault, learn_table: TableLearner, *, network_share: Fraction, progress: Progress
) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    sized = cap_and_size(vault, progress)
    networks = sized.left * network_share if vault.facts.links else sized.left
    learnt = _learn_networks(vault, sized.sizes, networks, learn_table)
    return link_all(vault, learnt, sized.left - networks, progress)


def _learn_networks(
    vault: Vault, sizes: Mapping[str, Size], epsilon: Fraction, learn_table: TableLearner
) -> dict[str, Learnt]:
    """A network for each table, its budget in proportion to the rows an entity may have in it."""
    weights = {t: vault.cap(t) for t, facts in vault.facts.tables.items() if facts.columns}
    learnt = {}
    for table, facts in vault.facts.tables.items():
        block = vault.whole(table, vault.ledger.root.sequential(f"network of {table}"))
        if not facts.columns:
            learnt[table] = _empty(block, sizes[table])
            continue
        found = learn_table(block, sizes[table], epsilon * weights[table] / sum(weights.values()))
        learnt[table] = Learnt(network=found.network, size=pooled([sizes[table], found.size]), parts=found.parts)
    return learnt


def _empty(block: Block, size: Size) -> Learnt:
    """A table whose columns are all keys."""
    return Learnt(network=Leaf(column=COMPONENT, counts=np.ones(1)), size=size, parts=(block,))
