from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.infer import marginal, probability
from privbench.spn.nodes import Leaf, Node, Product, Sum

Cells = Callable[[Node], NDArray[np.float64]]


@given(data=st.data())
def test_every_cell_has_its_probability(
    data: st.DataObject, networks: st.SearchStrategy[Node], enumerate_cells: Cells
) -> None:
    node = data.draw(networks)
    expected = enumerate_cells(node)
    names = sorted(node.sizes)
    found = np.empty_like(expected)
    for cell in np.ndindex(expected.shape):
        found[cell] = probability(node, {n: np.eye(node.sizes[n])[code] for n, code in zip(names, cell, strict=True)})
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.sum() == pytest.approx(1)


@given(data=st.data())
def test_random_evidence_has_its_probability(
    data: st.DataObject, networks: st.SearchStrategy[Node], enumerate_cells: Cells
) -> None:
    node = data.draw(networks)
    names = sorted(node.sizes)
    named = data.draw(st.sets(st.sampled_from(names)))
    shares = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    evidence = {n: np.array(data.draw(st.lists(shares, min_size=k, max_size=k))) for n, k in node.sizes.items()}
    weighted = enumerate_cells(node)
    for axis, name in enumerate(names):
        if name in named:
            weighted = weighted * np.expand_dims(evidence[name], [i for i in range(len(names)) if i != axis])
    found = probability(node, {n: evidence[n] for n in named})
    assert found == pytest.approx(weighted.sum(), abs=1e-12)


@given(data=st.data())
def test_marginals_sum_out_the_other_columns(
    data: st.DataObject, networks: st.SearchStrategy[Node], enumerate_cells: Cells
) -> None:
    node = data.draw(networks)
    cells = enumerate_cells(node)
    for axis, name in enumerate(sorted(node.sizes)):
        others = tuple(i for i in range(cells.ndim) if i != axis)
        assert marginal(node, name) == pytest.approx(cells.sum(axis=others), abs=1e-12)


def test_a_mixture_keeps_its_dependence() -> None:
    def pair(code: int) -> Product:
        return Product(children=tuple(Leaf(column=c, counts=np.eye(2)[code]) for c in "ab"))

    node = Sum(children=(pair(0), pair(1)), weights=np.array([0.25, 0.75]))
    one = np.array([0.0, 1.0])
    assert probability(node, {"a": one, "b": one}) == 0.75
    assert probability(node, {"a": one, "b": 1 - one}) == 0
    assert probability(node, {"b": 1 - one}) == 0.25
    assert probability(node, {}) == 1


def test_weights_a_little_above_one_give_no_probability_above_one() -> None:
    leaf = Leaf(column="a", counts=np.ones(2))
    assert probability(Sum(children=(leaf, leaf), weights=np.array([0.5, 0.5 + 5e-10])), {}) == 1


@pytest.mark.parametrize("weights", [[1.0], [0.5, 1.5], [-0.1, 0.0], [np.nan, 0.0]])
def test_wrong_evidence_is_refused(weights: list[float]) -> None:
    with pytest.raises(ModelError, match="a: evidence"):
        probability(Leaf(column="a", counts=np.ones(2)), {"a": np.array(weights)})


def test_an_unknown_column_is_refused_with_the_choices() -> None:
    leaf = Leaf(column="a", counts=np.ones(2))
    with pytest.raises(ModelError, match=r"z: no such column.*Columns: a\."):
        probability(leaf, {"z": np.ones(2)})
    with pytest.raises(ModelError, match="z: no such column"):
        marginal(leaf, "z")


def test_deep_networks_are_inferred(deep: Callable[[int], Node]) -> None:
    node = deep(2000)
    one = np.array([0.0, 1.0])
    assert probability(node, {"c0": one, "c2000": one}) == pytest.approx(0.75**2)
    assert marginal(node, "c0") == pytest.approx([0.25, 0.75])
