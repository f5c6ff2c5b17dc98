"""Runtimes on a real PostgreSQL: the same databases have the same plans, failures are told, nothing is left behind."""

import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from privbench.errors import PrivBenchError, ServerError, SpecError
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import Result, result_json
from privbench.runtime.result import AGAIN, RESAMPLE, SYNTHETIC, Runtime
from privbench.runtime.session import Clock
from privbench.servers.postgres import PostgresServer

from ..servers.postgres import ask, run

SCHEMA = """
CREATE TABLE Customer (id INTEGER PRIMARY KEY, City VARCHAR, age INTEGER NOT NULL, "e mail" VARCHAR UNIQUE, since DATE);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES Customer (id), amount DECIMAL(9,2),
  sold TIMESTAMP, paid BOOLEAN);
CREATE INDEX by_customer ON sale (customer_id);
CREATE INDEX "by Age" ON Customer (age);
"""
ROWS = """
INSERT INTO Customer SELECT i, ['Ulm', '"B", ''x''', NULL, ''][1 + i % 4], i % {ages}, 'm' || i, DATE '2020-01-01' +
  (i % 99)::INTEGER FROM range(3000) t(i);
INSERT INTO sale SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE i // 4 END, i / 7, TIMESTAMP '2021-01-01' +
  INTERVAL (i) MINUTE, i % 3 = 0 FROM range({sales}) t(i);
"""
WORKLOAD = """
SELECT COUNT(*) FROM customer WHERE AGE = 3 AND city = 'Ulm';
SELECT count(*) FROM sale s JOIN customer c ON s.customer_id = c.id WHERE c.age < 5 AND s.paid;
SELECT city, sum(amount) AS total FROM sale, customer WHERE customer_id = customer.id GROUP BY city ORDER BY total;
SELECT COUNT(*) FROM customer WHERE "e mail" = 'm17';
SELECT COUNT(*) FROM nowhere;
DELETE FROM sale;
"""
FAILED = [5, 6]


def write(path: Path, ages: int, sales: int) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA + ROWS.format(ages=ages, sales=sales))
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, Path]:
    workload = tmp_path / "q.sql"
    workload.write_text(WORKLOAD)
    return write(tmp_path / "real.duckdb", 40, 9000), write(tmp_path / "synthetic.duckdb", 30, 11000), workload


def of(result: Result) -> Runtime:
    assert result.runtime is not None, result.skips
    return result.runtime


def objects(url: str) -> list[tuple[object, ...]]:
    """All databases of the server and schemas of one."""
    return ask(url, "SELECT datname FROM pg_database UNION ALL SELECT nspname FROM pg_namespace ORDER BY 1")


def test_the_whole_way(pair: tuple[Path, Path, Path], postgres: str) -> None:
    real, synthetic, workload = pair
    before = objects(postgres)
    result = evaluate(real, synthetic, workload=workload, lambdas=(1,), floor=False, runtime=postgres)
    assert objects(postgres) == before
    runtime = of(result)
    again, other = runtime.comparisons[AGAIN], runtime.comparisons[SYNTHETIC]
    assert runtime.system.startswith("PostgreSQL ")
    assert runtime.clock is Clock.CPU
    assert again.same_plans == 1
    assert again.buffers is not None
    assert again.buffers.max == again.pages == 0
    assert again.cost_factor == again.estimate_factor == 1
    assert other.buffers is not None
    assert other.buffers.max > 0
    assert other.estimate_factor is not None
    assert other.estimate_factor > 1
    assert [q.number for q in runtime.failed] == FAILED
    assert "nowhere" in runtime.failed[0].errors["real"]
    assert "read-only" in runtime.failed[1].errors["real"]
    assert all(min(q.times.values()) > 0 for q in runtime.queries if not q.errors)
    first = runtime.queries[0]
    assert "by Age" in first.plans["real"]
    assert first.actual["real"][0] == 1  # one row: the count
    [note] = [note for note in runtime.notes if note.startswith("resample")]  # copies of an entity share its address
    assert note.startswith("resample: Customer.e mail holds values twice")
    differs = {f"{c.table}.{c.column}": c.differences(SYNTHETIC) for c in runtime.columns}
    assert differs["Customer.age"] == ("distinct values 40 -> 30",)
    assert differs["Customer.City"] == ()
    assert not any(c.differences(AGAIN) for c in runtime.columns)
    assert result_json(result)["runtime"]["comparisons"]["again"]["same_plans"] == 1


