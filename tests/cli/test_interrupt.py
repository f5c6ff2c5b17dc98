"""A real Ctrl-C or SIGTERM: exit 130 or 143, one line, and nothing left beside the target or in temporary files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privbench.cli.main import NOTHING_LEFT

from .conftest import DRAFT, Run, everything

HEARS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""For where tests run in the background of a shell, whose programs ignore Ctrl-C and pass that on."""

START = """
from privbench.cli import main
class Ready(main.Interrupt):
    def __init__(self):
        super().__init__()
        print("ready", flush=True)
main.Interrupt = Ready
main.main()
"""


LOADED = "import privbench.cli.commands, privbench.cli.progress, privbench.fitting.fit, privbench.synthesis\n"
"""Loads what commands need, so that a signal finds them at work."""


def _interrupt(
    *arguments: object, temporary: Path, after: float, how: signal.Signals = signal.SIGINT, first: str = LOADED
) -> tuple[int, str]:
    """Start a command, interrupt it some time after it has begun; returns its exit code and message."""
    command = [sys.executable, "-c", HEARS + first + START, *map(str, arguments)]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(how)
        message = process.stderr.read().strip()
        return process.wait(timeout=60), message


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "sqlite"])
@pytest.mark.parametrize(("how", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_generate(
    how: signal.Signals, expected: int, form: str, after: float, shop: Path, run: Run, tmp_path: Path
) -> None:
    people = "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(25_000))  # to generate for ten seconds and more
    (shop / "person.csv").write_text("id,city,age\n" + people)
    spec, model = tmp_path / "s", tmp_path / "m"
    assert run("draft", shop, *DRAFT, "-o", spec).code == 0
    assert run("fit", spec, "--epsilon", "9", "-o", model).code == 0
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = everything(tmp_path)
    flags = ("--scale", "1000", "--to", form)
    arguments = ("generate", model, "-o", tmp_path / "b", *flags)
    code, message = _interrupt(*arguments, temporary=temporary, after=after, how=how)
    assert (code, message.splitlines()[-1]) == (expected, f"interrupted: {NOTHING_LEFT}")
    assert everything(tmp_path) == before


CLEANS_UP = """
import os, signal, time
try:
    time.sleep(60)
finally:
    for _ in range(8):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    open({file!r}, "w").close()
"""


def test_what_is_cleaned_up_is_not_disturbed(tmp_path: Path) -> None:
    """Neither by an impatient user nor by the interrupt that is raised again."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "click.py").write_text(CLEANS_UP.format(file=str(tmp_path / "cleaned")))
    first = f"import sys; sys.path.insert(0, {str(tmp_path / 'slow')!r})\n"
    code, _ = _interrupt("verify", tmp_path / "no", temporary=tmp_path, after=0.2, first=first)
    assert code == 130
    assert (tmp_path / "cleaned").exists()


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.05, 0.4])
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
    assert code == 130
    assert message in (  # on a busy machine the signal comes before the fit begins
        "interrupted: no model was written, so nothing was released.",
        f"interrupted: {NOTHING_LEFT}",
    )
    assert everything(tmp_path) == before


WAITS = "import time\ntime.sleep(60)\n"

CATCHES_ALL = """
import time
try:
    time.sleep(60)
except BaseException:
    pass
time.sleep(60)
"""

IN_A_DESTRUCTOR = """
import time
class Held:
    def __del__(self):
        time.sleep(60)
held = Held()
del held
time.sleep(60)
"""

IN_A_CALLBACK = """
import time, weakref
class Held: ...
held = Held()
kept = weakref.ref(held, lambda _: time.sleep(60))
del held
time.sleep(60)
"""


WORKED_ON = "import os\nos._exit(7)\n"
"""What is reached only if the interrupt is lost."""


@pytest.mark.mostly_slow
@pytest.mark.parametrize("place", [WAITS, CATCHES_ALL, IN_A_DESTRUCTOR, IN_A_CALLBACK])
@pytest.mark.parametrize(("how", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_while_modules_are_loaded(how: signal.Signals, expected: int, place: str, tmp_path: Path) -> None:
    """The signal comes for sure inside an import, where Python or a library may drop what is raised."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "click.py").write_text(place + WORKED_ON)
    first = f"import sys; sys.path.insert(0, {str(tmp_path / 'slow')!r})\n"
    code, message = _interrupt("verify", tmp_path / "no", temporary=tmp_path, after=0.2, how=how, first=first)
    assert (code, message) == (expected, f"interrupted: {NOTHING_LEFT}")
