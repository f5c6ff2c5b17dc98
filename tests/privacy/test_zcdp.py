"""From epsilon and delta to rho and back: what is written, and what the verifier computes from it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.privacy.zcdp import largest_rho
from privbench_verify.costs import epsilon_of

KNOWN = {
    (Fraction(16, 5), 6): 0.20805,
    (Fraction(16, 5), 9): 0.13608,
    (Fraction(16, 5), 12): 0.10067,
    (Fraction(1), 6): 0.02436,
    (Fraction(1), 9): 0.01497,
    (Fraction(1), 12): 0.01074,
}
epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=1000)
deltas = st.floats(min_value=3.01, max_value=29.9).map(lambda digits: Fraction(1, int(10**digits)))


@pytest.mark.parametrize(("epsilon", "digits"), KNOWN)
def test_known_values(epsilon: Fraction, digits: int) -> None:
    assert float(largest_rho(epsilon, Fraction(1, 10**digits))) == pytest.approx(KNOWN[epsilon, digits], abs=5e-6)


def test_the_known_way_back() -> None:
    """The figures of the paper's bound at rho 0.1; the simple bound would give 2.451."""
    assert float(epsilon_of(Fraction(1, 10), Fraction(1, 10**6))) == pytest.approx(2.142, abs=5e-4)


def least_epsilon(rho: float, delta: float) -> float:
    """The bound by brute force over many orders."""
    above = np.exp(np.linspace(-12, 25, 200_001))
    return float(np.min((1 + above) * rho - np.log1p(1 / above) - (math.log(delta) + np.log1p(above)) / above))


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.3, 5.0, 60.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-9, 1e-25])
def test_both_find_the_best_order(rho: float, delta: float) -> None:
    brute = least_epsilon(rho, delta)
    assert float(epsilon_of(Fraction(rho), Fraction(delta))) == pytest.approx(brute, rel=1e-6)
    assert float(largest_rho(Fraction(brute), Fraction(delta))) == pytest.approx(rho, rel=1e-6)


@given(epsilons, deltas)
def test_the_verifier_takes_what_is_written_and_not_more(epsilon: Fraction, delta: Fraction) -> None:
    rho = largest_rho(epsilon, delta)
    found = epsilon_of(rho, delta)
    assert found <= epsilon
    assert epsilon_of(rho * (1 + Fraction(1, 10**8)), delta) > epsilon


def test_nothing_spent_is_nothing_lost() -> None:
    assert epsilon_of(Fraction(0), Fraction(1, 10**9)) < Fraction(1, 10**12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1), (1, 0), (1, 2), (-1, 1)])
def test_what_is_no_promise_has_no_rho(epsilon: int, delta: int) -> None:
    with pytest.raises(ValueError, match="no rho"):
        largest_rho(Fraction(epsilon), Fraction(delta, 2) if delta == 1 else Fraction(delta))


def test_dp_accounting_agrees() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    event = pytest.importorskip("dp_accounting").GaussianDpEvent(noise_multiplier=5**0.5)  # rho = 0.1
    accountant = rdp.RdpAccountant(orders=[1 + x / 50 for x in range(1, 2000)])
    accountant.compose(event)
    ours = float(epsilon_of(Fraction(1, 10), Fraction(1, 10**6)))
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)
    assert ours >= pytest.importorskip("dp_accounting.pld").PLDAccountant().compose(event).get_epsilon(1e-6)
