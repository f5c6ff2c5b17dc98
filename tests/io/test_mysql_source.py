"""A real MariaDB as a source: its catalogue, its types, awkward values, and everything that can go wrong."""

import dataclasses
import datetime as dt
import logging
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from privbench.errors import DataError, SchemaError, SourceError
from privbench.io.mysql import source as source_module
from privbench.io.open import open_source
from privbench.schema.domain import Range, Values
from privbench.schema.original import SourceDialect
from privbench.schema.tables import ForeignKey, Index, Table
from privbench.schema.types import Kind, parse_type

from ..servers.mariadb import MariaDBServer

DDL = (
    "CREATE TABLE `p p` (a INT, b VARCHAR(20), PRIMARY KEY (a, b))",
    """CREATE TABLE t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, `we``ird` VARCHAR(10) DEFAULT 'it''s',
    k INT CHECK (k BETWEEN 1 AND 5), word MEDIUMTEXT COMMENT 'a "note"', a INT, b VARCHAR(20),
    twice INT AS (k * 2) VIRTUAL, up BIGINT UNSIGNED,
    UNIQUE (k), UNIQUE KEY both_of (k, a), KEY part (word(10), k DESC), FULLTEXT KEY words (word),
    CONSTRAINT small CHECK (k < 100), CONSTRAINT to_p FOREIGN KEY (a, b) REFERENCES `p p` (a, b) ON DELETE SET NULL,
    FOREIGN KEY (up) REFERENCES t (id)) COMMENT='rows' ROW_FORMAT=DYNAMIC""",
    "CREATE VIEW second AS SELECT v.id FROM first AS v",
)


def _make(server: MariaDBServer, url: str, *statements: str) -> str:
    """Run statements in the database of a URL."""
    name = url.rpartition("/test")[2].partition("?")[0]
    server.run(*statements, database=f"test{name}")
    return f"test{name}"


def _values(url: str, table: str = "t") -> list[dict[str, Any]]:
    with open_source(url) as source:
        return [row for batch in source.read(source.schema().table(table)) for row in batch.to_pylist()]


