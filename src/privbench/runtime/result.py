"""What was found of runtimes, as plain values, and as the JSON under `runtime` in docs/result.md.

Every variant is compared with the real database. Beside the synthetic one stand the real database loaded a second time
(`again`: what remains of its figures is noise) and a resample of its entities (what chance alone would change).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privbench.runtime.session import Clock
from privbench.runtime.statistics import ColumnStatistics

REAL, AGAIN, RESAMPLE, SYNTHETIC = "real", "again", "resample", "synthetic"
"""The names of the variants of an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Relative differences |b - a| / a over queries."""

    mean: float
    median: float
    p75: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One variant beside the real database; None where a system does not tell what is needed."""

    same_plans: float
    """The share of queries whose plans have the same shape."""
    buffers: Spread | None
    """Pages touched."""
    total_buffers: float | None
    """All pages touched, as a multiple of the real database's."""
    discrepancy: Spread
    """Times."""
    interval: tuple[float, float]
    """95 % of bootstrap samples of queries have their mean discrepancy in here."""
    same_plan_discrepancy: float | None
    """The mean over queries with the same plan."""
    changed_plan_discrepancy: float | None
    total_time: float
    """All times, as a multiple of the real database's."""
    time_factor: float
    """exp(mean |ln(b / a)|): the factor by which a time is typically off."""
    cost_factor: float | None
    """The same of the planner's costs."""
    estimate_factor: float | None
    """The same of the rows that the planner expected at each step, over queries with the same plan."""
    pages: float | None
    """The mean relative difference of the tables' sizes in pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeQuery:
    """One query by variant: the least milliseconds, pages touched, plan, cost, and rows at each step."""

    number: int
    sql: str
    times: Mapping[str, float]
    buffers: Mapping[str, int | None]
    plans: Mapping[str, str]
    costs: Mapping[str, float | None]
    estimated: Mapping[str, tuple[float, ...]]
    actual: Mapping[str, tuple[float, ...]]
    errors: Mapping[str, str]
    """Why it failed, by variant; it is part of no figure then."""

    def changed(self, variant: str) -> bool:
        """Whether a variant has another plan than the real database."""
        return self.plans.get(variant) != self.plans.get(REAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeColumn:
    """What the planner knows of one column, by variant."""

    table: str
    column: str
    statistics: Mapping[str, ColumnStatistics]

    def differences(self, variant: str) -> tuple[str, ...]:
        """What looks different in a variant, in words."""
        if REAL not in self.statistics or variant not in self.statistics:
            return ()
        return self.statistics[REAL].differences(self.statistics[variant])


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything that was measured of runtimes."""

    system: str
    clock: Clock
    rounds: int
    load_average: float
    comparisons: Mapping[str, Comparison]
    """By variant; empty if no query ran on all of them."""
    estimate_errors: Mapping[str, float | None]
    """By variant: the factor by which the planner's rows are typically off from those that it met."""
    queries: tuple[RuntimeQuery, ...]
    columns: tuple[RuntimeColumn, ...] = ()
    """Empty where a system does not tell."""
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[RuntimeQuery, ...]:
        """The queries that are part of no figure."""
        return tuple(query for query in self.queries if query.errors)

    def to_json(self) -> dict[str, Any]:
        """All fields by their names."""
        return asdict(self) | {"clock": self.clock.value, "failed": len(self.failed)}
