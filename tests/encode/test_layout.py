"""Values of codes: the same as from a list of Python values, for every kind of type."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode.layout import looked_up

POINTS = [
    pa.array([7, -3, 5], pa.int16()),
    pa.array(["a", "", "long text"]),
    pa.array([True, False, True]),
    pa.array([Decimal("1.50"), Decimal("-2.25"), Decimal(0)], pa.decimal128(9, 2)),
    pa.array([date(2020, 1, 31), date(1, 1, 1), date(9999, 12, 31)]),
    pa.array([1.5, -0.0, 2.0], pa.float32()),
]


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("top", [3, 4])
def test_values_of_codes(points: pa.Array, top: int) -> None:
    codes = np.random.default_rng(0).integers(0, top, 1_001).astype(np.uint16)
    found = looked_up(points, codes)
    found.validate(full=True)
    assert found.type == points.type
    assert found.to_pylist() == [[*points.to_pylist(), None][code] for code in codes]
    assert found.null_count == (codes == 3).sum()


@pytest.mark.parametrize("count", [0, 2])
def test_a_column_without_values_is_null(count: int) -> None:
    found = looked_up(pa.array([], pa.string()), np.zeros(count, np.uint16))
    assert found.type == pa.string()
    assert found.null_count == len(found) == count
