"""Drawn keys stay unique, within a block, across blocks and where two keys share a column."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.generation import unique
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


def test_null_repeats_nothing_in_another_block() -> None:
    key = Uniqueness(("a", "b"), local=False)
    for _ in range(3):
        values = {"a": pa.array([1, None, 2]), "b": pa.array([None, None, 5])}
        _, keep = deduplicated(values, np.ones(3, bool), [key])
        assert keep[:2].all()
    assert not keep[2]


VALUES: dict[pa.DataType, list[object]] = {
    pa.int8(): [-1, 0, 1, 127],
    pa.uint32(): [0, 1, 2**32 - 1],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.float32(): [0.5, -0.5, 0.0],
    pa.float64(): [0.1, 0.2, float("inf"), float("nan")],
    pa.decimal128(38, 2): [Decimal("-1.00"), Decimal("1.00"), Decimal(10) ** 30],
    pa.bool_(): [True, False],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2020, 5, 17)],
    pa.time64("us"): [dt.time(0), dt.time(23, 59, 59, 1)],
    pa.timestamp("us", "UTC"): [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)],
    pa.string(): ["", "a", "b", "ab", "ba", "a\0", "é", "a" * 300],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_values_of_every_type_are_told_apart(kind: pa.DataType) -> None:
    """Also where an array is a slice of a longer one, and where NULLs stand in between."""
    every = [*VALUES[kind], None]
    array = pa.array([VALUES[kind][0], *every, *every], kind)[1:]
    key = Uniqueness(("a",), local=False)
    count = len(VALUES[kind])
    assert key.repeated({"a": array}).tolist() == [False] * (count + 1) + [True] * count + [False]
    key.remember({"a": array[: count + 1]})
    assert key.repeated({"a": array[: count + 1]}).tolist() == [True] * count + [False]


def test_zero_has_no_sign() -> None:
    assert Uniqueness(("a",), local=True).repeated({"a": pa.array([0.0, -0.0])}).tolist() == [False, True]


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=40), st.integers(1, 9))
def test_keys_of_texts_are_compared_as_pairs(rows: list[tuple[str, str]], size: int) -> None:
    """As a set of pairs would, in blocks of any size: "ab", "c" is not "a", "bc"."""
    key, seen, kept = Uniqueness(("a", "b"), local=False), set(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unique, "TEXT_BYTES", 2)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            values = {c: pa.array([row[i] for row in block], pa.string()) for i, c in enumerate("ab")}
            _, keep = deduplicated(values, np.ones(len(block), bool), [key])
            kept += keep.tolist()
    for row, keep in zip(rows, kept, strict=True):
        assert keep == (row not in seen)
        seen.add(row)
