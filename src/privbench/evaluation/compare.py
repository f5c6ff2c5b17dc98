"""Compare synthesizers on one database: each makes bundles at each budget, and `evaluate` scores them all alike.

One floor stands beside all of them. Bundles are thrown away: what stays are figures, for the publisher alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from privbench.errors import SpecError
from privbench.evaluation.comparison import WAYS, Comparison, Figures, Run, figures_of, floor_of
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.synthesizer import OwnMethod, Synthesizer
from privbench.fitting.domains import check_wanted
from privbench.fitting.draft import draft
from privbench.fitting.promise import Number, parse_delta, parse_epsilon
from privbench.io.staging import private_folder
from privbench.methods.method import Progress, silent
from privbench.methods.registry import METHODS
from privbench.schema.choices import closest
from privbench.schema.spec import Spec
from privbench.workload.sql import read_workload


def compare(
    source: Path | str,
    *,
    methods: Sequence[str | Synthesizer] = tuple(METHODS),
    epsilons: Sequence[Number],
    delta: Number = 0,
    runs: int = 3,
    workload: Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
    **choices: Any,
) -> Comparison:
    """Run each method `runs` times at each epsilon, with one delta for all; `choices` are those of `draft`.

    Raises for arguments that cannot be used. What goes wrong in a run is told in the comparison.
    """
    if runs < 1:
        raise SpecError(f"runs is {runs}: it must be at least 1.")
    synthesizers = [_synthesizer(method) for method in methods]
    budgets = [(str(epsilon), parse_epsilon(epsilon)) for epsilon in epsilons]
    chance = parse_delta(delta)
    if workload is not None:
        read_workload(workload)
    spec = draft(source, progress=progress, **choices)
    check_wanted(spec, spec.protection(), chance)
    jury = _Jury(spec=spec, source=str(source), delta=chance, workload=workload, seed=seed)
    plan = list(product(synthesizers, budgets, range(1, runs + 1)))
    found = []
    for done, (synthesizer, (said, epsilon), number) in enumerate(plan):
        progress(f"{synthesizer.name}, epsilon {said}", done, len(plan))
        figures, error = jury.score(synthesizer, epsilon, number)
        found.append(Run(method=synthesizer.name, epsilon=said, number=number, figures=figures, error=error))
    return Comparison(
        source=str(source),
        delta=str(delta),
        workload=None if workload is None else str(workload),
        seed=seed,
        runs=tuple(found),
        floor=jury.floor,
    )


@dataclass(slots=True, kw_only=True)
class _Jury:
    """Scores bundles of one database; keeps the floor of the first that could be scored."""

    spec: Spec
    source: str
    delta: Fraction
    workload: Path | None
    seed: int
    floor: dict[str, float | None] = field(default_factory=dict)

    def score(self, synthesizer: Synthesizer, epsilon: Fraction, number: int) -> tuple[Figures, str | None]:
        """Figures of a run, or why there are none: whatever a synthesizer raises, the others go on."""
        with private_folder() as folder:
            out = folder / "bundle"
            try:
                cost = synthesizer(
                    self.spec, source=self.source, epsilon=epsilon, delta=self.delta, out=out, seed=self.seed + number
                )
                result = evaluate(
                    self.source, out, workload=self.workload, lambdas=WAYS, floor=not self.floor, seed=self.seed
                )
            except Exception as error:
                return {}, " ".join(str(error).split()) or type(error).__name__
        self.floor = self.floor or floor_of(result)
        return {**figures_of(result), "cpu_seconds": cost.cpu_seconds, "peak_bytes": cost.peak_bytes}, None


def _synthesizer(method: str | Synthesizer) -> Synthesizer:
    if not isinstance(method, str):
        return method
    if method not in METHODS:
        raise SpecError(f"method {method!r}: there is no such method. {closest(method, METHODS)}")
    return OwnMethod(name=method)
