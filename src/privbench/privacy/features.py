"""What a row can be measured by, with the weights of method `tree`: its own columns, and what its entity says of it.

A feature is a public description; its codes stay behind the vault's door. Every feature but `Named` is a function of
the rows of the row's own entity, so that a weighted histogram of such features is a sum over entities
(docs/proofs/tree.md). The name of a feature is the column that the table's network has for it
(`spn/feature_names.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.facts import LinkFacts
from privbench.spn.fanouts import RANK_EDGES, Edges
from privbench.spn.feature_names import (
    FIRST,
    OWNER,
    RANK,
    STRATUM,
    in_degree_column,
    key_column,
    null_column,
    rows_column,
)


@dataclass(frozen=True, slots=True)
class Own:
    """A column of the table."""

    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """How many rows of another table name this row by their owner key, in bins."""

    link: LinkFacts
    edges: Edges


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """How many rows name this row by a reference key, in bins. Of each entity one key counts, chosen by a hash."""

    link: LinkFacts
    edges: Edges


@dataclass(frozen=True, slots=True)
class NullKey:
    """Whether a key is NULL."""

    link: LinkFacts


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Which block of the rows of a public table a key names; NULL is the last code where the key may be NULL."""

    link: LinkFacts
    blocks: int


@dataclass(frozen=True, slots=True)
class OfOwner:
    """A feature of the owner row; a row without owner has a code of its own, the last."""

    feature: "Feature"


@dataclass(frozen=True, slots=True)
class OfFirst:
    """A feature of the first row of the same owner; that row itself, and rows without owner, have the last code."""

    feature: "Feature"


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of the row among the rows of its owner, in bins."""


@dataclass(frozen=True, slots=True, eq=False)
class EntityRows:
    """How many rows the entity has in this table, in bins."""

    edges: Edges


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """How many rows of a public table name this row, in bins: known to all, as its id is."""

    codes: NDArray[np.uint16]
    """By row of the entity table, in the order of ids."""


Source = Own | Rows | Named | NullKey | KeyBlock | OfOwner | OfFirst | Rank | EntityRows | PublicRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """A feature with its codes: how many, whether they are ordered, whether the last one stands apart (NULL)."""

    name: str
    size: int
    ordered: bool
    source: Source = field(repr=False)
    apart: bool = False

    @property
    def touches(self) -> int:
        """By how many times an entity's weight one entity can move a weighted histogram of this feature.

        Once by its own rows; where other entities' keys are counted, twice more by the one key that counts of its own.
        """
        if isinstance(self.source, OfOwner | OfFirst):
            return self.source.feature.touches
        return 3 if isinstance(self.source, Named) else 1


def touches_of(features: Iterable[Feature]) -> int:
    """The same for several features at once: an entity has one key that counts for each of those that count keys."""
    return 1 + sum(feature.touches - 1 for feature in features)


def fanout(link: LinkFacts, edges: Edges) -> Feature:
    """Rows that an owner has through a key."""
    name = rows_column(link.name)
    return Feature(name=name, size=len(edges) - 1, ordered=True, source=Rows(link, edges))


def named(link: LinkFacts, edges: Edges) -> Feature:
    """Keys that name a row."""
    name = in_degree_column(link.name)
    return Feature(name=name, size=len(edges) - 1, ordered=True, source=Named(link, edges))


def null_key(link: LinkFacts) -> Feature:
    """Whether a key is NULL: code 1."""
    return Feature(name=null_column(link.name), size=2, ordered=False, source=NullKey(link))


def key_block(link: LinkFacts, blocks: int) -> Feature:
    """The block of public rows that a key names."""
    size = max(blocks + link.nullable, 1)
    source = KeyBlock(link, blocks)
    return Feature(name=key_column(link.name), size=size, ordered=False, source=source, apart=link.nullable)


def of_owner(feature: Feature) -> Feature:
    """A feature of the owner row."""
    return Feature(
        name=f"{OWNER}{feature.name}",
        size=feature.size + 1,
        ordered=feature.ordered,
        source=OfOwner(feature),
        apart=True,
    )


def of_first(feature: Feature) -> Feature:
    """A feature of the first row of the same owner."""
    return Feature(
        name=f"{FIRST}{feature.name}",
        size=feature.size + 1,
        ordered=feature.ordered,
        source=OfFirst(feature),
        apart=True,
    )


def public_rows(name: str, codes: NDArray[np.uint16]) -> Feature:
    """How many public rows name an entity."""
    size = int(codes.max(initial=0)) + 1
    return Feature(name=name, size=size, ordered=True, source=PublicRows(codes))


def rank() -> Feature:
    """The place among the owner's rows."""
    return Feature(name=RANK, size=len(RANK_EDGES) - 1, ordered=True, source=Rank())


def entity_rows(edges: Edges) -> Feature:
    """The rows of the entity in this table."""
    return Feature(name=STRATUM, size=len(edges) - 1, ordered=True, source=EntityRows(edges))


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A feature in coarse bins: `bins[code]`, numbered from 0. Public."""

    feature: Feature
    bins: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bins.max()) + 1


def whole_axis(feature: Feature) -> Axis:
    """Every code a bin of its own."""
    return Axis(feature, np.arange(feature.size))


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two axes of which is asked how far they are from a public table of expected weights, less a public penalty.

    All in units: `expected` by bins of the first and second axis.
    """

    first: Axis
    second: Axis
    expected: NDArray[np.int64]
    penalty: int

    @property
    def touches(self) -> int:
        """By how many times an entity's weight one entity can move the table of the two."""
        return touches_of([self.first.feature, self.second.feature])
