"""DuckDB and SQLite files made by others: their catalogues, their types, and what can be wrong with them."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from privbench.errors import DataError, SourceError
from privbench.io.open import open_source
from privbench.schema.domain import Range, Values
from privbench.schema.tables import ForeignKey, Index
from privbench.schema.types import Kind

DDL = """
CREATE TABLE "p p" (a INTEGER, b VARCHAR, PRIMARY KEY (a, b), UNIQUE (b));
CREATE TABLE t ("i""d" INTEGER PRIMARY KEY, x INTEGER, y VARCHAR NOT NULL, up INTEGER REFERENCES t ("i""d"),
  k INTEGER CHECK (k BETWEEN 1 AND 5), "from" VARCHAR CHECK ("from" IN ('a', 'b')), CHECK (x >= 0 AND x < 10),
  FOREIGN KEY (x, y) REFERENCES "p p" (a, b), UNIQUE (y, k));
CREATE UNIQUE INDEX one ON t (x, "from");
CREATE INDEX two ON t ("i""d");
CREATE INDEX three ON t ((k + 1));
CREATE VIEW v AS SELECT 1 AS a;
"""


def _sqlite(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.executescript(statement)
    connection.close()
    return path


def _duckdb(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize("make", [_duckdb, _sqlite])
def test_the_catalogue_gives_everything(make: object, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert callable(make)
    with open_source(make(tmp_path / "any.name", DDL)) as source:
        schema = source.schema()
    assert caplog.messages[0].endswith("which no synthetic database has: view v, index three.")
    assert {t.name for t in schema.tables} == {"p p", "t"}  # DuckDB 1.5.0 does not keep their order
    parent, table = schema.table("p p"), schema.table("t")
    assert parent.keys == (("a", "b"), ("b",))
    assert not any(c.nullable for c in parent.columns)
    assert [c.name for c in table.columns if not c.nullable] == ['i"d', "y"]
    assert table.primary_key == ('i"d',)
    assert set(table.foreign_keys) == {
        ForeignKey(columns=("up",), table="t", references=('i"d',)),
        ForeignKey(columns=("x", "y"), table="p p", references=("a", "b")),
    }
    assert table.uniques == (("y", "k"),)
    assert table.indexes == (
        Index(name="one", columns=("x", "from"), unique=True),
        Index(name="two", columns=('i"d',)),
    )
    assert table.column("k").implied == Range(range=(1, 5))
    assert table.column("x").implied == Range(range=(0, 9))
    assert table.column("from").implied == Values(values=("a", "b"))


def test_duckdb_types(tmp_path: Path) -> None:
    path = _duckdb(
        tmp_path / "d",
        "CREATE TYPE mood AS ENUM ('sad', 'o''k')",
        "CREATE TABLE t AS SELECT 'sad'::mood AS m, 1::HUGEINT AS h, 2::UBIGINT AS u, 1.5::DECIMAL(10,2) AS d, "
        "true AS b, uuid() AS id, 0.5::FLOAT AS f, TIMESTAMP_NS '2020-01-01 00:00:00' AS ns, "
        "TIMESTAMPTZ '2020-01-01 00:00:00+02' AS z",
    )
    with open_source(path) as source:
        table = source.schema().table("t")
        [row] = [r for b in source.read(table) for r in b.to_pylist()]
    kinds = [
        "ENUM('sad', 'o''k')",
        *["DECIMAL(38,0)"] * 2,
        "DECIMAL(10,2)",
        "BOOLEAN",
        "UUID",
        "REAL",
        "TIMESTAMP",
        "TIMESTAMPTZ",
    ]
    assert [c.type.sql for c in table.columns] == kinds
    assert table.column("m").implied == Values(values=("sad", "o'k"))
    assert (row["m"], str(row["h"]), str(row["d"]), row["f"]) == ("sad", "1", "1.50", 0.5)
    assert row["z"].isoformat() == "2019-12-31T22:00:00+00:00"


@pytest.mark.parametrize(
    ("make", "kind"), [(_duckdb, "INTEGER[][]"), (_duckdb, "STRUCT(x INTEGER)"), (_sqlite, "THING"), (_sqlite, "")]
)
def test_a_type_without_codec_is_other(make: object, kind: str, tmp_path: Path) -> None:
    assert callable(make)
    path = make(tmp_path / "d", f"CREATE TABLE t (a {kind})")
    with open_source(path) as source:
        found = source.schema().table("t").column("a").type
    assert (found.kind, found.sql) == (Kind.OTHER, kind or "OTHER")


@pytest.mark.parametrize(
    ("declared", "value", "read"),
    [
        ("INTEGER", "9000000000", 9000000000),
        ("UNSIGNED BIG INT", "7", 7),
        ("VARYING CHARACTER(255)", "'x'", "x"),
        ("REAL", "0.1", 0.1),
        ("NUMERIC", "0.123456", 0.123456),
        ("NUMERIC(10,2)", "'1.10'", "1.10"),
        ("DECIMAL(10,2)", "0.1 + 0.2", "0.30"),
        ("DECIMAL(10,2)", "5", "5.00"),
        ("DATETIME", "'2009-01-01 00:00:00'", "2009-01-01 00:00:00"),
        ("DATE", "'2009-01-01 00:00:00'", "2009-01-01"),
        ("DATE", "'2009-01-01'", "2009-01-01"),
        ("TIMESTAMPTZ", "'2009-01-01 00:00:00'", "2009-01-01 00:00:00+00:00"),
        ("TIME", "'10:11'", "10:11:00"),
        ("BOOLEAN", "1", True),
    ],
)
def test_sqlite_values(declared: str, value: str, read: object, tmp_path: Path) -> None:
    path = _sqlite(tmp_path / "d", f"CREATE TABLE t (a {declared}); INSERT INTO t VALUES (NULL), ({value})")
    with open_source(path) as source:
        rows = [v for b in source.read(source.schema().table("t")) for v in b.column(0).to_pylist()]
    assert rows[0] is None
    assert rows[1] == read or str(rows[1]) == read


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [
        ("INTEGER", "'abc'", "'abc'"),
        ("INTEGER", "1.5", "1.5"),
        ("SMALLINT", "40000", "40000"),
        ("DOUBLE", "'much'", "'much'"),
        ("BOOLEAN", "2", "2"),
        ("BOOLEAN", "'yes'", "'yes'"),
        ("DATE", "18000", "18000"),
        ("DATE", "'yesterday'", "'yesterday'"),
        ("TIMESTAMP", "'2020-13-01'", "'2020-13-01'"),
        ("DECIMAL(4,2)", "1.005", "1.005"),
        ("DECIMAL(4,2)", "100", "100"),
        ("DECIMAL(4,2)", "'dear'", "'dear'"),
        ("DECIMAL(4,2)", "9e999", "inf"),
        ("VARCHAR", "x'00ff'", r"b'\\x00\\xff'"),
    ],
)
def test_a_sqlite_value_of_another_type_is_shown(declared: str, value: str, shown: str, tmp_path: Path) -> None:
    path = _sqlite(tmp_path / "d", f"CREATE TABLE t (a {declared}); INSERT INTO t VALUES (NULL), ({value})")
    with open_source(path) as source, pytest.raises(DataError, match=rf"t\.a: {shown} is not a value of type"):
        list(source.read(source.schema().table("t")))


def test_sqlite_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = _sqlite(tmp_path / "d", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    with open_source(path) as source, pytest.raises(DataError, match="UTF-8 column 'a'"):
        list(source.read(source.schema().table("t")))


def test_sqlite_leaves_out_what_is_not_a_table(tmp_path: Path) -> None:
    path = _sqlite(
        tmp_path / "d #?%.db",
        "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT); INSERT INTO t VALUES (1, 'x')",
        "CREATE INDEX part ON t (b) WHERE a > 1; CREATE VIEW v AS SELECT 1; ANALYZE",
    )
    with open_source(path) as source:
        assert [t.name for t in source.schema().tables] == ["t"]
        assert source.schema().table("t").indexes == ()


@pytest.mark.parametrize("make", [_duckdb, _sqlite])
def test_a_database_without_tables(make: object, tmp_path: Path) -> None:
    assert callable(make)
    path = make(tmp_path / "d", "CREATE VIEW v AS SELECT 1 AS a")
    with open_source(path) as source, pytest.raises(SourceError, match="has no table"):
        source.schema()


@pytest.mark.parametrize("make", [_duckdb, _sqlite])
@pytest.mark.parametrize("keep", [100, 5000])
def test_a_truncated_database(make: object, keep: int, tmp_path: Path) -> None:
    assert callable(make)
    path = make(tmp_path / "d", "CREATE TABLE t (a INTEGER)", "INSERT INTO t SELECT 1 FROM (SELECT 1) x")
    path.write_bytes(path.read_bytes()[:keep])

    def read() -> None:
        with open_source(path) as source:
            list(source.read(source.schema().table("t")))

    with pytest.raises(SourceError, match=r"d: (DuckDB|SQLite) cannot"):
        read()


def test_a_duckdb_file_of_a_stranger_cannot_reach_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    path = _duckdb(tmp_path / "d", "CREATE TABLE t (a INT)", f"CREATE VIEW v AS SELECT * FROM '{tmp_path}/secret.csv'")
    with open_source(path) as source:
        assert [t.name for t in source.schema().tables] == ["t"]
        with pytest.raises(SourceError, match="cannot read it"):
            source.rows("v")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing", None, "does not exist"),
        ("note.duckdb", b"hello, this is only some text", "cannot be read as a source"),
        ("empty.sqlite", b"", "cannot be read as a source"),
    ],
)
def test_a_location_that_is_no_source(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path / name)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has no \.parquet or \.csv file"):
        open_source(tmp_path)


def test_columns_of_sqlite_that_are_read_apart_have_their_rows_in_one_order(tmp_path: Path) -> None:
    """An index that holds all columns that are asked for would give them in its own order."""
    path = _sqlite(
        tmp_path / "t.db",
        "CREATE TABLE t (a INTEGER, wide TEXT, b INTEGER); CREATE INDEX by_a ON t (a);"
        "INSERT INTO t VALUES (3, 'xxxxxxxxxxxxxxxxxxxx', 3), (1, 'yyyyyyyyyyyyyyyyyyy', 1), (2, 'z', 2)",
    )
    with open_source(path) as source:
        table = source.schema().table("t")
        read = [
            [
                row[name]
                for batch in source.read(replace(table, columns=(table.column(name),), indexes=()))
                for row in batch.to_pylist()
            ]
            for name in ("a", "b")
        ]
    assert read == [[3, 1, 2], [3, 1, 2]]
