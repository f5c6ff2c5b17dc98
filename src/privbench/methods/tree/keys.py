"""Keys of a learnt table: what its networks' columns say of each, put into links."""

from collections.abc import Mapping
from dataclasses import replace

from privbench.methods.tree.columns import MOST_NAMED, blocks_of, draws_targets, rows_edges
from privbench.methods.tree.learner import LearntTable
from privbench.methods.tree.uncounted import counted_keys, rates
from privbench.privacy.facts import Facts, LinkFacts
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import bin_means, fanout_edges
from privbench.spn.feature_names import in_degree_column, key_column, null_column, rows_column
from privbench.spn.infer import marginal
from privbench.spn.links import BlockLink, FanoutLink, LinkModel, Rates, ReferenceLink


def link_table(
    facts: Facts, table: str, learnt: Mapping[str, LearntTable], *, rows: Mapping[str, float], unowned: float
) -> dict[str, LinkModel]:
    """The links of a table's keys by name; `rows` says how many rows each table has."""
    return {link.name: _link(facts, link, learnt, rows, unowned) for link in facts.links_of(table)}


def owner_fanouts(facts: Facts, link: LinkFacts, owner: LearntTable, *, unowned: float) -> FanoutLink:
    """The link of an owner key."""
    column = rows_column(link.name)
    edges = rows_edges(facts, link)
    return FanoutLink(column=column, edges=edges, exponent=owner.exponents[column], unowned=unowned)


def _link(
    facts: Facts, link: LinkFacts, learnt: Mapping[str, LearntTable], rows: Mapping[str, float], unowned: float
) -> LinkModel:
    if link.kind is LinkKind.OWNER:
        return owner_fanouts(facts, link, learnt[link.target], unowned=unowned)
    if link.kind is LinkKind.CATEGORY:
        return BlockLink(column=key_column(link.name), blocks=blocks_of(link), slots=link.slots or 0)
    null = null_column(link.name) if link.nullable else None
    if not draws_targets(facts, link):
        return ReferenceLink(column=None, edges=fanout_edges(1), exponent=0.0, null=null)
    column = in_degree_column(link.name)
    edges = fanout_edges(1 if link.unique else MOST_NAMED)
    named = ReferenceLink(column=column, edges=edges, exponent=learnt[link.target].exponents[column], null=null)
    return named if link.unique else replace(named, uncounted=_uncounted(link, named, learnt, rows))


def _uncounted(
    link: LinkFacts, named: ReferenceLink, learnt: Mapping[str, LearntTable], rows: Mapping[str, float]
) -> Rates:
    """What the networks say of keys that were not counted."""
    target, naming = learnt[link.target], learnt[link.table]
    shares = marginal(target.network, in_degree_column(link.name))
    nulls = 0.0 if named.null is None else float(marginal(naming.network, named.null)[1])
    mean = float(shares @ bin_means(named.edges, named.exponent))
    keys = rows[link.table] * (1 - nulls)
    return rates(
        mean=mean,
        none=float(shares[0]),
        deviation=target.deviations[in_degree_column(link.name)],
        keys=keys,
        counted=counted_keys(mean * rows[link.target], keys=keys, entities=naming.entities, named=1 - nulls),
    )
