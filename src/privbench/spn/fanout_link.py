"""The link of an owner key whose rows come with their owner: the owner's network says how many each owner has."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.schema.unit import Link, LinkKind
from privbench.spn.checks import text_field
from privbench.spn.fanouts import Edges, checked_edges
from privbench.spn.link import (
    NULL,
    Arrays,
    LinkColumn,
    LinkModel,
    NumbersInBins,
    Rng,
    RowBlock,
    TargetRows,
    Targets,
    WithOwner,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FanoutLink(NumbersInBins, LinkModel):
    """How many child rows come with each owner row: a number in the bin that a column of the owner holds."""

    kind: ClassVar[str] = "fanouts"
    keys: ClassVar[frozenset[LinkKind]] = frozenset({LinkKind.OWNER})

    column: str
    """Of the owner table's network: the bin of an owner row's number of rows."""
    edges: Edges  # (bins + 1,)
    exponent: float
    """Inside a bin P(x) ~ x**-exponent."""
    unowned: float
    """Expected rows without an owner, at scale 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", checked_edges(self.edges, self.exponent))
        if not (math.isfinite(self.unowned) and self.unowned >= 0):
            raise ModelError("a link has an impossible number of rows without an owner.")

    @property
    def with_owner(self) -> WithOwner:
        return self

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:  # noqa: ARG002
        """The bins of fanouts, in the network of the owner."""
        return (self.bins,)

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:  # noqa: ARG002
        """The owners of the block, each as often as it has rows."""
        if block.owners is None or block.fanouts is None:
            return np.full(block.rows, NULL, np.int64)
        return np.repeat(np.arange(*block.owners), block.fanouts)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        arrays[where] = self.edges
        return {"array": where, "column": self.column, "exponent": self.exponent, "unowned": self.unowned}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        return cls(
            column=text_field(header, "column"),
            edges=array(header["array"]),
            exponent=float(header["exponent"]),
            unowned=float(header["unowned"]),
        )
