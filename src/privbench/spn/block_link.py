"""The link of a key into a public table: a column of the own network says which block of public rows is referenced."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.schema.unit import Link, LinkKind
from privbench.spn.checks import text_field
from privbench.spn.deal import grouped
from privbench.spn.link import NULL, Arrays, LinkColumn, LinkModel, Rng, RowBlock, TargetRows, Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLink(LinkModel):
    """A key into a public table whose rows ("slots") are divided into blocks of about the same size."""

    kind: ClassVar[str] = "blocks"
    keys: ClassVar[frozenset[LinkKind]] = frozenset({LinkKind.CATEGORY})

    column: str
    """Of the own network: slot * blocks // slots of the target row; one code more, the last, for NULL."""
    blocks: int
    slots: int

    def __post_init__(self) -> None:
        if not 0 <= self.blocks <= self.slots:
            raise ModelError(f"a link divides {self.slots} rows into {self.blocks} blocks.")
        if (self.blocks == 0) != (self.slots == 0):
            raise ModelError("a link has rows but no blocks.")

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:
        """The blocks, and NULL, in the own network."""
        return (LinkColumn(name=self.column, codes=max(self.blocks + key.nullable, 1)),)

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """Rows of the blocks that the codes say. The table may have fewer rows now than it had slots."""
        codes = block.codes[self.column].astype(np.int64)
        slots = self.slots_of(codes, rng=rng)
        if not targets.rows:
            return np.full(len(codes), NULL, np.int64)
        if targets.rows == self.slots:
            return slots
        return np.where(slots < 0, NULL, slots * targets.rows // max(self.slots, 1))

    def slots_of(self, codes: NDArray[np.integer], *, rng: Rng) -> Targets:
        """A slot of the block that each code stands for, evenly over the block; -1 for NULL.

        >>> link = BlockLink(column="key", blocks=2, slots=5)
        >>> link.slots_of(np.array([0, 0, 0, 1, 1, 2]), rng=np.random.default_rng(0)).tolist()
        [0, 1, 2, 3, 4, -1]
        """
        if self.blocks == self.slots:
            return _without_null(codes, codes.astype(np.int64, copy=False), self.blocks)
        starts = -(-np.arange(self.blocks + 2) * self.slots // max(self.blocks, 1))
        order = grouped(codes.astype(np.uint32), rng).order
        counts = np.bincount(codes, minlength=self.blocks + 1)
        offsets = rng.random(len(counts))
        rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
        ordered = codes[order]
        at = (rank + offsets[ordered]) / counts[ordered]
        slots = np.empty(len(codes), np.int64)
        width = starts[ordered + 1] - starts[ordered]
        slots[order] = starts[ordered] + np.minimum((at * width).astype(np.int64), width - 1)
        return _without_null(codes, slots, self.blocks)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:  # noqa: ARG002
        return {"column": self.column, "blocks": self.blocks, "slots": self.slots}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:  # noqa: ARG003
        return cls(column=text_field(header, "column"), blocks=_whole(header["blocks"]), slots=_whole(header["slots"]))


def _without_null(codes: NDArray[np.integer], slots: Targets, blocks: int) -> Targets:
    """The slots, and NULL where the code is that of no block."""
    return np.where(codes >= blocks, NULL, slots) if codes.max(initial=0) >= blocks else slots


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) > np.iinfo(np.int64).max // 2**20:
        raise ModelError("a link has a number that no table has rows for.")
    return value
