"""A PostgreSQL server for one run: its own temporary folder, a unix socket in it, no network, and nothing left after.

Only the user who runs the server can enter its folder (mode 0700), so inside it nobody is asked for a password. As
root the server runs as another user, since it refuses to run as root. However the run ends, the server is stopped and
its folder removed: normally by this module, and if this process is killed by a guard, a small shell that waits at
the end of a pipe. The pipe closes with the process.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from privbench.errors import ServerError
from privbench.servers.binaries import REMEDY, Binaries, find_binaries

SUPERUSER = "postgres"
"""The name of the role that may do everything inside the server."""
_UNPRIVILEGED = ("postgres", "nobody")
"""The users of the system that a server of root runs as, the first that is there."""
_PORT = 5432
"""Only part of the name of the socket."""
_LONGEST_SOCKET = 100
"""Bytes of the socket's path: systems allow 103 to 107."""
_PATIENCE = 60
"""Seconds that a server may take to be made, to start or to stop."""
_SETTINGS = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off", "timezone": "UTC"}
"""No network; and no care for a crash, since nothing outlives the run."""

# The guard ends at a line. At the end of the pipe without a line, this process was killed: whatever still runs here is
# stopped, also an initdb, which ends when its folder is gone.
_GUARD = """
read -r line && exit 0
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$server" 2>/dev/null
while [ -n "$server" ] && kill -0 "$server" 2>/dev/null; do sleep 0.1; done
while [ -e "$1" ]; do rm -rf "$1"; [ -e "$1" ] && sleep 0.2; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A server that runs."""

    binaries: Binaries
    folder: Path
    """The folder of its socket."""

    def url(self, database: str = "postgres") -> str:
        """The address of a database for psycopg, ADBC or psql, as the superuser."""
        return (
            f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={quote(str(self.folder), safe='')}&port={_PORT}"
        )


@contextmanager
def start_postgres(
    binaries: Binaries | Path | str | None = None, *, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """Run a server for as long as the block lasts; `settings` are those of postgresql.conf.

    `binaries` is a choice of version, or its folder; see `find_binaries` for what is used without. Raises ServerError
    where no server is there or it does not start.
    """
    chosen = binaries if isinstance(binaries, Binaries) else find_binaries(binaries)
    account = _account()
    folder = _make_folder(account, chosen)
    try:
        with _guarded(folder, account):
            _initialise(chosen, folder, account)
            with _running(chosen, folder, account, _SETTINGS | dict(settings or {})):
                yield PostgresServer(binaries=chosen, folder=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """Who runs the server."""

    name: str
    user: int | None = None
    """None: whoever runs this process."""
    group: int | None = None

    def start(self, command: list[str | Path], folder: Path, **streams: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that a Ctrl-C in the terminal does not reach it."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"HOME": str(folder)}
        groups: list[str | int] | None = None if self.user is None else []
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]  # streams are given by name  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            user=self.user,
            group=self.group,
            extra_groups=groups,
            umask=0o077,
            start_new_session=True,
            **streams,
        )


def _account() -> _Account:
    if os.getuid() != 0:
        return _Account(name=str(os.getuid()))
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Account(name=name, user=entry.pw_uid, group=entry.pw_gid)
    raise ServerError(
        f"PostgreSQL does not run as root, and there is no user {' or '.join(_UNPRIVILEGED)} to run it as. "
        "Add one (`useradd --system postgres`), or run this as another user than root."
    )


def _make_folder(account: _Account, binaries: Binaries) -> Path:
    """Make the folder of a server, where its path is short enough for a socket and its user can enter."""
    if account.user is not None and not _open_to_all(binaries.folder):
        raise ServerError(
            f"{binaries.folder}: root starts PostgreSQL as user {account.name}, who cannot enter this folder. {REMEDY}"
        )
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"))):  # noqa: S108  mkdtemp makes a new name
        fits = len(os.fsencode(parent)) + len("/privbench-pg-12345678/.s.PGSQL.5432") <= _LONGEST_SOCKET
        # The guard runs as the server's user, and must be able to remove the folder from there.
        if fits and (account.user is None or (_open_to_all(parent) and parent.stat().st_mode & 0o002)):
            folder = Path(tempfile.mkdtemp(prefix="privbench-pg-", dir=parent))
            if account.user is not None:
                os.chown(folder, account.user, account.group or 0)
            return folder
    raise ServerError(
        f"{tempfile.gettempdir()}: is no place for a server (its path is too long for a socket, or user {account.name} "
        "cannot write there). Set the environment variable TMPDIR to a short path that all can write to, as /tmp."
    )


def _open_to_all(folder: Path) -> bool:
    """Whether any user can reach what a folder holds."""
    return all(path.stat().st_mode & 0o001 for path in (folder.resolve(), *folder.resolve().parents))


@contextmanager
def _guarded(folder: Path, account: _Account) -> Iterator[None]:
    """Have a guard clean up if this process is killed."""
    guard = account.start(["/bin/sh", "-c", _GUARD, "guard", folder], folder.parent, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        guard.communicate(b"done\n", timeout=_PATIENCE)


def _initialise(binaries: Binaries, folder: Path, account: _Account) -> None:
    """Make an empty data folder. Texts sort by code point, so that no locale of the machine matters."""
    command: list[str | Path] = [
        binaries.folder / "initdb",
        "--pgdata",
        folder / "data",
        "--username",
        SUPERUSER,
        "--auth",
        "trust",
    ]
    flags = ["--encoding", "UTF8", "--no-locale", "--no-sync"]
    process = account.start([*command, *flags], folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=_PATIENCE)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        raise ServerError(f"{binaries.folder}: initdb failed ({_last_line(output)}). {REMEDY}")


@contextmanager
def _running(binaries: Binaries, folder: Path, account: _Account, settings: Mapping[str, str]) -> Iterator[None]:
    log = folder / "log"
    flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command: list[str | Path] = [
        binaries.folder / "postgres",
        "-D",
        folder / "data",
        "-k",
        folder,
        "-p",
        str(_PORT),
        *flags,
    ]
    with log.open("wb") as file:
        server = account.start(command, folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    try:
        _wait(server, folder)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: what it would still write is removed anyway
        try:
            server.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until the server takes connections, as it tells in the eighth line of its own file."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            status = (folder / "data" / "postmaster.pid").read_text("utf-8").splitlines()[7:8]
        except FileNotFoundError:
            status = []
        if [line.strip() for line in status] == ["ready"]:
            return
        time.sleep(0.02)
    reason = _last_line((folder / "log").read_bytes())
    raise ServerError(f"PostgreSQL did not start ({reason}). Check its settings, or try another version. {REMEDY}")


def _last_line(output: bytes) -> str:
    """What a program said last that is not a hint, for a message."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "error:" in line] or lines
    return telling[-1] if telling else "it said nothing"
