"""Evaluate a synthetic database against the real one: start reading here.

Both are loaded, compared columns are coded once, and distances, links and queries are scored, first against the
synthetic database, then (the floor) against a resample of the real one. The result is for the publisher only.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from privbench.errors import SpecError
from privbench.evaluation.assemble import key_results, mean_distances, mean_measure, query_results, table_results
from privbench.evaluation.cardinality import Cardinality, count_all
from privbench.evaluation.database import Database, Side, open_pair
from privbench.evaluation.distribution import Sample
from privbench.evaluation.floor import MAX_ROWS, Floor, score_floor
from privbench.evaluation.floor_file import fingerprint, read_floor, write_floor
from privbench.evaluation.matching import code_tables, link_keys
from privbench.evaluation.owning import Owning, find_owning
from privbench.evaluation.q_error import summarise
from privbench.evaluation.result import Result
from privbench.evaluation.scoring import Compared, make_plan, score_synthetic
from privbench.io.open import open_source
from privbench.methods.method import Progress, silent
from privbench.model.model import Model
from privbench.schema.tables import Schema
from privbench.workload.query import Statement
from privbench.workload.sql import read_workload

MAX_WAYS = 8


def evaluate(
    real: Path | str,
    synthetic: Path | str,
    *,
    workload: Path | None = None,
    model: Model | None = None,
    lambdas: Sequence[int] = (1, 2, 3, 4),
    sample: Sample | None = None,
    floor: bool = True,
    cache: Path | None = None,
    seed: int = 0,
    timeout: float = 60.0,
    progress: Progress = silent,
) -> Result:
    """Compare two databases on `lambdas`-way marginals, keys and the queries of a workload.

    `model` (else the receipt beside the synthetic data) says which tables are public and whose row is whose.
    Floors are kept in the folder `cache`. A query may take `timeout` seconds. Raises for a location, workload or
    argument that cannot be used; whatever else goes wrong is in the result.
    """
    if not all(1 <= ways <= MAX_WAYS for ways in lambdas):
        raise SpecError(f"lambdas {tuple(lambdas)}: marginals have 1 to {MAX_WAYS} columns.")
    statements = () if workload is None else read_workload(workload, schema=_schema(real)).statements
    ways = {1, 2, *lambdas}
    seconds: dict[str, float] = {}
    with _timed(seconds, "total"), open_pair(real, synthetic, progress) as database:
        owning = find_owning(database.schemas[Side.REAL], database.schemas[Side.SYNTHETIC], synthetic, model)
        with _timed(seconds, "code"):
            tables, keys = code_tables(database, owning, progress, seed=seed), link_keys(database, owning)
            if not tables:
                raise SpecError(_nothing_shared(real, synthetic, database))
            plan = make_plan(tables, keys, ways=ways, sample=sample or Sample(), seed=seed)
            compared = Compared(tables=tables, keys=keys, plan=plan)
        with _timed(seconds, "compare"):
            scores = score_synthetic(compared, progress)
        with _timed(seconds, "queries"):
            answers, others = (
                count_all(database, side, statements, timeout=timeout, progress=progress)
                for side in (Side.REAL, Side.SYNTHETIC)
            )
        floors = Floor()
        if floor:
            with _timed(seconds, "floor"):
                both = list(zip(statements, answers, strict=True))
                floors = _floor(
                    database, owning, compared, both, cache=cache, seed=seed, timeout=timeout, progress=progress
                )
        found_tables = table_results(database, owning, compared, scores, floors)
        found_keys = key_results(owning, compared, scores, floors)
        queries = query_results(statements, answers, others, floors)
    private = [table for table in found_tables if table.private]
    linking = [key for key in found_keys if key.private]
    return Result(
        real=str(real),
        synthetic=str(synthetic),
        seed=seed,
        tables=found_tables,
        keys=found_keys,
        marginals={
            count: mean_distances([m.distances for table in private for m in table.marginals if m.ways == count])
            for count in sorted(ways)
        },
        cross=mean_distances([key.cross for key in linking]),
        fanout_kld=mean_measure([key.fanout_kld for key in linking]),
        fanout_tvd=mean_measure([key.fanout_tvd for key in linking]),
        queries=queries,
        q_errors=None if workload is None else summarise(queries),
        skips=tuple(database.skips),
        seconds=seconds,
    )


def _nothing_shared(real: Path | str, synthetic: Path | str, database: Database) -> str:
    why = "".join(f"\n  {skip.what}: {skip.reason}" for skip in database.skips)
    return f"{real} and {synthetic} share no table that can be read, so that there is nothing to compare.{why}"


def _schema(location: Path | str) -> Schema:
    with open_source(location) as source:
        return source.schema()


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[step] = time.perf_counter() - start


def _floor(
    database: Database,
    owning: Owning,
    compared: Compared,
    workload: Sequence[tuple[Statement, Cardinality]],
    *,
    cache: Path | None,
    seed: int,
    timeout: float,
    progress: Progress,
) -> Floor:
    """Take the floor that was kept, or score a resample of the real data."""
    if sum(loaded.rows for loaded in database.tables[Side.REAL].values()) > MAX_ROWS:
        database.skip("floor", f"the real database has more than {MAX_ROWS:,} rows: no resample is scored")
        return Floor()
    if any(table.drawn[Side.REAL] is not None for table in compared.tables.values()):
        database.skip("floor", "a real table is compared on a sample of its rows: no resample is scored")
        return Floor()
    settings = [compared.described(), [s.sql for s, _ in workload], repr(owning.owners), seed, timeout]
    name = fingerprint(database, settings)
    kept = read_floor(cache, name)
    if kept is not None:
        return kept
    floor = score_floor(database, owning, compared, workload, seed=seed, timeout=timeout, progress=progress)
    write_floor(cache, name, floor)
    return floor
