"""How many entities there are, where that is private, and how many rows have no owner."""

from fractions import Fraction

import numpy as np

from privbench.methods.tree.fanout import fanout_shares
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Axis, entity_rows, null_key, whole_axis
from privbench.privacy.vault import Vault
from privbench.spn.fanouts import Edges, bin_means, fanout_edges

COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR_UNOWNED = 3.0
"""A number of entities without owner below this many noise scales is taken as none."""
MOST_ORPHANS = 4096
"""Missing owners with more rows than this count as having this many."""
ORPHAN_EDGES: Edges = fanout_edges(MOST_ORPHANS)[1:]
"""Bins of how many rows reference the same missing owner, from 1."""


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
    total, unclear = float(entities.sum()), CLEAR_UNOWNED * measured.noise.scale * len(entities) ** 0.5
    if total <= unclear or not facts.orphans:
        return total if total > unclear else 0.0
    edges = np.append(0, ORPHAN_EDGES)  # an entity without rows is not there
    fanouts = fanout_shares(np.append(0.0, entities), measured.noise, edges, total=total, mean=None)
    return total * float(fanouts.shares @ bin_means(edges, fanouts.exponent))
