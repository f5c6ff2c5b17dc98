"""Cells that hold more than noise, and the cells they are put into."""

import numpy as np
import pytest

from privbench.methods.domains.cells import (
    FALSE,
    Cells,
    cut_heavy,
    cutoff,
    doubling_cells,
    equal_cells,
    merge_light,
    occupied,
)
from privbench.privacy.calibrate import Noise
from privbench.privacy.vault import Measured

LAPLACE = Noise(gaussian=False, scale=10.0)
GAUSS = Noise(gaussian=True, scale=10.0)


def _measured(*counts: float, noise: Noise = LAPLACE) -> Measured:
    return Measured(values=np.array(np.rint(counts), np.int64), noise=noise, unit=1)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSS])
@pytest.mark.parametrize("terms", [1, 2, 8, 16])
def test_noise_passes_a_cutoff_as_rarely_as_it_should(noise: Noise, terms: int) -> None:
    rng = np.random.default_rng(0)
    shape = (100_000, terms)
    drawn = rng.normal(0, 10, shape) if noise.gaussian else rng.laplace(0, 10, shape)
    rate = float((drawn.sum(axis=1) > cutoff(noise, terms, 0.01)).mean())
    assert 0.0002 < rate < 0.0115  # a bound, and not a useless one


def test_empty_histograms_are_rarely_taken_for_occupied() -> None:
    rng = np.random.default_rng(1)
    found = sum(occupied(_measured(*rng.laplace(0, 10, 129))) is not None for _ in range(2_000))
    assert found < 2 * FALSE * 2_000


def test_heavy_cells_light_groups_and_near_cells_are_found() -> None:
    counts = np.zeros(60)
    counts[20] = 5_000
    assert occupied(_measured(*counts)) == (20, 20)
    counts[21], counts[19] = 20, 5
    assert occupied(_measured(*counts)) == (20, 21)
    counts[40:48] = 40  # none of them stands out, all together do
    first, last = occupied(_measured(*counts)) or (0, 0)
    assert first == 20
    assert 44 <= last <= 47
    assert occupied(_measured(*np.zeros(60))) is None


def test_a_heavy_cell_does_not_take_its_noisy_neighbourhood_with_it() -> None:
    counts = np.zeros(60)
    counts[20], counts[30] = 100_000, 14
    assert occupied(_measured(*counts)) == (20, 20)


def test_a_barrier_is_crossed_by_clear_evidence_alone() -> None:
    counts = np.zeros(60)
    counts[20], counts[19] = 5_000, 30
    assert occupied(_measured(*counts)) == (19, 20)
    assert occupied(_measured(*counts), barrier=20) == (20, 20)
    counts[19] = 3_000
    assert occupied(_measured(*counts), barrier=20) == (19, 20)


def test_partitions_cover_all_ticks_once() -> None:
    for cells in (
        equal_cells(-5, 10_000),
        equal_cells(3, 3),
        doubling_cells(0, 2**20 - 1, [0, *(2**k for k in range(20))]),
        doubling_cells(-(2**63), 2**63 - 1, [-(2**40), 0, 2**40]),
    ):
        assert list(cells.starts) == sorted(set(cells.starts))
        assert all(a <= b for a, b in zip(cells.starts, cells.ends, strict=True))
        assert len(cells.starts) <= 512
    assert equal_cells(-5, 10_000).starts[0] == -5


def test_heavy_cells_are_cut_and_light_ones_put_together() -> None:
    cells = Cells(starts=(0, 100, 200, 201), last=299)
    fine = cut_heavy(cells, np.array([5.0, 100.0, 100.0, 0.0]), target=25.0)
    assert fine.starts == (0, 100, 112, 125, 137, 150, 162, 175, 187, 200, 201)  # a single tick stays one
    merged = merge_light(Cells(starts=(0, 1, 2, 3, 4, 5), last=9), np.array([1.0, 2, 30, 9, 9, 1]), target=10.0)
    assert merged.starts == (0, 2, 3, 5)
