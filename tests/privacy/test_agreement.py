"""What a computed column would be, and where a column equals it: NULLs, plain numbers, long strings.

How far an entity moves counts of it is tested with all other features (test_weighted_sensitivity.py).
"""

import numpy as np
import pyarrow as pa
import pytest

from privbench.privacy.agreement import compared, owners_values, ranks


def test_nulls_agree_with_nulls_alone() -> None:
    expected = owners_values(np.array([0, 1, 1, -1, -1]), pa.array(["x", None]))
    assert compared(pa.array(["x", None, "x", None, "x"]), expected).tolist() == [0, 2, 1, 2, 1]
    assert compared(pa.array([1, None], pa.int8()), ranks(np.array([-1, 0]), first=1)).tolist() == [1, 1]


@pytest.mark.parametrize(("kind", "plain"), [(pa.bool_(), False), (pa.uint8(), 0), (pa.int64(), 0), (pa.float32(), 0)])
def test_plain_numbers_stand_apart(kind: pa.DataType, plain: int) -> None:
    found = pa.array([0, 0, 1, 1, None]).cast(kind)
    expected = owners_values(np.arange(5), pa.array([0, 1, 1, 0, None]).cast(kind))
    assert compared(found, expected, plain=plain).tolist() == [2, 1, 0, 1, 2]


def test_a_long_text_is_not_repeated_for_every_row() -> None:
    """Whatever one entity's texts are, nothing overflows: an array of texts holds at most 2 GiB."""
    text = "x" * 10_000
    expected = owners_values(np.zeros(1000, np.int64), pa.array([text, "y"]))
    assert expected.nbytes < 100_000
    assert compared(pa.array([text, "y", "z", None] * 250), expected).tolist() == [0, 1, 1, 1] * 250
