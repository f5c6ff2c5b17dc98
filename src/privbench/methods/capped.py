"""Methods that count rows up to a cap: cap, size, learn a network per table, link. Shared by `paper` and `independent`.

The budget is divided as the paper does: a small share for caps and sizes that are not public, a share for networks and
a share for keys, each spread over tables by the rows that an entity may have (for keys, times their number). Methods
differ in how they learn one table. Links are the paper's PrivFanout: counts per key slot where the rows that a key can
reference are public (the entity table under `replace`, and public tables), else a histogram of degrees.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import Implied, Progress, TableModel, range_of
from privbench.privacy import features
from privbench.privacy.blocks import Block
from privbench.privacy.calibrate import Noise, choice_noise
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import Axis, Fanout, Feature, InDegree, KeySlot, NullKey, Own, WhichBlock, whole_axis
from privbench.privacy.ledger import Scope
from privbench.privacy.queries import CapChoice, Counts, Histogram, histogram_json
from privbench.privacy.vault import Vault
from privbench.schema.unit import LinkKind
from privbench.spn.clique import CliqueTree
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.feature_names import COMPONENT
from privbench.spn.link import LinkModel
from privbench.spn.nodes import Leaf, Node, walk

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
MOST_DEGREES = 256
"""Rows referenced more often than this are counted with those referenced this often."""
NULL_PART = Fraction(1, 10)
"""The part of a degree link's budget that counts NULL keys."""
CLEAR_NULLS = 3
"""A count of NULL keys below this many times its noise is taken as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """An estimate of a number of rows and its variance."""

    rows: float
    variance: float

    @property
    def error(self) -> float:
        """The relative standard error; rows above the cap of their entity are not counted."""
        return math.sqrt(self.variance) / max(self.rows, 1.0)


def pooled(sizes: list[Size]) -> Size:
    """The mean of several estimates of one size, weighted by their precision.

    >>> pooled([Size(rows=10, variance=1), Size(rows=20, variance=4)]).rows
    12.0
    """
    precision = sum(1 / s.variance for s in sizes)
    return Size(rows=sum(s.rows / s.variance for s in sizes) / precision, variance=1 / precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A network, the estimate of its rows, and the blocks of its parts (the rows behind each COMPONENT code)."""

    network: Node
    size: Size
    parts: tuple[Block, ...]


TableLearner = Callable[[Block, Size, Fraction], Learnt]
"""Learn a network of all columns of a table: its whole block, its size as measured, and the budget to spend."""


def learn_database(
    vault: Vault, facts: Facts, learn_table: TableLearner, *, network_share: Fraction, progress: Progress
) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    sizes, left = cap_and_size(vault, facts, progress)
    networks = left * network_share if facts.links else left
    learnt = _learn_networks(vault, facts, sizes, networks, learn_table)
    return link_all(vault, facts, learnt, left - networks, progress)


def row_histogram(block: Block, *axes: Axis) -> Histogram:
    """Rows of a block by the bins of axes."""
    return Histogram(table=block.table, axes=axes, counts=Counts.ROWS, block=block)


def column_histogram(facts: Facts, block: Block, column: str) -> Histogram:
    """Rows of a block by the codes of a column."""
    return row_histogram(block, whole_axis(features.own(column, facts.tables[block.table].columns[column])))


def _learn_networks(
    vault: Vault, facts: Facts, sizes: Mapping[str, Size], budget: Fraction, learn_table: TableLearner
) -> dict[str, Learnt]:
    """A network for each table, its budget in proportion to the rows an entity may have in it."""
    weights = {name: vault.cap(name) for name, table in facts.tables.items() if table.columns}
    learnt = {}
    for name, table in facts.tables.items():
        block = vault.whole(name, vault.ledger.root.sequential(f"network of {name}"))
        if not table.columns:
            learnt[name] = _without_columns(block, sizes[name])
            continue
        table_learnt = learn_table(block, sizes[name], budget * weights[name] / sum(weights.values()))
        learnt[name] = Learnt(
            network=table_learnt.network, size=pooled([sizes[name], table_learnt.size]), parts=table_learnt.parts
        )
    return learnt


def _without_columns(block: Block, size: Size) -> Learnt:
    """A table whose columns are all keys."""
    return Learnt(network=Leaf(column=COMPONENT, counts=np.ones(1)), size=size, parts=(block,))


# -- caps and sizes ----------------------------------------------------------------------------------------------------


