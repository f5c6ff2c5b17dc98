"""What a drafted spec says of keys, NULLs and columns that cannot be modelled."""

import re
from pathlib import Path

import duckdb
import pytest

from privbench.errors import SchemaError, SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.file import load_model, save_model
from privbench.schema.domain import Bins, Origin, Text, Values
from privbench.schema.spec import read_spec, write_spec


def _database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_columns_of_unknown_types_are_left_out_and_named(tmp_path: Path) -> None:
    source = _database(
        tmp_path / "d",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, photo MAP(VARCHAR, INTEGER), tags VARCHAR[][], a INTEGER, "
        "s STRUCT(x INTEGER, y VARCHAR), UNIQUE (a))",
        "INSERT INTO t VALUES (1, MAP {'x': 1}, [['a']], 3, {'x': 1, 'y': 'z'})",
    )
    spec = draft(source, domains="data")
    assert {n: c.type for n, c in spec.tables["t"].columns.items() if c.drop} == {
        "photo": "MAP(VARCHAR, INTEGER)",
        "tags": "VARCHAR[][]",
        "s": "STRUCT(x INTEGER, y VARCHAR)",
    }
    assert list(spec.tables["t"].columns) == ["id", "photo", "tags", "a", "s"]
    assert [c.name for c in spec.schema().table("t").columns] == ["id", "a"]
    write_spec(spec, tmp_path / "s.yaml")
    assert read_spec(tmp_path / "s.yaml") == spec


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE t (id UHUGEINT PRIMARY KEY, a INTEGER)",),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, b UHUGEINT UNIQUE)", "CREATE TABLE u (b UHUGEINT REFERENCES t (b))"),
    ],
)
def test_a_key_of_an_unknown_type_is_refused(statements: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"is in a key, but type UHUGEINT has no codec.*--drop"):
        draft(_database(tmp_path / "d", *statements), unit="t", domains="data")


def test_a_table_with_nothing_else_must_be_dropped(tmp_path: Path) -> None:
    source = _database(tmp_path / "d", "CREATE TABLE t (a INTEGER)", "CREATE TABLE u (b VARCHAR[][])")
    with pytest.raises(SchemaError, match=r"u: no column is left.*--drop u"):
        draft(source, unit="t", domains="data")
    assert draft(source, unit="t", domains="data", drop=["u"]).tables["u"].drop


def test_columns_can_be_left_out_by_name(tmp_path: Path) -> None:
    source = _database(tmp_path / "d", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 2)")
    spec = draft(source, domains="data", drop_columns=[("t", "b")])
    assert spec.attributes("t") == ("a",)
    with pytest.raises(SpecError, match="no such column"):
        draft(source, domains="data", drop_columns=[("t", "c")])


def test_keys_nulls_and_implied_domains(tmp_path: Path) -> None:
    source = _database(
        tmp_path / "d",
        "CREATE TABLE t (code VARCHAR PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR CHECK (c IN ('x', 'y')), d BOOLEAN)",
        "INSERT INTO t VALUES ('abcd', 1, NULL, 'x', true), ('abcdef', 2, 3, 'y', false)",
    )
    columns = draft(source, domains="data").tables["t"].columns
    assert columns["code"].domain == Text(text=(5, 6))
    assert (columns["a"].null, columns["b"].null) == (False, True)
    assert (columns["a"].origin, columns["c"].origin) == (Origin.DATA, Origin.SCHEMA)
    assert columns["c"].domain == Values(values=("x", "y"))


def test_an_unknown_origin_of_domains_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="found with budget"):
        draft(tmp_path, domains="guess")


PEOPLE = (
    "CREATE TABLE people (code VARCHAR PRIMARY KEY, email VARCHAR(60) UNIQUE, phone VARCHAR, first_name VARCHAR, "
    "city VARCHAR(40), wage INTEGER)",
    "INSERT INTO people SELECT printf('%c%c-%04d', 65 + i % 20, 66 + i % 7, i), 'p' || i || '@mail.invalid', "
    "'555', 'Jo' || chr(CAST(97 + i % 11 AS INTEGER)), "
    "CASE WHEN i % 4 THEN 'Town' || i % 5 ELSE 'Hamlet' || i END, 7919 * (i % 37) + 500000 * (i % 5) "
    "FROM range(2000) t(i)",
)


def test_shapes_are_guessed_from_names_without_looking_at_values(tmp_path: Path) -> None:
    columns = draft(_database(tmp_path / "d", *PEOPLE)).tables["people"].columns
    assert columns["email"].domain == Text(text=(17, 32), shape="email")
    assert columns["email"].origin is Origin.SCHEMA
    assert columns["first_name"].domain == Text(text=(2, 8, 9), shape="first_name", distinct=243)
    assert columns["phone"].domain == Text(text=(12, 13), shape="phone")
    assert columns["city"].domain is columns["code"].domain is None
    assert columns["city"].origin is Origin.PRIVATE


