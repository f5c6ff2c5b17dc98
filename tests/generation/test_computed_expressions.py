"""Columns computed by expressions, from spec to bundle: right in every row, as DuckDB says, in any method and scale."""

import logging
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from privbench.errors import SpecError
from privbench.fitting import computed
from privbench.fitting.computed import tell_differing
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.generation import blocks
from privbench.generation.generate import generate
from privbench.io import duckdb_file
from privbench.io.open import open_source
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.rules.computed import ComputedQuery, check_functions

from ..computed_orders import LATE, ROWS, computed_spec, write_source, wrong_rows
from ..seeded import SeededEntropy

EVERY = {**ROWS, **LATE}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("orders") / "source.duckdb")


@pytest.fixture(scope="module")
def model(source: Path) -> Model:
    return fit(computed_spec(source, EVERY), epsilon="50", entropy=SeededEntropy())


def test_every_row(model: Model, tmp_path: Path) -> None:
    rows = generate(model, tmp_path / "out", seed=1)
    assert wrong_rows(tmp_path / "out", EVERY) == {}
    assert rows["line"] > rows["purchase"] > 300
    found = duckdb.sql(f"SELECT count(total), count(DISTINCT status) FROM '{tmp_path}/out/data/purchase.parquet'")
    assert found.fetchall() == [(rows["purchase"], 3)]


