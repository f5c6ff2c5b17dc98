"""The paper's method on one screen: cap the rows of each entity, size the tables, learn a network for each, link them.

The budget is divided as the paper does: a share for networks and a share for keys, each spread over tables by
the rows an entity may have (for keys, times their number). Caps and sizes that are not public cost a small
share up front, since the paper assumes them known.
"""

from fractions import Fraction

import numpy as np

from privbench.methods.base import Progress, TableModel
from privbench.methods.paper.fanout import learn_link
from privbench.methods.paper.plan import Task
from privbench.methods.paper.settings import PaperSettings
from privbench.methods.paper.tree import Learnt, Size, learn_network, noise_variance, pooled
from privbench.privacy.facts import Facts
from privbench.privacy.ledger import Scope
from privbench.privacy.partition import Block
from privbench.privacy.vault import Vault
from privbench.spn.links import COMPONENT, LinkCounts
from privbench.spn.nodes import Leaf

CAP_SHARE = Fraction(2, 100)
"""Share of the budget for choosing caps that the spec does not declare."""
SIZE_SHARE = Fraction(1, 100)
"""Share of the budget for the sizes of tables that are not public."""
CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)
"""Rows per entity to choose from."""
ENTITIES_PER_ROW = 1600
"""A cap may be one row higher for each 1/1600 of the entities that keep all their rows by it."""
ROWS_PER_NOISE = 8
"""A cap may be this much higher for each unit of noise, where that counts more: few entities, low caps."""


def learn(vault: Vault, settings: PaperSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    rng = np.random.default_rng(vault.entropy.words(4))
    budget = vault.ledger.budget
    sizing = vault.ledger.root.sequential("sizes")
    hidden = sum(facts.rows is None for facts in vault.facts.tables.values())
    size_share = budget * SIZE_SHARE / max(hidden, 1)
    vault.cap_rows(vault.facts.entity, 1)
    sizes = {vault.facts.entity: _size(vault, vault.facts.entity, sizing, size_share)}
    spent = hidden * size_share
    spent += _cap_all(vault, sizes[vault.facts.entity], budget * CAP_SHARE, progress)
    sizes = {t: sizes.get(t) or _size(vault, t, sizing, size_share) for t in vault.facts.tables}
    left = budget - spent
    networks = left * settings.network_share if vault.facts.links else left
    learnt = _learn_networks(vault, sizes, networks, settings, rng, progress)
    return _link_all(vault, learnt, left - networks, progress)


def _cap_all(vault: Vault, entities: Size, epsilon: Fraction, progress: Progress) -> Fraction:
    """Cap the rows per entity of every table but the entity table, owners first; returns what that cost."""
    facts = vault.facts
    owned = [t for t in facts.tables if t != facts.entity]
    unknown = [t for t in owned if facts.tables[t].cap is None and _shared_cap(facts, t) is None]
    share = epsilon / max(len(unknown), 1)
    penalties = cap_penalties(round(entities.rows), share)
    scope = vault.ledger.root.sequential("rows per entity")
    for at, table in enumerate(owned):
        progress("rows per entity", at, len(owned))
        cap, owner = facts.tables[table].cap, _shared_cap(facts, table)
        if cap is None and owner is not None:
            cap = vault.cap(owner)
        vault.cap_rows(table, cap or vault.choose_cap(table, CAPS, penalties, scope=scope, epsilon=share))
    return share * len(unknown)


def cap_penalties(entities: int, epsilon: Fraction) -> list[int]:
    """What each cap of CAPS costs in its choice with that budget: public, and in proportion to the cap.

    >>> cap_penalties(16_000, Fraction(1, 10))[:3], cap_penalties(0, Fraction(1, 100))[:3]
    ([10, 20, 30], [12, 25, 37])
    """
    per_row = max(Fraction(entities, ENTITIES_PER_ROW), 1 / (ROWS_PER_NOISE * epsilon))
    return [int(cap * per_row) for cap in CAPS]


def _shared_cap(facts: Facts, table: str) -> str | None:
    """The owner table of a table with at most one row for each of the owner's: their caps are the same."""
    link = facts.owner_link(table)
    return link.target if link is not None and link.unique else facts.tables[table].lookup_of


def _size(vault: Vault, table: str, scope: Scope, epsilon: Fraction) -> Size:
    """The size of a table, measured unless it is public."""
    known = vault.facts.tables[table].rows
    if known is not None:
        return Size(rows=known, variance=1e-9)
    rows = vault.size(vault.whole(table, scope), epsilon=epsilon)
    return Size(rows=max(rows, 0), variance=noise_variance(vault.cap(table), epsilon))


def _learn_networks(
    vault: Vault,
    sizes: dict[str, Size],
    epsilon: Fraction,
    settings: PaperSettings,
    rng: np.random.Generator,
    progress: Progress,
) -> dict[str, Learnt]:
    """A network for each table, its budget in proportion to the rows an entity may have in it."""
    weights = {t: vault.cap(t) for t, facts in vault.facts.tables.items() if facts.columns}
    learnt = {}
    for table, facts in vault.facts.tables.items():
        block = vault.whole(table, vault.ledger.root.sequential(f"network of {table}"))
        if not facts.columns:
            learnt[table] = _empty(block, sizes[table])
            continue
        task = Task(
            block=block,
            columns=tuple(facts.columns),
            rows=round(sizes[table].rows),
            epsilon=epsilon * weights[table] / sum(weights.values()),
        )
        found = learn_network(vault, task, settings, rng=rng, progress=progress)
        learnt[table] = Learnt(network=found.network, size=pooled([sizes[table], found.size]), parts=found.parts)
    return learnt


def _empty(block: Block, size: Size) -> Learnt:
    """A table whose columns are all keys."""
    return Learnt(network=Leaf(column=COMPONENT, counts=np.ones(1)), size=size, parts=(block,))


def _link_all(vault: Vault, learnt: dict[str, Learnt], epsilon: Fraction, progress: Progress) -> dict[str, TableModel]:
    """The links of all keys, the budget of each in proportion to the rows an entity may have in its table."""
    total = sum(vault.cap(link.table) for link in vault.facts.links)
    models = {}
    for table, found in learnt.items():
        links: dict[str, LinkCounts] = {}
        for link in vault.facts.links_of(table):
            progress(f"linking {link.name}", len(links), len(vault.facts.links_of(table)))
            scope = vault.ledger.root.sequential(f"key {link.name}")
            share = epsilon * vault.cap(table) / total
            targets = learnt[link.target].size.rows if link.target in learnt else 0.0
            links[link.name] = learn_link(vault, link, found, targets=targets, scope=scope, epsilon=share)
        models[table] = TableModel(network=found.network, rows=max(found.size.rows, 0.0), links=links)
    return models
