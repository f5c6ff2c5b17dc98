"""From an epsilon to the event that costs it: how much noise a query gets."""

from fractions import Fraction

from privbench.privacy.events import Event, Mechanism, quantise
from privbench.privacy.noise import round_scale


def price(
    mechanism: Mechanism,
    table: str,
    query: str,
    *,
    sensitivity: int,
    factor: Fraction = Fraction(1),
    epsilon: Fraction,
    draws: int = 1,
    monotone: bool = False,
) -> Event:
    """The event whose noise, of scale sensitivity * factor / epsilon, costs epsilon.

    Epsilon is rounded down first and the scale up last: what is charged is never below what is lost.
    """
    epsilon = quantise(epsilon)
    return Event(
        mechanism=mechanism,
        query=query,
        table=table,
        sensitivity=Fraction(sensitivity),
        scale=round_scale(sensitivity * factor / epsilon),
        epsilon=epsilon,
        draws=draws,
        monotone=monotone,
    )