def cap_and_size(vault: Vault, facts: Facts, progress: Progress) -> tuple[dict[str, Size], Fraction]:
    """Cap the rows of each entity and size the tables; returns the sizes and the budget that is left."""
    budget = vault.ledger.budget - vault.ledger.total
    sizing = vault.ledger.root.sequential("sizes")
    hidden = sum(table.rows is None for table in facts.tables.values())
    share = budget * SIZE_SHARE / max(hidden, 1)
    vault.cap_rows(facts.entity, 1, None)
    entities = _size(vault, facts, facts.entity, sizing, share)
    spent = hidden * share + _cap_all(vault, facts, entities, budget * CAP_SHARE, progress)
    sizes = {t: entities if t == facts.entity else _size(vault, facts, t, sizing, share) for t in facts.tables}
    return sizes, budget - spent


def _cap_all(vault: Vault, facts: Facts, entities: Size, budget: Fraction, progress: Progress) -> Fraction:
    """Cap the rows per entity of every table but the entity table, owners first; returns what that cost."""
    owned = [t for t in facts.tables if t != facts.entity]
    unknown = [t for t in owned if facts.tables[t].cap is None and _shared_cap(facts, t) is None]
    share = budget / max(len(unknown), 1)
    scope = vault.ledger.root.sequential("rows per entity")
    for at, table in enumerate(owned):
        progress("rows per entity", at, len(owned))
        cap, owner = facts.tables[table].cap, _shared_cap(facts, table)
        if cap is None:
            cap = vault.cap(owner) if owner else _choose_cap(vault, facts, table, entities, share, scope)
        vault.cap_rows(table, cap, facts.owner_link(table), orphans=facts.orphans)
    return share * len(unknown)


def _choose_cap(vault: Vault, facts: Facts, table: str, entities: Size, amount: Fraction, scope: Scope) -> int:
    noise = choice_noise(vault.privacy_measure, amount, sensitivity=1, monotone=True, unit=1)
    question = CapChoice(
        table=table,
        candidates=CAPS,
        penalties=tuple(cap_penalties(round(entities.rows), noise)),
        owner=facts.owner_link(table),
        orphans=facts.orphans,
    )
    return CAPS[vault.choose(question, amount, scope)]


def cap_penalties(entities: int, noise: float) -> list[int]:
    """What each cap of CAPS costs in its choice with that noise: public, and in proportion to the cap.

    >>> cap_penalties(16_000, 10.0)[:3], cap_penalties(0, 100.0)[:3]
    ([10, 20, 30], [12, 25, 37])
    """
    per_row = max(entities / ENTITIES_PER_ROW, noise / ROWS_PER_NOISE)
    return [int(cap * per_row) for cap in CAPS]


def _shared_cap(facts: Facts, table: str) -> str | None:
    """The owner table of a table with at most one row for each of the owner's: their caps are the same."""
    link = facts.owner_link(table)
    return link.target if link is not None and link.unique else facts.tables[table].lookup_of


def _size(vault: Vault, facts: Facts, table: str, scope: Scope, amount: Fraction) -> Size:
    """The size of a table, measured unless it is public."""
    known = facts.tables[table].rows
    if known is not None:
        return Size(rows=known, variance=1e-9)
    measured = vault.measure(row_histogram(vault.whole(table, scope)), amount)
    return Size(rows=max(measured.total, 0), variance=measured.noise.variance)


# -- links -------------------------------------------------------------------------------------------------------------


def link_all(
    vault: Vault, facts: Facts, learnt: Mapping[str, Learnt], budget: Fraction, progress: Progress
) -> dict[str, TableModel]:
    """The links of all keys, the budget of each in proportion to the rows an entity may have in its table."""
    total = sum(vault.cap(link.table) for link in facts.links)
    models = {}
    for table, table_learnt in learnt.items():
        links: dict[str, LinkModel] = {}
        for link in facts.links_of(table):
            progress(f"linking {link.name}", len(links), len(facts.links_of(table)))
            scope = vault.ledger.root.sequential(f"key {link.name}")
            share = budget * vault.cap(table) / total
            targets = learnt[link.target].size.rows if link.target in learnt else 0.0
            links[link.name] = learn_link(vault, facts, link, table_learnt, targets=targets, scope=scope, amount=share)
        rows, known = max(table_learnt.size.rows, 0.0), facts.tables[table].rows is not None
        error = 0.0 if known else table_learnt.size.error
        low, high = range_of(rows, 0.0 if known else math.sqrt(table_learnt.size.variance))
        models[table] = TableModel(
            network=table_learnt.network, rows=rows, rows_error=error, rows_low=low, rows_high=high, links=links
        )
    return models


def learn_link(
    vault: Vault, facts: Facts, link: LinkFacts, learnt: Learnt, *, targets: float, scope: Scope, amount: Fraction
) -> LinkModel:
    """Measure how the rows of a table are spread over the (about `targets`) rows that one of its keys references."""
    if link.slots is not None:
        return _slots(vault, facts, link, learnt, scope=scope, amount=amount)
    nulls = 0.0
    if link.nullable:
        part = amount * NULL_PART
        amount -= part
        only_null = Axis(features.null_key(link), np.array([-1, 0]))
        measured = vault.measure(row_histogram(vault.whole(link.table, scope), only_null), part)
        nulls = _clear_share(measured.total, learnt.size.rows, noise=measured.noise.scale)
    degrees = row_histogram(vault.whole(link.target, scope), whole_axis(_degree(vault, link)))
    measured = vault.measure(degrees, amount)
    mean = max(learnt.size.rows, 0.0) * (1 - nulls) / max(targets, 1.0)
    return DegreeLink(counts=clear_degrees(measured.values, noise=measured.noise, mean=mean), null_share=nulls)


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


