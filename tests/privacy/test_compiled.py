"""The compiled counting loop: the same sums as NumPy's, and NumPy's where it cannot be had."""

import sys
from typing import Any

import numpy as np
import pytest

from privbench.privacy import exact
from privbench.privacy.part_counter import compiled_add_up

numba = pytest.importorskip("numba")


@pytest.mark.parametrize("kind", [np.uint16, np.int64])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_sums_are_those_of_numpy(kind: Any, weighed: bool, rows: int) -> None:
    from privbench.privacy.compiled import add_up

    rng = np.random.default_rng(0)
    keys = rng.integers(0, 7, rows).astype(kind)
    weights = rng.integers(0, 2**20, rows) if weighed else None
    sums = np.full((2, 7), 2**60)
    add_up(keys, weights, sums[0])
    exact.add_up(keys, weights, sums[1])
    assert sums[0].tolist() == sums[1].tolist()


def test_where_nothing_can_be_kept_numpy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba refuses to compile if it has no folder to write to, which is seen only when budget was spent."""

    def no_folder(**_: Any) -> Any:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.delitem(sys.modules, "privbench.privacy.compiled", raising=False)
    monkeypatch.setattr(numba, "njit", no_folder)
    assert compiled_add_up() is exact.add_up
