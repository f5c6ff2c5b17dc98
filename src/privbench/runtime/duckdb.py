"""Measuring on DuckDB, in this process and one thread: times of all queries, and the operators of their plans."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from privbench.errors import ServerError, first_line
from privbench.io.names import quote_sql
from privbench.io.render import Dialect, create_indexes, create_tables
from privbench.io.staging import private_folder
from privbench.methods.method import Progress
from privbench.runtime.plan import Plan, duckdb_plan
from privbench.runtime.session import Clock, FailedQueryError, LoadedVariants, Session, Variant
from privbench.schema.tables import Schema, Table
from privbench.workload.table_names import plain_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckdbSystem:
    """DuckDB, which comes with PrivBench."""

    def check(self) -> None:
        """It is always there."""

    @contextmanager
    def load(
        self, schema: Schema, variants: tuple[Variant, ...], *, timeout: float, progress: Progress
    ) -> Iterator[LoadedVariants]:
        """Load each variant into a file of its own. Types and indexes are the real ones; DuckDB plans by no key."""
        sessions: dict[str, Session] = {}
        connections = []
        with private_folder() as folder:
            try:
                for at, variant in enumerate(variants):
                    progress("loading into DuckDB", at, len(variants))
                    (folder / str(at)).mkdir()  # one name for all files, since it is part of the plans
                    connection = duckdb.connect(str(folder / str(at) / "data.duckdb"), config={"threads": 1})
                    connections.append(connection)
                    _load(connection, schema, variant)
                    connection.execute("SET enable_external_access = false")
                    sessions[variant.name] = DuckdbSession(connection, timeout=timeout)
                yield LoadedVariants(
                    system=f"DuckDB {duckdb.__version__}", clock=Clock.CPU, sessions=sessions, pages={}, statistics={}
                )
            finally:
                for connection in connections:
                    connection.close()

    def translate(self, sql: str, schema: Schema) -> str:
        """Give the query as it is, with tables called as they are here: workloads are in DuckDB's words."""
        return plain_sql(sql, schema)


class DuckdbSession:
    """A connection whose one thread is the caller's, so that its processor time is known."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout

    def explain(self, sql: str) -> Plan:
        self._fetch(sql)  # the warm-up
        [(_, explained)] = self._fetch(f"EXPLAIN (FORMAT JSON) {sql}")
        return duckdb_plan(json.loads(str(explained))[0])

    def run(self, sql: str) -> float:
        start = time.thread_time_ns()
        self._fetch(sql)
        return (time.thread_time_ns() - start) / 1e6

    def _fetch(self, sql: str) -> list[tuple[object, ...]]:
        watch = threading.Timer(self._timeout, self._connection.interrupt)
        watch.start()
        try:
            return self._connection.execute(sql).fetchall()
        except duckdb.InterruptException:
            raise FailedQueryError(f"stopped after {self._timeout:g} s") from None
        except duckdb.Error as error:
            raise FailedQueryError(first_line(error)) from None
        finally:
            watch.cancel()
            watch.join()


def _load(connection: duckdb.DuckDBPyConnection, schema: Schema, variant: Variant) -> None:
    bare = Schema(tables=tuple(map(_bare, schema.tables)))
    try:
        for statement in create_tables(bare, Dialect.DUCKDB):
            connection.execute(statement)
        for table in schema.tables:
            for batch in variant.read(table):
                _insert(connection, table, batch)
        for statement in create_indexes(bare):
            connection.execute(statement)
        connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise ServerError(f"{variant.name}: cannot be loaded into DuckDB ({first_line(error)}).") from None


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, batch: pa.RecordBatch) -> None:
    columns = ", ".join(map(quote_sql, batch.schema.names))
    connection.register("incoming", pa.Table.from_batches([batch]))
    connection.execute(f"INSERT INTO {quote_sql(table.name)} ({columns}) SELECT * FROM incoming")  # noqa: S608
    connection.unregister("incoming")


def _bare(table: Table) -> Table:
    """A table with its columns and secondary indexes, none of which any row can break."""
    columns = tuple(replace(c, nullable=True) for c in table.columns)
    indexes = tuple(replace(index, unique=False) for index in table.indexes)
    return replace(table, columns=columns, primary_key=(), foreign_keys=(), uniques=(), checks=(), indexes=indexes)
