"""One pass of all metrics over tables and keys, and the results that come of it.

The plan says which marginals and pairs are counted. The real tables are scored against the synthetic ones, then (the
floor) against a resample of themselves, by the same plan, so that the figures compare. `Floor` has the second pass.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privbench.evaluation.bins import histogram
from privbench.evaluation.cardinality import Cardinality, joins_of
from privbench.evaluation.coding import CodedColumn, CodedTable
from privbench.evaluation.databases import Database, Side
from privbench.evaluation.links import (
    FanoutComparison,
    Key,
    Linked,
    among_coded,
    choose_pairs,
    fanouts,
    link_name,
    score_pairs,
)
from privbench.evaluation.marginals import (
    Columns,
    Figures,
    MeanFigures,
    Paired,
    Sample,
    choose_marginals,
    mean_figures,
    score,
)
from privbench.evaluation.metrics import DistanceMetric, Plot, distance_metrics, plotted, query_metrics
from privbench.evaluation.resample import Ownership
from privbench.evaluation.result import (
    ColumnResult,
    Distance,
    Distances,
    KeyResult,
    Marginals,
    Matrix,
    Measure,
    QueryResult,
    TableResult,
)
from privbench.methods.method import Progress
from privbench.workload.query import Statement

Both = tuple[list[Paired], list[Paired]]
"""The columns of a table in value codes, and in bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The marginals to count by table and number of columns, and the pairs of columns by key."""

    marginals: Mapping[str, Mapping[int, list[Columns]]]
    pairs: Mapping[Key, list[Columns]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """The coded tables and followed keys that both sides have, and what is counted of them."""

    tables: Mapping[str, CodedTable]
    keys: Mapping[Key, Linked]
    plan: Plan

    def described(self) -> str:
        """What is counted, by names."""
        columns = {name: [c.name for c in table.columns] for name, table in self.tables.items()}
        pairs = {link_name(*key): chosen for key, chosen in self.plan.pairs.items()}
        return repr((columns, self.plan.marginals, list(map(str, self.keys)), pairs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Figures of all that was planned, in its order."""

    marginals: Mapping[str, Mapping[int, Figures]]
    cross: Mapping[Key, Figures]
    fanouts: Mapping[Key, FanoutComparison]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Mean figures of a resample, by metric: of tables and numbers of columns, of columns, keys and statements."""

    marginals: Mapping[str, Mapping[int, MeanFigures]] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, MeanFigures]] = field(default_factory=dict)
    cross: Mapping[str, MeanFigures] = field(default_factory=dict)
    fanouts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    queries: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """By metric and number of the statement."""


def make_plan(
    tables: Mapping[str, CodedTable], keys: Mapping[Key, Linked], *, ways: set[int], sample: Sample, seed: int
) -> Plan:
    """Choose what is counted; pairs only where both tables of a key are compared."""
    marginals: dict[str, dict[int, list[Columns]]] = {}
    for name, table in tables.items():
        rows, columns = sum(table.rows.values()), len(table.columns)
        marginals[name] = {
            count: choose_marginals(columns, count, limit=sample.limit(count, rows), seed=seed)
            for count in sorted(ways)
            if math.comb(columns, count)
        }
    pairs = {
        (name, key): choose_pairs(
            tables[key.table],
            tables[name],
            limit=sample.pair_limit(sum(tables[name].rows.values())),
            seed=seed,
        )
        for name, key in keys
        if name in tables and key.table in tables
    }
    return Plan(marginals=marginals, pairs=pairs)


def score_all(
    plan: Plan,
    tables: Mapping[str, Both],
    keys: Mapping[Key, Linked],
    coded: Mapping[Key, Linked],
    metrics: Sequence[DistanceMetric],
    progress: Progress,
) -> Scores:
    """Compute every figure of the plan; `coded` has the keys among the rows of `tables`."""
    marginals: dict[str, dict[int, Figures]] = {}
    for at, (name, chosen) in enumerate(plan.marginals.items()):
        progress("comparing tables", at, len(plan.marginals))
        values, bins = tables[name]
        marginals[name] = {ways: score(values, bins, columns, metrics) for ways, columns in chosen.items()}
    cross = {}
    for at, ((name, key), pairs) in enumerate(plan.pairs.items()):
        progress("comparing keys", at, len(plan.pairs))
        cross[name, key] = score_pairs(tables[key.table], tables[name], coded[name, key], pairs, metrics)
    return Scores(
        marginals=marginals,
        cross=cross,
        fanouts={key: fanouts(linked, metrics) for key, linked in keys.items()},
    )


def score_synthetic(compared: Compared, progress: Progress) -> Scores:
    """Score the synthetic database."""
    paired = {name: table.paired(Side.SYNTHETIC) for name, table in compared.tables.items()}
    coded = {
        (name, key): among_coded(compared.keys[name, key], compared.tables[key.table], compared.tables[name])
        for name, key in compared.plan.pairs
    }
    return score_all(compared.plan, paired, compared.keys, coded, distance_metrics(), progress)


def table_results(
    database: Database, ownership: Ownership, compared: Compared, scores: Scores, floor: Floor
) -> tuple[TableResult, ...]:
    """All real tables in their order; those that could not be compared have their sizes alone."""
    results = []
    for name, loaded in database.tables[Side.REAL].items():
        other = database.find(Side.SYNTHETIC, name)
        alone = TableResult(
            name=name,
            private=ownership.private(name),
            real_rows=loaded.rows,
            synthetic_rows=None if other is None else other.rows,
        )
        table = compared.tables.get(name)
        results.append(alone if table is None else _compared(alone, table, compared.plan, scores, floor))
    return tuple(results)


def _compared(alone: TableResult, table: CodedTable, plan: Plan, scores: Scores, floor: Floor) -> TableResult:
    chosen, figures = plan.marginals[table.name], scores.marginals[table.name]
    floors, column_floors = floor.marginals.get(table.name, {}), floor.columns.get(table.name, {})
    return replace(
        alone,
        sampled_rows=(_sampled(table, Side.REAL), _sampled(table, Side.SYNTHETIC)),
        columns=tuple(
            _column_result(column, ones, column_floors.get(column.name, {}))
            for column, ones in zip(table.columns, single_columns(table, chosen, figures), strict=True)
        ),
        pairs={
            metric.name: _matrix(len(table.columns), chosen.get(2, []), figures[2][metric.name] if 2 in figures else [])
            for metric in plotted(distance_metrics(), Plot.MATRIX)
        },
        marginals=tuple(
            Marginals(
                ways=ways,
                counted=len(chosen[ways]),
                total=math.comb(len(table.columns), ways),
                distances=_distances(mean_figures(of_ways), floors.get(ways, {})),
            )
            for ways, of_ways in figures.items()
        ),
    )


def single_columns(
    table: CodedTable, chosen: Mapping[int, list[Columns]], figures: Mapping[int, Figures]
) -> list[MeanFigures]:
    """The figures of each column by itself; none for one that was not counted."""
    place = {columns[0]: at for at, columns in enumerate(chosen.get(1, []))}
    return [
        {name: tuple(pairs[place[at]].tolist()) for name, pairs in figures[1].items()} if at in place else {}
        for at in range(len(table.columns))
    ]


def _matrix(size: int, chosen: Sequence[Columns], pairs: "Sequence[Sequence[float]] | np.ndarray") -> Matrix:
    cells: list[list[float | None]] = [[None] * size for _ in range(size)]
    for (first, second), (_, on_codes) in zip(chosen, pairs, strict=True):
        cells[first][second] = cells[second][first] = _known(on_codes)
    return tuple(tuple(row) for row in cells)


def _sampled(table: CodedTable, side: Side) -> int | None:
    return None if table.drawn[side] is None else table.rows[side]


def _column_result(column: CodedColumn, figures: MeanFigures, floor: MeanFigures) -> ColumnResult:
    dictionary = column.dictionary
    return ColumnResult(
        name=column.name,
        real_type=column.real.type.sql,
        synthetic_type=column.synthetic.type.sql,
        ordered=column.bins.ordered,
        real_distinct=int(np.count_nonzero(dictionary.real[:-1])),
        synthetic_distinct=int(np.count_nonzero(dictionary.synthetic[:-1])),
        real_nulls=int(dictionary.real[-1]),
        synthetic_nulls=int(dictionary.synthetic[-1]),
        histogram=histogram(column.bins, dictionary),
        distances=_distances(figures, floor),
    )


def key_results(ownership: Ownership, compared: Compared, scores: Scores, floor: Floor) -> tuple[KeyResult, ...]:
    """All keys that could be followed on both sides."""
    return tuple(_key_result(ownership, key, compared, scores, floor) for key in compared.keys)


def _key_result(ownership: Ownership, key: Key, compared: Compared, scores: Scores, floor: Floor) -> KeyResult:
    name, children, linked = link_name(*key), scores.fanouts[key], compared.keys[key]
    floors = floor.fanouts.get(name, {})
    ends = [compared.tables[t] for t in (key[0], key[1].table) if t in compared.tables]
    return KeyResult(
        table=key[0],
        columns=key[1].columns,
        parent=key[1].table,
        private=ownership.private(key[0]) or ownership.private(key[1].table),
        counted=len(compared.plan.pairs.get(key, [])),
        total=math.prod(len(t.columns) for t in ends) if len(ends) == 2 else 0,
        cross=_distances(mean_figures(scores.cross.get(key, {})), floor.cross.get(name, {})),
        fanout=children.histogram,
        fanouts={metric: measure(value, floors.get(metric, math.nan)) for metric, value in children.distances.items()},
        real_unlinked=int(np.count_nonzero(linked.real < 0)),
        synthetic_unlinked=int(np.count_nonzero(linked.other < 0)),
    )


def query_results(
    statements: Sequence[Statement], real: Sequence[Cardinality], synthetic: Sequence[Cardinality], floor: Floor
) -> tuple[QueryResult, ...]:
    """Both answers of each statement, and how far they are apart."""
    return tuple(
        QueryResult(
            number=statement.number,
            sql=statement.sql,
            joins=joins_of(statement),
            real=left.count,
            synthetic=right.count,
            figures={
                metric.name: Measure(
                    value=None
                    if left.count is None or right.count is None
                    else metric.function(left.count, right.count),
                    floor=floor.queries.get(metric.name, {}).get(statement.number),
                )
                for metric in query_metrics()
            },
            error="; ".join(
                f"{side.value}: {answer.error}"
                for side, answer in ((Side.REAL, left), (Side.SYNTHETIC, right))
                if answer.error
            )
            or None,
            real_seconds=left.seconds,
            synthetic_seconds=right.seconds,
        )
        for statement, left, right in zip(statements, real, synthetic, strict=True)
    )


def mean_distances(parts: Sequence[Distances]) -> Distances:
    """The mean over tables or keys, of the figures and of their floors."""
    return {
        metric.name: Distance(
            values=mean_measure([p[metric.name].values for p in parts]),
            codes=mean_measure([p[metric.name].codes for p in parts]),
        )
        for metric in distance_metrics()
    }


def mean_measure(parts: Sequence[Measure]) -> Measure:
    """The mean over the parts that have a value."""
    values = [p.value for p in parts if p.value is not None]
    floors = [p.floor for p in parts if p.floor is not None]
    return measure(float(np.mean(values)) if values else math.nan, float(np.mean(floors)) if floors else math.nan)


def measure(value: float, floor: float = math.nan) -> Measure:
    """A figure with its floor, None for NaN."""
    return Measure(value=_known(value), floor=_known(floor))


def _distances(figures: MeanFigures, floor: MeanFigures) -> Distances:
    none = (math.nan, math.nan)
    both = {m.name: (figures.get(m.name, none), floor.get(m.name, none)) for m in distance_metrics()}
    return {
        name: Distance(values=measure(value[0], low[0]), codes=measure(value[1], low[1]))
        for name, (value, low) in both.items()
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
