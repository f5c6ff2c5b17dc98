from collections.abc import Callable

import numpy as np
import pytest

from privbench.errors import ModelError
from privbench.spn.checks import MAX_CODES
from privbench.spn.nodes import Leaf, Node, Product, Sum, distribution, fold, walk


def leaf(column: str, *counts: float) -> Leaf:
    return Leaf(column=column, counts=np.array(counts))


@pytest.mark.parametrize(
    "counts",
    [[], [-1.0, 2.0], [np.nan], [np.inf], [1e308, 1e308], [[1.0]], np.ones(MAX_CODES + 1)],
    ids=["empty", "negative", "nan", "infinite", "overflow", "two-dimensional", "too many codes"],
)
def test_a_leaf_refuses(counts: object) -> None:
    with pytest.raises(ModelError, match="age"):
        Leaf(column="age", counts=np.array(counts, dtype=float))


def test_a_leaf_keeps_a_frozen_copy() -> None:
    counts = np.array([1.0, 2.0])
    made = Leaf(column="a", counts=counts)
    counts[0] = 9
    assert made.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        made.counts[0] = 5


@pytest.mark.parametrize("counts", [[5e-324, 5e-324], [1e303, 1e303], [0.0, 0.0], [1.0, 1.0]])
def test_a_distribution_survives_extreme_counts(counts: list[float]) -> None:
    assert distribution(leaf("a", *counts)).tolist() == [0.5, 0.5]


def test_a_product_refuses_overlapping_scopes() -> None:
    with pytest.raises(ModelError, match="b: in two children"):
        Product(children=(Product(children=(leaf("a", 1), leaf("b", 1))), leaf("b", 1)))


def test_a_sum_refuses_different_scopes() -> None:
    with pytest.raises(ModelError, match="differ in their columns"):
        Sum(children=(leaf("a", 1), leaf("b", 1)), weights=np.array([0.5, 0.5]))


def test_a_sum_refuses_different_numbers_of_codes() -> None:
    with pytest.raises(ModelError, match=r"a: .*numbers of codes"):
        Sum(children=(leaf("a", 1), leaf("a", 1, 1)), weights=np.array([0.5, 0.5]))


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [1.0], [np.inf, 0.0], [0.5, 0.5 + 2e-9]])
def test_a_sum_refuses_weights(weights: list[float]) -> None:
    with pytest.raises(ModelError, match="weights"):
        Sum(children=(leaf("a", 1), leaf("a", 2)), weights=np.array(weights))


@pytest.mark.parametrize("make", [lambda: Product(children=()), lambda: Sum(children=(), weights=np.ones(0))])
def test_inner_nodes_need_a_child(make: Callable[[], Node]) -> None:
    with pytest.raises(ModelError, match="needs a child"):
        make()


def test_walk_goes_parents_first_from_left_to_right() -> None:
    a, b, c = leaf("a", 1), leaf("b", 1), leaf("c", 1)
    left = Product(children=(a, b))
    root = Product(children=(left, c))
    assert list(walk(root)) == [root, left, a, b, c]
    assert set(root.sizes) == {"a", "b", "c"}


def test_fold_hands_over_children_from_left_to_right() -> None:
    inner = Product(children=(leaf("a", 1), leaf("b", 1), leaf("c", 1)))
    root = Product(children=(inner, leaf("d", 1)))
    text = fold(root, lambda node, below: node.column if isinstance(node, Leaf) else f"({' '.join(below)})")
    assert text == "((a b c) d)"


def test_deep_networks_are_walked(deep: Callable[[int], Node]) -> None:
    assert sum(1 for _ in walk(deep(2000))) == 2000 + 1 + 500
    assert len(deep(2000).sizes) == 501
