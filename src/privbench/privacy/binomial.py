"""How many of many unlikely events happen, drawn exactly: a binomial number whose chance is that of large noise.

The chance is irrational, so the distribution function is known only as an interval. A uniform number is compared with
it bit by bit: where the interval does not settle the comparison, more digits of both are worked out. What is returned
therefore has exactly the law that it should have (docs/proofs/domains.md); no float is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from privbench.privacy.noise import Entropy

_WORDS = 2
"""How many words lengthen the uniform number each time; nearly always the first ones are enough."""
_SPARE_DIGITS = 60
"""Digits beyond those of the uniform number: chances near 2**-64, taken 2**64 times, cost about 40 of them."""

Interval = tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class TailChance:
    """The chance a**least / (1 + a), a = exp(-1/scale), that discrete Laplace noise is `least` or more; least > 0."""

    least: int
    scale: Fraction


def binomial(trials: int, chance: TailChance, entropy: Entropy) -> int:
    """Draw how many of `trials` independent events of this chance happen. The work grows with the number drawn."""
    uniform, bits = 0, 0
    while True:
        for word in entropy.words(_WORDS).tolist():
            uniform, bits = uniform << 64 | word, bits + 64
        drawn = _inverted(uniform, bits, trials, chance)
        if drawn is not None:
            return drawn


def _inverted(uniform: int, bits: int, trials: int, chance: TailChance) -> int | None:
    """The number whose step of the distribution function holds all of [uniform, uniform + 1] / 2**bits, if settled."""
    digits = _Digits(bits * 31 // 100 + _SPARE_DIGITS)
    low, _ = digits.ratio(uniform, 2**bits)
    _, high = digits.ratio(uniform + 1, 2**bits)
    for count, (least, most) in enumerate(_distribution(trials, chance, digits)):
        if high <= least or count == trials:
            return count
        if low < most:
            return None
    raise AssertionError("a distribution function ends at 1")


def _distribution(trials: int, chance: TailChance, digits: "_Digits") -> Iterator[Interval]:
    """The chance of at most 0, 1, .. events, each as an interval that holds it."""
    hit = _chance(chance, digits)
    miss = digits.minus((Decimal(1), Decimal(1)), hit)
    odds = digits.over(hit, miss)
    mass = digits.exp(digits.times(digits.ratio(trials, 1), digits.ln(miss)))
    total = mass
    for count in range(trials + 1):
        yield total
        mass = digits.times(digits.times(mass, odds), digits.ratio(trials - count, count + 1))
        total = digits.plus(total, mass)


def _chance(chance: TailChance, digits: "_Digits") -> Interval:
    rate, step = -chance.least / chance.scale, -1 / chance.scale
    tail = digits.exp(digits.ratio(rate.numerator, rate.denominator))
    base = digits.exp(digits.ratio(step.numerator, step.denominator))
    return digits.over(tail, digits.plus((Decimal(1), Decimal(1)), base))


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
