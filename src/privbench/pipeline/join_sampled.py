"""A private table in an estimate from a sample: rows at hand as codes, with the rows that their keys name.

A filter weighs a row by the share of its code's cell that satisfies it; joins add up and look up weights along keys.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from privbench.encode.predicate import All, parts_of
from privbench.errors import SpecError
from privbench.pipeline.join_context import Filters, JoinContext, Weight, product
from privbench.pipeline.spread import Shares
from privbench.schema.unit import Link


class SampledNode:
    """Rows of a private table with everything beyond it in the tree of joins."""

    def __init__(
        self, estimate: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        assert estimate.sample is not None  # noqa: S101  else the table is a PrivateNode
        self._estimate = estimate
        self._table = estimate.model.protection.schema.table(name)
        self._sample = estimate.sample.tables[name]
        weight: Shares = np.ones(self._sample.rows) * product(below)
        held = [link for link in estimate.model.protection.links if link.table == name]
        keys = {c: link for link in held for c in link.key.columns}
        codecs = estimate.model.codecs[name]
        for column, predicates in filters.items() if self._sample.rows else ():
            if column in codecs:
                weight = weight * codecs[column].coverage(All(parts=predicates))[self._sample.codes[column]]
            elif column not in keys:
                weight = weight * estimate.met_by_key(f"{name}.{column}", self._table, column, predicates)
            else:
                weight = weight * self._met(keys[column], column, All(parts=predicates))
        for link, target in above.items() if self._sample.rows else ():
            weight = weight * self._looked_up(link, target)
        self.per_row: Shares = weight

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.per_row.sum())

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key names a row, for each row that it can name."""
        targets = self._estimate.sizes[link.key.table]
        if not self._sample.rows:
            return np.zeros(targets)
        named = self._sample.targets[link.name]
        return np.asarray(np.bincount(named[named >= 0], self.per_row[named >= 0], targets), np.float64)

    def _looked_up(self, link: Link, target: Weight) -> Shares:
        """The weight of the row that each key names; NULL meets nothing."""
        named = self._sample.targets[link.name]
        there = np.broadcast_to(np.asarray(target, np.float64), (self._estimate.sizes[link.key.table],))
        found: Shares = np.append(there, 0.0)[named]
        return found

    def _met(self, link: Link, column: str, predicates: All) -> Shares:
        """Which keys satisfy predicates: on the value of the row they name, or on whether they name one."""
        if len(link.key.columns) > 1:
            raise SpecError(f"{self._table.name}.{column}: a filter on one column of a key of several.")
        nulls, of_values = parts_of(predicates)
        valid = self._sample.targets[link.name] >= 0
        weight = np.ones(len(valid))
        for null in nulls:
            weight = weight * (valid if null.negated else ~valid)
        if of_values:
            parent = self._estimate.model.protection.schema.table(link.key.table)
            where = f"{self._table.name}.{column}"
            met = self._estimate.met_by_key(where, parent, link.key.references[0], of_values)
            weight = weight * self._looked_up(link, met)
        return np.asarray(weight)
