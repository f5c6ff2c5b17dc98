"""The search for the texts of one column that are frequent: how many entities have any, then which have many.

A first look finds the texts that most entities have. If it finds some, but leaves out more than noise explains, a
second one is paid for, in which only texts that were not found yet are voted for. A list that covers most entities is
the domain, and all else is OTHER; if there is none, texts are made up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from privbench.encode.listed import unlisted
from privbench.methods.domains.coarse import coarse_domain
from privbench.privacy.domain_vault import DomainVault, Place
from privbench.schema.domain import Domain, Values
from privbench.schema.types import SqlType

HOPEFUL = 0.25
"""A list that covers less at first is not worth a second look: texts are free there."""
COVERED = 0.5
"""A list is worth publishing if it covers at least this share of the entities that have a text."""
DOUBT = 3
"""What is missing from a list is seen from so many standard deviations on."""
MOST_TEXTS = 1024
LONGEST = 200
"""A longer text is nobody's category."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What is known of a column of texts: about how many entities have one, and which ones have many."""

    place: Place
    type: SqlType
    entities: float
    found: Mapping[str, float]
    variance: float
    """Of what the list leaves out."""

    @property
    def missing(self) -> float:
        """About how many entities have a text that is not listed."""
        return self.entities - sum(self.found.values())

    @property
    def incomplete(self) -> bool:
        """Whether more is missing than noise explains, although it is a list."""
        hopeful = sum(self.found.values()) >= HOPEFUL * self.entities
        return hopeful and self.missing > DOUBT * sqrt(self.variance)


def measure_texts(vault: DomainVault, place: Place, *, texts: Fraction, frequent: Fraction) -> Listed:
    """Find the texts that many entities have."""
    count = vault.texts(place, amount=texts)
    listed = Listed(
        place=place,
        type=vault.types[place],
        entities=float(count.counts[0]),
        found={},
        variance=count.noise.variance,
    )
    return measure_more(vault, listed, amount=frequent)


def measure_more(vault: DomainVault, listed: Listed, *, amount: Fraction) -> Listed:
    """Look for texts that are not listed yet, unless too few entities have any for one to come out."""
    if listed.missing + sqrt(listed.variance) < vault.least_count(amount):
        return listed
    more = vault.frequent(listed.place, without=sorted(listed.found), amount=amount)
    return replace(
        listed,
        found={**listed.found, **dict(zip(more.texts, more.counts.tolist(), strict=True))},
        variance=listed.variance + len(more.texts) * more.noise.variance,
    )


def list_domain(listed: Listed) -> Domain:
    """The list with OTHER if it covers enough, else texts that are made up."""
    fitting = {text: count for text, count in listed.found.items() if _fits(text, listed.type)}
    texts = sorted(sorted(fitting, key=lambda text: -fitting[text])[:MOST_TEXTS])
    if not texts or sum(fitting.values()) < COVERED * listed.entities:
        return coarse_domain(listed.type)
    return Values(values=tuple(texts), other=bool(unlisted(listed.type, set(texts))))


def _fits(text: str, kind: SqlType) -> bool:
    return len(text) <= (LONGEST if kind.length is None else min(LONGEST, kind.length))
