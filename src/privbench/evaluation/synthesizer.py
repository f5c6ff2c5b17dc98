"""Synthesizers side by side: one protocol for our methods and for others, and what a run of one costs.

Our methods run in a process of their own, so that CPU and memory are those of one run and nothing else.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from privbench.errors import PrivBenchError
from privbench.io.staging import private_folder
from privbench.methods.registry import METHODS
from privbench.schema.spec import Spec, write_spec

PURE = Fraction(0)
"""The delta of pure epsilon."""
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
        self, spec: Spec, *, source: str, epsilon: Fraction, delta: Fraction = PURE, out: Path, seed: int
    ) -> Cost:
        """Write a database that `evaluate` can open to `out`; the seed is for sampling, never for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMethod:
    """A method of this package by its name, as a Synthesizer."""

    name: str

    def __call__(
        self, spec: Spec, *, source: str, epsilon: Fraction, delta: Fraction = PURE, out: Path, seed: int
    ) -> Cost:
        """Fit and generate in a process of its own; raises PrivBenchError with what that process said.

        A method that takes no delta keeps the promise without: pure epsilon is the stronger one.
        """
        chance = PURE if METHODS[self.name].parts_rows else delta
        with private_folder() as folder:
            path = folder / "spec.yaml"
            write_spec(spec, path)
            arguments = [str(path), source, self.name, str(epsilon), str(chance), str(out), str(seed)]
            # In a session of its own it is not interrupted by the terminal, but ended when this call is.
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-P", "-m", RUN, *arguments],
                check=False,
                capture_output=True,
                text=True,
                start_new_session=True,
            )
        return _cost(done)


def _cost(done: "subprocess.CompletedProcess[str]") -> Cost:
    if done.returncode == 0:
        return Cost(**json.loads(done.stdout))
    said = done.stderr.strip().splitlines()
    raise PrivBenchError(said[-1] if said else f"the run ended with exit code {done.returncode}.")
