"""Thresholds: the bound holds and is close, values come out by its law, and one entity alone hardly ever."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.privacy.calibrate import calibrate, threshold_of
from privbench.privacy.events import FINE_GRID, Event, Mechanism, PrivacyMeasure
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.queries import FrequentValues, Histogram
from privbench.privacy.thresholds import least_threshold, passing, tail_probability
from privbench_verify.costs import tail_probability as verified_probability

STRINGS = FrequentValues(table="t", column="a")
SCALES = [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20), Fraction(333, 2)]


def exact(scale: float, threshold: int) -> float:
    """The chance by adding up the law, term by term."""
    reach = range(-int(40 * scale) - 40, int(40 * scale) + 41)
    whole = sum(exp(-(k**2) / (2 * scale**2)) for k in reach)
    return sum(exp(-(k**2) / (2 * scale**2)) for k in reach if 1 + k >= threshold) / whole


@pytest.mark.parametrize("scale", SCALES)
def test_the_chance_is_a_bound_and_close(scale: Fraction) -> None:
    for deviations in (1, 3, 6, 9):
        threshold = 2 + int(deviations * scale)
        true = exact(float(scale), threshold)
        found = float(tail_probability(scale, threshold))
        assert true * (1 - 1e-12) <= found  # floats add up to no more than that
        if deviations >= 6 and scale > 1:
            assert found <= 1.5 * true


@given(st.fractions(Fraction(1, 50), Fraction(10**6)), st.integers(8, 40))
@settings(max_examples=50, deadline=None)
def test_the_least_threshold_is_the_least(scale: Fraction, digits: int) -> None:
    chance = Fraction(1, 10**digits)
    threshold = least_threshold(scale, chance)
    assert tail_probability(scale, threshold) <= chance
    assert threshold == 2 or tail_probability(scale, threshold - 1) > chance
    assert verified_probability(scale, threshold) <= chance  # an honest threshold passes the verifier


def test_absurd_thresholds_are_refused() -> None:
    with pytest.raises(ValueError, match="would hide no value"):
        tail_probability(Fraction(1), 1)
    with pytest.raises(ValueError, match="no threshold"):
        least_threshold(Fraction(1), Fraction(0))


def test_values_come_out_with_the_chance_of_their_counts() -> None:
    """The law of what is released, against the sum of the law of the noise."""
    scale, threshold, tries = Fraction(3), 10, 200_000
    for count in (1, 5, 10, 16):
        kept, noisy = passing(np.full(tries, count), threshold=threshold, scale=scale, entropy=FixedEntropy(count))
        chance = exact(3.0, threshold - count + 1)
        assert kept.mean() == pytest.approx(chance, abs=5 * (chance / tries) ** 0.5 + 1e-9)
        assert noisy.min(initial=threshold) >= threshold


def test_nothing_that_is_not_there_comes_out() -> None:
    kept, noisy = passing(np.zeros(0, np.int64), threshold=2, scale=Fraction(9), entropy=FixedEntropy(0))
    assert kept.size == noisy.size == 0


@pytest.mark.slow
@pytest.mark.parametrize("measure", [PrivacyMeasure.RHO, PrivacyMeasure.RHO_REPLACE])
def test_the_audit_of_one_entity_alone(measure: PrivacyMeasure) -> None:
    """A value of one entity comes out no more often than delta; with another's it is as with any count of 1 and 2."""
    delta, tries = Fraction(1, 100), 400_000
    event = calibrate(STRINGS, measure, Fraction(1, 4), delta=delta)
    kept, _ = passing(np.ones(tries, np.int64), threshold=event.threshold, scale=event.scale, entropy=FixedEntropy(3))
    assert kept.mean() <= float(delta)
    below, _ = passing(
        np.ones(tries, np.int64), threshold=event.threshold - 2, scale=event.scale, entropy=FixedEntropy(3)
    )
    assert below.mean() > float(delta)  # a threshold that is too low would have been seen
    assert threshold_of(measure, Fraction(1, 4), delta=delta) == event.threshold


def test_replacing_costs_twice_the_rho_and_one_delta() -> None:
    delta = Fraction(1, 10**9)
    added, replaced = (
        calibrate(STRINGS, measure, Fraction(1, 100), delta=delta)
        for measure in (PrivacyMeasure.RHO, PrivacyMeasure.RHO_REPLACE)
    )
    assert float(replaced.scale / added.scale) == pytest.approx(2**0.5)
    assert (added.delta, replaced.delta) == (delta, delta)
    assert added.cost <= added.amount == Fraction(FINE_GRID // 100, FINE_GRID)


WRONG: dict[str, dict[str, Any]] = {
    "no threshold": {"threshold": 0},
    "too low a threshold": {"threshold": 50},
    "no delta": {"delta": Fraction(0)},
    "too little noise": {"scale": Fraction(5)},
    "another mechanism": {"mechanism": Mechanism.DISCRETE_GAUSSIAN},
    "paid for in epsilon": {"measure": PrivacyMeasure.EPSILON},
    "weights": {"query": Histogram(table="t", axes=())},
}


@pytest.mark.parametrize("name", WRONG)
def test_an_event_checks_itself(name: str) -> None:
    good: dict[str, Any] = {
        "query": STRINGS,
        "mechanism": Mechanism.FREQUENT_VALUES,
        "scale": Fraction(20),
        "amount": Fraction(1, 256),
        "measure": PrivacyMeasure.RHO_REPLACE,
        "threshold": 150,
        "delta": Fraction(1, 10**9),
    }
    assert Event(**good).cost <= Fraction(1, 256)
    with pytest.raises(ValueError, match=r"t: (heavy hitters|histogram)|would hide no value"):
        Event(**{**good, **WRONG[name]})
