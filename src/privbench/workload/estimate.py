"""The cardinality of a query straight from a model, without generating or touching any row of the database."""

from privbench.estimation.estimate import cardinality
from privbench.model.model import Model
from privbench.workload.query import Query


def estimate_cardinality(model: Model, query: Query) -> float:
    """The rows that the query counts on average in databases generated at scale 1.

    SpecError says what the model cannot tell: see `estimation.estimate.cardinality`.
    """
    return cardinality(
        model,
        tables={t.alias: t.table for t in query.tables},
        joins=[((j.left.alias, j.left.column), (j.right.alias, j.right.column)) for j in query.joins],
        filters=[((f.column.alias, f.column.column), f.predicate) for f in query.filters],
    )
