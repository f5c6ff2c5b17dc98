"""What `draft` says of public tables that look like people, and of tables that are made up instead."""

import json
from pathlib import Path

import pytest

from .conftest import Run

DDL = """
    CREATE TABLE country (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
    CREATE TABLE staff (id INTEGER PRIMARY KEY, first_name VARCHAR NOT NULL, email VARCHAR, picture BLOB);
    CREATE TABLE customer (
        id INTEGER PRIMARY KEY, rep INTEGER REFERENCES staff(id), country INTEGER REFERENCES country(id),
        age INTEGER CHECK (age BETWEEN 0 AND 99)
    );
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[object]:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "schema.sql").write_text(DDL)
    (shop / "country.csv").write_text("id,name\n1,Austria\n")
    (shop / "staff.csv").write_text("id,first_name,email,picture\n1,Mike,mike@example.org,\n")
    (shop / "customer.csv").write_text("id,rep,country,age\n1,1,1,33\n")
    return ["draft", shop, "--unit", "customer", "-o", tmp_path / "spec.yaml", "--force"]


def test_people_in_public_tables_are_told(run: Run, flags: list[object]) -> None:
    told = run(*flags, "--public", "country,staff")
    assert "warning: public table staff has columns that look like people: first_name, email, picture (BLOB)." in (
        told.err
    )
    assert "--made-up staff" in told.err
    assert "country has columns" not in told.err
    assert len(json.loads(run(*flags, "--public", "country,staff", "--json").out)["warnings"]) == 1


def test_show_tells(run: Run, flags: list[object], tmp_path: Path) -> None:
    run(*flags, "--public", "country,staff")
    fitted = run("fit", tmp_path / "spec.yaml", "--epsilon", 3, "-o", tmp_path / "m")
    assert fitted.err.count("staff has columns that look like people") == 1
    shown = run("show", tmp_path / "m")
    assert "public, with columns that look like people: staff.first_name, staff.email, staff.picture" in shown.out
    assert json.loads(run("show", tmp_path / "m", "--json").out)["people"]["staff"]["picture"] == "BLOB"


def test_made_up_tables_are_told(run: Run, flags: list[object]) -> None:
    words = json.loads(run(*flags, "--public", "country", "--made-up", "staff=5", "--json").out)
    assert (words["made_up"], words["warnings"]) == ({"staff": 5}, [])
    default = run(*flags, "--public", "country", "--made-up", "Staff")
    assert "Not read, but made up from the schema: staff (100 rows)." in default.out


@pytest.mark.parametrize("wrong", ["staff=", "staff=0", "staff=x", "=3", "staff=2000000"])
def test_a_wrong_number_is_refused(run: Run, flags: list[object], wrong: str) -> None:
    refused = run(*flags, "--made-up", wrong)
    assert refused.code != 0
    assert "such as staff=20" in refused.err
