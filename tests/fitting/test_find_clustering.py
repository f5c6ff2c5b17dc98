"""Which rows lie together, as the data say."""

from pathlib import Path

import duckdb
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.receipt_check import verify_model
from privbench.privacy.noise import TestEntropy
from privbench.schema.domain import Origin
from privbench.schema.spec import read_spec, write_spec
from privbench.schema.table_spec import ClusterSpec

ROWS = 6_000
AREA = "(hash(i) % 40)::INTEGER"
KIND = "(hash(i + 1000000) % 3)::INTEGER"


def shop(path: Path, order: str) -> Path:
    """Customers of 40 areas and three kinds, in some order."""
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, area INTEGER NOT NULL, kind INTEGER NOT NULL)")
        base.execute(
            f"INSERT INTO customer SELECT row_number() OVER (ORDER BY {order}), area, kind FROM "
            f"(SELECT i, {AREA} AS area, {KIND} AS kind FROM range({ROWS}) t(i)) ORDER BY {order}"
        )
    return path


def found(path: Path, order: str, *, domains: str = "data", find: bool = True) -> tuple[ClusterSpec, ...]:
    return draft(shop(path, order), unit="customer", domains=domains, find=find).tables["customer"].clustered_by


def test_a_table_in_the_order_of_columns_is(tmp_path: Path) -> None:
    levels = found(tmp_path / "d", "kind, area, i")
    assert [(level.column, level.run) for level in levels] == [("kind", None), ("area", None)]
    assert all(level.share == 1 and level.origin is Origin.DATA for level in levels)


def test_rows_in_no_order_are_not_clustered(tmp_path: Path) -> None:
    assert found(tmp_path / "d", "i") == ()


def test_a_share_in_order_is_found(tmp_path: Path) -> None:
    [level] = found(tmp_path / "d", "i % 2, CASE WHEN i % 2 = 0 THEN area END, i")
    assert level.column == "area"
    assert level.share == pytest.approx(0.5, abs=0.08)


def test_runs_of_neighbouring_values_that_lie_anyhow_are_found(tmp_path: Path) -> None:
    [level] = found(tmp_path / "d", "(area // 4 * 7) % 10, i")
    assert level.column == "area"
    assert level.run in (300, 1000)
    assert level.share > 0.85


def test_nothing_is_read_for_private_domains_nor_with_finding_off(tmp_path: Path) -> None:
    assert found(tmp_path / "a", "area, i", domains="private") == ()
    assert found(tmp_path / "b", "area, i", find=False) == ()


def test_small_tables_and_unique_columns_are_not_clustered(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d")) as base:
        base.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER NOT NULL)")
        base.execute("INSERT INTO a SELECT i, i // 100 FROM range(1900) t(i)")
    assert draft(tmp_path / "d", unit="a", domains="data").tables["a"].clustered_by == ()
    with duckdb.connect(str(tmp_path / "e")) as base:
        base.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER NOT NULL)")
        base.execute("INSERT INTO a SELECT i, 3 * i FROM range(5000) t(i)")
    assert draft(tmp_path / "e", unit="a", domains="data").tables["a"].clustered_by == ()


def test_what_was_read_is_a_condition_and_makes_rows_lie_so(tmp_path: Path) -> None:
    spec = draft(shop(tmp_path / "d", "area, i"), unit="customer", domains="data")
    write_spec(spec, tmp_path / "spec.yaml")
    text = (tmp_path / "spec.yaml").read_text("utf-8")
    assert "clustered_by: [{column: area, from: data}]" in text
    assert "where rows lie" in text
    assert read_spec(tmp_path / "spec.yaml") == spec
    words = spec.tables["customer"]
    area = words.columns["area"].model_copy(update={"origin": Origin.DECLARED})  # now only the clustering is from data
    words = words.model_copy(update={"columns": {**words.columns, "area": area}})
    spec = spec.model_copy(update={"tables": {"customer": words}})
    model = fit(spec, epsilon=20)
    assert spec.origins(spec.protection())["customer", "area"] is Origin.DATA
    assert "customer.area" in model.receipt["condition"]
    assert verify_model(model).status == "conditional"
    generate(model, tmp_path / "out", seed=1)
    areas = duckdb.execute(f"SELECT area FROM '{tmp_path}/out/data/customer.parquet'").fetchall()
    assert areas == sorted(areas)
    assert len(set(areas)) > 30


def test_rows_lie_by_keys_to_public_tables(tmp_path: Path) -> None:
    with duckdb.connect(str(shop(tmp_path / "d", "area, i"))) as base:
        base.execute("CREATE TABLE area (id INTEGER PRIMARY KEY, name VARCHAR)")
        base.execute("INSERT INTO area SELECT i, 'area ' || i FROM range(40) t(i)")
        base.execute("CREATE TABLE client (id INTEGER PRIMARY KEY, area INTEGER NOT NULL REFERENCES area)")
        base.execute("INSERT INTO client SELECT id, area FROM customer ORDER BY id")
    spec = draft(tmp_path / "d", unit="client", domains="data", public=["area"], drop=["customer"])
    assert [level.column for level in spec.tables["client"].clustered_by] == ["area"]
    model = fit(spec, epsilon=2, entropy=TestEntropy(1))
    assert "client.area" in model.receipt["condition"]
    assert verify_model(model).problems == ()
    generate(model, tmp_path / "out", seed=1)
    areas = duckdb.execute(f"SELECT area FROM '{tmp_path}/out/data/client.parquet'").fetchall()
    assert areas == sorted(areas)


def test_an_index_that_a_table_is_stored_by_needs_no_data(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    duckdb.execute(f"COPY (SELECT 1 AS id, 2 AS area, true AS kept) TO '{tmp_path}/d/customer.parquet'")
    (tmp_path / "d" / "schema.sql").write_text(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, area INTEGER NOT NULL, kept BOOLEAN NOT NULL);"
        "CREATE INDEX by_area ON customer (kept, area, id); CREATE INDEX by_id ON customer (area);"
        "ALTER TABLE ONLY public.customer CLUSTER ON by_area;"
    )
    spec = draft(tmp_path / "d", unit="customer", domains="private")
    levels = spec.tables["customer"].clustered_by
    assert levels == (
        ClusterSpec(column="kept", origin=Origin.SCHEMA),
        ClusterSpec(column="area", origin=Origin.SCHEMA),
    )
    assert spec.origins(spec.protection())["customer", "area"] is Origin.PRIVATE
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec
