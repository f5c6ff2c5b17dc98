"""Types that travel as text, or as a number: the same values come back from every format, in its own type if any."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privbench
from privbench.errors import DataError
from privbench.io.base import Format, arrow_schema
from privbench.io.cast import cast_column
from privbench.io.ddl import parse_ddl
from privbench.io.open import open_source
from privbench.io.render import Dialect, render_ddl
from privbench.io.sinks import open_sink
from privbench.io.stored import clock_text, microseconds_of_clock, text_of_uuids, uuids_of_text
from privbench.schema.tables import Schema
from privbench.schema.types import parse_type

DDL = """
CREATE TABLE c (id UUID PRIMARY KEY, feels ENUM('sad', 'o''k'), doc JSON, raw BLOB, wait INTERVAL, tags VARCHAR[],
  sums INTEGER[], flags BIT VARYING(9), few BIT(2), host INET, paid MONEY, part INT4RANGE);
CREATE TABLE o (id UUID PRIMARY KEY, c UUID NOT NULL REFERENCES c);
"""
KEYS = ["00000000-0000-4000-8000-00000000002a", "ffffffff-ffff-4fff-bfff-ffffffffffff"]
ROWS = {
    "c": {
        "id": KEYS,
        "feels": ["o'k", None],
        "doc": ['{"a": "ü"}', None],
        "raw": ["\\x00ff", "\\x"],
        "wait": [93_784_000_001, -1_500_000],
        "tags": ["{a,b}", "{}"],
        "sums": ["{1,-2}", None],
        "flags": ["0101", "1"],
        "few": ["01", "11"],
        "host": ["10.0.0.1", None],
        "paid": ["12.50", None],
        "part": ["[1,5)", None],
    },
    "o": {"id": KEYS, "c": [KEYS[0], KEYS[0]]},
}


@pytest.fixture(scope="module")
def schema() -> Schema:
    return parse_ddl(DDL, where="schema.sql")


@pytest.fixture(scope="module")
def rows(schema: Schema) -> dict[str, pa.Table]:
    made = {}
    for table in schema.tables:
        arrays = [
            pa.array(ROWS[table.name][c.name], None if c.type.sql == "INTERVAL" else pa.string()).cast(c.type.arrow)
            for c in table.columns
        ]
        made[table.name] = pa.table(arrays, schema=arrow_schema(table))
    return made


@pytest.mark.parametrize("to", Format, ids=lambda f: f.value)
def test_values_come_back_from_every_format(
    to: Format, schema: Schema, rows: dict[str, pa.Table], tmp_path: Path
) -> None:
    with open_sink(tmp_path / "data", schema=schema, format=to) as sink:
        for name, table in rows.items():
            for batch in table.to_batches():
                sink.write(name, batch)
    (tmp_path / "schema.sql").write_text(render_ddl(schema, Dialect.ANSI))
    with open_source(tmp_path) as source:
        for table in schema.tables:
            assert pa.Table.from_batches(source.read(table), arrow_schema(table)) == rows[table.name]
    if to in (Format.DUCKDB, Format.SQLITE):
        with open_source(tmp_path / "data" / to.database) as source:
            found = {c.name: c.type.sql for c in source.schema().table("c").columns}
        assert (found["id"], found["doc"], found["raw"], found["wait"]) == ("UUID", "JSON", "BLOB", "INTERVAL")


def test_duckdb_has_its_own_types(schema: Schema, rows: dict[str, pa.Table], tmp_path: Path) -> None:
    with open_sink(tmp_path, schema=schema, format=Format.DUCKDB) as sink:
        sink.write("c", rows["c"].to_batches()[0])
    with duckdb.connect(str(tmp_path / Format.DUCKDB.database), read_only=True) as connection:
        types = dict(
            connection.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'c'").fetchall()
        )
        [(tags, sums, wait)] = connection.execute("SELECT tags, sums, wait FROM c WHERE sums IS NOT NULL").fetchall()
    assert types == {
        "id": "UUID",
        "feels": "ENUM('sad', 'o''k')",
        "doc": "JSON",
        "raw": "BLOB",
        "wait": "INTERVAL",
        "tags": "VARCHAR[]",
        "sums": "INTEGER[]",
        "flags": "BIT",
        "few": "BIT",
        "host": "VARCHAR",
        "paid": "DECIMAL(19,2)",
        "part": "VARCHAR",
    }
    assert (tags, sums, str(wait)) == (["a", "b"], [1, -2], "1 day, 2:03:04.000001")


def test_parquet_has_types_for_uuids_bytes_and_durations(
    schema: Schema, rows: dict[str, pa.Table], tmp_path: Path
) -> None:
    with open_sink(tmp_path, schema=schema, format=Format.PARQUET) as sink:
        sink.write("c", rows["c"].to_batches()[0])
    kinds = pq.read_schema(tmp_path / "c.parquet")
    assert [kinds.field(n).type for n in ("id", "raw", "wait")] == [pa.uuid(), pa.binary(), pa.duration("us")]
    with open_source(tmp_path) as source:  # without schema.sql
        assert [source.schema().table("c").column(n).type.sql for n in ("id", "raw", "wait")] == [
            "UUID",
            "BLOB",
            "INTERVAL",
        ]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**55), 2**55))))
def test_durations_are_written_and_read_back(values: list[int | None]) -> None:
    array = pa.array(values, pa.int64())
    assert microseconds_of_clock(clock_text(array)) == array


@given(st.lists(st.one_of(st.none(), st.uuids())))
def test_uuids_are_packed_and_written_back(values: list[object]) -> None:
    array = pa.array([None if v is None else str(v) for v in values], pa.string())
    assert text_of_uuids(uuids_of_text(array)) == array
    assert text_of_uuids(uuids_of_text(array).slice(1)) == array.slice(1)


@pytest.mark.parametrize("text", ["1 day", "1:2:3", "01:02", "x"])
def test_another_text_is_no_duration(text: str) -> None:
    with pytest.raises(DataError, match=r"t\.c: .* is not a value of type INTERVAL"):
        cast_column(pa.array(["00:00:01", text]), parse_type("INTERVAL"), "t.c")


def test_uuid_keys_are_made_anew_and_lead_to_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE c (id UUID PRIMARY KEY, m ENUM('a', 'b'), tags VARCHAR[], wait INTERVAL NOT NULL)"
        )
        connection.execute(
            "CREATE TABLE o (id UUID PRIMARY KEY, c_id UUID NOT NULL REFERENCES c, doc JSON, ref UUID UNIQUE)"
        )
        connection.execute(
            "INSERT INTO c SELECT uuid(), ['a', 'b'][1 + i % 2], [i::VARCHAR], to_minutes(i % 60) FROM range(300) r(i)"
        )
        connection.execute("INSERT INTO o SELECT uuid(), id, '{}', uuid() FROM c, range(3)")
        real = {key for (key,) in connection.execute("SELECT id FROM c").fetchall()}
    spec = privbench.draft(path, unit="c")
    model = privbench.fit(spec, epsilon=5)
    for name in ("one", "two"):
        privbench.generate(model, tmp_path / name, format="duckdb", seed=7)
    found = []
    for name in ("one", "two"):
        with duckdb.connect(str(tmp_path / name / "data" / "database.duckdb"), read_only=True) as connection:
            found.append(connection.execute("SELECT * FROM c ORDER BY ALL").fetchall())
            [(lost,)] = connection.execute("SELECT count(*) FROM o WHERE c_id NOT IN (SELECT id FROM c)").fetchall()
            keys = [key for (key,) in connection.execute("SELECT id FROM c").fetchall()]
    assert lost == 0
    assert {key.version for key in keys} == {4}
    assert not {*keys} & real
    assert found[0] == found[1]
