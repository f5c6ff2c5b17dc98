import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import SchemaError
from privbench.schema.domain import Values, implied_by_type
from privbench.schema.types import Kind, SqlType, enum_type, parse_type, type_of_arrow


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("int", "INTEGER"),
        ("INT(11)", "INTEGER"),
        ("int (11) unsigned", "UINTEGER"),
        ("bigint unsigned", "DECIMAL(38,0)"),
        ("UBIGINT", "DECIMAL(38,0)"),
        ("tinyint", "TINYINT"),
        ("double\n precision", "DOUBLE"),
        ("float4", "REAL"),
        ("numeric", "DECIMAL(18,3)"),
        ("numeric(10)", "DECIMAL(10,0)"),
        ("Decimal( 10 , 2 )", "DECIMAL(10,2)"),
        ("character varying(20)", "VARCHAR(20)"),
        ("bpchar", "VARCHAR"),
        ("varchar(0)", "VARCHAR(0)"),
        ("char", "CHAR(1)"),
        ("char(3)", "CHAR(3)"),
        ("longtext", "VARCHAR"),
        ("bool", "BOOLEAN"),
        ("timestamp(3) without time zone", "TIMESTAMP"),
        ("timestamp with time zone", "TIMESTAMPTZ"),
        ("TIMESTAMP_MS", "TIMESTAMP"),
        ("time(6) without time zone", "TIME"),
        (" date ", "DATE"),
    ],
)
def test_spellings(text: str, sql: str) -> None:
    assert parse_type(text).sql == sql


@pytest.mark.parametrize(
    "text", ["", "INT4MULTIRANGE", "THING[]", "INTEGER; DROP TABLE x", "DATE UNSIGNED", "ENUM()", "9INT"]
)
def test_what_has_no_codec_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        parse_type(text)


@pytest.mark.parametrize("text", ["DECIMAL(39,0)", "DECIMAL(0)", "DECIMAL(5,6)"])
def test_impossible_decimals_are_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"precision must be 1\.\.38"):
        parse_type(text)


@pytest.mark.parametrize("text", ["A" + " " * 50_000 + "!", "VARCHAR(" + "9" * 5_000 + ")", "X" * 100_000])
def test_a_strangers_type_costs_nothing(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type(text)
    assert len(str(caught.value)) < 500


def test_unsupported_type_names_the_way_out() -> None:
    with pytest.raises(SchemaError, match="drop: true"):
        parse_type("int4multirange")


@given(st.text(max_size=40))
def test_any_text_is_a_type_or_a_schema_error(text: str) -> None:
    try:
        found = parse_type(text)
    except SchemaError:
        return
    assert parse_type(found.sql) == found


@pytest.mark.parametrize(
    ("text", "sql", "syntax"),
    [
        ("uuid", "UUID", "uuid"),
        ("bytea", "BLOB", "bytes"),
        ("varbinary(16)", "VARBINARY(16)", "bytes"),
        ("bit varying(5)", "VARBIT(5)", "bits"),
        ("bit", "BIT(1)", "bits"),
        ("character varying(20)[]", "VARCHAR(20)[]", "text_array"),
        ("int4[][]", "INTEGER[]", "number_array"),
        ("boolean[]", "BOOLEAN[]", "empty_array"),
        ("enum ( 'a' ,'it''s' )", "ENUM('a', 'it''s')", None),
    ],
)
def test_types_that_travel_as_text(text: str, sql: str, syntax: str | None) -> None:
    found = parse_type(text)
    assert (found.sql, found.syntax, found.arrow) == (sql, syntax, pa.string())
    assert parse_type(found.sql) == found


def test_an_enum_lists_its_values_in_its_order_unless_they_are_too_long() -> None:
    assert implied_by_type(parse_type("ENUM('sad', 'ok')")) == Values(values=("sad", "ok"))
    assert implied_by_type(parse_type("BIT(2)")) == Values(values=("00", "01", "10", "11"))
    assert implied_by_type(parse_type("BIT(9)")) is None
    assert enum_type([f"label {n}" for n in range(200)]).sql == "VARCHAR"


ALL = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "REAL", "DOUBLE", "BOOLEAN"]
ALL += ["VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "DECIMAL(7,3)"]


@pytest.mark.parametrize("sql", ALL)
def test_arrow_round_trip(sql: str) -> None:
    assert type_of_arrow(parse_type(sql).arrow) == parse_type(sql)


@pytest.mark.parametrize("sql", ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"])
def test_bounds_are_those_of_the_arrow_type(sql: str) -> None:
    kind = parse_type(sql)
    low, high = kind.bounds
    assert pa.array([low, high], kind.arrow).to_pylist() == [low, high]
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        pa.array([high + 1], kind.arrow)


@pytest.mark.parametrize(
    ("arrow", "sql"),
    [
        (pa.uint64(), "DECIMAL(38,0)"),
        (pa.float16(), "REAL"),
        (pa.large_string(), "VARCHAR"),
        (pa.dictionary(pa.int8(), pa.string()), "VARCHAR"),
        (pa.null(), "VARCHAR"),
        (pa.date64(), "DATE"),
        (pa.time32("s"), "TIME"),
        (pa.timestamp("ns", tz="Europe/Paris"), "TIMESTAMPTZ"),
        (pa.uuid(), "UUID"),
        (pa.binary(), "BLOB"),
        (pa.duration("s"), "INTERVAL"),
        (pa.list_(pa.int32()), "INTEGER[]"),
    ],
)
def test_arrow_types_without_a_twin(arrow: pa.DataType, sql: str) -> None:
    assert type_of_arrow(arrow).sql == sql


@pytest.mark.parametrize("arrow", [pa.struct({"a": pa.int8()}), pa.decimal128(5, -2), pa.month_day_nano_interval()])
def test_arrow_types_without_a_codec(arrow: pa.DataType) -> None:
    assert type_of_arrow(arrow) == SqlType(kind=Kind.OTHER, sql=str(arrow))


def test_every_kind_has_an_arrow_type() -> None:
    for kind in Kind:
        assert isinstance(SqlType(kind=kind, sql="x", bits=32, precision=3).arrow, pa.DataType)
