"""A private table in an estimate from a sample: rows at hand as codes, with the rows that their keys name.

A filter weighs a row by the share of its code's cell that satisfies it; joins add up and look up weights along keys.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from privbench.encode.predicate import All, parts_of
from privbench.errors import SpecError
from privbench.pipeline.join_context import Filters, JoinContext, Weight, added_up, looked_up, product
from privbench.pipeline.spread import Shares
from privbench.schema.unit import Link


class SampledNode:
    """Rows of a private table with everything beyond it in the tree of joins."""

    def __init__(
        self, context: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        assert context.sample is not None  # noqa: S101  else the table is a PrivateNode
        self._context = context
        self._table = context.model.protection.schema.table(name)
        self._sample = context.sample.tables[name]
        weight: Shares = np.ones(self._sample.rows) * product(below)
        held = [link for link in context.model.protection.links if link.table == name]
        keys = {c: link for link in held for c in link.key.columns}
        codecs = context.model.codecs[name]
        for column, predicates in filters.items() if self._sample.rows else ():
            if column in codecs:
                weight = weight * codecs[column].coverage(All(parts=predicates))[self._sample.codes[column]]
            elif column not in keys:
                weight = weight * context.met_by_key(f"{name}.{column}", self._table, column, predicates)
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
        targets = self._context.sizes[link.key.table]
        if not self._sample.rows:
            return np.zeros(targets)
        return added_up(self.per_row, self._sample.targets[link.name], targets=targets)

    def _looked_up(self, link: Link, target: Weight) -> Shares:
        return looked_up(target, self._sample.targets[link.name], targets=self._context.sizes[link.key.table])

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
            parent = self._context.model.protection.schema.table(link.key.table)
            where = f"{self._table.name}.{column}"
            met = self._context.met_by_key(where, parent, link.key.references[0], of_values)
            weight = weight * self._looked_up(link, met)
        return np.asarray(weight)
