"""A private table in an estimate from counts: its rows weigh alike but for the part of the network they come from.

A row's keys are drawn given that part, and independently of the rows they name, so that one pass over the tree of
joins is exact.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from privbench.encode.predicate import All, parts_of
from privbench.errors import SpecError
from privbench.estimation.context import Filters, JoinContext, Weight, product
from privbench.estimation.spread import Shares, spread
from privbench.schema.unit import Link
from privbench.spn.infer import probability
from privbench.spn.links import COMPONENT


class PrivateNode:
    """Rows of a private table: alike but for the part they come from and, in the entity table, their place."""

    def __init__(
        self, context: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        self._context = context
        self._table = context.model.protection.schema.table(name)
        self._rows = context.sizes[name]
        self._place: Weight = product(below)
        self._parts = self._evidence(filters)
        held = [link for link in context.model.protection.links if link.table == name]
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
        found = spread(self._context.model, link, sizes=self._context.sizes)
        weights = self._rows * self._parts * float(np.mean(self._place)) if self._rows else np.zeros_like(self._parts)
        if found.rows is None:
            return float(weights @ (1 - found.null)) / max(self._context.sizes[link.key.table], 1)
        return np.asarray(weights @ found.rows)

    def _evidence(self, filters: Filters) -> Shares:
        """The share of rows that come from each part and satisfy the filters on modelled columns."""
        model, name = self._context.model, self._table.name
        codecs, keys = model.codecs[name], {c for key in self._table.foreign_keys for c in key.columns}
        for column in (c for c in filters if c not in codecs and c not in keys):
            met = self._context.met_by_key(f"{name}.{column}", self._table, column, filters[column])
            self._place = self._place * met
        network = model.tables[name].network
        evidence = {c: codecs[c].coverage(All(parts=p)) for c, p in filters.items() if c in codecs}
        if COMPONENT not in network.sizes:
            return np.array([probability(network, evidence)])
        parts = np.eye(network.sizes[COMPONENT])
        return np.array([probability(network, evidence | {COMPONENT: part}) for part in parts])

    def _along(self, link: Link, filters: Filters, target: Weight | None) -> Shares | float:
        """What a key's join and filters leave of the rows of each part."""
        asked = [c for c in link.key.columns if c in filters]
        if target is None and not asked:
            return 1.0
        found = spread(self._context.model, link, sizes=self._context.sizes)
        if not asked:
            return found.weight(1.0 if target is None else target)
        if len(link.key.columns) > 1:
            raise SpecError(f"{self._table.name}.{asked[0]}: a filter on one column of a key of several.")
        nulls, of_values = parts_of(All(parts=filters[asked[0]]))
        value: Weight = 1.0 if target is None else target
        if of_values:
            parent = self._context.model.protection.schema.table(link.key.table)
            where = f"{self._table.name}.{asked[0]}"
            value = value * self._context.met_by_key(where, parent, link.key.references[0], of_values)
        here = found.weight(value) * float(all(n.negated for n in nulls))
        null_too = target is None and not of_values and not any(n.negated for n in nulls)
        return here + found.null if null_too else here
