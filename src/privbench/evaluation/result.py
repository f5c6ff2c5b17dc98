"""What an evaluation found, as plain values: the report draws it, `result_json.py` writes it.

It holds exact facts of the private data (counts, literals of queries), so it is for the publisher only. A figure
that could not be computed is None, and a `Skip` says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Something that was left out of the evaluation, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure, and what a resample of the real data would score (None if that was not asked for)."""

    value: float | None
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """KLD (nats) and TVD on raw values and on codes (evaluation bins), each a mean over marginals."""

    kld_values: Measure
    kld_codes: Measure
    tvd_values: Measure
    tvd_codes: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """The distances of one table over `counted` of its `total` marginals of `ways` columns."""

    ways: int
    counted: int
    total: int
    distances: Distances


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts of both sides in the same at most 40 bins, for a plot."""

    labels: tuple[str, ...]
    real: tuple[int, ...]
    synthetic: tuple[int, ...]


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
    """One table. `pair_tvd[i][j]` is the 2-way TVD on codes of columns i and j; None on the diagonal or not counted."""

    name: str
    private: bool
    """Public tables are copied; they are shown but not part of the means over tables."""
    real_rows: int
    synthetic_rows: int | None
    sampled_rows: tuple[int | None, int | None] = (None, None)
    """How many real and synthetic rows the columns were compared on, where that is not all of them."""
    columns: tuple[ColumnResult, ...] = ()
    pair_tvd: tuple[tuple[float | None, ...], ...] = ()
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
    fanout_kld: Measure
    fanout_tvd: Measure
    real_unlinked: int
    """Rows whose key is NULL or names no row."""
    synthetic_unlinked: int

    @property
    def name(self) -> str:
        """How the key is called: table.column."""
        return f"{self.table}.{','.join(self.columns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """One query of the workload. `q_error` is None where `error` says which side could not answer it and why."""

    number: int
    sql: str
    joins: int | None
    """None for a query outside the class of select-project-join counts."""
    real: int | None
    synthetic: int | None
    q_error: float | None
    floor: float | None
    """The Q-error of the same query on a resample of the real data."""
    error: str | None
    real_seconds: float
    synthetic_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Q-errors of `queries` queries."""

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
    """Q-errors beside those of a resample; `cardinalities` are the least and greatest of the real counts."""

    errors: Quantiles
    floor: Quantiles | None
    cardinalities: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QErrors:
    """The workload: all answered queries together, by number of joins and by thirds of real cardinality."""

    all: Summary | None
    by_joins: Mapping[int, Summary]
    by_cardinality: Mapping[str, Summary]
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything `evaluate` found."""

    real: str
    synthetic: str
    seed: int
    tables: tuple[TableResult, ...]
    keys: tuple[KeyResult, ...]
    marginals: Mapping[int, Distances]
    """By number of columns: the mean over private tables of their means over marginals."""
    cross: Distances
    """The mean over keys that a private table is part of."""
    fanout_kld: Measure
    fanout_tvd: Measure
    queries: tuple[QueryResult, ...] = ()
    q_errors: QErrors | None = None
    skips: tuple[Skip, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time by step."""
