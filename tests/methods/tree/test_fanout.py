"""FanoutLink from noisy histograms: rows are neither lost nor invented where noise hides the tail."""

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.methods.tree.fanout import fanout_shares
from privbench.privacy.calibrate import Noise
from privbench.spn.fanouts import bin_means, bin_of, fanout_edges

EDGES = fanout_edges(8191)
OWNERS = 20_000
NOISE = Noise(gaussian=False, scale=40.0)


def _noisy(fanouts: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    counts = np.bincount(bin_of(fanouts, EDGES), minlength=len(EDGES) - 1)
    return counts + np.random.default_rng(seed).laplace(0, NOISE.scale, len(counts))


def _rows_off_by(fanouts: NDArray[np.int64], seed: int, mean: float | None = None) -> float:
    found = fanout_shares(_noisy(fanouts, seed), NOISE, EDGES, total=float(len(fanouts)), mean=mean)
    return float(found.shares @ bin_means(EDGES, found.exponent)) / float(fanouts.mean()) - 1


def _careers() -> NDArray[np.int64]:
    """FanoutLink with a sharp end, as seasons of a player."""
    return np.minimum(np.random.default_rng(0).geometric(0.17, OWNERS), 25)


def _heavy() -> NDArray[np.int64]:
    """FanoutLink of which a few owners have most, as posts of a user."""
    return np.minimum(np.random.default_rng(0).pareto(1.3, OWNERS) * 2, 3000).astype(np.int64)


def test_a_tail_that_noise_hides_invents_no_rows() -> None:
    errors = [_rows_off_by(_careers(), seed) for seed in range(20)]
    assert np.median(np.abs(errors)) < 0.03
    assert max(errors) < 0.25


def test_a_heavy_tail_keeps_about_its_rows() -> None:
    errors = [_rows_off_by(_heavy(), seed) for seed in range(20)]
    assert np.median(np.abs(errors)) < 0.25
    assert max(errors) < 1


@pytest.mark.parametrize(("share", "most"), [(0.1, 10), (0.05, 4), (0.05, 1)])
def test_few_owners_with_rows_keep_about_their_rows(share: float, most: int) -> None:
    """Hardly a bin stands out of the noise: the number of owners without rows, and short tails, have to do."""
    rng = np.random.default_rng(0)
    fanouts = np.where(rng.random(OWNERS) < share, rng.integers(1, most + 1, OWNERS), 0)
    errors = [_rows_off_by(fanouts, seed) for seed in range(20)]
    assert np.median(np.abs(errors)) < 0.25


def test_owners_of_two_kinds_keep_their_rows() -> None:
    """Few of the first kind have just three rows, which noise hides; that hides nothing of the second kind."""
    rng = np.random.default_rng(0)
    fanouts = np.where(rng.random(OWNERS) < 0.7, rng.geometric(0.5, OWNERS), rng.integers(180, 350, OWNERS))
    fanouts[(fanouts == 3) & (rng.random(OWNERS) < 0.9)] = 4
    errors = [_rows_off_by(fanouts, seed) for seed in range(20)]
    assert np.max(np.abs(errors)) < 0.1


def test_hardly_any_rows_stay_few() -> None:
    fanouts = (np.arange(OWNERS) < 40).astype(np.int64)
    rows = [fanouts.mean() * OWNERS * (1 + _rows_off_by(fanouts, seed)) for seed in range(20)]
    assert np.median(rows) < 100
    assert np.quantile(rows, 0.9) < 500


def test_inside_bins_the_density_goes_on_as_between_them() -> None:
    """Without noise to speak of, means of bins show in the number of rows alone."""
    for fanouts in (_careers(), np.random.default_rng(0).integers(0, 11, OWNERS)):
        counts = np.bincount(bin_of(fanouts, EDGES), minlength=len(EDGES) - 1).astype(np.float64)
        found = fanout_shares(counts, Noise(gaussian=False, scale=0.1), EDGES, total=OWNERS, mean=None)
        assert float(found.shares @ bin_means(EDGES, found.exponent)) == pytest.approx(fanouts.mean(), rel=0.01)


@pytest.mark.parametrize("fanouts", [_careers(), _heavy()])
def test_a_public_mean_is_met(fanouts: NDArray[np.int64]) -> None:
    assert all(abs(_rows_off_by(fanouts, seed, mean=float(fanouts.mean()))) < 0.1 for seed in range(5))


@pytest.mark.parametrize("mean", [None, 2.0])
@pytest.mark.parametrize("noisy", [[5.0], [5.0, -3.0], [-1.0, -2.0, -3.0], [100.0, 30.0, -4.0, 2.0]])
def test_shares_are_a_distribution_whatever_the_noise(noisy: list[float], mean: float | None) -> None:
    found = fanout_shares(np.array(noisy), NOISE, np.arange(len(noisy) + 1), total=max(sum(noisy), 1.0), mean=mean)
    assert found.shares.min() >= 0
    assert found.shares.sum() == pytest.approx(1)


def test_gaussian_noise_is_weighed_by_squares() -> None:
    counts = _noisy(_careers(), 1)
    laplace, gaussian = (
        fanout_shares(counts, Noise(gaussian=kind, scale=NOISE.scale), EDGES, total=OWNERS, mean=None).shares
        for kind in (False, True)
    )
    assert not np.allclose(laplace, gaussian)
