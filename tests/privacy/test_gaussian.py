import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privbench.errors import BudgetError
from privbench.privacy.gaussian import _bernoulli_half_square, discrete_gaussian
from privbench.privacy.noise import LARGEST_DENOMINATOR, LARGEST_SCALE, WORD, TestEntropy, root_scale
from privbench_verify.costs import epsilon_of

from .audit import gaussian_pmf, goodness, renyi
from .test_noise import Script

ALPHA = 1e-6
RUNS = 200_000
SCALES = [Fraction(1, 3), Fraction(2, 3), Fraction(1), Fraction(7, 2), Fraction(20), Fraction(2000)]
ORDERS = (1.01, 1.5, 2.0, 4.0, 10.0, 40.0)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_sampler_follows_the_closed_form(scale: Fraction) -> None:
    samples = discrete_gaussian(RUNS, scale, TestEntropy(11))
    assert samples.dtype == np.int64
    assert goodness(samples, scale, pmf=gaussian_pmf) > ALPHA


@pytest.mark.mostly_slow
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_the_test_sees_ten_percent(scale: Fraction, wrong: float) -> None:
    samples = discrete_gaussian(RUNS, scale, TestEntropy(12))
    assert goodness(samples, float(scale) * wrong, pmf=gaussian_pmf) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", [Fraction(LARGEST_SCALE), Fraction(LARGEST_SCALE - 1, 2**17), root_scale(Fraction(2) ** 79)]
)
def test_large_scales_are_normal(scale: Fraction) -> None:
    samples = discrete_gaussian(RUNS, scale, TestEntropy(13)) / float(scale)
    assert stats.kstest(samples, "norm").pvalue > ALPHA
    assert stats.kstest(samples, "norm", (0, 1.03)).pvalue < ALPHA


def test_a_scale_far_below_one_draws_zero() -> None:
    assert not discrete_gaussian(1000, Fraction(1, 2**55), TestEntropy(14)).any()


def test_opendp_gives_the_same_law() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=3.0)([0] * 20_000))
    ours = discrete_gaussian(20_000, Fraction(3), TestEntropy(15))
    cells = np.arange(-7, 9)  # the outer bins take the tails
    counts = [np.bincount(np.searchsorted(cells, x), minlength=17) for x in (ours, theirs)]
    assert stats.chi2_contingency(counts).pvalue > ALPHA
    assert goodness(theirs, 3, pmf=gaussian_pmf) > ALPHA


def test_draws_are_independent_of_their_neighbours() -> None:
    signs = np.sign(discrete_gaussian(RUNS, Fraction(2), TestEntropy(16))) + 1
    table = np.bincount(signs[:-1:2] * 3 + signs[1::2], minlength=9).reshape(3, 3)
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_any_number_of_draws() -> None:
    for size in (0, 1, 7, 70_000):
        assert discrete_gaussian(size, Fraction(4), TestEntropy(1)).shape == (size,)


def test_a_scale_that_cannot_be_drawn_is_refused() -> None:
    for bad in (Fraction(1, 2**61), Fraction(2**41), Fraction(-1), 2.0):
        with pytest.raises(ValueError, match="round_scale"):
            discrete_gaussian(1, bad, TestEntropy(1))  # type: ignore[arg-type]


