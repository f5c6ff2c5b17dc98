"""Every type with every kind of domain: total, typed, and back in the same cell; cells against a plain oracle."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.interval import IntervalCodec
from privbench.errors import SchemaError, SpecError
from privbench.schema.domain import Bins, Domain, Range, Serial, Text, Values
from privbench.schema.types import Kind, SqlType, parse_type

BINS: dict[str, Domain] = {
    "TINYINT": Bins(bins=(-1000, -5, 0, 3, 100, 1000), heavy_hitters=(0, 7, 127)),
    "SMALLINT": Bins(bins=(0, 10, 100, 10**6), heavy_hitters=(50,), step=2),
    "UTINYINT": Bins(bins=(0, 128, 256)),
    "INTEGER": Bins(bins=(-50, -10, 1, 1000, 10**6), heavy_hitters=(-10, 99)),
    "UINTEGER": Bins(bins=(0, 10, 2**32)),
    "BIGINT": Bins(bins=(-(2**63), -1, 1, 2**62, 2**63), heavy_hitters=(5,)),
    "REAL": Bins(bins=(-1, 0.5, 0.7, 80.3), heavy_hitters=(0.6,), step=0.1),
    "DOUBLE": Bins(bins=(-1e6, 0, 0.1, 1, 1e6), heavy_hitters=(0.29,)),
    "DECIMAL(5,2)": Bins(bins=(-9999, 0, "0.05", 10, 99999), heavy_hitters=("0.29",)),
    "DECIMAL(38,10)": Bins(bins=(0, 10**20, 10**27), step=10**10),
    "DECIMAL(38,0)": Bins(bins=(-(10**18), 0, 10**18)),
    "DATE": Bins(bins=("1900-01-01", "1999-12-31", "2000-01-07", "2030-01-01"), heavy_hitters=("2000-01-01",)),
    "TIME": Bins(bins=("00:00:00", "08:00:00", "24:00:00"), step="15min"),
    "TIMESTAMP": Bins(
        bins=("0001-01-01", "2000-01-01", "2020-02-01", "9999-12-31"), heavy_hitters=("2010-05-05",), step="1d"
    ),
    "TIMESTAMPTZ": Bins(bins=("1999-12-31 22:30:00", "2000-01-01 00:30:00", "2001-01-01 00:30:00+01:00"), step="1h"),
}
POOLS: dict[str, Domain] = {
    "INTEGER": Bins(bins=(-50, -10, 1, 1000, 10**6), heavy_hitters=(-10, 99), distinct=60),
    "BIGINT": Bins(bins=(-(2**63), -1, 1, 2**62, 2**63), heavy_hitters=(5,), distinct=7, skew=0),
    "DOUBLE": Bins(bins=(-1e6, 0, 0.1, 1, 1e6), heavy_hitters=(0.29,), distinct=100),
    "DECIMAL(9,2)": Bins(bins=(0, "0.05", 10, 99999), distinct=500, skew=0.7),
    "DATE": Bins(bins=("1900-01-01", "1999-12-31", "2030-01-01"), distinct=50, skew=2),
    "TIMESTAMP": Bins(bins=("2000-01-01", "2020-02-01", "2021-12-31"), step="1s", distinct=50),
    "VARCHAR": Values(values=("b", "a"), other=True, others=300, skew=0.5),
    "VARCHAR(30)": Values(values=("Rome", "Paris"), other=True, others=500, shape="city"),
}
RANGES: dict[str, Domain] = {
    "TINYINT": Range(range=(-128, 127)),
    "SMALLINT": Range(range=(-5, 25), step=5),
    "BIGINT": Range(range=(2**63 - 9, 2**63 - 1)),
    "DOUBLE": Range(range=(0.5, 3.5), step=0.1),
    "REAL": Range(range=(0, 9)),
    "DECIMAL(5,2)": Range(range=("-0.50", "0.50")),
    "DATE": Range(range=("2020-01-01", "2020-12-30"), step="7d"),
    "TIME": Range(range=("00:00:00", "23:00:00"), step="1h"),
    "TIMESTAMP": Range(range=("2020-01-01 00:00:00", "2020-01-02 00:00:00"), step=1800),
}
VALUES: dict[str, Domain] = {
    "INTEGER": Values(values=(5, -3, 1000)),
    "BIGINT": Values(values=(-(2**63), 0, 2**63 - 1)),
    "DOUBLE": Values(values=(1e300, -1e300, 0.1, 5e-324, 0)),
    "REAL": Values(values=(0.1, 0.2, 3e38)),
    "DECIMAL(5,2)": Values(values=("1.5", "-2", "0.99")),
    "DECIMAL(38,0)": Values(values=(10**37, 10**37 + 1, -(10**37))),
    "DATE": Values(values=("2020-02-29", "1970-01-01")),
    "TIME": Values(values=("12:00:00", "23:59:59.999999")),
    "TIMESTAMP": Values(values=("2020-01-01 10:00:00", "1969-12-31 23:59:59")),
    "BOOLEAN": Values(values=(False, True)),
    "VARCHAR": Values(values=("b", "a", "", "ü\N{SNOWMAN}"), other=True),
    "VARCHAR(1)": Values(values=("x", "0"), other=True),
    "CHAR(2)": Values(values=("NY", "CA")),
}
TEXTS: dict[str, Domain] = {
    "VARCHAR": Text(text=(0, 1, 4, 16, 64), distinct=1000),
    "VARCHAR(20)": Text(text=(2, 8, 20), distinct=50),
    "VARCHAR(90)": Text(text=(1, 30, 80)),
}
SERIALS: dict[str, Domain] = {name: Serial() for name in (*BINS, "VARCHAR")}
CASES = [(name, domain) for table in (BINS, POOLS, RANGES, VALUES, TEXTS, SERIALS) for name, domain in table.items()]


def compiled(name: str, domain: Domain, *, nullable: bool = True) -> Codec:
    return compile_codec("t.c", parse_type(name), nullable=nullable, domain=domain)


def values_of(kind: SqlType) -> st.SearchStrategy[Any]:
    """Any value the type can hold; dates and times as the numbers behind them, far beyond the year 9999."""
    match kind.kind:
        case Kind.INTEGER:
            return st.integers(*kind.bounds) | st.integers(max(kind.bounds[0], -120), min(kind.bounds[1], 120))
        case Kind.FLOAT:
            return st.floats(width=32 if kind.bits == 32 else 64) | st.integers(-200, 2000).map(lambda n: n / 100)
        case Kind.DECIMAL:
            most = 10**kind.precision - 1
            numbers = st.integers(-most, most) | st.integers(max(-most, -500), min(most, 500))
            return numbers.map(lambda n: Decimal(f"{n}E-{kind.scale}"))
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.TEXT:
            return st.text(max_size=kind.length or 80) | st.sampled_from(["a", "b", "", "x", "\\ud800", "NY"])
        case Kind.DATE:
            return st.integers(-(2**31), 2**31 - 1) | st.integers(10_000, 20_000)
        case Kind.TIME:
            return st.integers(0, 86_400 * 10**6 - 1)
        case Kind.TIMESTAMP:
            return st.integers(-(2**63), 2**63 - 1) | st.integers(9 * 10**14, 16 * 10**14)


def array_of(kind: SqlType, values: list[Any]) -> pa.Array:
    """The values as the Arrow array that a source would deliver."""
    if kind.kind is Kind.DATE:
        return pa.array(values, pa.int32()).cast(kind.arrow)
    if kind.kind in (Kind.TIME, Kind.TIMESTAMP):
        return pa.array(values, pa.int64()).view(kind.arrow)
    return pa.array(values, kind.arrow)


@pytest.mark.parametrize(("name", "domain"), CASES)
@settings(max_examples=15)
@given(data=st.data(), seed=st.integers(0, 2**32), first_row=st.integers(0, 50))
def test_encode_is_total_and_decode_stays_in_the_cell(name, domain, data, seed, first_row) -> None:
    kind = parse_type(name)
    array = array_of(kind, data.draw(st.lists(st.none() | values_of(kind), max_size=30)))
    codec = compiled(name, domain)
    codes = codec.encode(array)
    assert codes.dtype == (np.uint8 if codec.size <= 256 else np.uint16)
    assert (codes < codec.size).all()
    assert ((codes == codec.null_code) == array.is_null().to_numpy(zero_copy_only=False)).all()
    decoded = codec.decode(codes, np.random.default_rng(seed), first_row=first_row)
    decoded.validate(full=True)
    assert decoded.type == kind.arrow
    assert codec.encode(decoded).tolist() == codes.tolist()
    half = len(array) // 2
    assert codec.encode(pa.chunked_array([array[:half], array[half:]], kind.arrow)).tolist() == codes.tolist()


@pytest.mark.parametrize(("name", "domain"), CASES)
def test_every_code_decodes_into_itself_and_has_a_label(name, domain) -> None:
    codec = compiled(name, domain)
    codes = np.repeat(np.arange(codec.size), 50).astype(np.uint16)
    assert codec.encode(codec.decode(codes, np.random.default_rng(1), first_row=0)).tolist() == codes.tolist()
    labels = codec.labels()
    assert len(labels) == codec.size == len(set(labels))
    assert labels[-1] == "NULL"


@pytest.mark.parametrize(("name", "domain"), CASES)
def test_null_in_a_column_without_null_falls_in_other_or_the_first_cell(name, domain) -> None:
    codec = compiled(name, domain, nullable=False)
    array = array_of(parse_type(name), [None])
    assert codec.null_code is None
    assert codec.encode(array).tolist() == [codec.other_code or 0]
    assert codec.decode(codec.encode(array), np.random.default_rng(0), first_row=0).null_count == 0


def declared(kind: SqlType, value: Any) -> Fraction:
    """The number behind a declared number or date, read by Arrow instead of by us."""
    if kind.kind in (Kind.INTEGER, Kind.DECIMAL):
        return Fraction(str(value))
    return Fraction(pa.scalar(value).cast(kind.arrow).cast(pa.int32()).as_py())


@pytest.mark.parametrize("name", [n for n in BINS if parse_type(n).kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DATE)])
@settings(max_examples=50)
@given(data=st.data())
def test_bins_hold_what_lies_between_their_edges(name, data) -> None:
    kind, domain = parse_type(name), BINS[name]
    assert isinstance(domain, Bins)
    value = data.draw(values_of(kind))
    step = Fraction(str(domain.step or (1 if kind.kind is not Kind.DECIMAL else Decimal(1).scaleb(-kind.scale))))
    edges = [declared(kind, e) for e in domain.bins]
    heavy_hitters = [declared(kind, s) for s in domain.heavy_hitters]
    end = edges[-1] if kind.kind is not Kind.INTEGER else min(edges[-1], kind.bounds[1] + 1)
    starts = sorted({*edges[:-1], *heavy_hitters, *(s + step for s in heavy_hitters if s + step < end)})
    expected = sum(Fraction(value) >= start for start in starts[1:])
    assert compiled(name, domain).encode(array_of(kind, [value])).tolist() == [expected]


@pytest.mark.parametrize("name", ["INTEGER", "BIGINT", "DECIMAL(5,2)", "DATE"])
@settings(max_examples=50)
@given(data=st.data())
def test_unlisted_numbers_go_to_the_nearest_listed_one(name, data) -> None:
    kind, domain = parse_type(name), VALUES[name]
    assert isinstance(domain, Values)
    value = Fraction(data.draw(values_of(kind)))
    listed = sorted(declared(kind, v) for v in domain.values)
    raw = int(value) if kind.kind is not Kind.DECIMAL else Decimal(value.numerator) / Decimal(value.denominator)
    code = compiled(name, domain).encode(array_of(kind, [raw]))[0]
    assert abs(listed[code] - value) == min(abs(p - value) for p in listed)


def test_decimals_of_38_digits_are_told_apart() -> None:
    codec = compiled("DECIMAL(38,0)", VALUES["DECIMAL(38,0)"])
    numbers = [-(10**37), 10**37, 10**37 + 1, 10**37 + 2, 10**38 - 1, 1 - 10**38]
    assert codec.encode(pa.array(map(Decimal, numbers), pa.decimal128(38, 0))).tolist()[:3] == [0, 1, 2]
    assert codec.encode(pa.array(map(Decimal, numbers), pa.decimal128(38, 0))).tolist()[4:] == [2, 0]


def test_nan_and_infinity_have_a_place_in_order() -> None:
    array = pa.array([float("nan"), float("inf"), float("-inf"), -0.0])
    for domain in (BINS["DOUBLE"], VALUES["DOUBLE"], RANGES["DOUBLE"]):
        codec = compiled("DOUBLE", domain, nullable=False)
        top = codec.size - 1
        assert codec.encode(array).tolist()[:3] == [top, top, 0]
    assert compiled("DOUBLE", BINS["DOUBLE"]).encode(array).tolist()[3] == 1


def test_open_tails_decode_inside_the_type() -> None:
    codec = compiled("SMALLINT", Bins(bins=(-(10**6), -30000, 30000, 10**6)))
    decoded = codec.decode(np.array([0, 2] * 500, np.uint8), np.random.default_rng(0), first_row=0).to_numpy()
    assert -32768 <= decoded.min() < -30000
    assert 30000 <= decoded.max() <= 32767


def test_wide_positive_cells_are_log_uniform_and_others_uniform() -> None:
    codec = compiled("INTEGER", Bins(bins=(0, 1000, 1000000)))
    rng = np.random.default_rng(0)
    uniform = codec.decode(np.zeros(20000, np.uint8), rng, first_row=0).to_numpy()
    log = codec.decode(np.ones(20000, np.uint8), rng, first_row=0).to_numpy()
    assert abs(np.median(uniform) - 500) < 20
    assert abs(np.median(np.log10(log)) - 4.5) < 0.05


def test_cents_come_back_as_the_nearest_double() -> None:
    codec = compiled("DOUBLE", Range(range=(0, 10), step=0.01))
    cents = pa.array([n / 100 for n in range(1001)])
    assert codec.decode(codec.encode(cents), np.random.default_rng(0), first_row=0).equals(cents)


def test_serial_numbers_rows_and_refuses_a_type_that_is_too_narrow() -> None:
    codec = compiled("TINYINT", Serial())
    codes = np.zeros(100, np.uint8)
    rng = np.random.default_rng(0)
    assert codec.decode(codes, rng, first_row=27).to_pylist() == list(range(28, 128))
    with pytest.raises(SchemaError, match=r"t\.c: TINYINT has 127 serial values"):
        codec.decode(codes, rng, first_row=28)


@pytest.mark.parametrize(
    ("name", "domain", "said"),
    [
        ("INTEGER", Bins(bins=(3, 2)), "must ascend"),
        ("INTEGER", Bins(bins=(1, 2.5)), "not on the grid"),
        ("INTEGER", Bins(bins=(0, "x")), "does not fit INTEGER"),
        ("INTEGER", Bins(bins=(0, True)), "does not fit INTEGER"),
        ("INTEGER", Bins(bins=(0, "1e999999999")), "does not fit INTEGER"),
        ("INTEGER", Bins(bins=(0, 10), step=0), "must be a positive"),
        ("INTEGER", Bins(bins=(0, 10), step=0.5), "must be a positive"),
        ("INTEGER", Bins(bins=(0, 10), heavy_hitters=(10,)), "outside the edges"),
        ("INTEGER", Bins(bins=tuple(range(5000))), "4999 cells"),
        ("SMALLINT", Bins(bins=(0, 40000, 50000)), "only the outer two"),
        ("SMALLINT", Range(range=(0, 40000)), "does not fit SMALLINT"),
        ("INTEGER", Range(range=(9, 0)), "backwards"),
        ("INTEGER", Range(range=(0, 9), step=2), "not on the grid"),
        ("BIGINT", Range(range=(0, 10**12)), "at most 4096"),
        ("DOUBLE", Bins(bins=(0, 1), step=1e-310), "too fine"),
        ("DOUBLE", Range(range=(0, "inf")), "does not fit DOUBLE"),
        ("DATE", Range(range=("2020-01-01", "2020-13-01")), "a date like"),
        ("DATE", Range(range=(2020, 2021)), "a date like"),
        ("TIMESTAMP", Bins(bins=("2020-01-01", "2021-01-01"), step="1month"), "a duration like"),
        ("DECIMAL(5,2)", Values(values=("0.001",)), "does not fit DECIMAL"),
        ("DECIMAL(5,2)", Values(values=(1000,)), "does not fit DECIMAL"),
        ("TINYINT", Values(values=(1, 300)), "does not fit TINYINT"),
        ("INTEGER", Values(values=(1, "1.0")), "the same INTEGER"),
        ("REAL", Values(values=(0.1, 0.10000000001)), "the same REAL"),
        ("INTEGER", Values(values=(1,), other=True), "`other` is for text"),
        ("BOOLEAN", Values(values=(0, 1)), "true or false"),
        ("BOOLEAN", Range(range=(0, 1)), "does not suit BOOLEAN"),
        ("BOOLEAN", Serial(), "cannot be serial"),
        ("VARCHAR", Values(values=(1,)), "write it in quotes"),
        ("VARCHAR(2)", Values(values=("abc",)), "longer than VARCHAR"),
        ("CHAR", Values(values=tuple("0123456789abcdefghijklmnopqrstuvwxyz"), other=True), "leave `other` out"),
        ("VARCHAR", Range(range=("a", "b")), "does not suit VARCHAR"),
        ("VARCHAR", Text(text=(8, 4)), "must ascend"),
        ("VARCHAR(5)", Text(text=(0, 6, 8)), "more than VARCHAR"),
        ("INTEGER", Text(text=(0, 8)), "does not suit INTEGER"),
        ("CHAR(5)", Text(text=(5, 6), shape="email"), "no string of the shape 'email' fits CHAR"),
        ("VARCHAR(3)", Text(text=(0, 3), shape="AA-99"), "no string of the shape 'AA-99' fits VARCHAR"),
        ("VARCHAR", Text(text=(0, 8), shape="emial"), "'emial' is no shape. Write one of email, phone"),
        ("VARCHAR", Text(text=(0, 8), shape="A9", distinct=261), "only 260 strings of the shape 'A9'"),
        ("CHAR", Values(values=("a",), other=True, others=500), "`others` is 500, but only"),
        ("VARCHAR", Values(values=("a",), other=True, others=500, shape="99"), "`others` is 500, but only 100"),
    ],
)
def test_a_wrong_declaration_says_where_and_what(name, domain, said) -> None:
    with pytest.raises(SpecError, match=said) as error:
        compiled(name, domain)
    assert str(error.value).startswith("t.c: ")


@pytest.mark.parametrize(
    ("kind", "ends", "step", "second", "cells"),
    [
        ("DATE", ("2008-01-15", "2020-12-31"), None, "2008-02-01 .. 2008-02-29", 156),
        ("DATE", ("1980-01-01", "2020-12-31"), None, "1980-04-01 .. 1980-06-30", 164),
        ("DATE", ("0001-01-01", "9999-12-31"), None, "0100-01-01 .. 0199-12-31", 100),
        (
            "TIMESTAMP",
            ("2020-01-01", "2020-08-31"),
            "1h",
            "2020-01-02 00:00:00.000000 .. 2020-01-02 23:00:00.000000",
            244,
        ),
        ("TIMESTAMP", ("1900-01-01", "2020-12-31"), None, None, 121),
        ("TIMESTAMP WITH TIME ZONE", ("2020-01-01 00:00:30", "2020-01-31 00:00:30"), "1min", None, 121),
        ("TIMESTAMP", ("0001-01-01", "9999-12-31"), None, None, 100),
        ("TIME", ("00:00:00", "23:59:59"), "1s", "00:15:00.000000 .. 00:29:59.000000", 96),
    ],
)
def test_a_range_of_times_may_have_any_length(
    kind: str, ends: tuple[str, str], step: str | None, second: str | None, cells: int
) -> None:
    codec = compile_codec("t.x", parse_type(kind), nullable=False, domain=Range(range=ends, step=step))
    assert isinstance(codec, IntervalCodec)
    assert codec.size == cells
    assert second in (None, codec.labels()[1])
    codes = np.arange(cells, dtype=np.uint16).repeat(50)
    made = codec.decode(codes, np.random.default_rng(0), first_row=0)
    np.testing.assert_array_equal(codec.encode(made), codes)
    outer = (codec.grid.tick("", ends[0]), codec.grid.tick("", ends[1]))
    ticks = codec.grid.ticks(made)
    assert outer[0] <= ticks.min()
    assert ticks.max() <= outer[1]
    assert (codec.first[0], codec.last[-1]) == outer
    far = codec.encode(pa.array([dt.time.min if kind == "TIME" else dt.datetime.min], made.type))
    assert far.tolist() == [0]
