"""A private table in an estimate from a sample: rows at hand as codes, with the rows that their keys name.

A filter weighs a row by the share of what it stands for that satisfies it; joins add up and look up weights along keys.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from privbench.estimation.context import Filters, JoinContext, Weight, added_up, looked_up, product
from privbench.estimation.filter_mask import rows_met
from privbench.estimation.spread import Shares
from privbench.schema.unit import Link


class SampledNode:
    """Rows of a private table with everything beyond it in the tree of joins."""

    def __init__(
        self, context: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        assert context.sample is not None  # noqa: S101  else the table is a PrivateNode
        self._context = context
        self._sample = context.sample.tables[name]
        weight: Shares = np.ones(self._sample.rows) * product(below)
        for column, predicates in filters.items() if self._sample.rows else ():
            weight = weight * rows_met(context, name, column, predicates)
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
