"""The denoiser: closer to the truth than clipping on sparse histograms, and no harm on clear counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.methods.denoise import denoise, posterior_means
from privbench.privacy.calibrate import Noise


def laplace(scale: float) -> Noise:
    return Noise(gaussian=False, scale=scale)


def drawn(scale: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
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
    noisy = real + drawn(scale, 400, rng)
    clipped = distance(np.maximum(noisy, 0).astype(float), real)
    assert distance(denoise(noisy, laplace(scale), real.sum(), smooth=False), real) < clipped / 2


def test_many_small_counts_are_told_from_none() -> None:
    """The same noisy count means more where other counts are small too than where all others are none."""
    rng = np.random.default_rng(1)
    few, none = (np.append(8, rate + drawn(4.0, 500, rng)) for rate in (6, 0))
    assert (
        posterior_means(few, laplace(4.0), smooth=False)[0] > posterior_means(none, laplace(4.0), smooth=False)[0] + 1
    )


def test_the_mean_of_small_counts_is_kept_where_clipping_raises_it() -> None:
    rng = np.random.default_rng(2)
    real = np.full(3000, 2)
    noisy = real + drawn(10.0, 3000, rng)
    assert np.maximum(noisy, 0).mean() > 5
    assert posterior_means(noisy, laplace(10.0), smooth=False).mean() == pytest.approx(2, abs=0.8)


@given(noisy=st.lists(st.integers(-(10**6), 10**9), min_size=1, max_size=50), scale=st.floats(0.05, 10**5))
def test_counts_are_finite_not_negative_and_in_the_order_of_the_noisy_ones(noisy: list[int], scale: float) -> None:
    found = posterior_means(np.array(noisy), laplace(scale), smooth=False)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (np.diff(found[np.argsort(noisy, kind="stable")]) >= -1e-6 * (1 + found.max())).all()


def test_clear_counts_stay() -> None:
    noisy = np.array([10_000, 500, 0, -3])
    assert posterior_means(noisy, laplace(2.0), smooth=False)[:2].tolist() == [10_000, 500]


@given(
    noisy=st.lists(st.integers(-(10**4), 10**6), min_size=1, max_size=40),
    scale=st.floats(0.05, 10**3),
    total=st.floats(1, 1e6),
    smooth=st.booleans(),
)
def test_denoised_counts_are_positive_and_add_up(noisy: list[int], scale: float, total: float, smooth: bool) -> None:
    found = denoise(np.array(noisy, np.float64), laplace(scale), total, smooth=smooth)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)


def test_gaussian_noise_is_taken_out_by_its_own_law() -> None:
    real = np.repeat([0, 0, 0, 6, 40], 60)
    noisy = real + np.random.default_rng(4).normal(0, 8, real.size).round().astype(np.int64)
    own, other = (
        distance(posterior_means(noisy, Noise(gaussian=law, scale=8.0), smooth=False), real) for law in (True, False)
    )
    assert own < other
    assert own < distance(np.maximum(noisy, 0).astype(float), real) / 1.5
