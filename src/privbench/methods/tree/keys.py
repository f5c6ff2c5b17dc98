"""Keys of a learnt table: what the columns of its networks say of each, put into links.

Of each entity one reference key is counted, so that one entity moves the counts by little. Where entities have many
keys, most rows show a count of 0 although some key references them. Rates are taken as Gamma distributed and counted
keys as Poisson: the mean count and the share of rows without one give the shape, and what was not counted of a row
follows from counts. All of it is post-processing of noisy numbers. In a table with activity the network holds rates
(`reference_rates.py`), and none of this is needed.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from privbench.methods.tree.columns import blocks_of, draws_targets, in_degree_edges, rows_edges
from privbench.methods.tree.learner import LearntTable
from privbench.methods.tree.reference_rates import RATE_EDGES, RATE_EXPONENT
from privbench.privacy.facts import Facts, LinkFacts
from privbench.schema.unit import LinkKind
from privbench.spn.block_link import BlockLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import bin_means, fanout_edges
from privbench.spn.feature_names import in_degree_column, key_column, null_column, own_column, rows_column
from privbench.spn.infer import marginal
from privbench.spn.inside_link import InsideLink
from privbench.spn.link import LinkModel
from privbench.spn.reference_link import EVEN, MOST_MORE, Rates, ReferenceLink

LEAST_SHAPE = 1e-4
"""Nearly all keys reference a few rows."""
DOUBT = 2.0
"""Rates are as even as the share of rows without a count lets them be, less this many standard deviations."""
ROUNDS = 60


def counted_keys(in_degrees: float, *, keys: float, entities: float, valid_share: float) -> float:
    """How many keys were counted, one of each entity that has any.

    `in_degrees` is what the rows that are referenced say. No more than there are keys, or entities with rows; no fewer
    than these entities times the share of their keys that reference a row.
    """
    return min(max(in_degrees, valid_share * entities, 1.0), max(entities, 1.0), max(keys, 1.0))


def rates(*, mean: float, none: float, deviation: float, keys: float, counted: float) -> Rates:
    """The rates of keys that were not counted.

    `mean` is that of counts, `none` the share of rows without one, known up to a standard deviation.
    """
    more = min(max(keys / counted - 1, 0.0), MOST_MORE)
    return Rates(shape=_shape(mean, none - DOUBT * deviation), more=more)


def _shape(mean: float, none: float) -> float:
    """The shape of a Gamma of rates with that mean, such that a Poisson draw is 0 with that probability."""
    wanted = -np.log(min(max(none, 1e-9), 1.0))
    low, high = LEAST_SHAPE, EVEN
    if high * np.log1p(mean / high) <= wanted:
        return EVEN
    for _ in range(ROUNDS):
        middle = float(np.sqrt(low * high))
        if middle * np.log1p(mean / middle) < wanted:
            low = middle
        else:
            high = middle
    return low


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
    own = own_column(link.name) if facts.path_above(link) else None
    null = null_column(link.name) if link.nullable and own is None else None
    if not draws_targets(facts, link):
        return ReferenceLink(column=None, edges=fanout_edges(1), exponent=0.0, null=null)
    column = in_degree_column(link.name)
    edges = in_degree_edges(link)
    if link.kind is LinkKind.INSIDE:
        return InsideLink(column=column, edges=edges, exponent=learnt[link.target].exponents[column], null=null)
    if column in learnt[link.target].rates:
        return ReferenceLink(column=column, edges=RATE_EDGES, exponent=RATE_EXPONENT, null=null, own=own)
    exponent = learnt[link.target].exponents[column]
    reference = ReferenceLink(column=column, edges=edges, exponent=exponent, null=null, own=own)
    return reference if link.unique else replace(reference, uncounted=_uncounted(link, reference, learnt, rows))


def _uncounted(
    link: LinkFacts, reference: ReferenceLink, learnt: Mapping[str, LearntTable], rows: Mapping[str, float]
) -> Rates:
    """What the networks say of keys that were not counted."""
    target, holder = learnt[link.target], learnt[link.table]
    shares = marginal(target.network, in_degree_column(link.name))
    said = reference.null or reference.own
    others = 1.0 if said is None else float(marginal(holder.network, said)[0])
    mean = float(shares @ bin_means(reference.edges, reference.exponent))
    keys = rows[link.table] * others
    return rates(
        mean=mean,
        none=float(shares[0]),
        deviation=target.deviations[in_degree_column(link.name)],
        keys=keys,
        counted=counted_keys(mean * rows[link.target], keys=keys, entities=holder.entities.rows, valid_share=others),
    )
