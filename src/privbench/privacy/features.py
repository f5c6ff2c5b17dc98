"""What a row can be counted by: its own columns, and what the rows of its entity say of it.

A feature is a public description; its codes stay behind the vault. Every feature but `InDegree` is a function of the
rows of the row's own entity, so that a histogram of such features is a sum over entities (docs/proofs/tree.md). The
name of a feature is the column that the table's network has for it (`spn/feature_names.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.magnitude import Magnitudes, steps_of
from privbench.privacy.blocks import Block, CentrePair
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.windows import NEAR
from privbench.schema.computed import Equals
from privbench.schema.types import SqlType
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import RANK_EDGES, Edges
from privbench.spn.feature_names import (
    ACTIVITY,
    FIRST,
    OWNER,
    RANK,
    STRATUM,
    in_degree_column,
    key_column,
    null_column,
    own_column,
    rows_column,
)


@dataclass(frozen=True, slots=True)
class Own:
    """A column of the table."""

    column: str
    kind: ClassVar = "column"


@dataclass(frozen=True, slots=True, eq=False)
class Fanout:
    """How many rows of another table this row owns through their owner key, in bins; with `cap`, of those kept."""

    link: LinkFacts
    edges: Edges
    cap: int | None = None
    kind: ClassVar = "fanout"

    def __post_init__(self) -> None:
        _check_owner_key(self.link)


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """How many rows this row owns through owner keys at all levels, in bins: its child rows, theirs, and so on."""

    links: tuple[LinkFacts, ...]
    """The owner keys of the tables below, each to the table itself or to the table of another of the keys."""
    edges: Edges
    kind: ClassVar = "activity"

    def __post_init__(self) -> None:
        for link in self.links:
            _check_owner_key(link)

    def is_of(self, table: str) -> bool:
        """Whether the keys are a tree below a table, so that every row below a row is counted once."""
        owners = {link.table: link.target for link in self.links}
        reached = {table}
        for _ in self.links:
            reached |= {name for name, owner in owners.items() if owner in reached}
        is_tree = len(owners) == len(self.links) > 0 and table not in owners
        return is_tree and owners.keys() <= reached


@dataclass(frozen=True, slots=True, eq=False)
class InDegree:
    """How many rows reference this row by a key, in bins.

    With `cap`, the rows per entity of the table that holds the key, all keys of the rows that are kept count; without
    one, of each entity a single key counts, chosen by a public hash. Keys that stay inside the entity all count: they
    are of the row's own entity.
    """

    link: LinkFacts
    edges: Edges
    cap: int | None = None
    above: tuple[LinkFacts, ...] = ()
    """The owner keys from the table that holds the key to this one, if any: keys to the row above do not count."""
    kind: ClassVar = "in-degree"

    def __post_init__(self) -> None:
        if self.above:
            _check_above(self.link, self.above)


@dataclass(frozen=True, slots=True)
class NullKey:
    """Whether a key is NULL: code 1."""

    link: LinkFacts
    kind: ClassVar = "null key"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """Whether a key references another row (code 0), the row above that owner keys lead to (1), or is NULL (2).

    A key to a row that is not there references another row.
    """

    link: LinkFacts
    above: tuple[LinkFacts, ...]
    """The owner keys from the table that holds the key to the one that it leads to."""
    kind: ClassVar = "own key"

    def __post_init__(self) -> None:
        _check_above(self.link, self.above)


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Which block of the rows of a public table a key references; NULL is the last code where the key may be NULL."""

    link: LinkFacts
    blocks: int
    kind: ClassVar = "key block"


@dataclass(frozen=True, slots=True)
class KeySlot:
    """Which row a key references, NULL first; a key to a missing row has no code.

    Rows of the entity table stand in a secret random order if `shuffled`, so that an entity that is replaced by another
    may stand anywhere in its table.
    """

    link: LinkFacts
    shuffled: bool
    kind: ClassVar = "key slot"


@dataclass(frozen=True, slots=True)
class OfOwner:
    """A feature of the owner row; a row without owner has a code of its own, the last."""

    feature: "Feature"
    link: LinkFacts
    kind: ClassVar = "owner"

    def __post_init__(self) -> None:
        _check_owner_key(self.link)


