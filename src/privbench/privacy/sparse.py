"""A noisy histogram over more values than anyone can list, of which only the large counts are released.

The dense mechanism would add discrete Laplace noise to the count of each of the values and release those that come
out above a threshold. Nearly all counts are zero, so which zeros come out above it is drawn directly: how many (a
binomial number), where (uniformly), how far above (a geometric law). The law of what is released is exactly that of the
dense mechanism, so it costs the same and needs no delta (docs/proofs/domains.md). Work grows with the data alone. The
probability behind the binomial number is irrational: a uniform number is compared with it bit by bit, with more digits
of both where these do not settle it, so that no float is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privbench.privacy.noise import Entropy, bernoulli_exp, check_scale, discrete_laplace, run_lengths, uniform

_WORDS = 2
"""How many words lengthen the uniform number each time; nearly always the first ones are enough."""
_SPARE_DIGITS = 60
"""Digits beyond those of the uniform number: probabilities near 2**-64, taken 2**64 times, cost about 40 of them."""

Interval = tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class TailProbability:
    """The probability a**least / (1 + a), a = exp(-1/scale), that discrete Laplace noise is `least` > 0 or more."""

    least: int
    scale: Fraction


def binomial(trials: int, tail: TailProbability, entropy: Entropy) -> int:
    """Draw how many of `trials` independent events of this probability happen. The work grows with the number drawn."""
    uniform, bits = 0, 0
    while True:
        for word in entropy.words(_WORDS).tolist():
            uniform, bits = uniform << 64 | word, bits + 64
        drawn = _inverted(uniform, bits, trials, tail)
        if drawn is not None:
            return drawn


def _inverted(uniform: int, bits: int, trials: int, tail: TailProbability) -> int | None:
    """The number whose step of the distribution function holds all of [uniform, uniform + 1] / 2**bits, if settled."""
    digits = _Digits(bits * 31 // 100 + _SPARE_DIGITS)
    low, _ = digits.ratio(uniform, 2**bits)
    _, high = digits.ratio(uniform + 1, 2**bits)
    for count, (least, most) in enumerate(_distribution(trials, tail, digits)):
        if high <= least or count == trials:
            return count
        if low < most:
            return None
    raise AssertionError("a distribution function ends at 1")


def _distribution(trials: int, tail: TailProbability, digits: "_Digits") -> Iterator[Interval]:
    """The probability of at most 0, 1, .. events, each as an interval that holds it."""
    hit = _probability(tail, digits)
    miss = digits.minus((Decimal(1), Decimal(1)), hit)
    odds = digits.over(hit, miss)
    mass = digits.exp(digits.times(digits.ratio(trials, 1), digits.ln(miss)))
    total = mass
    for count in range(trials + 1):
        yield total
        mass = digits.times(digits.times(mass, odds), digits.ratio(trials - count, count + 1))
        total = digits.plus(total, mass)


def _probability(tail: TailProbability, digits: "_Digits") -> Interval:
    rate, step = -tail.least / tail.scale, -1 / tail.scale
    beyond = digits.exp(digits.ratio(rate.numerator, rate.denominator))
    base = digits.exp(digits.ratio(step.numerator, step.denominator))
    return digits.over(beyond, digits.plus((Decimal(1), Decimal(1)), base))


class _Digits:
    """Interval arithmetic with so many decimal digits: lower ends are rounded down, upper ends up.

    `exp` and `ln` of the standard library are correctly rounded, to the nearest number of so many digits; one number
    further out on either side is a bound. Products and quotients are asked for with one negative factor at most.
    """

    def __init__(self, digits: int) -> None:
        self.down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
        self.up = Context(prec=digits, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])

    def ratio(self, numerator: int, denominator: int) -> Interval:
        top, bottom = Decimal(numerator), Decimal(denominator)
        return self.down.divide(top, bottom), self.up.divide(top, bottom)

    def plus(self, a: Interval, b: Interval) -> Interval:
        return self.down.add(a[0], b[0]), self.up.add(a[1], b[1])

    def minus(self, a: Interval, b: Interval) -> Interval:
        return self.down.subtract(a[0], b[1]), self.up.subtract(a[1], b[0])

    def times(self, a: Interval, b: Interval) -> Interval:
        """The product; `a` is not negative."""
        low, high = (a[0] if b[0] >= 0 else a[1]), (a[1] if b[1] >= 0 else a[0])
        return self.down.multiply(low, b[0]), self.up.multiply(high, b[1])

    def over(self, a: Interval, b: Interval) -> Interval:
        """The quotient of positive intervals."""
        return self.down.divide(a[0], b[1]), self.up.divide(a[1], b[0])

    def exp(self, a: Interval) -> Interval:
        return self.down.next_minus(self.down.exp(a[0])), self.up.next_plus(self.up.exp(a[1]))

    def ln(self, a: Interval) -> Interval:
        return self.down.next_minus(self.down.ln(a[0])), self.up.next_plus(self.up.ln(a[1]))


Integers = NDArray[np.int64]


def sparse_histogram(
    places: Integers, counts: Integers, *, low: int, high: int, above: int, scale: Fraction, entropy: Entropy
) -> Integers:
    """Release the values of low .. high whose noisy count is more than `above` (>= 0), as rows of value and count.

    `places` are the different values, ascending, whose `counts` are not zero; all lie between low and high (int64).
    """
    check_scale(scale)
    noisy = counts + discrete_laplace(counts.size, scale, entropy)
    kept = noisy > above
    absent = high - low + 1 - places.size
    tail = TailProbability(least=above + 1, scale=scale)
    false = binomial(absent, tail, entropy) if absent else 0
    ranks = _different(absent, false, entropy)
    heights = above + 1 + _geometric(false, scale, entropy)
    values = np.concatenate([places[kept], _absent_values(ranks, places, low)])
    order = np.argsort(values)
    return np.stack([values, np.concatenate([noisy[kept], heights])], axis=1)[order]


def _different(bound: int, count: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Draw `count` different integers below the bound, each set equally likely; repeats are drawn again."""
    drawn: list[int] = []
    seen: set[int] = set()
    while len(drawn) < count:
        for number in uniform(bound, count - len(drawn), entropy).tolist():
            if number not in seen:
                seen.add(number)
                drawn.append(number)
    return np.array(drawn, dtype=np.uint64)


def _geometric(count: int, scale: Fraction, entropy: Entropy) -> Integers:
    """Draw integers with P(at least g) = exp(-g / scale): the size of noise whose sign is known."""
    drawn = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        rest = uniform(scale.numerator, 2 * (count - filled) + 16, entropy)
        rest = rest[bernoulli_exp(rest, scale.numerator, entropy)][: count - filled]
        exponential = rest.astype(np.int64) + scale.numerator * run_lengths(rest.size, entropy)
        drawn[filled : filled + rest.size] = exponential // scale.denominator
        filled += rest.size
    return drawn


def _absent_values(ranks: NDArray[np.uint64], places: Integers, low: int) -> Integers:
    """The values of low .. high that are at these ranks among those not in `places`."""
    first = np.int64(low).view(np.uint64)  # differences of int64 may pass int64; modulo 2**64 they are exact
    offsets = places.view(np.uint64) - first
    before = offsets - np.arange(places.size, dtype=np.uint64)  # absent values before each place
    skipped = np.searchsorted(before, ranks, side="right").astype(np.uint64)
    return np.asarray((first + ranks + skipped).view(np.int64))
