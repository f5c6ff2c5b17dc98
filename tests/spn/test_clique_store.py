"""Stored clique trees: their format, and what a damaged one says."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.nodes import Leaf, Product
from privbench.spn.store import pack, unpack

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def example() -> tuple[Header, Arrays]:
    """A leaf beside a tree: a has 3 codes in 2 bins, b depends on it and on the given g."""
    a = Conditional(column="a", bins=np.array([0, 1, 1]), counts=np.array([1.0, 2.0, 3.0]))
    factors = (np.array([[0.1, 0.9]]), np.array([[0.25, 0.75], [0.5, 0.5]]))
    b = Conditional(column="b", bins=np.array([0, 1]), counts=np.ones(2), parents=("g", "a"), factors=factors)
    tree = CliqueTree(
        columns=(a, b),
        given=(Given(column="g", bins=np.zeros(4, np.int64)),),
        contexts=np.array([[0], [0]]),
        weights=np.array([0.25, 0.75]),
    )
    return pack(Product(children=(Leaf(column="x", counts=np.ones(2)), tree)))


def test_the_format() -> None:
    header, arrays = example()
    assert header == {
        "version": 2,
        "columns": [{"name": "a", "codes": 3}, {"name": "b", "codes": 2}, {"name": "x", "codes": 2}],
        "trees": [
            {
                "columns": [{"name": "a", "parents": []}, {"name": "b", "parents": ["g", "a"]}],
                "given": [{"name": "g", "codes": 4}],
                "contexts": 2,
            }
        ],
    }
    assert {name: (array.dtype.str, array.tolist()) for name, array in arrays.items()} == {
        "kind": ("|u1", [1, 0, 3]),
        "children": ("<i8", [2]),
        "column": ("<i8", [2]),
        "counts": ("<f8", [1.0, 1.0]),
        "weights": ("<f8", []),
        "bins": ("<u2", [0, 1, 1, 0, 1, 0, 0, 0, 0]),
        "tree_counts": ("<f8", [1.0, 2.0, 3.0, 1.0, 1.0]),
        "factors": ("<f8", [0.1, 0.9, 0.25, 0.75, 0.5, 0.5]),
        "contexts": ("<u2", [0, 0]),
        "context_weights": ("<f8", [0.25, 0.75]),
    }


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("kind", np.array([1, 0, 2], np.uint8), "numbers of nodes"),
        ("kind", np.array([1, 0, 4], np.uint8), "known kinds"),
        ("kind", np.array([1, 3, 3], np.uint8), "numbers of nodes"),
        ("bins", np.array([0, 1, 1, 0, 1, 0, 0, 0], np.uint16), "'bins' is too short"),
        ("bins", np.array([0, 1, 1, 0, 1, 0, 0, 0, 0, 0], np.uint16), "'bins' is too long"),
        ("bins", np.array([0, 0, 0, 0, 1, 0, 0, 0, 0], np.uint16), "'factors' is too long"),
        ("bins", np.array([0, 2, 2, 0, 1, 0, 0, 0, 0], np.uint16), "a: its bins must be numbered"),
        ("bins", np.array([0, 1, 1, 0, 65535, 0, 0, 0, 0], np.uint16), "'factors' is too short"),
        ("bins", np.array([0, 1, 1, 0, 1, 0, 0, 0, 7], np.uint16), "g: its bins must be numbered"),
        ("bins", np.array([0.0] * 9), "list of uint16"),
        ("tree_counts", np.ones(4), "'tree_counts' is too short"),
        ("tree_counts", np.array([1.0, 2.0, np.nan, 1.0, 1.0]), "a: .*NaN"),
        ("factors", np.ones(5), "'factors' is too short"),
        ("factors", np.array([0.1, 0.9, 0.25, 0.75, 0.5, -0.5]), "b: the factor of a"),
        ("contexts", np.array([0], np.uint16), "'contexts' is too short"),
        ("contexts", np.array([0, 1], np.uint16), "g: a context has a bin"),
        ("context_weights", np.array([0.25, 0.5]), "weights of contexts"),
        ("context_weights", np.array([0.25]), "'context_weights' is too short"),
    ],
)
def test_damaged_arrays_are_refused(name: str, array: NDArray[Any], message: str) -> None:
    header, arrays = example()
    with pytest.raises(ModelError, match=message):
        unpack(header, arrays | {name: array})


def _set(*path: Any) -> Callable[[Any], None]:
    *way, last, value = path

    def change(trees: Any) -> None:
        for step in way:
            trees = trees[step]
        trees[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(0, None), "needs columns, given, contexts"),
        (_set(0, "columns", []), "needs a column"),
        (_set(0, "columns", 0, "name", "z"), "unknown column"),
        (_set(0, "columns", 0, "name", "b"), "b: its parent a is not in the tree"),
        (_set(0, "columns", 1, "parents", ["a", 7]), "unknown column or parent"),
        (_set(0, "columns", 1, "parents", ["g", "z"]), "b: its parent z is not in the tree"),
        (_set(0, "columns", 1, "parents", ["g", "g"]), "b: needs parents of different names"),
        (_set(0, "columns", 1, "parents", ["g"]), "too long"),
        (_set(0, "columns", 0, "parents", ["b"]), "'factors' is too short"),
        (_set(0, "given", 0, "codes", 0), "1 to 65536 codes"),
        (_set(0, "given", 0, "codes", True), "needs name, codes"),
        (_set(0, "given", 0, "codes", 5), "too short"),
        (_set(0, "contexts", -1), "less than no contexts"),
        (_set(0, "contexts", 0), "contexts of 1 given columns"),
        (_set(0, "contexts", 10**30), "'context_weights' is too short"),
    ],
)
def test_damaged_descriptions_are_refused(change: Callable[[Any], None], message: str) -> None:
    header, arrays = example()
    trees = copy.deepcopy(header["trees"])
    change(trees)
    with pytest.raises(ModelError, match=message):
        unpack(header | {"trees": trees}, arrays)


@pytest.mark.parametrize(("trees", "message"), [(None, "no list"), ({}, "no list"), ([], "'bins' is too long")])
def test_missing_descriptions_are_refused(trees: object, message: str) -> None:
    header, arrays = example()
    with pytest.raises(ModelError, match=message):
        unpack(header | {"trees": trees}, arrays)


def test_more_trees_than_nodes_are_refused() -> None:
    tree = CliqueTree(columns=(Conditional(column="a", bins=np.zeros(1, np.int64), counts=np.ones(1)),))
    header, arrays = pack(tree)
    assert unpack(header, arrays).sizes == {"a": 1}
    twice = {name: np.tile(arrays[name], 2) for name in ("bins", "tree_counts", "context_weights")}
    with pytest.raises(ModelError, match="numbers of clique trees"):
        unpack(header | {"trees": header["trees"] * 2}, arrays | twice)
    with pytest.raises(ModelError, match="'context_weights' is too short"):
        unpack(header | {"trees": [header["trees"][0] | {"contexts": 10**30}]}, arrays)


def test_format_1_has_no_trees() -> None:
    header, arrays = example()
    with pytest.raises(ModelError, match="consists of"):
        unpack(header | {"version": 1}, arrays)


@given(name=st.sampled_from(sorted(example()[1])), byte=st.integers(0, 79), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_a_network_or_a_model_error(name: str, byte: int, bit: int) -> None:
    header, arrays = example()
    raw = bytearray(arrays[name].tobytes())
    if raw:
        raw[byte % len(raw)] ^= 1 << bit
    damaged = arrays | {name: np.frombuffer(bytes(raw), dtype=arrays[name].dtype)}
    expected = {"a": 3, "b": 2, "x": 2}
    try:
        sizes = unpack(header, damaged).sizes
    except ModelError:
        sizes = expected
    assert sizes == expected
