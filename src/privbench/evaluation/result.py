"""What an evaluation found, as plain values, and as the JSON of docs/result.md.

It holds exact facts of the private data (counts, values, literals of queries), so it is for the publisher only. A
figure that could not be computed is None, and a `Skip` says why. Figures are kept by the name of their metric.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from privbench.evaluation.metrics import distance_metrics, query_metrics
from privbench.runtime.result import Runtime
from privbench.schema.domain import Scalar
from privbench.schema.notebook import page

VERSION = 2
WARNING = "This file holds exact facts of the private data. It is for the publisher and not for publishing."
PRIVATE = "These are exact facts of the private data: for the publisher, not for publishing."


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Something that was left out of the evaluation, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure, and its floor (None where there is none or it was not asked for)."""

    value: float | None
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """One distance on raw values and on codes (evaluation bins)."""

    values: Measure
    codes: Measure


Distances = Mapping[str, Distance]
"""By the name of the metric."""
Matrix = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """The mean distances of one table over `counted` of its `total` marginals of `ways` columns."""

    ways: int
    counted: int
    total: int
    distances: Distances
    sampled_rows: tuple[int | None, int | None] = (None, None)
    """How many real and synthetic rows they are of, where that is not all of them."""


class BinKind(Enum):
    """Which values are in a bin."""

    VALUE = "value"
    PREFIX = "prefix"
    """Text too long to be kept: this is its beginning."""
    RANGE = "range"
    LENGTH = "length"
    """Text by its number of characters."""
    REST = "rest"
    """All values that no other bin holds."""
    NULL = "null"
    UNKNOWN = "unknown"
    """Values that the real column does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The values of one bin: from `low` to `high`, both included. VALUE and PREFIX have `low` alone.

    Numbers are numbers, dates and times are ISO text; floats that JSON does not have are NaN, Infinity and -Infinity
    as text. A RANGE without `high` has no end. REST says how many values it joins.
    """

    kind: BinKind
    low: Scalar | None = None
    high: Scalar | None = None
    values: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that this kind of bin has."""
        match self.kind:
            case BinKind.VALUE | BinKind.PREFIX:
                return {"kind": self.kind.value, "value": self.low}
            case BinKind.RANGE | BinKind.LENGTH:
                return {"kind": self.kind.value, "low": self.low, "high": self.high}
            case BinKind.REST:
                return {"kind": self.kind.value, "values": self.values}
            case _:
                return {"kind": self.kind.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts of both sides in the same at most 40 bins, for a plot."""

    bins: tuple[Bin, ...]
    real: tuple[int, ...]
    synthetic: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The bins, and the counts of both sides."""
        return {
            "bins": [each.to_json() for each in self.bins],
            "real": list(self.real),
            "synthetic": list(self.synthetic),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnResult:
    """One column: its types, how many distinct values and NULLs each side has, how far the two are apart."""

    name: str
    real_type: str
    synthetic_type: str
    ordered: bool
    real_distinct: int
    synthetic_distinct: int
    real_nulls: int
    synthetic_nulls: int
    histogram: Histogram
    distances: Distances


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """One table; those that could not be compared have their sizes alone."""

    name: str
    private: bool
    """Public tables are copied; they are shown but not part of the means over tables."""
    real_rows: int
    synthetic_rows: int | None
    sampled_rows: tuple[int | None, int | None] = (None, None)
    """How many real and synthetic rows the columns were compared on, where that is not all of them."""
    columns: tuple[ColumnResult, ...] = ()
    pairs: Mapping[str, Matrix] = field(default_factory=dict)
    """By metric: the distance on codes of columns i and j; None on the diagonal and where it was not counted."""
    marginals: tuple[Marginals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResult:
    """One foreign key: pairs (parent column, child column) through it, and how many children parents have."""

    table: str
    columns: tuple[str, ...]
    parent: str
    private: bool
    """Whether one of the two tables is; keys between public tables are not part of the means over keys."""
    counted: int
    total: int
    cross: Distances
    fanout: Histogram
    fanouts: Mapping[str, Measure]
    """The distance of the numbers of children per parent, by metric."""
    real_unlinked: int
    """Rows whose key is NULL or references no row."""
    synthetic_unlinked: int

    @property
    def name(self) -> str:
        """How the key is called: table.column."""
        return f"{self.table}.{','.join(self.columns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """One query of the workload. Its figures are None where `error` says which side could not answer it and why."""

    number: int
    sql: str
    joins: int | None
    """None for a query outside the class of select-project-join counts."""
    real: int | None
    synthetic: int | None
    figures: Mapping[str, Measure]
    """By metric; the floor is the figure of the same query on a resample of the real data."""
    error: str | None
    real_seconds: float
    synthetic_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One rule: the share of rows of either side that keep it; None where it could not be asked."""

    table: str
    rule: str
    origin: str
    """`declared` in a schema or spec, or suggested by the `data`."""
    real: float | None
    synthetic: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """The figures of `queries` queries."""

    queries: int
    mean: float
    median: float
    p75: float
    p90: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures beside those of a resample; `cardinalities` are the least and greatest of the real counts."""

    errors: Quantiles
    floor: Quantiles | None
    cardinalities: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySummary:
    """The workload by one metric: all answered queries, by number of joins and by thirds of real cardinality."""

    all: Summary | None
    by_joins: Mapping[int, Summary]
    by_cardinality: Mapping[str, Summary]
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything that `evaluate` computed."""

    real: str
    synthetic: str
    seed: int
    tables: tuple[TableResult, ...]
    keys: tuple[KeyResult, ...]
    marginals: Mapping[int, Distances]
    """By number of columns: the mean over private tables of their means over marginals."""
    cross: Distances
    """The mean over keys that a private table is part of."""
    fanouts: Mapping[str, Measure]
    """The same mean of the distances of children per parent."""
    queries: tuple[QueryResult, ...] = ()
    workload: Mapping[str, QuerySummary] = field(default_factory=dict)
    """By metric; empty without a workload."""
    rules: tuple[RuleResult, ...] = ()
    runtime: Runtime | None = None
    """None where it was not asked for, or could not be measured; then a skip says why."""
    skips: tuple[Skip, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time by step."""

    def figures(self) -> Iterator[tuple[str, Measure]]:
        """The figures of the whole database, each with its name and its floor."""
        distances = distance_metrics()
        for ways, of_ways in self.marginals.items():
            for metric in distances:
                yield f"{ways}-way {metric.label}, on codes", of_ways[metric.name].codes
        for metric in distances:
            yield f"parent-child {metric.label}, on codes", self.cross[metric.name].codes
        for metric in distances:
            yield f"fanout {metric.label}", self.fanouts[metric.name]
        for query_metric in query_metrics():
            summary = self.workload.get(query_metric.name)
            if summary is None or summary.all is None:
                continue
            errors, floor = summary.all.errors, summary.all.floor
            for name in ("mean", "median", "p95", "max"):
                best = None if floor is None else getattr(floor, name)
                yield f"{query_metric.label} {name}", Measure(value=getattr(errors, name), floor=best)

    def __repr__(self) -> str:
        name, first = next(self.figures())
        return f"<Result: {len(self.tables)} tables, {name} {_shown(first.value)} (floor {_shown(first.floor)})>"

    def _repr_html_(self) -> str:
        rows = [(name, _shown(figure.value), _shown(figure.floor)) for name, figure in self.figures()]
        skipped = [f"Left out, or good to know: {skip.what}: {skip.reason}" for skip in self.skips]
        title = f"{self.synthetic} beside {self.real}"
        return page(title, ["figure", "synthetic", "floor"], rows, notes=[PRIVATE, *skipped])


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def result_json(result: Result) -> dict[str, Any]:
    """Everything of a result, with its figures on top and each figure's floor beside it."""
    distances = {
        **{
            m.name: {str(ways): _distance(d[m.name]) for ways, d in result.marginals.items()}
            for m in distance_metrics()
        },
        **{f"cross_{m.name}": _distance(result.cross[m.name]) for m in distance_metrics()},
        **{f"fanout_{m.name}": asdict(result.fanouts[m.name]) for m in distance_metrics()},
    }
    workload = {m.name: _workload(result.workload.get(m.name)) for m in query_metrics()}
    return {
        "version": VERSION,
        "warning": WARNING,
        "real": result.real,
        "synthetic": result.synthetic,
        "seed": result.seed,
        **distances,
        **workload,
        "tables": [_table(table) for table in result.tables],
        "keys": [_key(key) for key in result.keys],
        "queries": [_query(query) for query in result.queries],
        "rules": [asdict(rule) for rule in result.rules],
        "runtime": None if result.runtime is None else result.runtime.to_json(),
        "skips": [asdict(skip) for skip in result.skips],
        "seconds": dict(result.seconds),
    }


def _distance(distance: Distance) -> dict[str, Any]:
    values, codes = distance.values, distance.codes
    return {"values": values.value, "codes": codes.value, "floor": {"values": values.floor, "codes": codes.floor}}


def _distances(distances: Distances) -> dict[str, Any]:
    return {name: _distance(distance) for name, distance in distances.items()}


def _table(table: TableResult) -> dict[str, Any]:
    matrices = {f"pair_{name}": matrix for name, matrix in table.pairs.items()}
    return {
        "name": table.name,
        "private": table.private,
        "real_rows": table.real_rows,
        "synthetic_rows": table.synthetic_rows,
        "sampled_rows": table.sampled_rows,
        "columns": [_column(column) for column in table.columns],
        **matrices,
        "marginals": {
            str(m.ways): {
                "counted": m.counted,
                "total": m.total,
                "sampled_rows": m.sampled_rows,
                **_distances(m.distances),
            }
            for m in table.marginals
        },
    }


def _column(column: ColumnResult) -> dict[str, Any]:
    return asdict(column) | {
        "histogram": column.histogram.to_json(),
        "distances": _distances(column.distances),
    }


def _key(key: KeyResult) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(key).items() if name != "fanouts"}
    fanouts = {f"fanout_{name}": asdict(measure) for name, measure in key.fanouts.items()}
    return {"name": key.name, **plain, "cross": _distances(key.cross), "fanout": key.fanout.to_json(), **fanouts}


def _query(query: QueryResult) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(query).items() if name != "figures"}
    values = {name: measure.value for name, measure in query.figures.items()}
    return {**plain, **values, "floor": {name: measure.floor for name, measure in query.figures.items()}}


def _workload(summary: QuerySummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    whole = {"queries": 0, "floor": None} if summary.all is None else _summary(summary.all)
    return whole | {
        "failed": summary.failed,
        "by_joins": {str(joins): _summary(part) for joins, part in summary.by_joins.items()},
        "by_cardinality": {name: _summary(part) for name, part in summary.by_cardinality.items()},
    }


def _summary(summary: Summary) -> dict[str, Any]:
    floor = None if summary.floor is None else asdict(summary.floor)
    return asdict(summary.errors) | {"cardinalities": list(summary.cardinalities), "floor": floor}
