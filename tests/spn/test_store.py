import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree
from privbench.spn.nodes import Leaf, Node, Product, Sum, walk
from privbench.spn.store import MAX_COLUMNS, pack, unpack

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def assert_same(found: Node, expected: Node) -> None:
    for left, right in zip(walk(found), walk(expected), strict=True):
        assert type(left) is type(right)
        assert left.sizes == right.sizes
        if isinstance(left, Leaf) and isinstance(right, Leaf):
            assert left.counts.tobytes() == right.counts.tobytes()
        elif isinstance(left, Sum) and isinstance(right, Sum):
            assert left.weights.tobytes() == right.weights.tobytes()
        elif isinstance(left, CliqueTree) and isinstance(right, CliqueTree):
            assert_same_tree(left, right)


def assert_same_tree(left: CliqueTree, right: CliqueTree) -> None:
    assert left.contexts.tolist() == right.contexts.tolist()
    assert left.weights.tobytes() == right.weights.tobytes()
    assert [(g.column, g.bins.tolist()) for g in left.given] == [(g.column, g.bins.tolist()) for g in right.given]
    for one, other in zip(left.columns, right.columns, strict=True):
        assert (one.column, one.parents) == (other.column, other.parents)
        assert one.bins.tolist() == other.bins.tolist()
        assert one.counts.tobytes() == other.counts.tobytes()
        assert [f.tobytes() for f in one.factors] == [f.tobytes() for f in other.factors]


@given(data=st.data())
def test_unpack_undoes_pack(data: st.DataObject, networks: st.SearchStrategy[Node]) -> None:
    node = data.draw(networks)
    header, arrays = pack(node)
    assert_same(unpack(json.loads(json.dumps(header)), arrays), node)


@given(data=st.data())
def test_given_columns_are_stored(data: st.DataObject, given_networks: st.SearchStrategy[Node]) -> None:
    node = data.draw(given_networks)
    header, arrays = pack(node)
    assert header["version"] == 2
    assert_same(unpack(json.loads(json.dumps(header)), arrays), node)


def test_deep_networks_are_stored(deep: Callable[[int], Node]) -> None:
    assert_same(unpack(*pack(deep(2000))), deep(2000))


def example() -> tuple[Header, Arrays]:
    """Nodes: sum(product(a, b), product(a, b)); a has 2 codes, b has 3."""

    def pair() -> Product:
        return Product(children=(Leaf(column="a", counts=np.ones(2)), Leaf(column="b", counts=np.ones(3))))

    return pack(Sum(children=(pair(), pair()), weights=np.array([0.25, 0.75])))


def test_the_format() -> None:
    header, arrays = example()
    assert header == {"version": 1, "columns": [{"name": "a", "codes": 2}, {"name": "b", "codes": 3}]}
    assert {name: (array.dtype.str, array.tolist()) for name, array in arrays.items()} == {
        "kind": ("|u1", [2, 1, 0, 0, 1, 0, 0]),
        "children": ("<i8", [2, 2, 2]),
        "column": ("<i8", [0, 1, 0, 1]),
        "counts": ("<f8", [1.0] * 10),
        "weights": ("<f8", [0.25, 0.75]),
    }


