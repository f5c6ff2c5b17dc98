"""Folders of files: what schema.sql must match, types without it, and files that are damaged or wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import DataError, SourceError
from privbench.io.base import Source
from privbench.io.open import open_source
from privbench.schema.domain import Values
from privbench.schema.types import Kind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,\n")
    return tmp_path


def _all(source: Source) -> dict[str, list[dict[str, object]]]:
    with source:
        return {t.name: [r for b in source.read(t) for r in b.to_pylist()] for t in source.schema().tables}


def test_names_match_without_regard_to_case(folder: Path) -> None:
    (folder / "schema.sql").write_text("CREATE TABLE T (B VARCHAR, A SMALLINT PRIMARY KEY)")
    assert _all(open_source(folder)) == {"T": [{"B": "x", "A": 1}, {"B": None, "A": 2}]}


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("CREATE TABLE t (a INT, b VARCHAR); CREATE TABLE u (a INT)", "declares u, but there is no such file"),
        ("CREATE TABLE u (a INT)", "declares u"),
        ("CREATE TABLE t (a INT, b VARCHAR, c INT)", r"t\.c: declared in schema.sql, but not in t.csv"),
        ("CREATE TABLE t (a INT)", r"t\.b: in t.csv, but not in schema.sql"),
    ],
)
def test_files_and_schema_must_match(folder: Path, ddl: str, words: str) -> None:
    (folder / "schema.sql").write_text(ddl)
    with pytest.raises(SourceError, match=words):
        open_source(folder).schema()


def test_a_file_without_create_table_is_named(folder: Path) -> None:
    (folder / "u.csv").write_text("a\n1\n")
    (folder / "schema.sql").write_text("CREATE TABLE t (a INT, b VARCHAR)")
    with pytest.raises(SourceError, match=r"no CREATE TABLE in schema.sql for u\.csv"):
        open_source(folder).schema()


def test_two_files_for_a_table(folder: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), folder / "t.parquet")
    with pytest.raises(SourceError, match=r"t\.csv and t\.parquet are both table t"):
        open_source(folder)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", ""], "BIGINT"),
        (["1", "2.5"], "DOUBLE"),
        (["007", "1"], "VARCHAR"),
        (["+1"], "VARCHAR"),
        (["0", "0.5"], "DOUBLE"),
        (["true", "False"], "BOOLEAN"),
        (["2020-01-31"], "DATE"),
        (["2020-01-31 10:00:00", "2020-01-31"], "TIMESTAMP"),
        (["1", "x"], "VARCHAR"),
        (["", ""], "VARCHAR"),
        (['""', "1"], "VARCHAR"),
        ([], "VARCHAR"),
    ],
)
def test_types_of_a_csv_without_schema(tmp_path: Path, values: list[str], kind: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{v},x\n" for v in values))
    source = open_source(tmp_path)
    assert source.schema().table("t").column("a").type.sql == kind
    assert len(_all(source)["t"]) == len(values)


def test_types_of_a_parquet_without_schema(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1], pa.uint8()), "b": pa.array(["x"]).dictionary_encode(), "c.d": [True]})
    pq.write_table(table, tmp_path / "my table.parquet")
    found = open_source(tmp_path).schema().table("my table")
    assert [c.type.sql for c in found.columns] == ["UTINYINT", "VARCHAR", "BOOLEAN"]
    assert found.column("c.d").implied == Values(values=(False, True))
    assert _all(open_source(tmp_path)) == {"my table": [{"a": 1, "b": "x", "c.d": True}]}


def test_a_type_without_codec_is_other(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [{"x": 1}]}), tmp_path / "t.parquet")
    assert open_source(tmp_path).schema().table("t").column("a").type.kind is Kind.OTHER


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("1\nabc\n", "INTEGER", "'abc'"),
        ("1.5\n", "INTEGER", "'1.5'"),
        ("3000000000\n", "INTEGER", "'3000000000'"),
        ("1.005\n", "DECIMAL(5,2)", "'1.005'"),
        ("2020-02-30\n", "DATE", "'2020-02-30'"),
        ("2020-02-01 10:00:00\n", "DATE", "'2020-02-01 10:00:00'"),
        ("25:00:00\n", "TIME", "'25:00:00'"),
        ("maybe\n", "BOOLEAN", "'maybe'"),
        ("noon\n", "TIMESTAMP", "'noon'"),
        ("noon\n", "TIMESTAMPTZ", "'noon'"),
    ],
)
def test_a_csv_value_of_the_wrong_type_is_shown(tmp_path: Path, text: str, kind: str, shown: str) -> None:
    (tmp_path / "t.csv").write_text("a\n" + text)
    (tmp_path / "schema.sql").write_text(f"CREATE TABLE t (a {kind})")
    source = open_source(tmp_path)
    with pytest.raises(DataError) as error:
        list(source.read(source.schema().table("t")))
    assert str(error.value).startswith(f"t.a: {shown} is not a value of type {kind}")


def test_numbers_and_timestamps_are_not_cut_off(tmp_path: Path) -> None:
    table = pa.table({"flag": [1, 2], "day": pa.array([0, 1], pa.timestamp("s"))})
    pq.write_table(table, tmp_path / "t.parquet")
    for column in ("flag BOOLEAN, day TIMESTAMP", "flag INT, day DATE"):
        (tmp_path / "schema.sql").write_text(f"CREATE TABLE t ({column})")
        source = open_source(tmp_path)
        with pytest.raises(DataError, match=r"t\.(flag: 2|day: datetime.* 0, 0, 1\))"):
            list(source.read(source.schema().table("t")))


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n", "a,b\n\n"])
def test_a_csv_with_nothing_but_names_has_no_rows(folder: Path, content: str) -> None:
    (folder / "t.csv").write_text(content, newline="")
    (folder / "schema.sql").write_text("CREATE TABLE t (a INT, b VARCHAR)")
    with open_source(folder) as source:
        [table] = source.schema().tables
        assert source.rows(table.name) == 0
        assert sum(batch.num_rows for batch in source.read(table)) == 0


def test_a_ragged_row_is_refused(folder: Path) -> None:
    for text in ("a,b\n1,x\n2\n", "a,b\n1,x,y\n"):
        (folder / "t.csv").write_text(text)
        with pytest.raises(DataError, match=r"t: a row of t\.csv does not have the columns"):
            open_source(folder).schema()


def test_a_row_of_more_than_a_megabyte_is_named(folder: Path) -> None:
    (folder / "t.csv").write_text(f"a,b\n1,{'x' * 3_000_000}\n")
    with pytest.raises(DataError, match="longer than 1 MB"):
        open_source(folder).schema()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"a,a\n1,2\n", r"t\.a: .*two columns"), (b"a,\xff\n", "UTF-8")],
)
def test_a_csv_header_that_cannot_be_used(folder: Path, content: bytes, words: str) -> None:
    (folder / "t.csv").write_bytes(content)
    with pytest.raises(SourceError, match=words):
        open_source(folder).schema()


def test_a_csv_that_is_not_utf8_names_the_column(folder: Path) -> None:
    (folder / "t.csv").write_bytes(b"a,b\n1,\xff\xfe\n")
    with pytest.raises(DataError, match=r"t\.b: t\.csv is not valid UTF-8"):
        open_source(folder).schema()


def test_a_byte_order_mark_and_windows_lines(folder: Path) -> None:
    (folder / "t.csv").write_bytes(b'\xef\xbb\xbfa,"b\nc"\r\n1,x\r\n')
    assert _all(open_source(folder)) == {"t": [{"a": 1, "b\nc": "x"}]}


@pytest.mark.parametrize("keep", [0, 6, 200])
def test_a_damaged_parquet(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SourceError, match=r"t\.parquet: is not a readable Parquet file"):
        open_source(tmp_path).schema()


def test_damage_in_the_middle_of_a_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [f"row {i}" for i in range(5000)]}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[20:400] = b"\xff" * 380
    path.write_bytes(content)
    source = open_source(tmp_path)
    with pytest.raises(SourceError, match=r"t\.parquet: is damaged"):
        list(source.read(source.schema().table("t")))


def test_a_time_with_a_zone_asks_for_the_type_that_has_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n2013-01-01T10:00:00Z\n")
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (a TIMESTAMP)")
    with open_source(tmp_path) as source, pytest.raises(DataError, match="TIMESTAMPTZ holds a time with a zone"):
        list(source.read(source.schema().table("t")))
