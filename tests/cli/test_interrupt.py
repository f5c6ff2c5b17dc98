"""A real Ctrl-C: exit 130, one line, and nothing beside the target or in the folder for temporary files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import DRAFT, Run, everything

START = "import sys; from privbench.cli.main import main; print('ready', flush=True); sys.argv[0] = 'privbench'; main()"


def _interrupt(*arguments: object, temporary: Path, after: float) -> tuple[int, str]:
    """Start a command, interrupt it some time after its modules are there; returns its exit code and message."""
    command = [sys.executable, "-c", START, *map(str, arguments)]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        message = process.stderr.read().strip()
        return process.wait(timeout=60), message


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "sqlite"])
def test_generate(form: str, after: float, shop: Path, run: Run, tmp_path: Path) -> None:
    (shop / "person.csv").write_text("id,city,age\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(5000)))
    spec, model = tmp_path / "s", tmp_path / "m"
    assert run("draft", shop, *DRAFT, "-o", spec).code == 0
    assert run("fit", spec, "--epsilon", "9", "-o", model).code == 0
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = everything(tmp_path)
    flags = ("--scale", "1000", "--to", form)
    code, message = _interrupt("generate", model, "-o", tmp_path / "b", *flags, temporary=temporary, after=after)
    assert (code, message) == (130, "interrupted: nothing half-written was left behind.")
    assert everything(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.02, 0.4, 1.0])
def test_fit(after: float, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    columns = [f"c{i}" for i in range(30)]
    with (folder / "t.csv").open("w") as file:
        file.write(",".join(columns) + "\n")
        file.writelines(",".join(str(row * i % 17) for i in range(1, 31)) + "\n" for row in range(60_000))
    assert run("draft", folder, "--domains", "data", "-o", tmp_path / "s").code == 0
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = everything(tmp_path)
    arguments = ("fit", tmp_path / "s", "--epsilon", "9", "-o", tmp_path / "m")
    code, message = _interrupt(*arguments, temporary=temporary, after=after)
    assert (code, message) == (130, "interrupted: nothing half-written was left behind.")
    assert everything(tmp_path) == before
