"""What released tables of method `tree` must have cost: a query for each column, pair and count of unowned rows.

The features of a table follow from public facts, so that the column of a network tells which feature was counted.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.methods.method import Implied, TableModel
from privbench.methods.tree.columns import first_features, given_features, own_features
from privbench.methods.tree.entities import unowned_queries
from privbench.methods.tree.hub import is_reference
from privbench.methods.tree.network import MOST_CONTEXTS
from privbench.methods.tree.plan import may_lack_owner
from privbench.methods.tree.settings import TreeSettings
from privbench.methods.tree.weighed import key_holders
from privbench.methods.tree.zeros import possible_places, says_only_zeros
from privbench.privacy.facts import Facts
from privbench.privacy.features import Fanout, Feature, InDegree, entity_rows
from privbench.privacy.queries import Counts, Histogram, PairChoice, histogram_json
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree, number_of_bins
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.fanouts import size_edges
from privbench.spn.feature_names import ACTIVITY, COMPONENT, STRATUM
from privbench.spn.nodes import Leaf, Node, Sum, given_columns, walk

Described = Mapping[str, Any]
Pair = tuple[str, str]
"""A parent and its column."""


def implied(facts: Facts, tables: Mapping[str, TableModel], _settings: TreeSettings) -> Implied:
    """What released tables must have cost: their histograms, and a choice for each pair that the spec does not name."""
    foreign = tuple(name for name, table in tables.items() if _is_foreign(table))
    if foreign:
        return Implied(queries=(), foreign=foreign)
    queries: list[Described] = []
    in_any_bins: list[Described] = []
    unknown: list[str] = []
    kinds: Counter[tuple[str, str]] = Counter()
    own = {name: own_features(facts, name) for name in tables}
    for name, table in tables.items():
        features = [*own[name], *given_features(facts, name, own), *first_features(facts, name, own[name])]
        described = {feature.name: feature.to_json() for feature in (*features, entity_rows(size_edges()))}
        if not _asked(table) <= set(described) | {COMPONENT, *_constant(table)}:
            unknown.append(name)
            continue
        references = {f.name: f.in_degree for f in own[name] if f.in_degree is not None and is_reference(f)}
        queries += _table_queries(facts, name, table, described, references)
        for node in walk(table.network):
            if isinstance(node, CliqueTree):
                ruled = _ruled(facts, name, features)
                free = {pair for pair, possible in ruled.items() if _is_free(node, *pair, possible)}
                exactly, fine = _pairs(name, node, described, ruled={c for pair in ruled for c in pair}, free=free)
                queries += exactly
                in_any_bins += fine
                named = {
                    pair for first, second in facts.tables[name].pairs for pair in ((first, second), (second, first))
                }
                kinds[PairChoice.kind, name] += len(_chosen(node, described, free=free | named))
    return Implied(queries=tuple(queries), in_any_bins=tuple(in_any_bins), kinds=kinds, foreign=tuple(unknown))


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
    facts: Facts,
    name: str,
    table: TableModel,
    described: Mapping[str, Described],
    references: Mapping[str, InDegree],
) -> Iterator[Described]:
    if name == facts.entity and facts.neighbours is Neighbours.ADD_REMOVE:
        yield histogram_json(name, Counts.WEIGHTS)
    for node in walk(table.network):
        if isinstance(node, Leaf) and not node.constant:
            yield histogram_json(name, Counts.WEIGHTS, [(len(node.counts), described[node.column])])
        if isinstance(node, CliqueTree):
            yield from _clique_queries(name, node, described, references)
    link = facts.owner_link(name)
    if link is not None and may_lack_owner(facts, name):
        yield from (Histogram(table=name, axes=axes).to_json() for axes in unowned_queries(facts, link))


def _clique_queries(
    name: str, tree: CliqueTree, described: Mapping[str, Described], references: Mapping[str, InDegree]
) -> Iterator[Described]:
    """Histograms of single columns, by stratum where they depend on it; of references to a hub, who has such keys."""
    bins = {given.column: number_of_bins(given) for given in tree.given}
    for column in tree.columns:
        if column.column in references and column.parents == (ACTIVITY,):
            yield key_holders(references[column.column]).to_json()
            continue
        strata = [(bins[STRATUM], described[STRATUM])] if STRATUM in column.parents else []
        yield histogram_json(name, Counts.WEIGHTS, [*strata, (len(column.counts), described[column.column])])


def _ruled(facts: Facts, name: str, features: Sequence[Feature]) -> dict[Pair, NDArray[np.bool_]]:
    """The pairs of columns that a rule compares, both ways round, and which of their codes go together."""
    found: dict[Pair, NDArray[np.bool_]] = {}
    for (base, column), codes in possible_places(features, facts.possible_in(name))[0].items():
        names = features[base].name, features[column].name
        found |= {names: codes, names[::-1]: codes.T}
    return found


def _is_free(tree: CliqueTree, parent: str, name: str, possible: NDArray[np.bool_]) -> bool:
    """Whether a column depends on a parent by no more than a rule, which costs nothing."""
    bins = {given.column: given.bins for given in tree.given} | {c.column: c.bins for c in tree.columns}
    column = next((c for c in tree.columns if c.column == name and parent in c.parents), None)
    if column is None:
        return False
    return says_only_zeros(column.factors[column.parents.index(parent)], possible, bins[parent], bins[name])


def _pairs(
    name: str, tree: CliqueTree, described: Mapping[str, Described], *, ruled: Collection[str], free: Collection[Pair]
) -> tuple[list[Described], list[Described]]:
    """Tables of pairs; apart from others those of columns that come in finer bins than pairs are measured in.

    These are the hub and what is linked to it, and what rules compare.
    """
    bins = {given.column: number_of_bins(given) for given in tree.given}
    bins |= {column.column: number_of_bins(column) for column in tree.columns}
    fine = {*ruled, ACTIVITY, *_linked(tree, described)} if ACTIVITY in bins else {*ruled}
    exactly: list[Described] = []
    in_any_bins: list[Described] = []
    for column in tree.columns:
        for parent in column.parents:
            if parent != STRATUM and (parent, column.column) not in free:
                pair = [(bins[place], described[place]) for place in (parent, column.column)]
                target = in_any_bins if {parent, column.column} & fine else exactly
                target.append(histogram_json(name, Counts.WEIGHTS, pair))
    return exactly, in_any_bins


def _linked(tree: CliqueTree, described: Mapping[str, Described]) -> list[str]:
    """Fanouts and in-degrees that depend on a hub: not by choice."""
    kinds = (Fanout.kind, InDegree.kind)
    return [c.column for c in tree.columns if ACTIVITY in c.parents and described[c.column]["kind"] in kinds]


def _chosen(tree: CliqueTree, described: Mapping[str, Described], *, free: Collection[Pair]) -> list[str]:
    """The parents of columns that were chosen; those that are free, or that the spec names, were not."""
    linked = {(ACTIVITY, column) for column in _linked(tree, described)}
    return [p for c in tree.columns for p in c.parents if p != STRATUM and (p, c.column) not in {*linked, *free}]
