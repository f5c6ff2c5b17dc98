"""Selectivities straight from the model, by inference in the network of a table."""

from collections.abc import Mapping

from privbench.encode.predicate import Predicate
from privbench.errors import SpecError
from privbench.pipeline.model import Model
from privbench.spn.infer import probability


def selectivity(model: Model, table: str, predicates: Mapping[str, Predicate]) -> float:
    """The share of a private table's rows that satisfy a predicate on each of the named columns."""
    if table not in model.codecs:
        raise SpecError(f"{table}: the model has no network of it. Tables: {', '.join(model.codecs)}.")
    codecs = model.codecs[table]
    for column in predicates:
        if column not in codecs:
            raise SpecError(f"{table}.{column}: is not modelled. Columns: {', '.join(codecs)}.")
    evidence = {column: codecs[column].coverage(predicate) for column, predicate in predicates.items()}
    return probability(model.tables[table].network, evidence)
