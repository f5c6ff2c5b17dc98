"""A real Ctrl-C while Spark works: one line, no process and no file is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privbench

from ..e2e.shapes import SHAPES

pytestmark = pytest.mark.slow

COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from privbench.cli.main import main
from privbench.privacy import spark_parts
plain = spark_parts.map_batches
def map_batches(frame, work, schema):
    print("counting", flush=True)
    def slow(batches):
        import time
        time.sleep(600)
        yield from work(batches)
    return plain(frame, slow, schema)
spark_parts.map_batches = map_batches
main()
"""


def _java(session: int) -> list[str]:
    """The Java processes of a session of processes."""
    listed = subprocess.run(["ps", "-eo", "sid=,args="], capture_output=True, text=True, check=True)  # noqa: S607
    return [line for line in listed.stdout.splitlines() if line.split(None, 1)[0] == str(session) and "java" in line]


def test_a_fit(spark_home: Path, tmp_path: Path) -> None:
    folder = SHAPES["parent_child"].write(tmp_path / "source")
    spec, temporary = tmp_path / "spec.yaml", tmp_path / "temporary"
    privbench.write_spec(privbench.draft(folder, domains="data", **SHAPES["parent_child"].choices), spec)
    temporary.mkdir()
    words = ["fit", spec, "--source", folder, "--engine", "spark", "--master", "local[2]", "--epsilon", "3"]
    command = [sys.executable, "-c", COMMAND, *map(str, words), "-o", str(tmp_path / "m")]
    with subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "counting\n"
        assert _java(process.pid)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        message = process.stderr.read()
        assert process.wait(timeout=120) == 130
    assert "interrupted" in message.splitlines()[-1]
    assert not (tmp_path / "m").exists()
    deadline = time.monotonic() + 60
    while _java(process.pid) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert _java(process.pid) == []
    assert [path for path in temporary.rglob("*") if path.is_file()] == []
