"""Synthesizers, ours and others, behind one protocol, and what a run of one costs.

Our methods run in a process of their own, so that CPU and memory are those of one run and nothing else. That process
is this module, which prints its cost as JSON; loading the package is not part of the CPU time, but of the memory.

    python -m privbench.evaluation.measured_run SPEC SOURCE METHOD EPSILON DELTA OUT SEED

A source is handed over in a private folder: SOURCE is `at:FOLDER`, or `memory:FOLDER` for tables in memory.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from privbench.errors import PrivBenchError
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.given import Located, path_of
from privbench.io.memory import Tables
from privbench.io.staging import private_folder
from privbench.methods.registry import find_method
from privbench.mistakes import mistake
from privbench.schema.spec import Spec, write_spec

PURE = Fraction(0)
"""The delta of pure epsilon."""
MEMORY, _SUFFIX = "memory:", ".arrows"
AT, _PLACE = "at:", "source"
RUN = "privbench.evaluation.measured_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run took: CPU-seconds of learning and writing, and the most memory its process had."""

    cpu_seconds: float
    peak_bytes: int


class Synthesizer(Protocol):
    """Makes a synthetic database; spends epsilon, with delta, each time."""

    @property
    def name(self) -> str:
        """What the comparison calls it."""

    def __call__(
        self, spec: Spec, *, source: Located, epsilon: Fraction, delta: Fraction = PURE, out: Path, seed: int
    ) -> Cost:
        """Write a database that `evaluate` can open to `out`; the seed is for sampling, never for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMethod:
    """A method of this package by its name, as a Synthesizer."""

    name: str

    def __call__(
        self, spec: Spec, *, source: Located, epsilon: Fraction, delta: Fraction = PURE, out: Path, seed: int
    ) -> Cost:
        """Fit and generate in a process of its own; raises PrivBenchError with the message of that process.

        A method that takes no delta keeps the promise without: pure epsilon is the stronger one.
        """
        own_delta = PURE if find_method(self.name).parallel_composition else delta
        with private_folder() as folder:
            path = folder / "spec.yaml"
            write_spec(spec, path)
            arguments = [
                str(path),
                _handed_over(source, folder),
                self.name,
                str(epsilon),
                str(own_delta),
                str(out),
                str(seed),
            ]
            # In a session of its own it is not interrupted by the terminal, but ended when this call is.
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", "-m", RUN, *arguments],
                check=False,
                capture_output=True,
                text=True,
                start_new_session=True,
            )
        return _cost(done)


def _handed_over(source: Located, folder: Path) -> str:
    """A source as another process finds it; tables in memory as files in a folder, by their number.

    An address is written down there: everybody can read the arguments of a process, and it may hold a password.
    """
    if not isinstance(source, Tables):
        (folder / _PLACE).write_text(path_of(source) or "", encoding="utf-8")
        return f"{AT}{folder}"
    for number, name in enumerate(source.names):
        table = source.arrow(name).replace_schema_metadata({"table": name})
        with (
            pa.OSFile(str(folder / f"{number}{_SUFFIX}"), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as stream,
        ):
            stream.write_table(table)
    return f"{MEMORY}{folder}"


def _taken_over(source: str) -> Located:
    """What `_handed_over` wrote: so that the budget record knows the tables as the ones in memory."""
    if source.startswith(AT):
        return Path(source.removeprefix(AT), _PLACE).read_text(encoding="utf-8")
    paths = Path(source.removeprefix(MEMORY)).glob(f"*{_SUFFIX}")
    tables = [pa.ipc.open_stream(pa.memory_map(str(path))).read_all() for path in paths]
    return Tables({table.schema.metadata[b"table"].decode(): table for table in tables})


def _cost(done: "subprocess.CompletedProcess[str]") -> Cost:
    if done.returncode == 0:
        return Cost(**json.loads(done.stdout))
    lines = done.stderr.strip().splitlines()
    raise PrivBenchError(lines[-1] if lines else f"the run ended with exit code {done.returncode}.")


def main(spec: str, source: str, method: str, epsilon: str, delta: str, out: str, seed: str) -> None:
    """Fit, generate, and print what that took."""
    start = time.process_time()
    try:
        model = fit(spec, source=_taken_over(source), epsilon=Fraction(epsilon), delta=Fraction(delta), method=method)
        generate(model, out, seed=int(seed))
    except PrivBenchError as error:
        sys.exit(" ".join(str(error).split()))
    except Exception as error:  # what it says itself may quote a private value
        sys.exit(" ".join(mistake(error).split()))
    print(json.dumps({"cpu_seconds": time.process_time() - start, "peak_bytes": _peak_bytes()}))


def _peak_bytes() -> int:
    """The most memory this process had. On Linux getrusage would count the parent's before this program began."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(text for text in status.read_text("ascii").splitlines() if text.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(*sys.argv[1:])
