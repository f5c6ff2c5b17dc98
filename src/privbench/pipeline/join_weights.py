"""Rows that joins of a query have on average, table by table: what each row weighs with everything joined to it.

Every table passes on the weight of its rows: one number if all rows are alike, one per row where keys tell rows apart
(the entity table, public tables). A private row's keys are drawn given the part of the network that the row comes
from, and independently of the rows they name; so one pass over the tree of joins is exact.
"""

import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.predicate import All, IsNull, Predicate, parts_of
from privbench.errors import SpecError
from privbench.pipeline.generate import planned_rows
from privbench.pipeline.join_tree import Edge, JoinTree
from privbench.pipeline.keymaker import KeyMaker, keeps_entity_keys
from privbench.pipeline.match import rows_named, satisfying
from privbench.pipeline.model import Model
from privbench.pipeline.order import is_numbered, stale_links
from privbench.pipeline.spread import Shares, spread
from privbench.schema.model import Table
from privbench.schema.unit import Link, LinkKind, Role
from privbench.spn.infer import probability
from privbench.spn.links import COMPONENT

Filters = Mapping[str, tuple[Predicate, ...]]
"""Predicates by column."""
Weight = Shares | float
"""Of each row of a table, or of all alike."""


class JoinWeights:
    """One pass over the joins of one query."""

    def __init__(self, model: Model, tree: JoinTree, filters: Mapping[str, Filters]) -> None:
        self._model = model
        self._tree = tree
        self._filters = filters
        self.sizes = planned_rows(model, 1.0)
        self._kept = keeps_entity_keys(model, 1.0)
        self._keys = KeyMaker(model, keep_entity_keys=self._kept, folder=Path())

    def total(self) -> float:
        """The product over the trees of the forest of joins."""
        left, product = dict(self._tree.tables), 1.0
        while left:
            root = next(iter(left))
            for alias in self._reached(root):
                del left[alias]
            product *= self._node(root, None).total
        return product

    def _reached(self, root: str) -> list[str]:
        reached = [root]
        for alias in reached:
            for edge in self._tree.edges:
                if alias in (edge.holder, edge.target):
                    reached += [a for a in (edge.holder, edge.target) if a not in reached]
        return reached

    def _node(self, alias: str, came_by: Edge | None) -> "_PrivateNode | _PublicNode":
        """A table with everything beyond it, seen from the edge that led here."""
        edges = [e for e in self._tree.edges if e is not came_by and alias in (e.holder, e.target)]
        above = {e.link: self._node(e.target, e).per_row for e in edges if e.holder == alias}
        below = [self._node(e.holder, e).per_target(e.link) for e in edges if e.target == alias]
        name = self._tree.tables[alias]
        kind = _PublicNode if self._model.protection.roles[name] is Role.PUBLIC else _PrivateNode
        return kind(self, name, self._filters[alias], above, below)

    @property
    def model(self) -> Model:
        return self._model

    def rows(self, table: str) -> int:
        return self.sizes[table]

    def key_values(self, table: Table, column: str) -> pa.Array:
        """The values of a key column, row by row, where the model knows them."""
        if self._model.protection.roles[table.name] is not Role.PUBLIC and not is_numbered(table, (column,)):
            raise SpecError(f"{table.name}.{column}: the model does not know which values this key has in which row.")
        return self._keys.values(table.name, column, np.arange(self.sizes[table.name]))

    @cached_property
    def stale(self) -> tuple[Link, ...]:
        """Keys of public tables that are drawn anew."""
        return stale_links(self._model.protection, keep_entity_keys=self._kept)

    def entity_keys(self) -> pa.Table | None:
        return self._model.entity_keys


