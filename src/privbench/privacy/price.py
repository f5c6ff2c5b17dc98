"""From an amount of budget to the event that costs it: how much noise a query gets, and what a method may know of it.

Amounts are rounded down first and scales up last: what is charged is never below what is lost. The currency of the
ledger picks the mechanism: Laplace noise and permute-and-flip are paid in epsilon, Gaussian noise and the exponential
mechanism in rho.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from privbench.privacy.events import UNITS, Currency, Event, Mechanism, quantise, replace_multiple
from privbench.privacy.noise import LARGEST_SCALE, root_scale, round_scale
from privbench.privacy.thresholds import least_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of each count: `scale` is that of the Laplace law, or sigma of the Gaussian one."""

    gaussian: bool
    scale: float

    @property
    def variance(self) -> float:
        """Near enough for weighting estimates."""
        return self.scale**2 * (1 if self.gaussian else 2)

    def highest(self, draws: int) -> float:
        """What the largest of so many draws is about as likely to pass as not."""
        return self.scale * (sqrt(2 * log(draws)) if self.gaussian else log(draws))


def noise_scale(currency: Currency, amount: Fraction, *, sensitivity: int, additive: bool) -> Fraction:
    """The scale of the noise that an amount on the grid buys for counts that move by so much."""
    if currency is Currency.EPSILON:
        return round_scale(sensitivity / amount)
    return root_scale(_noise_square(currency, amount, sensitivity=sensitivity, additive=additive))


def choice_scale(currency: Currency, amount: Fraction, *, sensitivity: int, monotone: bool) -> Fraction:
    """The scale of the choice that an amount on the grid buys for scores that move by so much."""
    moved = sensitivity if monotone else 2 * sensitivity
    if currency is Currency.EPSILON:
        return round_scale(moved / amount)
    return root_scale(_multiple(currency, additive=False) * moved**2 / (8 * amount))


def drawable(currency: Currency, amount: Fraction, *, sensitivity: int) -> bool:
    """Whether noise for so much sensitivity and so little budget can be drawn at all."""
    if currency is Currency.EPSILON:
        return sensitivity <= LARGEST_SCALE * amount
    return amount > 0 and _noise_square(currency, amount, sensitivity=sensitivity, additive=False) <= LARGEST_SCALE**2


def noise_of(currency: Currency, amount: Fraction, *, sensitivity: int, additive: bool, unit: int = UNITS) -> Noise:
    """The noise that an amount buys, in entities: in counts divided by `unit`."""
    scale = noise_scale(currency, quantise(amount, currency), sensitivity=sensitivity, additive=additive)
    return Noise(gaussian=currency is not Currency.EPSILON, scale=float(scale / unit))


def choice_noise(currency: Currency, amount: Fraction, *, sensitivity: int, monotone: bool, unit: int = UNITS) -> float:
    """The scale of the choice that an amount buys, in entities: in scores divided by `unit`."""
    scale = choice_scale(currency, quantise(amount, currency), sensitivity=sensitivity, monotone=monotone)
    return float(scale / unit)


def price_noise(
    currency: Currency,
    table: str,
    query: str,
    *,
    sensitivity: int,
    amount: Fraction,
    draws: int,
    additive: bool = False,
    weighted: bool = False,
) -> Event:
    """The event of counts with noise, for an amount."""
    amount = quantise(amount, currency)
    gaussian = currency is not Currency.EPSILON
    return Event(
        mechanism=Mechanism.DISCRETE_GAUSSIAN if gaussian else Mechanism.DISCRETE_LAPLACE,
        query=query,
        table=table,
        sensitivity=Fraction(sensitivity),
        scale=noise_scale(currency, amount, sensitivity=sensitivity, additive=additive),
        amount=amount,
        draws=draws,
        currency=currency,
        additive=additive,
        weighted=weighted,
    )


def price_frequent(currency: Currency, table: str, query: str, *, amount: Fraction, delta: Fraction) -> Event:
    """The event of frequent values, one per entity, for an amount and a chance."""
    amount = quantise(amount, currency)
    scale = noise_scale(currency, amount, sensitivity=1, additive=True)
    return Event(
        mechanism=Mechanism.FREQUENT_VALUES,
        query=query,
        table=table,
        sensitivity=Fraction(1),
        scale=scale,
        amount=amount,
        draws=1,
        currency=currency,
        additive=True,
        threshold=least_threshold(scale, delta),
        delta=delta,
    )


def threshold_of(currency: Currency, amount: Fraction, *, delta: Fraction) -> int:
    """How many entities, less or more by noise, must have a value for it to come out, for an amount and a chance."""
    return least_threshold(noise_scale(currency, quantise(amount, currency), sensitivity=1, additive=True), delta)


def price_choice(
    currency: Currency,
    table: str,
    query: str,
    *,
    sensitivity: int,
    amount: Fraction,
    monotone: bool = False,
    weighted: bool = False,
) -> Event:
    """The event of a noisy choice, for an amount."""
    amount = quantise(amount, currency)
    return Event(
        mechanism=Mechanism.PERMUTE_AND_FLIP if currency is Currency.EPSILON else Mechanism.EXPONENTIAL,
        query=query,
        table=table,
        sensitivity=Fraction(sensitivity),
        scale=choice_scale(currency, amount, sensitivity=sensitivity, monotone=monotone),
        amount=amount,
        draws=1,
        currency=currency,
        monotone=monotone,
        weighted=weighted,
    )


def price_published(table: str, query: str, *, sensitivity: int, rounds: int, amount: Fraction) -> Event:
    """The event of a step as the paper prints it: in each round, noise for half of its share of the amount."""
    amount = quantise(amount)
    return Event(
        mechanism=Mechanism.AS_PUBLISHED,
        query=query,
        table=table,
        sensitivity=Fraction(sensitivity),
        scale=round_scale(sensitivity * Fraction(rounds, 2) / amount),
        amount=amount,
        draws=rounds,
    )


def _noise_square(currency: Currency, amount: Fraction, *, sensitivity: int, additive: bool) -> Fraction:
    """The least sigma**2 whose Gaussian noise costs no more than an amount of rho."""
    return _multiple(currency, additive=additive) * sensitivity**2 / (2 * amount)


def _multiple(currency: Currency, *, additive: bool) -> int:
    return replace_multiple(additive=additive) if currency is Currency.RHO_REPLACE else 1
