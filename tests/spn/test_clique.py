"""What a clique tree refuses, and the shares it is made of."""

from typing import Any

import numpy as np
import pytest

from privbench.errors import ModelError
from privbench.spn.clique import MAX_CELLS, CliqueTree, Conditional, Given, bin_shares, code_shares, conditionals
from privbench.spn.nodes import Leaf, Product, Sum, children, given_columns, walk


def column(name: str, *parents: str, bins: int = 2, **other: Any) -> Conditional:
    """A column of as many codes as bins; its parents have two bins each."""
    made = {"bins": np.arange(bins), "counts": np.ones(bins), "factors": tuple(np.ones((2, bins)) for _ in parents)}
    return Conditional(column=name, parents=parents, **(made | other))


def with_given(*columns: Conditional, **other: Any) -> CliqueTree:
    made = {"given": (Given(column="g", bins=np.arange(2)),), "contexts": np.array([[1]]), "weights": np.ones(1)}
    return CliqueTree(columns=columns, **(made | other))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"bins": np.array([0, 2])}, "age: its bins must be numbered from 0 without gaps"),
        ({"bins": np.array([-1, 0])}, "age: its bins must be numbered"),
        ({"bins": np.array([0, 2**40])}, "age: its bins must be numbered"),
        ({"bins": np.array([0.0, 1.0])}, "age: needs the bin of each"),
        ({"bins": np.zeros((1, 2), np.int64)}, "age: needs the bin of each"),
        ({"bins": np.array([0, 1, 1])}, "age: has 2 counts and the bins of 3 codes"),
        ({"counts": np.array([1.0, -1.0])}, "age: a histogram holds a negative"),
        ({"factors": ()}, "age: needs parents of different names and a factor"),
        ({"factors": (np.ones(2),)}, "age: the factor of sex has shape"),
        ({"factors": (np.ones((2, 3)),)}, "age: the factor of sex has shape"),
        ({"factors": (np.array([[1.0, np.nan]]),)}, "age: the factor of sex holds"),
        ({"factors": (np.array([[1.0, np.inf]]),)}, "age: the factor of sex holds"),
        ({"factors": (np.array([[1.0, -1.0]]),)}, "age: the factor of sex holds"),
        ({"parents": ("sex", "sex"), "factors": (np.ones((2, 2)),) * 2}, "age: needs parents of different names"),
    ],
)
def test_a_conditional_refuses(other: dict[str, Any], message: str) -> None:
    made = {"bins": np.arange(2), "counts": np.ones(2), "parents": ("sex",), "factors": (np.ones((2, 2)),)}
    with pytest.raises(ModelError, match=message):
        Conditional(column="age", **(made | other))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "needs a column"),
        ((column("a"), column("a")), "a: is there twice"),
        ((column("a", "b"), column("b")), "a: its parent b is neither placed before it nor given"),
        ((column("a", "a"),), "a: its parent a is neither"),
        ((column("a", bins=3), column("b", "a")), "b: the factor of a has 2 rows, the parent 3 bins"),
        ((column("a"), column("b"), column("c", "a", "b")), "c: its parents are no clique: a is not a parent of b"),
    ],
)
def test_a_clique_tree_refuses_columns(columns: tuple[Conditional, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        CliqueTree(columns=columns)


def test_a_clique_tree_refuses_tables_that_cannot_be_held() -> None:
    bins = round((4 * MAX_CELLS) ** (1 / 3))
    wide = {"bins": bins, "factors": (np.ones((bins, bins)),)}
    a, b = column("a", bins=bins), column("b", "a", **wide)
    c = column("c", "a", "b", bins=bins, factors=(np.ones((bins, bins)),) * 2)
    with pytest.raises(ModelError, match="c: the table with its parents has"):
        CliqueTree(columns=(a, b, c))
    assert len(CliqueTree(columns=(a, b)).sizes) == 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"contexts": np.array([[2]])}, "g: a context has a bin that the column has not"),
        ({"contexts": np.array([[-1]])}, "g: a context has a bin"),
        ({"contexts": np.zeros((0, 1), np.int64), "weights": np.ones(0)}, "contexts of 1 given columns have shape"),
        ({"contexts": np.zeros((1, 2), np.int64)}, "contexts of 1 given columns have shape"),
        ({"contexts": np.zeros((1, 1))}, "contexts of 1 given columns have shape"),
        ({"weights": np.ones(2) / 2}, "1 contexts need as many weights"),
        ({"weights": np.array([0.9])}, "weights of contexts must be"),
        ({"given": (Given(column="a", bins=np.arange(2)),)}, "a: is there twice"),
        ({"given": (Given(column="g", bins=np.arange(2)),) * 2, "contexts": np.array([[0, 0]])}, "different names"),
    ],
)
def test_a_clique_tree_refuses_contexts(other: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        with_given(column("a", "g"), **other)


def test_given_parents_need_no_clique() -> None:
    tree = with_given(column("a"), column("b", "a", "g"), column("c", "g", "b"))
    assert given_columns(tree) == tree.given
    assert tree.sizes == {"a": 2, "b": 2, "c": 2}


def test_a_clique_tree_is_a_node_without_children() -> None:
    tree = with_given(column("a", "g"))
    root = Product(children=(Leaf(column="x", counts=np.ones(2)), tree))
    assert children(tree) == ()
    assert list(walk(root)) == [root, *root.children]
    assert set(root.sizes) == {"a", "x"}
    assert given_columns(root) == tree.given
    assert given_columns(Product(children=(root,))) == tree.given


def test_products_and_sums_refuse_given_columns_where_rows_have_no_place() -> None:
    tree = with_given(column("a", "g"))
    with pytest.raises(ModelError, match="g: given to a second child"):
        Product(children=(tree, Product(children=(with_given(column("b", "g")),))))
    with pytest.raises(ModelError, match="g: a column of the product is given"):
        Product(children=(tree, Leaf(column="g", counts=np.ones(2))))
    with pytest.raises(ModelError, match="g: a sum node may not contain conditioning"):
        Sum(children=(Product(children=(tree,)),), weights=np.ones(1))


def test_values_are_frozen_copies() -> None:
    factor = np.ones((2, 2))
    made = column("a", "g", factors=(factor,))
    factor[0, 0] = 9
    assert made.factors[0][0, 0] == 1
    for array in (made.bins, made.counts, *made.factors, with_given(made).contexts, with_given(made).weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_shares_survive_extreme_counts() -> None:
    tiny = column("a", bins=4, counts=np.array([5e-324, 5e-324, 0, 0]))
    assert bin_shares(tiny).tolist() == [0.5, 0.5, 0, 0]
    joint = Conditional(column="a", bins=np.array([0, 0, 1, 1]), counts=np.array([5e-324, 5e-324, 1e303, 1e303]))
    assert code_shares(joint).tolist() == [0.5] * 4
    factors = (np.full((2, 2), 1e300), np.full((2, 2), 5e-324), np.array([[1e300, 3e300], [0, 0]]))
    extreme = column("a", "b", "c", "d", factors=factors)
    places = [np.zeros(2, int), np.zeros(2, int), np.array([0, 1])]
    assert conditionals(extreme, places).tolist() == [[0.25, 0.75], [0.5, 0.5]]
