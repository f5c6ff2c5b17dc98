"""The search for the strings of one column that are frequent: how many entities have any, then which have many.

A first look finds the strings that most entities have. If it finds some, but leaves out more than noise explains, a
second one is paid for, in which only strings that were not found yet are voted for. A list that covers most entities is
the domain, and all else is OTHER; if there is none, strings are made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from privbench.encode.guess import guess_shape
from privbench.encode.listed import unlisted
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.domains.columns import SearchedColumns
from privbench.schema.domain import Domain, Values
from privbench.schema.tables import Place
from privbench.schema.types import SqlType

HOPEFUL = 0.25
"""A list that covers less at first is not worth a second look: strings are free there."""
COVERED = 0.5
"""A list is worth publishing if it covers at least this share of the entities that have a string."""
DOUBT = 3
"""What is missing from a list is seen from this many standard deviations on."""
MOST_STRINGS = 1024
LONGEST = 200
"""Longer strings are not listed: they are unlikely to be categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What is known of a column of strings: about how many entities have one, and which ones have many."""

    place: Place
    type: SqlType
    entities: float
    counts: Mapping[str, float]
    """By string: about how many entities have it."""
    variance: float
    """Of what the list leaves out."""

    @property
    def missing(self) -> float:
        """About how many entities have a string that is not listed."""
        return self.entities - sum(self.counts.values())

    @property
    def incomplete(self) -> bool:
        """Whether more is missing than noise explains, although it is a list."""
        hopeful = sum(self.counts.values()) >= HOPEFUL * self.entities
        return hopeful and self.missing > DOUBT * sqrt(self.variance)


def measure_strings(
    columns: SearchedColumns, places: Sequence[Place], *, holders: Fraction, frequent: Fraction
) -> list[Listed]:
    """Find the strings that many entities have, column by column."""
    counts = columns.holders(places, holders)
    known = [
        Listed(
            place=place,
            type=columns.types[place],
            entities=counts[place].total,
            counts={},
            variance=counts[place].noise.variance,
        )
        for place in places
    ]
    return [measure_more(columns, listed, amount=frequent) for listed in known]


def measure_more(columns: SearchedColumns, listed: Listed, *, amount: Fraction) -> Listed:
    """Look for strings that are not listed yet, unless too few entities have any for one to come out."""
    if listed.missing + sqrt(listed.variance) < columns.least_count(amount):
        return listed
    more = columns.frequent_strings(listed.place, without=sorted(listed.counts), amount=amount)
    return replace(
        listed,
        counts={**listed.counts, **dict(zip(more.keys, more.counts.tolist(), strict=True))},
        variance=listed.variance + len(more.keys) * more.noise.variance,
    )


def list_domain(listed: Listed) -> Domain:
    """The list with OTHER if it covers enough, else strings that are made up."""
    table, column = listed.place
    fitting = {string: count for string, count in listed.counts.items() if _fits(string, listed.type)}
    strings = sorted(sorted(fitting, key=lambda string: -fitting[string])[:MOST_STRINGS])
    if not strings or sum(fitting.values()) < COVERED * listed.entities:
        return coarse_domain(listed.type, table=table, column=column)
    other = bool(unlisted(listed.type, set(strings)))
    shape = guess_shape(column, listed.type, table=table) if other else None
    return Values(values=tuple(strings), other=other, shape=shape)


def _fits(string: str, kind: SqlType) -> bool:
    return len(string) <= (LONGEST if kind.length is None else min(LONGEST, kind.length))
