"""The link of a reference key: targets are drawn in proportion to their in-degree, how many keys reference them.

The counted keys of a row are its number, which the target's network holds in bins. Keys that were not counted follow
from the numbers of the rows that are like it in the columns that the number depends on, and from its own: the former
keep how often rows of a kind are referenced, the latter how unevenly.

Cumulated in-degrees are cut at points of a golden-ratio sequence that runs on from block to block: evenly spread over
all targets, whatever the number of rows, so that neither the rows to come nor the targets need to be in memory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.schema.unit import Link, LinkKind
from privbench.spn.checks import text_field
from privbench.spn.clique import CliqueTree, Conditional, number_of_bins
from privbench.spn.fanouts import Edges, checked_edges, draw_numbers
from privbench.spn.link import (
    NULL,
    Arrays,
    CarriedRows,
    Carries,
    Codes,
    LinkColumn,
    LinkModel,
    Rng,
    RowBlock,
    Shares,
    TargetRows,
    Targets,
)
from privbench.spn.nodes import Node, walk

FLOOR = 1e-3
"""How often a row that no key references counts as referenced, so that any row can be."""
EVEN = 1e6
"""From this shape on, rates are taken as all alike."""
MOST_MORE = 2.0**20
"""Keys that were not counted for each that was: whatever the count, a Poisson draw then fits 64 bits."""
FEWEST_ALIKE = 50
"""On average at least this many rows of a block count as alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Keys that reference rows beside the counted ones: how uneven their rates are, and how many there are.

    The rate of a row with n counted keys is more * Gamma(shape + n) * mean / (shape + mean), with the mean count of
    rows of its kind.
    """

    shape: float = EVEN
    more: float = 0.0
    """Keys that were not counted for each that was."""

    def __post_init__(self) -> None:
        if not (0 < self.shape <= EVEN and 0 <= self.more <= MOST_MORE):  # written so that NaN fails
            raise ModelError("a link has impossible rates at which rows are referenced.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceLink(LinkModel):
    """The in-degree of each target row, in bins; and which keys are NULL."""

    kind: ClassVar[str] = "in-degrees"
    keys: ClassVar[frozenset[LinkKind]] = frozenset({LinkKind.REFERENCE})
    places_in_block: ClassVar[bool] = True

    column: str | None
    """Of the target table's network: the bin of how many counted keys reference a row, or of its rate times a constant,
    as only proportions matter; None: all rows alike."""
    edges: Edges = field(default_factory=lambda: np.array([0, 1], np.int64))  # (bins + 1,)
    exponent: float = 0.0
    """Inside a bin P(x) ~ x**-exponent."""
    null: str | None
    """Of the own network: the column whose code 1 means NULL; None for a key that is never NULL."""
    own: str | None = None
    """Instead of that: the column whose code 1 means the row above, 2 NULL; of keys to a table above their own."""
    uncounted: Rates = field(default_factory=Rates)
    """Keys that reference a row beside the counted ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", checked_edges(self.edges, self.exponent))
        if self.null is not None and self.own is not None:
            raise ModelError("a link has two columns that say which of its keys are NULL.")

    @property
    def knows_above(self) -> bool:
        return self.own is not None

    @property
    def carries(self) -> Carries | None:
        """Target rows carry on their in-degrees, cumulated, if these are known."""
        return None if self.column is None else self

    @property
    def cumulated(self) -> bool:
        return True

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:
        """The bins of in-degrees in the target's network, whether the key is NULL or its own row's in the own."""
        bins = () if self.column is None else (LinkColumn(name=self.column, codes=len(self.edges) - 1, on_target=True),)
        if self.own is not None:
            return (*bins, LinkColumn(name=self.own, codes=2 + key.nullable))
        return bins if self.null is None else (*bins, LinkColumn(name=self.null, codes=2))

    def features(self, target: Node) -> frozenset[str]:
        """The bins of in-degrees, and what they depend on."""
        if self.column is None:
            return frozenset()
        near = columns_near(target, self.column) if self.uncounted.more else ()
        return frozenset({self.column, *near})

    def numbers(self, target: Node, codes: Codes, *, rng: Rng) -> Shares:
        """How likely each row of a block is to be referenced."""
        return self.in_degrees(target, codes, rng=rng) + FLOOR

    def in_degrees(self, target: Node, codes: Codes, *, rng: Rng) -> Shares:
        """About how many keys reference each of a block's rows; `target` is their network.

        >>> from privbench.spn.nodes import Leaf
        >>> link = ReferenceLink(column="n", edges=np.array([0, 1, 2]), null=None, uncounted=Rates(more=3.0))
        >>> codes = {"n": np.array([0, 1, 0, 1])}
        >>> link.in_degrees(Leaf(column="n", counts=np.ones(2)), codes, rng=np.random.default_rng(0)).tolist()
        [1.5, 2.5, 1.5, 2.5]
        """
        if self.column is None:
            raise ModelError("a link was asked for in-degrees that it does not know.")
        numbers = draw_numbers(codes[self.column], self.edges, self.exponent, rng=rng).astype(np.float64)
        rates = self.uncounted
        if not rates.more:
            return numbers
        means = _means_alike(numbers, target, self.column, codes)
        if rates.shape == EVEN:
            return numbers + rates.more * means
        return numbers + rng.poisson(rates.more * means / (rates.shape + means) * rng.gamma(rates.shape + numbers))

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """The target row of each key, -1 for NULL; of a key to the same table, its place in the block.

        A key into a table made before looks at what that carried; one into a table made later knows only its size.
        A key to the row above, where there is none, references any row.
        """
        null = np.zeros(block.rows, bool) if self.null is None else block.codes[self.null] == 1
        drawn = np.full(block.rows, NULL, np.int64)
        if self.own is not None:
            codes = block.codes[self.own]
            drawn, null = np.where(codes == 1, block.above[targets.key.target], NULL), codes == 2
        holders = np.flatnonzero(~null & (drawn < 0))
        if len(holders) and targets.rows:
            drawn[holders] = self._targets(block, targets, len(holders), rng)
        return drawn

    def _targets(self, block: RowBlock, targets: TargetRows, count: int, rng: Rng) -> Targets:
        carried = None if self.column is None else targets.carried
        if targets.key.target == targets.key.table:
            degrees = np.zeros(block.rows)
            if self.column is not None:
                degrees = self.in_degrees(targets.network, block.codes, rng=rng)
            if targets.key.unique:
                return draw_once(degrees, count, rng=rng)
            return draw_weighted(degrees, targets.points.take(count, rng=rng))
        if targets.key.unique:
            return _once_near(block, targets, carried, count, rng)
        points = targets.points.take(count, rng=rng)
        if carried is None:
            return draw_anywhere(targets.rows, points)
        return draw_carried(carried, targets.number, points)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        arrays[where] = self.edges
        rates = {"shape": self.uncounted.shape, "more": self.uncounted.more}
        bins = {"array": where, "column": self.column, "exponent": self.exponent}
        return {**bins, "null": self.null, "own": self.own, "uncounted": rates}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        names = ("column", "null", "own")
        column, null, own = (None if header[name] is None else text_field(header, name) for name in names)
        rates = Rates(**{name: float(header["uncounted"][name]) for name in ("shape", "more")})
        edges = array(header["array"])
        return cls(column=column, edges=edges, exponent=float(header["exponent"]), null=null, own=own, uncounted=rates)


