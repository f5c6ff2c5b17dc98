from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privbench.spn.nodes import Leaf, Node, Product, Sum
from privbench.spn.sample import sample, whole_rows

SHARES = st.lists(st.sampled_from([0.0, 1e-9, 0.1, 1 / 3, 1.0, 7.0]), min_size=1, max_size=9).filter(any).map(np.array)


@given(shares=SHARES, rows=st.integers(0, 10**9), offset=st.floats(0, 1, exclude_max=True))
def test_whole_rows_add_up_and_are_within_one_row(shares: NDArray[np.float64], rows: int, offset: float) -> None:
    whole = whole_rows(shares, rows, offset=offset)
    exact = shares / shares.sum() * rows
    assert whole.sum() == rows
    assert (whole >= 0).all()
    assert (whole[shares == 0] == 0).all()
    assert (np.abs(whole - exact) < 1 + 1e-6).all()


def test_whole_rows_add_up_when_the_last_edge_rounds_up() -> None:
    rows = 3 * 2**40
    assert rows + np.nextafter(1, 0) == rows + 1
    assert whole_rows(np.ones(3), rows, offset=np.nextafter(1, 0)).sum() == rows


@pytest.mark.parametrize("offset", [0.0, np.nextafter(1, 0)])
def test_rounding_errors_of_many_shares_lose_no_row(offset: float) -> None:
    for seed in range(30):
        shares = np.append(np.random.default_rng(seed).random(300), 0.0)
        whole = whole_rows(shares, 100, offset=offset)
        assert (whole.sum(), whole[-1]) == (100, 0)


@given(shares=SHARES, rows=st.integers(0, 12))
def test_whole_rows_are_unbiased(shares: NDArray[np.float64], rows: int) -> None:
    # The mean over a grid of offsets is the expectation up to one grid step at each end of an interval.
    offsets = (np.arange(512) + 0.5) / 512
    mean = np.mean([whole_rows(shares, rows, offset=u) for u in offsets], axis=0)
    assert mean == pytest.approx(shares / shares.sum() * rows, abs=2 / 512)


