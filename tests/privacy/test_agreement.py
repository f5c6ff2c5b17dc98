"""What a computed column would be, and where a column equals it: NULLs, plain numbers, long strings.

How far an entity moves counts of it is tested with all other features (test_weighted_sensitivity.py).
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.privacy.agreement import compared, owners_values, ranks


def test_nulls_agree_with_nulls_alone() -> None:
    expected = owners_values(np.array([0, 1, 1, -1, -1]), pa.array(["x", None]))
    assert compared(pa.array(["x", None, "x", None, "x"]), expected).tolist() == [0, 2, 1, 2, 1]
    assert compared(
        pa.array([1, None], pa.int8()), ranks(np.array([-1, 0]), np.zeros(2, np.int64), first=1)
    ).tolist() == [1, 1]


@pytest.mark.parametrize(("kind", "plain"), [(pa.bool_(), False), (pa.uint8(), 0), (pa.int64(), 0), (pa.float32(), 0)])
def test_plain_numbers_stand_apart(kind: pa.DataType, plain: int) -> None:
    found = pa.array([0, 0, 1, 1, None]).cast(kind)
    expected = owners_values(np.arange(5), pa.array([0, 1, 1, 0, None]).cast(kind))
    assert compared(found, expected, plain=plain).tolist() == [2, 1, 0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 3) | st.none(), st.integers(0, 3) | st.none())), st.sampled_from([None, 0, 2]))
def test_whole_numbers_compare_as_all_numbers_do(pairs: list[tuple[int | None, int | None]], plain: int | None) -> None:
    found, expected = (pa.array([p[at] for p in pairs], pa.int16()) for at in (0, 1))
    as_floats = compared(found.cast(pa.float64()), expected.cast(pa.float64()), plain=plain)
    assert compared(found, expected.cast(pa.int64()), plain=plain).tolist() == as_floats.tolist()


def test_a_long_text_is_not_repeated_for_every_row() -> None:
    """Whatever one entity's texts are, nothing overflows: an array of texts holds at most 2 GiB."""
    text = "x" * 10_000
    expected = owners_values(np.zeros(1000, np.int64), pa.array([text, "y"]))
    assert expected.nbytes < 100_000
    assert compared(pa.array([text, "y", "z", None] * 250), expected).tolist() == [0, 1, 1, 1] * 250


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1), st.sampled_from([None, 0, 2]))
def test_whole_numbers_are_compared_as_any_values_are(rows: list[tuple[int, int]], plain: float | None) -> None:
    """Those of a column with a NULL go another way."""
    values, expected = (pa.array([row[at] for row in rows], pa.int16()) for at in (0, 1))
    with_null = pa.concat_arrays([values, pa.nulls(1, pa.int16())])
    any_values = compared(with_null, pa.concat_arrays([expected, expected[:1]]), plain=plain)
    assert compared(values, expected, plain=plain).tolist() == any_values.tolist()[:-1]