class _PrivateNode:
    """Rows of a private table: alike but for the part they come from and, in the entity table, their place."""

    def __init__(
        self, estimate: JoinWeights, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        self._estimate = estimate
        self._table = estimate.model.protection.schema.table(name)
        self._rows = estimate.rows(name)
        self._place: Weight = _product(below)
        self._parts = self._evidence(filters)
        held = [link for link in estimate.model.protection.links if link.table == name]
        for link in held:
            self._parts = self._parts * self._along(link, filters, above.get(link))

    @property
    def per_row(self) -> Weight:
        """The weight of each row."""
        return float(self._parts.sum()) * self._place

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return self._rows * float(np.mean(self.per_row)) if self._rows else 0.0

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key names a row, for each row that it can name."""
        found = spread(self._estimate.model, link, sizes=self._estimate.sizes)
        weights = self._rows * self._parts * float(np.mean(self._place)) if self._rows else np.zeros_like(self._parts)
        if found.rows is None:
            return float(weights @ (1 - found.null)) / max(self._estimate.rows(link.key.table), 1)
        return np.asarray(weights @ found.rows)

    def _evidence(self, filters: Filters) -> Shares:
        """The share of rows that come from each part and satisfy the filters on modelled columns."""
        model, name = self._estimate.model, self._table.name
        codecs, keys = model.codecs[name], {c for key in self._table.foreign_keys for c in key.columns}
        for column in (c for c in filters if c not in codecs and c not in keys):
            key = self._estimate.key_values(self._table, column)
            met = satisfying(f"{name}.{column}", self._table.column(column).type, key, filters[column])
            self._place = self._place * met.astype(np.float64)
        network = model.tables[name].network
        evidence = {c: codecs[c].coverage(All(parts=p)) for c, p in filters.items() if c in codecs}
        parts = np.eye(network.sizes[COMPONENT])
        return np.array([probability(network, evidence | {COMPONENT: part}) for part in parts])

    def _along(self, link: Link, filters: Filters, target: Weight | None) -> Shares | float:
        """What a key's join and filters leave of the rows of each part."""
        asked = [c for c in link.key.columns if c in filters]
        if target is None and not asked:
            return 1.0
        found = spread(self._estimate.model, link, sizes=self._estimate.sizes)
        if not asked:
            return found.weight(1.0 if target is None else target)
        if len(link.key.columns) > 1:
            raise SpecError(f"{self._table.name}.{asked[0]}: a filter on one column of a key of several.")
        nulls, of_values = parts_of(All(parts=filters[asked[0]]))
        value: Weight = 1.0 if target is None else target
        if of_values:
            parent = self._estimate.model.protection.schema.table(link.key.table)
            keys = self._estimate.key_values(parent, link.key.references[0])
            type_ = parent.column(link.key.references[0]).type
            value = value * satisfying(f"{self._table.name}.{asked[0]}", type_, keys, of_values).astype(np.float64)
        here = found.weight(value) * float(all(n.negated for n in nulls))
        null_too = target is None and not of_values and not any(n.negated for n in nulls)
        return here + found.null if null_too else here


class _PublicNode:
    """Rows of a public table, each at hand with its values and the rows that its keys name."""

    def __init__(
        self, estimate: JoinWeights, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        self._estimate = estimate
        self._table = estimate.model.protection.schema.table(name)
        self._content = pq.read_table(io.BytesIO(estimate.model.public[name]))
        weight = np.ones(self._content.num_rows) * _product(below)
        for column, predicates in filters.items():
            self._check(column, predicates)
            values = self._content.column(column)
            weight = weight * satisfying(f"{name}.{column}", self._table.column(column).type, values, predicates)
        for link, target in above.items():
            named = self._named(link)
            if named is None:
                weight = weight * self._valid(link) * np.mean(target)
            else:
                there = np.broadcast_to(np.asarray(target, np.float64), (max(self._estimate.rows(link.key.table), 1),))
                weight = weight * np.where(named < 0, 0.0, there[named])
        self.per_row: Shares = weight

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.per_row.sum())

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key names a row, for each row that it can name."""
        named = self._named(link)
        targets = self._estimate.rows(link.key.table)
        if named is None:
            return float((self.per_row * self._valid(link)).sum()) / max(targets, 1)
        return np.asarray(np.bincount(named[named >= 0], self.per_row[named >= 0], targets), np.float64)

    def _named(self, link: Link) -> NDArray[np.int64] | None:
        """The rows that a key names; None where it is drawn anew over all rows."""
        if link in self._estimate.stale:
            return None
        keys = [self._content.column(c) for c in link.key.columns]
        if link.kind is LinkKind.INBOUND:
            known = self._estimate.entity_keys()
            assert known is not None  # noqa: S101  other inbound keys are drawn anew
            return rows_named(keys, [known.column(c) for c in link.key.references])
        other = pq.read_table(
            io.BytesIO(self._estimate.model.public[link.key.table]), columns=list(link.key.references)
        )
        return rows_named(keys, [other.column(c) for c in link.key.references])

    def _valid(self, link: Link) -> Shares:
        valid = np.ones(self._content.num_rows)
        for column in link.key.columns:
            valid *= self._content.column(column).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        return valid

    def _check(self, column: str, predicates: Sequence[Predicate]) -> None:
        """Values of keys that are drawn anew are not those at hand; whether they are NULL is."""
        drawn = {c for link in self._estimate.stale if link.table == self._table.name for c in link.key.columns}
        if column in drawn and not all(isinstance(p, IsNull) for p in predicates):
            raise SpecError(f"{self._table.name}.{column}: this key is drawn anew, so that its values are not known.")


def _product(weights: Sequence[Weight]) -> Weight:
    result: Weight = 1.0
    for weight in weights:
        result = result * weight
    return result
