"""Evaluate a synthetic database against the real one: start reading here.

Both are loaded, compared columns are coded once, and distances, links and queries are scored, first against the
synthetic database, then (the floor) against a resample of the real one. The result is for the publisher only.
"""

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from privbench.errors import ServerError, SpecError
from privbench.evaluation.cardinality import count_all, summarise
from privbench.evaluation.coding import code_tables
from privbench.evaluation.databases import Database, Side, open_pair
from privbench.evaluation.floors import Wanted, find_floor, score_floor
from privbench.evaluation.links import link_keys
from privbench.evaluation.marginals import Sample
from privbench.evaluation.metrics import distance_metrics, query_metrics
from privbench.evaluation.resample import Ownership, find_ownership
from privbench.evaluation.result import Result
from privbench.evaluation.rules import rule_results
from privbench.evaluation.runtimes import measure_runtimes
from privbench.evaluation.scoring import (
    Compared,
    Floor,
    key_results,
    make_plan,
    mean_distances,
    mean_measure,
    note_samples,
    query_results,
    score_all,
    table_results,
)
from privbench.io.given import Given, Located, name_of, path_of, source_of
from privbench.io.names import find_name
from privbench.io.open import open_source
from privbench.methods.method import Progress, silent
from privbench.model.arguments import model_of
from privbench.model.model import Model
from privbench.runtime.result import Runtime
from privbench.runtime.session import System
from privbench.runtime.systems import find_system
from privbench.schema.tables import Schema
from privbench.workload.literal import QueryDialect
from privbench.workload.query import Statement, Workload
from privbench.workload.sql import workload_of
from privbench.workload.statement import table_names

MAX_WAYS = 8


