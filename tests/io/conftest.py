"""A made database with the awkward shapes: composite and self references, a cycle, every type, odd names."""

import datetime as dt
import gzip
import zipfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from privbench.io.base import Format, Source, arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.io.memory import Tables
from privbench.io.open import open_source
from privbench.io.render import Dialect, render_ddl
from privbench.io.sinks import open_server, open_sink
from privbench.schema.tables import Schema

from .own_ddl import own_database

DDL = '''
CREATE TABLE "shop ""A""" (region SMALLINT, code VARCHAR(8), boss BIGINT NOT NULL, PRIMARY KEY (region, code),
  FOREIGN KEY (boss) REFERENCES "order" ("select"));
CREATE TABLE "order" ("select" BIGINT PRIMARY KEY, next BIGINT REFERENCES "order", region SMALLINT, code VARCHAR(8),
  mail VARCHAR UNIQUE, FOREIGN KEY (region, code) REFERENCES "shop ""A""");
CREATE TABLE kinds (i8 TINYINT, i16 SMALLINT, u32 UINTEGER, i64 BIGINT, f32 REAL, f64 DOUBLE, small DECIMAL(10, 2),
  big DECIMAL(38, 4), flag BOOLEAN, word VARCHAR, day DATE, clock TIME, at TIMESTAMP, instant TIMESTAMPTZ);
CREATE TABLE empty (a BIGINT NOT NULL, b VARCHAR);
CREATE TABLE lonely (a VARCHAR);
CREATE INDEX by_day ON kinds (day, i16);
CREATE UNIQUE INDEX by_mail ON "order" (mail, next);
'''
Rows = dict[str, pa.Table]


def _rows() -> dict[str, dict[str, list[object]]]:
    utc = dt.UTC
    return {
        'shop "A"': {"region": [1, 1, 2], "code": ["x", "y", "x"], "boss": [10, 11, 10]},
        "order": {
            "select": [10, 11, 12],
            "next": [11, 10, None],
            "region": [1, None, 2],
            "code": ["y", None, "x"],
            "mail": ["a@b", None, ""],
        },
        "kinds": {
            "i8": [-128, 127, None],
            "i16": [-32768, 0, None],
            "u32": [4294967295, 0, None],
            "i64": [-(2**63), 2**63 - 1, None],
            "f32": [0.5, -1.25, None],
            "f64": [0.1, 1e300, None],
            "small": [Decimal("0.10"), Decimal("-99999999.99"), None],
            "big": [Decimal("1234567890123456789012345678901234.5678"), Decimal("0.0001"), None],
            "flag": [True, False, None],
            "word": ["", 'quote " comma, line\nümläut', None],
            "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
            "clock": [dt.time(0), dt.time(23, 59, 59, 999999), None],
            "at": [dt.datetime(1950, 2, 28, 1, 2, 3, 4), dt.datetime(2020, 1, 1), None],
            "instant": [dt.datetime(2020, 1, 1, 12, tzinfo=utc), dt.datetime(1969, 12, 31, tzinfo=utc), None],
        },
        "empty": {"a": [], "b": []},
        "lonely": {"a": [None, "", "x", None]},
    }


@pytest.fixture(scope="session")
def schema() -> Schema:
    return parse_ddl(DDL, where="schema.sql")


@pytest.fixture(scope="session")
def rows(schema: Schema) -> Rows:
    data = _rows()
    return {t.name: pa.table(data[t.name], schema=arrow_schema(t)) for t in schema.tables}


@pytest.fixture
def write_bundle(schema: Schema, rows: Rows, tmp_path: Path) -> Callable[[Format], Path]:
    """Write the made database as a bundle of a format, children before parents to make it harder."""

    def write(to: Format) -> Path:
        with open_sink(tmp_path / "bundle" / "data", schema=schema, format=to) as sink:
            for name in reversed(rows):
                for batch in rows[name].to_batches():
                    sink.write(name, batch)
        (tmp_path / "bundle" / "schema.sql").write_text(render_ddl(schema, Dialect.ANSI))
        return tmp_path / "bundle"

    return write


PACKED = ("csv.gz", "csv.zip")
IN_MEMORY = ("arrow", "pandas", "polars")
SERVERS = ("mariadb", "postgres")
"""The fixtures that give the URL of an empty database on a server."""


def write_server(url: str, schema: Schema, rows: Rows) -> None:
    """Load the made database, children before parents to make it harder."""
    with open_server(url, schema=schema, replace=False) as sink:
        for name in reversed(rows):
            for batch in rows[name].to_batches():
                sink.write(name, batch)


@pytest.fixture(params=[*(f.value for f in Format), *PACKED, *IN_MEMORY, *SERVERS])
def source(
    request: pytest.FixtureRequest, write_bundle: Callable[[Format], Path], schema: Schema, rows: Rows
) -> Source:
    """Every kind of source, over the same rows."""
    if request.param in SERVERS:
        url = request.getfixturevalue(request.param)
        write_server(url, schema, rows)
        return open_source(url)
    if request.param in IN_MEMORY:
        return open_source(Tables({name: _frame(table, request.param) for name, table in rows.items()}, schema=DDL))
    if request.param in PACKED:
        return open_source(_packed(write_bundle(Format.CSV), request.param))
    to = Format(request.param)
    bundle = write_bundle(to)
    if to in (Format.DUCKDB, Format.SQLITE):
        return open_source(bundle / "data" / to.database)
    return open_source(bundle)


def _frame(table: pa.Table, library: str) -> object:
    if library == "pandas":
        return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)
    return pytest.importorskip("polars").from_arrow(table) if library == "polars" else table


def _packed(bundle: Path, suffix: str) -> Path:
    """The bundle with each of its CSV files packed."""
    for path in (bundle / "data").iterdir():
        packed = path.with_name(f"{path.stem}.{suffix}")
        if suffix == "csv.gz":
            packed.write_bytes(gzip.compress(path.read_bytes()))
        else:
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(path, path.name)
        path.unlink()
    return bundle


@pytest.fixture
def own() -> tuple[Schema, Mapping[str, pa.Table]]:
    """A database with the DDL of its source."""
    return own_database()
