"""The link of a key that stays inside the entity: targets are the entity's own rows, as often as in-degrees say.

All rows of an entity are in one block, and the rows that its keys can reference stand in one run of the target table.
A key takes one of the places that the in-degrees of these rows make. Where there are fewer places than keys, further
keys go to any row of the entity, or, where a row may be referenced once, to those that nobody referenced yet; a key for
which there is no row is NULL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
)

FLOOR = 1e-3
"""How often a row that no key references counts as referenced where there are too few places."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InsideLink(NumbersInBins, LinkModel):
    """How many keys of its own entity reference each target row, in bins; and which keys are NULL."""

    kind: ClassVar[str] = "inside"
    keys: ClassVar[frozenset[LinkKind]] = frozenset({LinkKind.INSIDE})
    places_in_block: ClassVar[bool] = True

    column: str
    """Of the target table's network: the bin of how many keys reference a row."""
    edges: Edges  # (bins + 1,)
    exponent: float
    """Inside a bin P(x) ~ x**-exponent."""
    null: str | None
    """Of the own network: the column whose code 1 means NULL; None for a key that is never NULL."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", checked_edges(self.edges, self.exponent))

    @property
    def within_entity(self) -> bool:
        return True

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:  # noqa: ARG002
        """The bins of in-degrees in the target's network, whether the key is NULL in the own."""
        return (self.bins,) if self.null is None else (self.bins, LinkColumn(name=self.null, codes=2))

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        """The target row of each key, -1 for NULL; of a key to the same table, its place in the block."""
        null = np.zeros(block.rows, bool) if self.null is None else block.codes[self.null] == 1
        holders = np.flatnonzero(~null)
        drawn = np.full(block.rows, NULL, np.int64)
        if targets.key.target == targets.key.table:
            degrees, own = self.numbers(targets.network, block.codes, rng=rng), block.entities()
            drawn[holders] = draw_inside(own[holders], own, degrees, once=targets.key.unique, rng=rng)
        elif targets.carried is not None and len(holders):
            own, column = block.entities()[holders], targets.carried.mapped(targets.entity)
            rows = _places_of(column, own)
            degrees = targets.carried.mapped(targets.number)[rows]
            places = draw_inside(own, column[rows], degrees, once=targets.key.unique, rng=rng)
            drawn[holders] = np.append(rows, NULL)[places]
        return drawn

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:
        arrays[where] = self.edges
        return {"array": where, "column": self.column, "exponent": self.exponent, "null": self.null}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:
        null = None if header["null"] is None else text_field(header, "null")
        column, edges = text_field(header, "column"), array(header["array"])
        return cls(column=column, edges=edges, exponent=float(header["exponent"]), null=null)


def draw_inside(holders: Targets, entities: Targets, degrees: Targets, *, once: bool, rng: Rng) -> Targets:
    """A place among rows of the same entity for each key, -1 where there is none.

    `holders` are the entities of the keys, `entities` and `degrees` those of the rows that they can reference.

    >>> keys, rows, degrees = np.array([3, 3, 3, 4]), np.array([3, 3]), np.array([2, 0])
    >>> sorted(draw_inside(keys, rows, degrees, once=False, rng=np.random.default_rng(0)).tolist())
    [-1, 0, 0, 0]
    >>> sorted(draw_inside(keys, rows, degrees, once=True, rng=np.random.default_rng(0)).tolist())
    [-1, -1, 0, 1]
    """
    ordered = np.sort(holders)
    keys = np.searchsorted(ordered, entities, side="right") - np.searchsorted(ordered, entities)
    degrees = np.minimum(degrees, keys)  # more places than keys of the entity are of no use
    places = np.arange(len(entities)) if once else np.repeat(np.arange(len(entities)), degrees)
    later = degrees[places] <= 0 if once else np.zeros(len(places), bool)
    places = places[np.lexsort((rng.random(len(places)), later, entities[places]))]
    order = np.lexsort((rng.random(len(holders)), holders))
    drawn = np.full(len(holders), NULL, np.int64)
    drawn[order] = _matched(holders[order], places, entities[places])
    left = np.flatnonzero(drawn < 0)
    if once or not len(left) or not len(entities):
        return drawn
    rows = np.argsort(entities, kind="stable")
    firsts, lasts = (np.searchsorted(entities[rows], holders[left], side=side) for side in ("left", "right"))
    summed = np.append(0.0, np.cumsum(degrees[rows] + FLOOR))
    points = summed[firsts] + rng.random(len(left)) * (summed[lasts] - summed[firsts])
    chosen = np.clip(np.searchsorted(summed, points, side="right") - 1, firsts, np.maximum(lasts - 1, firsts))
    drawn[left] = np.where(firsts < lasts, rows[np.minimum(chosen, len(rows) - 1)], NULL)
    return drawn


def _matched(holders: Targets, places: Targets, entities: Targets) -> Targets:
    """The i-th place of each key's entity for its i-th key, both in the order of entities; -1 where these run out."""
    rank = np.arange(len(holders)) - np.searchsorted(holders, holders)
    at = np.searchsorted(entities, holders) + rank
    there = np.append(entities, NULL)[np.minimum(at, len(entities))] == holders
    return np.where(there, np.append(places, NULL)[np.minimum(at, len(places))], NULL)


def _places_of(entities: NDArray[np.int64], wanted: Targets) -> Targets:
    """The places of the rows of some entities in a table whose rows stand in the order of entities.

    >>> _places_of(np.array([2, 5, 5, 7]), np.array([5, 9, 5])).tolist()
    [1, 2]
    """
    wanted = np.unique(wanted)
    firsts, lasts = (np.searchsorted(entities, wanted, side=side) for side in ("left", "right"))
    rows = lasts - firsts
    return np.repeat(lasts - np.cumsum(rows), rows) + np.arange(rows.sum())
