"""Pools of values that repeat: the law of ranks, every value there, and the skew found again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.number_pool import shared_out
from privbench.encode.pool import draw_ranks, fit_skew, ranks_at, weights
from privbench.encode.predicate import Between, In
from privbench.schema.domain import Bins
from privbench.schema.types import parse_type

SKEWS = [0.0, 0.5, 1.0, 1.7]
EDGES = (0, 10, 1000, 20_000, 50_000, 90_000, 200_000)


def pooled(distinct: int, *, skew: float = 1.0, kind: str = "INTEGER") -> Codec:
    domain = Bins(bins=EDGES, heavy_hitters=(20_000,), distinct=distinct, skew=skew)
    return compile_codec("t.c", parse_type(kind), nullable=True, domain=domain)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_ranks_are_drawn_by_their_weights(size, skew) -> None:
    law = weights(size, skew)
    assert law.sum() == pytest.approx(1)
    assert (np.diff(law) <= 1e-12).all()
    shares = (np.arange(100_000) + 0.5) / 100_000
    drawn = np.bincount(ranks_at(shares, np.full(100_000, size), skew), minlength=size) / 100_000
    assert np.abs(drawn - law).max() < 2e-5


def test_a_skew_of_nothing_is_even_and_one_is_zipfs() -> None:
    assert weights(4, 0).tolist() == [0.25] * 4
    assert weights(0, 1).tolist() == []
    law = weights(10_000, 1)
    assert law[9] / law[99] == pytest.approx(10, rel=0.06)


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6), batches=st.integers(1, 4), seed=st.integers(0, 99))
def test_with_enough_rows_every_value_of_every_pool_is_drawn(sizes, batches, seed) -> None:
    cells = np.repeat(np.arange(len(sizes)), 48)
    rng = np.random.default_rng(seed)
    seen = set()
    for batch in range(batches):
        ranks = draw_ranks(cells, np.array(sizes), rng, before=batch, skew=1.0)
        assert (ranks >= 0).all()
        assert (ranks < np.array(sizes)[cells]).all()
        seen |= set(zip(cells.tolist(), ranks.tolist(), strict=True))
    assert len(seen) == sum(sizes)


@pytest.mark.parametrize("skew", SKEWS)
def test_the_skew_of_pools_is_found_again(skew) -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([200, 300])
    cells = rng.integers(0, 2, 40_000)
    ranks = draw_ranks(cells, sizes, rng, before=0, skew=skew)
    groups = [np.bincount(ranks[cells == c], minlength=sizes[c]) for c in range(2)]
    assert fit_skew(groups) == pytest.approx(skew, abs=0.15)
    assert fit_skew([np.ones(50, np.int64)]) == 1, "nothing repeats, so nothing is known"


@given(counts=st.lists(st.integers(1, 10**6), min_size=1, max_size=30), total=st.integers(1, 10**6))
def test_pools_are_shared_out_evenly_as_far_as_there_are_values(counts, total) -> None:
    sizes = shared_out(np.array(counts, float), total)
    assert (sizes >= 1).all()
    assert (sizes <= counts).all()
    assert sizes.sum() <= max(total, len(counts))
    most = sizes.max()
    assert all(size in (count, most) for size, count in zip(sizes.tolist(), counts, strict=True))


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("distinct", [20, 500, 5000])
def test_bins_with_distinct_have_about_that_many_values_in_any_batches(distinct, skew) -> None:
    codec = pooled(distinct, skew=skew)
    rng = np.random.default_rng(0)
    seen: set[int] = set()
    for batch in range(4):
        codes = rng.integers(0, codec.size, 20_000).astype(np.uint16)
        made = codec.decode(codes, rng, first_row=20_000 * batch)
        assert codec.encode(made).tolist() == codes.tolist()
        seen.update(made.drop_null().to_pylist())
    assert 0.9 * distinct - 2 <= len(seen) <= distinct + 1


def test_the_pool_is_the_same_at_every_seed() -> None:
    codes = np.arange(7).repeat(3000).astype(np.uint16)
    first, second = (
        set(pooled(400).decode(codes, np.random.default_rng(seed), first_row=0).to_pylist()) for seed in (1, 2)
    )
    assert first == second
    again = pooled(400).decode(codes, np.random.default_rng(1), first_row=0)
    assert again.equals(pooled(400).decode(codes, np.random.default_rng(1), first_row=0))


def test_frequent_values_are_round() -> None:
    codec = pooled(300)
    made = codec.decode(np.full(20_000, 6, np.uint8), np.random.default_rng(0), first_row=0).to_numpy()
    values, counts = np.unique(made, return_counts=True)
    assert values[np.argsort(-counts)][:4].tolist() == [100_000, 150_000, *values[np.argsort(-counts)][2:4].tolist()]
    assert np.mean(made % 1000 == 0) > 0.6
    even = pooled(300, skew=0).decode(np.full(20_000, 6, np.uint8), np.random.default_rng(0), first_row=0).to_numpy()
    assert np.mean(even % 1000 == 0) < 0.1, "without favourites no value is rounded"


@settings(max_examples=40)
@given(low=st.integers(-5, 200_001), width=st.integers(0, 60_000), skew=st.sampled_from(SKEWS))
def test_coverage_of_a_range_is_what_is_drawn(low, width, skew) -> None:
    codec = pooled(300, skew=skew)
    codes = np.arange(codec.size - 1).repeat(4000).astype(np.uint16)
    made = codec.decode(codes, np.random.default_rng(0), first_row=10**9).to_numpy()
    drawn = ((made >= low) & (made <= low + width)).reshape(-1, 4000).mean(axis=1)
    covered = codec.coverage(Between(low=low, high=low + width))
    assert np.abs(covered[:-1] - drawn).max() < 0.05
    assert covered[-1] == 0


def test_coverage_of_a_value_is_how_often_it_is_drawn_and_nothing_off_the_pool() -> None:
    codec = pooled(300)
    made = codec.decode(np.full(50_000, 6, np.uint8), np.random.default_rng(0), first_row=10**9).to_numpy()
    values, counts = np.unique(made, return_counts=True)
    for value, count in list(zip(values.tolist(), counts.tolist(), strict=True))[:20]:
        assert codec.coverage(In(values=(value,)))[6] == pytest.approx(count / 50_000, abs=0.01)
    missing = next(v for v in range(90_001, 200_000) if v not in set(values.tolist()))
    assert codec.coverage(In(values=(missing,))).sum() == 0
    assert codec.coverage(In(values=tuple(values.tolist())))[6] == pytest.approx(1)


def test_a_pool_that_holds_every_value_is_none() -> None:
    codes = np.array([0, 1], np.uint8)
    plain = compile_codec("t.c", parse_type("INTEGER"), nullable=False, domain=Bins(bins=(0, 5, 10)))
    same = compile_codec("t.c", parse_type("INTEGER"), nullable=False, domain=Bins(bins=(0, 5, 10), distinct=10))
    assert same.decode(codes, np.random.default_rng(0), first_row=0).equals(
        plain.decode(codes, np.random.default_rng(0), first_row=0)
    )
