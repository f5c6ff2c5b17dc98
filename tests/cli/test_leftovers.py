"""What a command that was killed leaves is removed by the next command of the same user."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from .conftest import Run, everything


def _kill_when(path: Path, pattern: str, *arguments: object, temporary: Path) -> list[Path]:
    """Start a command, kill it as soon as a path appears, and give what matched."""
    command = [sys.executable, "-c", "from privbench.cli.main import main; main()", *map(str, arguments)]
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(temporary)}) as process:  # noqa: S603
        deadline = time.monotonic() + 60
        while not (matches := list(path.glob(pattern))) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    return matches


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.slow
def test_generate(model: Path, run: Run, tmp_path: Path, temporary: Path) -> None:
    before = everything(tmp_path)
    arguments = ("generate", model, "-o", tmp_path / "b", "--scale", "1000")
    assert _kill_when(tmp_path, ".b.*.partial/data/*", *arguments, temporary=temporary)
    assert list(temporary.glob("privbench-*/*"))
    assert run("show", model).code == 0
    assert everything(tmp_path) == before


def test_evaluate_leaves_no_copy_that_others_can_read(
    shop: Path, bundle: Path, run: Run, model: Path, tmp_path: Path, temporary: Path
) -> None:
    before = everything(tmp_path)
    arguments = ("evaluate", "--real", shop, "--synthetic", bundle, "-o", tmp_path / "r", "--cache", tmp_path / "c")
    [copy] = _kill_when(temporary, "privbench-*/*/evaluate.duckdb", *arguments, temporary=temporary)
    assert {p.stat().st_mode & 0o077 for p in (copy.parent, copy.parent.parent)} == {0}
    assert run("show", model).code == 0
    assert everything(tmp_path) == before
