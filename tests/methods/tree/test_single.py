"""Histograms of single columns: what each gets of the budget, and NULL beside many values."""

import numpy as np
import pytest

from privbench.methods.tree.single import Single, column_parts, estimate
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import Feature, Own


def _feature(size: int, *, apart: bool = False) -> Feature:
    return Feature(name="a", size=size, ordered=True, source=Own("a"), apart=apart)


def test_the_share_of_null_has_the_noise_of_its_own_count() -> None:
    rng, noise = np.random.default_rng(6), Noise(gaussian=False, scale=50.0)
    true = np.append(np.full(100, 2.5), 4750.0)
    errors = []
    for _ in range(40):
        noisy = (true + rng.laplace(0, noise.scale, len(true))).reshape(1, -1)
        single = Single(feature=_feature(len(true), apart=True), noisy=noisy, noise=noise)
        errors.append(estimate([single], entities=5000.0, means={}).counts[0][-1] - 4750)
    assert np.sqrt(np.mean(np.square(errors))) < 1.3 * np.sqrt(noise.variance)


@pytest.mark.parametrize(("paired", "power"), [(True, 1 / 2), (False, 1 / 3)])
def test_columns_of_few_codes_get_more_where_there_is_nothing_for_pairs(paired: bool, power: float) -> None:
    few, many, more = column_parts([_feature(2), _feature(64), _feature(900)], paired=paired)
    assert many / few == pytest.approx(32**power)
    assert more == many
