"""Drawn keys stay unique, within a block, across blocks and where two keys share a column."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.generation.unique import Uniqueness, deduplicated

small = st.one_of(st.none(), st.integers(0, 3))
blocks = st.lists(st.lists(st.tuples(small, small, small), max_size=12), max_size=4)


def _whole(rows: list[tuple[object, ...]], *places: int) -> list[tuple[object, ...]]:
    keys = [tuple(row[p] for p in places) for row in rows]
    return [key for key in keys if None not in key]


@given(blocks, st.integers(0, 99))
def test_keys_are_unique_in_all_blocks_together(drawn: list[list[tuple[int | None, ...]]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = [Uniqueness(("a", "b"), local=False), Uniqueness(("b", "c"), local=False)]
    kept: list[tuple[object, ...]] = []

    def redraw(columns: tuple[str, ...]):  # type: ignore[no-untyped-def]
        def draw(places: NDArray[np.int64], _: int) -> dict[str, pa.Array]:
            return {c: pa.array(rng.integers(0, 4, len(places))) for c in columns}

        return draw

    for block in drawn:
        values = {c: pa.array([row[i] for row in block], pa.int64()) for i, c in enumerate("abc")}
        for key in keys:
            values = key.repaired(values, redraw(key.columns))
        values, keep = deduplicated(values, np.ones(len(block), bool), keys)
        assert len(values["a"]) == keep.sum()
        kept += zip(*(values[c].to_pylist() for c in "abc"), strict=True)
    for places in ((0, 1), (1, 2)):
        found = _whole(kept, *places)
        assert len(set(found)) == len(found)


def test_nothing_is_lost_that_need_not_be() -> None:
    key = Uniqueness(("a",), local=True)
    values = {"a": pa.array([1, None, 2, None])}
    found, keep = deduplicated(key.repaired(values, lambda *_: {}), np.ones(4, bool), [key])
    assert keep.all()
    assert found["a"].to_pylist() == [1, None, 2, None]


def test_a_local_key_forgets_other_blocks() -> None:
    key = Uniqueness(("a",), local=True)
    for _ in range(2):
        _, keep = deduplicated({"a": pa.array([1, 1])}, np.ones(2, bool), [key])
        assert keep.tolist() == [True, False]
