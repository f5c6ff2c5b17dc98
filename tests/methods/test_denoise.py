"""The denoiser: closer to the truth than clipping on sparse histograms, and no harm on clear counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.methods.denoise import denoise
from privbench.spn.clique import scaled


def noise(scale: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def distance(counts: NDArray[np.float64], real: NDArray[np.int64]) -> float:
    return float(np.abs(counts / counts.sum() - real / real.sum()).sum() / 2)


@pytest.mark.parametrize("scale", [3.0, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_sparse_histograms_come_closer_than_by_clipping(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    real = np.where(rng.random(400) < 0.05, rng.integers(1, 2000, 400), 0)
    noisy = real + noise(scale, 400, rng)
    clipped = distance(np.maximum(noisy, 0).astype(float), real)
    assert distance(denoise(noisy, scale), real) < clipped / 2


def test_many_small_counts_are_told_from_none() -> None:
    """The same noisy count means more where other counts are small too than where all others are none."""
    rng = np.random.default_rng(1)
    few, none = (np.append(8, rate + noise(4.0, 500, rng)) for rate in (6, 0))
    assert denoise(few, 4.0)[0] > denoise(none, 4.0)[0] + 1


def test_the_mean_of_small_counts_is_kept_where_clipping_raises_it() -> None:
    rng = np.random.default_rng(2)
    real = np.full(3000, 2)
    noisy = real + noise(10.0, 3000, rng)
    assert np.maximum(noisy, 0).mean() > 5
    assert denoise(noisy, 10.0).mean() == pytest.approx(2, abs=0.8)


@given(noisy=st.lists(st.integers(-(10**6), 10**9), min_size=1, max_size=50), scale=st.floats(0.05, 10**5))
def test_counts_are_finite_not_negative_and_in_the_order_of_the_noisy_ones(noisy: list[int], scale: float) -> None:
    found = denoise(np.array(noisy), scale)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (np.diff(found[np.argsort(noisy, kind="stable")]) >= -1e-6 * (1 + found.max())).all()


def test_clear_counts_stay() -> None:
    noisy = np.array([10_000, 500, 0, -3])
    assert denoise(noisy, 2.0)[:2].tolist() == [10_000, 500]


@given(counts=st.lists(st.floats(0, 1e6), min_size=1, max_size=9), rows=st.floats(0, 1e6))
def test_scaled_counts_add_up(counts: list[float], rows: float) -> None:
    found = scaled(np.array(counts), rows)
    assert found.sum() == pytest.approx(rows, rel=1e-6, abs=1e-6)


def test_gaussian_noise_is_taken_out_by_its_own_law() -> None:
    real = np.repeat([0, 0, 0, 6, 40], 60)
    noisy = real + np.random.default_rng(4).normal(0, 8, real.size).round().astype(np.int64)
    own, other = (distance(denoise(noisy, 8.0, gaussian=law), real) for law in (True, False))
    assert own < other
    assert own < distance(np.maximum(noisy, 0).astype(float), real) / 1.5