@pytest.mark.slow
def test_a_server_of_our_own(pair: tuple[Path, Path, Path], postgres_server: PostgresServer) -> None:
    real, _, workload = pair
    runtime = of(evaluate(real, real, workload=workload, lambdas=(1,), floor=False, runtime="auto"))
    buffers = {name: found.buffers for name, found in runtime.comparisons.items()}
    assert buffers[SYNTHETIC] is not None
    assert buffers[SYNTHETIC].max == 0
    assert buffers[RESAMPLE] is not None
    assert runtime.comparisons[SYNTHETIC].same_plans == 1


def test_a_synthetic_database_that_breaks_constraints(
    pair: tuple[Path, Path, Path], tmp_path: Path, postgres: str
) -> None:
    real, _, workload = pair
    broken = tmp_path / "broken.duckdb"
    with duckdb.connect(str(broken)) as connection:
        connection.execute(f"""ATTACH '{real}' AS r (READ_ONLY);
CREATE TABLE customer AS SELECT id // 2 AS id, city, CASE WHEN id > 5 THEN age END AS age FROM r.customer;
CREATE TABLE sale AS SELECT * REPLACE (customer_id + 9999 AS customer_id) FROM r.sale;""")
    runtime = of(evaluate(real, broken, workload=workload, lambdas=(1,), floor=False, runtime=postgres))
    notes = " ".join(note for note in runtime.notes if note.startswith("synthetic"))
    assert "Customer.id holds values twice" in notes
    assert "Customer.age holds NULL" in notes
    assert "sale.customer_id: its foreign key does not hold" in notes
    assert [q.number for q in runtime.failed] == FAILED


def test_rows_that_cannot_be_loaded_cost_no_other_figure(
    pair: tuple[Path, Path, Path], tmp_path: Path, postgres: str
) -> None:
    real, _, workload = pair
    odd = tmp_path / "odd.duckdb"
    with duckdb.connect(str(odd)) as connection:
        connection.execute(f"""ATTACH '{real}' AS r (READ_ONLY);
CREATE TABLE customer AS FROM r.customer; CREATE TABLE sale AS SELECT * REPLACE ('much' AS amount) FROM r.sale;""")
    before = objects(postgres)
    result = evaluate(real, odd, workload=workload, lambdas=(1,), floor=False, runtime=postgres)
    assert result.runtime is None
    [skip] = [s for s in result.skips if s.what == "runtime"]
    assert "synthetic: sale cannot be loaded" in skip.reason
    assert result.tables
    assert objects(postgres) == before


def test_slow_queries_are_stopped(pair: tuple[Path, Path, Path], tmp_path: Path, postgres: str) -> None:
    real, synthetic, _ = pair
    slow = tmp_path / "slow.sql"
    slow.write_text("SELECT count(*) FROM sale a, sale b, sale c WHERE a.amount + b.amount + c.amount > 1e9;")
    runtime = of(evaluate(real, synthetic, workload=slow, lambdas=(1,), floor=False, runtime=postgres, timeout=0.2))
    assert runtime.failed[0].errors["real"] == "stopped after 0.2 s"
    assert runtime.comparisons == {}


@pytest.mark.slow
@pytest.mark.parametrize("rights", ["CREATEDB", "CREATE ON DATABASE"])
def test_the_right_to_make_a_database_or_a_schema_is_enough(
    rights: str, pair: tuple[Path, Path, Path], postgres: str
) -> None:
    real, synthetic, workload = pair
    database = ask(postgres, "SELECT current_database()")[0][0]
    role = f"role_{database}"
    url = postgres.replace("//postgres@", f"//{role}@")
    run(postgres, f"CREATE ROLE {role} LOGIN {'CREATEDB' if rights == 'CREATEDB' else ''}")
    if rights != "CREATEDB":
        run(postgres, f"GRANT CREATE ON DATABASE {database} TO {role}")
    run(postgres, "CREATE TABLE public.customer (mine INTEGER)")
    before = objects(postgres)
    runtime = of(evaluate(real, synthetic, workload=workload, lambdas=(1,), floor=False, runtime=url))
    assert runtime.comparisons[AGAIN].same_plans == 1
    assert objects(postgres) == before
    assert ask(postgres, "SELECT count(*) FROM public.customer") == [(0,)]


