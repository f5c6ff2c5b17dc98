"""Samples of clique trees against full enumeration, and each configuration within one row of its expectation."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import privbench.spn.sample
from privbench.errors import ModelError
from privbench.spn.clique import CliqueTree, Conditional, Given, bin_shares, conditionals
from privbench.spn.nodes import Leaf, Node, Product
from privbench.spn.sample import sample

Cells = Callable[[Node], NDArray[np.float64]]


def tree(seed: int = 0) -> CliqueTree:
    """Three columns with bins of several codes; a and c depend on the given g, which has 3 codes in 2 bins."""
    rng = np.random.default_rng(seed)

    def column(name: str, bins: list[int], **parents: int) -> Conditional:
        factors = tuple(rng.gamma(1, size=(size, max(bins) + 1)) for size in parents.values())
        counts = rng.gamma(1, size=len(bins))
        return Conditional(column=name, bins=np.array(bins), counts=counts, parents=tuple(parents), factors=factors)

    columns = (column("a", [0, 1, 1], g=2), column("b", [1, 0, 1, 2], a=2), column("c", [0, 1], b=3, g=2, a=2))
    known = (Given(column="g", bins=np.array([0, 1, 0])),)
    return CliqueTree(columns=columns, given=known, contexts=np.array([[0], [1]]), weights=np.array([0.3, 0.7]))


@given(data=st.data(), rows=st.integers(0, 40), seed=st.integers(0, 2**32))
def test_samples_are_possible_and_depend_on_the_seed_alone(
    data: st.DataObject, rows: int, seed: int, given_networks: st.SearchStrategy[Node], enumerate_cells: Cells
) -> None:
    node = data.draw(given_networks)
    first, again = (sample(node, rows, np.random.default_rng(seed)) for _ in range(2))
    assert all(codes.shape == (rows,) and codes.dtype == np.uint16 for codes in first.values())
    assert all((first[name] == again[name]).all() for name in node.sizes)
    assert (enumerate_cells(node)[tuple(first[name] for name in sorted(node.sizes))] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 60])
def test_joint_counts_are_unbiased(rows: int, enumerate_cells: Cells) -> None:
    node, runs = tree(), 1200 // (1 + rows // 8)
    expected = enumerate_cells(node) * rows * runs
    found = np.zeros_like(expected)
    rng = np.random.default_rng(rows)
    for _ in range(runs):
        np.add.at(found, tuple(sample(node, rows, rng).values()), 1)
    # Low-variance rounding keeps the statistic below what chi-square's law expects of independent rows.
    assert stats.chisquare(found.ravel(), expected.ravel()).pvalue > 0.001


def test_large_samples_are_close_to_the_enumeration(enumerate_cells: Cells) -> None:
    rows = 200_000
    found = np.zeros((3, 4, 2))
    np.add.at(found, tuple(sample(tree(), rows, np.random.default_rng(8)).values()), 1)
    assert np.abs(found / rows - enumerate_cells(tree())).max() < 0.0025


def test_every_configuration_is_within_one_row_of_its_expectation() -> None:
    node, rows = tree(3), 5000
    codes = np.random.default_rng(1).integers(0, 3, rows)
    out = sample(node, rows, np.random.default_rng(2), given={"g": codes})
    bins = {"g": node.given[0].bins[codes]} | {c.column: c.bins[out[c.column]] for c in node.columns}
    for column in node.columns:
        above = np.stack([bins[name] for name in column.parents])
        for configuration in np.unique(above, axis=1).T:
            here = (above == configuration[:, None]).all(axis=0)
            found = np.bincount(bins[column.column][here], minlength=int(column.bins.max()) + 1)
            shares = conditionals(column, [np.array(b) for b in configuration])
            assert (np.abs(found - here.sum() * shares) < 1 + 1e-6).all()


def test_every_bin_is_within_one_row_of_its_codes() -> None:
    column = Conditional(column="a", bins=np.array([0, 1, 1, 1, 0]), counts=np.array([3.0, 1, 0, 5, 4]))
    out = sample(CliqueTree(columns=(column,)), 999, np.random.default_rng(0))["a"]
    found = np.bincount(out, minlength=5)
    assert np.abs(found - 999 * column.counts / 13).max() < 2
    for own in (0, 1):
        inside = column.bins == own
        exact = found[inside].sum() * column.counts[inside] / column.counts[inside].sum()
        assert (np.abs(found[inside] - exact) < 1 + 1e-6).all()


def test_many_configurations_of_one_row_stay_unbiased_and_independent() -> None:
    """Two columns with the same parents: what rounds up in one must not tell what rounds up in the other."""
    rows, codes = 20_000, 20_000
    rng = np.random.default_rng(4)
    factor = np.repeat([[0.3, 0.7]], codes, axis=0)
    pair = tuple(
        Conditional(column=c, bins=np.arange(2), counts=np.ones(2), parents=("g",), factors=(factor,)) for c in "ab"
    )
    known = (Given(column="g", bins=np.arange(codes)),)
    node = CliqueTree(columns=pair, given=known, contexts=np.zeros((1, 1), np.int64), weights=np.ones(1))
    out = sample(node, rows, rng, given={"g": rng.permutation(codes)})
    assert abs(np.corrcoef(out["a"], out["b"])[0, 1]) < 4 / np.sqrt(rows)
    for c in "ab":
        # Neighbours share their rounding: far closer than the 65 rows of independent draws.
        assert abs(out[c].sum() - 0.7 * rows) < 40


def test_rows_keep_the_order_of_what_is_given() -> None:
    copy = Conditional(
        column="a", bins=np.arange(3), counts=np.ones(3), parents=("g",), factors=(np.eye(3)[[2, 0, 1]],)
    )
    known = (Given(column="g", bins=np.array([0, 1, 2, 0])),)
    node = CliqueTree(columns=(copy,), given=known, contexts=np.array([[2]]), weights=np.ones(1))
    root = Product(children=(Leaf(column="x", counts=np.ones(2)), node))
    codes = np.random.default_rng(0).integers(0, 4, 500)
    out = sample(root, 500, np.random.default_rng(1), given={"g": codes, "unused": codes})
    assert out["a"].tolist() == np.array([2, 0, 1, 2])[codes].tolist()
    assert set(sample(root, 50, np.random.default_rng(1))["a"].tolist()) == {1}


def test_impossible_configurations_fall_back_to_the_counts() -> None:
    parent = Conditional(column="a", bins=np.arange(2), counts=np.ones(2))
    child = Conditional(
        column="b", bins=np.arange(2), counts=np.array([1.0, 3.0]), parents=("a",), factors=(np.diag([1.0, 0.0]),)
    )
    out = sample(CliqueTree(columns=(parent, child)), 800, np.random.default_rng(0))
    assert np.bincount(out["b"][out["a"] == 0], minlength=2).tolist() == [400, 0]
    assert np.bincount(out["b"][out["a"] == 1]).tolist() == (400 * bin_shares(child)).tolist()


def test_chunks_of_configurations_join(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sample(tree(), 3000, np.random.default_rng(5))
    monkeypatch.setattr(privbench.spn.sample, "CELLS", 6)
    parts = sample(tree(), 3000, np.random.default_rng(5))
    assert all((whole[c] == parts[c]).all() for c in "abc")


def test_wide_keys_are_grouped() -> None:
    """More configurations than 16 bits number, and more than 32 bits do."""
    rng = np.random.default_rng(0)
    codes = 5000
    known = tuple(Given(column=name, bins=np.arange(codes)) for name in "ghi")
    factors = tuple(np.eye(2)[rng.integers(0, 2, codes)] + 1e-9 for _ in range(3))
    column = Conditional(column="a", bins=np.arange(2), counts=np.ones(2), parents=("g", "h", "i"), factors=factors)
    node = CliqueTree(columns=(column,), given=known, contexts=np.zeros((1, 3), np.int64), weights=np.ones(1))
    places = {name: rng.integers(0, codes, 3000) for name in "ghi"}
    out = sample(node, 3000, rng, given=places)["a"]
    votes = sum(factor[places[name], 1] for name, factor in zip("ghi", factors, strict=True))
    assert (out[votes > 2.5] == 1).all()
    assert (out[votes < 0.5] == 0).all()


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ({}, "g: is needed to draw rows"),
        ({"g": np.zeros(4, int)}, "g: needs 5 codes below 3"),
        ({"g": np.full(5, 3)}, "g: needs 5 codes below 3"),
        ({"g": np.full(5, -1)}, "g: needs 5 codes below 3"),
    ],
)
def test_wrong_given_codes_are_refused(codes: dict[str, NDArray[np.int64]], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        sample(tree(), 5, np.random.default_rng(0), given=codes)
