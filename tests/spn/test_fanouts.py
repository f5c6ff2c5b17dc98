"""Bins of numbers: they cover all numbers once, and draws inside them follow the law that they are said to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.spn.fanouts import (
    LISTED,
    MANY,
    RANK_EDGES,
    bin_means,
    bin_of,
    draw_numbers,
    fanout_edges,
    rank_codes,
    ranks,
    size_edges,
)


@given(st.integers(0, 10**6))
def test_bins_cover_all_numbers_once(cap: int) -> None:
    edges = fanout_edges(cap)
    assert edges[0] == 0
    assert edges[-1] == cap + 1
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges)[: min(cap, 5)].tolist() == [1] * min(cap, 5)
    assert (edges[7:-1] <= 1.5 * edges[6:-2]).all()
    numbers = np.unique(np.append(np.arange(min(cap + 1, 500)), cap))
    codes = bin_of(numbers, edges)
    assert (edges[codes] <= numbers).all()
    assert (numbers < edges[codes.astype(int) + 1]).all()


@given(st.lists(st.integers(0, 2**16 - 1), max_size=40), st.integers(0, 10**6), st.sampled_from([np.uint16, np.int64]))
def test_a_list_of_bins_says_what_a_search_says(numbers: list[int], cap: int, kind: type) -> None:
    edges = fanout_edges(cap)
    found = bin_of(np.array(numbers, kind), edges)
    assert found.tolist() == [min(int((edges[1:-1] <= n).sum()), len(edges) - 2) for n in numbers]


def test_bins_of_a_smaller_cap_are_the_first_ones() -> None:
    """So that a code means the same whatever the cap, but for the last."""
    wide = fanout_edges(10_000)
    for cap in range(200):
        edges = fanout_edges(cap)
        assert edges[:-1].tolist() == wide[: len(edges) - 1].tolist()


def test_sizes_and_ranks_start_at_one_and_are_open() -> None:
    assert size_edges()[0] == RANK_EDGES[0] == 1
    assert size_edges()[-1] == RANK_EDGES[-1] == MANY
    assert bin_of(np.array([1, 10**9]), size_edges()).tolist() == [0, len(size_edges()) - 2]
    assert rank_codes(np.array([0, 40])).tolist() == bin_of(np.arange(1, 41), RANK_EDGES).tolist()
    assert rank_codes(np.array([40]))[[0, 4, 5, 6, 7, 8, 16, 32, 33]].tolist() == [0, 4, 4, 5, 5, 6, 7, 8, 8]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_ranks_count_the_rows_of_each_owner(fanouts: list[int]) -> None:
    assert ranks(np.array(fanouts, np.int64)).tolist() == [rank for n in fanouts for rank in range(1, n + 1)]


@pytest.mark.parametrize("exponent", [-2.0, 0.0, 1.5, 64.0])
def test_numbers_follow_the_power_law_of_their_bin(exponent: float) -> None:
    """Each number within one of its expectation, as systematic draws are."""
    edges = np.array([0, 1, 3, 9])
    codes = np.repeat(np.arange(3), [50, 200, 700])
    numbers = draw_numbers(codes, edges, exponent, rng=np.random.default_rng(1))
    assert (bin_of(numbers, edges) == codes).all()
    for code, (low, high) in enumerate([(0, 1), (1, 3), (3, 9)]):
        inside = np.arange(low, high)
        shares = np.maximum(inside, 1.0) ** -exponent
        found = np.bincount(numbers[codes == code], minlength=high)[low:high]
        assert np.abs(found - (codes == code).sum() * shares / shares.sum()).max() <= 1 + 1e-9
        assert bin_means(edges, exponent)[code] == pytest.approx(inside @ shares / shares.sum())


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_wide_bins_have_the_right_mean(exponent: float) -> None:
    low, high = 10, 20 * LISTED
    inside = np.arange(low, high, dtype=float)
    shares = inside**-exponent / (inside**-exponent).sum()
    codes, edges = np.zeros(20_000, int), np.array([low, high])
    numbers = np.array([draw_numbers(codes, edges, exponent, rng=np.random.default_rng(seed)) for seed in range(8)])
    assert low <= numbers.min() <= numbers.max() < high
    assert bin_means(np.array([low, high]), exponent)[0] == pytest.approx(inside @ shares, rel=0.06)
    assert numbers.mean() == pytest.approx(inside @ shares, rel=0.08)


def test_a_bin_of_any_width_takes_little_memory() -> None:
    """A model may come from a stranger."""
    edges = np.array([0, 1, MANY])
    numbers = draw_numbers(np.array([0, 1, 1]), edges, 1.0, rng=np.random.default_rng(0))
    assert numbers[0] == 0
    assert 1 <= numbers.min(initial=MANY, where=[False, True, True]) <= numbers.max() < MANY
    assert 1 < bin_means(edges, 1.0)[1] < MANY


def test_every_bin_may_have_its_own_exponent() -> None:
    edges = np.array([0, 1, 4, 8])
    found = bin_means(edges, np.array([0.0, 2.0, 9.0]))
    assert found.tolist() == [bin_means(edges, exponent)[b] for b, exponent in enumerate([0.0, 2.0, 9.0])]
    assert found[2] < bin_means(edges, 0.0)[2]
