"""The floor: what a resample of the real data by entity scores, so that a reader knows the limit of each figure.

It depends on the real data, the compared columns, the workload, the seed and the metrics alone, so it is kept in a
file under a name that is a fingerprint of these. A file holds figures of the private data: it is created so that only
its owner can read it, and stays with the publisher.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privbench.evaluation.cardinality import Cardinality, count_all
from privbench.evaluation.databases import Database, Side, qualified
from privbench.evaluation.links import link_name
from privbench.evaluation.marginals import MeanFigures, mean_figures
from privbench.evaluation.metrics import distance_metrics, query_metrics, with_floor
from privbench.evaluation.resample import Ownership, Resample, resample, write_resample
from privbench.evaluation.scoring import Compared, Floor, Scores, single_columns
from privbench.methods.method import Progress
from privbench.workload.query import Statement

MAX_ROWS = 5_000_000
"""A database with more rows gets no floor: it would take long, and it is close to nothing."""
VERSION = 2

Workload = Sequence[tuple[Statement, Cardinality]]
"""Statements with their real answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A floor that is asked for: the one that was kept, or the resample to score; neither where there is none."""

    name: str = ""
    kept: Floor | None = None
    resample: Resample | None = None


def find_floor(
    database: Database,
    ownership: Ownership,
    compared: Compared,
    statements: Sequence[Statement],
    *,
    cache: Path | None,
    seed: int,
    timeout: float,
) -> Wanted:
    """Take the floor that was kept, or draw a resample of the real data."""
    sizes = {name: loaded.rows for name, loaded in database.tables[Side.REAL].items()}
    if sum(sizes.values()) > MAX_ROWS:
        database.skip("floor", f"the real database has more than {MAX_ROWS:,} rows: no resample is scored")
        return Wanted()
    if any(table.drawn[Side.REAL] is not None for table in compared.tables.values()):
        database.skip("floor", "a real table is compared on a sample of its rows: no resample is scored")
        return Wanted()
    metrics = [m.name for m in (*with_floor(distance_metrics()), *with_floor(query_metrics()))]
    settings = [compared.described(), [s.sql for s in statements], repr(ownership.owners), seed, timeout, metrics]
    name = fingerprint(database, settings)
    kept = read_floor(cache, name)
    if kept is not None:
        return Wanted(name=name, kept=kept)
    links = {key: linked.real for key, linked in compared.keys.items()}
    return Wanted(name=name, resample=resample(ownership, sizes, links, seed=seed))


def score_floor(
    database: Database,
    ownership: Ownership,
    compared: Compared,
    wanted: Wanted,
    scores: Sequence[Scores],
    workload: Workload,
    *,
    cache: Path | None,
    timeout: float,
    progress: Progress,
) -> Floor:
    """The floor: as it was kept, or from the scores of the resample and its answers to the queries; then it is kept."""
    if wanted.resample is None:
        return wanted.kept or Floor()
    queries = _query_figures(database, ownership, wanted.resample, workload, timeout, progress)
    [of_resample] = scores
    floor = _floor(compared, of_resample, queries)
    write_floor(cache, wanted.name, floor)
    return floor


def _query_figures(
    database: Database,
    ownership: Ownership,
    drawn: Resample,
    workload: Workload,
    timeout: float,
    progress: Progress,
) -> dict[str, dict[int, float]]:
    """The figures of the statements on the resample, by metric and number of the statement."""
    metrics = with_floor(query_metrics())
    if not workload or not metrics:
        return {}
    write_resample(database, ownership.schema, drawn)
    answers = count_all(database, Side.FLOOR, [s for s, _ in workload], timeout=timeout, progress=progress)
    both = {
        statement.number: (real.count, other.count)
        for (statement, real), other in zip(workload, answers, strict=True)
        if real.count is not None and other.count is not None
    }
    return {metric.name: {number: metric.function(*counts) for number, counts in both.items()} for metric in metrics}


def _floor(compared: Compared, scores: Scores, queries: Mapping[str, Mapping[int, float]]) -> Floor:
    """Mean figures of a resample, by the metrics that have a floor."""
    columns = {}
    for name, chosen in compared.plan.marginals.items():
        table = compared.tables[name]
        single = single_columns(table, chosen, scores.marginals[name])
        columns[name] = {column.name: ones for column, ones in zip(table.columns, single, strict=True)}
    return Floor(
        marginals={
            name: {ways: mean_figures(figures) for ways, figures in by_ways.items()}
            for name, by_ways in scores.marginals.items()
        },
        columns=columns,
        cross={link_name(*key): mean_figures(figures) for key, figures in scores.cross.items()},
        fanouts={link_name(*key): children.distances for key, children in scores.fanouts.items()},
        queries=queries,
    )


def fingerprint(database: Database, settings: Sequence[object]) -> str:
    """A name for the real data (every value of every row, whatever their order) and all that the floor depends on."""
    tables = [
        (name, *database.rows(f"SELECT count(*), sum(hash(t)) FROM {qualified(Side.REAL, name)} t")[0])  # noqa: S608
        for name in sorted(database.tables[Side.REAL])
    ]
    return hashlib.sha256(repr((VERSION, tables, list(settings))).encode()).hexdigest()[:32]


def read_floor(cache: Path | None, name: str) -> Floor | None:
    """Find a floor that was kept; None if there is none or the file is damaged."""
    if cache is None:
        return None
    try:
        return _read(json.loads((cache / f"floor-{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_floor(cache: Path | None, name: str, floor: Floor) -> None:
    """Keep a floor; a folder that cannot be written only means that it is computed again."""
    if cache is None:
        return
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, staged = tempfile.mkstemp(prefix=".floor-", dir=cache)  # created with mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(floor), file)
        Path(staged).replace(cache / f"floor-{name}.json")
    except OSError:
        return


def _read(kept: dict[str, Any]) -> Floor:
    return Floor(
        marginals={t: {int(w): _pairs(v) for w, v in ways.items()} for t, ways in kept["marginals"].items()},
        columns={t: {c: _pairs(v) for c, v in columns.items()} for t, columns in kept["columns"].items()},
        cross={k: _pairs(v) for k, v in kept["cross"].items()},
        fanouts={k: {m: float(v) for m, v in by_metric.items()} for k, by_metric in kept["fanouts"].items()},
        queries={m: {int(n): float(v) for n, v in by_number.items()} for m, by_number in kept["queries"].items()},
    )


def _pairs(kept: dict[str, list[Any]]) -> MeanFigures:
    return {metric: (float(on_values), float(on_codes)) for metric, (on_values, on_codes) in kept.items()}
