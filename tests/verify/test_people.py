"""Public tables that look like people: told at draft and fit, in the receipt, and by verifiers."""

import logging
from pathlib import Path

import pytest

import privbench
from privbench.model.model import Model
from privbench_verify.bundle import verify_bundle
from privbench_verify.people import people_columns, with_bytes

from ..forging import write_shop


@pytest.mark.parametrize(
    ("table", "columns", "found"),
    [
        (
            "staff",
            "staff_id first_name last_name address_id email store_id active username password picture:BLOB",
            "first_name last_name email username password picture (BLOB)",
        ),
        (
            "Employee",
            "EmployeeId LastName FirstName Title ReportsTo BirthDate:DATE HireDate Address City Phone Fax Email",
            "LastName FirstName BirthDate HireDate Address Phone Fax Email",
        ),
        ("people", "playerID birthYear nameFirst nameLast weight", "birthYear nameFirst nameLast"),
        ("address", "address_id address district phone postal_code", "address phone"),
        ("suppliers", "CompanyName ContactName ContactTitle Phone HomePage", "ContactName Phone"),
        ("users", "id name avatar:BYTEA created", "name avatar (BYTEA)"),
        ("t", "ssn passport_no date_of_birth photo", "ssn passport_no date_of_birth photo"),
        ("country", "country_id name", ""),
        ("category", "name picture:BLOB", ""),
        ("film", "title description image:BLOB", ""),
        ("product", "name price supplier_id", ""),
        ("genre", "GenreId Name", ""),
        ("store", "name address city", ""),
        ("user_type", "name", ""),
        ("customer_category", "name", ""),
        ("message", "phone_type email_sent:BOOLEAN filename", ""),
    ],
)
def test_names_and_types_tell(table: str, columns: str, found: str) -> None:
    types = {c.partition(":")[0]: c.partition(":")[2] or "VARCHAR" for c in columns.split()}
    assert " ".join(with_bytes(*column) for column in people_columns(table, types).items()) == found


DDL = """
    CREATE TABLE country (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
    CREATE TABLE staff (id INTEGER PRIMARY KEY, first_name VARCHAR NOT NULL, email VARCHAR, picture BLOB);
    CREATE TABLE customer (
        id INTEGER PRIMARY KEY, rep INTEGER REFERENCES staff(id), country INTEGER REFERENCES country(id),
        age INTEGER CHECK (age BETWEEN 0 AND 9)
    );
"""
LINE = "Public table staff has columns that look like people: first_name, email, picture (BLOB)."


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(
        tmp_path_factory.mktemp("people") / "shop",
        DDL,
        country="id,name\n1,Austria\n",
        staff="id,first_name,email,picture\n1,Mike,mike@example.org,\n2,Jon,,\n",
        customer="id,rep,country,age\n" + "".join(f"{i},{1 + i % 2},1,{i % 10}\n" for i in range(1, 61)),
    )


@pytest.fixture(scope="module")
def model(shop: Path) -> Model:
    return privbench.fit(privbench.draft(shop, unit="customer", public=["country", "staff"]), epsilon=9)


def test_fit_tells_before_it_spends(shop: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = privbench.draft(shop, unit="customer", public=["country", "staff"])
    with caplog.at_level(logging.WARNING), pytest.raises(privbench.PrivBenchError):
        privbench.fit(spec, source=shop / "nowhere", epsilon=1)
    assert any("staff has columns that look like people" in line for line in caplog.messages)


def test_verifiers_tell(model: Model, tmp_path: Path) -> None:
    assert model.receipt["public"]["people"] == {
        "staff": {"first_name": "VARCHAR", "email": "VARCHAR", "picture": "BLOB"}
    }
    privbench.save_model(model, tmp_path / "people.model")
    bundle = privbench.generate(model, tmp_path / "bundle", seed=1, format="csv")
    for verdict in (
        privbench.verify(tmp_path / "people.model"),
        privbench.verify(bundle.path),
        privbench.verify(bundle.path / "receipt.json"),
        verify_bundle(bundle.path),
    ):
        assert verdict.status == "verified"
        assert verdict.assumptions.count(LINE) == 1


def test_verifiers_tell_what_a_receipt_does_not(model: Model, tmp_path: Path) -> None:
    """As those of earlier versions do not."""
    receipt = {**model.receipt, "public": {k: v for k, v in model.receipt["public"].items() if k != "people"}}
    silent = Model(
        spec=model.spec, tables=model.tables, public=model.public, entity_keys=model.entity_keys, receipt=receipt
    )
    privbench.save_model(silent, tmp_path / "silent.model")
    bundle = privbench.generate(silent, tmp_path / "bundle", seed=1, format="csv")
    for verdict in (privbench.verify(tmp_path / "silent.model"), verify_bundle(bundle.path)):
        assert verdict.status == "verified"
        assert verdict.assumptions.count(LINE) == 1
    assert LINE not in privbench.verify(bundle.path / "receipt.json").assumptions
