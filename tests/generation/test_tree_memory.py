"""Memory does not grow with the scale factor where child rows come with their owners, either."""

import subprocess
import sys
from pathlib import Path

import pytest

from privbench.model.file import save_model

from ..tree_models import made, tables

PEOPLE, ALLOWED = 20_000, 100 * 2**10  # KB
MEASURE = """
import sys
from pathlib import Path
from privbench.generation.generate import generate
from privbench.model.file import load_unverified
generate(load_unverified(sys.argv[1]), sys.argv[2], scale=float(sys.argv[3]), seed=1)
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_memory_does_not_grow_with_the_scale(tmp_path: Path) -> None:
    save_model(made(models=tables(PEOPLE)), tmp_path / "model")
    peak = {}
    for scale in (1, 20):
        arguments = [sys.executable, "-c", MEASURE, str(tmp_path / "model"), str(tmp_path / f"{scale}"), str(scale)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)  # noqa: S603
        peak[scale] = int(done.stdout)
    assert peak[20] - peak[1] < ALLOWED, peak
