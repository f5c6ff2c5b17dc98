"""Grids: exact numbers behind declared values, decimals of any width, ticks there and back."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.grid import Grid, unscaled
from privbench.encode.scalar import bounds_of, number_of, scalar_of, step_of, step_scalar
from privbench.schema.types import parse_type

INT64 = 2**63 - 1


@settings(max_examples=200)
@given(number=st.integers(1 - 10**38, 10**38 - 1) | st.integers(-(2**65), 2**65), drop=st.integers(0, 30))
def test_wide_decimals_are_divided_exactly_and_held_at_the_ends(number, drop) -> None:
    array = pa.array([Decimal(number), None, Decimal(number)], pa.decimal128(38, 0))[1:]
    expected = min(max(number // 10**drop, -INT64 - 1), INT64)
    assert unscaled(array, drop=drop)[1] == expected


@pytest.mark.parametrize("name", ["SMALLINT", "DECIMAL(9,4)", "DECIMAL(38,0)", "DATE", "TIME", "TIMESTAMP"])
@settings(max_examples=50)
@given(data=st.data())
def test_scalars_are_read_as_they_were_written(name, data) -> None:
    kind = parse_type(name)
    number = Fraction(data.draw(st.integers(*bounds_of(kind))))
    assert number_of("t.c", kind, scalar_of(kind, number)) == number
    step = Fraction(data.draw(st.integers(1, 10**6)))
    assert step_of("t.c", kind, step_scalar(kind, step)) == step


@pytest.mark.parametrize(
    ("name", "step", "anchor"),
    [
        ("TINYINT", "1", "0"),
        ("BIGINT", "1", "0"),
        ("BIGINT", "10", "3"),
        ("REAL", "1/10", "0"),
        ("DOUBLE", "1/1000", "1/2000"),
        ("DOUBLE", "1000000", "0"),
        ("DECIMAL(38,5)", "300000000000000000000", "0"),
        ("DATE", "7", "4"),
        ("TIMESTAMP", "3600000000", "1800000000"),
    ],
)
@settings(max_examples=50)
@given(data=st.data())
def test_ticks_come_back(name, step, anchor, data) -> None:
    grid = Grid(type=parse_type(name), step=Fraction(step), anchor=Fraction(anchor))
    ticks = data.draw(st.lists(st.integers(grid.low, grid.high) | st.sampled_from([grid.low, grid.high]), min_size=1))
    values = grid.values(np.array(ticks, np.int64), nulls=np.zeros(len(ticks), dtype=bool))
    values.validate(full=True)
    assert values.type == parse_type(name).arrow
    assert grid.ticks(values).tolist() == ticks


@pytest.mark.parametrize(
    ("name", "step", "number"),
    [
        ("TIMESTAMP", "1d", 86_400_000_000),
        ("TIMESTAMP", "15min", 900_000_000),
        ("TIMESTAMP", 1.5, 1_500_000),
        ("TIME", "1us", 1),
        ("DATE", "7d", 7),
        ("DATE", 2, 2),
        ("DECIMAL(9,2)", 0.05, 5),
        ("DOUBLE", 0.1, Fraction(1, 10)),
    ],
)
def test_steps_are_read_by_type(name, step, number) -> None:
    assert step_of("t.c", parse_type(name), step) == number


def test_a_time_zone_is_turned_to_utc() -> None:
    kind = parse_type("TIMESTAMPTZ")
    assert number_of("t.c", kind, "1970-01-01 01:00:00+01:00") == 0 == number_of("t.c", kind, "1970-01-01")
