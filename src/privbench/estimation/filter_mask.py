"""Which rows of a sample satisfy predicates on a column: one that is modelled, derived, a key, or names a key.

A modelled column weighs a row by the share of its code's cell that satisfies them; what is derived is worked out from
the rows of the sample, as it is from those that are generated.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from privbench.encode.predicate import All, IsNull, Predicate, parts_of, satisfying
from privbench.errors import SpecError
from privbench.estimation.context import JoinContext, looked_up
from privbench.estimation.sample import SampledTable
from privbench.estimation.spread import Shares
from privbench.generation.derived import number_columns
from privbench.schema.unit import Link, LinkKind


def rows_met(context: JoinContext, name: str, column: str, predicates: Sequence[Predicate]) -> Shares:
    """The share of what each sampled row of a private table stands for that satisfies predicates on a column."""
    table, sample = context.model.protection.schema.table(name), _sample(context, name)
    codecs, said = context.model.codecs[name], table.column(column).derived
    if column in codecs:
        return codecs[column].coverage(All(parts=tuple(predicates)))[sample.codes[column]]
    if said is not None and said.owner is not None:
        return _of_owner(context, name, column, said.owner, predicates)
    where = f"{name}.{column}"
    if said is not None:
        return satisfying(where, table.column(column).type, _numbers(context, name, column), predicates).astype(float)
    link = next((k for k in context.model.protection.links if k.table == name and column in k.key.columns), None)
    if link is None:
        return context.met_by_key(where, table, column, predicates)
    return _by_target(context, where, link, predicates)


def _numbers(context: JoinContext, name: str, column: str) -> pa.Array:
    """The values of a derived column that is a number, in the sample."""
    protection, sample = context.model.protection, _sample(context, name)
    below = [k for k in protection.links if k.kind is LinkKind.OWNER and k.key.table == name]
    named = {k.name: _sample(context, k.table).targets[k.name] for k in below}
    counts = {key: np.bincount(rows[rows >= 0], minlength=sample.rows) for key, rows in named.items()}
    return dict(number_columns(protection, protection.schema.table(name), targets=sample.targets, counts=counts))[
        column
    ]


def _of_owner(context: JoinContext, name: str, column: str, copied: str, predicates: Sequence[Predicate]) -> Shares:
    """A copy of a column of the owner; without owner it is NULL, or like any owner's where it may not be NULL."""
    protection, key = context.model.protection, context.model.protection.owners[name]
    link = next(k for k in protection.links if k.table == name and k.kind is LinkKind.OWNER)
    above = rows_met(context, key.table, copied, predicates)
    alone = float(all(isinstance(p, IsNull) and not p.negated for p in predicates))
    if not protection.schema.table(name).column(column).nullable:
        alone = float(np.mean(above)) if len(above) else 0.0
    found: Shares = np.append(above, alone)[_sample(context, name).targets[link.name]]
    return found


def _by_target(context: JoinContext, where: str, link: Link, predicates: Sequence[Predicate]) -> Shares:
    """Which keys satisfy predicates: on the value of the row they name, or on whether they name one."""
    if len(link.key.columns) > 1:
        raise SpecError(f"{where}: a filter on one column of a key of several.")
    nulls, of_values = parts_of(All(parts=tuple(predicates)))
    targets = _sample(context, link.table).targets[link.name]
    valid = targets >= 0
    weight = np.ones(len(valid))
    for null in nulls:
        weight = weight * (valid if null.negated else ~valid)
    if of_values:
        parent = context.model.protection.schema.table(link.key.table)
        met = context.met_by_key(where, parent, link.key.references[0], of_values)
        weight = weight * looked_up(met, targets, targets=context.sizes[link.key.table])
    return np.asarray(weight)


def _sample(context: JoinContext, name: str) -> SampledTable:
    assert context.sample is not None  # noqa: S101  else nothing is sampled
    return context.sample.tables[name]
