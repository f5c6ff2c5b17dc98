"""What a drafted spec says of keys, NULLs and columns that cannot be modelled."""

from pathlib import Path

import duckdb
import pytest

from privbench.errors import SchemaError, SpecError
from privbench.fitting.draft import draft
from privbench.schema.domain import Origin, Text, Values
from privbench.schema.spec import read_spec, write_spec


def _database(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_columns_of_unknown_types_are_left_out_and_named(tmp_path: Path) -> None:
    source = _database(
        tmp_path / "d",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, photo BLOB, tags VARCHAR[], a INTEGER, "
        "s STRUCT(x INTEGER, y VARCHAR), UNIQUE (a))",
        "INSERT INTO t VALUES (1, 'x'::BLOB, ['a'], 3, {'x': 1, 'y': 'z'})",
    )
    spec = draft(source, domains="data")
    assert {n: c.type for n, c in spec.tables["t"].columns.items() if c.drop} == {
        "photo": "BLOB",
        "tags": "VARCHAR[]",
        "s": "STRUCT(x INTEGER, y VARCHAR)",
    }
    assert list(spec.tables["t"].columns) == ["id", "photo", "tags", "a", "s"]
    assert [c.name for c in spec.schema().table("t").columns] == ["id", "a"]
    write_spec(spec, tmp_path / "s.yaml")
    assert read_spec(tmp_path / "s.yaml") == spec


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE t (id BLOB PRIMARY KEY, a INTEGER)",),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB UNIQUE)", "CREATE TABLE u (b BLOB REFERENCES t (b))"),
    ],
)
def test_a_key_of_an_unknown_type_is_refused(statements: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"is in a key, but type BLOB has no codec.*--drop"):
        draft(_database(tmp_path / "d", *statements), unit="t", domains="data")


def test_a_table_with_nothing_else_must_be_dropped(tmp_path: Path) -> None:
    source = _database(tmp_path / "d", "CREATE TABLE t (a INTEGER)", "CREATE TABLE u (b BLOB)")
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
