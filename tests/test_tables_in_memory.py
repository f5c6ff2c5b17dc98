"""From tables in memory to tables in memory: the whole walk in Python, what notebooks show, and what is recorded."""

import gc
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import privbench
from privbench.schema.notebook import page

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

DDL = """CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR, born SMALLINT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id), paid SMALLINT);"""
EVIL = "<script>alert('x')</script> & \"q\""


@pytest.fixture(scope="module")
def tables() -> dict[str, object]:
    born = pd.array([1950 + i % 50 if i % 9 else None for i in range(200)], dtype="Int64")
    city = pd.Categorical([("Bern", "Rome", "Oslo")[i % 3] for i in range(200)])
    return {
        "customer": pd.DataFrame({"city": city, "born": born}, index=pd.RangeIndex(200, name="id")),
        "purchase": pl.DataFrame(
            {"id": range(500), "customer_id": [i * 7 % 200 for i in range(500)], "paid": [i % 40 for i in range(500)]}
        ),
    }


@pytest.fixture(scope="module")
def made(tables: dict[str, object]) -> privbench.Bundle:
    return privbench.synth(tables, unit="CUSTOMER", schema=DDL, epsilon=9, domains="data", seed=1)


def test_tables_go_in_and_come_out(made: privbench.Bundle) -> None:
    out = made.tables()
    assert list(out) == ["customer", "purchase"]
    assert out["customer"].schema.types == [pa.int32(), pa.string(), pa.int16()]
    assert {name: table.num_rows for name, table in out.items()} == made.rows
    frames = {name: table.to_pandas() for name, table in out.items()}
    assert set(frames["purchase"]["customer_id"]) <= set(frames["customer"]["id"])
    assert privbench.verify(made).status == "conditional"
    assert made.receipt is made.model.receipt


def test_a_bundle_without_a_place_goes_with_its_value(made: privbench.Bundle) -> None:
    other = privbench.generate(made.model, scale=0.5, seed=3)
    place = other.path
    assert place.is_dir()
    assert place.parent.stat().st_mode & 0o077 == 0
    del other
    gc.collect()
    assert not place.parent.exists()


def test_it_goes_when_the_program_ends(made: privbench.Bundle, tmp_path: Path) -> None:
    privbench.save_model(made.model, tmp_path / "model")
    code = (
        "import builtins, sys, privbench; builtins.kept = privbench.generate(sys.argv[1]); "
        "print(kept.path, kept.path.is_dir())"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "model")]
    told = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
    place, was_there = told.stdout.split()
    assert was_there == "True"
    assert not Path(place).parent.exists()
    assert told.stderr == ""


def test_it_stays_while_a_function_uses_it(made: privbench.Bundle, tables: dict[str, object]) -> None:
    result = privbench.evaluate(tables, privbench.generate(made.model, seed=3), schema=DDL, floor=False)
    assert {table.name for table in result.tables} == {"customer", "purchase"}
    assert [key.private for key in result.keys] == [True]


def test_nothing_is_left_where_no_bundle_comes_of_it(
    made: privbench.Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(privbench.PrivBenchError, match="scale is 0"):
        privbench.generate(made.model, scale=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "duckdb", "sqlite"])
def test_every_format_gives_the_same_tables(made: privbench.Bundle, form: str) -> None:
    whole = privbench.generate(made.model, seed=5).tables()
    other = privbench.generate(made.model, seed=5, format=form).tables()
    assert {name: sorted(map(repr, t.to_pylist())) for name, t in other.items()} == {
        name: sorted(map(repr, t.to_pylist())) for name, t in whole.items()
    }


