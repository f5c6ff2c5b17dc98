"""From noisy numbers to estimates: denoised histograms, fanouts, coarse bins, tables of pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.methods.denoise import denoise
from privbench.methods.tree.coarse import bin_masses, coarse_axis
from privbench.methods.tree.fanout import fanout_shares
from privbench.methods.tree.pair_shrinkage import rake, shrink
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import Feature, Own
from privbench.spn.fanouts import bin_means, bin_of, fanout_edges

Floats = NDArray[np.float64]


def drawn(counts: Floats, noise: Noise, rng: np.random.Generator) -> Floats:
    law = rng.normal if noise.gaussian else rng.laplace
    noisy: Floats = counts + law(0, noise.scale, len(counts))
    return noisy


def distance(found: Floats, true: Floats) -> float:
    """Total variation between shares."""
    return float(np.abs(found / found.sum() - true / true.sum()).sum() / 2)


# -- single columns ------------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[Floats, bool]] = {
    "zipf": (20_000 / np.arange(1, 200) ** 1.5, False),
    "bell": (300 * np.exp(-0.5 * ((np.arange(120) - 40) / 15.0) ** 2), True),
    "steps": (np.repeat([10.0, 400.0, 30.0, 0.0], 40), True),
    "a few heavy_hitters": (np.bincount([3, 50, 51, 170], [900, 400, 2000, 60], 180), False),
}


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gauss"])
@pytest.mark.parametrize("shape", SHAPES)
def test_denoised_counts_beat_clipped_ones(shape: str, gaussian: bool) -> None:
    true, smooth = SHAPES[shape]
    rng, noise = np.random.default_rng(4), Noise(gaussian=gaussian, scale=25.0)
    denoised, clipped = [], []
    for _ in range(12):
        noisy = drawn(true, noise, rng)
        denoised.append(distance(denoise(noisy, noise, true.sum(), smooth=smooth), true))
        clipped.append(distance(np.maximum(noisy, 0), true))
    assert np.mean(denoised) < 0.85 * np.mean(clipped)


@given(
    st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=40),
    st.floats(1e-3, 1e5),
    st.floats(0.5, 1e6),
    st.booleans(),
    st.booleans(),
)
def test_denoised_counts_are_positive_and_add_up(
    noisy: list[float], scale: float, total: float, gaussian: bool, smooth: bool
) -> None:
    found = denoise(np.array(noisy), Noise(gaussian=gaussian, scale=scale), total, smooth=smooth)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-3, abs=1e-6)


def test_without_noise_counts_stay() -> None:
    true = np.array([5.0, 0.0, 7.0, 88.0])
    assert denoise(true, Noise(gaussian=False, scale=0.01), 100.0, smooth=False) == pytest.approx(true, abs=1e-6)


# -- fanouts -------------------------------------------------------------------------------------------------------

EDGES = fanout_edges(8191)


def _fanouts(law: str, rng: np.random.Generator) -> NDArray[np.int64]:
    drawn = {
        "geometric": lambda: rng.geometric(0.3, 40_000) - 1,
        "zipf": lambda: np.minimum(rng.zipf(2.3, 40_000), 8191),
        "one": lambda: np.ones(40_000, np.int64),
        "none": lambda: np.zeros(40_000, np.int64),
    }
    return drawn[law]()


@pytest.mark.parametrize("known", [False, True], ids=["mean private", "mean public"])
@pytest.mark.parametrize("law", ["geometric", "zipf", "one", "none"])
def test_fanouts_are_found_again(law: str, known: bool) -> None:
    rng, noise = np.random.default_rng(1), Noise(gaussian=False, scale=8.0)
    numbers = _fanouts(law, rng)
    true = np.bincount(bin_of(numbers, EDGES), minlength=len(EDGES) - 1).astype(float)
    mean = float(numbers.mean()) if known else None
    found = fanout_shares(drawn(true, noise, rng), noise, EDGES, total=len(numbers), mean=mean)
    assert found.shares.sum() == pytest.approx(1)
    assert (found.shares >= 0).all()
    assert distance(found.shares, true) < 0.01
    if known and law in ("geometric", "zipf"):
        assert found.shares @ bin_means(EDGES, found.exponent) == pytest.approx(numbers.mean(), rel=0.1)


@pytest.mark.parametrize("scale", [3.0, 100.0, 3000.0])
def test_noise_alone_invents_few_rows(scale: float) -> None:
    """All owners have one row, and the noise of every bin of the tail could mean thousands."""
    rng, noise = np.random.default_rng(2), Noise(gaussian=False, scale=scale)
    owners = 200 * scale
    invented = []
    for _ in range(20):
        true = np.zeros(len(EDGES) - 1)
        true[1] = owners
        found = fanout_shares(drawn(true, noise, rng), noise, EDGES, total=owners, mean=None)
        invented.append(float(found.shares @ bin_means(EDGES, found.exponent)) - 1)
    assert np.median(np.abs(invented)) < 0.15
    assert max(invented) < 1


def test_owners_of_many_rows_are_seen_though_all_bins_before_them_are_empty() -> None:
    """3,000 owners have 160 rows each, 9,000 have one: pooled with the empty bins between, the former were not seen."""
    rng, noise = np.random.default_rng(3), Noise(gaussian=False, scale=60.0)
    numbers = np.repeat([0, 1, 160], [3000, 9000, 3000])
    true = np.bincount(bin_of(numbers, EDGES), minlength=len(EDGES) - 1).astype(float)
    found = fanout_shares(drawn(true, noise, rng), noise, EDGES, total=len(numbers), mean=None)
    rows = len(numbers) * float(found.shares @ bin_means(EDGES, found.exponent))
    assert rows == pytest.approx(numbers.sum(), rel=0.25)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(1e-3, 1e5),
    st.floats(0, 1e7),
    st.one_of(st.none(), st.floats(0, 100)),
)
def test_any_noise_gives_shares(noisy: list[float], scale: float, total: float, mean: float | None) -> None:
    edges = np.append(EDGES[: len(noisy)], EDGES[len(noisy)] if len(noisy) < len(EDGES) else 10**5).astype(np.int64)
    numbers = np.array(noisy[: len(edges) - 1])
    found = fanout_shares(numbers, Noise(gaussian=False, scale=scale), edges, total=total, mean=mean)
    assert (found.shares >= 0).all()
    assert found.shares.sum() == pytest.approx(1)
    assert -4 <= found.exponent <= 12


# -- coarse bins ---------------------------------------------------------------------------------------------------


def feature(size: int, *, ordered: bool, apart: bool) -> Feature:
    return Feature(name="a", size=size, ordered=ordered, source=Own("a"), apart=apart)


@given(
    st.lists(st.floats(0, 1e4), min_size=1, max_size=60),
    st.booleans(),
    st.booleans(),
    st.integers(2, 40),
    st.floats(0.1, 1e4),
)
def test_bins_are_numbered_without_gaps_and_keep_null_apart(
    counts: list[float], ordered: bool, apart: bool, most: int, least: float
) -> None:
    masses = np.array(counts)
    axis = coarse_axis(feature(len(counts), ordered=ordered, apart=apart), masses, most=most, least=least)
    assert len(axis.bins) == len(counts)
    assert set(axis.bins.tolist()) == set(range(axis.size))
    assert axis.size <= 2 * most + 3
    assert bin_masses(axis, masses).sum() == pytest.approx(masses.sum())
    if apart and len(counts) > 1:
        assert (axis.bins == axis.bins[-1]).sum() == 1
    if ordered:
        assert (np.diff(axis.bins[:-1]) >= 0).all()


def test_heavy_codes_stand_alone() -> None:
    counts = np.array([1.0, 500.0, 1.0, 2.0, 400.0, 1.0])
    axis = coarse_axis(feature(6, ordered=False, apart=False), counts, most=10, least=50)
    assert bin_masses(axis, counts).tolist() == [500, 400, 5]


# -- tables of pairs -----------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000))
def test_raked_tables_have_their_margins(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.random(rows) + 0.01, rng.random(columns) + 0.01
    left, right = 100 * left / left.sum(), 100 * right / right.sum()
    found = rake(rng.random((rows, columns)), left, right)
    assert found.sum(axis=1) == pytest.approx(left, rel=1e-3)
    assert found.sum(axis=0) == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("ordered", [(True, True), (False, True), (False, False)], ids=str)
def test_a_shrunk_table_is_nearer_than_the_noisy_one_and_than_independence(ordered: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(6)
    x, y = np.meshgrid(np.arange(16), np.arange(20), indexing="ij")
    true = 2_000 * np.exp(-0.5 * ((x / 16 - y / 20) / 0.2) ** 2) / 50
    deviation = 15.0
    noisy = true + rng.normal(0, deviation, true.shape)
    margins = true.sum(axis=1), true.sum(axis=0)
    expected = np.outer(*margins) / true.sum()
    found = rake(shrink(noisy, np.full(true.shape, deviation**2), expected, ordered=ordered), *margins)
    assert (found > 0).all()
    off = np.abs(found - true).sum()
    assert off < 0.9 * np.abs(np.maximum(noisy, 0) - true).sum()
    assert off < 0.9 * np.abs(expected - true).sum()


def test_where_all_is_noise_independence_is_kept() -> None:
    rng = np.random.default_rng(7)
    expected = np.full((10, 10), 3.0)
    offs = []
    for _ in range(10):
        noisy = expected + rng.normal(0, 200, expected.shape)
        found = rake(shrink(noisy, np.full((10, 10), 4e4), expected, ordered=(False, False)), *[np.full(10, 30.0)] * 2)
        offs.append(np.abs(found - expected).sum() / 300)
    assert np.median(offs) < 0.25


def test_without_noise_a_table_is_itself() -> None:
    true = np.array([[5.0, 0.0], [1.0, 9.0]])
    found = shrink(true, np.zeros((2, 2)), np.full((2, 2), 3.75), ordered=(False, False))
    assert found == pytest.approx(true, abs=1e-9)
