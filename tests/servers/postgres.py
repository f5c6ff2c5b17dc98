"""A real PostgreSQL for tests: one server per worker, an empty database per test.

`postgres` is the URL of the test's own database; `postgres_server` the server, for tests that need several. Without a
server or its client the test is skipped, or fails where PRIVBENCH_REQUIRE names `postgres`.
"""

import itertools
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from privbench.errors import ServerError
from privbench.servers.postgres import PostgresServer, start_postgres

from ..required import missing

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that lasts as long as the tests of this worker."""
    try:
        import adbc_driver_postgresql  # noqa: F401
        import psycopg  # noqa: F401
    except ImportError as error:
        missing("postgres", f"no PostgreSQL client: {error}")
    running = start_postgres()
    try:
        server = running.__enter__()
    except ServerError as error:
        missing("postgres", f"no PostgreSQL server: {error}")
    yield server
    running.__exit__(None, None, None)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database, dropped after the test with whoever is still connected."""
    import psycopg

    name = f"test{next(_numbers)}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        yield postgres_server.url(name)
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@contextmanager
def over_network(server: PostgresServer) -> Iterator[str]:
    """The URL of another server like this one, which takes a port of this machine and asks for a password there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    word = secrets.token_hex()
    with start_postgres(server.binaries, settings={"listen_addresses": "127.0.0.1", "port": str(port)}) as other:
        by_socket = f"postgresql://postgres@/postgres?host={other.folder}&port={port}"
        (other.folder / "data" / "pg_hba.conf").write_text("local all all trust\nhost all all all scram-sha-256\n")
        run(by_socket, f"ALTER ROLE postgres PASSWORD '{word}'", "SELECT pg_reload_conf()")
        yield f"postgresql://postgres:{word}@127.0.0.1:{port}/postgres"


def run(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()
