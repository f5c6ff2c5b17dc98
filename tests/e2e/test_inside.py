"""Keys inside the entity from a source to synthetic rows: diamonds with NULLs, long ones, cousins, shared columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privbench
from privbench.errors import SchemaError, SpecError
from privbench.estimation.estimate import cardinality
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ClusterSpec

SHOP = """
CREATE TABLE "the customer" (id INTEGER PRIMARY KEY, age INTEGER NOT NULL);
CREATE TABLE rental (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES "the customer" (id), film INTEGER);
CREATE TABLE payment (id INTEGER PRIMARY KEY, "paid by" INTEGER NOT NULL REFERENCES "the customer" (id),
  rental INTEGER REFERENCES rental (id), amount INTEGER NOT NULL);
CREATE TABLE refund (id INTEGER PRIMARY KEY, payment INTEGER NOT NULL REFERENCES payment (id),
  customer INTEGER NOT NULL REFERENCES "the customer" (id), rental INTEGER REFERENCES rental (id), reason INTEGER);
CREATE TABLE complaint (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES "the customer" (id),
  about INTEGER UNIQUE REFERENCES rental (id), after INTEGER REFERENCES complaint (id), tone INTEGER NOT NULL);
"""
INSIDE = {
    "a payment's rental": 'SELECT p."paid by" = r.customer FROM payment p JOIN rental r ON r.id = p.rental',
    "a refund's customer": 'SELECT f.customer = p."paid by" FROM refund f JOIN payment p ON p.id = f.payment',
    "a complaint's rental": "SELECT c.customer = r.customer FROM complaint c JOIN rental r ON r.id = c.about",
    "the complaint before": "SELECT c.customer = b.customer FROM complaint c JOIN complaint b ON b.id = c.after",
}
SQL = "SELECT count(*), count(*) FILTER (WHERE same) FROM ({}) AS t(same)"


def _write(folder: Path, ddl: str, tables: Mapping[str, Mapping[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "schema.sql").write_text(ddl)
    for name, columns in tables.items():
        arrays = {c: v if isinstance(v, pa.Array) else pa.array(v, pa.int32()) for c, v in columns.items()}
        pq.write_table(pa.table(arrays), folder / f"{name}.parquet")
    return folder


def _drop(values: Any, where: Any) -> pa.Array:
    return pa.array(values, pa.int32(), mask=where)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 customers; one payment in ten has no rental, some rentals have none, and three name another's rental."""
    rng = np.random.default_rng(5)
    customers = 400
    renter = np.sort(rng.integers(0, customers, 3000))
    paid = np.flatnonzero(rng.random(3000) < 0.9)
    payer, rental = renter[paid].copy(), paid.copy()
    rental[:3] = 2999
    refunded = np.flatnonzero(rng.random(len(paid)) < 0.3)
    upset = np.flatnonzero(rng.random(3000) < 0.2)
    first = np.append(True, np.diff(renter[upset]) != 0)
    return _write(
        tmp_path_factory.mktemp("inside") / "shop",
        SHOP,
        {
            "the customer": {"id": np.arange(customers), "age": rng.integers(18, 90, customers)},
            "rental": {"id": np.arange(3000), "customer": renter, "film": rng.integers(0, 50, 3000)},
            "payment": {
                "id": np.arange(len(paid)),
                "paid by": payer,
                "rental": _drop(rental, rng.random(len(paid)) < 0.08),
                "amount": rng.integers(0, 10, len(paid)),
            },
            "refund": {
                "id": np.arange(len(refunded)),
                "payment": refunded,
                "customer": payer[refunded],
                "rental": _drop(rental[refunded], rng.random(len(refunded)) < 0.5),
                "reason": rng.integers(0, 5, len(refunded)),
            },
            "complaint": {
                "id": np.arange(len(upset)),
                "customer": renter[upset],
                "about": _drop(upset, rng.random(len(upset)) < 0.3),
                "after": _drop(np.arange(len(upset)) - 1, first),
                "tone": rng.integers(0, 3, len(upset)),
            },
        },
    )


