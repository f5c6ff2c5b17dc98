"""What a measured query costs: one frozen event per draw, with exact rationals.

An event says which mechanism ran, how far one entity can move its exact answer, how much noise was drawn and what
epsilon (add or remove one entity) that costs. It checks itself when made; the ledger adds events up.
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from privbench.errors import BudgetError

GRID = 2**40
"""Every charge is a whole number of 1/GRID, so that sums are sums of integers."""
CAP_CHOICE = "rows per entity"
"""How the query is called that chooses the rows per entity of a table."""


class Mechanism(Enum):
    """How noise was drawn. AS_PRINTED is the paper's own mechanism, whose claim is counted but not verified."""

    DISCRETE_LAPLACE = "discrete-laplace"
    PERMUTE_AND_FLIP = "permute-and-flip"
    AS_PRINTED = "as-printed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One draw. `sensitivity` is for one entity with all its rows: rows per entity times what one row can move.

    Noise on counts: `sensitivity` in L1, `draws` noisy counts. A choice: the most that one score can move, one draw;
    `monotone` says that an entity moves all scores in the same direction, which halves the cost.
    """

    mechanism: Mechanism
    query: str
    table: str
    sensitivity: Fraction
    scale: Fraction
    epsilon: Fraction
    draws: int
    monotone: bool = False

    def __post_init__(self) -> None:
        for name in ("sensitivity", "scale", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise ValueError(f"{self}: {name} must be a positive Fraction, not {value!r}")
        if self.epsilon.denominator > GRID or GRID % self.epsilon.denominator:
            raise ValueError(f"{self}: epsilon {self.epsilon} is not on the grid; pass it through quantise first")
        if self.draws < 1:
            raise ValueError(f"{self}: an event draws at least once, not {self.draws} times")
        if self.mechanism is not Mechanism.AS_PRINTED:
            self._check_cost()

    def _check_cost(self) -> None:
        chooses = self.mechanism is Mechanism.PERMUTE_AND_FLIP
        if chooses and self.draws != 1:
            raise ValueError(f"{self}: one event is one choice, not {self.draws}")
        if self.monotone and not chooses:
            raise ValueError(f"{self}: only a choice can be monotone")
        factor = 2 if chooses and not self.monotone else 1
        cost = factor * self.sensitivity / self.scale
        if cost > self.epsilon:
            raise ValueError(f"{self}: noise of scale {self.scale} costs {cost}, more than epsilon {self.epsilon}")

    def __str__(self) -> str:
        return f"{self.table}: {self.query}"


def quantise(epsilon: Fraction) -> Fraction:
    """Epsilon rounded down to the grid.

    >>> quantise(Fraction(1, 3)) < Fraction(1, 3), quantise(Fraction(5, 8))
    (True, Fraction(5, 8))
    """
    units = math.floor(epsilon * GRID)
    if units < 1:
        raise BudgetError(
            f"a share of {float(epsilon):.3g} of epsilon is too small to measure anything with. "
            "Raise epsilon, or ask for fewer tables and columns."
        )
    return Fraction(units, GRID)


def rational(value: Fraction) -> str:
    """Write a rational as the receipt does.

    >>> rational(Fraction(16, 5)), rational(Fraction(2))
    ('16/5', '2/1')
    """
    return f"{value.numerator}/{value.denominator}"
