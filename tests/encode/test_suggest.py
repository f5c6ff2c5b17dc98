"""Suggested domains: valid for any column, most values inside, grids and lists as a person would choose them."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.suggest import suggest_domain
from privbench.schema.domain import Bins, Domain, Range, Serial, Text, Values
from privbench.schema.types import Kind, SqlType, parse_type

TYPES = [
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UINTEGER",
    "REAL",
    "DOUBLE",
    "DECIMAL(4,2)",
    "DECIMAL(18,0)",
    "DECIMAL(38,0)",
    "DECIMAL(38,30)",
    "BOOLEAN",
    "VARCHAR",
    "VARCHAR(1)",
    "VARCHAR(10)",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
]


def suggested(name: str, values: list[object] | pa.Array, *, unique: bool = False) -> Domain:
    kind = parse_type(name)
    return suggest_domain("t.c", kind, pa.chunked_array([values], kind.arrow), unique=unique)


@st.composite
def columns(draw: st.DrawFn, kind: SqlType) -> pa.Array:
    """A column with repeats and NULLs, from anywhere in the type."""
    if kind.kind is Kind.TEXT:
        pool = draw(st.lists(st.text(max_size=30), min_size=1, max_size=20))
    elif kind.kind is Kind.FLOAT:
        pool = draw(st.lists(st.floats(width=32 if kind.bits == 32 else 64), min_size=1, max_size=20))
    elif kind.kind is Kind.DECIMAL:
        most = 10**kind.precision - 1
        pool = [Decimal(f"{n}E-{kind.scale}") for n in draw(st.lists(st.integers(-most, most), min_size=1))]
    elif kind.kind is Kind.BOOLEAN:
        pool = [False, True]
    else:
        width = {Kind.DATE: 32, Kind.INTEGER: kind.bits}.get(kind.kind, 64)
        ends = kind.bounds if kind.kind is Kind.INTEGER else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
        ends = (0, 86_400 * 10**6 - 1) if kind.kind is Kind.TIME else ends
        pool = draw(st.lists(st.integers(*ends), min_size=1, max_size=400))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    rows = [pool[i] for i in rng.integers(len(pool), size=draw(st.integers(0, 600)))]
    rows = [None if rng.random() < 0.1 else row for row in rows]
    if kind.kind is Kind.DATE:
        return pa.array(rows, pa.int32()).cast(kind.arrow)
    if kind.kind in (Kind.TIME, Kind.TIMESTAMP):
        return pa.array(rows, pa.int64()).view(kind.arrow)
    return pa.array(rows, kind.arrow)


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=12)
@given(data=st.data(), unique=st.booleans())
def test_any_column_gets_a_valid_domain(name, data, unique) -> None:
    kind = parse_type(name)
    column = data.draw(columns(kind))
    domain = suggest_domain("t.c", kind, pa.chunked_array([column]), unique=unique)
    codec = compile_codec("t.c", kind, nullable=True, domain=domain)
    codes = codec.encode(column)
    assert codec.size <= 258
    if not isinstance(domain, Serial | Text):
        decoded = codec.decode(codes, np.random.default_rng(0), first_row=0)
        assert codec.encode(decoded).tolist() == codes.tolist()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_column_without_values_gets_a_valid_domain(name, values) -> None:
    kind = parse_type(name)
    codec = compile_codec("t.c", kind, nullable=True, domain=suggested(name, values))
    assert codec.encode(pa.array(values, kind.arrow)).tolist() == [codec.null_code] * len(values)


@pytest.mark.parametrize("shape", ["lognormal", "normal", "uniform"])
@pytest.mark.parametrize("name", ["INTEGER", "DOUBLE", "REAL", "DECIMAL(18,2)", "TIMESTAMP"])
def test_wide_columns_are_cut_evenly_and_keep_their_values_inside(name, shape) -> None:
    kind = parse_type(name)
    numbers = getattr(np.random.default_rng(0), shape)(size=5000) * 10_000
    if kind.kind is Kind.TIMESTAMP:
        column = pa.array((numbers * 1e6).astype(np.int64)).cast(kind.arrow)
    elif kind.kind is Kind.DECIMAL:
        column = pa.array([Decimal(f"{n:.2f}") for n in numbers], kind.arrow)
    else:
        column = pa.array(numbers).cast(kind.arrow, safe=False)
    domain = suggested(name, column)
    assert isinstance(domain, Bins)
    codec = compile_codec("t.c", kind, nullable=False, domain=domain)
    counts = np.bincount(codec.encode(column), minlength=codec.size)
    assert 60 <= codec.size <= 128
    assert counts.max() < 3 * 5000 / 64
    low, high = pa.array([str(domain.bins[0]), str(domain.bins[-1])]).cast(kind.arrow)
    inside = pc.and_(pc.greater_equal(column, low), pc.less(column, high))
    assert pc.mean(inside).as_py() > 0.99


def test_narrow_columns_are_listed_value_by_value() -> None:
    assert suggested("INTEGER", [7, 3, None, 250]) == Range(range=(3, 250))
    assert suggested("INTEGER", [0, 10, 40, 20]) == Range(range=(0, 40), step=10)
    assert suggested("DECIMAL(9,2)", [Decimal("0.99"), Decimal("1.01")]) == Range(range=("0.99", "1.01"))
    assert suggested("DOUBLE", [0.1, 0.25, float("nan"), float("inf")]) == Range(range=(0.1, 0.25), step=0.01)
    assert suggested("DATE", [date(2020, 1, 1), date(2020, 3, 1)]) == Range(range=("2020-01-01", "2020-03-01"))


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(86_400, "1d"), (3600, "1h"), (900, "15min"), (60, "1min"), (1, "1s"), (0.001, "1ms"), (0.000001, None)],
)
def test_timestamps_lie_on_the_coarsest_grid(seconds, step) -> None:
    times = (np.arange(1, 5000) * round(seconds * 1e6)).astype(np.int64)
    domain = suggested("TIMESTAMP", pa.array(times).cast(pa.timestamp("us")))
    assert isinstance(domain, Bins)
    assert domain.step == step


@pytest.mark.parametrize(("digits", "step"), [(0, 1), (1, 0.1), (2, 0.01), (3, 0.001)])
@pytest.mark.parametrize("name", ["REAL", "DOUBLE"])
def test_floats_with_few_decimals_keep_them(name, digits, step) -> None:
    numbers = np.random.default_rng(0).uniform(-300, 300, 5000).round(digits)
    domain = suggested(name, pa.array(numbers).cast(parse_type(name).arrow))
    assert isinstance(domain, Bins)
    assert domain.step == step


def test_an_outlier_does_not_spoil_the_grid_of_the_others() -> None:
    numbers = np.append(np.random.default_rng(0).normal(size=5000), 1e300)
    domain = suggested("DOUBLE", pa.array(numbers))
    assert isinstance(domain, Bins)
    assert domain.step == 1e-5


def test_frequent_values_of_a_wide_column_are_heavy_hitters() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(5000) < 0.6, 0, rng.integers(1, 10**6, 5000))
    values[:400] = 99_999
    domain = suggested("INTEGER", pa.array(values, pa.int32()))
    assert isinstance(domain, Bins)
    assert domain.heavy_hitters == (0, 99_999)


def test_values_that_are_frequent_among_the_rest_are_spikes_too() -> None:
    rest = np.repeat(np.arange(1, 301) * 977, np.where(np.arange(300) < 5, 60, 5))
    domain = suggested("INTEGER", pa.array(np.append(rest, np.zeros(50_000)).astype(np.int32)))
    assert isinstance(domain, Bins)
    assert domain.heavy_hitters == (0, 977, 1954, 2931, 3908, 4885)


def test_a_wide_column_of_few_values_is_a_list() -> None:
    rates = [Decimal("0.99"), Decimal("2.99"), Decimal("4.99")] * 100
    assert suggested("DECIMAL(4,2)", rates) == Values(values=("0.99", "2.99", "4.99"))


def test_unique_columns_are_numbered_or_made_up() -> None:
    assert suggested("INTEGER", [5, 6], unique=True) == Serial()
    assert suggested("TIMESTAMP", [datetime(2020, 1, 1)], unique=True) == Serial()
    assert suggested("VARCHAR", ["abc", "abcdefgh"], unique=True) == Text(text=(3, 4, 5, 6, 7, 8, 9))
    assert suggested("VARCHAR", ["abc", "abcdefgh" * 2], unique=True) == Text(text=(3, 4, 6, 8, 12, 16, 24))


def test_text_is_listed_when_short_lists_repeat_and_made_up_otherwise() -> None:
    assert suggested("VARCHAR", ["b", "a", "a", "b"] * 4) == Values(values=("a", "b"))
    assert suggested("VARCHAR(1)", ["b", "long", "b", "b"] * 4) == Values(values=("b",))
    names = [f"name{i}" for i in range(1234)]
    assert suggested("VARCHAR(7)", names) == Text(text=(5, 6, 7, 8), distinct=1200)
    column = pa.chunked_array([["b", "a", "a", "b"] * 40])
    few = suggest_domain("t.c", parse_type("VARCHAR"), column, unique=False, entities=15)
    assert few == Text(text=(1, 2), distinct=2, skew=0), "a list must not show what single entities hold"
    assert suggested("BOOLEAN", [True]) == Values(values=(False, True))


def test_few_different_numbers_among_many_possible_are_kept_in_number_and_repetition() -> None:
    rng = np.random.default_rng(0)
    pool = rng.integers(100_000, 30_000_000, 700)
    column = pa.array(pool[rng.zipf(1.3, 20_000) % 700], pa.int32())
    domain = suggested("INTEGER", column)
    assert isinstance(domain, Bins)
    assert domain.distinct == pytest.approx(pc.count_distinct(column).as_py(), rel=0.05)
    codec = compile_codec("t.c", parse_type("INTEGER"), nullable=False, domain=domain)
    made = codec.decode(codec.encode(column), rng, first_row=0)
    assert pc.count_distinct(made).as_py() == pytest.approx(pc.count_distinct(column).as_py(), rel=0.15)
    anywhere = suggested("INTEGER", pa.array(rng.integers(0, 10**7, 5000), pa.int32()))
    assert isinstance(anywhere, Bins)
    assert anywhere.distinct is None


def test_frequent_strings_are_kept_beside_other_if_they_cover_enough() -> None:
    frequent = [f"Town{i:03d}" for i in range(300) for _ in range(20)]
    rare = [f"Hamlet {i} of the hills" for i in range(400)]
    domain = suggested("VARCHAR", frequent + rare)
    assert isinstance(domain, Values)
    assert len(domain.values) == 256
    assert domain.other
    assert domain.others == 440
    assert not {*domain.values} & {*rare}, "what few have is not listed"
    column = pa.chunked_array([frequent + rare])
    few = suggest_domain("t.c", parse_type("VARCHAR"), column, unique=False, entities=40)
    assert isinstance(few, Text), "rows of few entities do not make a value frequent"


def test_shapes_are_seen_in_values_and_a_wrong_guess_is_dropped() -> None:
    def shape(values: list[str], guess: str | None = None) -> str | None:
        column = pa.chunked_array([values])
        domain = suggest_domain("t.c", parse_type("VARCHAR(40)"), column, unique=True, guess=guess)
        assert isinstance(domain, Text)
        return domain.shape

    assert shape([f"{chr(65 + i % 26)}Q-{i:04d}" for i in range(300)]) == "AQ-9999"
    assert shape([f"u{i}@mail.invalid" for i in range(30)]) == "email"
    assert shape([f"{i} of them" for i in range(30)], guess="email") is None
    assert shape([f"Jo{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(60)], guess="last_name") == "last_name"
    assert shape([f"A{i}" for i in range(10)]) is None, "too few codes for more rows"