@pytest.fixture(scope="module")
def spec(shop: Path) -> Spec:
    return privbench.draft(shop, unit="the customer", domains="data", owners={"refund": ("payment",)})


@pytest.fixture(scope="module")
def model(shop: Path, spec: Spec) -> privbench.Model:
    return privbench.fit(spec, source=shop, epsilon="30")


def _shares(bundle: Path) -> dict[str, tuple[int, int]]:
    with duckdb.connect() as connection:
        for path in (bundle / "data").glob("*.parquet"):
            connection.execute(f"CREATE VIEW \"{path.stem.replace('_', ' ')}\" AS FROM '{path}'")
        return {name: connection.execute(SQL.format(query)).fetchall()[0] for name, query in INSIDE.items()}


def test_draft_finds_them_in_the_data_alone(shop: Path, spec: Spec) -> None:
    keys = {(t, k.columns[0]): (k.inside, k.origin) for t, table in spec.tables.items() for k in table.foreign_keys}
    found = {place for place, key in keys.items() if key == (True, Origin.DATA)}
    assert found == {
        ("payment", "paid by"),
        ("refund", "customer"),
        ("complaint", "about"),
        ("complaint", "after"),
    }
    assert keys["refund", "rental"] == (False, Origin.DECLARED), "it is NULL where the owner's is not"
    assert spec.tables["payment"].owner == ("rental",)
    private = privbench.draft(shop, unit="the customer", owners={"refund": ("payment",)})
    assert not any(k.inside for table in private.tables.values() for k in table.foreign_keys)
    assert private.tables["payment"].owner == ("paid by",)


def test_they_stay_inside_where_entities_lie_together(
    shop: Path, spec: Spec, model: privbench.Model, tmp_path: Path
) -> None:
    privbench.generate(model, tmp_path / "plain", seed=1)
    words = spec.tables["the customer"].model_copy(update={"clustered_by": (ClusterSpec(column="age"),)})
    clustered = spec.model_copy(update={"tables": {**spec.tables, "the customer": words}})
    privbench.generate(privbench.fit(clustered, source=shop, epsilon="30"), tmp_path / "out", seed=1)
    ages = duckdb.execute(f"SELECT age FROM '{tmp_path}/out/data/the*.parquet'").fetchall()
    assert ages == sorted(ages)
    plain = _shares(tmp_path / "plain")
    for key, (rows, same) in _shares(tmp_path / "out").items():
        assert rows == same > 0.8 * plain[key][0], key


def test_what_was_found_in_the_data_is_a_condition(model: privbench.Model) -> None:
    assert '"the customer"' not in model.receipt["condition"].partition("payment.rental")[0]
    assert "payment.paid by" in model.receipt["condition"]
    assert [key["role"] for key in model.receipt["inside"]["keys"]].count("implied") == 2


@pytest.mark.parametrize("scale", [1.0, 0.2, 3.0])
def test_no_synthetic_key_leaves_its_entity(model: privbench.Model, scale: float, tmp_path: Path) -> None:
    rows = privbench.generate(model, tmp_path / "b", scale=scale, seed=3).rows
    assert privbench.verify(tmp_path / "b").status == "conditional"
    for name, (keys, inside) in _shares(tmp_path / "b").items():
        assert keys == inside, name
        assert keys > 100 * scale, name
    assert 0.7 < rows["payment"] / (2700 * scale) < 1.4


def test_rows_without_owner_are_kept_and_belong_to_somebody(model: privbench.Model, tmp_path: Path) -> None:
    privbench.generate(model, tmp_path / "b", seed=1)
    payments = pq.read_table(tmp_path / "b" / "data" / "payment.parquet")
    nulls = payments.column("rental").null_count
    assert 0.04 < nulls / payments.num_rows < 0.13, "8 % in the data"
    assert payments.column("paid by").null_count == 0


def test_a_rental_is_complained_about_at_most_once(model: privbench.Model, tmp_path: Path) -> None:
    privbench.generate(model, tmp_path / "b", seed=1)
    about = pq.read_table(tmp_path / "b" / "data" / "complaint.parquet").column("about")
    assert len(about.unique().drop_null()) == len(about) - about.null_count
    assert 0.2 < about.null_count / len(about) < 0.5


@pytest.mark.parametrize("method", ["paper", "independent"])
def test_other_methods_take_them_as_references(shop: Path, spec: Spec, method: str, tmp_path: Path) -> None:
    model = privbench.fit(spec, source=shop, epsilon="30", method=method)
    assert model.protection.owners["payment"].columns == ("paid by",)
    assert not model.protection.implied
    privbench.generate(model, tmp_path / "b", seed=1)
    assert privbench.verify(tmp_path / "b").status == "conditional"


def test_estimates_follow_them(model: privbench.Model, tmp_path: Path) -> None:
    payment, customer, rental = "payment", "the customer", "rental"
    tables = {"p": payment, "c": customer, "r": rental}
    to_customer, to_rental = (("p", "paid by"), ("c", "id")), (("p", "rental"), ("r", "id"))
    owner = (("r", "customer"), ("c", "id"))
    rows = cardinality(model, tables={"p": payment})
    direct = cardinality(model, tables={"p": payment, "c": customer}, joins=[to_customer])
    assert direct == pytest.approx(rows, rel=0.01)
    through = cardinality(model, tables=tables, joins=[to_rental, owner])
    assert 0.85 * rows < through < 0.97 * rows, "some have no rental"
    assert cardinality(model, tables=tables, joins=[to_rental, owner, to_customer]) == pytest.approx(through)
    same = (("p", "paid by"), ("r", "customer"))
    pair = {"p": payment, "r": rental}
    assert cardinality(model, tables=pair, joins=[to_rental, same]) == pytest.approx(through)
    assert cardinality(model, tables=pair, joins=[same]) > 3 * rows


def test_a_spec_with_them_comes_back_from_a_file(spec: Spec, tmp_path: Path) -> None:
    privbench.write_spec(spec, tmp_path / "spec.yaml")
    assert privbench.read_spec(tmp_path / "spec.yaml") == spec
    assert spec.published().tables["payment"].foreign_keys == spec.tables["payment"].foreign_keys


TENANTS = """
CREATE TABLE tenant (id INTEGER PRIMARY KEY, size INTEGER NOT NULL);
CREATE TABLE job (tenant INTEGER NOT NULL REFERENCES tenant (id), number INTEGER NOT NULL, kind INTEGER NOT NULL,
  PRIMARY KEY (tenant, number));
CREATE TABLE step (tenant INTEGER NOT NULL REFERENCES tenant (id), job INTEGER NOT NULL, at INTEGER NOT NULL,
  cost INTEGER NOT NULL, PRIMARY KEY (tenant, job, at), FOREIGN KEY (tenant, job) REFERENCES job (tenant, number));
CREATE TABLE note (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL REFERENCES tenant (id), job INTEGER,
  tone INTEGER NOT NULL, FOREIGN KEY (tenant, job) REFERENCES job (tenant, number));
"""


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys that share the tenant's id, as they do where all tables have it."""
    rng = np.random.default_rng(6)
    jobs = [(t, n) for t in range(300) for n in range(int(rng.integers(0, 6)))]
    steps = [(t, n, at) for t, n in jobs for at in range(int(rng.integers(0, 4)))]
    notes = [(t, n if rng.random() < 0.5 else None) for t, n in jobs]
    return _write(
        tmp_path_factory.mktemp("inside") / "tenants",
        TENANTS,
        {
            "tenant": {"id": range(300), "size": rng.integers(0, 9, 300)},
            "job": {"tenant": [t for t, _ in jobs], "number": [n for _, n in jobs], "kind": [n % 3 for _, n in jobs]},
            "step": {
                "tenant": [t for t, _, _ in steps],
                "job": [n for _, n, _ in steps],
                "at": [at for _, _, at in steps],
                "cost": rng.integers(0, 9, len(steps)),
            },
            "note": {
                "id": range(len(notes)),
                "tenant": [t for t, _ in notes],
                "job": pa.array([n for _, n in notes], pa.int32()),
                "tone": rng.integers(0, 3, len(notes)),
            },
        },
    )


