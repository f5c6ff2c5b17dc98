"""Measuring on PostgreSQL: a throw-away server of our own, or the server of a URL.

On a server that is given, all variants go into a new database; without the right to make one, into new schemas of
the database that the URL names. Nothing that exists is touched, and what was made is dropped at the end.
"""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from privbench.errors import ServerError, first_line
from privbench.io.names import quote_sql
from privbench.io.urls import hide_secrets, without_password
from privbench.methods.method import Progress
from privbench.runtime.load import Connection, load, pages, statistics
from privbench.runtime.plan import Plan, postgres_plan
from privbench.runtime.session import Clock, FailedQueryError, Loaded, Session, Variant
from privbench.runtime.statistics import Statistics
from privbench.runtime.translate import postgres_sql
from privbench.schema.tables import Schema
from privbench.servers.binaries import find_binaries
from privbench.servers.postgres import start_postgres

_SETTINGS = {
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "default_transaction_read_only": "on",
    "timezone": "UTC",
}
"""Compiling and other processes would make times vary; and a workload changes nothing."""
_EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, FORMAT JSON) "
_CONNECT_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSystem:
    """PostgreSQL at a URL; None for a server of our own."""

    url: str | None = field(default=None, repr=False)  # it may hold a password

    def check(self) -> None:
        """Raise ServerError if there is no server, or nothing can be made there."""
        if self.url is None:
            find_binaries()
            return
        with _home(_Place(url=self.url)):
            pass

    @contextmanager
    def load(
        self, schema: Schema, variants: tuple[Variant, ...], *, timeout: float, progress: Progress
    ) -> Iterator[Loaded]:
        """Load all variants, each into a schema of its own, and open a connection to each."""
        with ExitStack() as stack:
            url = self.url
            if url is None:
                url = stack.enter_context(start_postgres()).url()
            home, prefix = stack.enter_context(_home(_Place(url=url)))
            notes: list[str] = []
            sessions: dict[str, Session] = {}
            sizes: dict[str, Mapping[str, int]] = {}
            known: dict[str, Statistics] = {}
            connections = []
            for at, variant in enumerate(variants):
                progress("loading into PostgreSQL", at, len(variants))
                name = f"{prefix}_{at}"
                stack.enter_context(_schema(home, name))
                connection = stack.enter_context(_connected(home, name))
                notes += load(connection, schema, variant)
                sizes[variant.name] = pages(connection)
                known[variant.name] = statistics(connection)
                connections.append((variant.name, connection))
            cpu = {name: _processor(connection) for name, connection in connections}
            for name, connection in connections:
                for setting, value in (*_SETTINGS.items(), ("statement_timeout", f"{max(1, round(timeout * 1000))}")):
                    connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
                schedstat = cpu[name] if all(cpu.values()) else None
                sessions[name] = PostgresSession(connection, schedstat=schedstat, timeout=timeout)
            version = connections[0][1].info.parameter_status("server_version")
            yield Loaded(
                system=f"PostgreSQL {str(version).split()[0]}",
                clock=Clock.CPU if all(cpu.values()) else Clock.CLIENT,
                sessions=sessions,
                pages=sizes,
                statistics=known,
                notes=tuple(notes),
            )

    def translate(self, sql: str, schema: Schema) -> str:
        """Write a query in PostgreSQL's words."""
        return postgres_sql(sql, schema)