@dataclass(frozen=True, slots=True)
class OfFirst:
    """A feature of the first row of the same owner; that row itself, and rows without owner, have the last code."""

    feature: "Feature"
    link: LinkFacts
    kind: ClassVar = "first"

    def __post_init__(self) -> None:
        _check_owner_key(self.link)


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of the row among the rows of its owner, in bins."""

    link: LinkFacts
    kind: ClassVar = "rank"

    def __post_init__(self) -> None:
        _check_owner_key(self.link)


@dataclass(frozen=True, slots=True, eq=False)
class EntityRows:
    """How many rows the entity has in this table, in bins."""

    edges: Edges
    kind: ClassVar = "entity rows"


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """How many rows of a public table reference this row, in bins: known to all, as its id is."""

    link: Mapping[str, Any]
    """The key of the public table, as the receipt names it."""
    codes: NDArray[np.uint16]
    """By row of the entity table, in the order of ids."""
    kind: ClassVar = "public rows"


@dataclass(frozen=True, slots=True)
class Magnitude:
    """The order of magnitude of a column that has no codes yet; NULL has no code."""

    column: str
    type: SqlType
    kind: ClassVar = "magnitude"


@dataclass(frozen=True, slots=True)
class Step:
    """The coarsest step that a value lies on, the last code for none; zero and NULL have no code."""

    column: str
    type: SqlType
    kind: ClassVar = "step"


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of ticks that a value lies in, from each start to the next, the last one to `last`; some left out."""

    column: str
    grid: Grid
    starts: tuple[int, ...]
    last: int
    without: tuple[int, ...]
    kind: ClassVar = "cell"


@dataclass(frozen=True, slots=True)
class Present:
    """Whether a column that has no codes yet has a value: one code; NULL has none."""

    column: str
    kind: ClassVar = "present"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a column equals what the rows around it say: the codes of `privacy/agreement.py`."""

    column: str
    equals: Equals
    plain: float | None
    """The number that unrelated columns may well agree in."""
    link: LinkFacts
    """The owner key that leads to those rows: of the counted table, or of the column's own."""
    kind: ClassVar = "agreement"

    def __post_init__(self) -> None:
        _check_owner_key(self.link)


@dataclass(frozen=True, slots=True)
class Base:
    """A column of the row, or of the row that owner keys lead to, one after the other."""

    column: str
    path: tuple[LinkFacts, ...] = ()

    def __post_init__(self) -> None:
        _check_path(self.column, self.path)

    def table(self, start: str) -> str:
        """The table of the column, for rows of a table."""
        return self.path[-1].target if self.path else start