@pytest.mark.parametrize("domains", ["data", "private"])
def test_keys_that_share_columns_are_implied_by_the_schema(tenants: Path, domains: str, tmp_path: Path) -> None:
    spec = privbench.draft(tenants, unit="tenant", domains=domains)
    assert spec.tables["step"].owner == ("tenant", "job")
    assert next((k.inside, k.origin) for k in spec.tables["step"].foreign_keys) == (True, Origin.SCHEMA)
    model = privbench.fit(spec, source=tenants, epsilon="60")
    privbench.generate(model, tmp_path / "b", seed=1)
    with duckdb.connect() as connection:
        for name in spec.tables:
            connection.execute(f"CREATE VIEW {name} AS FROM '{tmp_path}/b/data/{name}.parquet'")
        for name in ("step", "note"):
            lost = (
                f"SELECT count(*) FROM {name} ANTI JOIN job ON {name}.tenant = job.tenant AND {name}.job = job.number"
            )
            assert connection.execute(f"{lost} WHERE {name}.job IS NOT NULL").fetchall() == [(0,)]
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] > 100


def _spec(shop: Path, **changes: Any) -> Spec:
    data = privbench.draft(shop, unit="the customer", owners={"refund": ("payment",)}).model_dump(
        mode="json", by_alias=True
    )
    for (table, column), inside in changes.pop("inside").items():
        for key in data["tables"][table]["foreign_keys"]:
            key["inside"] = inside if key["columns"] == [column] else key["inside"]
    data["tables"]["payment"] |= changes
    return Spec.model_validate(data)


def test_a_public_table_has_no_rows_inside_an_entity(shop: Path) -> None:
    data = _spec(shop, inside={}).model_dump(mode="json", by_alias=True)
    data["tables"]["rental"] |= {"public": True, "owner": None}
    data["tables"]["payment"]["foreign_keys"][1]["inside"] = True
    with pytest.raises(SpecError, match="cannot be one that stays inside the entity: rental is public"):
        Spec.model_validate(data).protection()


def test_the_unit_table_holds_no_such_key(shop: Path) -> None:
    data = _spec(shop, inside={}).model_dump(mode="json", by_alias=True)
    customer = data["tables"]["the customer"]
    customer["columns"]["best"] = {"type": "INTEGER"}
    customer["foreign_keys"] = [{"columns": ["best"], "table": "rental", "references": ["id"], "inside": True}]
    with pytest.raises(SpecError, match="has one row of each entity"):
        Spec.model_validate(data).protection()


def test_keys_that_share_columns_otherwise_are_refused(tenants: Path) -> None:
    data = privbench.draft(tenants, unit="tenant").model_dump(mode="json", by_alias=True)
    data["tables"]["step"]["foreign_keys"][0] |= {"inside": False, "from": "declared"}
    with pytest.raises(SchemaError, match="two foreign keys share it"):
        Spec.model_validate(data).protection()


def test_from_has_no_meaning_for_other_keys(shop: Path) -> None:
    data = _spec(shop, inside={}).model_dump(mode="json", by_alias=True)
    data["tables"]["payment"]["foreign_keys"][0]["from"] = "data"
    with pytest.raises(ValueError, match="`from` has no meaning without `inside`"):
        Spec.model_validate(data)
