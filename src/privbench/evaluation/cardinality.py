"""Cardinalities of the statements of a workload on one side, by DuckDB.

A statement that counts gives its count, any other the number of rows it returns. What goes wrong with a statement
(a missing table, a value that cannot be cast, too long a run) is recorded with it and never raised.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import sqlglot
from sqlglot import exp

from privbench.errors import first_line
from privbench.evaluation.database import Database, Side
from privbench.methods.method import Progress
from privbench.workload.query import Statement

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
    found = []
    database.connection.execute(f"SET schema = '{side.value}'")
    try:
        for at, statement in enumerate(statements):
            progress(f"queries, {side.value}", at, len(statements))
            found.append(_count(database.connection, statement, timeout))
    finally:
        database.connection.execute("SET schema = 'main'")
    return found


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
