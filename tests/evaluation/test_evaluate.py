import itertools
import json
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from privbench.errors import SourceError, SpecError
from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.marginals import Sample
from privbench.evaluation.result import Result, Summary, result_json
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import Expression

from .conftest import REAL, SCHEMA, SYNTHETIC, Make
from .slow import slow_distance

WORKLOAD = """
SELECT COUNT(*) FROM customer WHERE age = 3;
SELECT COUNT(*) FROM customer WHERE city = 'Paris';
SELECT COUNT(*) FROM sale, customer WHERE sale.customer_id = customer.id AND customer.age >= 2;
SELECT COUNT(*) FROM gone;
SELECT kind, sum(amount) FROM sale GROUP BY kind;
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "queries.sql"
    path.write_text(WORKLOAD)
    return path


def reasons(result: Result) -> str:
    return "\n".join(f"{skip.what}: {skip.reason}" for skip in result.skips)


def test_values_agree_with_the_definitions(make: Make) -> None:
    real, synthetic = make("real", REAL), make("synthetic", SYNTHETIC)
    result = evaluate(real, synthetic, lambdas=(1, 2), floor=False)
    wanted: dict[int, list[list[tuple[float, float]]]] = {1: [], 2: []}
    for table, columns in (("customer", ("city", "age")), ("sale", ("amount", "kind"))):
        sides = []
        for path in (real, synthetic):
            with duckdb.connect(str(path), read_only=True) as connection:
                sides.append(connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall())
        for ways in (1, 2):
            chosen = list(itertools.combinations(range(len(columns)), ways))
            wanted[ways].append(
                [slow_distance(*([tuple(r[c] for c in cols) for r in side] for side in sides)) for cols in chosen]
            )
    for ways, tables in wanted.items():
        kld, tvd = (
            sum(sum(m[figure] for m in table) / len(table) for table in tables) / len(tables) for figure in (0, 1)
        )
        assert result.marginals[ways]["kld"].values.value == pytest.approx(kld, abs=1e-9)
        assert result.marginals[ways]["tvd"].values.value == pytest.approx(tvd, abs=1e-9)
    [key] = result.keys
    joined = "SELECT c.city, c.age, s.amount, s.kind FROM sale s JOIN customer c ON s.customer_id = c.id"
    sides = []
    for path in (real, synthetic):
        with duckdb.connect(str(path), read_only=True) as connection:
            sides.append(connection.execute(joined).fetchall())
    pairs = [slow_distance(*([(r[p], r[c]) for r in side] for side in sides)) for p in (0, 1) for c in (2, 3)]
    assert key.cross["kld"].values.value == pytest.approx(sum(kld for kld, _ in pairs) / 4, abs=1e-9)
    assert (key.real_unlinked, key.synthetic_unlinked) == (19, 21)


def test_a_database_is_no_distance_from_itself_and_the_floor_is_above(make: Make, workload: Path) -> None:
    path = make("real", REAL)
    result = evaluate(path, path, workload=workload)
    assert [d["kld"].values.value for d in result.marginals.values()] == [0, 0, None, None]
    assert result.fanouts["tvd"].value == result.cross["tvd"].codes.value == 0
    assert all(d["kld"].values.floor for ways, d in result.marginals.items() if ways < 3)
    assert result.fanouts["tvd"].floor is not None
    whole = result.workload["q_error"].all
    assert isinstance(whole, Summary)
    assert whole.errors.max == 1
    assert whole.floor is not None
    assert whole.floor.max > 1


def test_queries_are_answered_on_both_sides_or_say_why_not(make: Make, workload: Path) -> None:
    synthetic = make("synthetic", SYNTHETIC + "CREATE TABLE gone (a INTEGER); ALTER TABLE sale RENAME kind TO sort;")
    result = evaluate(make("real", REAL), synthetic, workload=workload, floor=False)
    first, empty, join, gone, outside = result.queries
    assert (first.real, first.synthetic, first.joins) == (9, 7, 0)
    assert (empty.real, empty.synthetic, empty.figures["q_error"].value) == (0, 0, 1)
    assert join.joins == 1
    assert gone.synthetic == 0
    assert gone.figures["q_error"].value is None
    assert (gone.error or "").startswith("real: ")
    assert (outside.error or "").startswith("synthetic: ")
    assert outside.joins is None
    assert result.workload["q_error"].failed == 2
    assert set(result.workload["q_error"].by_joins) == {0, 1}


def test_what_is_missing_or_different_is_shown(make: Make) -> None:
    real = make(
        "real",
        REAL.replace("kind VARCHAR", "kind ENUM ('a', 'b')")
        + "CREATE TABLE lost (a INTEGER); CREATE TABLE odd (a INTEGER, l INTEGER[][], n DOUBLE);"
        "INSERT INTO odd VALUES (1, NULL, NULL), (2, NULL, NULL);",
    )
    synthetic = make(
        "synthetic",
        "CREATE TABLE Sale (KIND VARCHAR, amount DECIMAL(9, 1), id BIGINT, customer_id "
        "INTEGER); INSERT INTO sale SELECT ['a', 'b'][1 + i % 2], i / 2, i, i FROM range(200) t(i);"
        "CREATE TABLE customer (id INTEGER, age VARCHAR); CREATE TABLE odd (n DOUBLE, a VARCHAR);"
        "INSERT INTO odd VALUES (NULL, '1'), (NULL, '2')",
    )
    result = evaluate(real, synthetic, lambdas=(1,), floor=True)
    tables = {table.name: table for table in result.tables}
    assert tables["lost"].synthetic_rows is None
    assert {c.name: c.distances["tvd"].values.value for c in tables["sale"].columns} == {"amount": 0, "kind": 0}
    assert [c.distances["kld"].values.value for c in tables["customer"].columns] == [None]
    assert {c.name: c.distances["kld"].codes.value for c in tables["odd"].columns} == {"a": 0, "n": 0}
    told = reasons(result)
    for part in (
        "lost: not in the synthetic database",
        "customer.city: not in the synthetic database",
        "customer: synthetic: has no row",
        "odd.l: real: values of type",
        "odd.a: compared, but the types differ: INTEGER in the real database, VARCHAR in the synthetic one",
    ):
        assert part in told
    assert "sale.kind" not in told  # a label of an ENUM is the same string


def test_empty_databases_are_no_problem(make: Make, workload: Path) -> None:
    result = evaluate(make("real", SCHEMA), make("synthetic", SCHEMA), workload=workload)
    assert result.marginals[1]["kld"].values.value is None
    assert result.fanouts["tvd"].value is None
    assert result.queries[0].figures["q_error"].value == 1
    assert "sale: real: has no row" in reasons(result)


def test_marginals_are_sampled_where_there_are_many_and_the_result_says_so(make: Make) -> None:
    columns = ", ".join(f"i % {n + 2} AS c{n}" for n in range(6))
    path = make("wide", f"CREATE TABLE wide AS SELECT {columns} FROM range(50) t(i)")
    result = evaluate(path, path, lambdas=(2, 3), sample=Sample(marginals=(9, 15, 7)), floor=False)
    [table] = result.tables
    assert [(m.ways, m.counted, m.total) for m in table.marginals] == [(1, 6, 6), (2, 15, 15), (3, 7, 20)]
    assert table.pairs["tvd"][0][0] is None
    assert table.pairs["tvd"][0][5] == table.pairs["tvd"][5][0] == 0


@pytest.mark.slow
def test_floors_are_kept_and_damaged_ones_computed_again(make: Make, workload: Path, tmp_path: Path) -> None:
    real, synthetic, cache = make("real", REAL), make("synthetic", SYNTHETIC), tmp_path / "cache"

    def run(source: Path = real, seed: int = 0) -> Result:
        return evaluate(source, synthetic, workload=workload, cache=cache, seed=seed)

    first = run()
    [kept] = cache.iterdir()
    text = kept.read_text()
    changed = json.loads(text)
    changed["fanouts"]["sale.customer_id"] = {"kld": 7.0, "tvd": 0.5}
    kept.write_text(json.dumps(changed))
    assert run().fanouts["kld"].floor == 7
    for damage in ("{", "[]", '{"marginals": 3}'):
        kept.write_text(damage)
        assert strip(run()) == strip(first)
        assert kept.read_text() == text
    assert kept.stat().st_mode & 0o777 == 0o600
    run(seed=1)
    run(make("other", REAL + "UPDATE customer SET age = 1 WHERE id = 5"))
    assert len(list(cache.iterdir())) == 3


def strip(result: Result) -> Result:
    """Without times."""
    queries = tuple(replace(q, real_seconds=0.0, synthetic_seconds=0.0) for q in result.queries)
    return replace(result, seconds={}, queries=queries)


def test_json_has_the_documented_keys(make: Make, workload: Path) -> None:
    found = result_json(evaluate(make("real", REAL), make("synthetic", SYNTHETIC), workload=workload))
    assert json.loads(json.dumps(found, allow_nan=False))["kld"] == found["kld"]
    document = (Path(__file__).parents[2] / "docs" / "result.md").read_text()
    for key in (*found, *found["q_error"], *found["tables"][0], *found["keys"][0], *found["queries"][0]):
        assert f"`{key}`" in document, key
    assert found["kld"]["2"]["values"] > 0
    assert found["kld"]["2"]["floor"]["values"] > 0
    assert found["q_error"]["floor"]["mean"] >= 1
    assert set(found["q_error"]["by_cardinality"]) == {"low", "medium", "high"}


def test_wrong_use_is_refused(make: Make, tmp_path: Path) -> None:
    path = make("real", REAL)
    with pytest.raises(SpecError, match="1 to 8 columns"):
        evaluate(path, path, lambdas=(0,))
    with pytest.raises(SourceError, match="does not exist"):
        evaluate(path, tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"queries\.sql"):
        evaluate(path, path, workload=tmp_path / "queries.sql")


def test_databases_without_a_common_table_are_refused(make: Make, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "weather.csv").write_text("day,rain\n1,2\n")
    with pytest.raises(SpecError, match="share no table"):
        evaluate(make("real", REAL), other, floor=False)


def test_why_tables_could_not_be_read_is_said(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "weather.csv").write_text("day,rain\n1,wet\n")
    (real / "schema.sql").write_text("CREATE TABLE weather (day INTEGER, rain INTEGER);")
    with pytest.raises(SpecError, match=r"(?s)share no table that can be read.*weather: real: cannot be read .*wet"):
        evaluate(real, real, floor=False)


def test_computed_columns_are_compared_with_and_without_the_model(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, visits SMALLINT);"
        "CREATE TABLE visit (person_id INTEGER REFERENCES person (id), number SMALLINT, cost SMALLINT);"
    )
    (shop / "person.csv").write_text("id,visits\n" + "".join(f"{i},{i % 3}\n" for i in range(300)))
    visits = [(i, number) for i in range(300) for number in range(1, i % 3 + 1)]
    (shop / "visit.csv").write_text("person_id,number,cost\n" + "".join(f"{i},{n},{i % 5}\n" for i, n in visits))
    drafted = draft(shop, unit="person", domains="data")
    spec = drafted.with_computed(
        {("person", "visits"): Expression(sql="COUNT(visit.*)"), ("visit", "number"): Expression(sql="ROW_NUMBER()")},
        ComputedOrigin.DECLARED,
    )
    model = fit(spec, epsilon=10)
    generate(model, tmp_path / "out", seed=1)
    for known in (model, None):
        found = evaluate(shop, tmp_path / "out", model=known, floor=False, lambdas=(1,))
        compared = {table.name: [column.name for column in table.columns] for table in found.tables}
        assert compared == {"person": ["visits"], "visit": ["number", "cost"]}