def test_shapes_and_repetition_are_read_from_data_and_written_again(tmp_path: Path) -> None:
    spec = draft(_database(tmp_path / "d", *PEOPLE), domains="data")
    columns = spec.tables["people"].columns
    assert columns["code"].domain == Text(text=(7, 8), shape="AA-9999")
    email, city, wage = (columns[name].domain for name in ("email", "city", "wage"))
    assert isinstance(email, Text)
    assert email.shape == "email"
    assert isinstance(city, Values)
    assert city.values == tuple(f"Town{i}" for i in range(5))
    assert (city.other, city.others, city.shape) == (True, 500, "city")
    assert isinstance(wage, Bins)
    assert wage.distinct is not None
    assert {c.origin for c in columns.values()} == {Origin.DATA}
    write_spec(spec, tmp_path / "s.yaml")
    assert read_spec(tmp_path / "s.yaml") == spec


def test_a_model_with_made_up_values_is_saved_and_generated(tmp_path: Path) -> None:
    model = fit(draft(_database(tmp_path / "d", *PEOPLE), domains="data"), epsilon=100)
    save_model(model, tmp_path / "m")
    for out in ("a", "b"):
        generate(load_model(tmp_path / "m"), tmp_path / out, seed=1)
    with duckdb.connect() as connection:
        first, second = (connection.execute(f"FROM '{tmp_path / o}/data/people.parquet'").fetchall() for o in "ab")
    assert first == second
    codes, emails, cities = ({row[at] for row in first} for at in (0, 1, 4))
    assert len(codes) == len(emails) == len(first)
    assert all(re.fullmatch("[A-Z]{2}-[0-9]{4}", code) for code in codes)
    assert all(email.endswith(("@example.com", "@example.org", "@example.net")) for email in emails)
    assert 300 < len(cities) < 520
    assert not any("Hamlet" in city for city in cities)


def _orders(path: Path, *, day: str, key: str = "INTEGER", id_: str = "i") -> Path:
    return _database(
        path,
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, joined DATE)",
        "INSERT INTO customer SELECT i, DATE '2020-01-01' + ((i * 7919) % 500)::INT FROM range(1, 60) t(i)",
        f"CREATE TABLE orders (id {key} PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer, shipped TIMESTAMP, "
        "day DATE)",
        f"INSERT INTO orders SELECT {id_}, 1 + i % 59, "
        f"CASE WHEN i % 3 > 0 THEN {day} + INTERVAL (i * 31 % 300) DAY END, {day} FROM range(1, 300) t(i)",
    )


def test_keys_that_ascend_with_a_date_are_numbered_by_it(tmp_path: Path) -> None:
    source = _orders(tmp_path / "d", day="DATE '2020-01-01' + (i + i % 7)::INT")
    spec = draft(source, unit="customer", domains="data")
    assert spec.tables["orders"].numbered_by == "day"
    assert spec.column("orders", "id").origin is Origin.DATA
    assert spec.tables["customer"].numbered_by is None
    assert spec.column("customer", "id").origin is Origin.DECLARED
    assert ("orders", "id") in spec.origins(spec.protection())  # so that the receipt's condition names it
    write_spec(spec, tmp_path / "s.yaml")
    assert read_spec(tmp_path / "s.yaml") == spec
    assert draft(source, unit="customer").tables["orders"].numbered_by is None


@pytest.mark.parametrize(
    ("day", "key", "id_"),
    [
        ("DATE '2020-01-01' + ((i * 7919) % 300)::INT", "INTEGER", "i"),
        ("DATE '2020-01-01'", "INTEGER", "i"),
        ("DATE '2020-01-01' - i::INT", "INTEGER", "i"),
        ("DATE '2020-01-01' + i::INT", "VARCHAR", "printf('%05d', i)"),
    ],
)
def test_other_keys_are_not(day: str, key: str, id_: str, tmp_path: Path) -> None:
    spec = draft(_orders(tmp_path / "d", day=day, key=key, id_=id_), unit="customer", domains="data")
    assert spec.tables["orders"].numbered_by is None


def test_without_finding_no_fit_looks_either(tmp_path: Path) -> None:
    source = _database(
        tmp_path / "d", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)", "INSERT INTO t VALUES (1, 2)"
    )
    assert draft(source, domains="data", find=False).method == {"name": "tree", "find": False}
    assert draft(source, domains="data").method == {}
