"""The floor: what a resample of the real data by entity scores, so that a reader knows the limit of each figure.

It depends on the real data, the compared columns, the workload and the seed alone, so `floor_file.py` keeps it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from privbench.evaluation.cardinality import Cardinality, count_all
from privbench.evaluation.database import Database, Side
from privbench.evaluation.distribution import Figures, mean
from privbench.evaluation.links import Linked
from privbench.evaluation.owning import Owning
from privbench.evaluation.q_error import q_error
from privbench.evaluation.resample import Resample, resample, write_resample
from privbench.evaluation.scoring import Compared, Scores, link_name, score_all
from privbench.methods.method import Progress
from privbench.workload.query import Statement

MAX_ROWS = 5_000_000
"""A database with more rows gets no floor: it would take long, and it is close to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Mean figures by table and number of columns, by column, and by key; Q-errors by number of the statement."""

    marginals: Mapping[str, Mapping[int, list[float]]] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, list[float]]] = field(default_factory=dict)
    cross: Mapping[str, list[float]] = field(default_factory=dict)
    fanouts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """KLD and TVD."""
    q_errors: Mapping[int, float] = field(default_factory=dict)

    def of_marginals(self, table: str, ways: int) -> Figures:
        """Four figures, NaN without a floor."""
        return _figures(self.marginals.get(table, {}).get(ways))

    def of_column(self, table: str, column: str) -> Figures:
        """Four figures, NaN without a floor."""
        return _figures(self.columns.get(table, {}).get(column))

    def of_cross(self, key: str) -> Figures:
        """Four figures, NaN without a floor."""
        return _figures(self.cross.get(key))

    def of_fanout(self, key: str) -> tuple[float, float]:
        """KLD and TVD, NaN without a floor."""
        return self.fanouts.get(key, (math.nan, math.nan))


def _figures(found: list[float] | None) -> Figures:
    return np.full(4, np.nan) if found is None else np.array(found)


def score_floor(
    database: Database,
    owning: Owning,
    compared: Compared,
    workload: Sequence[tuple[Statement, Cardinality]],
    *,
    seed: int,
    timeout: float,
    progress: Progress,
) -> Floor:
    """Score a resample of the real data as the synthetic data are; `workload` has the real answers."""
    sizes = {name: loaded.rows for name, loaded in database.tables[Side.REAL].items()}
    drawn = resample(owning, sizes, {key: linked.real for key, linked in compared.keys.items()}, seed=seed)
    paired = {name: table.paired(drawn.rows[name]) for name, table in compared.tables.items()}
    linked = {
        key: Linked(
            real=both.real,
            other=drawn.links[key],
            real_parents=both.real_parents,
            other_parents=len(drawn.rows[key[1].table]),
        )
        for key, both in compared.keys.items()
    }
    scores = score_all(compared.plan, paired, linked, linked, progress)
    return _floor(compared, scores, _q_errors(database, owning, drawn, workload, timeout, progress))


def _q_errors(
    database: Database,
    owning: Owning,
    drawn: Resample,
    workload: Sequence[tuple[Statement, Cardinality]],
    timeout: float,
    progress: Progress,
) -> dict[int, float]:
    """The Q-errors of the resample, by number of the statement."""
    if not workload:
        return {}
    write_resample(database, owning.schema, drawn)
    found = count_all(database, Side.FLOOR, [s for s, _ in workload], timeout=timeout, progress=progress)
    return {
        statement.number: q_error(real.count, other.count)
        for (statement, real), other in zip(workload, found, strict=True)
        if real.count is not None and other.count is not None
    }


def _floor(compared: Compared, scores: Scores, q_errors: Mapping[int, float]) -> Floor:
    columns: dict[str, dict[str, list[float]]] = {}
    for name, chosen in compared.plan.marginals.items():
        ones = zip(chosen.get(1, []), scores.marginals[name].get(1, []), strict=True)
        columns[name] = {compared.tables[name].columns[at].name: found.tolist() for (at,), found in ones}
    return Floor(
        marginals={
            name: {ways: mean(found).tolist() for ways, found in by_ways.items()}
            for name, by_ways in scores.marginals.items()
        },
        columns=columns,
        cross={link_name(*key): mean(found).tolist() for key, found in scores.cross.items()},
        fanouts={link_name(*key): (found.kld, found.tvd) for key, found in scores.fanouts.items()},
        q_errors=q_errors,
    )
