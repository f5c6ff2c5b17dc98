"""Grouping rows and dealing out values: the same with compiled kernels and without."""

from importlib.util import find_spec

import numpy as np
import pytest

from privbench.spn import deal
from privbench.spn.deal import Groups, grouped, place, place_stretches
from privbench.spn.sample import sample

from ..required import missing
from ..tree_models import tables

KEYS = [
    np.zeros(0, np.uint32),
    np.zeros(500, np.uint32),
    np.random.default_rng(0).integers(0, 9, 3_000).astype(np.uint32),
    np.random.default_rng(1).integers(0, 50_000, 3_000).astype(np.uint32),
    np.random.default_rng(2).integers(0, 2**62, 3_000).astype(np.uint64),
]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels, loaded whatever there is to do."""
    if find_spec("numba") is None:
        missing("fast", "Numba is not there")
    monkeypatch.setattr(deal, "_loaded", [])
    assert deal.load_kernels(deal.WORTH_IT)


def groups_of(key: np.ndarray, *, with_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> Groups:
    with monkeypatch.context() as patch:
        if not with_kernels:
            patch.setattr(deal, "_loaded", [])
        return grouped(key, np.random.default_rng(7))


@pytest.mark.parametrize("key", KEYS)
def test_groups_are_those_of_a_sort(key: np.ndarray) -> None:
    groups = grouped(key, np.random.default_rng(7))
    assert sorted(groups.order.tolist()) == list(range(key.size))
    assert (np.diff(key[groups.order].astype(np.float64)) >= 0).all()
    different, sizes = np.unique(key, return_counts=True)
    assert groups.sizes.tolist() == sizes.tolist()
    assert key[groups.first].tolist() == different.tolist()


def test_rows_of_a_group_stand_in_random_order() -> None:
    rng = np.random.default_rng(3)
    firsts = np.bincount([grouped(np.zeros(4, np.uint32), rng).order[0] for _ in range(8_000)], minlength=4)
    assert (abs(firsts - 2_000) < 200).all()


@pytest.mark.parametrize("key", KEYS)
def test_kernels_give_the_same(key: np.ndarray, kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, plain = (groups_of(key, with_kernels=way, monkeypatch=monkeypatch) for way in (True, False))
    for a, b in zip(ours, plain, strict=True):
        assert a.tolist() == b.tolist()
    values, pool = np.arange(ours.sizes.size).astype(np.uint16), np.random.default_rng(4).integers(0, 9, key.size)
    starts = np.cumsum(ours.sizes) - ours.sizes
    dealt = place(ours, values, ours.sizes), place_stretches(ours, pool.astype(np.uint16), starts, ours.sizes)
    monkeypatch.setattr(deal, "_loaded", [])
    again = place(plain, values, plain.sizes), place_stretches(plain, pool.astype(np.uint16), starts, plain.sizes)
    for a, b in zip(dealt, again, strict=True):
        assert a.tolist() == b.tolist()


def test_rows_of_a_network_are_the_same(kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    network = tables()["person"].network
    fast = sample(network, 5_000, np.random.default_rng(1))
    monkeypatch.setattr(deal, "_loaded", [])
    plain = sample(network, 5_000, np.random.default_rng(1))
    assert {name: codes.tolist() for name, codes in fast.items()} == {n: codes.tolist() for n, codes in plain.items()}


def test_little_work_loads_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deal, "_loaded", [])
    assert not deal.load_kernels(deal.WORTH_IT - 1)
