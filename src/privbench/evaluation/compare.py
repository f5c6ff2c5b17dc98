"""Compare synthesizers on one database: each makes bundles at each budget, and `evaluate` scores them all alike.

One floor stands beside all of them. Bundles are thrown away: what stays are figures, for the publisher alone, also as
JSON and CSV (docs/compare.md has the keys).
"""

import csv
import io
import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from privbench.errors import PrivBenchError, SpecError
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.measured_run import OwnMethod, Synthesizer
from privbench.evaluation.metrics import distance_metrics, query_metrics
from privbench.evaluation.result import Measure, QuerySummary, Result
from privbench.fitting.budget_record import Entry, budget, check_planned
from privbench.fitting.domains import check_wanted
from privbench.fitting.draft import draft
from privbench.fitting.promise import Number, parse_delta, parse_epsilon
from privbench.io.given import Given, Located, name_of, source_of
from privbench.io.staging import private_folder
from privbench.methods.method import Progress, silent
from privbench.methods.registry import BUILT_IN, method_names
from privbench.model.arguments import member_of
from privbench.schema.choices import closest
from privbench.schema.notebook import page
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours
from privbench.workload.query import Workload
from privbench.workload.sql import workload_of

_logger = logging.getLogger(__name__)

VERSION = 1
WARNING = "This comparison holds exact facts of the private data: it is for the publisher and not for publishing."
SPENDING = (
    "Every run spends its own epsilon: publish the bundle of one run at most, and choosing it by these figures is "
    "not covered by its receipt."
)

WAYS = (1, 2, 3)
PLOTTED_WAYS = 2
QUANTILES = {"mean": True, "median": True, "p95": False}
"""What is compared of the figures of queries, and whether it is plotted."""

Figures = Mapping[str, float | None]
"""Figures by name; None where one could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that is compared: its key, its name in tables and above its plot."""

    name: str
    head: str
    title: str
    group: str
    """Figures of one group stand in one table of the terminal."""
    plotted: bool = True
    of_queries: bool = False
    """There is none without a workload."""
    scale: float = 1.0
    """Figures are shown divided by this."""
    lower_is_better: bool = True


COSTS = (
    Figure(name="cpu_seconds", head="CPU-s", title="CPU-seconds", group="queries"),
    Figure(name="peak_bytes", head="MB", title="Peak memory, MB", group="queries", scale=1e6),
)


def compared_figures() -> tuple[Figure, ...]:
    """What is compared: every metric on codes, and the costs of a run."""
    distances, queries = distance_metrics(), query_metrics()
    marginals = [
        Figure(
            name=f"{m.name}_{ways}",
            head=f"{m.label} {ways}",
            title=f"{ways}-way {m.label} on codes",
            group="marginals",
            plotted=ways == PLOTTED_WAYS,
            lower_is_better=m.lower_is_better,
        )
        for m in distances
        for ways in WAYS
    ]
    keys = [
        Figure(
            name=f"{of}_{m.name}",
            head=f"{of} {m.label}",
            title=title.format(m.label),
            group="keys",
            plotted=bool(m.plots),
            lower_is_better=m.lower_is_better,
        )
        for of, title in (("cross", "Parent-child {} on codes"), ("fanout", "Fanout {}"))
        for m in distances
    ]
    of_queries = [
        Figure(
            name=f"{m.compared_as}_{quantile}",
            head=f"{m.compared_as.capitalize()} {quantile}",
            title=f"{m.label}, {quantile}",
            group="queries",
            plotted=plotted,
            of_queries=True,
            lower_is_better=m.lower_is_better,
        )
        for m in queries
        for quantile, plotted in QUANTILES.items()
    ]
    return (*marginals, *keys, *of_queries, *COSTS)


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
    """A method with a budget: medians over the runs that worked, and the errors of the others."""

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

    def shown(self) -> tuple[Figure, ...]:
        """The figures that this comparison has."""
        return tuple(f for f in compared_figures() if self.workload is not None or not f.of_queries)

    def settings(self) -> tuple[Setting, ...]:
        """Medians by method and budget, in the order of the runs."""
        grouped: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs:
            grouped.setdefault((run.method, run.epsilon), []).append(run)
        return tuple(_setting(method, epsilon, runs) for (method, epsilon), runs in grouped.items())

    def __repr__(self) -> str:
        tried = ", ".join(f"{s.method} at epsilon {s.epsilon}" for s in self.settings())
        return f"<Comparison: {len(self.runs)} runs: {tried}>"

    def _repr_html_(self) -> str:
        figures, settings = self.shown(), self.settings()
        rows = [("floor", "", self.floor), *((s.method, s.epsilon, s.figures) for s in settings)]
        head = ["method", "epsilon", *(figure.head for figure in figures)]
        cells = [
            (m, e, *(None if (v := of.get(f.name)) is None else v / f.scale for f in figures)) for m, e, of in rows
        ]
        failed = [f"Failed: {s.method}, epsilon {s.epsilon}: {error}" for s in settings for error in s.errors]
        return page(f"Methods on {self.source}", head, cells, notes=[WARNING, SPENDING, *failed])


