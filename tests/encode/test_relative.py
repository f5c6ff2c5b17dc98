"""Differences and back: exact where every difference is a cell of its own, and total for whatever values there are."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.relative import SequenceCodec, differences, restored, sequence_order, step_of_codec
from privbench.schema.domain import Bins, Domain, Range, Values
from privbench.schema.types import SqlType, difference_type, parse_type

RNG = np.random.default_rng(0)
DAY = 86_400_000_000
TYPES = {
    "SMALLINT": (-(2**15), 2**15 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "DECIMAL(9,2)": (-(10**9) + 1, 10**9 - 1),
    "DATE": (-700_000, 2_900_000),
    "TIMESTAMP": (-62_000_000_000_000_000, 250_000_000_000_000_000),
    "TIME": (0, DAY - 1),
}


def typed(kind: SqlType, numbers: list[int | None]) -> pa.Array:
    if kind.scale:
        return _decimals(numbers, kind)
    whole = pa.array(numbers, pa.int64())
    return whole.cast(pa.int32()).cast(kind.arrow) if kind.sql == "DATE" else whole.cast(kind.arrow)


def _decimals(numbers: list[int | None], kind: SqlType) -> pa.Array:
    return pa.array([None if n is None else Decimal(n).scaleb(-kind.scale) for n in numbers], kind.arrow)


@st.composite
def columns(draw: st.DrawFn) -> tuple[SqlType, pa.Array, pa.Array]:
    """A type, values of it and bases, among them NULL and the ends of the type."""
    sql = draw(st.sampled_from(list(TYPES)))
    low, high = TYPES[sql]
    numbers = st.none() | st.integers(low, high) | st.sampled_from([low, high])
    pairs = draw(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
    kind = parse_type(sql)
    return kind, typed(kind, [a for a, _ in pairs]), typed(kind, [b for _, b in pairs])


@given(columns())
def test_bases_plus_differences_are_the_values(case: tuple[SqlType, pa.Array, pa.Array]) -> None:
    kind, values, bases = case
    back = restored(kind, differences(kind, values, kind, bases), kind, bases)
    assert back.type == kind.arrow
    if kind.sql != "BIGINT":  # whose differences may need more than 64 bits: those are held at the ends
        assert back.equals(values)
    assert back.is_null().equals(values.is_null())


@given(columns(), st.data())
def test_codes_of_small_differences_give_back_the_values(
    case: tuple[SqlType, pa.Array, pa.Array], data: st.DataObject
) -> None:
    kind, _, bases = case
    steps = data.draw(st.lists(st.none() | st.integers(-5, 9), min_size=len(bases), max_size=len(bases)))
    of = difference_type(kind)
    unit = {"TIMESTAMP": 1_000_000, "TIME": 1_000_000, "DECIMAL(9,2)": 100}.get(kind.sql, 1)
    made = pa.array([None if s is None else s * unit for s in steps], pa.int64())
    made = made if of.arrow == pa.int64() else _decimals(made.to_pylist(), of)
    values = restored(kind, made, kind, bases)
    domain: Domain = data.draw(st.sampled_from([Range(range=(-5, 9)), Values(values=tuple(range(-5, 10)))]))
    if kind.sql in ("TIMESTAMP", "TIME"):
        domain = Range(range=("-5s", "9s"), step="1s")
    elif kind.sql.startswith("DECIMAL") and isinstance(domain, Range):
        domain = Range(range=(-5, 9), step=1)
    codec = compile_codec("t.c", of, nullable=True, domain=domain)
    codes = codec.encode(differences(kind, values, kind, bases))
    again = restored(kind, codec.decode(codes, RNG, first_row=0), kind, bases, step=step_of_codec(codec))
    held = [a != b for a, b in zip(differences(kind, values, kind, bases).to_pylist(), made.to_pylist(), strict=True)]
    for was, now, at_the_end in zip(values.to_pylist(), again.to_pylist(), held, strict=True):
        assert at_the_end or was == now


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(-500, 500)), min_size=1))
def test_floats_come_back_on_their_grid(pairs: list[tuple[int, int]]) -> None:
    kind = parse_type("DOUBLE")
    bases = pa.array([base / 100 for base, _ in pairs])
    values = pa.array([(base + step) / 100 for base, step in pairs])
    codec = compile_codec("t.c", difference_type(kind), nullable=False, domain=Range(range=(-5, 5), step=0.01))
    assert step_of_codec(codec) == Fraction(1, 100)
    decoded = codec.decode(codec.encode(differences(kind, values, kind, bases)), RNG, first_row=0)
    assert restored(kind, decoded, kind, bases, step=Fraction(1, 100)).equals(values)


@pytest.mark.parametrize("sql", ["REAL", "DOUBLE"])
def test_awkward_floats_are_held_inside_the_type(sql: str) -> None:
    kind = parse_type(sql)
    awkward = [None, float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40]
    values = pa.array([a for a in awkward for _ in awkward], kind.arrow)
    bases = pa.array(awkward * len(awkward), kind.arrow)
    back = restored(kind, differences(kind, values, kind, bases), kind, bases, step=Fraction(1, 100))
    assert back.type == kind.arrow
    assert np.isfinite(back.drop_null().to_numpy()).all()


def test_dates_and_moments_are_compared_in_the_unit_of_the_column() -> None:
    date, moment, year = parse_type("DATE"), parse_type("TIMESTAMP"), parse_type("SMALLINT")
    moments = pa.array([DAY * 3 + 5, -1], pa.int64()).cast(moment.arrow)
    days = pa.array([5, 1], pa.int32()).cast(date.arrow)
    assert differences(date, days, moment, moments).to_pylist() == [2, 2]
    assert differences(moment, moments, date, days).to_pylist() == [-2 * DAY + 5, -DAY - 1]
    assert differences(year, pa.array([1971, 1969], pa.int16()), date, days).to_pylist() == [1, -1]
    assert restored(year, pa.array([1, -1]), moment, moments).to_pylist() == [1971, 1968]


def sequence(sql: str, first: Domain, steps: Domain, *, start: bool = False) -> SequenceCodec:
    kind = parse_type(sql)
    of = difference_type(kind)
    return SequenceCodec(
        where="t.c",
        type=kind,
        nullable=True,
        has_start=start,
        first=compile_codec("t.c", of if start else kind, nullable=False, domain=first),
        steps=compile_codec("t.c", of, nullable=False, domain=steps),
    )


@given(st.lists(st.tuples(st.integers(-1, 3), st.none() | st.integers(0, 40)), max_size=30), st.booleans())
def test_sequences_come_back(rows: list[tuple[int, int | None]], start: bool) -> None:
    owners = np.array([owner for owner, _ in rows], np.int64)
    values = pa.array([value for _, value in rows], pa.int16())
    order = sequence_order(parse_type("SMALLINT"), values, owners)
    assert (owners[order] == owners).all()
    runs = np.argsort(owners[order], kind="stable")
    owners, values = owners[order][runs], values.take(pa.array(order[runs], pa.int64()))
    codec = sequence("SMALLINT", Range(range=(-9, 40)), Range(range=(0, 40)), start=start)
    kind, bases = parse_type("INTEGER"), pa.array([9] * len(rows), pa.int32())
    away = differences(parse_type("SMALLINT"), values, kind, bases) if start else None
    codes = codec.encode_sequences(values, owners, away)
    back = codec.decode_sequences(codes, owners, RNG, (kind, bases) if start else None)
    assert back.equals(values)


def test_codes_of_the_wrong_kind_are_drawn_again_and_sequences_stay_inside() -> None:
    codec = sequence("SMALLINT", Range(range=(2000, 2020)), Bins(bins=(0, 1, 2, 30)))
    rng = np.random.default_rng(3)
    codes = rng.integers(0, codec.size, 5000).astype(np.uint16)
    owners = np.repeat(np.arange(500), 10)
    values = codec.decode_sequences(codes, owners, rng)
    table = pa.table({"owner": owners, "value": values}).to_pandas().dropna()
    assert table.value.between(2000, 2020).all()
    assert (table.groupby("owner").value.diff().dropna() >= 0).all()


def test_nothing_is_decoded_from_nothing() -> None:
    codec = sequence("DATE", Range(range=("2020-01-01", "2020-02-01")), Range(range=(0, 3)))
    nothing: Any = pa.array([], pa.date32())
    codes = codec.encode_sequences(nothing, np.empty(0, np.int64))
    assert codec.decode_sequences(codes, np.empty(0, np.int64), RNG).equals(nothing)
    assert len(codec.labels()) == codec.size
