"""What a comparison of synthesizers found, as plain values, and its JSON and CSV (docs/compare.md has the keys)."""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from privbench.evaluation.result import Measure, Quantiles, Result

VERSION = 1
WARNING = "This comparison holds exact facts of the private data: it is for the publisher and not for publishing."
SPENDING = (
    "Every run spends its own epsilon: publish the bundle of one run at most, and choosing it by these figures is "
    "not covered by its receipt."
)

Figures = Mapping[str, float | None]
"""Figures by name; None where one could not be computed."""
WAYS = (1, 2, 3)
DISTANCES = (*(f"kld_{ways}" for ways in WAYS), *(f"tvd_{ways}" for ways in WAYS))
Q_ERRORS = ("q_mean", "q_median", "q_p95")
COSTS = ("cpu_seconds", "peak_bytes")
FIGURES = (*DISTANCES, *Q_ERRORS, *COSTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a method; without figures where `error` says why."""

    method: str
    epsilon: str
    number: int
    figures: Figures
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A method with a budget: medians over the runs that worked, and what the others said."""

    method: str
    epsilon: str
    runs: int
    figures: Figures
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All runs, and the figures of a resample of the real data."""

    source: str
    delta: str
    workload: str | None
    seed: int
    runs: tuple[Run, ...]
    floor: Figures

    def settings(self) -> tuple[Setting, ...]:
        """Medians by method and budget, in the order of the runs."""
        grouped: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs:
            grouped.setdefault((run.method, run.epsilon), []).append(run)
        return tuple(_setting(method, epsilon, runs) for (method, epsilon), runs in grouped.items())


def figures_of(result: Result) -> dict[str, float | None]:
    """The figures of a result that are compared."""
    summary = None if result.q_errors is None else result.q_errors.all
    return _figures(result, floor=False, quantiles=None if summary is None else summary.errors)


def floor_of(result: Result) -> dict[str, float | None]:
    """The same figures of the floor."""
    summary = None if result.q_errors is None else result.q_errors.all
    return _figures(result, floor=True, quantiles=None if summary is None else summary.floor)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Everything, medians first."""
    return {
        "version": VERSION,
        "warning": WARNING,
        "spending": SPENDING,
        "source": comparison.source,
        "delta": comparison.delta,
        "workload": comparison.workload,
        "seed": comparison.seed,
        "floor": dict(comparison.floor),
        "settings": [asdict(setting) for setting in comparison.settings()],
        "runs": [asdict(run) for run in comparison.runs],
    }


def comparison_csv(comparison: Comparison) -> str:
    """The medians as a table, the floor in its first line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("method", "epsilon", "runs", *FIGURES, "errors"))
    writer.writerow(("floor", "", "", *(comparison.floor.get(name) for name in FIGURES), ""))
    for found in comparison.settings():
        figures = (found.figures.get(name) for name in FIGURES)
        writer.writerow((found.method, found.epsilon, found.runs, *figures, "; ".join(found.errors)))
    return text.getvalue()


def _figures(result: Result, *, floor: bool, quantiles: Quantiles | None) -> dict[str, float | None]:
    def side(measure: Measure) -> float | None:
        return measure.floor if floor else measure.value

    klds = {f"kld_{ways}": side(result.marginals[ways].kld_codes) for ways in WAYS}
    tvds = {f"tvd_{ways}": side(result.marginals[ways].tvd_codes) for ways in WAYS}
    errors = {name: None if quantiles is None else getattr(quantiles, name.removeprefix("q_")) for name in Q_ERRORS}
    return klds | tvds | errors


def _setting(method: str, epsilon: str, runs: list[Run]) -> Setting:
    worked = [run for run in runs if run.error is None]
    figures: dict[str, float | None] = {}
    for name in FIGURES:
        found = [value for run in worked if (value := run.figures.get(name)) is not None]
        figures[name] = median(found) if found else None
    errors = tuple(dict.fromkeys(run.error for run in runs if run.error is not None))
    return Setting(method=method, epsilon=epsilon, runs=len(worked), figures=figures, errors=errors)
