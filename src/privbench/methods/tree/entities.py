"""How many entities there are, where that is private, and how many rows have no owner."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privbench.methods.method import DEVIATIONS
from privbench.methods.tree.fanout import fanout_shares
from privbench.methods.tree.size_laws import ClippedCount, NoisyBins, laws_of_bins, within
from privbench.methods.tree.sizes import NoisyFanouts, Size, size_error, sized, together
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Axis, entity_rows, null_key, whole_axis
from privbench.privacy.vault import Measured, Vault
from privbench.spn.fanouts import Edges, bin_means

COUNT_SCOPE = "number of entities"
"""How the ledger calls it."""
COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR_UNOWNED = 3.0
"""A number of entities without owner below this many noise scales is taken as none."""
MOST_UNOWNED = 0.99
"""The largest share of rows without owner that their number is worked out from."""
SHARED_ROWS = 64
"""At most up to so many rows entities count in proportion where rows without owner are a share of theirs."""
SHARED_NOISE = 0.025
"""Up to fewer where the noise of this share of all rows would be passed."""
ORPHAN_EDGES: Edges = np.array([1, 2, 3, 5, 9, 17, 65, 257, 1025, 4097])
"""Bins of how many rows reference the same missing owner; more than the last are counted with it."""


NONE = sized(0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unowned:
    """The rows of a table without owner: so many, of so many entities, or a share of all rows."""

    size: Size = NONE
    entities: float = 0.0
    share: float = 0.0
    """Where they are rows of entities that have others: then their number follows from that of all rows."""
    error: float = 0.0
    """The standard deviation of the share."""

    def beside(self, owned: float) -> float:
        """How many there are beside so many rows that have an owner."""
        return owned * self.share / (1 - self.share) if self.share else self.size.rows

    def owned_of(self, rows: float) -> float:
        """How many of so many rows have an owner."""
        return max(rows * (1 - self.share) - self.size.rows, 0.0)

    def together_with(self, owned: Size) -> Size:
        """The size of the whole table, from that of the rows that have an owner."""
        return owned.times(1 / (1 - self.share)) if self.share else together(owned, self.size)

    def left_out(self, count: ClippedCount) -> ClippedCount:
        """A clipped count of all rows as one of those that have an owner."""
        if self.share:
            return replace(count, total=count.total * (1 - self.share), variance=(count.total * self.error) ** 2)
        each = min(self.size.rows / max(self.entities, 1.0), count.limit) / count.limit
        return replace(
            count, total=count.total - each * self.entities, variance=(each * self.entities * self.size.error) ** 2
        )


def count_entities(vault: Vault, facts: Facts) -> Size:
    """The number of entities: public under `replace`, else measured."""
    known = facts.tables[facts.entity].rows
    if known is not None:
        return sized(float(known), 0.0)
    amount = (vault.ledger.budget - vault.ledger.total) * COUNT_SHARE
    table = WeighedTable(vault=vault, table=facts.entity, scope=vault.ledger.root.sequential(COUNT_SCOPE))
    measured = table.measure([], amount)
    entities = max(measured.total, 1.0)
    return sized(entities, math.sqrt(measured.noise.variance) / entities)


def unowned_queries(facts: Facts, link: LinkFacts) -> list[tuple[Axis, ...]]:
    """What rows without owner are counted by.

    A row whose key is NULL is an entity of its own. Rows that reference the same missing owner are one entity, and
    weigh one together: where there may be such, it is counted as well how many rows these entities have. Where implied
    keys say whose such rows are, they are a share of their entity's rows: there entities count in proportion to these.
    """
    null = whole_axis(null_key(link))
    several = facts.orphans and not link.shared
    return [(null,), (null, whole_axis(entity_rows(ORPHAN_EDGES)))] if several else [(null,)]


def unowned_rows(facts: Facts, link: LinkFacts, table: WeighedTable, amount: Fraction, *, owned: float) -> Unowned:
    """About how many rows have no owner, where about `owned` rows have one; nothing is measured for no amount."""
    if not amount:
        return Unowned()
    queries = unowned_queries(facts, link)
    if link.shared:
        table = replace(table, full_rows=_shared_rows(owned, math.sqrt(table.noise([], amount).variance)))
    counted, *by_rows = table.measure_all([(axes, amount / len(queries)) for axes in queries])
    entities, deviation = float(counted.counts[1]), math.sqrt(counted.noise.variance)
    clear = entities > CLEAR_UNOWNED * counted.noise.scale
    if link.shared:
        total = max(float(counted.counts.sum()), entities, 1.0)
        return Unowned(share=min(entities / total, MOST_UNOWNED), error=deviation / total) if clear else Unowned()
    if by_rows:
        return _of_missing_owners(entities, deviation, by_rows[0], clear=clear)
    if not clear:
        return Unowned(size=Size(0.0, 0.0, 0.0, max(entities + DEVIATIONS * deviation, 0.0)))
    return Unowned(size=sized(entities, deviation / entities), entities=entities)


def _shared_rows(rows: float, deviation: float) -> int:
    """Up to how many rows entities count in proportion: as many as noise of that deviation, in entities, allows.

    >>> _shared_rows(30_000, 8.0), _shared_rows(1e9, 8.0), _shared_rows(10, 8.0)
    (64, 64, 1)
    """
    most = SHARED_NOISE * rows / deviation
    return min(2 ** int(math.log2(most)), SHARED_ROWS) if most >= 1 else 1


def _of_missing_owners(entities: float, deviation: float, by_rows: Measured, *, clear: bool) -> Unowned:
    """The rows of so many entities, of which several may have the same missing owner."""
    edges = np.append(0, ORPHAN_EDGES)  # an entity without rows is not there
    noisy = np.append(0.0, by_rows.counts[1])
    most = max(entities, deviation)
    fanouts = fanout_shares(noisy, by_rows.noise, edges, total=most, mean=None)
    bins = NoisyBins(edges=edges, counts=noisy, noise=by_rows.noise, clear=fanouts.clear)
    laws = laws_of_bins(bins, most, fanouts.exponent).size()
    if not clear:
        return Unowned(size=Size(0.0, 0.0, 0.0, laws.high))
    means = bin_means(edges, fanouts.exponent)
    rows = entities * max(float(fanouts.shares @ means), 1.0)
    shares = NoisyFanouts(shares=fanouts.shares, means=means, deviation=math.sqrt(by_rows.noise.variance) / entities)
    size = sized(rows, size_error(shares, owners=deviation / entities))
    return Unowned(size=within(size, laws), entities=entities)
