"""What the model of a foreign key says and does, whatever its kind: the seam between learners, generation, estimates.

A kind of link is one class that derives from `LinkModel`, in a file of its own, listed in `links.KINDS`. What a kind
can do beyond drawing targets is a field that holds the part of the protocol for it, or None; no caller asks for its
class. All that a link holds was released, so drawing from it is post-processing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privbench.schema.unit import Link, LinkKind
from privbench.spn.fanouts import Edges, draw_numbers
from privbench.spn.nodes import Node
from privbench.spn.sample import GOLDEN

NULL = -1
"""The target of a NULL key."""

Targets = NDArray[np.int64]
Shares = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.integer]]
Arrays = dict[str, NDArray[Any]]
Rng = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkColumn:
    """A column that a link needs in a network: in that of the target table, or in that of the table with the key."""

    name: str
    codes: int
    on_target: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBlock:
    """A block of rows whose keys are to be drawn."""

    first_row: int
    rows: int
    codes: Codes
    """By column of the table's network."""
    parts: NDArray[np.integer]
    """Which part of the table each row is of."""
    owners: tuple[int, int] | None
    """The first and last+1 of the owner rows that the rows are spread over; None: they have no owner."""
    fanouts: Targets | None
    """Rows of each of these owners, where child rows come with their owner."""
    entities: Callable[[], Targets]
    """Works out the entity of each row, for links that ask."""
    above: Mapping[str, Targets] = field(default_factory=dict)
    """By table: the row above each row there, -1 for none; of tables that some key asks for."""


class CarriedRows(Protocol):
    """Rows of a target table that was made before, with numbers of each."""

    def read(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Rows first .. last-1 of a column."""

    def mapped(self, name: str) -> NDArray[Any]:
        """A whole column."""


class Points:
    """An endless sequence of points in [0, 1), any stretch of which is evenly spread: multiples of the golden ratio."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._taken = 0

    def take(self, count: int, *, rng: Rng) -> Shares:
        """The next points, in random order."""
        # The product is taken modulo 1 in two steps, since a large one would lose digits.
        at = np.arange(self._taken, self._taken + count)
        self._taken += count
        points = (self._start + (at % 2**20) * GOLDEN + (at // 2**20) * (GOLDEN * 2**20 % 1)) % 1
        return rng.permutation(points)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetRows:
    """The rows that one key can reference, for all blocks of the table that holds it."""

    key: Link
    rows: int
    holders: int
    """Rows of the table that holds the key."""
    most: int | None
    """The most rows that may have the same target; None: any number."""
    network: Node
    """Of the table that holds the key."""
    carried: CarriedRows | None
    """What the target table carries on; None where it is public, the table itself, or made later."""
    number: str
    """The carried column that this key's link asked for."""
    entity: str
    """The carried column of the entity of each row."""
    points: Points
    """A sequence of its own, which runs on from block to block."""

    def standing_at(self, block: RowBlock) -> tuple[int, int]:
        """The target rows that stand where a block stands in its table: no other block has these."""
        first = min(block.first_row * self.rows // max(self.holders, 1), self.rows)
        return first, min((block.first_row + block.rows) * self.rows // max(self.holders, 1), self.rows)


class WithOwner(Protocol):
    """Child rows that come with their owner row: how many, by the codes of the owner."""

    @property
    def column(self) -> str:
        """The column of the owner's network that holds the bin of the number of rows."""

    @property
    def edges(self) -> NDArray[np.int64]:
        """The edges of these bins."""

    @property
    def unowned(self) -> float:
        """Expected rows without an owner, at scale 1."""

    def numbers(self, target: Node, codes: Codes, *, rng: Rng) -> Targets:
        """How many rows come with each owner."""


class Carries(Protocol):
    """What a row of the target table must carry on until keys to it are drawn: a number."""

    @property
    def cumulated(self) -> bool:
        """Whether sums up to each row are kept instead of whole numbers."""

    def features(self, target: Node) -> frozenset[str]:
        """The columns of the target's network by which the numbers are drawn."""

    def numbers(self, target: Node, codes: Codes, *, rng: Rng) -> NDArray[Any]:
        """The number of each row of a block of the target table."""


class NumbersInBins(Protocol):
    """What links share that carry numbers of rows in bins, fanouts or in-degrees: each is its own `Carries`."""

    __slots__ = ()

    column: str
    """Of the target table's network: the bin of a row's number."""
    edges: Edges  # (bins + 1,)
    exponent: float
    """Inside a bin P(x) ~ x**-exponent."""

    @property
    def carries(self) -> Carries:
        """Target rows carry on their numbers."""
        return self

    @property
    def cumulated(self) -> bool:
        return False

    @property
    def bins(self) -> LinkColumn:
        """The column of the bins."""
        return LinkColumn(name=self.column, codes=len(self.edges) - 1, on_target=True)

    def features(self, target: Node) -> frozenset[str]:  # noqa: ARG002
        """The bins."""
        return frozenset({self.column})

    def numbers(self, target: Node, codes: Codes, *, rng: Rng) -> Targets:  # noqa: ARG002
        return draw_numbers(codes[self.column], self.edges, self.exponent, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Per part of the holding table: the share of NULL keys, and of keys to each row (None: all rows alike)."""

    null: Shares  # (parts,)
    rows: Shares | None  # (parts, target rows), each with its null adding up to 1

    def weight(self, value: Shares | float) -> Shares:
        """What a key meets on average, per part, given the value of each target row; NULL meets nothing."""
        if self.rows is None:
            return np.asarray((1 - self.null) * np.mean(value))
        return self.rows @ np.broadcast_to(np.asarray(value, np.float64), (self.rows.shape[1],))


class KeyShares(Protocol):
    """How keys are spread over target rows, by counts of the link's own."""

    @property
    def null_share(self) -> float:
        """The share of NULL keys."""

    def share(self, first: int, last: int, targets: int) -> float:
        """The share of the non-NULL keys that reference the target rows first .. last-1 of `targets`."""

    def expected(self, key: Link, network: Node, *, rows: int, most: int) -> Spread:
        """Where the keys of `rows` rows point on average; a target has at most `most` rows, if there is a limit."""


class LinkModel(Protocol):
    """What is released of a key, by any method."""

    __slots__ = ()

    kind: ClassVar[str]
    """What a model file calls links of this kind."""
    keys: ClassVar[frozenset[LinkKind]] = frozenset(LinkKind)
    """The keys that it can be the link of."""
    places_in_block: ClassVar[bool] = False
    """Whether a key to the table's own rows is drawn as a place in its block, not as a row of the table."""

    @property
    def with_owner(self) -> WithOwner | None:
        """Child rows come with their owner; None: rows are made first, and their owners drawn."""
        return None

    @property
    def carries(self) -> Carries | None:
        """What rows of the target table carry on for keys that are drawn later; None: nothing."""
        return None

    @property
    def within_entity(self) -> bool:
        """Whether targets are rows of the same entity, so that target rows carry on whose they are."""
        return False

    @property
    def knows_above(self) -> bool:
        """Whether keys may reference the row above their own, so that tables between carry on their owners."""
        return False

    @property
    def shares(self) -> KeyShares | None:
        """Counts that say where keys point; None: columns of the networks say it, and only a sample can tell."""
        return None

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:
        """The columns that it needs in networks."""

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """The target row of each row's key, -1 for NULL."""

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        """What a model file says of it; longer lists of numbers go to `arrays[where]`."""

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        """Rebuild what `to_json` wrote; `array` finds an array by its name. Nothing in it is trusted."""
