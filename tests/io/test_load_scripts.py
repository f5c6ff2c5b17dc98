"""The scripts of a bundle, run by the real clients: what they load is what was written."""

import dataclasses
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import duckdb
import pyarrow as pa
import pytest

from privbench.io.base import Format, arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.io.load_scripts import load_files, readme_lines
from privbench.io.open import open_source
from privbench.io.sinks import open_sink
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type

from .own_ddl import ORIGINAL

Rows = Mapping[str, pa.Table]
EVIL = 'a"\n\\! touch evil\nDROP TABLE b; --'


def _bundle(folder: Path, schema: Schema, rows: Rows, form: str) -> Path:
    bundle = folder / "bundle"
    with open_sink(bundle / "data", schema=schema, format=form) as sink:
        for name, table in rows.items():
            for batch in table.to_batches():
                sink.write(name, batch)
    for name, text in load_files(schema, form).items():
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_bytes(text.encode())
    return bundle


def _sh(bundle: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script from elsewhere, as people do."""
    command = ["sh", str(bundle / "load" / script), *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)  # noqa: S603


def _need(client: str) -> None:
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")


def test_each_format_has_the_scripts_whose_clients_read_it(schema: Schema) -> None:
    both = {"pre-data.sql", "post-data.sql"}
    assert set(load_files(schema, Format.SQLITE)) == both
    assert set(load_files(schema, Format.PARQUET)) == {*both, "load/duckdb.sh", "load/duckdb.sql"}
    csv = load_files(schema, Format.CSV)
    names = ("duckdb", "mysql", "postgres", "sqlite")
    scripts = {f"load/{name}.{end}" for name in names for end in ("sh", "sql")}
    assert set(csv) == {*both, *scripts, "load/mysql-rest.sql"}
    assert len(readme_lines(csv)) == len(names)


@pytest.fixture
def ask(postgres: str) -> Callable[[str], list[tuple[object, ...]]]:
    psycopg = pytest.importorskip("psycopg")

    def ask(sql: str) -> list[tuple[object, ...]]:
        with psycopg.connect(postgres) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return list(connection.execute(sql.encode()).fetchall())

    return ask


Ask = Callable[[str], list[tuple[object, ...]]]


def test_psql_loads_csv(postgres: str, ask: Ask, schema: Schema, rows: Rows, tmp_path: Path) -> None:
    _need("psql")
    ran = _sh(_bundle(tmp_path, schema, rows, Format.CSV), "postgres.sh", "-d", postgres)
    assert (ran.returncode, ran.stderr) == (0, "")
    for table in schema.tables:
        columns = ", ".join(f'"{c.name}"' for c in table.columns)
        name = table.name.replace('"', '""')
        assert ask(f'SELECT {columns} FROM "{name}"') == [tuple(r.values()) for r in rows[table.name].to_pylist()]
    assert ask("SELECT count(*) FROM pg_constraint WHERE contype = 'f'") == [(3,)]


def test_psql_leaves_nothing_where_the_target_has_such_a_table(
    postgres: str, ask: Ask, schema: Schema, rows: Rows, tmp_path: Path
) -> None:
    _need("psql")
    bundle = _bundle(tmp_path, schema, rows, Format.CSV)
    assert _sh(bundle, "postgres.sh", "-d", postgres).returncode == 0
    ran = _sh(bundle, "postgres.sh", "-d", postgres)
    assert ran.returncode != 0
    assert "already exists" in ran.stderr
    assert ask('SELECT count(*) FROM "order"') == [(3,)]


def test_psql_makes_the_objects_of_the_source_and_tells_what_the_rows_break(
    postgres: str, ask: Ask, own: tuple[Schema, Rows], tmp_path: Path
) -> None:
    _need("psql")
    schema, rows = own
    there = tuple(s for s in ORIGINAL.statements if s.name not in ("nowhere", "public"))
    schema = dataclasses.replace(schema, original=ORIGINAL.model_copy(update={"statements": there}))
    ran = _sh(_bundle(tmp_path, schema, rows, Format.CSV), "postgres.sh", "-d", postgres)
    assert ran.returncode == 0
    assert ran.stdout in ("", b"")  # no results of setval
    assert "mood_once" in ran.stderr
    assert ask('SELECT id, twice FROM app."Customer" ORDER BY id')[0][0] == 7
    assert ask("SELECT nextval('app.s')") == [(201,)]
    assert ask("SELECT count(*) FROM app.rich") == [(2,)]


def test_sqlite3_loads_csv(schema: Schema, rows: Rows, tmp_path: Path) -> None:
    _need("sqlite3")
    ran = _sh(_bundle(tmp_path, schema, rows, Format.CSV), "sqlite.sh", str(tmp_path / "new.sqlite"))
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "")
    with sqlite3.connect(tmp_path / "new.sqlite") as connection:
        assert connection.execute('SELECT "select", next, region, code FROM "order"').fetchall() == [
            (10, 11, 1, "y"),
            (11, 10, None, None),
            (12, None, 2, "x"),
        ]
        assert connection.execute("SELECT flag, word, i64, day FROM kinds").fetchall() == [
            (1, None, -(2**63), "0001-01-01"),
            (0, 'quote " comma, line\nümläut', 2**63 - 1, "9999-12-31"),
            (None, None, None, None),
        ]


def test_mysql_loads_csv(mariadb: str, schema: Schema, rows: Rows, tmp_path: Path) -> None:
    _need("mysql")
    [socket] = parse_qs(urlsplit(mariadb).query)["unix_socket"]
    place = (f"--socket={socket}", "--user=root", urlsplit(mariadb).path[1:])
    ran = _sh(_bundle(tmp_path, schema, rows, Format.CSV), "mysql.sh", *place)
    assert (ran.returncode, ran.stderr) == (0, "")
    with open_source(mariadb) as source:
        assert {t.name: len(t.foreign_keys) for t in source.schema().tables if t.foreign_keys} == {
            'shop "A"': 1,
            "order": 2,
        }
        for table in schema.tables:
            read = pa.Table.from_batches(source.read(table), schema=arrow_schema(table))
            empty = [{k: None if v == "" else v for k, v in row.items()} for row in rows[table.name].to_pylist()]
            assert read.to_pylist() == empty


@pytest.mark.parametrize("form", [Format.CSV, Format.PARQUET], ids=lambda f: f.value)
def test_duckdb_loads_csv_and_parquet(form: Format, schema: Schema, rows: Rows, tmp_path: Path) -> None:
    bundle = _bundle(tmp_path, schema, rows, form)
    if shutil.which("duckdb"):
        ran = _sh(bundle, "duckdb.sh", str(tmp_path / "new.duckdb"))
        assert (ran.returncode, ran.stderr) == (0, "")
    else:  # the same statements by the library
        _run_by_library(bundle, tmp_path / "new.duckdb")
    with open_source(tmp_path / "new.duckdb") as source:
        for table in schema.tables:
            read = pa.Table.from_batches(source.read(table), schema=arrow_schema(table))
            assert read.to_pylist() == rows[table.name].to_pylist()


def _run_by_library(bundle: Path, target: Path) -> None:
    text = (bundle / "load" / "duckdb.sql").read_text().removeprefix(".bail on\n")
    with duckdb.connect(str(target)) as connection:
        connection.execute(text.replace("'data/", f"'{bundle}/data/"))


def test_no_name_runs_a_command(postgres: str, ask: Ask, tmp_path: Path) -> None:
    _need("psql")
    column = Column(name=EVIL, type=parse_type("BIGINT"))
    schema = Schema(tables=(Table(name=EVIL, columns=(column,)), Table(name="b", columns=(column,))))
    rows = {t.name: pa.table({EVIL: [7]}, schema=arrow_schema(t)) for t in schema.tables}
    bundle = _bundle(tmp_path, schema, rows, Format.CSV)
    for script, target in (("postgres.sh", ("-d", postgres)), ("sqlite.sh", (str(tmp_path / "new.sqlite"),))):
        if script == "postgres.sh" or shutil.which("sqlite3"):
            ran = _sh(bundle, script, *target)
            assert (ran.returncode, ran.stderr) == (0, "")
    _run_by_library(bundle, tmp_path / "new.duckdb")
    assert not list(tmp_path.rglob("evil"))
    assert ask("SELECT * FROM b") == [(7,)]


def test_the_dropped_is_named_in_no_script() -> None:
    schema = parse_ddl("CREATE TABLE orders (id BIGINT PRIMARY KEY)", where="test")
    published = dataclasses.replace(schema, original=ORIGINAL.published(schema))
    assert "ustomer" not in "".join(load_files(published, Format.CSV).values())
    assert "index: it names a table or a column that is dropped" in load_files(published, Format.CSV)["pre-data.sql"]
