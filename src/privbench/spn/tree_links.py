"""Links that stand in the networks themselves: what a row says of its children, of who names it, of what it names.

The bin of each number is a column of a network, so that it depends on the other columns of the row; a link says which
column that is and how to draw a number or a row from its code. All of it was released; drawing is post-processing.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.fanouts import MANY, Edges
from privbench.spn.links import DegreeCounts, LinkCounts, SlotCounts

STEEPEST = 64.0
"""The largest exponent of a power law inside a bin, up or down."""
FLOOR = 1e-3
"""How often a row that no key named counts as named, so that any row can be."""
EVEN = 1e6
"""From this shape on, rates are taken as all alike."""
MOST_MORE = 2.0**20
"""Keys that were not counted for each that was: whatever the count, a Poisson draw then fits 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fanouts:
    """An owner key whose rows are born with their owner: the owner's network says how many."""

    column: str
    """Of the owner table's network: the bin of an owner row's number of rows."""
    edges: Edges  # (bins + 1,)
    exponent: float
    """Inside a bin P(x) ~ x**-exponent."""
    unowned: float
    """Expected rows without an owner, at scale 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _checked(self.edges, self.exponent))
        if not (math.isfinite(self.unowned) and self.unowned >= 0):
            raise ModelError("a link has an impossible number of rows without an owner.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Keys that name rows beside the counted ones: how uneven their rates are, and how many there are.

    The rate of a row with n counted keys is more * Gamma(shape + n) * mean / (shape + mean), with the mean count of
    rows of its kind.
    """

    shape: float = EVEN
    more: float = 0.0
    """Keys that were not counted for each that was."""

    def __post_init__(self) -> None:
        if not (0 < self.shape <= EVEN and 0 <= self.more <= MOST_MORE):  # written so that NaN fails
            raise ModelError("a link has impossible rates at which rows are named.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Named:
    """A reference key: its targets are drawn in proportion to how often they are named."""

    column: str | None
    """Of the target table's network: the bin of how many counted keys name a row; None: not known, all rows alike."""
    edges: Edges = field(default_factory=lambda: np.array([0, 1], np.int64))  # (bins + 1,)
    exponent: float = 0.0
    null: str | None
    """Of the own network: the column whose code 1 means NULL; None for a key that is never NULL."""
    uncounted: Rates = field(default_factory=Rates)
    """Keys that name a row beside the counted ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _checked(self.edges, self.exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A key into a public table whose rows ("slots") are divided into blocks of about the same size."""

    column: str
    """Of the own network: slot * blocks // slots of the row named; one code more, the last, for NULL."""
    blocks: int
    slots: int

    def __post_init__(self) -> None:
        if not 0 <= self.blocks <= self.slots:
            raise ModelError(f"a link divides {self.slots} rows into {self.blocks} blocks.")
        if (self.blocks == 0) != (self.slots == 0):
            raise ModelError("a link has rows but no blocks.")


TreeLink = Fanouts | Named | Blocks
LinkModel = LinkCounts | TreeLink
"""What is released of a key, by any method."""


def counted(link: LinkModel) -> LinkCounts:
    """A link that is known to hold counts of its own; ModelError if it does not."""
    if isinstance(link, SlotCounts | DegreeCounts):
        return link
    raise ModelError("a link that stands in the networks was asked for counts of its own.")


def slots_of(link: Blocks, codes: NDArray[np.integer], *, rng: np.random.Generator) -> NDArray[np.int64]:
    """A slot of the block that each code stands for, evenly over the block; -1 for NULL.

    >>> link = Blocks(column="#key", blocks=2, slots=5)
    >>> slots_of(link, np.array([0, 0, 0, 1, 1, 2]), rng=np.random.default_rng(0)).tolist()
    [1, 2, 0, 3, 4, -1]
    """
    starts = -(-np.arange(link.blocks + 2) * link.slots // max(link.blocks, 1))
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes, minlength=link.blocks + 1)
    offsets = rng.random(len(counts))
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    mine = codes[order]
    at = (rank + offsets[mine]) / counts[mine]
    found = np.empty(len(codes), np.int64)
    wide = starts[mine + 1] - starts[mine]
    found[order] = starts[mine] + np.minimum((at * wide).astype(np.int64), wide - 1)
    return np.where(codes >= link.blocks, -1, found)


def _checked(edges: Edges, exponent: float) -> Edges:
    found = np.array(edges)
    if found.ndim != 1 or found.size < 2 or found.dtype != np.int64:
        raise ModelError(f"a link needs the edges of bins as a list of integers, got shape {found.shape}.")
    if found[0] < 0 or found[-1] > MANY or (np.diff(found) < 1).any():
        raise ModelError("the edges of a link's bins do not ascend from 0 or more, or are too large.")
    if not abs(exponent) <= STEEPEST:  # written so that NaN fails
        raise ModelError(f"a link has an exponent beyond {STEEPEST:g}.")
    found.setflags(write=False)
    return found