A, B = {"name": "a", "codes": 2}, {"name": "b", "codes": 3}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "no version"),
        ([], "no version"),
        ({"columns": [A, B]}, "no version"),
        ({"version": 3, "columns": [A, B]}, "format 3"),
        ({"version": 2, "columns": [A, B]}, "consists of the arrays .*factors"),
        ({"version": True, "columns": [A, B]}, "format True"),
        ({"version": "1" * 999, "columns": [A, B]}, "format '1{30,39}"),
        ({"version": 1}, "list of 1 to"),
        ({"version": 1, "columns": []}, "list of 1 to"),
        ({"version": 1, "columns": [{"name": str(i), "codes": 1} for i in range(MAX_COLUMNS + 1)]}, "list of 1 to"),
        ({"version": 1, "columns": [A, A]}, "name of its own"),
        ({"version": 1, "columns": [A, "b"]}, "name of its own"),
        ({"version": 1, "columns": [A, {"name": 7, "codes": 3}]}, "name of its own"),
        ({"version": 1, "columns": [A, {"name": "b"}]}, "codes"),
        ({"version": 1, "columns": [A, {"name": "b", "codes": 0}]}, "codes"),
        ({"version": 1, "columns": [A, {"name": "b", "codes": 3.0}]}, "codes"),
        ({"version": 1, "columns": [A, {"name": "b", "codes": 10**30}]}, "codes"),
        ({"version": 1, "columns": [A, {"name": "b", "codes": 4}]}, "one count for each code"),
        ({"version": 1, "columns": [A, B, {"name": "c", "codes": 1}]}, "columns of the nodes"),
    ],
)
def test_a_damaged_header_is_refused(header: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        unpack(header, example()[1])


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("kind", np.array([], np.uint8), "nodes of known kinds"),
        ("kind", np.array([2, 1, 0, 0, 1, 0, 3], np.uint8), "nodes of known kinds"),
        ("kind", np.array([2, 1, 0, 0, 1, 0, 1], np.uint8), "numbers of nodes"),
        ("kind", np.array([2, 0, 0, 0, 0, 1, 1], np.uint8), "more children than follow"),
        ("kind", np.array([[2, 1, 0, 0, 1, 0, 0]], np.uint8), "list of uint8"),
        ("kind", np.array([2, 1, 0, 0, 1, 0, 0], np.int64), "list of uint8"),
        ("kind", np.array([None] * 7), "list of uint8"),
        ("kind", [2, 1, 0, 0, 1, 0, 0], "list of uint8"),
        ("children", np.array([2, 2, 1]), "one tree"),
        ("children", np.array([2, 4, 0]), "one tree"),
        ("children", np.array([2**62, 2**62, 2**63 - 1]), "one tree"),
        ("children", np.array([2**63 - 1, 2**63 - 1, 8]), "one tree"),
        ("children", np.array([-1, 2, 5]), "one tree"),
        ("column", np.array([0, 1, 0, 2]), "not there"),
        ("column", np.array([0, 1, 0, -1]), "not there"),
        ("column", np.array([0, 1, 0]), "numbers of nodes"),
        ("column", np.array([1, 1, 0, 0]), "a: in two children of one product"),
        ("counts", np.ones(9), "one count for each code"),
        ("counts", np.array([1.0] * 9 + [np.nan]), "b: .*NaN"),
        ("counts", np.array([-1.0] + [1.0] * 9), "a: .*negative"),
        ("counts", np.array([np.inf] + [1.0] * 9), "a: .*infinity"),
        ("counts", np.ones(10, dtype=">f8"), "list of float64"),
        ("weights", np.array([0.25]), "one weight"),
        ("weights", np.array([0.5, 0.6]), "add up to 1"),
        ("weights", np.array([1.5, -0.5]), "add up to 1"),
        ("weights", np.array([np.nan, 1.0]), "add up to 1"),
    ],
)
def test_damaged_arrays_are_refused(name: str, array: Any, message: str) -> None:
    header, arrays = example()
    with pytest.raises(ModelError, match=message):
        unpack(header, arrays | {name: array})


def test_missing_and_unknown_arrays_are_refused() -> None:
    header, arrays = example()
    with pytest.raises(ModelError, match="consists of"):
        unpack(header, arrays | {"more": np.ones(1)})
    with pytest.raises(ModelError, match="consists of"):
        unpack(header, {name: array for name, array in arrays.items() if name != "counts"})


def test_sums_over_different_columns_are_refused() -> None:
    header, arrays = example()
    parts = {"kind": np.array([2, 0, 0], np.uint8), "children": np.array([2]), "column": np.array([0, 1])}
    with pytest.raises(ModelError, match="differ in their columns"):
        unpack(header, arrays | parts | {"counts": np.ones(5)})


def test_very_deep_files_are_read_without_recursion() -> None:
    depth = 20_000
    kind = np.array([2] * depth + [0], np.uint8)
    header = {"version": 1, "columns": [{"name": "a", "codes": 2}]}
    arrays: Arrays = {"kind": kind, "children": np.ones(depth, np.int64), "column": np.zeros(1, np.int64)}
    node = unpack(header, arrays | {"counts": np.ones(2), "weights": np.ones(depth)})
    assert sum(1 for _ in walk(node)) == depth + 1


def test_a_small_file_of_nested_products_cannot_fill_the_memory() -> None:
    columns, depth = 4000, 3000
    kind = np.array([1] * depth + [0] * columns, np.uint8)
    header = {"version": 1, "columns": [{"name": str(i), "codes": 1} for i in range(columns)]}
    arrays = {
        "kind": kind,
        "children": np.array([1] * (depth - 1) + [columns]),
        "column": np.arange(columns),
        "counts": np.ones(columns),
        "weights": np.ones(0),
    }
    with pytest.raises(ModelError, match="nested too deeply"):
        unpack(header, arrays)


@given(name=st.sampled_from(sorted(example()[1])), byte=st.integers(0, 79), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_a_network_or_a_model_error(name: str, byte: int, bit: int) -> None:
    header, arrays = example()
    raw = bytearray(arrays[name].tobytes())
    raw[byte % len(raw)] ^= 1 << bit
    damaged = arrays | {name: np.frombuffer(bytes(raw), dtype=arrays[name].dtype)}
    expected = {"a": 2, "b": 3}
    try:
        sizes = unpack(header, damaged).sizes
    except ModelError:
        sizes = expected
    assert sizes == expected
