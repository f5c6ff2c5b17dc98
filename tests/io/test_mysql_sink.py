"""A real MariaDB as a sink: types that come back, the source's own DDL, replacing, and leaving nothing behind."""

import gc
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privbench.errors import TargetError
from privbench.io.base import Loaded, arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.io.load_scripts import load_files
from privbench.io.mysql import sink as sink_module
from privbench.io.mysql.load import insert_rows
from privbench.io.open import open_source
from privbench.io.sinks import open_server, open_sink
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type

from ..servers.mariadb import MariaDBServer, start_mariadb

ORIGINAL = (
    r"""CREATE TABLE kinds (id BIGINT UNSIGNED AUTO_INCREMENT, u TINYINT UNSIGNED NOT NULL,
    e ENUM('a','it''s','\\') NOT NULL
    DEFAULT 'a' COMMENT 'one "of" \\ two\n lines', s SET('x','y'), y YEAR, b1 BIT(1), b9 BIT(9), j JSON, bi BINARY(16),
    vb VARBINARY(9), bl BLOB, de DECIMAL(20,6), dt DATETIME(6), ts TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON
    UPDATE CURRENT_TIMESTAMP(3), ti TIME(6), uu UUID, ip INET6, geo POINT, f FLOAT, d DOUBLE, ok BOOLEAN,
    c CHAR(4) CHARACTER SET latin1, m MEDIUMINT, word TEXT, next INT AS (m + 1) STORED, PRIMARY KEY (id),
    UNIQUE KEY once (u, e), KEY part (word(5), m DESC), FULLTEXT KEY words (word), CONSTRAINT small CHECK (m < 100))
    ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='all kinds'""",
    """CREATE TABLE child (k BIGINT UNSIGNED NOT NULL, day DATE NOT NULL, v INT DEFAULT 7, PRIMARY KEY (k, day),
    CONSTRAINT to_kinds FOREIGN KEY (k) REFERENCES kinds (id) ON DELETE CASCADE)""",
    "CREATE TABLE parts (a INT PRIMARY KEY, b INT) PARTITION BY HASH (a) PARTITIONS 3",
    "CREATE VIEW seen AS SELECT e, COUNT(0) AS n FROM kinds GROUP BY e",
    "CREATE TRIGGER t BEFORE INSERT ON child FOR EACH ROW SET NEW.v = 1",
)
ROWS = (
    r"""INSERT INTO kinds (id, u, e, s, y, b1, b9, j, bi, vb, bl, de, dt, ts, ti, uu, ip, geo, f, d, ok, c, m, word)
    VALUES (18446744073709551614, 255, 'it''s', 'x,y', 2024, b'1', b'100000001', '{"a": "\\"q\\" b"}', x'00ff', x'',
    x'2c270a22', -12345678901234.567891, '9999-12-31 23:59:59.999999', '2020-01-01 00:00:00.123', '10:11:12.000001',
    '6ccd780c-baba-1026-9564-5b8c656024db', '::1', ST_GeomFromText('POINT(1 2)'), 0.1, 1e-300, 1, 'ümlä', 5,
    'quote '' and " , \\ line\nend 🎉'), (7, 0, 'a', '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    "INSERT INTO child (k, day) VALUES (7, '2020-01-01')",
    "INSERT INTO parts VALUES (1, 2), (3, NULL)",
)


def _name(url: str) -> str:
    return url.split("/")[3].partition("?")[0]


@pytest.fixture
def another(mariadb_server: MariaDBServer) -> Any:
    """The URL of a second empty database."""
    mariadb_server.run("CREATE DATABASE another CHARACTER SET latin1")
    yield mariadb_server.url("another")
    mariadb_server.run("DROP DATABASE another")


@pytest.fixture
def original(mariadb: str, mariadb_server: MariaDBServer) -> str:
    """The URL of a database with everything."""
    mariadb_server.run("SET NAMES utf8mb4", *ORIGINAL, *ROWS, database=_name(mariadb))
    return mariadb


def _copy(source_url: str, target_url: str) -> Loaded:
    with open_source(source_url) as source:
        schema = source.schema()
        with open_server(target_url, schema=schema, replace=False) as sink:
            for table in schema.tables:
                for batch in source.read(table):
                    sink.write(table.name, batch)
            return sink.complete()


def _texts(server: MariaDBServer, url: str) -> dict[str, str]:
    """The server's own text of every table and view."""
    names = [(name, kind) for name, kind in server.run("SHOW FULL TABLES", database=_name(url))]
    texts = {}
    for name, kind in names:
        what = "VIEW" if kind == "VIEW" else "TABLE"
        [row] = server.run(f"SHOW CREATE {what} `{name}`", database=_name(url))
        texts[name] = row[1]
    return texts


@pytest.mark.parametrize("how", ["file", "statements"])
def test_a_database_comes_back_as_itself(
    how: str, original: str, another: str, mariadb_server: MariaDBServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "statements":
        monkeypatch.setattr(sink_module, "load_file", insert_rows)
    loaded = _copy(original, another)
    assert _texts(mariadb_server, another) == _texts(mariadb_server, original)
    assert [str(each) for each in loaded.left_out] == ["trigger t: code is not made again"]
    for table in ("kinds", "child", "parts"):
        query = f"SELECT * FROM {table} ORDER BY 1"
        rows = mariadb_server.run(query, database="another")
        assert rows == mariadb_server.run(query, database=_name(original))
        assert rows


def test_statistics_are_there(original: str, another: str, mariadb_server: MariaDBServer) -> None:
    _copy(original, another)
    [(rows,)] = mariadb_server.run(
        "SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name = 'another' AND table_name = 'kinds'"
    )
    assert rows == 2


def test_what_names_a_dropped_column_is_listed_and_the_rest_is_there(
    original: str, another: str, mariadb_server: MariaDBServer
) -> None:
    with open_source(original) as source:
        schema = source.schema()
    kinds = schema.table("kinds")
    left = replace(
        kinds,
        columns=tuple(c for c in kinds.columns if c.name not in ("e", "m")),
        indexes=tuple(i for i in kinds.indexes if not {"e", "m"} & set(i.columns)),
        checks=(),
    )
    cut = replace(schema, tables=tuple(left if t.name == "kinds" else t for t in schema.tables))
    with open_server(another, schema=cut, replace=False) as sink:
        listed = {(each.kind, each.name) for each in sink.complete().left_out}
    assert listed == {
        ("trigger", "t"),
        ("unique", "kinds.once"),
        ("index", "kinds.part"),
        ("check", "kinds.small"),
        ("view", "seen"),
    }
    text = _texts(mariadb_server, another)["kinds"]
    assert "FULLTEXT KEY `words`" in text
    assert "`next` int(11) DEFAULT NULL" in text  # its expression named what is gone


def test_a_check_that_rows_break_is_listed(original: str, another: str) -> None:
    with open_source(original) as source:
        schema = source.schema()
        with open_server(another, schema=schema, replace=False) as sink:
            for batch in source.read(schema.table("kinds")):
                at = batch.schema.get_field_index("m")
                large = pa.array([500] * batch.num_rows, batch.schema.field(at).type)
                sink.write("kinds", batch.set_column(at, "m", large))
            loaded = sink.complete()
    assert [(x.kind, x.name) for x in loaded.left_out] == [("trigger", "t"), ("check", "kinds.small")]


# -- a target that is not empty, and failures --------------------------------------------------------------------------

SIMPLE = """CREATE TABLE p (id BIGINT PRIMARY KEY, v BIGINT);
CREATE TABLE c (id BIGINT PRIMARY KEY, p BIGINT REFERENCES p);
CREATE INDEX by_v ON p (v)"""


@pytest.fixture
def simple() -> Schema:
    return parse_ddl(SIMPLE, where="schema.sql")


def _write(url: str, schema: Schema, rows: dict[str, list[tuple[int, int | None]]], *, force: bool = False) -> Loaded:
    with open_server(url, schema=schema, replace=force) as sink:
        for name, values in rows.items():
            columns = [list(column) for column in zip(*values, strict=True)]
            sink.write(
                name,
                pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=arrow_schema(schema.table(name))),
            )
        return sink.complete()


GOOD: dict[str, list[tuple[int, int | None]]] = {"c": [(1, 5), (2, None)], "p": [(5, 50)]}


def test_a_target_that_is_not_empty_is_refused(mariadb: str, mariadb_server: MariaDBServer, simple: Schema) -> None:
    mariadb_server.run("CREATE TABLE mine (a INT)", database=_name(mariadb))
    with pytest.raises(TargetError, match=r"is not empty: it holds mine\. .*--replace"):
        open_server(mariadb, schema=simple, replace=False)


def test_replace_drops_only_what_is_made_anew(mariadb: str, mariadb_server: MariaDBServer, simple: Schema) -> None:
    _write(mariadb, simple, {"c": [(9, None)]})
    mariadb_server.run("CREATE TABLE mine (a INT)", "INSERT INTO mine VALUES (1)", database=_name(mariadb))
    loaded = _write(mariadb, simple, GOOD, force=True)
    assert sorted(loaded.replaced) == ["table c", "table p"]
    assert sorted(_texts(mariadb_server, mariadb)) == ["c", "mine", "p"]
    assert mariadb_server.run("SELECT id FROM c", database=_name(mariadb)) == [(1,), (2,)]
    assert mariadb_server.run("SELECT a FROM mine", database=_name(mariadb)) == [(1,)]


def test_a_table_that_others_reference_is_not_replaced(
    mariadb: str, mariadb_server: MariaDBServer, simple: Schema
) -> None:
    _write(mariadb, simple, GOOD)
    mariadb_server.run("CREATE TABLE mine (a BIGINT REFERENCES p (id))", database=_name(mariadb))
    with pytest.raises(TargetError, match="table mine, which would stay, references p"):
        open_server(mariadb, schema=simple, replace=True)


BAD: list[tuple[str, dict[str, list[tuple[int, int | None]]]]] = [
    ("foreign key", {"p": [(5, 50)], "c": [(1, 6)]}),
    ("rows of p", {"p": [(5, 50), (5, 51)]}),
]


@pytest.mark.parametrize(("words", "rows"), BAD, ids=["orphan", "twice"])
@pytest.mark.parametrize("before", ["empty", "full"])
def test_a_failure_leaves_the_target_as_it_was(
    before: str,
    words: str,
    rows: dict[str, list[tuple[int, int | None]]],
    mariadb: str,
    mariadb_server: MariaDBServer,
    simple: Schema,
) -> None:
    if before == "full":
        _write(mariadb, simple, GOOD)
    texts = _texts(mariadb_server, mariadb)
    with pytest.raises(TargetError, match=words):
        _write(mariadb, simple, rows, force=True)
    assert _texts(mariadb_server, mariadb) == texts
    if before == "full":
        assert mariadb_server.run("SELECT id, p FROM c ORDER BY id", database=_name(mariadb)) == GOOD["c"]


def test_an_interrupt_leaves_nothing(mariadb: str, mariadb_server: MariaDBServer, simple: Schema) -> None:
    def stop() -> None:
        with open_server(mariadb, schema=simple, replace=False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert _texts(mariadb_server, mariadb) == {}


def test_a_session_that_is_killed_is_cleaned_up_in_another(
    mariadb: str, mariadb_server: MariaDBServer, simple: Schema
) -> None:
    def write() -> None:
        with open_server(mariadb, schema=simple, replace=False) as sink:
            batch = pa.RecordBatch.from_pydict({"id": [1], "v": [1]})
            sink.write("p", batch)
            for (number,) in mariadb_server.run(
                f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{_name(mariadb)}'"
            ):
                mariadb_server.run(f"KILL {number}")
            sink.write("p", batch)

    with pytest.raises(TargetError, match="the server went away"):
        write()
    assert _texts(mariadb_server, mariadb) == {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_is_gone_is_told_with_what_may_be_left(
    mariadb_server: MariaDBServer, simple: Schema, caplog: pytest.LogCaptureFixture
) -> None:
    with start_mariadb() as server:
        server.run("CREATE DATABASE shop")

        def write() -> None:
            with open_server(server.url("shop"), schema=simple, replace=False) as sink:
                server.process.kill()
                server.process.wait()
                sink.write("p", pa.RecordBatch.from_pydict({"id": [1], "v": [1]}))

        with pytest.raises(TargetError, match="the server went away"):
            write()
    gc.collect()  # PyMySQL leaves the socket open when nobody answers
    assert "could not be cleaned up" in caplog.text
    assert "p, c" in caplog.text


def test_without_the_right_to_create(mariadb: str, mariadb_server: MariaDBServer, simple: Schema) -> None:
    name = _name(mariadb)
    mariadb_server.run(
        "DROP USER IF EXISTS poor@localhost",
        "CREATE USER poor@localhost IDENTIFIED BY 's3cr&t'",
        f"GRANT SELECT ON {name}.* TO poor@localhost",
    )
    with pytest.raises(TargetError, match="table p could not be written: the user has no right") as caught:
        _write(mariadb_server.url(name, user="poor:s3cr%26t"), simple, GOOD)
    assert "s3cr" not in str(caught.value)


def test_rows_go_as_statements_where_files_are_not_allowed(
    mariadb: str, mariadb_server: MariaDBServer, simple: Schema
) -> None:
    mariadb_server.run("SET GLOBAL local_infile = 0")
    try:
        _write(mariadb, simple, GOOD)
    finally:
        mariadb_server.run("SET GLOBAL local_infile = 1")
    assert mariadb_server.run("SELECT id, p FROM c ORDER BY id", database=_name(mariadb)) == GOOD["c"]


def test_numbers_without_end_become_null(mariadb: str, mariadb_server: MariaDBServer) -> None:
    schema = parse_ddl("CREATE TABLE t (id BIGINT PRIMARY KEY, a DOUBLE, b REAL)", where="schema.sql")
    batch = pa.RecordBatch.from_pydict(
        {"id": [1, 2, 3], "a": [float("inf"), float("nan"), 1.5], "b": [1.0, float("-inf"), 0.5]},
        schema=arrow_schema(schema.tables[0]),
    )
    with open_server(mariadb, schema=schema, replace=False) as sink:
        sink.write("t", batch)
    assert mariadb_server.run("SELECT a, b FROM t", database=_name(mariadb)) == [(None, 1.0), (None, None), (1.5, 0.5)]


def test_a_view_that_cannot_be_made_is_listed(original: str, another: str) -> None:
    with open_source(original) as source:
        schema = source.schema()
    assert schema.original is not None
    spoilt = tuple(
        s.model_copy(update={"sql": "CREATE VIEW seen AS SELECT nothing()"}) if s.kind == "view" else s
        for s in schema.original.statements
    )
    broken = replace(schema, original=schema.original.model_copy(update={"statements": spoilt}))
    with open_server(another, schema=broken, replace=False) as sink:
        assert [each.kind for each in sink.complete().left_out] == ["trigger", "view"]


# -- the script of a bundle --------------------------------------------------------------------------------------------


def _bundle(folder: Path, schema: Schema, rows: Mapping[str, pa.Table]) -> Path:
    with open_sink(folder / "data", schema=schema, format="csv") as sink:
        for name, table in rows.items():
            for batch in table.to_batches():
                sink.write(name, batch)
    for name, text in load_files(schema, "csv").items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _run_script(server: MariaDBServer, bundle: Path, database: str) -> subprocess.CompletedProcess[str]:
    client = ["--no-defaults", "--user=root", f"--socket={server.socket}", database]
    script = str(bundle / "load" / "mysql.sh")
    return subprocess.run(["/bin/sh", script, *client], cwd="/", capture_output=True, text=True, check=False)  # noqa: S603


def test_the_script_of_a_bundle_loads_it_with_the_client(
    original: str, another: str, mariadb_server: MariaDBServer, tmp_path: Path
) -> None:
    with open_source(original) as source:
        schema = source.schema()
        rows = {t.name: pa.Table.from_batches(source.read(t), arrow_schema(t)) for t in schema.tables}
    ran = _run_script(mariadb_server, _bundle(tmp_path / "bundle", schema, rows), "another")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert _texts(mariadb_server, another) == _texts(mariadb_server, original)
    with open_source(another) as loaded:
        for table in schema.tables:
            found = pa.Table.from_batches(loaded.read(table), arrow_schema(table)).to_pylist()
            empty = [{name: None if value == "" else value for name, value in row.items()} for row in found]
            wanted = [{n: None if v == "" else v for n, v in row.items()} for row in rows[table.name].to_pylist()]
            assert empty == wanted


def test_no_name_runs_a_command(another: str, mariadb_server: MariaDBServer, tmp_path: Path) -> None:
    evil = "a`\n\\! touch evil\nDELIMITER x\nDROP TABLE b; --"
    column = Column(name=evil, type=parse_type("BIGINT"))
    schema = Schema(tables=(Table(name=evil, columns=(column,)), Table(name="b", columns=(column,))))
    rows = {t.name: pa.table({evil: [7]}, schema=arrow_schema(t)) for t in schema.tables}
    ran = _run_script(mariadb_server, _bundle(tmp_path / "bundle", schema, rows), "another")
    assert ran.stderr == ""
    assert not list(tmp_path.rglob("evil"))
    assert mariadb_server.run("SELECT * FROM b", database="another") == [(7,)]