def test_the_half_square_counts_the_steps() -> None:
    half = np.array([1], dtype=np.uint64)
    go, stop = 0, WORD - 9  # below the largest multiples that are used
    assert _bernoulli_half_square(half, 2, Script(stop, go)).tolist() == [True]
    assert _bernoulli_half_square(half, 2, Script(go, stop)).tolist() == [True]
    assert _bernoulli_half_square(half, 2, Script(go, go, go, stop)).tolist() == [False]
    assert _bernoulli_half_square(half * np.uint64(0), 2, Script()).tolist() == [True]
    # at step 1 the second coin is 1 of 4: a word below a quarter goes on
    assert _bernoulli_half_square(half, 2, Script(go, WORD // 4 - 1, stop, stop)).tolist() == [False]
    assert _bernoulli_half_square(half, 2, Script(go, WORD // 4)).tolist() == [True]


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 2), (6, 7), (2**40 - 1, 2**40)])
def test_the_half_square_follows_its_law(numerator: int, denominator: int) -> None:
    hits = _bernoulli_half_square(np.full(RUNS, numerator, dtype=np.uint64), denominator, TestEntropy(17)).sum()
    assert stats.binomtest(int(hits), RUNS, math.exp(-((numerator / denominator) ** 2) / 2)).pvalue > ALPHA


# -- what it costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(1), Fraction(5, 2), Fraction(7)], ids=str)
def test_a_moved_count_loses_no_more_than_rho(scale: Fraction) -> None:
    for move, order in product((1, 2, 3), ORDERS):
        claimed = order * move**2 / (2 * float(scale) ** 2)
        found = _shifted_divergence(move, scale, order)
        assert found <= claimed * (1 + 1e-9)
        assert found > 0.95 * claimed or scale < 1


def _shifted_divergence(move: int, scale: Fraction, order: float) -> float:
    """In logarithms, for far tails underflow: log sum of p**order * q**(1 - order)."""
    values = np.arange(-250, 251)
    left, right = (-((values - shift) ** 2) / (2 * float(scale) ** 2) for shift in (move, 0))
    whole = math.log(1 / gaussian_pmf(np.array([0]), scale)[0])
    terms = order * (left - whole) + (1 - order) * (right - whole)
    return float((terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1))


def test_replacing_what_only_adds_moves_the_square_twice_and_no_more() -> None:
    """All non-negative contributions of L1 norm at most 3 to three counts: |a - b|**2 <= 2 * 9, and it is reached."""
    vectors = [np.array(v) for v in product(range(4), repeat=3) if sum(v) <= 3]
    assert max(int(((a - b) ** 2).sum()) for a in vectors for b in vectors) == 2 * 9
    signed = [np.array(v) for v in product(range(-3, 4), repeat=3) if sum(map(abs, v)) <= 3]
    assert max(int(((a - b) ** 2).sum()) for a in signed for b in signed) == 4 * 9


def test_two_replaced_counts_lose_twice_the_rho() -> None:
    scale, values = Fraction(3, 2), np.arange(-40, 41)
    law, up, down = (gaussian_pmf(values - shift, scale) for shift in (0, 1, -1))
    joint, moved = np.outer(law, law), np.outer(up, down)
    for order in (1.5, 2.0, 5.0):
        assert renyi(moved.ravel(), joint.ravel(), order) <= order * 2 / (2 * float(scale) ** 2) * (1 + 1e-9)


def test_an_audit_passes_the_sampler_and_catches_half_the_noise() -> None:
    """Tail events: P(E) <= e**epsilon Q(E) + delta, with bounds that hold with confidence 1 - 1e-4."""
    scale, delta = Fraction(4), Fraction(1, 100)
    epsilon = float(epsilon_of(1 / (2 * scale**2), delta))

    def worst(used: Fraction) -> float:
        left, right = 1 + discrete_gaussian(RUNS, used, TestEntropy(18)), discrete_gaussian(RUNS, used, TestEntropy(19))
        found = []
        for edge in range(-5, 6):
            hits, misses = int((left >= edge).sum()), int((right >= edge).sum())
            low = stats.beta.ppf(5e-5, hits, RUNS - hits + 1)
            high = stats.beta.ppf(1 - 5e-5, misses + 1, RUNS - misses)
            found.append(low - math.exp(epsilon) * high)
        return max(found)

    assert worst(scale) <= delta
    assert worst(scale / 2) > delta


# -- scales --------------------------------------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=LARGEST_SCALE**2))
def test_roots_are_rounded_up_and_can_be_drawn(square: Fraction) -> None:
    root = root_scale(square)
    assert root**2 >= square
    assert root.numerator <= LARGEST_SCALE
    assert root.denominator <= LARGEST_DENOMINATOR
    if square >= Fraction(1, 2**40):
        assert root**2 - square <= square / 2**36
    assert discrete_gaussian(2, root, TestEntropy(1)).size == 2


def test_roots_that_are_none() -> None:
    with pytest.raises(ValueError, match="positive"):
        root_scale(Fraction(0))
    with pytest.raises(BudgetError, match="Raise epsilon"):
        root_scale(Fraction(LARGEST_SCALE**2 + 1))
