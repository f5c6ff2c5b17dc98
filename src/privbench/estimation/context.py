"""What the tables of one estimate share: the model, the rows of each table, which of them meet a filter on keys."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privbench.encode.predicate import OfValues, Predicate, satisfying
from privbench.errors import SpecError
from privbench.estimation.sample import sampled
from privbench.estimation.values import Sampled
from privbench.generation.keys import KeyMaker, keeps_entity_keys
from privbench.generation.sizes import planned_rows
from privbench.model.model import Model, is_estimated_by_sample
from privbench.model.order import is_numbered, redrawn_links
from privbench.schema.tables import Place, Table
from privbench.schema.unit import Link, Role
from privbench.spn.link import Shares

Filters = Mapping[str, tuple[Predicate, ...]]
"""Predicates by column."""
Weight = Shares | float
"""Of each row of a table, or of all alike."""


class JoinContext:
    """A model as estimates see it: its tables at scale 1, or a sample where networks say where keys point."""

    def __init__(self, model: Model, *, by_values: Collection[Place] = (), number: int = 0) -> None:
        """`by_values` are the columns whose values are sampled; `number` says which sample is looked at."""
        self.model = model
        self.by_values = by_values
        self.sample: Sampled | None = sampled(model, number) if by_values or is_estimated_by_sample(model) else None
        self.planned = planned_rows(model, 1.0)
        self._kept = keeps_entity_keys(model, 1.0)
        self._keys = KeyMaker(model, keep_entity_keys=self._kept, folder=Path())

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The rows of each table, as many as weights of rows have entries."""
        private = {} if self.sample is None else {name: table.rows for name, table in self.sample.tables.items()}
        return self.planned | private

    @cached_property
    def redrawn(self) -> tuple[Link, ...]:
        """Keys of public tables that are redrawn."""
        return redrawn_links(self.model.protection, keep_entity_keys=self._kept)

    def key_mask(
        self, where: str, table: Table, column: str, predicates: Sequence[Predicate] | Sequence[OfValues]
    ) -> Shares:
        """Which rows have a key that satisfies predicates: 0 or 1, or in a sample the share of rows it stands for."""
        private = self.model.protection.roles[table.name] is not Role.PUBLIC
        if private and not is_numbered(table, (column,)):
            raise SpecError(f"{table.name}.{column}: the model does not know which values this key has in which row.")
        values = self._keys.values(table.name, column, np.arange(self.planned[table.name]))
        mask = satisfying(where, table.column(column).type, values, predicates).astype(np.float64)
        return mask if self.sizes[table.name] == len(mask) else _spread_over(mask, self.sizes[table.name])


def product(weights: Sequence[Weight]) -> Weight:
    """The weights of the same rows, multiplied."""
    result: Weight = 1.0
    for weight in weights:
        result = result * weight
    return result


def looked_up(target: Weight, rows: NDArray[np.int64], *, targets: int) -> Shares:
    """The weight of the target row of each key, one of `targets` rows; a key without target, -1, meets nothing."""
    weights: Shares = np.append(np.broadcast_to(np.asarray(target, np.float64), (targets,)), 0.0)[rows]
    return weights


def added_up(weights: Shares, rows: NDArray[np.int64], *, targets: int) -> Shares:
    """The weight of the rows whose keys have a target, for each of `targets` rows."""
    return np.asarray(np.bincount(rows[rows >= 0], weights[rows >= 0], targets), np.float64)


def _spread_over(mask: Shares, rows: int) -> Shares:
    """The mean of the stretch of `mask` that each of another number of rows stands for."""
    if not len(mask):
        return np.zeros(rows)
    edges = np.arange(rows + 1) * (len(mask) / max(rows, 1))
    summed = np.interp(edges, np.arange(len(mask) + 1), np.append(0.0, np.cumsum(mask)))
    return np.asarray(np.diff(summed) * (rows / len(mask)))
