"""The number of unlikely events is drawn by its exact law, also where 128 bits do not settle it."""

from decimal import Context, Decimal
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.sparse import TailProbability, _Digits, _distribution, _probability, binomial

FINE = Context(prec=250)


class _Words:
    """Hands out the given words, then zeros."""

    private = False

    def __init__(self, *words: int) -> None:
        self._left = list(words)
        self.drawn = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn += count
        taken, self._left = self._left[:count], self._left[count:]
        return np.array([*taken, *[0] * (count - len(taken))], dtype=np.uint64)


def _exact(chance: TailProbability) -> Decimal:
    """The chance with 250 digits."""
    rate, step = -chance.least / chance.scale, -1 / chance.scale
    tail, base = (FINE.exp(FINE.divide(Decimal(x.numerator), Decimal(x.denominator))) for x in (rate, step))
    return FINE.divide(tail, FINE.add(Decimal(1), base))


@pytest.mark.parametrize(
    ("trials", "chance"),
    [
        (5, TailProbability(least=1, scale=Fraction(2, 3))),
        (40, TailProbability(least=3, scale=Fraction(7, 2))),
        (2**30, TailProbability(least=2**20 * 19, scale=Fraction(2**20))),
    ],
)
def test_the_law_is_the_binomial_one(trials: int, chance: TailProbability) -> None:
    entropy = FixedEntropy(1)
    drawn = np.array([binomial(trials, chance, entropy) for _ in range(1000)])
    p = exp(-chance.least / chance.scale) / (1 + exp(-1 / chance.scale))
    edges = np.unique(stats.binom.ppf([0.05, 0.2, 0.4, 0.6, 0.8, 0.95], trials, p))
    cells = np.searchsorted(edges, drawn, side="left")
    shares = np.diff(stats.binom.cdf([-1, *edges, trials], trials, p))
    seen = np.bincount(cells, minlength=len(shares))
    kept = shares > 1e-3
    assert stats.chisquare(seen[kept], shares[kept] / shares[kept].sum() * seen[kept].sum()).pvalue > 1e-3


def test_intervals_hold_the_distribution_function() -> None:
    chance = TailProbability(least=5, scale=Fraction(13, 4))
    p, q = _exact(chance), FINE.subtract(Decimal(1), _exact(chance))
    assert _probability(chance, _Digits(40))[0] <= p <= _probability(chance, _Digits(40))[1]
    total = Decimal(0)
    for count, (low, high) in enumerate(_distribution(12, chance, _Digits(40))):
        mass = FINE.multiply(FINE.power(p, Decimal(count)), FINE.power(q, Decimal(12 - count)))
        total = FINE.add(total, FINE.multiply(Decimal(comb(12, count)), mass))
        assert low <= total <= high
        assert high - low < Decimal("1e-35")


@pytest.mark.parametrize(("rest", "expected"), [(0, 0), (2**64 - 1, 1)])
def test_more_bits_are_drawn_where_the_first_do_not_settle_it(rest: int, expected: int) -> None:
    chance = TailProbability(least=2, scale=Fraction(3))
    none = FINE.power(FINE.subtract(Decimal(1), _exact(chance)), Decimal(9))
    start = int(FINE.multiply(none, Decimal(2**128)))  # the 128 bits within which the chance of no event lies
    entropy = _Words(start >> 64, start % 2**64, rest, rest)
    assert binomial(9, chance, entropy) == expected
    assert entropy.drawn == 4


def test_no_trials_give_no_events_and_many_do_not_take_long() -> None:
    chance = TailProbability(least=2**20 * 45, scale=Fraction(2**20))
    assert binomial(0, chance, FixedEntropy(1)) == 0
    assert binomial(2**64, chance, FixedEntropy(1)) < 10