def columns_near(node: Node, column: str) -> tuple[str, ...]:
    """The own columns of a network that one of its columns depends on, or that depend on it."""
    return tuple(near.column for near in _near(node, column))


def draw_carried(carried: CarriedRows, number: str, points: Shares) -> Targets:
    """The rows of a table made before that the points fall on; `number` is its column of cumulated in-degrees."""
    summed = carried.mapped(number)
    order = np.argsort(points)
    rows = np.empty(len(points), np.int64)
    rows[order] = np.minimum(np.searchsorted(summed, points[order] * summed[-1], side="right"), len(summed) - 1)
    return rows


def draw_weighted(degrees: Shares, points: Shares) -> Targets:
    """The places that the points fall on, each place as wide as its in-degree."""
    summed = np.cumsum(degrees + FLOOR)
    return np.asarray(np.minimum(np.searchsorted(summed, points * summed[-1], side="right"), len(summed) - 1))


def draw_anywhere(targets: int, points: Shares) -> Targets:
    """Rows of a table of which nothing is known but its size."""
    return np.minimum((points * targets).astype(np.int64), targets - 1)


def draw_once(degrees: Shares, count: int, *, rng: Rng) -> Targets:
    """Different places, those with an in-degree first; fewer than asked for where there are too few, then -1."""
    order = rng.permutation(len(degrees))
    order = order[np.argsort(degrees[order] <= 0, kind="stable")][:count]
    return np.append(rng.permutation(order), np.full(count - len(order), NULL, np.int64))


def _once_near(block: RowBlock, targets: TargetRows, carried: CarriedRows | None, count: int, rng: Rng) -> Targets:
    """Rows that no other block references: those that stand where this block stands in its table."""
    first, last = targets.standing_at(block)
    rows, degrees = np.arange(first, last), np.zeros(last - first)
    if carried is not None:
        summed = carried.read(targets.number, max(first - 1, 0), last)
        degrees = np.floor(np.diff(summed, prepend=0.0)[min(first, 1) :])
    chosen: Targets = np.append(rows, NULL)[draw_once(degrees, count, rng=rng)]
    return chosen


def _near(node: Node, column: str) -> list[Conditional]:
    own = [c for tree in walk(node) if isinstance(tree, CliqueTree) for c in tree.columns]
    families = [{c.column, *c.parents} for c in own]
    near = set().union(*(family for family in families if column in family)) - {column}
    return [c for c in own if c.column in near]


def _means_alike(numbers: Shares, node: Node, column: str, codes: Codes) -> Shares:
    """The mean number of the rows that are like each row: in the same bins of columns near, as far as rows suffice."""
    kind, kinds = np.zeros(len(numbers), np.int64), 1
    for near in _near(node, column):
        if kinds * number_of_bins(near) * FEWEST_ALIKE <= len(numbers):
            kind = kind * number_of_bins(near) + near.bins[codes[near.column]]
            kinds *= number_of_bins(near)
    rows = np.bincount(kind, minlength=kinds)
    means: Shares = np.bincount(kind, numbers, kinds) / np.maximum(rows, 1)
    return means[kind]
