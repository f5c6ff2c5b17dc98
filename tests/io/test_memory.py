"""Tables in memory: what pandas, Polars and Arrow give, what is refused, and what counts as guessed."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from privbench.errors import DataError, PrivBenchError, SourceError, SpecError
from privbench.io.memory import MemorySource, Tables
from privbench.io.open import open_source
from privbench.schema.tables import Column

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def _columns(table: object) -> dict[str, Column]:
    with open_source({"t": table}) as source:
        return {c.name: c for c in source.schema().table("t").columns}


def _types(table: object) -> dict[str, str]:
    return {name: column.type.sql for name, column in _columns(table).items()}


def _values(table: object, *, schema: str | None = None) -> dict[str, list[object]]:
    with MemorySource(Tables({"t": table}, schema=schema)) as source:
        return dict(pa.Table.from_batches(source.read(source.schema().tables[0])).to_pydict())


def _frame() -> "pd.DataFrame":
    return pd.DataFrame(
        {
            "kind": pd.Categorical(["x", "y", None]),
            "count": pd.array([1, None, 3], dtype="Int16"),
            "at": pd.to_datetime(["2020-01-01 12:00", None, "2020-06-01 00:00"]).tz_localize("Europe/Berlin"),
            "share": [0.5, float("nan"), 1.0],
            "name": ["a", None, "ü"],
        }
    )


def test_types_of_pandas() -> None:
    assert _types(_frame()) == {
        "kind": "VARCHAR",
        "count": "SMALLINT",
        "at": "TIMESTAMPTZ",
        "share": "DOUBLE",
        "name": "VARCHAR",
    }
    assert not any(column.guessed for column in _columns(_frame()).values())


def test_values_of_pandas() -> None:
    values = _values(_frame())
    assert values["kind"] == ["x", "y", None]
    assert values["count"] == [1, None, 3]
    assert values["at"][0] == dt.datetime(2020, 1, 1, 11, tzinfo=dt.UTC)
    assert values["share"] == [0.5, None, 1.0]
    assert values["name"] == ["a", None, "ü"]


def test_types_and_values_of_polars() -> None:
    frame = pl.DataFrame(
        {
            "kind": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "size": pl.Series(["s", "l", "s"], dtype=pl.Enum(["s", "l"])),
            "clock": [dt.time(1, 2), None, dt.time(3)],
            "price": pl.Series([Decimal("1.50"), None, Decimal("2.00")], dtype=pl.Decimal(9, 2)),
            "day": ["2020-01-31", None, "2021-01-31"],
        }
    )
    assert _types(frame)["price"] == "DECIMAL(9,2)"
    ddl = "CREATE TABLE t (kind VARCHAR, size VARCHAR, clock TIME, price DECIMAL(9, 2), day DATE)"
    assert _values(frame, schema=ddl) == {
        "kind": ["x", None, "y"],
        "size": ["s", "l", "s"],
        "clock": [dt.time(1, 2), None, dt.time(3)],
        "price": [Decimal("1.50"), None, Decimal("2.00")],
        "day": [dt.date(2020, 1, 31), None, dt.date(2021, 1, 31)],
    }


def test_numbers_with_gaps_become_integers_by_schema() -> None:
    frame = pd.DataFrame({"a": [1.0, float("nan"), 3.0]})
    assert _values(frame, schema="CREATE TABLE T (A INTEGER)") == {"A": [1, None, 3]}


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (pd.RangeIndex(2), ["a"]),
        (pd.Index([7, 9]), ["a"]),
        (pd.Index([7, 9], name="id"), ["id", "a"]),
        (pd.RangeIndex(5, 7, name="id"), ["id", "a"]),
        (pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["id", None]), ["id", "a"]),
    ],
)
def test_an_index_is_a_column_if_it_has_a_name(index: object, columns: list[str]) -> None:
    assert list(_types(pd.DataFrame({"a": [1, 2]}, index=index))) == columns


def test_the_values_of_an_index() -> None:
    assert _values(pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(5, 9, 2, name="id")))["id"] == [5, 7]


def test_what_pandas_once_said_of_other_rows_is_ignored() -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(2, name="id"))).slice(0, 1)
    assert _values(table) == {"a": [1]}


def test_types_of_python_objects_are_guessed() -> None:
    frame = pd.DataFrame(
        {
            "day": pd.Series([dt.date(2020, 1, 1), None], dtype=object),
            "price": pd.Series([Decimal("1.5"), None], dtype=object),
            "word": pd.Series(["x", None], dtype=object),
            "none": pd.Series([None, None], dtype=object),
            "days": pd.Categorical([dt.date(2020, 1, 1), None]),
            "numbers": pd.Categorical([1, 2]),
        }
    )
    assert {name: (c.type.sql, c.guessed) for name, c in _columns(frame).items()} == {
        "day": ("DATE", True),
        "price": ("DECIMAL(2,1)", True),
        "word": ("VARCHAR", False),
        "none": ("VARCHAR", False),
        "days": ("DATE", True),
        "numbers": ("BIGINT", False),
    }


def _reader() -> pa.RecordBatchReader:
    return pa.table({"a": [1]}).to_reader()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (_reader(), r"t: a pyarrow RecordBatchReader can be read only once.*read_all"),
        (pl.LazyFrame({"a": [1]}), r"t: is a polars LazyFrame.*`\.collect\(\)`"),
        ([{"a": 1}], "t: is a list, which gives no Arrow C stream"),
        (pd.Series([1, 2]), "t: cannot be read as a table"),
        (pd.DataFrame(), "t: the table has no column"),
        (pa.table([[1], [2]], names=["a", "a"]), r"t\.a: the table has two columns of that name"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"t\.a: the table has two columns of that name"),
        (pd.DataFrame({"a": [1]}, index=pd.RangeIndex(1, name="a")), r"t\.a: the table has two columns"),
        (pd.DataFrame([[1, 2]]), "t: the name of a column is 0, and names are texts"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([1], name=5)), "t: the name of a column is 5"),
        (pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), r"t\.a: holds Python objects"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_table(table: object, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        open_source({"t": table}).schema()


@pytest.mark.parametrize("values", [[1, "x"], ["x", 1], [dt.date(2020, 1, 1), "x"]])
def test_values_of_several_types_name_the_column(values: list[object]) -> None:
    frame = pd.DataFrame({"good": [1, 2], 'a "b" with type': pd.Series(values, dtype=object)})
    with pytest.raises(DataError, match=r't\.a "b" with type: its values are not of one type'):
        open_source({"t": frame}).schema()


@pytest.mark.parametrize(
    ("tables", "words"),
    [({}, "empty dict"), ({1: pa.table({"a": [1]})}, "table 1: the name"), ({"": pa.table({"a": [1]})}, "table ''")],
)
def test_what_is_no_dict_of_tables(tables: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        open_source(tables)


def test_what_is_no_source() -> None:
    with pytest.raises(SpecError, match="the source is a DataFrame: it must be a path, or a dict"):
        open_source(_frame())
    with pytest.raises(SpecError, match="the source is a list"):
        open_source([_frame()])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("CREATE TABLE t (a INT); CREATE TABLE u (a INT)", "u: `schema` declares it, but there is no such table"),
        ("CREATE TABLE u (a INT)", "u: `schema` declares it"),
        ("CREATE TABLE t (a INT, b INT)", r"t\.b: declared in `schema`, but not in the table"),
        ("CREATE TABLE t (b INT)", r"t\.b: declared in `schema`"),
        ("nowhere.sql", r"nowhere\.sql: cannot be read"),
        ("nowhere", "nowhere: cannot be read"),
    ],
)
def test_a_schema_must_match(ddl: str, words: str) -> None:
    with pytest.raises(PrivBenchError, match=words):
        open_source(Tables({"t": pa.table({"a": [1]})}, schema=ddl)).schema()


def test_every_table_must_be_declared() -> None:
    tables = Tables({"t": pa.table({"a": [1]}), "u": pa.table({"a": [1]})}, schema="CREATE TABLE t (a INT)")
    with pytest.raises(SourceError, match="u: no CREATE TABLE in `schema`"):
        open_source(tables).schema()


def test_a_schema_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my schema.sql"
    path.write_text("CREATE TABLE t (a SMALLINT PRIMARY KEY)")
    for given in (path, str(path)):
        with open_source(Tables({"t": pa.table({"a": [1]})}, schema=given)) as source:
            assert source.schema().table("t").primary_key == ("a",)


def test_a_table_is_taken_over_once() -> None:
    calls = []

    class Counted:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            calls.append(1)
            return pa.table({"a": [1, 2]}).__arrow_c_stream__()

    tables = Tables({"t": Counted()})
    for _ in range(2):
        with open_source(tables) as source:
            assert source.rows("t") == 2
            assert [b.num_rows for b in source.read(source.schema().table("t"))] == [2]
    assert len(calls) == 1


def test_other_libraries_that_give_a_stream() -> None:
    import duckdb

    with duckdb.connect() as connection:
        assert _values(connection.sql("SELECT 1 AS a UNION ALL SELECT 2")) == {"a": [1, 2]}