def test_every_scale_in_small_blocks(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    for scale in (0.1, 3.0):
        generate(model, tmp_path / f"{scale}", seed=2, scale=scale)
        assert wrong_rows(tmp_path / f"{scale}", EVERY) == {}


def test_a_model_keeps_its_expressions(model: Model, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.spec == model.spec
    assert verify_model(loaded).problems == ()
    stated = {(c["table"], c["column"]): c["equals"] for c in model.receipt["computed"]}
    assert stated["line", "price"] == {"expression": "amount * product.price"}
    assert stated["client", "orders"] == {"rows": "purchase"}


def test_nothing_is_learnt_of_computed_columns(model: Model) -> None:
    for table, column in EVERY:
        assert column not in model.tables[table].network.sizes
    events = [str(node["query"]) for node in model.receipt["ledger"]["nodes"] if node["kind"] == "event"]
    assert not any(f"'{name}'" in event for event in events for name in ("total", "paid", "weighed", "quarter"))


@pytest.mark.parametrize("method", ["independent", "paper"])
def test_other_methods_compute_all_but_plain_cases(source: Path, method: str, tmp_path: Path) -> None:
    columns = {place: sql for place, sql in EVERY.items() if sql not in ("COUNT(purchase.*)", "purchase.year")}
    model = fit(computed_spec(source, columns), epsilon="50", method=method, entropy=SeededEntropy())
    generate(model, tmp_path / "out", seed=1)
    assert wrong_rows(tmp_path / "out", columns) == {}


def test_rows_that_are_sorted_or_numbered_keep_what_is_computed(source: Path, tmp_path: Path) -> None:
    spec = computed_spec(source, EVERY)
    words = {"purchase": {"order": ("total",)}, "line": {"order": ("state", "paid")}, "client": {"order": ("spent",)}}
    tables = {name: table.model_copy(update=words.get(name, {})) for name, table in spec.tables.items()}
    generate(fit(spec.model_copy(update={"tables": tables}), epsilon="50", entropy=SeededEntropy()), tmp_path / "out")
    assert wrong_rows(tmp_path / "out", EVERY) == {}
    totals = duckdb.sql(f"SELECT total FROM '{tmp_path}/out/data/purchase.parquet'").fetchall()
    assert totals == sorted(totals)


def test_the_publisher_hears_how_many_rows_differ(source: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        fit(computed_spec(source, ROWS), epsilon="50", entropy=SeededEntropy())
    told = {record.getMessage().split(":")[0] for record in caplog.records if "it is not" in record.getMessage()}
    assert "purchase.year" in told
    assert not told & {"client.one", "line.paid"}  # which are as they should be


def test_rows_are_compared_some_at_a_time(
    source: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole columns of a large table would take more memory than a fit was given."""
    protection, sizes, run = computed_spec(source, ROWS).protection(), [], ComputedQuery.run

    def watched(self: ComputedQuery, tables: Mapping[str, pa.Table]) -> int:
        sizes.append((len(tables), max(rows.num_rows for rows in tables.values())))
        return run(self, tables)

    def told() -> set[str]:
        sizes.clear()
        caplog.clear()
        with open_source(source) as opened, caplog.at_level(logging.WARNING):
            tell_differing(opened, protection)
        return {record.getMessage() for record in caplog.records}

    monkeypatch.setattr(ComputedQuery, "run", watched)
    at_once = told()
    assert at_once
    monkeypatch.setattr(duckdb_file, "BATCH_ROWS", 20)
    monkeypatch.setattr(computed, "COMPARED_ROWS", 50)
    assert told() == at_once
    assert {tables for tables, _ in sizes} > {1}, "some look at rows of other tables"
    assert max(rows for tables, rows in sizes if tables == 1) < 50 + 20


@pytest.mark.parametrize(
    ("place", "sql", "message"),
    [
        (("client", "label"), "YEAR(id)", r"client\.columns\.label\.computed: cannot be worked out"),
        (("client", "label"), "rate + label2", r"there is no column label2 .* or it is dropped"),
        (("client", "code"), "made_up.x", r"client\.columns\.code\.computed: there is no column made_up\.x"),
        (("client", "code"), "product.name", r"public table that its keys lead to in one way \(none\)"),
        (("line", "weighed"), "purchase.total", r"purchase\.total is of another table, but .* in the end"),
        (("purchase", "mean"), "AVG(line.amount) + client.rate", r"client\.rate is of another table"),
        (("line", "weighed"), "SUM(purchase.id)", r"rows that line owns: of no table"),
        (("line", "price"), "purchase.total * 2", "computed from each other in a circle"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(
    source: Path, place: tuple[str, str], sql: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        plan(computed_spec(source, {**EVERY, place: sql}), epsilon="1")


TERMS = st.recursive(
    st.sampled_from(["amount", "discount", "product.price", "client.rate", "purchase.made", "2", "0.5", "NULL"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "||"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"COALESCE({t[0]}, {t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"CASE WHEN {t[0]} > {t[1]} THEN {t[1]} ELSE {t[2]} END"),
        inner.map(lambda t: f"ABS({t})"),
    ),
    max_leaves=5,
)
COLUMNS = st.sampled_from([("weighed", "DOUBLE"), ("price", "DECIMAL(12,2)"), ("state", "VARCHAR")])
_numbers = count()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of=COLUMNS, sql=TERMS)
def test_any_expression_that_is_accepted_holds_in_every_row(
    source: Path, of: tuple[str, str], sql: str, tmp_path: Path
) -> None:
    """What DuckDB says of the written rows, joined by their keys, is what they hold."""
    column, kind = of
    spec, out = computed_spec(source, {("line", column): sql}), tmp_path / f"{next(_numbers)}"
    try:
        check_functions(spec.protection())
    except SpecError:
        assume(False)
    model = fit(spec, epsilon="50", method="independent", entropy=SeededEntropy())
    generate(model, out, seed=1, scale=0.2)
    files = {name: f"'{out}/data/{name}.parquet'" for name in ("line", "purchase", "client", "product")}
    found = duckdb.sql(
        f"SELECT count(*), count(*) FILTER (line.{column} IS DISTINCT FROM TRY(CAST({sql} AS {kind}))) "
        f"FROM {files['line']} line JOIN {files['purchase']} purchase ON purchase.id = purchase_id "
        f"JOIN {files['client']} client ON client.id = client_id LEFT JOIN {files['product']} product "
        "ON product.id = product_id"
    ).fetchall()
    assert found[0][0] > 0
    assert found[0][1] == 0
