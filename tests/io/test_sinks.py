"""The contract of every sink: complete files, keys in place, the same bytes again, nothing outside the folder."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from privbench.errors import PrivBenchError, SchemaError, TargetError
from privbench.io.base import Format, arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.io.files import FolderSource
from privbench.io.open import open_source
from privbench.io.render import render_ddl
from privbench.io.sinks import open_sink
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type

ALL = pytest.mark.parametrize("to", list(Format), ids=lambda f: f.value)
DATABASES = pytest.mark.parametrize("to", [Format.DUCKDB, Format.SQLITE], ids=lambda f: f.value)
FILES = pytest.mark.parametrize("to", [Format.PARQUET, Format.CSV], ids=lambda f: f.value)


def _one_table(*names: str) -> Schema:
    column = Column(name="a", type=parse_type("BIGINT"))
    return Schema(tables=tuple(Table(name=n, columns=(column,)) for n in names))


@ALL
def test_leaves_only_its_own_files(to: Format, write_bundle: Callable[[Format], Path], schema: Schema) -> None:
    files = sorted(p.name for p in (write_bundle(to) / "data").iterdir())
    if to in (Format.DUCKDB, Format.SQLITE):
        assert files == [f"database.{to.value}"]
    else:
        assert len(files) == len(schema.tables)
        assert all(f.endswith(to.value) for f in files)


@FILES
def test_the_same_batches_give_the_same_bytes(
    to: Format, schema: Schema, rows: dict[str, pa.Table], tmp_path: Path
) -> None:
    for run in ("one", "two"):
        with open_sink(tmp_path / run, schema=schema, format=to) as sink:
            for name, table in rows.items():
                for batch in table.to_batches():
                    sink.write(name, batch)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_csv_tells_null_from_the_empty_string(write_bundle: Callable[[Format], Path]) -> None:
    text = (write_bundle(Format.CSV) / "data" / "lonely.csv").read_text()
    assert text == '"a"\n\n""\n"x"\n\n'


def test_sqlite_holds_keys_indexes_and_comparable_values(write_bundle: Callable[[Format], Path]) -> None:
    connection = sqlite3.connect(write_bundle(Format.SQLITE) / "data" / "database.sqlite")
    assert len(connection.execute("PRAGMA foreign_key_list('order')").fetchall()) == 3
    assert {
        r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")
    } == {
        "by_day",
        "by_mail",
    }
    assert connection.execute("SELECT small FROM kinds WHERE small > 0 AND flag AND day < '1900-01-01'").fetchall() == [
        (0.1,)
    ]
    assert connection.execute("SELECT typeof(big) FROM kinds").fetchall() == [("blob",), ("real",), ("null",)]
    connection.close()


def test_duckdb_holds_the_keys_it_can(write_bundle: Callable[[Format], Path]) -> None:
    with duckdb.connect(str(write_bundle(Format.DUCKDB) / "data" / "database.duckdb"), read_only=True) as connection:
        kinds = connection.execute("SELECT constraint_type, count(*) FROM duckdb_constraints() GROUP BY 1").fetchall()
        assert dict(kinds) == {"PRIMARY KEY": 2, "UNIQUE": 1, "FOREIGN KEY": 1, "NOT NULL": 5}
        assert connection.execute("SELECT count(*) FROM duckdb_indexes()").fetchall() == [(2,)]


@DATABASES
@pytest.mark.parametrize(
    ("ddl", "rows"),
    [
        ("CREATE TABLE p (a BIGINT PRIMARY KEY); CREATE TABLE c (a BIGINT REFERENCES p)", {"p": [1], "c": [2]}),
        ("CREATE TABLE p (a BIGINT PRIMARY KEY)", {"p": [1, 1]}),
        ("CREATE TABLE p (a BIGINT NOT NULL)", {"p": [None]}),
        ("CREATE TABLE p (a BIGINT); CREATE UNIQUE INDEX i ON p (a)", {"p": [1, 1]}),
    ],
)
def test_rows_that_break_a_key_are_refused(to: Format, ddl: str, rows: dict[str, list[int]], tmp_path: Path) -> None:
    schema = parse_ddl(ddl, where="test")

    def write() -> None:
        with open_sink(tmp_path / "data", schema=schema, format=to) as sink:
            for name, values in rows.items():
                sink.write(name, pa.record_batch([pa.array(values, pa.int64())], names=["a"]))

    with pytest.raises(TargetError, match="database"):
        write()


@DATABASES
def test_names_that_differ_in_case_only_are_refused_by_databases(to: Format, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="differ in case only"):
        open_sink(tmp_path, schema=_one_table("Cat", "cat"), format=to)


@DATABASES
def test_index_names_may_repeat(to: Format, tmp_path: Path) -> None:
    ddl = "CREATE TABLE p (a BIGINT); CREATE TABLE q (a BIGINT); CREATE INDEX i ON p (a); CREATE INDEX i ON q (a)"
    schema = parse_ddl(ddl, where="test")
    with open_sink(tmp_path, schema=schema, format=to):
        pass
    with open_source(tmp_path / to.database) as source:
        assert [i.name for t in source.schema().tables for i in t.indexes] == ["i", "q_i"]


def test_duckdb_takes_a_reference_in_another_order(tmp_path: Path) -> None:
    ddl = """CREATE TABLE p (a BIGINT, b BIGINT, PRIMARY KEY (b, a));
      CREATE TABLE c (x BIGINT, y BIGINT, FOREIGN KEY (x, y) REFERENCES p (a, b))"""
    schema = parse_ddl(ddl, where="test")
    with open_sink(tmp_path, schema=schema, format=Format.DUCKDB) as sink:
        for table in schema.tables:
            sink.write(table.name, pa.record_batch([pa.array([1]), pa.array([2])], schema=arrow_schema(table)))
    with open_source(tmp_path / "database.duckdb") as source:
        [key] = source.schema().table("c").foreign_keys
    assert str(key) == "(y, x) -> p(b, a)"


ODD = [
    "../../escape",
    "..",
    ".",
    "/etc/passwd",
    "CON",
    'a"b',
    "a'; DROP TABLE x; --",
    "ünï",
    "%2E",
    "a b",
    "~",
]


@FILES
def test_odd_names_stay_in_the_folder_and_come_back(to: Format, tmp_path: Path) -> None:
    names = [*ODD, "Cat", "cat", "CAT"]
    schema = _one_table(*names)
    with open_sink(tmp_path / "data", schema=schema, format=to) as sink:
        for i, name in enumerate(names):
            sink.write(name, pa.record_batch([pa.array([i])], names=["a"]))
    assert {p.relative_to(tmp_path).parts[0] for p in tmp_path.rglob("*")} == {"data"}
    assert len({p.name.casefold() for p in (tmp_path / "data").iterdir()}) == len(names)
    source = FolderSource(tmp_path / "data")
    assert {t.name for t in source.schema().tables} == set(names)
    for i, table in enumerate(schema.tables):
        assert [b.column(0).to_pylist() for b in source.read(table)] == [[i]]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(name="\r")
@given(name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
@pytest.mark.parametrize("to", [Format.DUCKDB, Format.SQLITE, Format.CSV], ids=lambda f: f.value)
def test_any_name_round_trips(to: Format, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("names")
    table = Table(
        name=name,
        columns=(Column(name=name, type=parse_type("BIGINT"), nullable=False),),
        primary_key=(name,),
    )
    schema = Schema(tables=(table,))
    try:
        with open_sink(folder / "data", schema=schema, format=to) as sink:
            sink.write(name, pa.record_batch([pa.array([7])], schema=arrow_schema(table)))
    except PrivBenchError:
        assert to is not Format.CSV  # SQLite keeps names that begin with sqlite_ for itself
        assert name.lower().startswith("sqlite_")
        return
    (folder / "schema.sql").write_text(render_ddl(schema), encoding="utf-8", newline="")
    with open_source(folder) as source:
        assert source.schema().tables[0].primary_key == (name,)
        assert [b.column(0).to_pylist() for b in source.read(table)] == [[7]]