class PostgresSession:
    """A connection whose backend's processor time is in the file `schedstat`, if that is known."""

    def __init__(self, connection: Connection, *, schedstat: Path | None, timeout: float) -> None:
        self._connection = connection
        self._schedstat = schedstat
        self._timeout = timeout

    def explain(self, sql: str) -> Plan:
        [(explained,)] = self._fetch(_EXPLAIN + sql)
        return postgres_plan(explained[0])

    def run(self, sql: str) -> float:
        start = self._clock()
        self._fetch(sql)
        return (self._clock() - start) / 1e6

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql.encode()).fetchall()
        except psycopg.errors.QueryCanceled:
            raise FailedQueryError(f"stopped after {self._timeout:g} s") from None
        except psycopg.Error as error:
            if self._connection.closed:
                raise ServerError(f"The PostgreSQL server went away ({first_line(error)}).") from None
            raise FailedQueryError(first_line(error)) from None

    def _clock(self) -> int:
        """Nanoseconds that only grow: of the backend's processor time, else of this clock."""
        if self._schedstat is None:
            return time.perf_counter_ns()
        return int(self._schedstat.read_text("ascii").split()[0])


def _processor(connection: Connection) -> Path | None:
    """The file with the backend's processor time, if it runs on this machine and the system tells it (Linux)."""
    process = connection.info.backend_pid
    try:
        title = Path(f"/proc/{process}/cmdline").read_bytes()
        schedstat = Path(f"/proc/{process}/schedstat")
        schedstat.read_text("ascii").split()[0]
    except (OSError, IndexError):
        return None
    # A server elsewhere can have a process of the same number as one of ours.
    ours = title.startswith(b"postgres:") and connection.info.dbname.encode() in title
    return schedstat if ours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A database on the server of a URL: the one that the URL names, or another."""

    url: str = field(repr=False)  # it may hold a password
    database: str | None = None

    @property
    def shown(self) -> str:
        return without_password(self.url)


@contextmanager
def _home(place: _Place) -> Iterator[tuple[_Place, str]]:
    """Give the database to make schemas in, and how their names begin: a new database, else the given one."""
    prefix = f"privbench_{secrets.token_hex(4)}"
    with _connected(place) as connection:
        try:
            connection.execute(f"CREATE DATABASE {quote_sql(prefix)} TEMPLATE template0".encode())
        except psycopg.errors.InsufficientPrivilege:
            row = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
            if row != (True,):
                raise ServerError(
                    f"{place.shown}: this user may make neither a database nor a schema there. Name a user who may "
                    "(ALTER ROLE .. CREATEDB, or GRANT CREATE ON DATABASE ..), or use `--runtime auto`."
                ) from None
            yield place, prefix
            return
        try:
            yield _Place(url=place.url, database=prefix), prefix
        finally:
            _drop(place, f"DROP DATABASE IF EXISTS {quote_sql(prefix)} WITH (FORCE)")


@contextmanager
def _schema(place: _Place, name: str) -> Iterator[None]:
    with _connected(place) as connection:
        connection.execute(f"CREATE SCHEMA {quote_sql(name)}".encode())
    try:
        yield
    finally:
        _drop(place, f"DROP SCHEMA IF EXISTS {quote_sql(name)} CASCADE")


def _drop(place: _Place, statement: str) -> None:
    """Drop what we made, by a connection of its own: the others may be broken or inside a query."""
    try:
        with _connected(place) as connection:
            connection.execute(statement.encode())
    except (psycopg.Error, ServerError) as error:
        raise ServerError(
            f"What was made in {place.shown} could not be dropped ({first_line(error)}): {statement}"
        ) from None


@contextmanager
def _connected(place: _Place, schema: str | None = None) -> Iterator[Connection]:
    """Open a connection; errors of the way to the server are told without the password."""
    shown = place.shown  # refuses a URL that cannot be shown before the client library quotes it
    try:
        connection = psycopg.connect(
            place.url,
            dbname=place.database,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=_CONNECT_SECONDS,
            row_factory=tuple_row,
        )
    except psycopg.Error as error:
        reason = hide_secrets(first_line(error), place.url)
        raise ServerError(f"{shown}: cannot be reached ({reason}). Check the URL, or use `--runtime auto`.") from None
    with connection:
        if schema is not None:
            connection.execute("SELECT set_config('search_path', %s, false)", (quote_sql(schema),))
        yield connection
