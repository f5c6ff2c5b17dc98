"""Statistical audits of the mechanisms, and mechanisms broken on purpose, which the audits must catch."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from privbench.privacy.noise import Entropy, TestEntropy, discrete_laplace
from privbench.privacy.select import permute_and_flip

from .audit import Samples, loss_bound

Mechanism = Callable[[int, Entropy], Samples]
"""A statistic of the outputs on one database, for so many runs."""


def count(true: int, *, scale: Fraction) -> Mechanism:
    return lambda runs, entropy: true + discrete_laplace(runs, scale, entropy)


def moved_row(true: tuple[int, int], *, scale: Fraction) -> Mechanism:
    """Two noisy counts, as the event that the first is up and the second is down."""

    def run(runs: int, entropy: Entropy) -> Samples:
        first, second = (t + discrete_laplace(runs, scale, entropy) for t in true)
        return ((first >= 1) & (second <= 0)).astype(np.int64)

    return run


def reference_geometric(true: int, *, scale: Fraction) -> Mechanism:
    """The sampler of the paper's public code: a one-sided geometric with a random sign."""

    def run(runs: int, entropy: Entropy) -> Samples:
        uniform = (entropy.words(runs) >> np.uint64(11)).astype(np.float64) * 2**-53
        magnitude = np.floor(-np.log1p(-uniform) * float(scale)).astype(np.int64)
        sign = np.where(entropy.words(runs) >= np.uint64(2**63), 1, -1)
        return true + sign * magnitude

    return run


def choice(scores: list[int], *, scale: Fraction) -> Mechanism:
    given = np.array(scores)
    return lambda runs, entropy: np.array(
        [permute_and_flip(given, scale=scale, entropy=entropy) for _ in range(runs)], dtype=np.int64
    )


def bound(left: Mechanism, right: Mechanism, runs: int) -> float:
    entropy = TestEntropy(31)
    return loss_bound(left(runs, entropy), right(runs, entropy))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_counts_lose_epsilon_and_no_more(epsilon: Fraction) -> None:
    found = bound(count(0, scale=1 / epsilon), count(1, scale=1 / epsilon), 200_000)
    assert epsilon / 2 < found <= epsilon


def test_a_moved_row_loses_epsilon_at_sensitivity_two() -> None:
    found = bound(moved_row((1, 0), scale=Fraction(2)), moved_row((0, 1), scale=Fraction(2)), 100_000)
    assert 0.8 < found <= 1


@pytest.mark.slow
def test_a_choice_loses_epsilon_and_no_more() -> None:
    found = bound(choice([0, 0], scale=Fraction(2)), choice([1, -1], scale=Fraction(2)), 5_000)
    assert 0.6 < found <= 1


def test_an_audit_of_equal_laws_finds_nothing() -> None:
    assert bound(count(0, scale=Fraction(2)), count(0, scale=Fraction(2)), 50_000) <= 0


def test_the_wrong_geometric_is_caught() -> None:
    for epsilon in (Fraction(1, 10), Fraction(1)):
        found = bound(reference_geometric(0, scale=1 / epsilon), reference_geometric(1, scale=1 / epsilon), 20_000)
        assert epsilon + 0.3 < found <= epsilon + math.log(2)


@pytest.mark.slow
def test_a_choice_without_the_factor_two_is_caught() -> None:
    found = bound(choice([0, 0], scale=Fraction(1)), choice([1, -1], scale=Fraction(1)), 5_000)
    assert 1 < found <= 2


def test_sensitivity_one_instead_of_two_is_caught() -> None:
    found = bound(moved_row((1, 0), scale=Fraction(1)), moved_row((0, 1), scale=Fraction(1)), 20_000)
    assert 1 < found <= 2


def test_ten_percent_too_little_noise_is_caught() -> None:
    scale = Fraction(9, 10)
    found = bound(count(0, scale=scale), count(1, scale=scale), 200_000)
    assert 1 < found <= 1 / scale


@pytest.mark.slow
def test_ten_percent_too_little_noise_is_caught_at_a_tenth() -> None:
    scale = Fraction(9)
    found = bound(count(0, scale=scale), count(1, scale=scale), 4_000_000)
    assert 0.1 < found <= 1 / scale


@pytest.mark.slow
def test_counts_of_many_runs_lose_no_more() -> None:
    found = bound(count(0, scale=Fraction(1)), count(1, scale=Fraction(1)), 4_000_000)
    assert 0.98 < found <= 1
