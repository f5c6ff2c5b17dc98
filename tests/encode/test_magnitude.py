"""Public cells by order of magnitude, public steps, and grids that fit them: total, ordered, as wide as said."""

from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.grid import bins_on, range_on
from privbench.encode.magnitude import Magnitudes, coarsest_step, grid_within, steps_of
from privbench.encode.scalar import number_of
from privbench.encode.text import made_up_domain
from privbench.schema.domain import Bins, Range, Serial
from privbench.schema.types import parse_type

VALUES: dict[str, list[Any]] = {
    "INTEGER": [-(2**31), -100, -1, 0, 1, 2, 3, 100, 2**31 - 1],
    "BIGINT": [-(2**63), -(2**40), 0, 2**40, 2**52 + 1, 2**63 - 1],
    "UINTEGER": [0, 1, 2**32 - 1],
    "DOUBLE": [-1e18, -2.5, -1e-30, 0.0, 1e-30, 0.01, 2.5, 1e18],
    "REAL": [-1.5, 0.0, 0.25, 1024.0],
    "DECIMAL(9,2)": [Decimal("-12.34"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")],
    "DECIMAL(38,2)": [Decimal("-1E+35"), Decimal("0.00"), Decimal("1E+20")],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 2)],
    "TIME": [time(0, 0), time(0, 0, 1), time(23, 59)],
    "TIMESTAMP": [datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(2020, 1, 1, 12)],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_lie_in_their_buckets_in_order(name: str) -> None:
    kind = parse_type(name)
    buckets = Magnitudes(type=kind)
    found = buckets.of(pa.array([*VALUES[name], None], kind.arrow)).tolist()
    assert found[-1] == -1
    assert found[:-1] == sorted(found[:-1])
    assert max(found) < buckets.size
    for value, bucket in zip(VALUES[name], found[:-1], strict=True):
        text = value if isinstance(value, int | float) else str(value)
        low, high = buckets.span(bucket, bucket)
        slack = Fraction(1, 10**9) * (abs(low) + abs(high)) + Fraction(1, 2**64)
        assert low - slack <= number_of("t.a", kind, text) <= high + slack


@pytest.mark.parametrize("name", VALUES)
def test_buckets_follow_each_other(name: str) -> None:
    buckets = Magnitudes(type=parse_type(name))
    ends = [buckets.span(b, b) for b in range(buckets.size)]
    assert all(a <= b for a, b in ends)  # also where one side of zero has fewer powers than the other
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    assert ends[buckets.zero] == (0, 0)


def test_numbers_that_are_none_have_no_bucket() -> None:
    odd = pa.array([float("nan"), float("inf"), float("-inf")], pa.float64())
    assert Magnitudes(type=parse_type("DOUBLE")).of(odd).tolist() == [-1, -1, -1]
    assert coarsest_step(parse_type("DOUBLE"), odd).tolist() == [-1, -1, -1]


def test_the_coarsest_step_of_a_value() -> None:
    def steps(name: str, values: list[Any]) -> list[Fraction | None]:
        kind = parse_type(name)
        known = (*steps_of(kind), None)
        return [known[at] for at in coarsest_step(kind, pa.array(values, kind.arrow))]

    assert steps("INTEGER", [300, -20, 15, 7]) == [100, 10, 5, None]
    assert steps("DOUBLE", [3.0, 0.5, 19.99, 0.1 + 0.2, 1 / 3]) == [
        1,
        Fraction(1, 10),
        Fraction(1, 100),
        Fraction(1, 10),
        None,
    ]
    assert steps("DECIMAL(9,2)", [Decimal(4), Decimal("0.30"), Decimal("0.05"), Decimal("0.01")]) == [100, 10, 5, None]
    hour = 3_600_000_000
    moments = [
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, 5),
        datetime(2020, 1, 1, 5, 45),
        datetime(2020, 1, 1, 1, 1, 1),
    ]
    assert steps("TIMESTAMP", moments) == [24 * hour, hour, hour // 4, 10**6]
    assert steps_of(parse_type("DATE")) == ()
    assert coarsest_step(parse_type("INTEGER"), pa.array([0, None], pa.int32())).tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("name", "low", "high"), [("DOUBLE", -1e-6, 1e15), ("REAL", 0, 1e9), ("DECIMAL(38,2)", 0, 1e37)]
)
def test_a_grid_reaches_as_far_as_its_bounds(name: str, low: float, high: float) -> None:
    grid = grid_within(parse_type(name), None, Fraction(low), Fraction(high))
    assert grid.low <= Fraction(low) // grid.step
    assert Fraction(high) // grid.step <= grid.high
    edges = (int(Fraction(low) // grid.step), 0, int(Fraction(high) // grid.step))
    assert [grid.tick("t.a", grid.scalar(edge)) for edge in edges] == list(edges)


def test_domains_are_written_as_people_do() -> None:
    cents = grid_within(parse_type("DECIMAL(9,2)"), Fraction(5), Fraction(0), Fraction(1000))
    assert range_on(cents, 0, 20) == Range(range=("0.00", "1.00"), step="0.05")
    ints = grid_within(parse_type("TINYINT"), None, Fraction(0), Fraction(100))
    assert bins_on(ints, (-1000, 0, 50, 9999), (7, 500)) == Bins(bins=(-128, 0, 50, 128), heavy_hitters=(7,))


def test_unique_columns_are_made_up() -> None:
    assert made_up_domain(parse_type("BIGINT")) == Serial()
    assert np.array(made_up_domain(parse_type("VARCHAR(4)")).model_dump()["text"]).tolist() == [0, 4]
