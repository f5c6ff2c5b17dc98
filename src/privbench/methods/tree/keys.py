"""Keys of a learnt table: what its networks' columns say of each, put into links."""

from collections.abc import Mapping

from privbench.methods.tree.columns import MOST_NAMED, blocks_of, draws_targets, most_rows
from privbench.methods.tree.learner import LearntTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import fanout_edges
from privbench.spn.feature_names import key_column, named_column, null_column, rows_column
from privbench.spn.tree_links import Blocks, Fanouts, LinkModel, Named


def link_table(facts: Facts, table: str, learnt: Mapping[str, LearntTable], *, unowned: float) -> dict[str, LinkModel]:
    """The links of a table's keys by name."""
    return {link.name: _link(facts, link, learnt, unowned) for link in facts.links_of(table)}


def owner_fanouts(facts: Facts, link: LinkFacts, owner: LearntTable, *, unowned: float) -> Fanouts:
    """The link of an owner key."""
    column = rows_column(link.name)
    edges = fanout_edges(most_rows(facts.tables[link.table], link))
    return Fanouts(column=column, edges=edges, exponent=owner.exponents[column], unowned=unowned)


def _link(facts: Facts, link: LinkFacts, learnt: Mapping[str, LearntTable], unowned: float) -> LinkModel:
    if link.kind is LinkKind.OWNER:
        return owner_fanouts(facts, link, learnt[link.target], unowned=unowned)
    if link.kind is LinkKind.CATEGORY:
        return Blocks(column=key_column(link.name), blocks=blocks_of(link), slots=link.slots or 0)
    null = null_column(link.name) if link.nullable else None
    if draws_targets(facts, link):
        column = named_column(link.name)
        edges = fanout_edges(1 if link.unique else MOST_NAMED)
        return Named(column=column, edges=edges, exponent=learnt[link.target].exponents[column], null=null)
    return Named(column=None, edges=fanout_edges(1), exponent=0.0, null=null)
