"""From an amount of budget to the event that costs it: how much noise a query gets, and what a method may know of it.

Amounts are rounded down first and scales up last: what is charged is never below what is lost. The privacy measure of
the ledger picks the mechanism: Laplace noise and permute-and-flip are paid in epsilon, Gaussian noise and the
exponential mechanism in rho.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from privbench.privacy.events import Event, Mechanism, PrivacyMeasure, quantise, replace_multiple
from privbench.privacy.noise import LARGEST_SCALE, root_scale, round_scale
from privbench.privacy.queries import ENTITY_WEIGHT, Choice, Counted, FrequentValues, HeavyHitters, PublishedRowSplit
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


def noise_scale(measure: PrivacyMeasure, amount: Fraction, *, sensitivity: int, additive: bool) -> Fraction:
    """The scale of the noise that an amount on the grid buys for counts that move by so much."""
    if measure is PrivacyMeasure.EPSILON:
        return round_scale(sensitivity / amount)
    return root_scale(_noise_square(measure, amount, sensitivity=sensitivity, additive=additive))


def choice_scale(measure: PrivacyMeasure, amount: Fraction, *, sensitivity: int, monotone: bool) -> Fraction:
    """The scale of the choice that an amount on the grid buys for scores that move by so much."""
    moved = sensitivity if monotone else 2 * sensitivity
    if measure is PrivacyMeasure.EPSILON:
        return round_scale(moved / amount)
    return root_scale(_multiple(measure, additive=False) * moved**2 / (8 * amount))


def drawable(measure: PrivacyMeasure, amount: Fraction, *, sensitivity: int = ENTITY_WEIGHT) -> bool:
    """Whether noise for so much sensitivity and so little budget can be drawn at all."""
    if amount * measure.grid < 1:
        return False
    if measure is PrivacyMeasure.EPSILON:
        return sensitivity <= LARGEST_SCALE * amount
    return _noise_square(measure, amount, sensitivity=sensitivity, additive=False) <= LARGEST_SCALE**2


def noise_of(
    measure: PrivacyMeasure,
    amount: Fraction,
    *,
    sensitivity: int = ENTITY_WEIGHT,
    additive: bool = True,
    unit: int = ENTITY_WEIGHT,
) -> Noise:
    """The noise that an amount buys for counts, in entities: in counts divided by `unit`."""
    scale = noise_scale(measure, quantise(amount, measure), sensitivity=sensitivity, additive=additive)
    return Noise(gaussian=measure is not PrivacyMeasure.EPSILON, scale=float(scale / unit))


def choice_noise(
    measure: PrivacyMeasure,
    amount: Fraction,
    *,
    sensitivity: int = ENTITY_WEIGHT,
    monotone: bool = False,
    unit: int = ENTITY_WEIGHT,
) -> float:
    """The scale of the choice that an amount buys, in entities: in scores divided by `unit`."""
    scale = choice_scale(measure, quantise(amount, measure), sensitivity=sensitivity, monotone=monotone)
    return float(scale / unit)


def calibrate(
    query: Counted | Choice, measure: PrivacyMeasure, amount: Fraction, *, delta: Fraction = Fraction(0)
) -> Event:
    """The event that answers a query for an amount; frequent values also need a part of delta."""
    amount = quantise(amount, measure)
    if isinstance(query, Choice):
        scale = choice_scale(measure, amount, sensitivity=query.sensitivity, monotone=query.monotone)
        chooses = Mechanism.PERMUTE_AND_FLIP if measure is PrivacyMeasure.EPSILON else Mechanism.EXPONENTIAL
        return Event(query=query, mechanism=chooses, measure=measure, scale=scale, amount=amount)
    scale = noise_scale(measure, amount, sensitivity=query.sensitivity, additive=query.additive)
    if isinstance(query, FrequentValues):
        return Event(
            query=query,
            mechanism=Mechanism.FREQUENT_VALUES,
            measure=measure,
            scale=scale,
            amount=amount,
            threshold=least_threshold(scale, delta),
            delta=delta,
        )
    if isinstance(query, HeavyHitters) and measure is not PrivacyMeasure.EPSILON:
        raise ValueError(
            f"{query.table}.{query.column}: the zeros between heavy hitters are drawn for Laplace noise alone"
        )
    noise = Mechanism.DISCRETE_LAPLACE if measure is PrivacyMeasure.EPSILON else Mechanism.DISCRETE_GAUSSIAN
    return Event(query=query, mechanism=noise, measure=measure, scale=scale, amount=amount)


def calibrate_published(query: PublishedRowSplit, amount: Fraction) -> Event:
    """The event of a step as the paper publishes it: in each round, noise for half of its share of the amount."""
    amount = quantise(amount)
    return Event(
        query=query,
        mechanism=Mechanism.AS_PUBLISHED,
        measure=PrivacyMeasure.EPSILON,
        scale=round_scale(query.sensitivity * Fraction(query.rounds, 2) / amount),
        amount=amount,
    )


def threshold_of(measure: PrivacyMeasure, amount: Fraction, *, delta: Fraction) -> int:
    """How many entities, less or more by noise, must have a value for it to come out, for an amount and a delta."""
    return least_threshold(noise_scale(measure, quantise(amount, measure), sensitivity=1, additive=True), delta)


def query_noise(query: Counted, measure: PrivacyMeasure, amount: Fraction) -> Noise:
    """The noise that an amount buys for the counts of a query, in entities."""
    return noise_of(measure, amount, sensitivity=query.sensitivity, additive=query.additive, unit=query.unit)


def _noise_square(measure: PrivacyMeasure, amount: Fraction, *, sensitivity: int, additive: bool) -> Fraction:
    """The least sigma**2 whose Gaussian noise costs no more than an amount of rho."""
    return _multiple(measure, additive=additive) * sensitivity**2 / (2 * amount)


def _multiple(measure: PrivacyMeasure, *, additive: bool) -> int:
    return replace_multiple(additive=additive) if measure is PrivacyMeasure.RHO_REPLACE else 1
