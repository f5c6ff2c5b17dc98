"""Histograms of single columns: what each gets of the budget, and NULL beside many values."""

import numpy as np
import pytest

from privbench.methods.tree.single import Single, column_parts, estimate
from privbench.privacy.calibrate import Noise
from privbench.privacy.features import Feature, KeyBlock, Own, null_key, own_key

from .tails import OWNER, REFERENCE


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


@pytest.mark.parametrize(("noisy", "wanted"), [([700.0, 140.0, 200.0], 0.0), ([700.0, 260.0, 200.0], 260.0)])
def test_keys_to_the_row_above_that_noise_may_have_made_are_none(noisy: list[float], wanted: float) -> None:
    """Three scales of noise tell."""
    feature = own_key(REFERENCE, (OWNER,))
    single = Single(feature=feature, noisy=np.array([noisy]), noise=Noise(gaussian=False, scale=50.0))
    (counts,) = estimate([single], entities=None, means={}).counts
    assert counts[1] == pytest.approx(wanted, abs=40)
    assert counts[1] == 0 or wanted
    assert counts.sum() == pytest.approx(sum(noisy))
    assert counts[2] == pytest.approx(200, abs=40)


@pytest.mark.parametrize(
    ("noisy", "scale", "has_nulls"),
    [
        ([900.0, 900.0, 900.0, 149.0], 50.0, False),
        ([900.0, 900.0, 900.0, -80.0], 50.0, False),
        ([900.0, 900.0, 900.0, 200.0], 50.0, True),
        ([30.0, 30.0, 30.0, 60.0], 50.0, True),
        ([5.0, 0.0, 3.0, 3000.0], 50.0, True),
    ],
    ids=["noise", "less than none", "clear", "noise hides all", "nearly all"],
)
@pytest.mark.parametrize("kind", ["column", "key", "null key"])
def test_nulls_that_noise_may_have_made_are_none(noisy: list[float], scale: float, has_nulls: bool, kind: str) -> None:
    """Three scales of noise tell, if these are few beside all rows."""
    features = {
        "column": _feature(4, apart=True),
        "key": Feature(name="k", size=4, ordered=False, source=KeyBlock(REFERENCE, 3), apart=True),
        "null key": null_key(REFERENCE),
    }
    counted = np.array([noisy if kind != "null key" else [sum(noisy[:3]), noisy[3]]])
    single = Single(feature=features[kind], noisy=counted, noise=Noise(gaussian=False, scale=scale))
    (counts,) = estimate([single], entities=max(counted.sum(), 1.0), means={}).counts
    assert (counts[-1] > 0) == has_nulls
    assert counts.sum() == pytest.approx(counted.sum())
    assert (counts[:-1] > 0).all()


def test_a_column_that_cannot_be_null_keeps_its_last_value() -> None:
    noisy = np.array([[900.0, 900.0, 900.0, 40.0]])
    single = Single(feature=_feature(4), noisy=noisy, noise=Noise(gaussian=False, scale=50.0))
    assert estimate([single], entities=2740.0, means={}).counts[0][-1] > 0


@pytest.mark.parametrize(("paired", "power"), [(True, 1 / 2), (False, 1 / 3)])
def test_columns_of_few_codes_get_more_where_there_is_nothing_for_pairs(paired: bool, power: float) -> None:
    few, many, more = column_parts([_feature(2), _feature(64), _feature(900)], paired=paired)
    assert many / few == pytest.approx(32**power)
    assert more == many