@dataclass(frozen=True, slots=True)
class Nearness:
    """Whether a date or time is less than so many days from another: the codes of `privacy/differences.py`."""

    column: str
    base: Base
    days: int
    kind: ClassVar = "nearness"

    def __post_init__(self) -> None:
        if self.days not in NEAR:
            raise ValueError(f"{self.column}: whether it is within {self.days} days of another is not looked at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A column that is coded as its difference from a base, and the types of both."""

    table: str
    column: str
    base: Base
    type: SqlType
    base_type: SqlType


@dataclass(frozen=True, slots=True)
class WhichBlock:
    """Which of several disjoint blocks a row is in; a row in none has no code."""

    blocks: tuple[Block, ...]
    kind: ClassVar = "part"


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Which of two released centres a row is nearer to."""

    centres: CentrePair
    columns: Mapping[str, ColumnFacts]
    kind: ClassVar = "cluster"


Source = (
    Own
    | Fanout
    | Activity
    | InDegree
    | NullKey
    | OwnKey
    | KeyBlock
    | KeySlot
    | OfOwner
    | OfFirst
    | Rank
    | EntityRows
    | PublicRows
    | Magnitude
    | Step
    | Cell
    | Present
    | Agreement
    | Nearness
    | WhichBlock
    | Cluster
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """A feature with its codes: how many, whether they are ordered, whether the last one stands apart (NULL)."""

    name: str
    size: int
    ordered: bool
    source: Source = field(repr=False)
    apart: bool = False

    @property
    def in_degree(self) -> InDegree | None:
        """The in-degree behind it, which the keys of other entities move; None for what is a function of the entity."""
        if isinstance(self.source, OfOwner | OfFirst):
            return self.source.feature.in_degree
        counts_others = isinstance(self.source, InDegree) and self.source.link.kind is not LinkKind.INSIDE
        return self.source if isinstance(self.source, InDegree) and counts_others else None

    @property
    def sensitivity_factor(self) -> int:
        """By how many times an entity's weight one entity can move a weighted histogram of this feature.

        Once by its own rows; where keys of other entities are counted, twice more by its one key that counts.
        """
        return 1 if self.in_degree is None else 3

    def check_table(self, table: str) -> None:
        """Refuse a feature that is not one of the rows of a table: it would count something else than it says."""
        source = self.source
        if isinstance(source, Fanout | InDegree) or (isinstance(source, Agreement) and source.equals.rows is not None):
            fits = source.link.target == table
        elif isinstance(source, NullKey | OwnKey | KeyBlock | KeySlot | OfOwner | OfFirst | Rank | Agreement):
            fits = source.link.table == table
        elif isinstance(source, Activity):
            fits = source.is_of(table)
        elif isinstance(source, Nearness):
            fits = not source.base.path or source.base.path[0].table == table
        else:
            fits = True
        if not fits:
            raise ValueError(f"{self.name}: is not a feature of rows of {table}")
        if isinstance(source, OfOwner | OfFirst):
            source.feature.check_table(source.link.target if isinstance(source, OfOwner) else table)

    def to_json(self) -> dict[str, Any]:
        """Describe the feature as the receipt does."""
        source = self.source
        described: dict[str, Any] = {"kind": source.kind}
        if isinstance(source, OfOwner | OfFirst):
            described["feature"] = source.feature.to_json()
        elif isinstance(source, Cluster):
            described["columns"] = list(source.columns)
        elif isinstance(source, Agreement):
            described |= {"column": source.column, "equals": source.equals.words()}
        elif isinstance(source, Nearness):
            base = {"column": source.base.column, "owners": len(source.base.path)}
            described |= {"column": source.column, "base": base, "days": source.days}
        elif isinstance(source, Own | Magnitude | Step | Cell | Present):
            described["column"] = source.column
        elif isinstance(source, PublicRows):
            described["link"] = dict(source.link)
        elif isinstance(source, Fanout | InDegree | NullKey | OwnKey | KeyBlock | KeySlot):
            described["link"] = source.link.to_json()
        return described


def _check_owner_key(link: LinkFacts) -> None:
    if link.kind is not LinkKind.OWNER:
        raise ValueError(f"{link.name}: is no owner key, so that rows of other entities would be looked at")


def _check_path(name: str, path: Sequence[LinkFacts]) -> None:
    for link in path:
        _check_owner_key(link)
    if any(link.target != above.table for link, above in pairwise(path)):
        raise ValueError(f"{name}: its owner keys do not lead from one to the next")


def _check_above(link: LinkFacts, above: Sequence[LinkFacts]) -> None:
    _check_path(link.name, above)
    if not above or (above[0].table, above[-1].target) != (link.table, link.target):
        raise ValueError(f"{link.name}: its owner keys do not lead to the table that it references")


def own(name: str, facts: ColumnFacts) -> Feature:
    """A column of the table."""
    return Feature(name=name, size=facts.size, ordered=facts.ordered, source=Own(name), apart=facts.null)


def fanout(link: LinkFacts, edges: Edges, *, cap: int | None = None) -> Feature:
    """Rows that an owner has through a key."""
    name = rows_column(link.name)
    return Feature(name=name, size=len(edges) - 1, ordered=True, source=Fanout(link, edges, cap))


def activity(links: Sequence[LinkFacts], edges: Edges) -> Feature:
    """Rows that a row owns through owner keys, at all levels."""
    return Feature(name=ACTIVITY, size=len(edges) - 1, ordered=True, source=Activity(tuple(links), edges))


def in_degree(link: LinkFacts, edges: Edges, *, cap: int | None = None, above: Sequence[LinkFacts] = ()) -> Feature:
    """Keys that reference a row; not those of rows below it, if owner keys lead there."""
    name = in_degree_column(link.name)
    return Feature(name=name, size=len(edges) - 1, ordered=True, source=InDegree(link, edges, cap, tuple(above)))


def null_key(link: LinkFacts) -> Feature:
    """Whether a key is NULL: code 1."""
    return Feature(name=null_column(link.name), size=2, ordered=False, source=NullKey(link))


def own_key(link: LinkFacts, above: Sequence[LinkFacts]) -> Feature:
    """Whether a key references another row, the one above it, or is NULL, if it may be."""
    source = OwnKey(link, tuple(above))
    return Feature(name=own_column(link.name), size=2 + link.nullable, ordered=False, source=source)


def key_block(link: LinkFacts, blocks: int) -> Feature:
    """The block of public rows that a key references."""
    size = max(blocks + link.nullable, 1)
    source = KeyBlock(link, blocks)
    return Feature(name=key_column(link.name), size=size, ordered=False, source=source, apart=link.nullable)


def key_slot(link: LinkFacts, *, shuffled: bool) -> Feature:
    """The row that a key references, NULL first."""
    if link.slots is None:
        raise ValueError(f"{link.name}: the rows it can reference are private")
    return Feature(name=key_column(link.name), size=link.slots + 1, ordered=False, source=KeySlot(link, shuffled))


def of_owner(feature: Feature, link: LinkFacts) -> Feature:
    """A feature of the owner row."""
    name = f"{OWNER}{feature.name}"
    return Feature(name=name, size=feature.size + 1, ordered=feature.ordered, source=OfOwner(feature, link), apart=True)


def of_first(feature: Feature, link: LinkFacts) -> Feature:
    """A feature of the first row of the same owner."""
    name = f"{FIRST}{feature.name}"
    return Feature(name=name, size=feature.size + 1, ordered=feature.ordered, source=OfFirst(feature, link), apart=True)


def public_rows(name: str, link: Mapping[str, Any], codes: NDArray[np.uint16]) -> Feature:
    """How many public rows reference an entity."""
    size = int(codes.max(initial=0)) + 1
    return Feature(name=name, size=size, ordered=True, source=PublicRows(link, codes))


def rank(link: LinkFacts) -> Feature:
    """The place among the owner's rows."""
    return Feature(name=RANK, size=len(RANK_EDGES) - 1, ordered=True, source=Rank(link))


def entity_rows(edges: Edges) -> Feature:
    """The rows of the entity in this table."""
    return Feature(name=STRATUM, size=len(edges) - 1, ordered=True, source=EntityRows(edges))


def magnitude(column: str, kind: SqlType) -> Feature:
    """Orders of magnitude of a column."""
    size = Magnitudes(type=kind).size
    return Feature(name=column, size=size, ordered=True, source=Magnitude(column, kind))


def step(column: str, kind: SqlType) -> Feature:
    """The steps that values of a column lie on."""
    return Feature(name=column, size=len(steps_of(kind)) + 1, ordered=True, source=Step(column, kind))


def cell(column: str, grid: Grid, starts: Sequence[int], last: int, without: Sequence[int] = ()) -> Feature:
    """Cells of ticks of a column."""
    source = Cell(column, grid, tuple(starts), last, tuple(without))
    return Feature(name=column, size=len(starts), ordered=True, source=source)


def present(column: str) -> Feature:
    """Whether a column has a value."""
    return Feature(name=column, size=1, ordered=False, source=Present(column))


def agreement(column: str, equals: Equals, plain: float | None, link: LinkFacts) -> Feature:
    """Whether a column equals what the rows around it say: it does, it does not, it does and that says little."""
    return Feature(name=column, size=3, ordered=False, source=Agreement(column, equals, plain, link))


def nearness(column: str, base: Base, days: int) -> Feature:
    """Whether a date lies near another: it does, it does not, one of the two is missing."""
    return Feature(name=column, size=3, ordered=False, source=Nearness(column, base, days))


def part(blocks: Sequence[Block]) -> Feature:
    """Which of several disjoint blocks a row is in."""
    return Feature(name="part", size=len(blocks), ordered=False, source=WhichBlock(tuple(blocks)))


def cluster(centres: CentrePair, columns: Mapping[str, ColumnFacts]) -> Feature:
    """Which of two centres a row is nearer to."""
    return Feature(name="cluster", size=2, ordered=False, source=Cluster(centres, columns))


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A feature in coarse bins: `bins[code]`, numbered from 0; rows of a code with bin -1 are not counted. Public."""

    feature: Feature
    bins: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.bins) != self.feature.size:
            raise ValueError(f"{self.feature.name}: has {self.feature.size} codes, but bins for {len(self.bins)}")

    @property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bins.max()) + 1

    @property
    def total(self) -> bool:
        """Whether every row has a bin."""
        partial = Magnitude | Step | Cell | Present | KeySlot | WhichBlock
        return bool(self.bins.min() >= 0) and not isinstance(self.feature.source, partial)

    @property
    def whole(self) -> bool:
        """Whether every code is a bin of its own."""
        return bool(np.array_equal(self.bins, np.arange(self.feature.size)))

    def to_json(self) -> dict[str, Any]:
        """Describe the axis as the receipt does."""
        return {"bins": self.size, "feature": self.feature.to_json()}


def whole_axis(feature: Feature) -> Axis:
    """Every code a bin of its own."""
    return Axis(feature, np.arange(feature.size))
