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
from privbench.privacy.vault import Block, Vault
from privbench.spn.links import COMPONENT, LinkCounts
from privbench.spn.nodes import Leaf

CAP_SHARE = Fraction(2, 100)
"""Share of the budget for choosing caps that the spec does not declare."""
SIZE_SHARE = Fraction(1, 100)
"""Share of the budget for the sizes of tables that are not public."""
CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)
"""Rows per entity to choose from."""
CUT_ENTITIES = Fraction(1, 100)
"""About this share of the entities may lose rows to a cap."""


def learn(vault: Vault, settings: PaperSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    rng = np.random.default_rng(vault.entropy.words(4))
    left = vault.ledger.budget
    left -= _cap_all(vault, vault.ledger.budget * CAP_SHARE, progress)
    sizes, spent = _size_all(vault, vault.ledger.budget * SIZE_SHARE)
    left -= spent
    networks = left * settings.network_share if vault.facts.links else left
    learnt = _learn_networks(vault, sizes, networks, settings, rng, progress)
    return _link_all(vault, learnt, left - networks, progress)


def _cap_all(vault: Vault, epsilon: Fraction, progress: Progress) -> Fraction:
    """Cap the rows per entity of every table, owners first; returns what that cost."""
    open_tables = [t for t in vault.facts.tables if _known_cap(vault, t) is None]
    share = epsilon / max(len(open_tables), 1)
    for at, table in enumerate(vault.facts.tables):
        progress("rows per entity", at, len(vault.facts.tables))
        cap = _known_cap(vault, table)
        if cap is None:
            entities = vault.facts.tables[vault.facts.entity].rows or 0
            cap = vault.choose_cap(table, CAPS, allowed=int(entities * CUT_ENTITIES), epsilon=share)
        vault.cap_rows(table, cap)
    return share * len(open_tables)


def _known_cap(vault: Vault, table: str) -> int | None:
    """One row for the entity table, what the spec declares, or an owner's own cap where each owner has one row."""
    facts, link = vault.facts.tables[table], vault.facts.owner_link(table)
    if table == vault.facts.entity:
        return 1
    if facts.cap is not None:
        return facts.cap
    if link is not None and link.unique:
        return _known_cap(vault, link.target)
    return None


def _size_all(vault: Vault, epsilon: Fraction) -> tuple[dict[str, Size], Fraction]:
    """The sizes of all tables, measured where they are not public; and what that cost."""
    hidden = [t for t, facts in vault.facts.tables.items() if facts.rows is None]
    share = epsilon / max(len(hidden), 1)
    scope = vault.ledger.root.sequential("sizes")
    sizes = {}
    for table, facts in vault.facts.tables.items():
        if facts.rows is not None:
            sizes[table] = Size(rows=facts.rows, variance=1e-9)
            continue
        rows = vault.size(vault.whole(table, scope), epsilon=share)
        sizes[table] = Size(rows=max(rows, 0), variance=noise_variance(vault.cap(table), share))
    return sizes, share * len(hidden)


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
            links[link.name] = learn_link(vault, link, found, scope=scope, epsilon=share)
        models[table] = TableModel(network=found.network, rows=max(found.size.rows, 0.0), links=links)
    return models
