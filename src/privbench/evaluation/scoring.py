"""One pass of all metrics over tables and keys, and the results that come of it.

The plan says which marginals and pairs are counted, and of which rows. The real tables are scored against the synthetic
ones and (the floor) against a resample of themselves, in one pass, so that real rows are counted once and the figures
compare. `Floor` has the mean figures of the resample.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privbench.evaluation.bins import histogram
from privbench.evaluation.cardinality import Cardinality, joins_of
from privbench.evaluation.coding import SIDES, CodedColumn, CodedTable
from privbench.evaluation.databases import Database, Positions, Side, draw_rows
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
    WIDE,
    AlignedTable,
    Columns,
    Figures,
    MeanFigures,
    Rows,
    Sample,
    choose_marginals,
    mean_figures,
    score,
)
from privbench.evaluation.metrics import Plot, distance_metrics, plotted, query_metrics
from privbench.evaluation.resample import Ownership, Resample
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The marginals to count by table and number of columns, and the pairs of columns by key."""

    marginals: Mapping[str, Mapping[int, list[Columns]]]
    pairs: Mapping[Key, list[Columns]]
    wide_rows: Mapping[str, Mapping[Side, Positions | None]]
    """The coded rows of either side that marginals of three columns and more are of, by table; None for all."""


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
        wide = {name: _size(of_side[Side.REAL]) for name, of_side in self.plan.wide_rows.items()}
        return repr((columns, self.plan.marginals, wide, list(map(str, self.keys)), pairs))


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
    wide_rows: dict[str, dict[Side, Positions | None]] = {}
    for name, table in tables.items():
        drawn = wide_rows[name] = {
            side: draw_rows(table.rows[side], most=sample.wide_rows, seed=seed) for side in SIDES
        }
        rows, columns = sum(table.rows.values()), len(table.columns)
        wide = sum(_size(drawn[side]) or table.rows[side] for side in SIDES)
        marginals[name] = {
            count: choose_marginals(
                columns,
                count,
                limit=sample.wide_limit(count, wide) if count >= WIDE and wide < rows else sample.limit(count, rows),
                seed=seed,
            )
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
    return Plan(marginals=marginals, pairs=pairs, wide_rows=wide_rows)


def note_samples(database: Database, plan: Plan) -> None:
    """Say which tables have marginals that are counted on drawn rows."""
    for name, drawn in plan.wide_rows.items():
        for side, rows in drawn.items():
            if rows is not None and max(plan.marginals[name]) >= WIDE:
                counted = f"{len(rows):,} of {database.size(side, name):,} rows, by seed"
                database.skip(name, f"{side.value}: marginals of {WIDE} columns and more are counted on {counted}")


def score_all(compared: Compared, resampled: Resample | None, progress: Progress) -> list[Scores]:
    """Compute every figure of the plan: of the synthetic database and, if given, of a resample of the real one."""
    metrics, plan = distance_metrics(), compared.plan
    copied = {} if resampled is None else resampled.rows
    linked = [compared.keys] if resampled is None else [compared.keys, _resampled(compared.keys, resampled)]
    tables = {name: t.aligned(copied.get(name)) for name, t in compared.tables.items()}
    cross: list[dict[Key, Figures]] = [{} for _ in linked]
    for at, ((name, key), pairs) in enumerate(plan.pairs.items()):
        progress("comparing keys", at, len(plan.pairs))
        positions = among_coded(compared.keys[name, key], compared.tables[key.table], compared.tables[name])
        positions += [keys[name, key].other for keys in linked[1:]]
        scored = score_pairs(tables[key.table], tables[name], positions, pairs, metrics)
        for of_keys, figures in zip(cross, scored, strict=True):
            of_keys[name, key] = figures
    marginals: list[dict[str, dict[int, Figures]]] = [{name: {} for name in plan.marginals} for _ in linked]
    for at, name in enumerate(plan.marginals):
        progress("comparing tables", at, len(plan.marginals))
        for ways, columns, table in _by_ways(plan, name, tables[name], copied.get(name)):
            for of_side, figures in zip(marginals, score(table, columns, metrics), strict=True):
                of_side[name][ways] = figures
    return [
        Scores(marginals=of_side, cross=of_keys, fanouts={key: fanouts(both, metrics) for key, both in keys.items()})
        for of_side, of_keys, keys in zip(marginals, cross, linked, strict=True)
    ]


def _resampled(keys: Mapping[Key, Linked], resampled: Resample) -> dict[Key, Linked]:
    """The real keys beside those of the resample."""
    return {
        key: Linked(
            real=linked.real,
            other=resampled.links[key],
            real_parents=linked.real_parents,
            other_parents=len(resampled.rows[key[1].table]),
        )
        for key, linked in keys.items()
    }


def _by_ways(
    plan: Plan, name: str, table: AlignedTable, copied: Positions | None
) -> Iterator[tuple[int, list[Columns], AlignedTable]]:
    """The marginals of a table by number of columns, with the rows that they are counted on."""
    wide = table.take(_rows(plan.wide_rows[name], copied))
    for ways, columns in plan.marginals[name].items():
        yield ways, columns, table if ways < WIDE else wide


def _rows(drawn: Mapping[Side, Positions | None], resampled: Positions | None) -> list[Rows]:
    """The rows of each side that are drawn; of a resample, the copies of the real ones among them."""
    sides: list[Rows] = [slice(None) if (rows := drawn[side]) is None else rows for side in SIDES]
    if resampled is None:
        return sides
    real = drawn[Side.REAL]
    return [*sides, slice(None) if real is None else np.flatnonzero(np.isin(resampled, real))]


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
    sampled = (_size(table.drawn[Side.REAL]), _size(table.drawn[Side.SYNTHETIC]))
    drawn = plan.wide_rows[table.name]
    wide = (_size(drawn[Side.REAL]) or sampled[0], _size(drawn[Side.SYNTHETIC]) or sampled[1])
    return replace(
        alone,
        sampled_rows=sampled,
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
                sampled_rows=sampled if ways < WIDE else wide,
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


def _size(drawn: Positions | None) -> int | None:
    """How many rows are drawn; None for all."""
    return None if drawn is None else len(drawn)


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
