"""Tables that statements name with their schemas: `FROM sales.customer`, in every dialect and every command."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import privbench
from privbench.evaluation.evaluate import evaluate
from privbench.io.ddl import parse_ddl
from privbench.runtime.translate import postgres_sql
from privbench.schema.tables import Schema
from privbench.workload.estimate import estimate
from privbench.workload.literal import QueryDialect
from privbench.workload.query import ColumnRef, TableRef
from privbench.workload.sql import parse_workload, workload_text
from privbench.workload.statement import query_of, read_statement, render, table_names
from privbench.workload.table_names import OutsideError, plain_sql, plain_tables
from privbench.workload.translate import translate

from ..servers.postgres import run

NAMED = parse_ddl(
    'CREATE TABLE customer (id INT PRIMARY KEY, age INT); CREATE TABLE "Orders" (id INT, buyer INT);', where="test"
)
SCHEMAS = Schema(
    tables=tuple(
        t
        for name in ("customer", "sales.customer", "hr.Staff")
        for t in parse_ddl(f'CREATE TABLE "{name}" (id INT, age INT)', where="test").tables
    )
)


def _names(schema: Schema | None, sql: str, dialect: str = "duckdb") -> list[tuple[str, str]]:
    tree = sqlglot.parse_one(sql, dialect=dialect)
    plain_tables(tree, schema)
    return [(table.name, table.alias_or_name) for table in tree.find_all(sqlglot.exp.Table)]


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT COUNT(*) FROM main.customer WHERE main.customer.age > 3"),
        ("mysql", "SELECT COUNT(*) FROM `shop`.`customer` WHERE shop.customer.age > 3"),
        ("duckdb", "SELECT COUNT(*) FROM memory.main.customer WHERE customer.age > 3"),
        ("postgres", 'SELECT COUNT(*) FROM "public".customer WHERE age > 3'),
        ("postgres", "SELECT COUNT(*) FROM PUBLIC.CUSTOMER WHERE Customer.Age > 3"),
    ],
)
def test_a_database_of_one_schema_is_named_by_any(dialect: str, sql: str) -> None:
    spoken = QueryDialect(dialect)
    query = query_of(read_statement(sql, spoken), spoken, NAMED)
    assert [t.table for t in query.tables] == ["customer"]
    assert query.filters[0].column.alias.casefold() == "customer"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1 FROM sales.customer", [("sales.customer", "customer")]),
        ('SELECT 1 FROM "sales.customer"', [("sales.customer", "sales.customer")]),
        ("SELECT 1 FROM SALES.Customer AS c WHERE c.id = 1", [("sales.customer", "c")]),
        ("SELECT 1 FROM hr.staff", [("hr.Staff", "staff")]),
        (
            "SELECT 1 FROM sales.customer JOIN public.customer ON sales.customer.id = public.customer.id",
            [("sales.customer", "sales.customer"), ("customer", "customer")],
        ),
        (
            "SELECT 1 FROM customer JOIN sales.customer ON sales.customer.id = customer.id",
            [("customer", "customer"), ("sales.customer", "sales.customer")],
        ),
        (
            "SELECT 1 FROM sales.customer WHERE EXISTS (SELECT 1 FROM hr.staff WHERE hr.staff.id = sales.customer.id)",
            [("sales.customer", "customer"), ("hr.Staff", "staff")],
        ),
    ],
)
def test_tables_of_several_schemas_are_told_apart(sql: str, names: list[tuple[str, str]]) -> None:
    assert _names(SCHEMAS, sql) == names


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT 1 FROM sales.staff", "sales.staff, which is not in the database"),
        ("SELECT 1 FROM customer WHERE hr.staff.id = 1", "names a table hr.staff that it does not select from"),
        ("WITH customer AS (SELECT 1) SELECT 1 FROM sales.customer", "a WITH query of the same name"),
    ],
)
def test_what_is_not_there_is_outside(sql: str, why: str) -> None:
    with pytest.raises(OutsideError, match=why):
        _names(SCHEMAS, sql)


def test_without_a_schema_tables_keep_their_whole_names() -> None:
    assert _names(None, "SELECT 1 FROM sales.t, main.u") == [("sales.t", "t"), ("u", "u")]
    assert table_names("SELECT 1 FROM sales.t, u", QueryDialect.DUCKDB) == ("sales.t", "u")


def test_what_cannot_be_read_runs_as_it_is() -> None:
    for sql in ("SELECT FROM FROM a.b", "SELECT 1 FROM information_schema.tables", "SELECT 1 FROM customer -- x"):
        assert plain_sql(sql, SCHEMAS) == sql


def test_servers_that_measure_run_times_get_tables_by_one_name() -> None:
    sql = postgres_sql("SELECT COUNT(*) FROM sales.customer WHERE sales.customer.age > 1", SCHEMAS)
    assert sql == 'SELECT COUNT(*) FROM "sales.customer" AS "customer" WHERE "customer"."age" > 1'


@pytest.mark.parametrize("dialect", list(QueryDialect))
def test_a_query_comes_back_as_it_was_written(dialect: QueryDialect) -> None:
    sql = "SELECT COUNT(*) FROM sales.customer JOIN hr.staff ON sales.customer.id = staff.id WHERE customer.age > 3"
    query = query_of(read_statement(sql, dialect), dialect, SCHEMAS)
    assert query.tables == (
        TableRef(table="sales.customer", alias="customer"),
        TableRef(table="hr.Staff", alias="staff"),
    )
    assert query.joins[0].left == ColumnRef(alias="customer", column="id")
    assert query_of(read_statement(render(query, dialect), dialect), dialect, SCHEMAS) == query
    has_schemas = dialect in (QueryDialect.POSTGRES, QueryDialect.MYSQL)
    assert ('"sales"."customer"' in render(query, dialect).replace("`", '"')) == has_schemas


# -- a real server with several schemas --------------------------------------------------------------------------------

SEVERAL = """
CREATE SCHEMA sales; CREATE SCHEMA hr;
CREATE TABLE sales.customer (id int PRIMARY KEY, age smallint NOT NULL CHECK (age BETWEEN 18 AND 90));
CREATE TABLE sales.orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES sales.customer, amount int NOT NULL
  CHECK (amount IN (1, 2, 3, 4)));