def test_saving_writes_what_the_call_would_have_written(made: privbench.Bundle, tmp_path: Path) -> None:
    kept = made.save(tmp_path / "kept")
    assert kept.tables() == made.tables()
    assert privbench.verify(tmp_path / "kept").problems == ()
    assert privbench.load_model(tmp_path / "kept.model").receipt == made.receipt
    with pytest.raises(privbench.PrivBenchError, match="kept: already exists"):
        made.save(tmp_path / "kept")
    made.save(tmp_path / "kept", force=True)
    privbench.generate(made.model).save(tmp_path / "plain")
    assert not (tmp_path / "plain.model").exists()


def test_a_spec_of_tables_names_no_source(tables: dict[str, object]) -> None:
    spec = privbench.draft(tables, unit="customer", schema=DDL, domains="data")
    assert spec.source is None
    with pytest.raises(privbench.PrivBenchError, match=r"no source.*in Python with `source`, also the tables"):
        privbench.fit(spec, epsilon=3)
    assert privbench.fit(spec, source=tables, epsilon=3).tables


def test_spelling_of_a_schema_may_differ_from_that_of_tables() -> None:
    frame = pd.DataFrame({"ID": range(50), "Age": [i % 20 for i in range(50)]})
    spec = privbench.draft(
        {"PERSON": frame}, unit="Person", schema="CREATE TABLE person (id INT PRIMARY KEY, age SMALLINT)"
    )
    assert privbench.fit(spec, source={"PERSON": frame}, epsilon=3).protection.entity == "person"


def test_keys_are_not_invented(tables: dict[str, object]) -> None:
    with pytest.raises(privbench.PrivBenchError, match=r"no key leads from these tables to customer(.|\n)*`schema`"):
        privbench.synth(tables, unit="customer", epsilon=3)


def test_guessed_types_need_a_schema_or_a_review() -> None:
    from decimal import Decimal

    frame = pd.DataFrame({"price": pd.Series([Decimal("1.5"), Decimal("20.5")] * 30, dtype=object)})
    with pytest.raises(privbench.PrivBenchError, match=r"t: the types of .*Python objects, are guessed"):
        privbench.draft({"t": frame})
    assert privbench.draft({"t": frame}, domains="data").column("t", "price").type == "DECIMAL(3,1)"
    assert privbench.draft({"t": frame}, schema="CREATE TABLE t (price DECIMAL(9, 2))").tables


