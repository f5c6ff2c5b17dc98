"""The tables of an estimate: what each row weighs with everything beyond it in the tree of joins.

`PrivateNode`: rows of a private table weigh alike but for the part of the network they come from. A row's keys are
drawn given that part, and independently of their target rows, so that one pass over the tree of joins is exact.
`SampledNode`: rows of a sample, as codes with the targets of their keys. A filter weighs a row by the share of what it
stands for that satisfies it; joins add up and look up weights along keys.
`PublicNode`: rows of a public table, which are at hand.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.keys import rows_named
from privbench.encode.predicate import All, IsNull, Predicate, parts_of, satisfying
from privbench.errors import SpecError
from privbench.estimation.context import Filters, JoinContext, Weight, added_up, looked_up, product
from privbench.estimation.values import UNKNOWN, Sampled, SampledTable, sampled_values
from privbench.generation.computed import number_columns
from privbench.generation.sizes import most_rows_per_owner
from privbench.schema.computed import equal_columns
from privbench.schema.unit import Link, LinkKind
from privbench.spn.feature_names import COMPONENT
from privbench.spn.infer import probability
from privbench.spn.link import Shares, Spread


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
        for link in context.model.protection.links_of(name):
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
        """The weight of the rows whose key has a target, for each row that it can reference."""
        spread = self._spread(link)
        weights = self._rows * self._parts * float(np.mean(self._place)) if self._rows else np.zeros_like(self._parts)
        if spread.rows is None:
            return float(weights @ (1 - spread.null)) / max(self._context.sizes[link.target], 1)
        return np.asarray(weights @ spread.rows)

    def _evidence(self, filters: Filters) -> Shares:
        """The share of rows that come from each part and satisfy the filters on modelled columns."""
        model, name = self._context.model, self._table.name
        codecs, keys = model.codecs[name], {c for key in self._table.foreign_keys for c in key.columns}
        for column in (c for c in filters if c not in codecs and c not in keys):
            mask = self._context.key_mask(f"{name}.{column}", self._table, column, filters[column])
            self._place = self._place * mask
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
        spread = self._spread(link)
        if not asked:
            return spread.weight(1.0 if target is None else target)
        if len(link.key.columns) > 1:
            raise SpecError(f"{self._table.name}.{asked[0]}: a filter on one column of a key of several.")
        nulls, of_values = parts_of(All(parts=filters[asked[0]]))
        value: Weight = 1.0 if target is None else target
        if of_values:
            parent = self._context.model.protection.schema.table(link.target)
            where = f"{self._table.name}.{asked[0]}"
            value = value * self._context.key_mask(where, parent, link.key.references[0], of_values)
        here = spread.weight(value) * float(all(n.negated for n in nulls))
        null_too = target is None and not of_values and not any(n.negated for n in nulls)
        return here + spread.null if null_too else here

    def _spread(self, link: Link) -> Spread:
        """Where a key points on average."""
        model, sizes = self._context.model, self._context.sizes
        table = model.tables[link.table]
        shares = table.links[link.name].shares
        assert shares is not None  # noqa: S101  else the model is estimated by a sample
        most = most_rows_per_owner(model, link.table, sizes) if link.kind is LinkKind.OWNER else 1
        return shares.expected(link, table.network, rows=sizes[link.table], most=most)


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
            weight = weight * filter_mask(context, name, column, predicates)
        for link, target in above.items() if self._sample.rows else ():
            weight = weight * self._looked_up(link, target)
        self.per_row: Shares = weight

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.per_row.sum())

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key has a target, for each row that it can reference."""
        targets = self._context.sizes[link.target]
        if not self._sample.rows:
            return np.zeros(targets)
        return added_up(self.per_row, self._sample.targets[link.name], targets=targets)

    def _looked_up(self, link: Link, target: Weight) -> Shares:
        return looked_up(target, self._sample.targets[link.name], targets=self._context.sizes[link.target])


