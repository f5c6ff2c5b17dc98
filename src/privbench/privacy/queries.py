"""Everything that is ever asked of private rows, as values: what is counted, how rows weigh, what one entity can move.

A query is public. Its sensitivity, the number of its answers and its description in the receipt follow from its fields
and are never passed beside it; the engine evaluates it exactly, the vault adds noise. Sensitivities are proven in
docs/proofs and derived again, from the published description alone, by `privbench_verify`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.privacy.blocks import Block, ColumnSplit, disjoint
from privbench.privacy.exact import COORDINATE, SCORE_BITS, dependence_bound
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.features import Agreement, Axis, Feature, Nearness, WhichBlock

ENTITY_WEIGHT = 2**20
"""What all rows of an entity in a table weigh together, where rows are counted by weight."""
ROW_SCORE: Final[int] = 2**SCORE_BITS + 2
"""What one row can move a dependence score: one unit is for rounding down, one for errors of floats."""

MOST_FULL_ROWS: Final = 2**13
"""The most rows that an entity may be asked to have to weigh ENTITY_WEIGHT."""

VOTE_CELLS: Final = 3
"""Of each candidate dependency there is counted who agrees, who differs, and whom it says little about."""


class Counts(Enum):
    """How rows count."""

    ROWS = "rows"
    """Each row counts 1, and an entity has at most so many as the cap of the table says."""
    WEIGHTS = "weights"
    """A row weighs ENTITY_WEIGHT over the rows that its entity has in the table, rounded down; see `full_rows`."""
    VOTES = "votes"
    """Each entity counts 1: one of its rows, chosen by a public hash."""

    @property
    def unit(self) -> int:
        """What an entity counts."""
        return ENTITY_WEIGHT if self is Counts.WEIGHTS else 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """Rows by the bins of axes; all rows in one count without axes."""

    table: str
    axes: tuple[Axis, ...]
    counts: Counts = Counts.WEIGHTS
    block: Block | None = None
    """The rows that are counted, where rows count."""
    full_rows: int = 1
    """Where weights count: the rows from which on an entity weighs the same; of fewer, in proportion to them."""
    chooses: ClassVar = False

    def __post_init__(self) -> None:
        if (self.block is not None) != (self.counts is Counts.ROWS):
            raise ValueError(f"{self.table}: a block of rows belongs to counts of rows, and to them alone")
        if self.block is not None and self.block.table != self.table:
            raise ValueError(f"{self.table}: counted in a block of {self.block.table}")
        _check_axes(self.table, self.axes, by_rows=self.block is not None)
        _check_full_rows(self.table, self.full_rows)
        if self.full_rows > 1 and self.counts is not Counts.WEIGHTS:
            raise ValueError(f"{self.table}: entities count in proportion to their rows only where weights count")
        if self.counts is Counts.VOTES and not (len(self.axes) == self.draws == 1 and self.additive):
            raise ValueError(f"{self.table}: votes are for one bin of one feature, which the entity's own rows decide")
        for axis in self.axes:
            source = axis.feature.source
            if isinstance(source, WhichBlock) and not (
                disjoint(source.blocks) and all(block.table == self.table for block in source.blocks)
            ):
                raise ValueError(f"{self.table}: the parts overlap or are of another table")

    @property
    def draws(self) -> int:
        """How many counts there are."""
        return prod(axis.size for axis in self.axes)

    @property
    def sensitivity(self) -> int:
        """What an entity moves in L1: what it counts, and twice each of its keys that in-degrees count."""
        shared = [counted for axis in self.axes if (counted := axis.feature.in_degree) is not None]
        if self.block is None:
            return self.counts.unit * (1 + 2 * len(shared))
        return self.block.cap + 2 * sum(_cap(counted.cap) for counted in shared)

    @property
    def additive(self) -> bool:
        """Whether an entity only adds to the counts, and lowers none."""
        return all(axis.feature.in_degree is None for axis in self.axes)

    @property
    def unit(self) -> int:
        """What an entity counts."""
        return self.counts.unit

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        axes = [(axis.size, axis.feature.to_json()) for axis in self.axes]
        proportion = {"full_rows": self.full_rows} if self.full_rows > 1 else {}
        return histogram_json(self.table, self.counts, axes) | proportion


def histogram_json(table: str, counts: Counts, axes: Sequence[tuple[int, Mapping[str, Any]]] = ()) -> dict[str, Any]:
    """Describe a histogram as the receipt does, by the number of bins and the described feature of each axis."""
    described = [{"bins": bins, "feature": dict(feature)} for bins, feature in axes]
    return {"kind": "histogram", "table": table, "counts": counts.value, "axes": described}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums of the centred coordinates of an ordered column, by the bins of axes."""

    block: Block
    axes: tuple[Axis, ...]
    column: str
    size: int
    """Codes of the column."""
    additive: ClassVar = False
    unit: ClassVar = 1
    chooses: ClassVar = False

    def __post_init__(self) -> None:
        for axis in self.axes:
            axis.feature.check_table(self.table)
        if any(axis.feature.in_degree is not None for axis in self.axes):
            raise ValueError(f"{self.table}: sums are not taken by in-degrees, which other entities move")

    @property
    def table(self) -> str:
        """The table whose rows are summed."""
        return self.block.table

    @property
    def draws(self) -> int:
        """How many sums there are."""
        return prod(axis.size for axis in self.axes)

    @property
    def sensitivity(self) -> int:
        """One row moves one sum by at most COORDINATE."""
        return self.block.cap * COORDINATE

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        axes = [axis.to_json() for axis in self.axes]
        return {"kind": "sums", "table": self.table, "axes": axes, "column": self.column}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependence:
    """Rows times the mutual information between two halves of columns, in units of what one row can move."""

    block: Block
    split: ColumnSplit
    columns: Mapping[str, ColumnFacts]
    most_rows: int
    """No block of the table has more."""
    draws: ClassVar = 1
    additive: ClassVar = False
    unit: ClassVar = 1
    chooses: ClassVar = False

    @property
    def table(self) -> str:
        """The table of the block."""
        return self.block.table

    @property
    def sensitivity(self) -> int:
        """What the rows of an entity can move."""
        return self.block.cap * ROW_SCORE

    def bits(self, score: float) -> float:
        """A score in bits: rows times mutual information."""
        return float(score * dependence_bound(self.most_rows) / 2**SCORE_BITS)

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        left, right = self.split
        return {"kind": "dependence", "table": self.table, "left": list(left), "right": list(right)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeavyHitters:
    """The ticks of low .. high with large counts of weights; about `false` of them are there by noise alone."""

    table: str
    column: str
    grid: Grid
    low: int
    high: int
    false: float
    block: ClassVar = None
    additive: ClassVar = True
    unit: ClassVar = ENTITY_WEIGHT
    sensitivity: ClassVar = ENTITY_WEIGHT
    chooses: ClassVar = False

    @property
    def draws(self) -> int:
        """Each tick has a noisy count, though few are looked at."""
        return self.high - self.low + 1

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        counts = {"counts": Counts.WEIGHTS.value, "values": self.draws}
        return {"kind": "heavy hitters", "table": self.table, "column": self.column, **counts}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentValues:
    """The values of a column that enough entities vote for: ticks of low .. high, or strings not in `without`.

    Which values there are is private, so that this needs a threshold, and a part of delta.
    """

    table: str
    column: str
    grid: Grid | None = None
    low: int = 0
    high: int = 0
    without: tuple[str, ...] = ()
    block: ClassVar = None
    draws: ClassVar = 1
    additive: ClassVar = True
    unit: ClassVar = 1
    sensitivity: ClassVar = 1
    chooses: ClassVar = False

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return {"kind": "heavy hitters", "table": self.table, "column": self.column, "counts": Counts.VOTES.value}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedRowSplit:
    """The paper's row split as published: noise on each row's distance. Not private as claimed, and marked so."""

    block: Block
    columns: Mapping[str, ColumnFacts]
    rounds: int
    fewest: int
    additive: ClassVar = False
    unit: ClassVar = 1
    chooses: ClassVar = False

    @property
    def table(self) -> str:
        """The table of the block."""
        return self.block.table

    @property
    def draws(self) -> int:
        """One for each round."""
        return self.rounds

    @property
    def sensitivity(self) -> int:
        """The largest distance that a row can have to a centre, for each row of an entity."""
        return 2 * COORDINATE * len(self.columns) * self.block.cap

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return {
            "kind": "published row split",
            "table": self.table,
            "columns": list(self.columns),
            "rounds": self.rounds,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapChoice:
    """Which cap on the rows per entity cuts few entities for its public penalty.

    One entity more lowers each score by 1 or leaves it, so that all scores move the same way.
    """

    table: str
    candidates: tuple[int, ...]
    penalties: tuple[int, ...]
    owner: LinkFacts | None
    """The owner key of the table: rows whose owner is cut off do not count."""
    orphans: bool = False
    """Whether rows without owner count though the key may not be NULL."""
    block: ClassVar = None
    sensitivity: ClassVar = 1
    monotone: ClassVar = True
    unit: ClassVar = 1
    draws: ClassVar = 1
    chooses: ClassVar = True
    kind: ClassVar = "choice of cap"

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return _choice_json(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitChoice:
    """Which split of columns has the least dependence between its halves."""

    block: Block
    candidates: tuple[ColumnSplit, ...]
    columns: Mapping[str, ColumnFacts]
    most_rows: int
    monotone: ClassVar = False
    unit: ClassVar = 1
    draws: ClassVar = 1
    chooses: ClassVar = True
    kind: ClassVar = "choice of column split"

    @property
    def table(self) -> str:
        """The table of the block."""
        return self.block.table

    @property
    def sensitivity(self) -> int:
        """What the rows of an entity can move."""
        return self.block.cap * ROW_SCORE

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return _choice_json(self)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two axes of which is asked how far they are from a public table of expected weights, less a public penalty.

    All in units of weight: `expected` by bins of the first and second axis.
    """

    first: Axis
    second: Axis
    expected: NDArray[np.int64]
    penalty: int

    @property
    def sensitivity_factor(self) -> int:
        """By how many times an entity's weight one entity can move the table of the two."""
        return sensitivity_factor([self.first.feature, self.second.feature])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairChoice:
    """Which pair is the farthest from what is expected of it; the last candidate, none, has a distance of 0.

    A distance is divided by what an entity's weight can move it, so that an entity moves a score by its weight.
    """

    table: str
    candidates: tuple[Pair, ...]
    full_rows: int = 1
    """The rows from which on an entity weighs the same; of fewer, in proportion to them."""
    foreseen: tuple[tuple[Axis, Axis], ...] = ()
    """Axes that later choices may be about. They change no answer: an engine may count them in the same pass."""
    block: ClassVar = None
    sensitivity: ClassVar = ENTITY_WEIGHT
    monotone: ClassVar = False
    unit: ClassVar = ENTITY_WEIGHT
    draws: ClassVar = 1
    chooses: ClassVar = True
    kind: ClassVar = "choice of pair"

    def __post_init__(self) -> None:
        _check_full_rows(self.table, self.full_rows)
        pairs = (*((pair.first, pair.second) for pair in self.candidates), *self.foreseen)
        different = {id(axis): axis for pair in pairs for axis in pair}
        _check_axes(self.table, tuple(different.values()), by_rows=False)

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return _choice_json(self)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A candidate dependency: what rows of a table either agree with, differ from, or are idle about, by a feature."""

    table: str
    feature: Feature

    def __post_init__(self) -> None:
        self.feature.check_table(self.table)
        if not isinstance(self.feature.source, Agreement | Nearness):
            raise ValueError(f"{self.table}: {self.feature.name} says of no row that it agrees or differs")

    def to_json(self) -> dict[str, Any]:
        """Describe the candidate as the receipt does."""
        return {"table": self.table, "feature": self.feature.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DependencyChoice:
    """Which candidate dependency, of any table, holds for the most weight; the last one, none, has a public score.

    What counts against rows that agree: of an agreement the rows that differ; of a nearness the dates, of the rows that
    have a base, in the fullest window of RATIO times as many days.
    """

    table: str
    """The entity table: entities are weighed, by their rows in the tables of the candidates."""
    candidates: tuple[Dependency, ...]
    none: int = 0
    block: ClassVar = None
    sensitivity: ClassVar = ENTITY_WEIGHT
    monotone: ClassVar = False
    unit: ClassVar = ENTITY_WEIGHT
    draws: ClassVar = 1
    chooses: ClassVar = True
    kind: ClassVar = "choice of dependency"

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        return _choice_json(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DependencyVotes:
    """What entities say of several candidate dependencies at once: a row of three counts for each of them.

    An entity has one vote. It is given against the candidates that its rows differ from, in proportion to their shares
    if these are more than one together. Of what is left, each candidate gets an even part, divided among those that
    agree and those that are idle by the shares of the entity's rows.
    """

    table: str
    """The entity table."""
    candidates: tuple[Dependency, ...]
    block: ClassVar = None
    additive: ClassVar = True
    unit: ClassVar = ENTITY_WEIGHT
    sensitivity: ClassVar = ENTITY_WEIGHT
    chooses: ClassVar = False

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ValueError(f"{self.table}: there is nothing to vote on")

    @property
    def draws(self) -> int:
        """Three counts for each candidate."""
        return VOTE_CELLS * len(self.candidates)

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""
        candidates = [candidate.to_json() for candidate in self.candidates]
        return {"kind": "votes on dependencies", "table": self.table, "candidates": candidates}


Counted = Histogram | Sums | Dependence | HeavyHitters | FrequentValues | DependencyVotes
"""What is answered by noisy counts."""
Choice = CapChoice | SplitChoice | PairChoice | DependencyChoice
"""What is answered by the number of a candidate."""
Query = Counted | Choice | PublishedRowSplit


def sensitivity_factor(features: list[Feature]) -> int:
    """By how many times an entity's weight one entity can move a weighted histogram of several features.

    An entity has one key that counts for each of those that count keys.
    """
    return 1 + sum(feature.sensitivity_factor - 1 for feature in features)


def _check_axes(table: str, axes: tuple[Axis, ...], *, by_rows: bool) -> None:
    """Refuse features of other tables, and in-degrees that an entity moves farther than a sensitivity says.

    Where rows count, all keys of kept rows do, and a row of the table must itself be referenced: below an owner, one
    key would move all of its rows. Where weights count, one key of each entity does.
    """
    for axis in axes:
        axis.feature.check_table(table)
        counted = axis.feature.in_degree
        if counted is None:
            continue
        if by_rows and axis.feature.source is not counted:
            raise ValueError(f"{table}: rows are not counted by the in-degree of an owner or of a first row")
        if (counted.cap is not None) != by_rows:
            wanted = "up to the cap of their table" if by_rows else "one of each entity"
            raise ValueError(f"{table}: keys of {counted.link.name} must be counted {wanted} here")


def _check_full_rows(table: str, full_rows: int) -> None:
    """Refuse what does not divide ENTITY_WEIGHT: rows of small entities would not all weigh what they should."""
    if not 1 <= full_rows <= MOST_FULL_ROWS or full_rows & (full_rows - 1):
        raise ValueError(f"{table}: full_rows is {full_rows}, but must be a power of two up to {MOST_FULL_ROWS}")


def _cap(cap: int | None) -> int:
    if cap is None:
        raise ValueError("an in-degree is counted by rows, but the table of its keys has no cap")
    return cap


def _choice_json(query: Choice) -> dict[str, Any]:
    return {"kind": query.kind, "table": query.table, "candidates": len(query.candidates)}