def evaluate(
    real: Given,
    synthetic: Given,
    *,
    workload: Workload | Path | str | None = None,
    model: Model | Path | str | None = None,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
    lambdas: Sequence[int] = (1, 2, 3, 4),
    sample: Sample | None = None,
    floor: bool = True,
    runtime: str | None = None,
    cache: Path | None = None,
    seed: int = 0,
    timeout: float = 60.0,
    progress: Progress = silent,
) -> Result:
    """Compare two databases on `lambdas`-way marginals, keys and the queries of a workload.

    Both are places, or tables in memory as `draft` takes them; `schema`, `null`, `delimiter` and `ragged` are for the
    real one.
    `model` (else the receipt beside the synthetic data) says which tables are public and whose row is whose.
    `runtime` says where the queries of the workload are measured as well: `auto` on a PostgreSQL server of our own,
    the URL of one, or `duckdb`.
    Floors are kept in the folder `cache`. A query may take `timeout` seconds. Raises for a location, workload, server
    or argument that cannot be used; whatever else goes wrong is in the result. The result holds exact facts of the real
    data: keep it private. `write_report` writes it to a folder, with a page to look at.

    Example::

        result = privbench.evaluate("shop", "bundle", workload="q.sql")
        privbench.write_report(result, "report")
    """
    if not all(1 <= ways <= MAX_WAYS for ways in lambdas):
        raise SpecError(f"lambdas {tuple(lambdas)}: marginals have 1 to {MAX_WAYS} columns.")
    system = None if runtime is None else _find_system(runtime, workload)
    located = source_of(real, schema=schema, null=null, delimiter=delimiter, ragged=ragged)
    other = source_of(synthetic)
    known = None if model is None else model_of(model)
    statements = () if workload is None else workload_of(workload, schema=_schema(located)).statements
    ways = {1, 2, *lambdas}
    seconds: dict[str, float] = {}
    with _timed(seconds, "total"), open_pair(located, other, progress) as database:
        ownership = find_ownership(database.schemas[Side.REAL], database.schemas[Side.SYNTHETIC], path_of(other), known)
        with _timed(seconds, "code"):
            tables = code_tables(database, ownership.schema, progress, seed=seed, made_up=ownership.made_up)
            keys = link_keys(database, ownership.schema, made_up=ownership.made_up)
            statements = _comparable(statements, ownership, database)
            database.release()
            if not tables:
                raise SpecError(_nothing_shared(located, other, database))
            plan = make_plan(tables, keys, ways=ways, sample=sample or Sample(), seed=seed)
            note_samples(database, plan)
            compared = Compared(tables=tables, keys=keys, plan=plan)
        wanted, floors = Wanted(), Floor()
        if floor:
            with _timed(seconds, "floor"):
                wanted = find_floor(database, ownership, compared, statements, cache=cache, seed=seed, timeout=timeout)
        with _timed(seconds, "compare"):
            scores, *floor_scores = score_all(compared, wanted.resample, progress)
        with _timed(seconds, "queries"):
            answers, others = (
                count_all(database, side, statements, timeout=timeout, progress=progress)
                for side in (Side.REAL, Side.SYNTHETIC)
            )
        if floor:
            with _timed(seconds, "floor"):
                both = list(zip(statements, answers, strict=True))
                floors = score_floor(
                    database,
                    ownership,
                    compared,
                    wanted,
                    floor_scores,
                    both,
                    cache=cache,
                    timeout=timeout,
                    progress=progress,
                )
        table_parts = table_results(database, ownership, compared, scores, floors)
        key_parts = key_results(ownership, compared, scores, floors)
        queries = query_results(statements, answers, others, floors)
        rules = rule_results(database, ownership, known)
        measured: Runtime | None = None
        if system is not None:
            with _timed(seconds, "runtime"):
                try:
                    measured = measure_runtimes(
                        system, database, ownership, keys, statements, seed=seed, timeout=timeout, progress=progress
                    )
                except ServerError as error:  # all else was computed and shall not be lost
                    database.skip("runtime", str(error))
    private = [table for table in table_parts if table.private]
    linking = [key for key in key_parts if key.private]
    return Result(
        real=name_of(located),
        synthetic=name_of(other),
        seed=seed,
        tables=table_parts,
        keys=key_parts,
        marginals={
            count: mean_distances([m.distances for table in private for m in table.marginals if m.ways == count])
            for count in sorted(ways)
        },
        cross=mean_distances([key.cross for key in linking]),
        fanouts={m.name: mean_measure([key.fanouts[m.name] for key in linking]) for m in distance_metrics()},
        queries=queries,
        workload={} if workload is None else {m.name: summarise(queries, m.name) for m in query_metrics()},
        rules=rules,
        runtime=measured,
        skips=tuple(database.skips),
        seconds=seconds,
    )


def _comparable(statements: Sequence[Statement], ownership: Ownership, database: Database) -> tuple[Statement, ...]:
    """The statements without those over made-up tables, whose rows say nothing of the real ones; how many is noted."""
    tables = [table.name for table in ownership.schema.tables]

    def is_made_up(name: str) -> bool:
        return (find_name(name, tables) or find_name(name.rpartition(".")[2], tables)) in ownership.made_up

    if not ownership.made_up:
        return tuple(statements)
    kept = tuple(s for s in statements if not any(map(is_made_up, table_names(s.sql, QueryDialect.DUCKDB))))
    if gone := len(statements) - len(kept):
        what = f"{gone} of {len(statements)} queries"
        database.skip(what, "they read tables whose rows are made up from the schema, and have no score")
    return kept


def _find_system(name: str, workload: Workload | Path | str | None) -> System:
    """Find where to measure, and that it can be used, before anything else is done."""
    if workload is None:
        raise SpecError(
            "runtime: there are no queries to measure. Name a file of them with `--workload`; "
            "`privbench workload generate` makes one."
        )
    system = find_system(name)
    system.check()
    return system


def _nothing_shared(real: Located, synthetic: Located, database: Database) -> str:
    why = "".join(f"\n  {skip.what}: {skip.reason}" for skip in database.skips)
    names = f"{name_of(real)} and {name_of(synthetic)}"
    return f"{names} share no table that can be read, so that there is nothing to compare.{why}"


def _schema(location: Located) -> Schema:
    with open_source(location) as source:
        return source.schema()


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[step] = seconds.get(step, 0.0) + time.perf_counter() - start
