from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privbench.errors import BudgetError
from privbench.privacy.noise import (
    LARGEST_DENOMINATOR,
    LARGEST_SCALE,
    WORD,
    OsEntropy,
    TestEntropy,
    bernoulli_exp,
    discrete_laplace,
    round_scale,
    run_lengths,
    uniform,
)

from .audit import goodness, laplace_pmf

ALPHA = 1e-6
UNSEEDED = 1e-10
"""For noise that is other in every run: so rarely does a sound sampler fail."""
RUNS = 200_000
SCALES = [Fraction(1, 3), Fraction(2, 3), Fraction(1), Fraction(7, 2), Fraction(20), Fraction(2000)]


class Script:
    """Entropy that hands out the given words, and fails when asked for more."""

    private = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        assert count <= len(self.left)
        now, self.left = self.left[:count], self.left[count:]
        return np.array(now, dtype=np.uint64)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_sampler_follows_the_closed_form(scale: Fraction) -> None:
    samples = discrete_laplace(RUNS, scale, TestEntropy(11))
    assert samples.dtype == np.int64
    assert goodness(samples, scale) > ALPHA


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_the_test_sees_thirty_percent(scale: Fraction, wrong: float) -> None:
    samples = discrete_laplace(RUNS, scale, TestEntropy(12))
    assert goodness(samples, float(scale) * wrong) < UNSEEDED


def test_a_rounded_scale_is_drawn_with_many_digits() -> None:
    scale = round_scale(Fraction(20) + Fraction(1, 3**50))
    assert scale.numerator > 2**38
    assert goodness(discrete_laplace(RUNS, scale, TestEntropy(13)), 20) > ALPHA


def test_the_operating_system_gives_the_same_law() -> None:
    assert goodness(discrete_laplace(RUNS, Fraction(5, 2), OsEntropy()), 2.5) > UNSEEDED


def test_opendp_gives_the_same_law() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=3.0)([0] * 20_000))
    ours = discrete_laplace(20_000, Fraction(3), TestEntropy(14))
    cells = np.arange(-9, 11)  # the outer bins take the tails
    counts = [np.bincount(np.searchsorted(cells, x), minlength=21) for x in (ours, theirs)]
    assert stats.chi2_contingency(counts).pvalue > UNSEEDED
    assert goodness(theirs, 3) > UNSEEDED


def test_draws_are_independent_of_their_neighbours() -> None:
    samples = discrete_laplace(RUNS, Fraction(2), TestEntropy(15))
    signs = np.sign(samples) + 1
    table = np.bincount(signs[:-1:2] * 3 + signs[1::2], minlength=9).reshape(3, 3)
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_any_number_of_draws() -> None:
    for size in (0, 1, 7, 70_000):
        assert discrete_laplace(size, Fraction(4), TestEntropy(1)).shape == (size,)


def test_entropy() -> None:
    assert OsEntropy().private
    assert not TestEntropy(1).private
    assert np.array_equal(TestEntropy(5).words(4), TestEntropy(5).words(4))
    assert not np.array_equal(OsEntropy().words(4), OsEntropy().words(4))


def test_uniform_refuses_the_words_that_would_favour_small_numbers() -> None:
    width = WORD // 3
    drawn = uniform(3, 4, Script(0, WORD - 1, width, 3 * width - 1, 2 * width))  # WORD - 1 is drawn again
    assert drawn.tolist() == [0, 2, 1, 2]


def test_uniform_over_one_needs_no_words() -> None:
    assert uniform(1, 3, Script()).tolist() == [0, 0, 0]


def test_bernoulli_exp_counts_the_steps() -> None:
    half = np.array([1], dtype=np.uint64)
    go, stop = 0, WORD - 5  # below the largest multiple of 2, 4 and 6
    assert bernoulli_exp(half, 2, Script(stop)).tolist() == [True]
    assert bernoulli_exp(half, 2, Script(go, stop)).tolist() == [False]
    assert bernoulli_exp(half, 2, Script(go, go, stop)).tolist() == [True]
    assert bernoulli_exp(half, 2, Script(WORD // 2 - 1, WORD // 4)).tolist() == [False]


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (0, 5), (1, 2), (6, 7), (2**40 - 1, 2**40)])
def test_bernoulli_exp_follows_its_law(numerator: int, denominator: int) -> None:
    hits = bernoulli_exp(np.full(RUNS, numerator, dtype=np.uint64), denominator, TestEntropy(16)).sum()
    assert stats.binomtest(int(hits), RUNS, np.exp(-numerator / denominator)).pvalue > ALPHA


def test_run_lengths_follow_their_law() -> None:
    lengths = run_lengths(RUNS, TestEntropy(17))
    seen = np.bincount(np.minimum(lengths, 8), minlength=9)
    tails = np.exp(-np.arange(10.0))
    tails[9] = 0
    assert stats.chisquare(seen, -np.diff(tails) * RUNS).pvalue > ALPHA


def test_a_run_goes_on_when_the_words_run_out() -> None:
    # Nine tries are made for one run. Step 2 stops (a miss) at the top word; a hit stops at step 3.
    stop, go = WORD - 2, 0  # WORD - 1 is not below a multiple of 3
    all_hits = [go] * 9 + [stop] * 9
    one_miss = [stop] * 9
    assert run_lengths(1, Script(*all_hits, *one_miss)).tolist() == [9]


def test_the_loss_of_one_step_is_one_over_the_scale() -> None:
    values = np.arange(-50, 51)
    for scale in SCALES[1:]:
        ratio = np.log(laplace_pmf(values, scale) / laplace_pmf(values + 1, scale))
        assert np.max(np.abs(ratio)) == pytest.approx(float(1 / scale))


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=LARGEST_SCALE))
def test_scales_are_rounded_up_and_can_be_drawn(scale: Fraction) -> None:
    rounded = round_scale(scale)
    assert rounded >= scale
    assert rounded.numerator <= LARGEST_SCALE
    assert rounded.denominator <= LARGEST_DENOMINATOR
    if scale >= Fraction(1, 2**20):
        assert rounded - scale <= scale / 2**38
    assert discrete_laplace(2, rounded, TestEntropy(1)).size == 2


def test_scales_that_cannot_be_drawn() -> None:
    for scale in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive"):
            round_scale(scale)
    with pytest.raises(BudgetError, match="Raise epsilon"):
        round_scale(Fraction(LARGEST_SCALE + 1))
    for bad in (Fraction(1, 2**61), Fraction(2**41), Fraction(-1), 2.0):
        with pytest.raises(ValueError, match="round_scale"):
            discrete_laplace(1, bad, TestEntropy(1))  # type: ignore[arg-type]
