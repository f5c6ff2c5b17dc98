"""Keys that were not counted: their number and their unevenness from what was counted."""

import numpy as np
import pytest

from privbench.methods.tree.keys import counted_keys, rates
from privbench.spn.reference_link import EVEN, MOST_MORE

TARGETS = 50_000


@pytest.mark.parametrize("shape", [0.1, 0.5, 2.0])
def test_the_shape_is_found_again(shape: float) -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(shape, 0.4 / shape, TARGETS))
    found = rates(mean=counts.mean(), none=(counts == 0).mean(), deviation=0.0, keys=3e4, counted=1e4)
    assert found.shape == pytest.approx(shape, rel=0.15)
    assert found.more == pytest.approx(2)


def test_what_noise_may_have_made_is_even() -> None:
    uneven = {"mean": 0.4, "none": 0.8, "keys": 3e4, "counted": 1e4}
    assert rates(**uneven, deviation=0.0).shape < 1
    assert rates(**uneven, deviation=0.01).shape > rates(**uneven, deviation=0.0).shape
    assert rates(**uneven, deviation=0.1).shape == EVEN
    assert rates(mean=0.4, none=np.exp(-0.4) - 0.01, deviation=0.0, keys=3e4, counted=1e4).shape == EVEN


@pytest.mark.parametrize("none", [-1.0, 0.0, 1.0, 2.0])
@pytest.mark.parametrize("mean", [0.0, 1e-9, 1e6])
def test_any_numbers_give_rates(mean: float, none: float) -> None:
    assert 0 < rates(mean=mean, none=none, deviation=0.0, keys=0.0, counted=1.0).shape <= EVEN
    assert rates(mean=mean, none=none, deviation=0.0, keys=1e12, counted=1.0).more == MOST_MORE


def test_where_all_keys_are_counted_none_are_added() -> None:
    assert counted_keys(80.0, keys=100.0, entities=100.0, valid_share=1.0) == 100
    assert rates(mean=0.5, none=0.6, deviation=0.0, keys=100.0, counted=100.0).more == 0


def test_counted_keys_are_bounded_by_what_is_known_better() -> None:
    assert counted_keys(500.0, keys=1000.0, entities=300.0, valid_share=0.5) == 300
    assert counted_keys(20.0, keys=1000.0, entities=300.0, valid_share=0.5) == 150
    assert counted_keys(200.0, keys=1000.0, entities=300.0, valid_share=0.5) == 200
    assert counted_keys(0.0, keys=0.0, entities=0.0, valid_share=0.0) == 1
