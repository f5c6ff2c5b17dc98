"""Ctrl-C, SIGTERM and a kill while queries are measured: the server is gone, and so are all files."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from privbench.servers.postgres import PostgresServer

START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from privbench.cli.main import main
main()
"""


def _wait_until(true: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_is_left(how: signal.Signals, code: int, postgres_server: PostgresServer, tmp_path: Path) -> None:
    real, queries = tmp_path / "real.duckdb", tmp_path / "q.sql"
    with duckdb.connect(str(real)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS id, i % 7 AS x FROM range(3000) s(i)")
    queries.write_text("SELECT count(*) FROM t a, t b WHERE a.x + b.x > 3;\n" * 50)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o1777)  # as /tmp: a server of root runs as another user
        flags = ("--workload", queries, "--runtime", "auto", "--no-floor", "-o", tmp_path / "out")
        command = [sys.executable, "-c", START, "evaluate", "--real", real, "--synthetic", real, *flags]
        with subprocess.Popen(  # noqa: S603
            command, env=os.environ | {"TMPDIR": name}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            assert _wait_until(lambda: any(place.glob("privbench-pg-*/data/postmaster.pid")))
            [file] = place.glob("privbench-pg-*/data/postmaster.pid")
            server = int(file.read_text().splitlines()[0])
            time.sleep(2)  # loading, or measuring
            run.send_signal(how)
            told = run.communicate(timeout=60)[1]
            assert run.returncode == code, told
        assert _wait_until(lambda: not any(place.glob("privbench-pg-*")) and not Path(f"/proc/{server}").exists())
        if how is not signal.SIGKILL:  # then the next run of the user removes the private folder
            assert list(place.iterdir()) == []
            assert "interrupted" in told
    assert not (tmp_path / "out").exists()
