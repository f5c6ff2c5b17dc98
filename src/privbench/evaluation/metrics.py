"""The metrics of an evaluation: one value each, in the one list that everything else goes through.

Result, floors, verdicts, comparison and report iterate over it, so a metric is added here and nowhere else; a plot of
a kind that there is not yet is added to `Plot` and drawn in report/report.js.

A distance compares two distributions: shares of rows by value (of columns, or of pairs of columns through a key) and
shares of parents by number of children. A query metric compares two cardinalities of a query.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]
"""The share of rows in each cell; they need not be all cells."""


class Unit(Enum):
    """What a figure is, which says how it is written."""

    NATS = "nats"
    SHARE = "share"
    FACTOR = "factor"
    NUMBER = "number"


class Plot(Enum):
    """Where the report draws a metric. Any metric is in its tables."""

    BARS = "bars"
    """Beside the histogram of each column, and of each key's children per parent."""
    MATRIX = "matrix"
    """The pairs of columns of a table, coloured by the metric on codes."""
    CURVES = "curves"
    """The share of queries up to each value, by number of joins."""


class FloorRule(Enum):
    """How the floor of a metric is computed, beside which each of its figures stands."""

    RESAMPLE = "resample"
    """The same figure of a resample of the real data by entity."""
    NONE = "none"
    """There is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Up to which figures a verdict says close, and recognisable; further from the best it says far off."""

    close: float
    fair: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What all metrics have."""

    name: str
    """The key in result.json."""
    label: str
    """The name in tables and plots."""
    description: str
    reading: str
    """What a figure means: a clause with {value}, and {what} for what is counted."""
    unit: Unit
    best: float
    """The figure of two equal databases."""
    worst: float
    """The other end of the scale: above `best` where lower is better, below it where higher is."""
    plots: tuple[Plot, ...] = ()
    floor: FloorRule = FloorRule.RESAMPLE
    limits: Limits | None = None
    """None for a metric that no verdict goes by."""

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isidentifier() and self.name.islower()):
            raise ValueError(f"metric {self.name!r}: a name is made of small letters, digits and underscores")

    @property
    def lower_is_better(self) -> bool:
        """Which way figures improve."""
        return self.best < self.worst

    def clipped(self, value: float) -> float:
        """Keep rounding errors from leaving the scale."""
        return min(max(value, min(self.best, self.worst)), max(self.best, self.worst))

    def excess(self, value: float) -> float:
        """How far a figure is from the best."""
        return abs(value - self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceMetric(Metric):
    """A metric of two distributions."""

    function: Callable[[Shares, Shares], float]
    """What some cells add, given real and other shares: the metric is the sum over all cells with a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMetric(Metric):
    """A metric of two cardinalities; `limits` are those of the median, `tail_limits` those of the 95th percentile."""

    function: Callable[[int, int], float]
    """The figure of a query, given its real and its other cardinality."""
    compared_as: str
    """How the figures of a comparison begin: q for q_mean and so on."""
    tail_limits: Limits | None = None


ADDED = 1e-10
"""Added to each probability of the KLD, as in the paper, so that an unmatched cell costs much but not infinitely."""


def kl_divergence(real: Shares, other: Shares) -> float:
    """Add up p ln(p / q), in nats."""
    p, terms = real + ADDED, other + ADDED
    np.divide(p, terms, out=terms)  # in place: these arrays can be long
    np.log(terms, out=terms)
    terms *= p
    return float(terms.sum())


def total_variation(real: Shares, other: Shares) -> float:
    """Add up |p - q| / 2."""
    apart = real - other
    return 0.5 * float(np.abs(apart, out=apart).sum())


def q_error(real: int, other: int) -> float:
    """How many times one cardinality is the other, where 0 counts as 1.

    >>> q_error(0, 5), q_error(10, 4)
    (5.0, 2.5)
    """
    real, other = max(real, 1), max(other, 1)
    return max(real / other, other / real)


METRICS: tuple[DistanceMetric | QueryMetric, ...] = (
    DistanceMetric(
        name="kld",
        label="KLD",
        description="Kullback-Leibler divergence of the synthetic distribution from the real one",
        reading="{value} nats",
        unit=Unit.NATS,
        best=0.0,
        worst=math.inf,
        function=kl_divergence,
    ),
    DistanceMetric(
        name="tvd",
        label="TVD",
        description="total variation distance: the share of rows that would have to move",
        reading="{value} of {what} are in the wrong place",
        unit=Unit.SHARE,
        best=0.0,
        worst=1.0,
        plots=(Plot.BARS, Plot.MATRIX),
        limits=Limits(close=0.05, fair=0.2),
        function=total_variation,
    ),
    QueryMetric(
        name="q_error",
        label="Q-error",
        description="how many times the count of a query is too large or too small",
        reading="within a factor of {value} of the truth",
        unit=Unit.FACTOR,
        best=1.0,
        worst=math.inf,
        plots=(Plot.CURVES,),
        limits=Limits(close=1.5, fair=4.0),
        tail_limits=Limits(close=1.5**3, fair=4.0**3),
        function=q_error,
        compared_as="q",
    ),
)
"""All metrics, in the order in which they are shown."""

_Kind = TypeVar("_Kind", DistanceMetric, QueryMetric)


def distance_metrics() -> tuple[DistanceMetric, ...]:
    """The metrics of distributions."""
    return tuple(metric for metric in METRICS if isinstance(metric, DistanceMetric))


def query_metrics() -> tuple[QueryMetric, ...]:
    """The metrics of queries."""
    return tuple(metric for metric in METRICS if isinstance(metric, QueryMetric))


def with_floor(metrics: Iterable[_Kind]) -> tuple[_Kind, ...]:
    """Those whose floor is scored on a resample."""
    return tuple(metric for metric in metrics if metric.floor is FloorRule.RESAMPLE)


def plotted(metrics: Iterable[_Kind], plot: Plot) -> tuple[_Kind, ...]:
    """Those that the report draws in this way."""
    return tuple(metric for metric in metrics if plot in metric.plots)
