"""From figures to the Result: each figure with its floor, tables and keys in their declared order."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privbench.evaluation.bins import histogram
from privbench.evaluation.cardinality import Cardinality, joins_of
from privbench.evaluation.coding import CodedColumn, CodedTable
from privbench.evaluation.database import Database, Side
from privbench.evaluation.distribution import Figures, distances, mean, measure
from privbench.evaluation.floor import Floor
from privbench.evaluation.owning import Owning
from privbench.evaluation.q_error import q_error
from privbench.evaluation.result import (
    ColumnResult,
    Distances,
    KeyResult,
    Marginals,
    Measure,
    QueryResult,
    TableResult,
)
from privbench.evaluation.scoring import Compared, Key, Plan, Scores, link_name
from privbench.workload.query import Statement


def table_results(
    database: Database, owning: Owning, compared: Compared, scores: Scores, floor: Floor
) -> tuple[TableResult, ...]:
    """All real tables in their order; those that could not be compared have their sizes alone."""
    results = []
    for name, loaded in database.tables[Side.REAL].items():
        other = database.find(Side.SYNTHETIC, name)
        alone = TableResult(
            name=name,
            private=owning.private(name),
            real_rows=loaded.rows,
            synthetic_rows=None if other is None else other.rows,
        )
        table = compared.tables.get(name)
        results.append(alone if table is None else _compared(alone, table, compared.plan, scores, floor))
    return tuple(results)


def _compared(alone: TableResult, table: CodedTable, plan: Plan, scores: Scores, floor: Floor) -> TableResult:
    chosen, figures = plan.marginals[table.name], scores.marginals[table.name]
    ones = {columns[0]: figures[1][at] for at, columns in enumerate(chosen.get(1, []))}
    pairs: list[list[float | None]] = [[None] * len(table.columns) for _ in table.columns]
    for (first, second), found in zip(chosen.get(2, []), figures.get(2, np.zeros((0, 4))), strict=True):
        pairs[first][second] = pairs[second][first] = measure(found[3]).value
    return replace(
        alone,
        sampled_rows=(_sampled(table, Side.REAL), _sampled(table, Side.SYNTHETIC)),
        columns=tuple(
            _column_result(column, ones.get(at, np.full(4, np.nan)), floor.of_column(table.name, column.name))
            for at, column in enumerate(table.columns)
        ),
        pair_tvd=tuple(tuple(row) for row in pairs),
        marginals=tuple(
            Marginals(
                ways=ways,
                counted=len(found),
                total=math.comb(len(table.columns), ways),
                distances=distances(mean(found), floor.of_marginals(table.name, ways)),
            )
            for ways, found in figures.items()
        ),
    )


def _sampled(table: CodedTable, side: Side) -> int | None:
    return None if table.drawn[side] is None else table.rows[side]


def _column_result(column: CodedColumn, figures: Figures, floor: Figures) -> ColumnResult:
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
        distances=distances(figures, floor),
    )


def key_results(owning: Owning, compared: Compared, scores: Scores, floor: Floor) -> tuple[KeyResult, ...]:
    """All keys that could be followed on both sides."""
    return tuple(_key_result(owning, key, compared, scores, floor) for key in compared.keys)


def _key_result(owning: Owning, key: Key, compared: Compared, scores: Scores, floor: Floor) -> KeyResult:
    name, found, linked = link_name(*key), scores.fanouts[key], compared.keys[key]
    kld_floor, tvd_floor = floor.of_fanout(name)
    ends = [compared.tables[t] for t in (key[0], key[1].table) if t in compared.tables]
    return KeyResult(
        table=key[0],
        columns=key[1].columns,
        parent=key[1].table,
        private=owning.private(key[0]) or owning.private(key[1].table),
        counted=len(compared.plan.pairs.get(key, [])),
        total=math.prod(len(t.columns) for t in ends) if len(ends) == 2 else 0,
        cross=distances(mean(scores.cross.get(key, np.zeros((0, 4)))), floor.of_cross(name)),
        fanout=found.histogram(),
        fanout_kld=measure(found.kld, kld_floor),
        fanout_tvd=measure(found.tvd, tvd_floor),
        real_unlinked=int(np.count_nonzero(linked.real < 0)),
        synthetic_unlinked=int(np.count_nonzero(linked.other < 0)),
    )


def query_results(
    statements: Sequence[Statement], real: Sequence[Cardinality], synthetic: Sequence[Cardinality], floor: Floor
) -> tuple[QueryResult, ...]:
    """Both answers of each statement."""
    found = []
    for statement, left, right in zip(statements, real, synthetic, strict=True):
        problems = [f"{s.value}: {c.error}" for s, c in ((Side.REAL, left), (Side.SYNTHETIC, right)) if c.error]
        both = left.count is not None and right.count is not None
        found.append(
            QueryResult(
                number=statement.number,
                sql=statement.sql,
                joins=joins_of(statement),
                real=left.count,
                synthetic=right.count,
                q_error=q_error(left.count or 0, right.count or 0) if both else None,
                floor=floor.q_errors.get(statement.number),
                error="; ".join(problems) or None,
                real_seconds=left.seconds,
                synthetic_seconds=right.seconds,
            )
        )
    return tuple(found)


def mean_distances(parts: Sequence[Distances]) -> Distances:
    """The mean over tables or keys, of the figures and of their floors."""
    return Distances(
        kld_values=mean_measure([p.kld_values for p in parts]),
        kld_codes=mean_measure([p.kld_codes for p in parts]),
        tvd_values=mean_measure([p.tvd_values for p in parts]),
        tvd_codes=mean_measure([p.tvd_codes for p in parts]),
    )


def mean_measure(parts: Sequence[Measure]) -> Measure:
    """The mean over the parts that have a value."""
    values = [p.value for p in parts if p.value is not None]
    floors = [p.floor for p in parts if p.floor is not None]
    return measure(float(np.mean(values)) if values else math.nan, float(np.mean(floors)) if floors else math.nan)