@given(data=st.data(), rows=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_samples_have_the_exact_size_and_only_possible_rows(
    data: st.DataObject,
    rows: int,
    seed: int,
    networks: st.SearchStrategy[Node],
    enumerate_cells: Callable[[Node], NDArray[np.float64]],
) -> None:
    node = data.draw(networks)
    out = sample(node, rows, np.random.default_rng(seed))
    assert list(out) == sorted(node.sizes)
    assert all(codes.shape == (rows,) and codes.dtype == np.uint16 for codes in out.values())
    assert (enumerate_cells(node)[tuple(out.values())] > 0).all()


@given(counts=SHARES, rows=st.integers(0, 200), seed=st.integers(0, 2**32))
def test_a_leaf_is_within_one_row_of_its_expectation(counts: NDArray[np.float64], rows: int, seed: int) -> None:
    node = Product(children=(Leaf(column="a", counts=counts), Leaf(column="b", counts=np.zeros(3))))
    out = sample(node, rows, np.random.default_rng(seed))
    for column, shares in (("a", counts / counts.sum()), ("b", np.full(3, 1 / 3))):
        found = np.bincount(out[column], minlength=shares.size)
        assert (np.abs(found - rows * shares) < 1 + 1e-6).all()


def mixture() -> Node:
    """Two columns inside a sum, a third beside it; every joint count is far from a whole number of 7 rows."""
    left = Product(
        children=(Leaf(column="a", counts=np.array([0.9, 0.1])), Leaf(column="b", counts=np.array([1.0, 4, 2])))
    )
    right = Product(children=(Leaf(column="a", counts=np.array([0.2, 0.8])), Leaf(column="b", counts=np.zeros(3))))
    mixed = Sum(children=(left, right), weights=np.array([0.37, 0.63]))
    return Product(children=(mixed, Leaf(column="c", counts=np.array([0.3, 0.7]))))


def test_joint_counts_are_unbiased_over_many_runs(enumerate_cells: Callable[[Node], NDArray[np.float64]]) -> None:
    node, rows, runs = mixture(), 7, 3000
    expected = enumerate_cells(node) * rows * runs
    found = np.zeros_like(expected)
    rng = np.random.default_rng(20)
    for _ in range(runs):
        np.add.at(found, tuple(sample(node, rows, rng).values()), 1)
    # Low-variance rounding keeps the statistic below what chi-square's law expects of independent rows.
    assert stats.chisquare(found.ravel(), expected.ravel()).pvalue > 0.001


def test_each_place_in_the_order_is_alike(enumerate_cells: Callable[[Node], NDArray[np.float64]]) -> None:
    node, rows, runs = mixture(), 7, 3000
    rng = np.random.default_rng(21)
    draws = [sample(node, rows, rng) for _ in range(runs)]
    cells = enumerate_cells(node)
    for place in (0, 3, 6):
        found = np.zeros_like(cells)
        np.add.at(found, tuple(np.array([draw[name][place] for draw in draws]) for name in "abc"), 1)
        assert stats.chisquare(found.ravel(), cells.ravel() * runs).pvalue > 0.001


def test_columns_of_a_product_are_independent() -> None:
    children = tuple(Leaf(column=c, counts=np.ones(5)) for c in "abc")
    rows = 20_000
    out = sample(Product(children=children), rows, np.random.default_rng(3))
    correlation = np.corrcoef([out[c] for c in "abc"])
    assert np.abs(correlation[np.triu_indices(3, k=1)]).max() < 4 / np.sqrt(rows)


def test_two_sums_beside_each_other_are_independent() -> None:
    def split(column: str) -> Sum:
        parts = tuple(Leaf(column=column, counts=np.eye(2)[code]) for code in (0, 1))
        return Sum(children=parts, weights=np.array([0.5, 0.5]))

    rows = 20_000
    out = sample(Product(children=(split("a"), split("b"))), rows, np.random.default_rng(4))
    assert abs(np.corrcoef(out["a"], out["b"])[0, 1]) < 4 / np.sqrt(rows)


def test_columns_of_a_sum_child_stay_together() -> None:
    def block(code: int) -> Product:
        return Product(children=tuple(Leaf(column=c, counts=np.eye(3)[code]) for c in "abc"))

    node = Sum(children=tuple(block(code) for code in range(3)), weights=np.array([0.2, 0.3, 0.5]))
    out = sample(node, 1000, np.random.default_rng(5))
    assert (out["a"] == out["b"]).all()
    assert (out["a"] == out["c"]).all()
    assert np.bincount(out["a"]).tolist() == [200, 300, 500]
    assert (np.diff(out["a"].astype(int)) < 0).sum() > 200  # in random order, not sorted by child


def test_the_same_seed_gives_the_same_rows() -> None:
    first, again, other = (sample(mixture(), 100, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all((first[c] == again[c]).all() for c in "abc")
    assert any((first[c] != other[c]).any() for c in "abc")


def test_codes_reach_the_end_of_uint16() -> None:
    node = Leaf(column="a", counts=np.zeros(2**16))
    assert sorted(sample(node, 2**16, np.random.default_rng(0))["a"].tolist()) == list(range(2**16))


def test_deep_networks_are_sampled(deep: Callable[[int], Node]) -> None:
    out = sample(deep(2000), 40, np.random.default_rng(0))
    assert len(out) == 501
    assert {int(codes.sum()) for codes in out.values()} == {30}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3, 11])
def test_joint_counts_are_unbiased_at_any_size(
    rows: int, enumerate_cells: Callable[[Node], NDArray[np.float64]]
) -> None:
    node, runs = mixture(), 12_000
    expected = enumerate_cells(node) * rows * runs
    found = np.zeros_like(expected)
    rng = np.random.default_rng(rows)
    for _ in range(runs):
        np.add.at(found, tuple(sample(node, rows, rng).values()), 1)
    assert stats.chisquare(found.ravel(), expected.ravel()).pvalue > 0.001
