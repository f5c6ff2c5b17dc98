"""The paper's method: what all methods that count rows share (`capped.py`), with a network per table by PrivSPN."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privbench.methods.capped import Learnt, Size, implied_by_counts, learn_database
from privbench.methods.method import Implied, Method, Progress, TableModel
from privbench.methods.paper.network import learn_network
from privbench.methods.paper.plan import Task, halves_in_order
from privbench.methods.paper.rowsplit import FEWEST_ROUNDS
from privbench.methods.paper.settings import PaperSettings, paper_settings
from privbench.privacy.blocks import Block
from privbench.privacy.facts import Facts
from privbench.privacy.features import Cluster
from privbench.privacy.queries import Counts, SplitChoice, histogram_json
from privbench.privacy.vault import Vault
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Product, Sum, walk


def learn(vault: Vault, facts: Facts, settings: PaperSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    rng = np.random.default_rng(vault.coins(4))

    def learn_table(block: Block, size: Size, budget: Fraction) -> Learnt:
        columns = tuple(facts.tables[block.table].columns)
        task = Task(block=block, columns=columns, rows=round(size.rows), budget=budget)
        return learn_network(vault, facts, task, settings, rng=rng, progress=progress)

    return learn_database(vault, facts, learn_table, network_share=settings.network_share, progress=progress)


def implied(facts: Facts, tables: Mapping[str, TableModel], settings: PaperSettings) -> Implied:
    """What released tables must have cost: their counts, a choice for each split of columns, clusters for each sum."""
    counts = implied_by_counts(facts, tables)
    queries, kinds, partitions = list(counts.queries), Counter[tuple[str, str]](), Counter[str]()
    for name, table in tables.items():
        for node in walk(table.network):
            columns = [c for c in facts.tables[name].columns if c in node.sizes]
            if isinstance(node, Product) and _was_chosen(node, columns):
                kinds[SplitChoice.kind, name] += 1
            if isinstance(node, Sum):
                kinds["dependence", name] += 1
                partitions[name] += 1
                if settings.as_published:
                    kinds["published row split", name] += 1
                else:
                    sides = {"kind": Cluster.kind, "columns": columns}
                    queries += [histogram_json(name, Counts.ROWS, [(2, sides)])] * FEWEST_ROUNDS
    return replace(counts, queries=tuple(queries), kinds=kinds, partitions=partitions)


def _was_chosen(node: Product, columns: list[str]) -> bool:
    """Whether a split of columns is another than the one that is taken without a look at the data."""
    if len(columns) < 3:
        return False
    halves = {frozenset(half) for half in halves_in_order(columns)}
    return {frozenset(child.sizes) - {COMPONENT} for child in node.children} != halves


PAPER = Method(name="paper", read_settings=paper_settings, learn=learn, implied=implied, parallel_composition=True)
