"""Fanouts from noisy histograms: rows are neither lost nor invented where noise hides the tail."""

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.methods.tree.fanout import fanout_shares
from privbench.privacy.price import Noise
from privbench.spn.fanouts import bin_means, bin_of, fanout_edges

EDGES = fanout_edges(8191)
OWNERS = 20_000
NOISE = Noise(gaussian=False, scale=40.0)


def _noisy(fanouts: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    counts = np.bincount(bin_of(fanouts, EDGES), minlength=len(EDGES) - 1)
    return counts + np.random.default_rng(seed).laplace(0, NOISE.scale, len(counts))


def _rows_off_by(fanouts: NDArray[np.int64], seed: int, mean: float | None = None) -> float:
    found = fanout_shares(_noisy(fanouts, seed), NOISE, EDGES, mean=mean)
    return float(found.shares @ bin_means(EDGES, found.exponent)) / fanouts.mean() - 1


def _careers() -> NDArray[np.int64]:
    """Fanouts with a sharp end, as seasons of a player."""
    return np.minimum(np.random.default_rng(0).geometric(0.17, OWNERS), 25)


def _heavy() -> NDArray[np.int64]:
    """Fanouts of which a few owners have most, as posts of a user."""
    return np.minimum(np.random.default_rng(0).pareto(1.3, OWNERS) * 2, 3000).astype(np.int64)


def test_a_tail_that_noise_hides_invents_no_rows() -> None:
    errors = [_rows_off_by(_careers(), seed) for seed in range(20)]
    assert np.median(np.abs(errors)) < 0.03
    assert max(errors) < 0.25


def test_a_heavy_tail_keeps_about_its_rows() -> None:
    errors = [_rows_off_by(_heavy(), seed) for seed in range(20)]
    assert abs(np.median(errors)) < 0.15


@pytest.mark.parametrize("fanouts", [_careers(), _heavy()])
def test_a_public_mean_is_met(fanouts: NDArray[np.int64]) -> None:
    assert all(abs(_rows_off_by(fanouts, seed, mean=float(fanouts.mean()))) < 0.1 for seed in range(5))


@pytest.mark.parametrize("mean", [None, 2.0])
@pytest.mark.parametrize("noisy", [[5.0], [5.0, -3.0], [-1.0, -2.0, -3.0], [100.0, 30.0, -4.0, 2.0]])
def test_shares_are_a_distribution_whatever_the_noise(noisy: list[float], mean: float | None) -> None:
    found = fanout_shares(np.array(noisy), NOISE, np.arange(len(noisy) + 1), mean=mean)
    assert found.shares.min() >= 0
    assert found.shares.sum() == pytest.approx(1)


def test_gaussian_noise_is_weighed_by_squares() -> None:
    counts = _noisy(_careers(), 1)
    laplace, gaussian = (
        fanout_shares(counts, Noise(gaussian=kind, scale=NOISE.scale), EDGES, mean=None).shares
        for kind in (False, True)
    )
    assert not np.allclose(laplace, gaussian)
