"""What each table is measured by: its columns, and what its keys and the keys that reference it make of its rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from privbench.privacy.facts import Facts, LinkFacts, TableFacts
from privbench.privacy.features import (
    Activity,
    Fanout,
    Feature,
    Own,
    activity,
    fanout,
    in_degree,
    key_block,
    null_key,
    of_first,
    of_owner,
    own,
    own_key,
    public_rows,
    rank,
)
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import Edges, fanout_edges

MOST_ROWS = 8191
"""Owners with more rows than this count as having this many, unless the spec declares another limit."""
ALONE = 32
"""Where a computed column says how many rows an owner has, smaller numbers than this have a bin of their own."""
MOST_IN_DEGREE = 4095
"""Rows that are referenced more often than this count as referenced this often."""
MOST_ACTIVITY = 2**17 - 1
"""Rows that own more rows than this, at all levels, count as owning this many."""
FEWEST_LINKED = 2
"""A table gets a hub if it has at least so many fanouts and in-degrees."""
MOST_BLOCKS = 1024
"""Keys into larger public tables are modelled by blocks of rows."""


def own_features(facts: Facts, table: str) -> tuple[Feature, ...]:
    """The features of a table that its network models: columns, keys, fanouts, how often it is referenced."""
    return tuple(feature for feature in _features(facts, table) if feature.size > 1)


def constant_features(facts: Facts, table: str) -> tuple[Feature, ...]:
    """Those of a single code, of which there is nothing to learn."""
    return tuple(feature for feature in _features(facts, table) if feature.size == 1)


def _features(facts: Facts, table: str) -> tuple[Feature, ...]:
    columns = [own(name, column) for name, column in facts.tables[table].columns.items()]
    keys = [feature for link in facts.links_of(table) if (feature := _key_feature(facts, link)) is not None]
    inward = facts.links_to(table)
    fanouts = [fanout(link, rows_edges(facts, link)) for link in inward if link.kind is LinkKind.OWNER]
    in_degrees = [
        in_degree(link, in_degree_edges(link), above=facts.path_above(link))
        for link in inward
        if draws_targets(facts, link)
    ]
    return (*columns, *keys, *fanouts, *in_degrees, *_hub(facts, table, [*fanouts, *in_degrees]))


def _hub(facts: Facts, table: str, linked: list[Feature]) -> list[Feature]:
    """How many rows a row owns at all levels, where several numbers of rows may depend on it."""
    several = sum(feature.size > 1 for feature in linked) >= FEWEST_LINKED
    return (
        [activity(below, fanout_edges(MOST_ACTIVITY))] if several and (below := owner_keys_below(facts, table)) else []
    )


def owner_keys_below(facts: Facts, table: str) -> tuple[LinkFacts, ...]:
    """The owner keys of all tables whose rows those of a table own, directly or through others."""
    direct = [link for link in facts.links_to(table) if link.kind is LinkKind.OWNER]
    return tuple(below for link in direct for below in (link, *owner_keys_below(facts, link.table)))


def given_features(facts: Facts, table: str, features: Mapping[str, tuple[Feature, ...]]) -> tuple[Feature, ...]:
    """What is known of a row before it is drawn: the features of its owner and its place among the owner's rows."""
    link = facts.owner_link(table)
    if table == facts.entity:
        return tuple(public_rows(counts.name, counts.link, counts.codes) for counts in facts.public_counts)
    if link is None:
        return ()
    above = tuple(
        of_owner(feature, link)
        for feature in features[link.target]
        if feature.in_degree is None and not isinstance(feature.source, Activity)
    )
    return above if link.unique else (*above, rank(link))


def first_features(facts: Facts, table: str, columns: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """What may be known of the first row of the same owner: its columns, where an owner may have several rows.

    Of a hidden list also which other tables have rows of it: who pitches in one season does so in the next.
    """
    link = facts.owner_link(table)
    if link is None or link.unique:
        return ()
    kinds = (Own, Fanout) if facts.tables[table].hidden else Own
    return tuple(of_first(feature, link) for feature in columns if isinstance(feature.source, kinds))


def hinted_features(facts: Facts, table: str, features: Sequence[Feature]) -> tuple[tuple[str, str], ...]:
    """The pairs that the spec names, of features that there are: one of a single code depends on nothing."""
    names = {feature.name for feature in features}
    return tuple(pair for pair in facts.tables[table].pairs if names.issuperset(pair))


def in_degree_edges(link: LinkFacts) -> Edges:
    """The edges of bins for how often a row is referenced through a key."""
    return fanout_edges(1 if link.unique else MOST_IN_DEGREE)


def draws_targets(facts: Facts, link: LinkFacts) -> bool:
    """Whether a key's targets are drawn by how often they are referenced: references, but not into lookups."""
    between = link.kind in (LinkKind.REFERENCE, LinkKind.INSIDE)
    return between and facts.tables[link.target].lookup_of != link.table


def most_rows(table: TableFacts, link: LinkFacts) -> int:
    """The most rows of a table that one owner row has, as far as that is public."""
    if link.unique:
        return 1
    return table.cap or MOST_ROWS


def rows_edges(facts: Facts, link: LinkFacts) -> Edges:
    """The edges of bins for the rows that an owner has through a key; more small numbers alone if they are counted."""
    most = most_rows(facts.tables[link.table], link)
    edges = fanout_edges(most)
    return np.union1d(np.arange(min(ALONE, most + 1)), edges) if link.counted else edges


def blocks_of(link: LinkFacts) -> int:
    """How many blocks the rows that a key can name are divided into."""
    return min(link.slots or 0, MOST_BLOCKS)


def _key_feature(facts: Facts, link: LinkFacts) -> Feature | None:
    if link.kind is LinkKind.CATEGORY:
        return key_block(link, blocks_of(link))
    if above := facts.path_above(link):
        return own_key(link, above)
    if link.kind in (LinkKind.REFERENCE, LinkKind.INSIDE) and link.nullable:
        return null_key(link)
    return None
