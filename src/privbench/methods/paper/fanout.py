"""Links of keys (PrivFanout): noisy counts per row that a key can name, or of rows by how often they are named.

Counts per key slot are measured where the rows that a key can name are public: the entity table under
`replace`, and public tables. For other tables the number of rows is private, and a histogram of degrees is
measured instead.
"""

from fractions import Fraction

import numpy as np

from privbench.methods.paper.tree import Learnt
from privbench.privacy.facts import LinkFacts
from privbench.privacy.ledger import Scope
from privbench.privacy.vault import Vault
from privbench.spn.links import DegreeCounts, LinkCounts, SlotCounts

MOST_DEGREES = 256
"""Rows named more often than this are counted with those named this often."""
NULL_PART = Fraction(1, 10)
"""The part of a degree link's budget that counts NULL keys."""


def learn_link(vault: Vault, link: LinkFacts, learnt: Learnt, *, scope: Scope, epsilon: Fraction) -> LinkCounts:
    """Measure how the rows of a table are spread over the rows that one of its keys names."""
    if link.slots is not None:
        counts = vault.slot_counts(link, learnt.parts, scope=scope, epsilon=epsilon)
        found = np.maximum(counts, 0).astype(np.float64)
        if not link.nullable:
            found[:, 0] = 0
        return SlotCounts(counts=found)
    nulls = 0.0
    if link.nullable:
        nulls = vault.null_keys(link, scope=scope, epsilon=epsilon * NULL_PART) / max(learnt.size.rows, 1.0)
        epsilon *= 1 - NULL_PART
    most = 1 if link.unique else min(vault.cap(link.table), MOST_DEGREES) if _owner(link) else MOST_DEGREES
    counts = vault.degree_histogram(link, cap=most, scope=scope, epsilon=epsilon)
    return DegreeCounts(counts=np.maximum(counts, 0).astype(np.float64), null_share=min(max(nulls, 0.0), 1.0))


def _owner(link: LinkFacts) -> bool:
    return link.kind is link.kind.OWNER