class PublicNode:
    """Rows of a public table, each at hand with its values and the target rows of its keys."""

    def __init__(
        self, context: JoinContext, name: str, filters: Filters, above: Mapping[Link, Weight], below: Sequence[Weight]
    ) -> None:
        self._context = context
        self._table = context.model.protection.schema.table(name)
        self._content = context.model.public_table(name)
        weight = np.ones(self._content.num_rows) * product(below)
        for column, predicates in filters.items():
            self._check(column, predicates)
            values = self._content.column(column)
            weight = weight * satisfying(f"{name}.{column}", self._table.column(column).type, values, predicates)
        for link, target in above.items():
            rows = self._targets(link)
            if rows is None:
                weight = weight * self._valid(link) * np.mean(target)
            else:
                weight = weight * looked_up(target, rows, targets=context.sizes[link.target])
        self.per_row: Shares = weight

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.per_row.sum())

    def per_target(self, link: Link) -> Weight:
        """The weight of the rows whose key has a target, for each row that it can reference."""
        rows = self._targets(link)
        targets = self._context.sizes[link.target]
        if rows is None:
            return float((self.per_row * self._valid(link)).sum()) / max(targets, 1)
        return added_up(self.per_row, rows, targets=targets)

    def _targets(self, link: Link) -> NDArray[np.int64] | None:
        """The target rows of a key; None where it is redrawn over all rows."""
        if link in self._context.redrawn:
            return None
        keys = [self._content.column(c) for c in link.key.columns]
        if link.kind is LinkKind.INBOUND:
            known = self._context.model.entity_keys
            assert known is not None  # noqa: S101  other inbound keys are redrawn
            return rows_named(keys, [known.column(c) for c in link.key.references])
        other = self._context.model.public_table(link.target, link.key.references)
        return rows_named(keys, [other.column(c) for c in link.key.references])

    def _valid(self, link: Link) -> Shares:
        valid = np.ones(self._content.num_rows)
        for column in link.key.columns:
            valid *= self._content.column(column).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        return valid

    def _check(self, column: str, predicates: Sequence[Predicate]) -> None:
        """Values of keys that are redrawn are not those at hand; whether they are NULL is."""
        drawn = {c for link in self._context.redrawn if link.table == self._table.name for c in link.key.columns}
        if column in drawn and not all(isinstance(p, IsNull) for p in predicates):
            raise SpecError(f"{self._table.name}.{column}: this key is redrawn, so that its values are not known.")


def filter_mask(context: JoinContext, name: str, column: str, predicates: Sequence[Predicate]) -> Shares:
    """The share of what each sampled row of a private table stands for that satisfies predicates on a column."""
    table, sample = context.model.protection.schema.table(name), _sample(context, name)
    codecs, equals = context.model.codecs[name], equal_columns(context.model.protection, name).get(column)
    if (name, column) in context.by_values:
        values = sampled_values(context.model, _whole_sample(context), name, column)
        return satisfying(f"{name}.{column}", table.column(column).type, values, predicates).astype(float)
    if column in codecs:
        return codecs[column].coverage(All(parts=tuple(predicates)))[sample.codes[column]]
    if equals is not None and equals.owner is not None:
        return _of_owner(context, name, column, equals.owner, predicates)
    where = f"{name}.{column}"
    if equals is None and table.column(column).computed is not None:
        raise SpecError(f"{where}: {UNKNOWN}")
    if equals is not None:
        return satisfying(where, table.column(column).type, _numbers(context, name, column), predicates).astype(float)
    keys = (k for k in context.model.protection.keys if k.table == name and column in k.key.columns)
    link = min(keys, key=lambda k: len(k.key.columns), default=None)
    if link is None:
        return context.key_mask(where, table, column, predicates)
    if context.model.protection.schema.table(link.target).list_of:  # its columns are the list's
        return _of_owner(context, name, column, link.key.references[link.key.columns.index(column)], predicates)
    return _by_target(context, where, link, predicates)


def _numbers(context: JoinContext, name: str, column: str) -> pa.Array:
    """The values of a computed column that is a number, in the sample."""
    protection, sample = context.model.protection, _sample(context, name)
    below = [k for k in protection.links_to(name) if k.kind is LinkKind.OWNER]
    owners = {k.name: _sample(context, k.table).targets[k.name] for k in below}
    counts = {key: np.bincount(rows[rows >= 0], minlength=sample.rows) for key, rows in owners.items()}
    table = protection.schema.table(name)
    return dict(number_columns(protection, table, targets=sample.targets, counts=counts))[column]


def _of_owner(context: JoinContext, name: str, column: str, copied: str, predicates: Sequence[Predicate]) -> Shares:
    """A copy of a column of the owner; without owner it is NULL, or like any owner's where it may not be NULL."""
    protection = context.model.protection
    link = protection.owner_link(name)
    assert link is not None  # noqa: S101  only owned tables have copies
    above = filter_mask(context, link.target, copied, predicates)
    alone = float(all(isinstance(p, IsNull) and not p.negated for p in predicates))
    if not protection.schema.table(name).column(column).nullable:
        alone = float(np.mean(above)) if len(above) else 0.0
    mask: Shares = np.append(above, alone)[_sample(context, name).targets[link.name]]
    return mask


def _by_target(context: JoinContext, where: str, link: Link, predicates: Sequence[Predicate]) -> Shares:
    """Which keys satisfy predicates: on the value of their target row, or on whether they have one."""
    if len(link.key.columns) > 1:
        raise SpecError(f"{where}: a filter on one column of a key of several.")
    nulls, of_values = parts_of(All(parts=tuple(predicates)))
    targets = _sample(context, link.table).targets[link.name]
    valid = targets >= 0
    weight = np.ones(len(valid))
    for null in nulls:
        weight = weight * (valid if null.negated else ~valid)
    if of_values:
        parent = context.model.protection.schema.table(link.target)
        mask = context.key_mask(where, parent, link.key.references[0], of_values)
        weight = weight * looked_up(mask, targets, targets=context.sizes[link.target])
    return np.asarray(weight)


def _sample(context: JoinContext, name: str) -> SampledTable:
    return _whole_sample(context).tables[name]


def _whole_sample(context: JoinContext) -> Sampled:
    assert context.sample is not None  # noqa: S101  else nothing is sampled
    return context.sample
