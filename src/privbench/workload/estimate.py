"""Cardinalities of queries straight from a model, without generating or touching any row of the database."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from privbench.errors import SpecError
from privbench.estimation.estimate import cardinality_with_error
from privbench.model.arguments import model_of
from privbench.model.model import Model
from privbench.workload.literal import QueryDialect
from privbench.workload.query import Query, Statement, Workload
from privbench.workload.sql import workload_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a model says of a statement: the rows that it counts, or the reason why that cannot be told."""

    statement: Statement
    rows: float | None = None
    standard_error: float | None = None
    """Of `rows`, where values were sampled to estimate it."""
    reason: str | None = None

    def __repr__(self) -> str:
        told = f"cannot tell: {self.reason}" if self.rows is None else f"{self.rows:,.1f} rows"
        return f"<Estimate of query {self.statement.number}: {told}>"


def estimate(
    model: Model | Path | str, queries: Workload | Path | str, *, dialect: QueryDialect | str = QueryDialect.DUCKDB
) -> list[Estimate]:
    """Estimate the cardinality of queries straight from a model: each with its rows, or why it cannot be told.

    `queries` is a workload, the path of a file, or SQL itself; `dialect` says whose SQL it is.

    Example::

        [answer] = privbench.estimate("shop.model", "SELECT COUNT(*) FROM customer WHERE born > 1990")
        answer.rows
    """
    loaded = model_of(model)
    return estimate_statements(
        loaded, workload_of(queries, dialect=dialect, schema=loaded.protection.schema).statements
    )


def estimate_cardinality(model: Model, query: Query) -> float:
    """The rows that the query counts on average in databases generated at scale 1.

    SpecError says what the model cannot tell: see `estimation.estimate.cardinality_with_error`.
    """
    return _rows_and_error(model, query)[0]


def _rows_and_error(model: Model, query: Query) -> tuple[float, float | None]:
    return cardinality_with_error(
        model,
        tables={t.alias: t.table for t in query.tables},
        joins=[((j.left.alias, j.left.column), (j.right.alias, j.right.column)) for j in query.joins],
        filters=[((f.column.alias, f.column.column), f.predicate) for f in query.filters],
    )


def estimate_statements(model: Model, statements: Iterable[Statement]) -> list[Estimate]:
    """Estimate every statement, each with its rows or the reason why there are none."""
    return [_estimated(model, statement) for statement in statements]


def _estimated(model: Model, statement: Statement) -> Estimate:
    if statement.query is None:
        return Estimate(statement=statement, reason=statement.reason)
    try:
        rows, error = _rows_and_error(model, statement.query)
        return Estimate(statement=statement, rows=rows, standard_error=error)
    except SpecError as error:
        return Estimate(statement=statement, reason=str(error))