def test_releases_of_the_same_names_add_up(
    tables: dict[str, object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRIVBENCH_BUDGET_RECORD", str(tmp_path / "budget.jsonl"))
    words = {"unit": "customer", "schema": DDL, "domains": "data"}
    privbench.synth(tables, epsilon=2, **words)
    other = {name: pa.table(frame) if name == "purchase" else frame.iloc[:100] for name, frame in tables.items()}
    [before] = privbench.budget(other).sources
    assert [str(total.epsilon) for total in before.totals()] == ["2"]
    with pytest.raises(privbench.PrivBenchError, match="beyond the limit of 3"):
        privbench.synth(other, epsilon=2, orphans=privbench.Orphans.NULL, budget_limit=3, **words)
    assert privbench.budget({"customer": other["customer"]}).sources == ()
    text = (tmp_path / "budget.jsonl").read_text()
    assert "purchase" not in text
    assert "Bern" not in text


@pytest.mark.slow
def test_runs_of_a_comparison_count_for_the_tables(
    tables: dict[str, object], made: privbench.Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each run is a process of its own, which gets the tables in files."""
    monkeypatch.setenv("PRIVBENCH_BUDGET_RECORD", str(tmp_path / "budget.jsonl"))
    queries = privbench.generate_workload(made, n=4)
    words = {"unit": "customer", "schema": DDL, "domains": "data", "methods": ["tree", "independent"], "runs": 1}
    comparison = privbench.compare(tables, epsilons=[2], workload=queries, **words)
    assert [run.error for run in comparison.runs] == [None, None]
    [spent] = privbench.budget(tables).sources
    assert [str(total.epsilon) for total in spent.totals()] == ["4"]
    with pytest.raises(privbench.PrivBenchError, match="beyond the limit"):
        privbench.compare(tables, epsilons=[2], budget_limit=5, **words)
    privbench.write_comparison(comparison, tmp_path / "compare")
    assert (tmp_path / "compare" / "compare.csv").stat().st_size
    assert "tree at epsilon 2" in repr(comparison)
    assert "<td>independent</td>" in comparison._repr_html_()


# -- notebooks ---------------------------------------------------------------------------------------------------------


def test_short_words_for_everything(made: privbench.Bundle, tables: dict[str, object]) -> None:
    spec = privbench.draft(tables, unit="customer", schema=DDL, domains="data")
    plan = privbench.plan(spec, epsilon=9, rows={"Customer": 200})
    result = privbench.evaluate(tables, made, schema=DDL, floor=False, workload=privbench.generate_workload(made, n=3))
    workload = privbench.generate_workload(tables, n=3, schema=DDL)
    assert repr(made).startswith("<Bundle a temporary folder: customer 200, purchase ")
    assert repr(made.model) == "<Model: epsilon 9 for replacing one entity of customer; tables customer, purchase>"
    assert repr(spec) == str(spec) == "<Spec: unit customer, tables customer, purchase>"
    assert repr(plan).startswith("<Plan: epsilon 9 by method tree; customer ")
    assert repr(result).startswith("<Result: 2 tables, 1-way ")
    assert repr(workload) == "<Workload: 3 queries, literals of real rows>"
    [answer] = privbench.estimate(made.model, "SELECT COUNT(*) FROM customer")
    assert repr(answer) == "<Estimate of query 1: 200.0 rows>"
    for value in (made, made.model, spec, plan, result, workload):
        html = value._repr_html_()
        assert len(repr(value)) < 200
        assert "<table><tr><th>" in html
        assert len(html) < 10_000
    assert "for the publisher, not for publishing" in result._repr_html_()
    assert "it is private" in workload._repr_html_()
    assert "<td>{values: [Bern, Oslo, Rome]}</td><td>data</td>" in spec._repr_html_()


def test_hostile_names_stay_text() -> None:
    frame = pd.DataFrame({EVIL: [EVIL, "b"] * 50, "n": [i % 9 for i in range(100)]})
    tables = {EVIL: frame}
    made = privbench.synth(tables, epsilon=9, domains="data", seed=1)
    spec = privbench.draft(tables, domains="data")
    result = privbench.evaluate(tables, made, floor=False)
    plan, queries = privbench.plan(spec, epsilon=9), privbench.generate_workload(made, n=5)
    assert set(made.tables()[EVIL].column(EVIL).to_pylist()) == {EVIL, "b"}
    for value in (made, made.model, spec, plan, result, queries):
        assert "<script" not in value._repr_html_()
    assert "&lt;script&gt;" in made._repr_html_()


def test_durations_come_back_as_such() -> None:
    frame = pd.DataFrame({"span": pd.to_timedelta([i % 20 for i in range(400)], unit="h")})
    made = privbench.synth({"t": frame}, epsilon=9, domains="data", seed=1).tables()["t"]
    assert made.schema.field("span").type == pa.duration("us")
    assert made.to_pandas()["span"].between(pd.Timedelta(0), pd.Timedelta(hours=20)).all()


def test_a_bundle_tells_what_the_command_line_tells() -> None:
    """Columns that were left out, what the promise assumes, and what is mostly noise."""
    nested = pa.array([{"a": i} for i in range(40)])
    table = pa.table({"n": list(range(40)), "nested": nested})
    html = privbench.synth({"t": table}, epsilon=0.5, domains="data", seed=1)._repr_html_()
    assert "in the source, left out, since no type here holds its values: t.nested." in html
    assert "epsilon holds given that these domains are public: t.n" in html
    assert "Warning: " in html


def test_long_tables_are_cut() -> None:
    html = page("t", ["a"], [[i] for i in range(100)])
    assert html.count("<tr>") == 31
    assert "and 70 more" in html
