"""What a measured query costs: one frozen event per draw, with exact rationals.

An event says which mechanism ran, how far one entity can move its exact answer, how much noise was drawn and what
that costs: an epsilon, or a rho of zero-concentrated differential privacy where the promise has a delta. It checks
itself when made; the ledger adds events up. Why these are the costs: docs/proofs/composition.md.
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from privbench.errors import BudgetError
from privbench.privacy.thresholds import lone_chance

GRID = 2**40
"""Every charge of epsilon is a whole number of 1/GRID, so that sums are sums of integers."""
FINE_GRID = 2**80
"""The same for rho, which goes with the square of epsilon."""
UNITS = 2**20
"""What all rows of an entity in a table weigh together, where rows are counted by weight."""
CAP_CHOICE = "rows per entity"
"""How the query is called that chooses the rows per entity of a table."""


class Currency(Enum):
    """What a ledger counts in.

    Epsilon counts one entity added or removed; replacing one costs twice, whatever was measured. Rho depends on what
    was measured, so it counts what the promise is about: one entity added or removed, or one replaced.
    """

    EPSILON = "epsilon"
    RHO = "rho"
    RHO_REPLACE = "rho for replace"

    @property
    def word(self) -> str:
        """Its name in messages and receipts."""
        return "epsilon" if self is Currency.EPSILON else "rho"

    @property
    def grid(self) -> int:
        """How many steps one unit has."""
        return GRID if self is Currency.EPSILON else FINE_GRID


class Mechanism(Enum):
    """How noise was drawn. AS_PUBLISHED is the paper's own mechanism, whose claim is counted but not verified."""

    DISCRETE_LAPLACE = "discrete-laplace"
    PERMUTE_AND_FLIP = "permute-and-flip"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    EXPONENTIAL = "exponential"
    FREQUENT_VALUES = "frequent-values"
    AS_PUBLISHED = "as-published"

    @property
    def chooses(self) -> bool:
        """Whether it picks one of several candidates."""
        return self in (Mechanism.PERMUTE_AND_FLIP, Mechanism.EXPONENTIAL)

    @property
    def concentrated(self) -> bool:
        """Whether it is paid for in rho."""
        return self in (Mechanism.DISCRETE_GAUSSIAN, Mechanism.EXPONENTIAL, Mechanism.FREQUENT_VALUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One draw. `sensitivity` is for one entity with all its rows: rows per entity times what one row can move.

    Noise on counts: `sensitivity` in L1, `draws` noisy counts. A choice: the most that one score can move, one draw;
    `monotone` says that an entity moves all scores in the same direction. A `weighted` event counts units instead of
    rows: the rows of an entity weigh at most UNITS together, however many they are. `additive` says that an entity
    only adds to the counts, and lowers none; then replacing one costs twice the rho, else four times.

    Frequent values: one draw of those that come out at the `threshold` or above where each entity has one value.
    That a value of one entity alone is among them has at most the chance `delta`, which is charged, too.
    """

    mechanism: Mechanism
    query: str
    table: str
    sensitivity: Fraction
    scale: Fraction
    amount: Fraction
    draws: int
    currency: Currency = Currency.EPSILON
    monotone: bool = False
    weighted: bool = False
    additive: bool = False
    threshold: int = 0
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("sensitivity", "scale", "amount"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise ValueError(f"{self}: {name} must be a positive Fraction, not {value!r}")
        if self.currency.grid % self.amount.denominator:
            raise ValueError(f"{self}: {self.amount} is not on the grid; pass it through quantise first")
        if self.draws < 1:
            raise ValueError(f"{self}: an event draws at least once, not {self.draws} times")
        if self.weighted and self.sensitivity < UNITS:
            raise ValueError(
                f"{self}: an entity weighs {UNITS} units, so that sensitivity {self.sensitivity} is too low"
            )
        if self.mechanism.concentrated == (self.currency is Currency.EPSILON):
            raise ValueError(f"{self}: {self.mechanism.value} is not paid for in {self.currency.word}")
        if self.mechanism is not Mechanism.AS_PUBLISHED:
            self._check_cost()
        self._check_threshold()

    def _check_cost(self) -> None:
        chooses = self.mechanism.chooses
        if chooses and self.draws != 1:
            raise ValueError(f"{self}: one event is one choice, not {self.draws}")
        if self.monotone and not chooses:
            raise ValueError(f"{self}: only a choice can be monotone")
        if self.additive and chooses:
            raise ValueError(f"{self}: only counts can be additive")
        if self.cost > self.amount:
            said = f"{self.currency.word} {self.amount}"
            raise ValueError(f"{self}: noise of scale {self.scale} costs {self.cost}, more than {said}")

    def _check_threshold(self) -> None:
        if self.mechanism is not Mechanism.FREQUENT_VALUES:
            if self.threshold or self.delta:
                raise ValueError(f"{self}: only frequent values have a threshold and a delta")
            return
        if not self.threshold or self.sensitivity != 1 or self.draws != 1 or self.weighted:
            raise ValueError(f"{self}: frequent values are drawn at once, with a threshold, one value per entity")
        if lone_chance(self.scale, self.threshold) > self.delta:
            raise ValueError(
                f"{self}: a value of one entity passes {self.threshold} with more chance than {self.delta}"
            )

    @property
    def cost(self) -> Fraction:
        """What the noise costs at least, in the event's currency."""
        ratio = self.sensitivity / self.scale * (2 if self.mechanism.chooses and not self.monotone else 1)
        if not self.mechanism.concentrated:
            return ratio
        multiple = replace_multiple(additive=self.additive) if self.currency is Currency.RHO_REPLACE else 1
        return multiple * ratio**2 / (8 if self.mechanism.chooses else 2)

    def __str__(self) -> str:
        return f"{self.table}: {self.query}"


def replace_multiple(*, additive: bool) -> int:
    """How many times the rho of adding or removing an entity it costs to replace one."""
    return 2 if additive else 4


def quantise(amount: Fraction, currency: Currency = Currency.EPSILON) -> Fraction:
    """An amount rounded down to the grid of its currency.

    >>> quantise(Fraction(1, 3)) < Fraction(1, 3), quantise(Fraction(5, 8))
    (True, Fraction(5, 8))
    """
    steps = math.floor(amount * currency.grid)
    if steps < 1:
        raise BudgetError(
            f"a share of {float(amount):.3g} of {currency.word} is too small to measure anything with. "
            "Raise epsilon, or ask for fewer tables and columns."
        )
    return Fraction(steps, currency.grid)


def rational(value: Fraction) -> str:
    """Write a rational as the receipt does.

    >>> rational(Fraction(16, 5)), rational(Fraction(2))
    ('16/5', '2/1')
    """
    return f"{value.numerator}/{value.denominator}"