def test_the_catalogue_gives_everything(mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(mariadb_server, mariadb, *DDL[:2], "CREATE VIEW first AS SELECT id, k FROM t WHERE a > 1", DDL[2])
    with open_source(mariadb) as source:
        schema = source.schema()
    table = schema.table("t")
    assert schema.table("p p").primary_key == ("a", "b")
    assert set(table.foreign_keys) == {
        ForeignKey(columns=("a", "b"), table="p p", references=("a", "b")),
        ForeignKey(columns=("up",), table="t", references=("id",)),
    }
    assert table.uniques == (("k",),)
    assert table.indexes == (
        Index(name="both_of", columns=("k", "a"), unique=True),
        Index(name="part", columns=("word", "k")),
    )
    assert table.column("k").implied == Range(range=(1, 5))
    assert (table.column("twice").generated, str(table.column("twice").computed)) == (True, "k * 2")
    assert [c.name for c in table.columns if not c.nullable] == ["id"]


def test_the_servers_own_ddl_is_kept(mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(mariadb_server, mariadb, *DDL[:2], "CREATE VIEW first AS SELECT id, k FROM t WHERE a > 1", DDL[2])
    with open_source(mariadb) as source:
        original = source.schema().original
    assert original is not None
    assert original.dialect is SourceDialect.MYSQL
    assert original.tables["t"].columns["id"] == "bigint(20) unsigned AUTO_INCREMENT"
    assert original.tables["t"].columns["we`ird"] == "varchar(10) DEFAULT 'it''s'"
    assert original.tables["t"].columns["word"] == "mediumtext COMMENT 'a \"note\"'"
    assert original.tables["t"].generated == ("twice",)
    assert "COMMENT='rows'" in original.tables["t"].after
    found = {s.title: s for s in original.statements}
    assert found["index t.part"].sql == "ALTER TABLE `t` ADD KEY `part` (`word`(10),`k` DESC)"
    assert found["index t.words"].sql == "ALTER TABLE `t` ADD FULLTEXT KEY `words` (`word`)"
    assert found["foreign key t.to_p"].sql.endswith("REFERENCES `p p` (`a`, `b`) ON DELETE SET NULL")
    assert found["check t.small"].columns == (("t", "k"),)
    assert found["view first"].columns == (("t", "id"), ("t", "k"), ("t", "a"))
    assert found["view second"].needs == ("view first",)
    assert [s.name for s in original.statements if s.kind == "view"] == ["first", "second"]


TYPES = [
    ("TINYINT(1)", "1", "BOOLEAN", True),
    ("TINYINT", "-128", "TINYINT", -128),
    ("TINYINT UNSIGNED", "255", "UTINYINT", 255),
    ("MEDIUMINT UNSIGNED", "16777215", "UINTEGER", 16777215),
    ("INT UNSIGNED ZEROFILL", "7", "UINTEGER", 7),
    ("BIGINT UNSIGNED", "18446744073709551615", "DECIMAL(38,0)", Decimal(18446744073709551615)),
    ("DECIMAL(38,10)", "'1234567890123456789012345678.0123456789'", "DECIMAL(38,10)", None),
    ("DECIMAL(65,30)", "0.5", "DOUBLE", 0.5),
    ("FLOAT", "0.1", "REAL", 0.10000000149011612),
    ("DOUBLE", "1.7976931348623157e308", "DOUBLE", 1.7976931348623157e308),
    ("YEAR", "2155", "SMALLINT", 2155),
    ("BIT(1)", "b'1'", "BIT(1)", "1"),
    ("BIT(10)", "b'101'", "BIT(10)", "0000000101"),
    ("ENUM('a','it''s','x,y')", "'it''s'", "ENUM('a', 'it''s', 'x,y')", "it's"),
    ("SET('a','b')", "'b,a'", "VARCHAR", "a,b"),
    ("JSON", "'{\"a\": [1, null]}'", "JSON", '{"a": [1, null]}'),
    ("UUID", "'6ccd780c-baba-1026-9564-5b8c656024db'", "UUID", "6ccd780c-baba-1026-9564-5b8c656024db"),
    ("INET6", "'::1'", "INET", "::1"),
    ("BINARY(4)", "x'00ff'", "BINARY(4)", "\\x00ff0000"),
    ("VARBINARY(8)", "''", "VARBINARY(8)", "\\x"),
    ("MEDIUMBLOB", "x'2c220a'", "BLOB", "\\x2c220a"),
    ("POINT", "ST_GeomFromText('POINT(1 2)')", "WKT", "POINT(1 2)"),
    ("CHAR(3)", "'a'", "CHAR(3)", "a"),
    ("VARCHAR(9) CHARACTER SET latin1", "'ümläut'", "VARCHAR(9)", "ümläut"),
    ("DATE", "'1000-01-01'", "DATE", dt.date(1000, 1, 1)),
    ("TIME(3)", "'23:59:59.999'", "TIME", dt.time(23, 59, 59, 999000)),
    ("DATETIME(6)", "'2020-02-29 01:02:03.000004'", "TIMESTAMP", dt.datetime(2020, 2, 29, 1, 2, 3, 4)),
    ("TIMESTAMP", "'2020-01-01 12:00:00'", "TIMESTAMPTZ", dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)),
]


@pytest.mark.parametrize(("declared", "literal", "ours", "value"), TYPES, ids=[case[0] for case in TYPES])
def test_types_and_their_values(
    declared: str, literal: str, ours: str, value: object, mariadb: str, mariadb_server: MariaDBServer
) -> None:
    _make(
        mariadb_server,
        mariadb,
        f"CREATE TABLE t (a {declared} NULL)",
        "SET NAMES utf8mb4, time_zone = '+02:00'",
        f"INSERT INTO t VALUES (NULL), ({literal})",
    )
    with open_source(mariadb) as source:
        assert source.schema().table("t").column("a").type.sql == ours
    first, second = (row["a"] for row in _values(mariadb))
    assert first is None
    assert second == value or (value is None and str(second) == literal.strip("'"))


def test_a_set_lists_its_subsets_and_a_wide_one_does_not(mariadb: str, mariadb_server: MariaDBServer) -> None:
    many = ",".join(f"'m{i}'" for i in range(7))
    _make(mariadb_server, mariadb, f"CREATE TABLE t (few SET('a','b'), many SET({many}))")
    with open_source(mariadb) as source:
        table = source.schema().table("t")
    assert table.column("few").implied == Values(values=("", "a", "b", "a,b"))
    assert table.column("many").implied is None


def test_a_type_without_codec_is_other(mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(mariadb_server, mariadb, "CREATE TABLE t (a LINESTRING, b POLYGON)")
    with open_source(mariadb) as source:
        kinds = {c.type.kind for c in source.schema().table("t").columns}
    assert kinds == {Kind.OTHER}


def test_awkward_texts(mariadb: str, mariadb_server: MariaDBServer) -> None:
    texts = ["", "NULL", "\\N", '"', '""', "a,b", "line\nend\r\n", " spaces ", "\\", "ümläut 🎉", "'", "\t", None]
    name = _make(mariadb_server, mariadb, "CREATE TABLE t (n INT, a TEXT, b VARCHAR(50))")
    with mariadb_server.connect(name) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", [(i, text, text) for i, text in enumerate(texts)])
    assert [(row["a"], row["b"]) for row in _values(mariadb)] == [(text, text) for text in texts]


def test_rows_come_in_the_order_of_the_table_whatever_index_there_is(
    mariadb: str, mariadb_server: MariaDBServer
) -> None:
    _make(
        mariadb_server,
        mariadb,
        "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))",
        "INSERT INTO t SELECT seq, 1000 - seq FROM seq_1_to_1000",
    )
    assert [row["a"] for row in _values(mariadb)] == list(range(1, 1001))


def test_long_rows_come_few_at_a_time(
    mariadb: str, mariadb_server: MariaDBServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_BATCH_BYTES", 100_000)
    monkeypatch.setattr(source_module, "_FIRST_ROWS", 2)
    _make(
        mariadb_server,
        mariadb,
        "CREATE TABLE t (a LONGTEXT)",
        "INSERT INTO t SELECT REPEAT('x', 20000) FROM seq_1_to_30",
    )
    with open_source(mariadb) as source:
        sizes = [b.num_rows for b in source.read(source.schema().table("t"))]
    assert (sum(sizes), max(sizes)) == (30, 4)


def test_a_row_longer_than_a_packet_is_refused(mariadb: str, mariadb_server: MariaDBServer) -> None:
    name = _make(mariadb_server, mariadb, "CREATE TABLE t (a LONGBLOB)")
    with mariadb_server.connect(name) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (REPEAT('x', 10000000))")
    with open_source(mariadb) as source, pytest.raises(SourceError, match="max_allowed_packet"):
        list(source.read(source.schema().table("t")))


def test_reads_in_turns_see_one_snapshot(mariadb: str, mariadb_server: MariaDBServer) -> None:
    name = _make(
        mariadb_server, mariadb, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_100000"
    )
    with open_source(mariadb) as source:
        table = source.schema().table("t")
        first = source.read(table)
        begun = [next(first), next(first)]
        mariadb_server.run("DELETE FROM t WHERE a % 2 = 0", "INSERT INTO t VALUES (-1)", database=name)
        assert source.rows("t") == 100_000
        second = source.read(table)
        begun_too = [next(second)]
        whole = pa.Table.from_batches([*begun, *first])
        assert whole["a"].to_pylist() == list(range(1, 100_001))
        assert pa.Table.from_batches([*begun_too, *second]) == whole


def test_a_table_without_snapshots_that_changes_is_refused(mariadb: str, mariadb_server: MariaDBServer) -> None:
    name = _make(
        mariadb_server,
        mariadb,
        "CREATE TABLE t (a INT) ENGINE=MyISAM",
        "INSERT INTO t SELECT seq FROM seq_1_to_1000",
    )
    with open_source(mariadb) as source:
        table = source.schema().table("t")
        assert sum(b.num_rows for b in source.read(table)) == 1000
        batches = source.read(table)
        next(batches)
        mariadb_server.run("INSERT INTO t SELECT seq FROM seq_1_to_10", database=name)
        with pytest.raises(SourceError, match=r"t changed while it was read.*ENGINE=InnoDB"):
            list(batches)


def test_dates_of_zeros_are_null_and_told(
    mariadb: str, mariadb_server: MariaDBServer, caplog: pytest.LogCaptureFixture
) -> None:
    _make(
        mariadb_server,
        mariadb,
        "SET sql_mode = ''",
        "CREATE TABLE t (a DATE, b DATETIME(3), c TIMESTAMP NULL)",
        "INSERT INTO t VALUES ('0000-00-00', '0000-00-00', '0000-00-00'), ('2020-01-02', '2020-01-02', NULL)",
    )
    with caplog.at_level(logging.WARNING):
        first, second = _values(mariadb)
    assert list(first.values()) == [None, None, None]
    assert second["a"] == dt.date(2020, 1, 2)
    assert sorted(record.getMessage().split(":")[0] for record in caplog.records) == ["t.a", "t.b", "t.c"]


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [("DATE", "'2020-00-00'", "'2020-00-00'"), ("TIME", "'100:00:00'", "'100:00:00'"), ("TINYINT(1)", "7", "'7'")],
)
def test_a_value_that_no_type_of_ours_holds_is_named(
    declared: str, value: str, shown: str, mariadb: str, mariadb_server: MariaDBServer
) -> None:
    _make(
        mariadb_server,
        mariadb,
        "SET sql_mode = ''",
        f"CREATE TABLE t (a {declared})",
        f"INSERT INTO t VALUES ({value})",
    )
    with pytest.raises(DataError, match=rf"t\.a: {shown} is not a value of type"):
        _values(mariadb)


def test_a_time_beyond_a_day_can_be_read_as_an_interval(mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(mariadb_server, mariadb, "CREATE TABLE t (a TIME)", "INSERT INTO t VALUES ('100:00:01')")
    with open_source(mariadb) as source:
        column = dataclasses.replace(source.schema().table("t").columns[0], type=parse_type("INTERVAL"))
        [batch] = source.read(Table(name="t", columns=(column,)))
    assert batch.column(0).to_pylist() == [360_001_000_000]


# -- what can go wrong -------------------------------------------------------------------------------------------------


@pytest.fixture
def reader(mariadb: str, mariadb_server: MariaDBServer) -> str:
    """The URL of a user who may only read table `seen`, with a password; table `unseen` is beside it."""
    name = _make(
        mariadb_server,
        mariadb,
        "CREATE TABLE unseen (a INT PRIMARY KEY)",
        "CREATE TABLE seen (a INT PRIMARY KEY)",
        "INSERT INTO seen VALUES (1)",
        "CREATE VIEW v AS SELECT a FROM seen",
    )
    mariadb_server.run(
        "DROP USER IF EXISTS reader@localhost",
        "CREATE USER reader@localhost IDENTIFIED BY 's3cr&t'",
        f"GRANT SELECT ON {name}.seen TO reader@localhost",
        f"GRANT SELECT ON {name}.v TO reader@localhost",
    )
    return mariadb_server.url(name, user="reader:s3cr%26t")


def test_rights_to_read_are_enough(reader: str) -> None:
    with open_source(reader) as source:
        assert [t.name for t in source.schema().tables] == ["seen"]
        assert [row for b in source.read(source.schema().table("seen")) for row in b.to_pylist()] == [{"a": 1}]
        original = source.schema().original
        assert original is not None
        assert [str(each) for each in original.left_out] == [
            "view v: the user has no right to see its text (SHOW VIEW)"
        ]
        assert "s3cr" not in source.location


def test_a_key_to_a_table_without_rights_names_both(reader: str, mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(mariadb_server, mariadb, "DELETE FROM seen", "ALTER TABLE seen ADD FOREIGN KEY (a) REFERENCES unseen (a)")
    with open_source(reader) as source, pytest.raises(SchemaError, match=r"seen\.a: references table unseen.*GRANT"):
        source.schema()


def test_a_right_that_is_taken_away_names_the_table(reader: str, mariadb_server: MariaDBServer) -> None:
    with open_source(reader) as source:
        table = source.schema().table("seen")
        name = reader.rpartition("/test")[2].partition("?")[0]
        mariadb_server.run(f"REVOKE SELECT ON test{name}.seen FROM reader@localhost")
        with pytest.raises(SourceError, match=r"table seen cannot be read: the user has no right"):
            list(source.read(table))


def test_a_table_that_is_altered_under_the_read(mariadb: str, mariadb_server: MariaDBServer) -> None:
    name = _make(mariadb_server, mariadb, "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 2)")
    with open_source(mariadb) as source:
        table = source.schema().table("t")
        mariadb_server.run("DROP TABLE t", "CREATE TABLE t (a INT PRIMARY KEY, b INT)", database=name)
        with pytest.raises(SourceError, match="table t cannot be read: the table was altered"):
            list(source.read(table))


@pytest.mark.parametrize(
    ("change", "words"),
    [(("s3cr%26t", "wr0ng"), "refused the user or the password"), (("/test", "/other"), "no rights on that database")],
)
def test_a_door_that_is_shut(change: tuple[str, str], words: str, reader: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        open_source(reader.replace(*change))
    assert "wr0ng" not in str(caught.value)
    assert "s3cr" not in str(caught.value)


def test_a_database_that_is_not_there(mariadb: str) -> None:
    with pytest.raises(SourceError, match="there is no such database"):
        open_source(mariadb.replace("/test", "/other"))


def test_a_database_without_tables(mariadb: str) -> None:
    with open_source(mariadb) as source, pytest.raises(SourceError, match="has no table"):
        source.schema()


def test_keys_that_our_schema_cannot_hold_are_listed(mariadb: str, mariadb_server: MariaDBServer) -> None:
    _make(
        mariadb_server,
        mariadb,
        "CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b))",
        "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a))",
    )
    with open_source(mariadb) as source:
        schema = source.schema()
    assert schema.table("c").foreign_keys == ()
    assert schema.original is not None
    assert [str(x) for x in schema.original.left_out] == [
        "foreign key c (a) -> p(a): it references columns that are not unique"
    ]


def test_a_sequence_that_is_not_made_is_not_called_code(mariadb: str, mariadb_server: MariaDBServer) -> None:
    name = mariadb.partition("?")[0].rpartition("/")[2]
    mariadb_server.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE SEQUENCE s", database=name)
    with open_source(mariadb) as source:
        original = source.schema().original
    assert original is not None
    assert list(map(str, original.left_out)) == ["sequence s: sequences of this system are not made again"]