CREATE TABLE hr.orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES sales.customer, grade int NOT NULL
  CHECK (grade IN (1, 2)));
CREATE TABLE customer (id int PRIMARY KEY, age smallint NOT NULL);
INSERT INTO sales.customer SELECT n, 18 + n % 70 FROM generate_series(1, 400) n;
INSERT INTO sales.orders SELECT n, 1 + n % 400, 1 + n % 4 FROM generate_series(1, 1200) n;
INSERT INTO hr.orders SELECT n, 1 + n % 400, 1 + n % 2 FROM generate_series(1, 400) n;
INSERT INTO customer SELECT n, n FROM generate_series(1, 5) n;
"""
QUERIES = """
SELECT COUNT(*) FROM sales.customer WHERE age > 40;
SELECT COUNT(*) FROM sales.customer c JOIN sales.orders o ON o.customer = c.id WHERE o.amount = 2;
SELECT COUNT(*) FROM sales.orders, hr.orders WHERE sales.orders.customer = hr.orders.customer AND hr.orders.grade = 1;
SELECT COUNT(*) FROM public.customer;
SELECT age FROM "sales"."customer" WHERE sales.customer.id IN (SELECT hr.orders.customer FROM hr.orders);
"""


def test_files_of_tables_with_schemas_in_their_names_answer_such_queries(tmp_path: Path) -> None:
    ids = np.arange(200)
    tables = {"sales.customer": pa.table({"id": ids, "age": ids % 70}), "customer": pa.table({"id": ids[:5]})}
    schema = 'CREATE TABLE "sales.customer" (id BIGINT PRIMARY KEY, age BIGINT); CREATE TABLE customer (id BIGINT);'
    queries = "SELECT COUNT(*) FROM sales.customer WHERE sales.customer.age > 40; SELECT COUNT(*) FROM main.customer"
    words = {"unit": "sales.customer", "public": ["customer"], "domains": "data"}
    made = privbench.synth(tables, tmp_path / "b", schema=schema, epsilon=20, **words)
    result = evaluate(tables, tmp_path / "b", schema=schema, workload=parse_workload(queries), floor=False)
    assert [query.real for query in result.queries] == [int((ids % 70 > 40).sum()), 5]
    assert result.queries[1].synthetic == 5
    assert all(answer.rows for answer in estimate(made.model, queries))
    assert translate(parse_workload(queries), made.model).counts["left out"] == 0


@pytest.mark.slow
def test_every_command_reads_workloads_with_schemas(postgres: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    run(postgres, SEVERAL)
    server, spec = postgres, privbench.draft(postgres, unit="sales.customer", public=["customer"])
    model = privbench.fit(spec, source=server, epsilon=20)
    privbench.generate(model, tmp_path / "b", seed=1)
    (tmp_path / "q.sql").write_text(QUERIES)
    real = [263, 300, 600, 5, 400]
    result = evaluate(server, tmp_path / "b", workload=tmp_path / "q.sql", floor=False)
    assert [query.real for query in result.queries] == real
    assert [query.synthetic for query in result.queries] == pytest.approx(real, rel=0.35)
    answers = [answer.rows for answer in estimate(model, QUERIES, dialect="postgres")]
    assert answers[:4] == pytest.approx(real[:4], rel=0.35)
    for dialect in (QueryDialect.POSTGRES, QueryDialect.DUCKDB):
        made = translate(
            parse_workload(QUERIES, dialect=dialect, schema=model.protection.schema), model, dialect=dialect
        )
        assert made.counts["left out"] == 0
        again = evaluate(server, tmp_path / "b", workload=made.workload, floor=False)
        assert all(query.real is not None for query in again.queries)
        if dialect is QueryDialect.POSTGRES:
            for statement in made.workload.statements:
                run(server, statement.sql)
    for source in (server, model):
        written = privbench.generate_workload(source, n=10, seed=1)
        scored = evaluate(server, tmp_path / "b", workload=parse_workload(workload_text(written)), floor=False)
        assert np.isfinite([query.real for query in scored.queries]).all()

    [wrong] = estimate(model, "SELECT COUNT(*) FROM hr.customer", dialect="postgres")
    assert wrong.rows is None, "it is not the one of public"