def _slots(vault: Vault, facts: Facts, link: LinkFacts, learnt: Learnt, *, scope: Scope, amount: Fraction) -> SlotLink:
    shuffled = link.target == facts.entity and not facts.public_ids
    axes = whole_axis(features.part(learnt.parts)), whole_axis(features.key_slot(link, shuffled=shuffled))
    measured = vault.measure(row_histogram(vault.whole(link.table, scope), *axes), amount)
    counts = np.maximum(measured.values, 0).astype(np.float64)
    if not link.nullable or counts[:, 0].sum() < CLEAR_NULLS * measured.noise.scale:
        counts[:, 0] = 0
    return SlotLink(counts=_scaled_slots(counts, learnt.size.rows))


def _scaled_slots(counts: NDArray[np.float64], rows: float) -> NDArray[np.float64]:
    """Counts whose slots hold what NULL keys leave of all rows: noise below 0 was cut off, which makes slots too heavy.

    >>> _scaled_slots(np.array([[6.0, 3.0, 9.0]]), 10.0).tolist()
    [[6.0, 1.0, 3.0]]
    """
    nulls, held = counts[:, 0].sum(), counts[:, 1:].sum()
    if not nulls or not held:
        return counts
    scaled = counts.copy()
    scaled[:, 1:] *= max(rows - nulls, 0.0) / held
    return scaled


def _clear_share(nulls: float, rows: float, *, noise: float) -> float:
    """The share of NULL keys; none where their count does not stand out, or all rows would not either."""
    unclear = CLEAR_NULLS * noise
    return 0.0 if nulls < unclear or rows < unclear else min(nulls / rows, 1.0)


def _degree(vault: Vault, link: LinkFacts) -> Feature:
    """How many keys reference a row, up to a limit."""
    cap = vault.cap(link.table)
    if link.kind is LinkKind.OWNER:
        return features.fanout(link, np.arange((1 if link.unique else min(cap, MOST_DEGREES)) + 2), cap=cap)
    return features.in_degree(link, np.arange((1 if link.unique else MOST_DEGREES) + 2), cap=cap)


# -- what a released model must have cost ------------------------------------------------------------------------------


def implied_by_counts(facts: Facts, tables: Mapping[str, TableModel]) -> Implied:
    """The noisy counts that networks and links of released tables are made of."""
    foreign = tuple(name for name, table in tables.items() if _is_foreign(table))
    if foreign:
        return Implied(queries=(), foreign=foreign)
    return Implied(queries=tuple(q for name, table in tables.items() for q in _implied_counts(facts, name, table)))


def _is_foreign(table: TableModel) -> bool:
    """Whether a table holds what methods that count rows never make: other links, clique trees, weights on parts."""
    parts = [n for n in walk(table.network) if isinstance(n, Leaf) and n.column == COMPONENT]
    if any(sorted(part.counts)[:-1] != [0.0] * (len(part.counts) - 1) for part in parts):
        return True
    counted = all(isinstance(link, SlotLink | DegreeLink) for link in table.links.values())
    return not counted or any(isinstance(node, CliqueTree) for node in walk(table.network))


def _implied_counts(facts: Facts, name: str, table: TableModel) -> Iterator[Mapping[str, Any]]:
    if facts.tables[name].rows is None:
        yield histogram_json(name, Counts.ROWS)
    for node in walk(table.network):
        if isinstance(node, Leaf) and node.column != COMPONENT and not node.constant:
            yield histogram_json(name, Counts.ROWS, [(len(node.counts), {"kind": Own.kind, "column": node.column})])
    for link in facts.links_of(name):
        counts, described = table.links[link.name], {"link": link.to_json()}
        if isinstance(counts, SlotLink):
            parts, slots = counts.counts.shape
            yield histogram_json(
                name, Counts.ROWS, [(parts, {"kind": WhichBlock.kind}), (slots, {"kind": KeySlot.kind, **described})]
            )
        elif isinstance(counts, DegreeLink):
            kind = Fanout.kind if link.kind is LinkKind.OWNER else InDegree.kind
            yield histogram_json(link.target, Counts.ROWS, [(len(counts.counts), {"kind": kind, **described})])
            if link.nullable:
                yield histogram_json(name, Counts.ROWS, [(1, {"kind": NullKey.kind, **described})])
