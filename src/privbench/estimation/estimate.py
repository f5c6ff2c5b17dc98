"""Selectivities and cardinalities straight from the model: inference in each table's network, and links between them.

A cardinality is the count that generated databases have on average at scale 1. Not accounted for: rows that
generation loses where drawn keys repeat.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from privbench.encode.predicate import Predicate
from privbench.errors import SpecError
from privbench.estimation.join import JoinWeights, Place, join_tree
from privbench.estimation.values import asks_for_values
from privbench.io.names import find_name
from privbench.model.model import Model
from privbench.schema.choices import spelled_like
from privbench.spn.infer import probability

SAMPLES = 4
"""Samples whose mean is an estimate where values are sampled: it is then off by half of what one sample is."""


def selectivity(model: Model, table: str, predicates: Mapping[str, Predicate]) -> float:
    """The share of a private table's rows that satisfy a predicate on each of the named columns.

    Example::

        privbench.selectivity(model, "customer", {"born": privbench.Between(low=1990)})
    """
    table = spelled_like(table, model.codecs, option="table")
    if table not in model.codecs:
        raise SpecError(f"{table}: the model has no network of it. Tables: {', '.join(model.codecs)}.")
    codecs = model.codecs[table]
    computed = [c.name for c in model.protection.schema.table(table).columns if c.computed is not None]
    names = (*codecs, *computed)
    predicates = {spelled_like(name, names, option=f"{table}."): p for name, p in predicates.items()}
    for column in predicates:
        if column not in names:
            raise SpecError(f"{table}.{column}: is not modelled. Columns: {', '.join(names)}.")
    sampled = asks_for_values(model, [((table, column), (p,)) for column, p in predicates.items()])
    if sampled or set(computed) & set(predicates):
        rows = cardinality(model, tables={table: table}, filters=[((table, c), p) for c, p in predicates.items()])
        return rows / max(cardinality(model, tables={table: table}), 1.0)
    evidence = {column: codecs[column].coverage(predicate) for column, predicate in predicates.items()}
    return probability(model.tables[table].network, evidence)


def cardinality(
    model: Model,
    *,
    tables: Mapping[str, str],
    joins: Sequence[tuple[Place, Place]] = (),
    filters: Sequence[tuple[Place, Predicate]] = (),
) -> float:
    """The rows that a join of tables, named by what the query calls them, has on average in generated databases."""
    return cardinality_with_error(model, tables=tables, joins=joins, filters=filters)[0]


def cardinality_with_error(
    model: Model,
    *,
    tables: Mapping[str, str],
    joins: Sequence[tuple[Place, Place]] = (),
    filters: Sequence[tuple[Place, Predicate]] = (),
) -> tuple[float, float | None]:
    """The rows that a join has on average, and the standard error of that where values had to be sampled, else None.

    They are where a filter compares values of a column that is coded as a difference, or is about one that is computed.
    Raises SpecError, with the reason, for what the model cannot tell: a table joined twice, joins that are not along
    foreign keys or go round in a cycle, a filter on a key whose values are made from others.
    """
    names = {alias: _known(table, (t.name for t in model.protection.schema.tables)) for alias, table in tables.items()}

    def known(place: Place) -> Place:
        table = model.protection.schema.table(names[place[0]])
        return place[0], _known(place[1], (c.name for c in table.columns), of=table.name)

    tree = join_tree(model.protection, names, [(known(a), known(b)) for a, b in joins])
    by_table: dict[str, dict[str, tuple[Predicate, ...]]] = {alias: {} for alias in tree.tables}
    for place, predicate in filters:
        alias, column = known(place)
        by_table[alias][column] = (*by_table[alias].get(column, ()), predicate)
    weights = JoinWeights(model, tree, by_table)
    first = weights.total()
    if not weights.is_by_values:
        return first, None
    totals = [first, *(JoinWeights(model, tree, by_table, number=n).total() for n in range(1, SAMPLES))]
    return float(np.mean(totals)), float(np.std(totals, ddof=1) / np.sqrt(SAMPLES))


def _known(name: str, names: Iterable[str], *, of: str | None = None) -> str:
    listed = tuple(names)
    match = find_name(name, listed)
    if match is None:
        raise SpecError(f"{name if of is None else f'{of}.{name}'}: is not in the model. There: {', '.join(listed)}.")
    return match
