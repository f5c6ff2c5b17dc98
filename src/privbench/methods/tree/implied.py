"""What released tables of method `tree` must have cost: a query for each column, pair and count of unowned rows.

The features of a table follow from public facts, so that the column of a network tells which feature was counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from privbench.methods.method import Implied, TableModel
from privbench.methods.tree.columns import first_features, given_features, own_features
from privbench.methods.tree.entities import unowned_queries
from privbench.methods.tree.network import MOST_CONTEXTS
from privbench.methods.tree.settings import TreeSettings
from privbench.privacy.facts import Facts
from privbench.privacy.features import entity_rows
from privbench.privacy.queries import Counts, Histogram, PairChoice, histogram_json
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree, number_of_bins
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import size_edges
from privbench.spn.feature_names import COMPONENT, STRATUM
from privbench.spn.nodes import Leaf, Node, Sum, given_columns, walk

Described = Mapping[str, Any]


def implied(facts: Facts, tables: Mapping[str, TableModel], _settings: TreeSettings) -> Implied:
    """What released tables must have cost: their histograms, and a choice for each pair of columns."""
    foreign = tuple(name for name, table in tables.items() if _is_foreign(table))
    if foreign:
        return Implied(queries=(), foreign=foreign)
    queries: list[Described] = []
    unknown: list[str] = []
    kinds: Counter[tuple[str, str]] = Counter()
    own = {name: own_features(facts, name) for name in tables}
    for name, table in tables.items():
        features = [*own[name], *given_features(facts, name, own), *first_features(facts, name, own[name])]
        described = {feature.name: feature.to_json() for feature in (*features, entity_rows(size_edges()))}
        if not _asked(table) <= set(described) | {COMPONENT, *_constant(table)}:
            unknown.append(name)
            continue
        queries += _table_queries(facts, name, table, described)
        kinds[PairChoice.kind, name] += sum(
            parent != STRATUM
            for node in walk(table.network)
            if isinstance(node, CliqueTree)
            for column in node.columns
            for parent in column.parents
        )
    return Implied(queries=tuple(queries), kinds=kinds, foreign=tuple(unknown))


def _asked(table: TableModel) -> set[str]:
    """The columns of a network, and those that it is conditioned on."""
    return set(table.network.sizes) | {given.column for given in given_columns(table.network)}


def _constant(table: TableModel) -> set[str]:
    return {node.column for node in walk(table.network) if isinstance(node, Leaf) and node.constant}


def _is_foreign(table: TableModel) -> bool:
    counted = any(isinstance(link, SlotLink | DegreeLink) for link in table.links.values())
    return counted or any(_is_foreign_node(node) for node in walk(table.network))


def _is_foreign_node(node: Node) -> bool:
    if isinstance(node, Leaf):
        return node.column == COMPONENT and not node.constant
    many = isinstance(node, CliqueTree) and len(node.contexts) > MOST_CONTEXTS
    return many or isinstance(node, Sum)


def _table_queries(
    facts: Facts, name: str, table: TableModel, described: Mapping[str, Described]
) -> Iterator[Described]:
    if name == facts.entity and facts.neighbours is Neighbours.ADD_REMOVE:
        yield histogram_json(name, Counts.WEIGHTS)
    for node in walk(table.network):
        if isinstance(node, Leaf) and not node.constant:
            yield histogram_json(name, Counts.WEIGHTS, [(len(node.counts), described[node.column])])
        if isinstance(node, CliqueTree):
            yield from _clique_queries(name, node, described)
    for link in facts.links_of(name):
        released = table.links[link.name]
        if isinstance(released, FanoutLink) and released.unowned:
            yield from (Histogram(table=name, axes=axes).to_json() for axes in unowned_queries(facts, link))


def _clique_queries(name: str, tree: CliqueTree, described: Mapping[str, Described]) -> Iterator[Described]:
    bins = {given.column: number_of_bins(given) for given in tree.given}
    bins |= {column.column: number_of_bins(column) for column in tree.columns}
    for column in tree.columns:
        strata = [(bins[STRATUM], described[STRATUM])] if STRATUM in column.parents else []
        single = len(column.counts), described[column.column]
        yield histogram_json(name, Counts.WEIGHTS, [*strata, single])
        for parent in column.parents:
            if parent != STRATUM:
                pair = (bins[parent], described[parent]), (bins[column.column], described[column.column])
                yield histogram_json(name, Counts.WEIGHTS, pair)
