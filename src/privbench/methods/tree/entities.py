"""How many entities there are, where that is private, and how many rows have no owner."""

from fractions import Fraction

import numpy as np

from privbench.methods.tree.fanout import INSIDE
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Axis, entity_rows, null_key, whole_axis
from privbench.privacy.vault import Vault
from privbench.spn.fanouts import MANY, Edges, bin_means

COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR_UNOWNED = 3.0
"""A number of entities without owner below this many noise scales is taken as none."""
ORPHAN_EDGES: Edges = np.append([1, *(2**power + 1 for power in range(12))], MANY)
"""Bins of how many rows reference the same missing owner: 1, 2, 3 to 4, 5 to 8, ..."""


def count_entities(vault: Vault, facts: Facts) -> float:
    """The number of entities: public under `replace`, else measured."""
    known = facts.tables[facts.entity].rows
    if known is not None:
        return float(known)
    amount = (vault.ledger.budget - vault.ledger.total) * COUNT_SHARE
    table = WeighedTable(vault=vault, table=facts.entity, scope=vault.ledger.root.sequential("number of entities"))
    return max(table.measure([], amount).total, 1.0)


def unowned_axes(facts: Facts, link: LinkFacts) -> tuple[Axis, ...]:
    """What rows without owner are counted by.

    A row whose key is NULL is an entity of its own. Rows that reference the same missing owner are one entity, and
    weigh one together: where there may be such, how many rows an entity has is counted, too.
    """
    null = whole_axis(null_key(link))
    return (null, whole_axis(entity_rows(ORPHAN_EDGES))) if facts.orphans else (null,)


def unowned_rows(facts: Facts, link: LinkFacts, table: WeighedTable, amount: Fraction) -> float:
    """About how many rows have no owner; nothing is measured for no amount."""
    if not amount:
        return 0.0
    measured = table.measure(unowned_axes(facts, link), amount)
    entities = measured.counts[1:2].reshape(-1)  # by the rows that an entity has
    clear = np.where(entities > CLEAR_UNOWNED * measured.noise.scale, entities, 0.0)
    return float(clear @ bin_means(ORPHAN_EDGES, INSIDE)) if facts.orphans else float(clear[0])
