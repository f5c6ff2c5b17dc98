"""Links of keys (the paper's PrivFanout), for every method: noisy counts per row that a key can name, or of degrees.

Counts per key slot are measured where the rows that a key can name are public: the entity table under
`replace`, and public tables. For other tables the number of rows is private, and a histogram of degrees is
measured instead.
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import Learnt, Progress, TableModel
from privbench.privacy.facts import LinkFacts
from privbench.privacy.ledger import Scope
from privbench.privacy.price import Noise
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind
from privbench.spn.links import DegreeLink, LinkModel, SlotLink

MOST_DEGREES = 256
"""Rows named more often than this are counted with those named this often."""
NULL_PART = Fraction(1, 10)
"""The part of a degree link's budget that counts NULL keys."""
CLEAR = 3
"""A count of NULL keys below this many times its noise is taken as none."""


def link_all(
    vault: Vault, learnt: Mapping[str, Learnt], epsilon: Fraction, progress: Progress
) -> dict[str, TableModel]:
    """The links of all keys, the budget of each in proportion to the rows an entity may have in its table."""
    total = sum(vault.cap(link.table) for link in vault.facts.links)
    models = {}
    for table, found in learnt.items():
        links: dict[str, LinkModel] = {}
        for link in vault.facts.links_of(table):
            progress(f"linking {link.name}", len(links), len(vault.facts.links_of(table)))
            scope = vault.ledger.root.sequential(f"key {link.name}")
            share = epsilon * vault.cap(table) / total
            targets = learnt[link.target].size.rows if link.target in learnt else 0.0
            links[link.name] = learn_link(vault, link, found, targets=targets, scope=scope, epsilon=share)
        models[table] = TableModel(network=found.network, rows=max(found.size.rows, 0.0), links=links)
    return models


def learn_link(
    vault: Vault, link: LinkFacts, learnt: Learnt, *, targets: float, scope: Scope, epsilon: Fraction
) -> LinkModel:
    """Measure how the rows of a table are spread over the (about `targets`) rows that one of its keys names."""
    if link.slots is not None:
        return _slots(vault, link, learnt, scope=scope, epsilon=epsilon)
    nulls = 0.0
    if link.nullable:
        part = epsilon * NULL_PART
        epsilon -= part
        noise = vault.noise(part, sensitivity=vault.cap(link.table), additive=True, unit=1)
        nulls = _clear_share(vault.null_keys(link, scope=scope, epsilon=part), learnt.size.rows, noise=noise.scale)
    counts = vault.degree_histogram(link, cap=_most_degrees(vault, link), scope=scope, epsilon=epsilon)
    mean = max(learnt.size.rows, 0.0) * (1 - nulls) / max(targets, 1.0)
    owned, sensitivity = link.kind is LinkKind.OWNER, vault.degree_sensitivity(link)
    noise = vault.noise(epsilon, sensitivity=sensitivity, additive=owned, unit=1)
    return DegreeLink(counts=clear_degrees(counts, noise=noise, mean=mean), null_share=nulls)


def clear_degrees(counts: NDArray[np.int64], *, noise: Noise, mean: float) -> NDArray[np.float64]:
    """The degrees that stand out of the noise; if none does, the two next to the mean.

    >>> clear_degrees(np.array([90, 40, -3, 4]), noise=Noise(gaussian=False, scale=2.0), mean=0.4).tolist()
    [90.0, 40.0, 0.0, 4.0]
    >>> clear_degrees(np.array([2, -1, 1, 0]), noise=Noise(gaussian=False, scale=9.0), mean=1.25).tolist()
    [0.0, 0.75, 0.25, 0.0]
    """
    clear = np.where(counts > noise.highest(len(counts)), counts, 0).astype(np.float64)
    if clear[1:].any():
        return clear
    low = min(int(mean), len(counts) - 1)
    clear[:] = 0
    clear[low] = 1 - min(mean - low, 1)
    clear[min(low + 1, len(counts) - 1)] += min(mean - low, 1)
    return clear


def _slots(vault: Vault, link: LinkFacts, learnt: Learnt, *, scope: Scope, epsilon: Fraction) -> SlotLink:
    counts = vault.slot_counts(link, learnt.parts, scope=scope, epsilon=epsilon)
    found = np.maximum(counts, 0).astype(np.float64)
    unclear = CLEAR * vault.noise(epsilon, sensitivity=vault.cap(link.table), additive=True, unit=1).scale
    if not link.nullable or found[:, 0].sum() < unclear:
        found[:, 0] = 0
    return SlotLink(counts=found)


def _clear_share(nulls: int, rows: float, *, noise: float) -> float:
    """The share of NULL keys; none where their count does not stand out, or all rows would not either."""
    unclear = CLEAR * noise
    return 0.0 if nulls < unclear or rows < unclear else min(nulls / rows, 1.0)


def _most_degrees(vault: Vault, link: LinkFacts) -> int:
    if link.unique:
        return 1
    return min(vault.cap(link.table), MOST_DEGREES) if link.kind is LinkKind.OWNER else MOST_DEGREES
