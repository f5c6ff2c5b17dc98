"""Cardinalities of the statements of a workload, by DuckDB, and the summaries of their errors.

A statement that counts gives its count, any other the number of rows it returns. What goes wrong with a statement
(a missing table, a value that cannot be cast, too long a run) is recorded with it and never raised.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

from privbench.errors import first_line
from privbench.evaluation.databases import Database, Side
from privbench.evaluation.result import Quantiles, QueryResult, QuerySummary, Summary
from privbench.methods.method import Progress
from privbench.workload.query import Statement
from privbench.workload.table_names import plain_sql

CLASSES = ("low", "medium", "high")
"""Thirds of the queries by their real cardinality."""
_SELECT = duckdb.StatementType.SELECT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """The answer of one statement, or why there is none."""

    count: int | None
    error: str | None
    seconds: float


def count_all(
    database: Database, side: Side, statements: Sequence[Statement], *, timeout: float, progress: Progress
) -> list[Cardinality]:
    """Run every statement on one side, each for at most `timeout` seconds."""
    cardinalities = []
    schema = database.schemas.get(side, database.schemas[Side.REAL])
    database.connection.execute(f"SET schema = '{side.value}'")
    try:
        for at, statement in enumerate(statements):
            progress(f"queries, {side.value}", at, len(statements))
            named = replace(statement, sql=plain_sql(statement.sql, schema))
            cardinalities.append(_count(database.connection, named, timeout))
    finally:
        database.connection.execute("SET schema = 'main'")
    return cardinalities


def joins_of(statement: Statement) -> int | None:
    """How many joins a statement has, if it is in the class of counting queries."""
    return None if statement.query is None else max(len(statement.query.tables) - 1, 0)


def _count(connection: duckdb.DuckDBPyConnection, statement: Statement, timeout: float) -> Cardinality:
    start = time.perf_counter()
    watch = threading.Timer(timeout, connection.interrupt)
    watch.start()
    try:
        count, error = _answer(connection, statement), None
    except duckdb.InterruptException:
        count, error = None, f"stopped after {timeout:g} s"
    except (duckdb.Error, ValueError) as problem:
        count, error = None, first_line(problem)
    finally:
        watch.cancel()
        watch.join()
    return Cardinality(count=count, error=error, seconds=time.perf_counter() - start)


def _answer(connection: duckdb.DuckDBPyConnection, statement: Statement) -> int:
    parts = connection.extract_statements(statement.sql)
    if [part.type for part in parts] != [_SELECT]:
        raise ValueError("not a single SELECT statement")
    if statement.query is None and not _counts(statement.sql):
        body = parts[0].query.strip().rstrip(";")
        parts = connection.extract_statements(f"SELECT count(*) FROM ({body}) AS answer")  # noqa: S608
    row = connection.execute(parts[0]).fetchone()
    if row is None or row[0] is None:
        raise ValueError("gave no count")
    return int(row[0])


def _counts(sql: str) -> bool:
    """Tell whether a statement's answer is one count. Raises ValueError for SQL that is not understood."""
    try:
        tree = sqlglot.parse_one(sql, read="duckdb").unnest()
    except sqlglot.errors.SqlglotError:
        raise ValueError("is not understood as DuckDB's SQL, so that its answer cannot be told from a count") from None
    if not isinstance(tree, exp.Select) or tree.args.get("group") or len(tree.selects) != 1:
        return False
    return isinstance(tree.selects[0].unalias(), exp.Count)


def summarise(queries: Sequence[QueryResult], metric: str) -> QuerySummary:
    """All answered queries by one metric, by number of joins, and by thirds of the real cardinality."""
    answered = [q for q in queries if q.figures[metric].value is not None]
    joins = sorted({q.joins for q in answered if q.joins is not None})
    ranked = sorted(answered, key=lambda q: (q.real or 0, q.number))
    cuts = [round(len(ranked) * part / 3) for part in range(4)]
    thirds = {name: ranked[a:b] for name, a, b in zip(CLASSES, cuts[:-1], cuts[1:], strict=True)}
    return QuerySummary(
        all=_summary(answered, metric) if answered else None,
        by_joins={count: _summary([q for q in answered if q.joins == count], metric) for count in joins},
        by_cardinality={name: _summary(part, metric) for name, part in thirds.items() if part},
        failed=len(queries) - len(answered),
    )


def quantiles(errors: Sequence[float]) -> Quantiles:
    """Mean, quantiles (interpolated between neighbours) and maximum of the figures of at least one query."""
    median, p75, p90, p95, p99 = np.quantile(errors, [0.5, 0.75, 0.9, 0.95, 0.99]).tolist()
    return Quantiles(
        queries=len(errors),
        mean=float(np.mean(errors)),
        median=median,
        p75=p75,
        p90=p90,
        p95=p95,
        p99=p99,
        max=max(errors),
    )


def _summary(queries: Sequence[QueryResult], metric: str) -> Summary:
    measures = [q.figures[metric] for q in queries]
    floors = [m.floor for m in measures if m.floor is not None]
    counts = [q.real or 0 for q in queries]
    return Summary(
        errors=quantiles([m.value for m in measures if m.value is not None]),
        floor=quantiles(floors) if floors else None,
        cardinalities=(min(counts), max(counts)),
    )
