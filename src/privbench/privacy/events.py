"""What a draw costs: one frozen event per query, with exact rationals.

An event says which mechanism answers a query, how much noise is drawn and what that costs: an epsilon, or a rho of
zero-concentrated differential privacy where the promise has a delta. How far one entity can move the exact answer
follows from the query. An event checks itself when made; the ledger adds events up. Why these are the costs:
docs/proofs/composition.md.
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol

from privbench.errors import BudgetError
from privbench.privacy.thresholds import tail_probability

GRID = 2**40
"""Every charge of epsilon is a whole number of 1/GRID, so that sums are sums of integers."""
FINE_GRID = 2**80
"""The same for rho, which goes with the square of epsilon."""


class PrivacyMeasure(Enum):
    """What a budget counts.

    Epsilon counts one entity added or removed; replacing one costs twice, whatever was measured. Rho depends on what
    was measured, so it counts what the promise is about: one entity added or removed, or one replaced.
    """

    EPSILON = "epsilon"
    RHO = "rho"
    RHO_REPLACE = "rho for replace"

    @property
    def word(self) -> str:
        """Its name in messages and receipts."""
        return "epsilon" if self is PrivacyMeasure.EPSILON else "rho"

    @property
    def grid(self) -> int:
        """How many steps one unit has."""
        return GRID if self is PrivacyMeasure.EPSILON else FINE_GRID


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


class Asked(Protocol):
    """What an event must know of its query."""

    @property
    def table(self) -> str:
        """The table whose rows are looked at."""

    @property
    def sensitivity(self) -> int:
        """How far one entity can move the exact answer: in L1 for counts, the largest move of a score for a choice."""

    @property
    def draws(self) -> int:
        """How many noisy numbers come out."""

    def to_json(self) -> dict[str, Any]:
        """Describe the query as the receipt does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One draw: the answer to one query by one mechanism, with noise of that scale, for that amount.

    Frequent values come out at the `threshold` or above. That a value of one entity alone is among them has at most the
    probability `delta`, which is charged, too.
    """

    query: Asked
    mechanism: Mechanism
    measure: PrivacyMeasure
    scale: Fraction
    amount: Fraction
    threshold: int = 0
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("scale", "amount"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise ValueError(f"{self}: {name} must be a positive Fraction, not {value!r}")
        if self.sensitivity < 1 or self.draws < 1:
            raise ValueError(f"{self}: draws {self.draws} numbers that an entity moves by {self.sensitivity}")
        if self.measure.grid % self.amount.denominator:
            raise ValueError(f"{self}: {self.amount} is not on the grid; pass it through quantise first")
        if self.mechanism.concentrated == (self.measure is PrivacyMeasure.EPSILON):
            raise ValueError(f"{self}: {self.mechanism.value} is not paid for in {self.measure.word}")
        if self.mechanism is not Mechanism.AS_PUBLISHED and self.cost > self.amount:
            budget = f"{self.measure.word} {self.amount}"
            raise ValueError(f"{self}: noise of scale {self.scale} costs {self.cost}, more than {budget}")
        self._check_threshold()

    def _check_threshold(self) -> None:
        if self.mechanism is not Mechanism.FREQUENT_VALUES:
            if self.threshold or self.delta:
                raise ValueError(f"{self}: only frequent values have a threshold and a delta")
        elif tail_probability(self.scale, self.threshold) > self.delta:
            raise ValueError(f"{self}: a value of one entity passes {self.threshold} more often than {self.delta}")

    @property
    def table(self) -> str:
        """The table whose rows are looked at."""
        return self.query.table

    @property
    def sensitivity(self) -> int:
        """How far one entity can move the exact answer."""
        return self.query.sensitivity

    @property
    def draws(self) -> int:
        """How many noisy numbers come out."""
        return self.query.draws

    @property
    def additive(self) -> bool:
        """Whether an entity only adds to the counts: then replacing one costs twice the rho, else four times."""
        return bool(getattr(self.query, "additive", False))

    @property
    def monotone(self) -> bool:
        """Whether an entity moves all scores of a choice the same way."""
        return bool(getattr(self.query, "monotone", False))

    @property
    def cost(self) -> Fraction:
        """What the noise costs at least, in the event's privacy measure."""
        ratio = self.sensitivity / self.scale * (2 if self.mechanism.chooses and not self.monotone else 1)
        if not self.mechanism.concentrated:
            return ratio
        multiple = replace_multiple(additive=self.additive) if self.measure is PrivacyMeasure.RHO_REPLACE else 1
        return multiple * ratio**2 / (8 if self.mechanism.chooses else 2)

    def to_json(self) -> dict[str, Any]:
        """Describe the event as the receipt does, without what it costs."""
        threshold = {"threshold": self.threshold, "delta": rational(self.delta)} if self.threshold else {}
        return {
            "mechanism": self.mechanism.value,
            "query": self.query.to_json(),
            "sensitivity": rational(Fraction(self.sensitivity)),
            "scale": rational(self.scale),
            "draws": self.draws,
            **threshold,
        }

    def __str__(self) -> str:
        return f"{self.query.table}: {self.query.to_json()['kind']}"


def replace_multiple(*, additive: bool) -> int:
    """How many times the rho of adding or removing an entity it costs to replace one."""
    return 2 if additive else 4


def quantise(amount: Fraction, measure: PrivacyMeasure = PrivacyMeasure.EPSILON) -> Fraction:
    """An amount rounded down to the grid of its privacy measure.

    >>> quantise(Fraction(1, 3)) < Fraction(1, 3), quantise(Fraction(5, 8))
    (True, Fraction(5, 8))
    """
    steps = math.floor(amount * measure.grid)
    if steps < 1:
        raise BudgetError(
            f"the budget of a query ({measure.word} {float(amount):.3g}) is too small to measure anything with. "
            "Raise epsilon, or ask for fewer tables and columns."
        )
    return Fraction(steps, measure.grid)


def rational(value: Fraction) -> str:
    """Write a rational as the receipt does.

    >>> rational(Fraction(16, 5)), rational(Fraction(2))
    ('16/5', '2/1')
    """
    return f"{value.numerator}/{value.denominator}"
