"""What counters of all parts know alike: worked out from all parts once, or drawn once."""

from dataclasses import dataclass, field
from typing import NamedTuple

from privbench.privacy.exact import Integers
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import InDegree


class Cap(NamedTuple):
    """How many rows of an entity are kept of a table, of those whose owner row is kept."""

    table: str
    most: int
    owner: LinkFacts | None
    orphans: bool


DegreeKey = tuple[str, int | None, tuple[str, ...]]


def degree_key(source: InDegree) -> DegreeKey:
    """What tells in-degrees apart: the key, and which of the keys count."""
    return (source.link.name, source.cap, tuple(link.name for link in source.above))


@dataclass(slots=True, eq=False)
class Common:
    """Caps in the order in which they were set, in-degrees by row number, and the secret order of slots."""

    caps: list[Cap] = field(default_factory=list)
    degrees: dict[DegreeKey, Integers] = field(default_factory=dict)
    order: Integers | None = None
    compiled: bool = False
    """Whether there are so many rows that compiled loops pay."""

    def __repr__(self) -> str:
        return "<private facts>"