def compare(
    source: Given,
    *,
    methods: Sequence[str | Synthesizer] = tuple(BUILT_IN),
    epsilons: Sequence[Number],
    delta: Number = 0,
    runs: int = 3,
    workload: Workload | Path | str | None = None,
    seed: int = 0,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
    neighbours: Neighbours | str = Neighbours.REPLACE,
    budget_limit: Number | None = None,
    progress: Progress = silent,
    **choices: Any,
) -> Comparison:
    """Run each method `runs` times at each epsilon, with one delta for all; `choices` are those of `draft`.

    Every run spends its own epsilon; with a `budget_limit` none is spent if all together go beyond it. Raises for
    arguments that cannot be used. What goes wrong in a run is part of the comparison. The figures are for the
    publisher alone; `write_comparison` writes them to a folder.

    Example::

        privbench.compare("shop", unit="customer", methods=["tree", "paper"], epsilons=[0.4, 3.2])
    """
    if not methods or not epsilons:
        raise SpecError("methods and epsilons: each needs at least one.")
    if runs < 1:
        raise SpecError(f"runs is {runs}: it must be at least 1.")
    synthesizers = [_synthesizer(method) for method in methods]
    budgets = [(str(epsilon), parse_epsilon(epsilon)) for epsilon in epsilons]
    exact_delta = parse_delta(delta)
    if workload is not None:
        workload_of(workload)
    located = source_of(source, schema=schema, null=null, delimiter=delimiter, ragged=ragged)
    times, relation = len(synthesizers) * runs, member_of(Neighbours, neighbours)
    check_planned(located, [e for _, e in budgets], times=times, neighbours=relation, limit=budget_limit)
    spec = draft(located, neighbours=relation, progress=progress, **choices)
    check_wanted(spec, spec.protection(), exact_delta)
    scorer = _Scorer(spec=spec, source=located, delta=exact_delta, workload=workload, seed=seed)
    plan = list(product(synthesizers, budgets, range(1, runs + 1)))
    scored = []
    with _telling_spent(located, runs=len(plan)):
        for done, (synthesizer, (written, epsilon), number) in enumerate(plan):
            progress(f"{synthesizer.name}, epsilon {written}", done, len(plan))
            figures, error = scorer.score(synthesizer, epsilon, number)
            scored.append(Run(method=synthesizer.name, epsilon=written, number=number, figures=figures, error=error))
    return Comparison(
        source=name_of(located),
        delta=str(delta),
        workload=_workload_name(workload),
        seed=seed,
        runs=tuple(scored),
        floor=scorer.floor,
    )


@contextmanager
def _telling_spent(source: Located, *, runs: int) -> Iterator[None]:
    """Say at the end, however it comes, what the runs of our methods have put into the budget record."""
    before = _recorded(source)
    try:
        yield
    except BaseException as stopped:
        with suppress(PrivBenchError):
            spent = _sum(_recorded(source)[len(before) :])
            stopped.add_note(f"no figures were written. Of {runs} runs the budget record has {spent}.")
        raise
    if recorded := _recorded(source):
        _logger.warning("This source: %s with these runs. `privbench budget` lists them.", _sum(recorded))


def _recorded(source: Located) -> list[Entry]:
    return [entry for spent in budget(source).sources for entry in spent.entries if entry.private]


def _sum(entries: Sequence[Entry]) -> str:
    return f"{len(entries)} releases, epsilon {float(sum(Fraction(entry.epsilon) for entry in entries)):g} in sum"


def _workload_name(workload: Workload | Path | str | None) -> str | None:
    if isinstance(workload, Workload):
        return f"{len(workload.statements)} queries"
    return None if workload is None else str(workload)


@dataclass(slots=True, kw_only=True)
class _Scorer:
    """Scores bundles of one database; keeps the floor of the first that could be scored."""

    spec: Spec
    source: Located
    delta: Fraction
    workload: Workload | Path | str | None
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
        self.floor = self.floor or figures_of(result, floor=True)
        return {**figures_of(result), "cpu_seconds": cost.cpu_seconds, "peak_bytes": cost.peak_bytes}, None


def _synthesizer(method: str | Synthesizer) -> Synthesizer:
    if not isinstance(method, str):
        return method
    if method not in method_names():
        raise SpecError(f"method {method!r}: there is no such method. {closest(method, method_names())}")
    return OwnMethod(name=method)


def figures_of(result: Result, *, floor: bool = False) -> dict[str, float | None]:
    """The figures of a result that are compared, or their floors."""

    def side(measure: Measure) -> float | None:
        return measure.floor if floor else measure.value

    distances = distance_metrics()
    marginals = {f"{m.name}_{ways}": side(result.marginals[ways][m.name].codes) for m in distances for ways in WAYS}
    cross = {f"cross_{m.name}": side(result.cross[m.name].codes) for m in distances}
    fanout = {f"fanout_{m.name}": side(result.fanouts[m.name]) for m in distances}
    queries = {
        f"{m.compared_as}_{quantile}": _quantile(result.workload.get(m.name), quantile, floor=floor)
        for m in query_metrics()
        for quantile in QUANTILES
    }
    return marginals | cross | fanout | queries


def _quantile(summary: QuerySummary | None, quantile: str, *, floor: bool) -> float | None:
    whole = None if summary is None else summary.all
    quantiles = None if whole is None else whole.floor if floor else whole.errors
    return None if quantiles is None else float(getattr(quantiles, quantile))


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
    names = [figure.name for figure in compared_figures()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("method", "epsilon", "runs", *names, "errors"))
    writer.writerow(("floor", "", "", *(comparison.floor.get(name) for name in names), ""))
    for setting in comparison.settings():
        figures = (setting.figures.get(name) for name in names)
        writer.writerow((setting.method, setting.epsilon, setting.runs, *figures, "; ".join(setting.errors)))
    return text.getvalue()


def _setting(method: str, epsilon: str, runs: list[Run]) -> Setting:
    worked = [run for run in runs if run.error is None]
    figures: dict[str, float | None] = {}
    for figure in compared_figures():
        values = [value for run in worked if (value := run.figures.get(figure.name)) is not None]
        figures[figure.name] = median(values) if values else None
    errors = tuple(dict.fromkeys(run.error for run in runs if run.error is not None))
    return Setting(method=method, epsilon=epsilon, runs=len(worked), figures=figures, errors=errors)
