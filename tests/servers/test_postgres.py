"""The throw-away server: found, started, reached by its socket alone, and gone however its process ends."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from privbench.errors import ServerError
from privbench.servers.binaries import CHOICE, all_binaries, find_binaries
from privbench.servers.postgres import PostgresServer, start_postgres

HOLD = """
import signal, sys, time
from privbench.servers.postgres import start_postgres
signal.signal(signal.SIGINT, signal.default_int_handler)
with start_postgres() as server:
    print(server.folder, flush=True)
    time.sleep(60)
"""


def _ask(url: str, sql: bytes) -> object:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        answer = connection.execute(sql)
        row = answer.fetchone() if answer.description else None
        return None if row is None else row[0]


def _process(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def _runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def _wait_until(true: object, seconds: float = 20) -> bool:
    assert callable(true)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


def test_each_test_has_an_empty_database(postgres: str) -> None:
    assert _ask(postgres, b"SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    assert _ask(postgres, b"CREATE TABLE left_over AS SELECT 1 AS x") is None
    assert _ask(postgres, b"SHOW server_encoding") == "UTF8"


test_again = test_each_test_has_an_empty_database


def test_only_a_socket_that_nobody_else_can_reach(postgres_server: PostgresServer) -> None:
    assert _ask(postgres_server.url(), b"SHOW listen_addresses") == ""
    assert stat.S_IMODE(postgres_server.folder.stat().st_mode) == 0o700
    assert _ask(postgres_server.url(), b"SELECT inet_server_addr()") is None


def test_the_environment_of_clients_does_not_matter(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "9")
    monkeypatch.setenv("PGHOST", "elsewhere.invalid")
    assert _ask(postgres_server.url(), b"SELECT 1") == 1


@pytest.mark.slow
def test_every_version_of_this_machine_runs(postgres_server: PostgresServer) -> None:
    for binaries in all_binaries():
        with start_postgres(binaries, settings={"work_mem": "5MB"}) as server:
            assert str(_ask(server.url(), b"SHOW server_version")).split()[0] == binaries.version
            assert _ask(server.url(), b"SHOW work_mem") == "5MB"
            process = _process(server.folder)
        assert not server.folder.exists()
        assert not _runs(process)


def test_gone_after_an_exception(postgres_server: PostgresServer) -> None:
    running = start_postgres(postgres_server.binaries)
    server = running.__enter__()
    process = _process(server.folder)
    assert not running.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not server.folder.exists()
    assert not _runs(process)


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGTERM, signal.SIGINT))]
)
def test_gone_after_a_signal(how: signal.Signals, postgres_server: PostgresServer) -> None:
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:  # noqa: S603
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        process = _process(folder)
        assert _runs(process)
        run.send_signal(how)
        run.wait(timeout=60)
    assert _wait_until(lambda: not folder.exists() and not _runs(process))


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.1, 0.4, 0.8])
def test_gone_after_a_kill_while_it_starts(after: float, postgres_server: PostgresServer) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o1777)  # as /tmp: a server of root runs as another user
        environment = os.environ | {"TMPDIR": name}
        command = [sys.executable, "-c", HOLD]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as run:  # noqa: S603
            assert _wait_until(lambda: any(place.glob("privbench-pg-*")))
            time.sleep(after)
            run.kill()
        assert _wait_until(lambda: not any(place.iterdir()))


def test_a_long_or_closed_temporary_folder_is_no_place(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with start_postgres(postgres_server.binaries) as server:
        assert long not in server.folder.parents
        assert _ask(server.url(), b"SELECT 1") == 1


def test_a_wrong_setting_is_told(postgres_server: PostgresServer) -> None:
    with (
        pytest.raises(ServerError, match="no_such_setting"),
        start_postgres(postgres_server.binaries, settings={"no_such_setting": "1"}),
    ):
        pass


def test_a_folder_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerError, match=CHOICE):
        find_binaries(tmp_path)
    monkeypatch.setenv(CHOICE, str(tmp_path))
    with pytest.raises(ServerError, match=CHOICE):
        find_binaries()


def test_the_choice_of_the_environment(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(all_binaries())
    monkeypatch.setenv(CHOICE, str(every[-1].folder.parent))
    assert find_binaries() == every[-1]


def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privbench.servers.binaries.all_binaries", lambda: iter(()))
    monkeypatch.delenv(CHOICE, raising=False)
    with pytest.raises(ServerError, match=r"privbench\[server\]"):
        find_binaries()


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs servers as another user")
def test_root_runs_it_as_another_user(postgres_server: PostgresServer) -> None:
    assert postgres_server.folder.stat().st_uid != 0
    assert Path(f"/proc/{_process(postgres_server.folder)}").stat().st_uid != 0
