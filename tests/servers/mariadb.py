"""A real MariaDB for tests: one server per worker in a temporary folder, an empty database per test.

`mariadb` is the URL of the test's own database; `mariadb_server` the server, for tests that make users, read with its
own client or kill it. Without a server or PyMySQL the test is skipped, or fails where PRIVBENCH_REQUIRE names
`mariadb`. The server listens on a unix socket only and runs as another user for root. However the tests end it is
stopped and its folder removed, by a guard if they are killed: a small shell that waits at the end of a pipe.
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ..required import missing

_numbers = itertools.count()
_PATIENCE = 60
_GUARD = """
read -r line && exit 0
kill -9 "$(cat "$1/pid" 2>/dev/null)" 2>/dev/null
while [ -e "$1" ]; do rm -rf "$1"; [ -e "$1" ] && sleep 0.2; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MariaDBServer:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    socket: Path

    def url(self, database: str, *, user: str = "root") -> str:
        """The address of a database."""
        return f"mysql://{user}@localhost/{quote(database, safe='')}?unix_socket={self.socket}"

    def connect(self, database: str | None = None) -> Any:
        """A session of root."""
        import pymysql

        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database, autocommit=True)

    def run(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements as root, and give the rows of the last one."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def client(self, script: str, database: str) -> None:
        """Run a script with the server's own client."""
        program = shutil.which("mariadb") or "mariadb"
        command = [program, "--no-defaults", "--user=root", f"--socket={self.socket}", "--local-infile=1", database]
        subprocess.run(command, input=script.encode(), check=True, capture_output=True)  # noqa: S603


@contextmanager
def start_mariadb(*settings: str) -> Iterator[MariaDBServer]:
    """Run a server for as long as the block lasts; `settings` are flags of mariadbd."""
    user = next((name for name in ("mysql", "nobody") if os.getuid() == 0 and _is_user(name)), None)
    folder = Path(tempfile.mkdtemp(prefix="privbench-my-", dir="/tmp"))  # a socket needs a short path
    if user is not None:
        shutil.chown(folder, user)
    guard = subprocess.Popen(["/bin/sh", "-c", _GUARD, "guard", folder], stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    try:
        as_user = [f"--user={user}"] if user else []
        base = ["--no-defaults", f"--datadir={folder / 'data'}", *as_user]
        _install(base, folder)
        with _running([*base, *settings], folder) as process:
            yield MariaDBServer(process=process, socket=folder / "s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        guard.communicate(b"done\n")


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _install(base: list[str], folder: Path) -> None:
    program = shutil.which("mariadb-install-db")
    if program is None or _server() is None:
        raise FileNotFoundError("neither on the PATH nor in /usr/sbin")
    flags = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    with (folder / "log").open("wb") as log:
        subprocess.run([program, *base, *flags], check=True, stdout=log, stderr=log, timeout=_PATIENCE)  # noqa: S603


def _server() -> str | None:
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")


@contextmanager
def _running(base: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    flags = ["--skip-networking", "--local-infile=1", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
    places = [f"--socket={folder / 's'}", f"--pid-file={folder / 'pid'}"]
    with (folder / "log").open("wb") as log:
        command = [str(_server()), *base, *flags, *places]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
    try:
        end = time.monotonic() + _PATIENCE
        while not (folder / "s").exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if not (folder / "s").exists():
            raise RuntimeError((folder / "log").read_text(errors="replace")[-500:])
        yield process
    finally:
        process.kill()  # what it would still write is removed anyway
        process.wait()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    """A server that lasts as long as the tests of this worker."""
    try:
        import pymysql  # noqa: F401
    except ImportError as error:
        missing("mariadb", f"no client: {error}")
    running = start_mariadb()
    try:
        server = running.__enter__()
    except FileNotFoundError as error:
        missing("mariadb", f"no MariaDB server: {error}")
    yield server
    running.__exit__(None, None, None)


@pytest.fixture
def mariadb(mariadb_server: MariaDBServer) -> Iterator[str]:
    """The URL of an empty database, dropped after the test."""
    name = f"test{next(_numbers)}"
    mariadb_server.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield mariadb_server.url(name)
    mariadb_server.run(f"DROP DATABASE IF EXISTS {name}")