def test_no_rights_at_all(pair: tuple[Path, Path, Path], postgres: str) -> None:
    from privbench.runtime.postgres import PostgresSystem

    run(postgres, "CREATE ROLE poor LOGIN")
    try:
        with pytest.raises(ServerError, match="neither a database nor a schema"):
            PostgresSystem(url=postgres.replace("//postgres@", "//poor@")).check()
    finally:
        run(postgres, "DROP ROLE poor")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr%2Ft@localhost:1/db",
        "postgresql://me:s3cr%2Ft@127.0.0.1:x/db",
        "postgresql://localhost:1/db?password=s3cr/t",
        "postgresql://me:s3cr%2Ft@[::1/db",
    ],
)
def test_a_password_is_never_shown(url: str, pair: tuple[Path, Path, Path]) -> None:
    pytest.importorskip("psycopg")
    from privbench.runtime.postgres import PostgresSystem

    real, synthetic, workload = pair
    with pytest.raises(PrivBenchError) as refused:
        evaluate(real, synthetic, workload=workload, runtime=url)
    told = "".join(str(error) for error in (refused.value, refused.value.__cause__, PostgresSystem(url=url)))
    assert "s3cr" not in told
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.slow
def test_a_server_that_goes_away(pair: tuple[Path, Path, Path], postgres_server: PostgresServer) -> None:
    import psycopg

    from privbench.servers.postgres import start_postgres

    real, synthetic, workload = pair
    with start_postgres(postgres_server.binaries) as server:
        ended = []

        def end() -> None:
            """End all other connections as soon as queries are measured."""
            with psycopg.connect(server.url(), autocommit=True) as connection:
                for _ in range(600):
                    busy = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'EXPLAIN%'")
                    if busy.fetchone() != (0,):
                        ended.append(
                            connection.execute(
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'privbench%'"
                            ).rowcount
                        )
                        return
                    time.sleep(0.01)

        watch = threading.Thread(target=end)
        watch.start()
        result = evaluate(real, synthetic, workload=workload, lambdas=(1,), floor=False, runtime=server.url())
        watch.join()
        assert ended
        assert result.runtime is None
        assert any("went away" in skip.reason for skip in result.skips)
        assert not [row for row in objects(server.url()) if str(row[0]).startswith("privbench")]


def test_what_cannot_be_measured(pair: tuple[Path, Path, Path]) -> None:
    real, synthetic, workload = pair
    with pytest.raises(SpecError, match="--workload"):
        evaluate(real, synthetic, runtime="auto")
    with pytest.raises(SpecError, match="auto"):
        evaluate(real, synthetic, workload=workload, runtime="oracle://x:s3cr@y/z")


def test_a_missing_client_is_told(pair: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    real, synthetic, workload = pair
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in ("load", "postgres"):
        monkeypatch.delitem(sys.modules, f"privbench.runtime.{name}", raising=False)
    with pytest.raises(ServerError, match=r"privbench\[postgres\]"):
        evaluate(real, synthetic, workload=workload, runtime="auto")


def test_duckdb(pair: tuple[Path, Path, Path]) -> None:
    real, synthetic, workload = pair
    runtime = of(evaluate(real, synthetic, workload=workload, lambdas=(1,), floor=False, runtime="duckdb"))
    assert runtime.system.startswith("DuckDB ")
    assert runtime.comparisons[AGAIN].same_plans == 1
    assert runtime.comparisons[SYNTHETIC].buffers is None
    assert runtime.comparisons[SYNTHETIC].discrepancy.mean > 0
    assert [q.number for q in runtime.failed] == [5]
    assert "SCAN" in runtime.queries[0].plans["real"]
