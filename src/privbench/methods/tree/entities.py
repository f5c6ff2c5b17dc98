"""How many entities there are, where that is private, and how many rows have no owner."""

import math
from fractions import Fraction

import numpy as np

from privbench.methods.tree.fanout import fanout_shares
from privbench.methods.tree.sizes import Size
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Axis, entity_rows, null_key, whole_axis
from privbench.privacy.vault import Vault
from privbench.spn.fanouts import Edges, bin_means

COUNT_SCOPE = "number of entities"
"""How the ledger calls it."""
COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR_UNOWNED = 3.0
"""A number of entities without owner below this many noise scales is taken as none."""
MOST_UNOWNED = 0.99
"""The largest share of rows without owner that their number is worked out from."""
ORPHAN_EDGES: Edges = np.array([1, 2, 3, 5, 9, 17, 65, 257, 1025, 4097])
"""Bins of how many rows reference the same missing owner; more than the last are counted with it."""


def count_entities(vault: Vault, facts: Facts) -> Size:
    """The number of entities: public under `replace`, else measured."""
    known = facts.tables[facts.entity].rows
    if known is not None:
        return Size(float(known), 0.0)
    amount = (vault.ledger.budget - vault.ledger.total) * COUNT_SHARE
    table = WeighedTable(vault=vault, table=facts.entity, scope=vault.ledger.root.sequential(COUNT_SCOPE))
    measured = table.measure([], amount)
    entities = max(measured.total, 1.0)
    return Size(entities, math.sqrt(measured.noise.variance) / entities)


def unowned_queries(facts: Facts, link: LinkFacts) -> list[tuple[Axis, ...]]:
    """What rows without owner are counted by.

    A row whose key is NULL is an entity of its own. Rows that reference the same missing owner are one entity, and
    weigh one together: where there may be such, it is counted as well how many rows these entities have. Where implied
    keys say whose such rows are, they are a share of their entity's rows, and the share is enough.
    """
    null = whole_axis(null_key(link))
    several = facts.orphans and not link.shared
    return [(null,), (null, whole_axis(entity_rows(ORPHAN_EDGES)))] if several else [(null,)]


def unowned_rows(facts: Facts, link: LinkFacts, table: WeighedTable, amount: Fraction, *, owned: float) -> Size:
    """About how many rows have no owner, where `owned` rows have one; nothing is measured for no amount."""
    if not amount:
        return Size(0.0, 0.0)
    queries = unowned_queries(facts, link)
    counted, *by_rows = table.measure_all([(axes, amount / len(queries)) for axes in queries])
    entities = float(counted.counts[1])
    if entities <= CLEAR_UNOWNED * counted.noise.scale:
        return Size(0.0, 0.0)
    error = math.sqrt(counted.noise.variance) / entities
    if link.shared:
        share = min(entities / max(float(counted.counts.sum()), entities), MOST_UNOWNED)
        return Size(max(owned * share / (1 - share), entities), error)
    if not by_rows:
        return Size(entities, error)
    edges = np.append(0, ORPHAN_EDGES)  # an entity without rows is not there
    noisy = np.append(0.0, by_rows[0].counts[1])
    fanouts = fanout_shares(noisy, by_rows[0].noise, edges, total=entities, mean=None)
    return Size(entities * max(float(fanouts.shares @ bin_means(edges, fanouts.exponent)), 1.0), error)
