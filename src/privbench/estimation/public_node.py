"""A public table in an estimate: its rows are at hand, with their values and the rows that their keys name."""

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.keys import rows_named
from privbench.encode.predicate import IsNull, Predicate, satisfying
from privbench.errors import SpecError
from privbench.estimation.context import Filters, JoinContext, Weight, added_up, looked_up, product
from privbench.estimation.spread import Shares
from privbench.schema.unit import Link, LinkKind


class PublicNode:
    """Rows of a public table, each at hand with its values and the rows that its keys name."""

    def __init__(
        self, context: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        self._context = context
        self._table = context.model.protection.schema.table(name)
        self._content = pq.read_table(io.BytesIO(context.model.public[name]))
        weight = np.ones(self._content.num_rows) * product(below)
        for column, predicates in filters.items():
            self._check(column, predicates)
            values = self._content.column(column)
            weight = weight * satisfying(f"{name}.{column}", self._table.column(column).type, values, predicates)
        for link, target in above.items():
            named = self._named(link)
            if named is None:
                weight = weight * self._valid(link) * np.mean(target)
            else:
                weight = weight * looked_up(target, named, targets=context.sizes[link.key.table])
        self.per_row: Shares = weight

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.per_row.sum())

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key names a row, for each row that it can name."""
        named = self._named(link)
        targets = self._context.sizes[link.key.table]
        if named is None:
            return float((self.per_row * self._valid(link)).sum()) / max(targets, 1)
        return added_up(self.per_row, named, targets=targets)

    def _named(self, link: Link) -> NDArray[np.int64] | None:
        """The rows that a key names; None where it is drawn anew over all rows."""
        if link in self._context.stale:
            return None
        keys = [self._content.column(c) for c in link.key.columns]
        if link.kind is LinkKind.INBOUND:
            known = self._context.model.entity_keys
            assert known is not None  # noqa: S101  other inbound keys are drawn anew
            return rows_named(keys, [known.column(c) for c in link.key.references])
        other = pq.read_table(io.BytesIO(self._context.model.public[link.key.table]), columns=list(link.key.references))
        return rows_named(keys, [other.column(c) for c in link.key.references])

    def _valid(self, link: Link) -> Shares:
        valid = np.ones(self._content.num_rows)
        for column in link.key.columns:
            valid *= self._content.column(column).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        return valid

    def _check(self, column: str, predicates: Sequence[Predicate]) -> None:
        """Values of keys that are drawn anew are not those at hand; whether they are NULL is."""
        drawn = {c for link in self._context.stale if link.table == self._table.name for c in link.key.columns}
        if column in drawn and not all(isinstance(p, IsNull) for p in predicates):
            raise SpecError(f"{self._table.name}.{column}: this key is drawn anew, so that its values are not known.")
